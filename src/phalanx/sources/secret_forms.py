"""The forms that secrets have in text: tokens of known providers, credentials in addresses, headers and assignments.

Each form is an expression for Hyperscan, which reads any text in linear time and says where an expression ends. What
belongs to the secret is then a run of plain characters, taken from there by a `reach`. The providers' formats follow the
rule sets of detect-secrets and gitleaks.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import hyperscan

from phalanx.sources.secret_reach import (
    LOOKED_AT,
    Reach,
    alone_in_cell,
    alone_in_line,
    beside_name,
    beside_word,
    first_word,
    last_of_pair,
    looks_random,
    not_hexadecimal,
    private_key,
    random_word,
    run_of,
    user_info,
    value,
    value_before_name,
    value_compared,
)

_MULTILINE = hyperscan.HS_FLAG_MULTILINE
_CASELESS = _MULTILINE | hyperscan.HS_FLAG_CASELESS
# Where a word begins: also behind a colour of the terminal, the \\n of JSON, and the %22 of an address.
_AFTER = r"(?:^|[^{}]|\x1b\[[0-9;]{{0,12}}m|\\[nrt]|%[0-9A-F]{{2}})"
_START = _AFTER.format("A-Za-z0-9")
# Between a name and its value: JSON, YAML, Python, shells, HTTP; escaped quotes of JSON within JSON.
_COLOUR = r"(?:\x1b\[[0-9;]{0,12}m){0,2}"
_ASSIGNS = (
    rf"(?:\\{{0,7}}[\"'])?[\])]?(?:\*\*)?{_COLOUR}[ \t]{{0,40}}{_COLOUR}(?:=>|:=|={{1,3}}|:|%3D)(?:\*\*)?{_COLOUR}[ \t]{{0,20}}"
    rf"{_COLOUR}(?:[brufBRUF]{{0,2}}\\{{0,7}}[\"'`])?"
)


@dataclass(frozen=True, slots=True)
class Form:
    """One form: what Hyperscan looks for, how many bytes before the end of that are secret, and how far the secret goes on."""

    name: str
    expression: str
    reach: Reach
    back: int = 0
    flags: int = _MULTILINE
    seek: Callable[[bytes, int], int] | None = None  # where the secret begins, if not where the expression ends


def _token(name: str, prefix: str, characters: str, least: int, flags: int = _MULTILINE) -> Form:
    """A token known by its prefix, of which only the prefix stays."""
    return Form(name, f"{prefix}[{characters}]{{{least}}}", run_of(characters), back=least, flags=flags)


_WORD, _DASHED, _HEX = "A-Za-z0-9", r"A-Za-z0-9_\-", "0-9a-fA-F"
_BASE64 = "A-Za-z0-9+/=%"  # also quoted in an address: %2B, %2F, %3D


def _checked_token(name: str, prefix: str, characters: str, least: int) -> Form:
    """A token whose prefix also begins plain words."""
    run = run_of(characters, least)

    def reach(data: bytes, at: int) -> int:
        return run(data, at) if looks_random(data[at : at + LOOKED_AT]) else -1

    return Form(name, prefix, reach)


TOKENS = (
    _token("1password", "ops_eyJ", _BASE64, 60),
    _token("1password secret key", f"{_START}A3-[A-Z0-9]{{6}}-", "A-Z0-9-", 28),
    _token("adobe", f"{_START}p8e-", _WORD, 32),
    _token("age", "AGE-SECRET-KEY-1", "A-Z0-9", 58),
    _token("airtable", f"{_START}pat[A-Za-z0-9]{{14}}\\.", _HEX, 64),
    _token("alibaba", f"{_START}LTAI", _WORD, 16),
    _token("artifactory", f"{_START}AKCp", _WORD, 10),
    _token("artifactory reference", f"{_START}cmVmd", _WORD, 59),
    _token("authress", f"{_START}(?:sc|ext|scauth|authress)_[A-Za-z0-9]{{5,30}}\\.[A-Za-z0-9]{{4,6}}\\.acc[_-]", "A-Za-z0-9+/_=%.-", 40),
    _token("aws key id", f"{_START}(?:A3T[A-Z0-9]|ABIA|ACCA|AKIA|ASIA)", "A-Z0-9", 16),
    _token("aws bedrock", f"{_START}ABSK", _BASE64, 100),
    _token("aws bedrock session", "bedrock-api-key-", _BASE64, 28),
    Form("azure client secret", f"{_AFTER.format('A-Za-z0-9_~.')}[A-Za-z0-9_~.]{{3}}[0-9]Q~[{_DASHED}~.]{{31}}", run_of(_DASHED + "~."), back=37),
    _checked_token("clickhouse", f"{_START}4b1d", _WORD, 38),
    _token("clojars", "CLOJARS_", _WORD, 60, _CASELESS),
    _token("cloudflare", f"{_START}v1\\.0-[a-f0-9]{{24}}-", _HEX, 146),
    _token("databricks", f"{_START}dapi", _HEX, 32),
    _token("digitalocean", "do[opr]_v1_", _HEX, 64),
    Form("discord", f"{_AFTER.format(_DASHED + '.')}[MNO][{_DASHED}]{{23,25}}\\.[{_DASHED}]{{6}}\\.[{_DASHED}]{{27}}", run_of(_DASHED), back=59),
    _token("docker hub", "dckr_(?:pat|oat)_", _DASHED, 20),
    _token("doppler", "dp\\.(?:pt|st|ct|sa|scim|audit)\\.", "A-Za-z0-9_.-", 40),
    _token("duffel", "duffel_(?:test|live)_", _DASHED + "=%", 43),
    _token("dynatrace", "dt0[a-z]\\d\\d\\.[A-Z0-9]{24}\\.", _WORD, 64, _CASELESS),
    _token("easypost", f"{_START}EZ[AT]K", _WORD, 54),
    _token("facebook", f"{_START}EAA[MC]", _WORD, 100),
    _token("facebook app", f"{_START}[0-9]{{15,16}}(?:[|%]|%7C)", _DASHED, 27, _CASELESS),
    _token("flutterwave", "FLW(?:SEC|PUB)K(?:_TEST)?-", _WORD, 12),
    _token("fly.io", f"{_START}(?:fo1_|fm1[ar]_|fm2_)", _DASHED + "+/=%", 43),
    _token("frame.io", "fio-u-", _DASHED + "=%", 64),
    _token("google api key", f"{_START}AIza", _DASHED, 35),
    _token("google oauth", "GOCSPX-", _DASHED, 24),
    _token("google access token", f"{_START}ya29\\.", "A-Za-z0-9_.-", 30),
    _token("google refresh token", f"{_START}1//0", _DASHED, 30),
    _token("github", "gh[pousr]_", "A-Za-z0-9_", 30),
    _token("github fine-grained", "github_pat_", "A-Za-z0-9_", 22),
    _token("gitlab", f"{_START}(?:glpat|gldt|glft|glffct|glsoat|glrt|glcbt|glimt|glptt|glagent|gloas|glwt)-", _DASHED + ".", 20),
    _token("gitlab runner", "GR1348941", _DASHED, 20),
    _token("grafana", f"{_START}gl(?:c|sa)_", _BASE64 + "_", 32),
    _token("grafana key", f"{_START}eyJrIjoi", _BASE64, 60),
    Form("harness", f"{_START}[ps]at\\.[{_DASHED}]{{22}}\\.[A-Za-z0-9]{{24}}\\.", run_of(_WORD, 20), back=48),
    Form("terraform", f"{_START}[a-zA-Z0-9]{{14}}\\.atlasv1\\.[{_DASHED}=%]{{60}}", run_of(_DASHED + "=%"), back=83),
    _token("heroku", "HRKU-AA", _DASHED, 58),
    _token("hugging face", f"{_START}hf_", _WORD, 30),
    _token("hugging face organisation", f"{_START}api_org_", _WORD, 30),
    _token("infracost", f"{_START}ico-", _WORD, 32),
    _token("intra42", f"{_START}s-s4t2(?:ud|af)-", _HEX, 64),
    _token("json web token in base64", f"{_START}ZXlK", "A-Za-z0-9+/_=%-", 20),
    _token("linear", "lin_(?:api|oauth)_", _WORD, 40),
    Form("mailchimp", f"{_START}[0-9a-f]{{32}}-us[0-9]", run_of("0-9"), back=36),
    Form("maxmind", f"{_START}[A-Za-z0-9]{{6}}_[A-Za-z0-9]{{29}}_mmk", run_of("k"), back=40),
    _token("new relic", f"{_START}NR(?:II|AK|JS|AL|RA)-", "A-Za-z0-9-", 19),
    _token("notion", f"{_START}(?:ntn|secret)_", _WORD, 43),
    _token("npm", f"{_START}npm_", _WORD, 36),
    _token("nvidia", f"{_START}nvapi-", _DASHED, 40),
    _token("octopus", f"{_START}API-", "A-Z0-9", 26),
    _checked_token("openai, anthropic and others", f"{_START}sk-(?:ant-|proj-|svcacct-|admin-|or-|None-)?", _DASHED, 20),
    _token("openshift", "sha256~", _DASHED, 43),
    _token("perplexity", f"{_START}pplx-", _WORD, 40),
    _token("planetscale", "pscale_(?:tkn|oauth|pw)_", "A-Za-z0-9_=%.-", 32),
    _token("postman", f"{_START}PMAK-", "a-fA-F0-9-", 50, _CASELESS),
    _token("prefect", f"{_START}pn[ub]_", _WORD, 36),
    _token("pulumi", f"{_START}pul-", _HEX, 40),
    _token("pypi", "pypi-AgE", _DASHED, 50),
    _token("readme", f"{_START}rdme_", "a-z0-9", 70),
    _token("replicate", f"{_START}r8_", _WORD, 37),
    _token("groq", f"{_START}gsk_", _WORD, 40),
    _token("xai", f"{_START}xai-", _WORD, 60),
    _token("rubygems", "rubygems_", _HEX, 48),
    _token("scalingo", f"{_START}tk-us-", _DASHED, 48),
    _token("sendgrid", f"{_START}SG\\.", "A-Za-z0-9_=%.-", 39),
    _token("sendinblue", "xkeysib-", "a-zA-Z0-9-", 70),
    _token("sentry", "sntry[su]_", _BASE64 + "_", 40),
    _token("settlemint", f"{_START}sm_[aps]at_", _WORD, 16),
    _token("shippo", "shippo_(?:live|test)_", "a-fA-F0-9", 40),
    _token("shopify", "shp(?:at|ca|pa|ss|tka)_", "a-fA-F0-9", 32),
    _token("slack", f"{_START}xox[a-z](?:\\.xox[bp])?-", "A-Za-z0-9-", 10, _CASELESS),
    _token("slack app", "xapp-\\d-", "A-Za-z0-9-", 10),
    _token("sourcegraph", f"{_START}sgp_(?:[a-fA-F0-9]{{16}}_|local_)?", "a-fA-F0-9", 40),
    _token("square", f"{_START}(?:EAAA|sq0[a-z]{{3}}-)", _DASHED, 22),
    _token("stripe", f"{_START}(?:sk|rk)_(?:test|live|prod)_", _WORD, 10),
    _token("stripe webhook", f"{_START}whsec_", _BASE64, 24),
    _token("tailscale", "tskey-[a-z]{3,10}-", "A-Za-z0-9-", 16),
    _token("telegram", _AFTER.format("0-9A-Za-z:") + "[0-9]{5,16}:A", _DASHED, 34),
    _token("twilio", f"{_START}(?:SK|AC)", "0-9a-fA-F", 32),
    _token("vault", f"{_START}hv[sbr]\\.", _DASHED, 24),
    _checked_token("vault, before 1.10", f"{_START}s\\.", _WORD, 24),
    _token("weights and biases", f"{_START}(?:local-|wandb_v1_)", "A-Za-z0-9_", 40),
)  # fmt: skip

_JWT = re.compile(rb"[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_/%-]{10,}(?:\.[A-Za-z0-9_+/=-]*)?")


def _web_token(data: bytes, at: int) -> int:
    """A header that does not begin as JSON does needs a second part that does."""
    found = _JWT.match(data, at)
    return found.end() if found and (data[at - 1] in b"JA" or b".ey" in found[0]) else -1


_QUOTED_VALUE = re.compile(rb"(?:[\w.~+-]|%(?!26)[0-9A-Fa-f]{2}){4,}")
_QUOTED_USER = re.compile(
    rb"((?:[\w.~+-]|%(?!2F|40)[0-9A-Fa-f]{2}){0,80}%3A(?:[\w.~+!*-]|%(?!2F|40)[0-9A-Fa-f]{2}){1,200})%40", re.I
)


def _quoted_value(data: bytes, at: int) -> int:
    found = _QUOTED_VALUE.match(data, at)
    return found.end() if found else -1


def _quoted_user_info(data: bytes, at: int) -> int:
    found = _QUOTED_USER.match(data, at)
    return found.end(1) if found else -1


_HOOKS = (
    r"hooks\.slack\.com/(?:services|workflows|triggers)/|discord(?:app)?\.com/api/webhooks/|\.webhook\.office\.com/webhookb2/"
    r"|outlook\.office(?:365)?\.com/webhook/|api\.telegram\.org/bot|hooks\.zapier\.com/hooks/catch/|/trigger/[\w-]{1,60}/with/key/"
    r"|open\.(?:feishu\.cn|larksuite\.com)/open-apis/bot/v2/hook/|api\.softlayer\.com/soap/v3(?:\.1)?/"
).replace("/", "(?:/|%2F)")  # as it stands, and quoted within another address
_SCHEME = re.compile(rb"(?i)(?:bearer|basic|token|digest|negotiate|apikey|bot|key)[ \t]")
_TO_SPACE = run_of(r"^\s\"'<>`", 4)
_STRONG = (
    "passw(?:or)?d|passwd|passphrase|contrase(?:n|\\xc3\\xb1)a|secret|api[_.-]?key|access[_.-]?key|auth[_.-]?key|account[_.-]?key"
    "|service[_.-]?key|app(?:lication)?[_.-]?key|code[_.-]?verifier|client[_.-]?key|private[_.-]?key|priv[_.-]?key|signing[_.-]?key|encryption[_.-]?key|storage[_.-]?key"
    "|subscription[_.-]?key|license[_.-]?key|shared[_.-]?access[_.-]?(?:key|signature)|credential"
    "|(?:api|app|user|identity|service|registry|webhook|csrf|xsrf|device|auth|access|refresh|bearer|id|session|security|private|personal|deploy|bot|oauth)[_.-]?token|connection[_.-]?string"
)
# "smtp_pass" and "dbPass", but not "forward_pass", which is followed by a number.
_PASS = (
    "(?:db|database|smtp|i?map|mail|ldap|user|root|admin|login|ssh|s?ftp|proxy|sudo|auth|account|service|svc|key|keystore|truststore|store|cert"
    "|mysql|mariadb|pg|postgres|postgresql|redis|mongo|rabbitmq|amqp|basic|http|https|git|vnc)[_.-]?(?:pass|pwd|pw)"
)
_NAME = rf"(?:(?:{_STRONG})[\w.-]{{0,40}}|{_PASS})"
# {"name": "DB_PASSWORD", "value": "…"}, also over two lines of YAML.
_NAMED = (
    r"(?:name|key)\\{{0,7}}[\"']?[ \t]{{0,4}}[:=][ \t]{{0,4}}\\{{0,7}}[\"']?[\w.-]{{0,40}}(?:{})[\w.-]{{0,40}}\\{{0,7}}[\"']?,?\s{{1,40}}"
    r"\\{{0,7}}[\"']?value\\{{0,7}}[\"']?[ \t]{{0,4}}[:=][ \t]{{0,4}}\\{{0,7}}[\"']?"
)
_NEXT_LINE = r"\\{0,7}[\"']?:[ \t]{0,4}\r?\n[ \t]{0,40}"
_ANY_TOKEN = rf"(?:{_NAME}|token|_key|_pwd|_pat|jwt|cookie)"
OTHERS = (
    Form("private key", r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|PuTTY-User-Key-File-[0-9]", private_key),
    Form("json web token", _AFTER.format(_DASHED) + "ey[A-Za-z0-9]", _web_token),
    Form("credentials in an address", r"[a-z][a-z0-9+.-]{1,20}://", user_info, flags=_CASELESS),
    Form("webhook", _HOOKS, _TO_SPACE, flags=_CASELESS),
    Form(
        "signed address",
        r"[?&](?:amp;)?(?:x-(?:amz|goog|ms|oss|cos)-(?:signature|credential|security-token)|signature|sig|awsaccesskeyid|ossaccesskeyid|[a-z_-]{0,20}token"
        r"|[a-z_-]{0,20}key|auth|password|passwd|pwd|pass|[a-z_-]{0,20}secret|code|sign|jwt|" + rf"[\w.-]{{0,40}}{_NAME})=",
        run_of(r"^\s\"'<>`&#", 4), flags=_CASELESS,
    ),
    Form(
        "authorization header",
        rf"(?:proxy-)?authorization{_ASSIGNS}(?:(?:bearer|basic|token|digest|negotiate|apikey|bot|key)[ \t]{{1,4}})?",
        value(4, lambda head: _SCHEME.match(head) is None), flags=_CASELESS,
    ),
    Form(
        "authorization below its name",
        rf"authorization{_NEXT_LINE}[\"']?(?:bearer|basic|token|digest|negotiate|apikey|bot|key)[ \t]{{1,4}}",
        value(4), flags=_CASELESS,
    ),
    Form("bearer", rf"{_START}bearer[ \t]{{1,4}}", value(8, lambda head: random_word(head) or len(first_word(head)) >= 16), flags=_CASELESS),
    Form("basic", rf"{_START}(?:basic|token)[ \t]{{1,4}}", value(12, random_word), flags=_CASELESS),
    Form("cookie", r"(?:^|[^a-z])(?:set-)?cookie(?:\\?[\"'])?:[ \t]{0,4}(?:\\?[\"'])?", run_of(r"^\r\n\"'", 4), flags=_CASELESS),
    Form("secret by its name", rf"{_NAME}{_ASSIGNS}", value(4, numbers=True), flags=_CASELESS),
    Form(
        "password by its name",  # "the backward pass: …" is none
        rf"[\w.-]{{1,40}}[_.-](?:pwd|pw|pass){_ASSIGNS}|(?:^|[^a-z])pwd{_ASSIGNS}|(?:^|[^a-z])(?:pass|pw)=[\"']?|[\"'](?:pass|pw)\\?[\"']:[ \t]{{0,4}}\\?[\"']",
        value(4, lambda head: not head.startswith((b"/", b"~"))), flags=_CASELESS,
    ),
    Form("variable", rf"{_START}[A-Z][A-Z0-9_]{{0,60}}_(?:TOKEN|KEY|PAT|PWD|PASS|PW|AUTH|COOKIE|DSN|WEBHOOK|JWT)=[\"']?", value(6)),
    Form("token by its name", rf"(?:token|[_-]pat|auth|sid|device_code|session|session[_-]?id|jwt|cookie|signature|dsn){_ASSIGNS}", value(8, random_word), flags=_CASELESS),
    Form("key by its name", rf"key{_ASSIGNS}", value(16, not_hexadecimal), flags=_CASELESS),
    Form(
        "option", r"(?:^|[\s\"'])--?[\w.-]{0,40}" + f"(?:{_NAME}|[_-]pwd|[_-]pass|[_-]pat)" + r"(?:[ \t]{1,4}|[\"'],[ \t]{0,4}b?)[\"']?",
        value(4, lambda head: not head.startswith(b"-"), numbers=True), flags=_CASELESS,
    ),
    Form("token option", r"(?:^|[\s\"'])--?[\w.-]{0,40}token[ \t]{1,4}[\"']?", value(8, random_word), flags=_CASELESS),
    Form("secret beside its name", rf"(?:{_STRONG})[\w.-]{{0,40}}[ \t]{{0,40}}(?:[ \t]|[|]|│|┃|→|->|is:?[ \t])[ \t]{{0,40}}", value(6, random_word), flags=_CASELESS),
    Form("secret in a cell", rf"{_NAME}(?:\t|[ \t]{{1,40}}[|]|[ \t]{{0,40}}(?:│|┃))[ \t]{{0,40}}", value(4, alone_in_cell, numbers=True), flags=_CASELESS),
    Form("secret below its name", rf"{_NAME}{_NEXT_LINE}[\"']?", value(4, alone_in_line, numbers=True), flags=_CASELESS),
    Form("token below its name", rf"(?:token|auth|authorization|jwt|cookie|key){_NEXT_LINE}[\"']?", value(8, lambda head: alone_in_line(head) and random_word(head)), flags=_CASELESS),
    Form("declared", rf"{_START}(?:env|setx|setenv)[ \t]{{1,4}}\w{{0,60}}{_NAME}[ \t]{{1,40}}[\"']?", value(4, numbers=True), flags=_CASELESS),
    Form("statement", r"(?:password|identified by)[ \t]{1,4}'", value(1, numbers=True), flags=_CASELESS),
    Form("token in a block", r"(?:token|jwt|cookie|key)[\"']?:[ \t]{0,4}[|>][-+]?[ \t]{0,4}\r?\n[ \t]{1,40}", value(8, random_word), flags=_CASELESS),
    Form("secret in a block", rf"{_NAME}[\"']?:[ \t]{{0,4}}[|>][-+]?[ \t]{{0,4}}\r?\n[ \t]{{1,40}}", value(4, numbers=True), flags=_CASELESS),
    Form("token beside its name", rf"{_START}token (?:is|was):?[ \t]{{1,4}}[\"']?", value(8, random_word), flags=_CASELESS),
    Form("login", _START + r"(?:wandb|comet|neptune|clearml|huggingface-cli|hf auth)[ \t]login[ \t]{1,4}(?:--relogin[ \t]{1,4})?", value(32, random_word)),
    Form("element", rf"<[\w:.-]{{0,40}}(?:{_NAME}|(?:token|pwd|jwt)[\w.-]{{0,40}})>", value(4, numbers=True), flags=_CASELESS),
    Form("named value", _NAMED.format(_NAME), value(4, numbers=True), flags=_CASELESS),
    Form("named token", _NAMED.format("token|_key|_pwd|_pat|jwt|cookie"), value(8, random_word), flags=_CASELESS),
    Form("value before its name", r"[\"']value[\"'][ \t]{0,4}:[ \t]{0,4}[\"']", value_before_name, flags=_CASELESS),
    Form("pair of two", rf"[\"'][\w.-]{{0,40}}{_NAME}[\"'],[ \t]{{0,4}}[bu]?[\"']", value(4, last_of_pair, numbers=True), flags=_CASELESS),
    Form("pair", rf"[\"'][\w.-]{{0,40}}(?:{_STRONG}|token|cookie)[\w.-]{{0,40}}[\"'],[ \t]{{0,4}}[bu]?[\"']", value(8, random_word), flags=_CASELESS),
    Form("beside a name", _STRONG.replace("[_.-]?", "[ _.-]?"), value(8, random_word), flags=_CASELESS, seek=beside_name),
    Form("beside a word", r"token|passcode|[_-](?:pwd|pat)|jwt", value(8, random_word), flags=_CASELESS, seek=beside_word),
    Form("compared", r"assert[ ]{1,4}[\"']", value_compared),
    Form("digest", r"digest[ \t][^\r\n]{0,400}[ ,]response=[\"']?", run_of("0-9a-f", 8), flags=_CASELESS),
    Form("field", r"type=[\"']password[\"'][^<>\r\n]{0,200}[ \t]value=[\"']", value(1, numbers=True), flags=_CASELESS),
    Form("cell", rf"{_NAME}</t[dh]>\s{{0,8}}<td[^<>]{{0,80}}>", value(4, numbers=True), flags=_CASELESS),
    Form("kaggle", r"\"username\":[ ]?\"[^\"\r\n]{1,80}\",[ ]?\"key\":[ ]?\"", value(16), flags=_CASELESS),
    Form("refused input", r"input_value=[\"']", value(8, random_word)),
    Form("refused secret", rf"{_ANY_TOKEN}\r?\n[^\r\n]{{1,500}}input_value=b?[\"']?", value(1, numbers=True), flags=_CASELESS),
    Form("refused secret in one line", rf"{_ANY_TOKEN}[ \t]{{1,8}}[^\r\n\[]{{1,300}}\[type=[a-z_.]{{1,60}}, input_value=b?[\"']?", value(1, numbers=True), flags=_CASELESS),
    Form("oracle", r":oracle:\w{2,6}:[\w.$-]{1,60}/", run_of(r"^\s\"'<>`@", 1), flags=_CASELESS),
    Form("user and password in a call", r"(?:auth[ \t]?=[ \t]?|login|basicauth)\([ \t]?[\"'][^\"'\r\n]{1,80}[\"'],[ \t]{0,2}[\"']", value(4, numbers=True), flags=_CASELESS),
    Form("quoted query", r"(?:%3F|%26)[\w.-]{0,60}(?:token|key|secret|passw(?:or)?d|passphrase|pwd|pass|sig|signature|auth|code)%3D", _quoted_value, flags=_CASELESS),
    Form("quoted address", r"[a-z]%3A%2F%2F", _quoted_user_info, flags=_CASELESS),
    Form("secrets manager", r"Secret(?:String|Binary)\\{0,3}[\"']:[ ]?b?\\{0,3}[\"']", run_of(r"^\r\n", 4)),
    Form("pgpass", _START + r"[\w.*-]{1,80}:5432:[\w*-]{1,60}:[\w*-]{1,60}:", value(6, random_word)),
    Form("netrc", _START + r"login[ \t]{1,4}[^\s]{1,80}[ \t]{1,4}password[ \t]{1,4}", value(1, numbers=True), flags=_CASELESS),
    Form("user and password", _START + r"curl\b[^\r\n]{0,300}[ \t](?:-u|--user)[ =]?[ \t]{0,2}[\"']?[\w.@-]{1,64}:", value(1, numbers=True)),
    Form("short option", _START + r"(?:(?:mysql|mysqldump|mysqladmin|mariadb|sshpass|7z[ar]?)\b[^\r\n]{0,300}[ \t]-p[ \t]?|(?:un)?zip\b[^\r\n]{0,300}[ \t]-P[ \t]?|ldap\w{3,12}\b[^\r\n]{0,300}[ \t]-w[ \t]|openssl\b[^\r\n]{0,300}[ \t]pass:)[\"']?", value(4, numbers=True)),
)  # fmt: skip
FORMS = TOKENS + OTHERS
