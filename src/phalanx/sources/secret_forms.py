"""The forms that secrets have in text: tokens of known providers, credentials in addresses, headers and assignments.

Each form is an expression for Hyperscan, which reads any text in linear time and says where an expression ends. What
belongs to the secret is then a run of plain characters, taken from there by a `reach`: every step looks at a bounded
number of bytes or consumes them, so the whole stays linear. The providers' formats follow the rule sets of
detect-secrets and gitleaks.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import hyperscan

Reach = Callable[[bytes, int], int]  # where the secret that begins here ends; -1 if there is none

_MULTILINE = hyperscan.HS_FLAG_MULTILINE
_CASELESS = _MULTILINE | hyperscan.HS_FLAG_CASELESS
_LOOKED_AT = 96  # bytes of a value that decide whether it looks like a secret
# Where a word begins: also behind a colour of the terminal, and behind the \\n of JSON.
_AFTER = r"(?:^|[^{}]|\x1b\[[0-9;]{{0,12}}m|\\[nrt])"
_START = _AFTER.format("A-Za-z0-9")
# Between a name and its value: JSON, YAML, Python, shells, HTTP; escaped quotes of JSON within JSON.
_ASSIGNS = r"(?:\\{0,3}[\"'])?[\])]?[ \t]{0,4}(?:=>|:=|={1,3}|:)[ \t]{0,4}(?:[brufBRUF]{0,2}\\{0,3}[\"'`])?"


@dataclass(frozen=True, slots=True)
class Form:
    """One form: what Hyperscan looks for, how many bytes before the end of that are secret, and how far the secret goes on."""

    name: str
    expression: str
    reach: Reach
    back: int = 0
    flags: int = _MULTILINE


def run_of(characters: str, least: int = 0) -> Reach:
    """So many of these characters, or more."""
    run = re.compile(rf"[{characters}]{{{least},}}".encode())

    def reach(data: bytes, at: int) -> int:
        found = run.match(data, at)
        return found.end() if found else -1

    return reach


def looks_random(value: bytes) -> bool:
    """Whether it has a stretch as only keys and tokens have it: letters and digits mixed, or cases mixed at length."""
    for word in re.findall(rb"[A-Za-z0-9]{8,}", value[:_LOOKED_AT]):
        digits = len(re.findall(rb"[0-9]", word))
        if 2 <= digits < len(word) - 1 and len(re.findall(rb"[0-9]+", word)) >= 2:
            return True
        if len(word) >= 20 and len(re.findall(rb"[a-z][A-Z]", word)) >= 3:
            return True
    return False


_HARMLESS = re.compile(
    rb"(?i)(?:none|null|nil|true|false|yes|no|unset|empty|undefined|required|optional|missing|invalid|str|string|bytes|bool|int|float|dict|list|\*+|\.{2,}|x{3,})(?![A-Za-z0-9])"
    rb"|\[redacted\]|[<({$%]|\[[A-Z]"
)
_NUMBER = re.compile(rb"[-+]?[0-9][0-9,._]*(?:[eE][-+]?[0-9]+)?[%A-Za-z]{0,2}(?![A-Za-z0-9])")
_CODE = re.compile(rb"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*[(\[]|(?:self|args|os|cfg|config|opt|opts|settings|env)\.\w")
_BARE = re.compile(rb"[^\s\"'`;&<>]+")


def _value(data: bytes, at: int) -> tuple[int, bool]:
    """The end of a value that begins here, and whether it stands in quotes; then blanks belong to it."""
    if at and data[at - 1] in b"\"'`":
        quote = data[at - 1 : at]
        end = data.find(quote, at, at + 4096)
        line = data.find(b"\n", at, at + 4096)
        if end >= 0 and (line < 0 or end < line):
            while end > at and data[end - 1] == 0x5C:  # the quote itself is escaped
                end -= 1
            return end, True
    found = _BARE.match(data, at)
    if found is None:
        return -1, False
    end = found.end()
    while end > at and data[end - 1] in b",)]}\\.:":
        end -= 1
    return end, False


def value(least: int, test: Callable[[bytes], bool] | None = None, numbers: bool = False) -> Reach:
    """The value of an assignment, if it is that long, passes the test, and is neither a plain word such as `None` nor code."""

    def reach(data: bytes, at: int) -> int:
        head = data[at : at + _LOOKED_AT]
        if _HARMLESS.match(head) or _CODE.match(head) or (not numbers and _NUMBER.match(head)):
            return -1
        if test is not None and not test(head):
            return -1
        end, _ = _value(data, at)
        return end if end - at >= least else -1

    return reach


def _first_word(data: bytes) -> bytes:
    found = _BARE.match(data)
    return found[0] if found else b""


def _random_word(head: bytes) -> bool:
    return looks_random(_first_word(head))


def _not_hexadecimal(head: bytes) -> bool:
    word = _first_word(head)
    return looks_random(word) and re.fullmatch(rb"(?:0x)?[0-9a-fA-F:-]+", word) is None


_USER_INFO = re.compile(rb"[^\s/\"'<>`]{1,300}@|[^\s\"'<>@/:`]{0,100}:(?!\d{1,5}/)[^\s\"'<>@`]{1,200}@")


def _user_info(data: bytes, at: int) -> int:
    """Name and password of an address; a name alone only where it looks like a key."""
    found = _USER_INFO.match(data, at)
    if found is None:
        return -1
    text = found[0][:-1]
    is_secret = b":" in text or looks_random(text) or len(text) >= 24
    return found.end() - 1 if is_secret and b"[redacted]" not in text else -1


_END_OF_KEY = re.compile(rb"-----END[^\r\n-]{0,60}-----|Private-MAC:[^\r\n]*")


def private_key(data: bytes, at: int) -> int:
    """To the line that ends the key; a key that was cut off goes on to the end of the text."""
    found = _END_OF_KEY.search(data, at)
    return found.end() if found else len(data)


def ends_key(line: bytes) -> bool:
    """Whether a private key ends in this line."""
    return _END_OF_KEY.search(line) is not None


def _token(name: str, prefix: str, characters: str, least: int, flags: int = _MULTILINE) -> Form:
    """A token known by its prefix, of which only the prefix stays."""
    return Form(name, f"{prefix}[{characters}]{{{least}}}", run_of(characters), back=least, flags=flags)


_WORD, _DASHED, _HEX = "A-Za-z0-9", r"A-Za-z0-9_\-", "0-9a-f"
_BASE64 = "A-Za-z0-9+/="


def _checked_token(name: str, prefix: str, characters: str, least: int) -> Form:
    """A token whose prefix also begins plain words."""
    run = run_of(characters, least)

    def reach(data: bytes, at: int) -> int:
        return run(data, at) if looks_random(data[at : at + _LOOKED_AT]) else -1

    return Form(name, prefix, reach)


TOKENS = (
    _token("1password", "ops_eyJ", _BASE64, 60),
    _token("adobe", f"{_START}p8e-", _WORD, 32),
    _token("age", "AGE-SECRET-KEY-1", "A-Z0-9", 58),
    _token("airtable", f"{_START}pat[A-Za-z0-9]{{14}}\\.", _HEX, 64),
    _token("alibaba", f"{_START}LTAI", _WORD, 16),
    _token("artifactory", f"{_START}AKCp", _WORD, 10),
    _token("artifactory reference", f"{_START}cmVmd", _WORD, 59),
    _token("aws key id", f"{_START}(?:A3T[A-Z0-9]|ABIA|ACCA|AKIA|ASIA)", "A-Z0-9", 16),
    _token("aws bedrock", f"{_START}ABSK", _BASE64, 100),
    _token("aws bedrock session", "bedrock-api-key-", _BASE64, 28),
    Form("azure client secret", f"{_AFTER.format('A-Za-z0-9_~.')}[A-Za-z0-9_~.]{{3}}[0-9]Q~[{_DASHED}~.]{{31}}", run_of(_DASHED + "~."), back=37),
    _token("clojars", "CLOJARS_", _WORD, 60, _CASELESS),
    _token("cloudflare", f"{_START}v1\\.0-[a-f0-9]{{24}}-", _HEX, 146),
    _token("databricks", f"{_START}dapi", _HEX, 32),
    _token("digitalocean", "do[opr]_v1_", _HEX, 64),
    Form("discord", f"{_AFTER.format(_DASHED + '.')}[MNO][{_DASHED}]{{23,25}}\\.[{_DASHED}]{{6}}\\.[{_DASHED}]{{27}}", run_of(_DASHED), back=59),
    _token("docker hub", "dckr_(?:pat|oat)_", _DASHED, 20),
    _token("doppler", "dp\\.(?:pt|st|ct|sa|scim|audit)\\.", "A-Za-z0-9_.-", 40),
    _token("duffel", "duffel_(?:test|live)_", _DASHED + "=", 43),
    _token("dynatrace", "dt0[a-z]\\d\\d\\.[A-Z0-9]{24}\\.", _WORD, 64, _CASELESS),
    _token("easypost", f"{_START}EZ[AT]K", _WORD, 54),
    _token("facebook", f"{_START}EAA[MC]", _WORD, 100),
    _token("flutterwave", "FLWSECK(?:_TEST)?-", _WORD, 12),
    _token("fly.io", f"{_START}(?:fo1_|fm1[ar]_|fm2_)", _DASHED + "+/=", 43),
    _token("frame.io", "fio-u-", _DASHED + "=", 64),
    _token("google api key", f"{_START}AIza", _DASHED, 35),
    _token("google oauth", "GOCSPX-", _DASHED, 24),
    _token("google access token", f"{_START}ya29\\.", "A-Za-z0-9_.-", 30),
    _token("google refresh token", f"{_START}1//0", _DASHED, 30),
    _token("github", "gh[pousr]_", "A-Za-z0-9_", 30),
    _token("github fine-grained", "github_pat_", "A-Za-z0-9_", 22),
    _token("gitlab", f"{_START}(?:glpat|gldt|glft|glffct|glsoat|glrt|glcbt|glimt|glptt|glagent|gloas|glwt)-", _DASHED + ".", 20),
    _token("gitlab runner", "GR1348941", _DASHED, 20),
    _token("grafana", f"{_START}gl(?:c|sa)_", _BASE64 + "_", 32),
    _token("harness", f"{_START}[ps]at\\.[{_DASHED}]{{22}}\\.[A-Za-z0-9]{{24}}\\.", _WORD, 20),
    Form("terraform", f"{_START}[a-zA-Z0-9]{{14}}\\.atlasv1\\.[{_DASHED}=]{{60}}", run_of(_DASHED + "="), back=83),
    _token("heroku", "HRKU-AA", _DASHED, 58),
    _token("hugging face", f"{_START}hf_", _WORD, 30),
    _token("hugging face organisation", f"{_START}api_org_", _WORD, 30),
    _token("infracost", f"{_START}ico-", _WORD, 32),
    _token("linear", "lin_(?:api|oauth)_", _WORD, 40),
    Form("mailchimp", f"{_START}[0-9a-f]{{32}}-us[0-9]", run_of("0-9"), back=36),
    Form("maxmind", f"{_START}[A-Za-z0-9]{{6}}_[A-Za-z0-9]{{29}}_mmk", run_of("k"), back=40),
    _token("notion", f"{_START}(?:ntn|secret)_", _WORD, 43),
    _token("npm", f"{_START}npm_", _WORD, 36),
    _token("nvidia", f"{_START}nvapi-", _DASHED, 40),
    _token("octopus", f"{_START}API-", "A-Z0-9", 26),
    _checked_token("openai, anthropic and others", f"{_START}sk-(?:ant-|proj-|svcacct-|admin-|or-|None-)?", _DASHED, 20),
    _token("openshift", "sha256~", _DASHED, 43),
    _token("perplexity", f"{_START}pplx-", _WORD, 40),
    _token("planetscale", "pscale_(?:tkn|oauth|pw)_", "A-Za-z0-9_=.-", 32),
    _token("postman", f"{_START}PMAK-", "a-f0-9-", 50, _CASELESS),
    _token("prefect", f"{_START}pn[ub]_", _WORD, 36),
    _token("pulumi", f"{_START}pul-", _HEX, 40),
    _token("pypi", "pypi-AgE", _DASHED, 50),
    _token("readme", f"{_START}rdme_", "a-z0-9", 70),
    _token("replicate", f"{_START}r8_", _WORD, 37),
    _token("groq", f"{_START}gsk_", _WORD, 40),
    _token("xai", f"{_START}xai-", _WORD, 60),
    _token("rubygems", "rubygems_", _HEX, 48),
    _token("scalingo", f"{_START}tk-us-", _DASHED, 48),
    Form("sendgrid", f"{_START}SG\\.[{_DASHED}]{{22}}\\.[{_DASHED}]{{16}}", run_of(_DASHED), back=39),
    _token("sendinblue", "xkeysib-", "a-zA-Z0-9-", 70),
    _token("sentry", "sntry[su]_", _BASE64 + "_", 40),
    _token("settlemint", f"{_START}sm_[aps]at_", _WORD, 16),
    _token("shippo", "shippo_(?:live|test)_", "a-fA-F0-9", 40),
    _token("shopify", "shp(?:at|ca|pa|ss|tka)_", "a-fA-F0-9", 32),
    _token("slack", f"{_START}xox[a-z](?:\\.xox[bp])?-", "A-Za-z0-9-", 10),
    _token("slack app", "xapp-\\d-", "A-Za-z0-9-", 20),
    _token("sourcegraph", f"{_START}sgp_(?:[a-fA-F0-9]{{16}}_|local_)?", "a-fA-F0-9", 40),
    _token("square", f"{_START}(?:EAAA|sq0[a-z]{{3}}-)", _DASHED, 22),
    _token("stripe", f"{_START}(?:sk|rk)_(?:test|live|prod)_", _WORD, 10),
    _token("stripe webhook", f"{_START}whsec_", _BASE64, 24),
    _token("tailscale", "tskey-[a-z]{3,10}-", "A-Za-z0-9-", 16),
    _token("telegram", _AFTER.format("0-9A-Za-z:") + "[0-9]{8,10}:A", _DASHED, 34),
    _token("twilio", f"{_START}(?:SK|AC)", _HEX, 32),
    _token("vault", f"{_START}hv[sbr]\\.", _DASHED, 24),
    _token("weights and biases", f"{_START}(?:local-|wandb_v1_)", "A-Za-z0-9_", 40),
)  # fmt: skip

_JWT = re.compile(rb"[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}(?:\.[A-Za-z0-9_+/=-]*)?")


def _web_token(data: bytes, at: int) -> int:
    found = _JWT.match(data, at)
    return found.end() if found else -1


_HOOKS = (
    r"hooks\.slack\.com/(?:services|workflows|triggers)/|discord(?:app)?\.com/api/webhooks/|\.webhook\.office\.com/webhookb2/"
    r"|outlook\.office(?:365)?\.com/webhook/|api\.telegram\.org/bot|hooks\.zapier\.com/hooks/catch/|/trigger/[\w-]{1,60}/with/key/"
    r"|open\.(?:feishu\.cn|larksuite\.com)/open-apis/bot/v2/hook/|api\.softlayer\.com/soap/v3(?:\.1)?/"
)
_SCHEME = re.compile(rb"(?i)(?:bearer|basic|token|digest|negotiate|apikey|bot|key)[ \t]")
_TO_SPACE = run_of(r"^\s\"'<>`", 4)
_STRONG = (
    "passw(?:or)?d|passwd|passphrase|contrase(?:n|\\xc3\\xb1)a|secret|api[_.-]?key|access[_.-]?key|auth[_.-]?key|account[_.-]?key"
    "|service[_.-]?key|client[_.-]?key|private[_.-]?key|priv[_.-]?key|signing[_.-]?key|encryption[_.-]?key|storage[_.-]?key"
    "|subscription[_.-]?key|license[_.-]?key|shared[_.-]?access[_.-]?(?:key|signature)|db[_.-]?pass|key[_.-]?pass|credential"
    "|(?:auth|access|refresh|bearer|id|session|security|private|personal|deploy|bot|oauth)[_.-]?token|connection[_.-]?string"
)
OTHERS = (
    Form("private key", r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|PuTTY-User-Key-File-[0-9]", private_key),
    Form("json web token", _AFTER.format(_DASHED) + "ey[JA]", _web_token),
    Form("credentials in an address", r"[a-z][a-z0-9+.-]{1,20}://", _user_info, flags=_CASELESS),
    Form("webhook", _HOOKS, _TO_SPACE, flags=_CASELESS),
    Form(
        "signed address",
        r"[?&](?:amp;)?(?:x-(?:amz|goog|ms|oss|cos)-(?:signature|credential|security-token)|signature|sig|awsaccesskeyid|ossaccesskeyid|[a-z_-]{0,20}token"
        r"|[a-z_-]{0,20}key|auth|password|passwd|pwd|pass|[a-z_-]{0,20}secret|code|sign|jwt)=",
        run_of(r"^\s\"'<>`&#", 4), flags=_CASELESS,
    ),
    Form(
        "authorization header",
        rf"(?:proxy-)?authorization{_ASSIGNS}(?:(?:bearer|basic|token|digest|negotiate|apikey|bot|key)[ \t]{{1,4}})?",
        value(6, lambda head: _SCHEME.match(head) is None), flags=_CASELESS,
    ),
    Form("bearer", rf"{_START}bearer[ \t]{{1,4}}", value(16), flags=_CASELESS),
    Form("basic", rf"{_START}(?:basic|token)[ \t]{{1,4}}", value(12, _random_word), flags=_CASELESS),
    Form("cookie", r"(?:^|[^a-z])(?:set-)?cookie(?:\\?[\"'])?:[ \t]{0,4}(?:\\?[\"'])?", run_of(r"^\r\n\"'", 4), flags=_CASELESS),
    Form("secret by its name", rf"(?:{_STRONG})[\w.-]{{0,40}}{_ASSIGNS}", value(4, numbers=True), flags=_CASELESS),
    Form(
        "password by its name",  # "the backward pass: …" is none
        rf"[\w.-]{{1,40}}[_.-](?:pwd|pw|pass){_ASSIGNS}|(?:^|[^a-z])pwd{_ASSIGNS}|(?:^|[^a-z])(?:pass|pw)=[\"']?|[\"'](?:pass|pw)\\?[\"']:[ \t]{{0,4}}\\?[\"']",
        value(4, lambda head: not head.startswith((b"/", b"~"))), flags=_CASELESS,
    ),
    Form("variable", rf"{_START}[A-Z][A-Z0-9_]{{0,60}}_(?:TOKEN|KEY|PAT|PWD|PASS|PW|AUTH|COOKIE|DSN|WEBHOOK|JWT)=[\"']?", value(6)),
    Form("token by its name", rf"(?:token|[_-]pat|auth|sid|session|session[_-]?id|jwt|cookie|signature|dsn){_ASSIGNS}", value(8, _random_word), flags=_CASELESS),
    Form("key by its name", rf"key{_ASSIGNS}", value(16, _not_hexadecimal), flags=_CASELESS),
    Form(
        "option", r"(?:^|[\s\"'])--?[\w.-]{0,40}(?:passw(?:or)?d|passwd|passphrase|secret|api[_-]?key|access[_-]?key|credentials?|[_-]pwd|[_-]pat)[ \t]{1,4}[\"']?",
        value(4, lambda head: not head.startswith(b"-"), numbers=True), flags=_CASELESS,
    ),
    Form("token option", r"(?:^|[\s\"'])--?[\w.-]{0,40}token[ \t]{1,4}[\"']?", value(8, _random_word), flags=_CASELESS),
    Form("netrc", _START + r"login[ \t]{1,4}[^\s]{1,80}[ \t]{1,4}password[ \t]{1,4}", value(1, numbers=True), flags=_CASELESS),
    Form("user and password", _START + r"curl\b[^\r\n]{0,300}[ \t](?:-u|--user)[ =]?[ \t]{0,2}[\"']?[\w.@-]{1,64}:", value(1, numbers=True)),
    Form("short option", _START + r"(?:mysql|mysqldump|mysqladmin|mariadb|sshpass)\b[^\r\n]{0,300}[ \t]-p[ \t]?[\"']?", value(4, numbers=True)),
)  # fmt: skip
FORMS = TOKENS + OTHERS
