"""Every known form of a secret is hidden, in every surrounding, in linear time, and healthy output stays readable."""

from __future__ import annotations

import random
import string
import time

import pytest

from phalanx.sources.secret_forms import FORMS
from phalanx.sources.secrets import OutputRedactor, redact, redact_command, redact_environment, redact_source

_HEX, _UPPER, _ALL = "0123456789abcdef", string.ascii_uppercase + string.digits, string.ascii_letters + string.digits
_DIGITS = string.digits


def made(number: int) -> dict[str, tuple[str, str]]:
    """By kind: the text as it stands somewhere, and the part that must not be left."""
    chance = random.Random(number)

    def some(count: int, of: str = _ALL) -> str:
        return "".join(chance.choice(of) for _ in range(count))

    def uuid() -> str:
        return "-".join(some(count, _HEX) for count in (8, 4, 4, 4, 12))

    plain = {
        "aws id": ("AKIA{}", some(16, _UPPER)), "aws session id": ("ASIA{}", some(16, _UPPER)),
        "aws secret": ("aws_secret_access_key = {}", some(40)), "aws in json": ('"SecretAccessKey": "{}"', some(40)),
        "azure storage": ("DefaultEndpointsProtocol=https;AccountName=x;AccountKey={}==;EndpointSuffix=core", some(86)),
        "azure client": ("{}", some(3) + "7Q~" + some(34)), "discord": ("{}", "M" + some(23) + "." + some(6) + "." + some(27)),
        "github": ("ghp_{}", some(36)), "github app": ("ghs_{}", some(36)), "github fine": ("github_pat_{}", some(82)),
        "gitlab": ("glpat-{}", some(20)), "gitlab trigger": ("glptt-{}", some(40, _HEX)), "gitlab runner": ("GR1348941{}", some(20)),
        "json web token": ("eyJ{}", some(20) + "." + some(40) + "." + some(43)),
        "mailchimp": ("{}", some(32, _HEX) + "-us12"), "npm": ("npm_{}", some(36)), "npmrc": ("//registry.test/:_authToken={}", uuid()),
        "openai": ("sk-{}", some(20) + "T3BlbkFJ" + some(20)), "openai project": ("sk-proj-{}", some(40) + "T3BlbkFJ" + some(40)),
        "anthropic": ("sk-ant-api03-{}", some(93) + "AA"), "pypi": ("pypi-AgEIcHlwaS5vcmc{}", some(80)),
        "sendgrid": ("SG.{}", some(22) + "." + some(43)), "slack": ("xoxb-{}", some(12, _DIGITS) + "-" + some(24)),
        "slack hook": ("https://hooks.slack.com/services/{}", "T" + some(8) + "/B" + some(8) + "/" + some(24)),
        "teams hook": ("https://a.webhook.office.com/webhookb2/{}", uuid() + "@" + uuid() + "/IncomingWebhook/" + some(32, _HEX)),
        "discord hook": ("https://discord.com/api/webhooks/{}", some(18, _DIGITS) + "/" + some(68)),
        "square": ("sq0csp-{}", some(43)), "stripe": ("sk_live_{}", some(24)), "telegram": (some(9, "123456789") + ":A{}", some(34)),
        "twilio": ("SK{}", some(32, _HEX)), "hugging face": ("hf_{}", some(34, string.ascii_letters)), "google": ("AIza{}", some(35)),
        "google oauth": ("GOCSPX-{}", some(28)), "google access": ("ya29.{}", some(60)), "databricks": ("dapi{}", some(32, _HEX)),
        "digitalocean": ("dop_v1_{}", some(64, _HEX)), "doppler": ("dp.pt.{}", some(43)), "grafana": ("glsa_{}", some(32) + "_" + some(8, _HEX)),
        "terraform": ("{}", some(14) + ".atlasv1." + some(64)), "heroku": ("HRKU-AA{}", some(58)), "linear": ("lin_api_{}", some(40)),
        "nvidia": ("nvapi-{}", some(64)), "perplexity": ("pplx-{}", some(48)), "planetscale": ("pscale_pw_{}", some(43)),
        "postman": ("PMAK-{}", some(24, _HEX) + "-" + some(34, _HEX)), "pulumi": ("pul-{}", some(40, _HEX)), "replicate": ("r8_{}", some(37)),
        "groq": ("gsk_{}", some(52)), "rubygems": ("rubygems_{}", some(48, _HEX)), "sentry": ("sntryu_{}", some(64, _HEX)),
        "shopify": ("shpat_{}", some(32, _HEX)), "vault": ("hvs.{}", some(92)), "docker": ("dckr_pat_{}", some(27)), "age": ("AGE-SECRET-KEY-1{}", some(58, _UPPER)),
        "weights and biases": ("WANDB_API_KEY={}", some(40, _HEX)), "tailscale": ("tskey-auth-{}", some(12) + "-" + some(32)),
        "postgres": ("postgresql://alice:{}@db:5432/x", some(12)), "redis": ("redis://:{}@cache:6379/0", some(10)),
        "sentry dsn": ("https://{}@o1.ingest.test/5", some(32, _HEX)), "slash in password": ("amqp://me:{}@host/v", some(4) + "/" + some(4) + "#" + some(3)),
        "at in password": ("mysql://u:{}@h/db", some(4) + "@" + some(4)), "git": ("https://x-access-token:{}@git.test/a/b", some(20)),
        "any scheme": ("mongodb+srv://u:{}@c.test", some(14)), "key as user": ("https://{}@git.test/a", some(40)),
        "signed s3": ("https://b.s3.test/k?X-Amz-Date=1&X-Amz-Signature={}", some(64, _HEX)), "signed azure": ("https://a.blob.test/c?sv=2022&sig={}", some(40) + "%3D"),
        "signed gcs": ("https://s.test/b?X-Goog-Signature={}&x=1", some(64, _HEX)), "key in address": ("https://m.test/v1?key={}", some(39)),
        "pwd": ("DB_PWD={}", some(9)), "pat": ("AZURE_PAT={}", some(20)), "token variable": ("MY_TOKEN={}", some(12, string.ascii_lowercase)),
        "mssql": ("Server=x;Database=y;User Id=sa;Password={};Encrypt=yes", some(5) + "@," + some(4)),
        "cookie": ("Cookie: sessionid={}; csrf=1", some(20)), "set-cookie": ("set-cookie: id={}; Path=/", some(20)),
        "bearer": ("Authorization: Bearer {}", some(30)), "basic": ("authorization: Basic {}==", some(30)), "token header": ("'Authorization': 'token {}'", some(30)),
        "bare bearer": ("sent Bearer {}", some(30)), "x-api-key": ("x-api-key: {}", some(20)), "private-token": ("PRIVATE-TOKEN: {}", some(20)),
        "json": ('{{"password": "{}"}}', some(5) + " " + some(6)), "json in json": ('{{\\"api_key\\": \\"{}\\"}}', some(20)),
        "python": ("client(api_key='{}')", some(20)), "yaml": ("password: {}", some(7)), "toml": ('secret = "{}"', some(12)),
        "option": ("python t.py --password {} --lr 3", some(9)), "option with sign": ("t.py --api-key={}", some(14)),
        "token option": ("train --hf-token {} x", some(30)), "mysql": ("mysql -uroot -p{} db", some(8)), "curl": ("curl -u me:{} http://x", some(8)),
        "netrc": ("machine x login me password {}", some(7)), "one-line key": ('"private_key": "-----BEGIN PRIVATE KEY-----\\n{}\\n-----END PRIVATE KEY-----"', some(64)),
        "private key": ("-----BEGIN OPENSSH PRIVATE KEY-----\n{}\n-----END OPENSSH PRIVATE KEY-----", some(70)),
        "dollar": ("password=${}", some(5) + "1" + some(4) + "2"), "percent": ("DB_PASSWORD=%{}", some(5) + "1" + some(4) + "2"),
        "bracket": ("db_password='{}'", some(5) + "[" + some(5)), "parenthesis": ("password: {}", "q1w2" + some(6) + "(" + some(4)),
        "ampersand": ("POSTGRES_PASSWORD={}", some(2) + "&" + some(8) + "&" + some(2)), "odbc": ("UID=sa;PWD={{{}}};", some(4) + ";" + some(5) + "!"),
        "escaped quote": ('{{"password": "{}"}}', some(4) + '\\"' + some(6)), "call": ("wandb_key=Key('{}')", "a1B2" + some(20)),
        "block": ("api_key: >-\n  {}", some(14)), "two lines": ("- name: DB_PASSWORD\n  value: {}", some(9)), "named": ('{{"name": "HF_TOKEN", "value": "{}"}}', "a1B2" + some(20)),
        "element": ("<password>{}</password>", some(9)), "cell": ("<td>api_key</td><td>{}</td>", some(20)), "field": ('<input type="password" value="{}">', some(9)),
        "coloured": ("\x1b[1mpassword\x1b[0m: \x1b[32m{}\x1b[0m", some(9)), "aligned": ("aws_secret_access_key                = {}", some(40)),
        "table": ("│ api_key │ {} │", "a1B2" + some(16)), "sentence": ("your new password is {}", "a1B2" + some(8)), "pair": ("('token', '{}')", "a1B2" + some(20)),
        "call with user": ("requests.get(u, auth=('me', '{}'))", some(9)), "quoted query": ("u=https%3A%2F%2Fh%2F%3Ftoken%3D{}", some(16)),
        "quoted address": ("https%3A%2F%2Fuser%3A{}%40host%2Fx", some(10)), "digest": ('Authorization: Digest username="a", response="{}"', some(32, _HEX)),
        "openssl": ("openssl enc -pass pass:{} -in x", some(9)), "unzip": ("unzip -P {} a.zip", some(9)), "wandb login": ("wandb login {}", some(40, _HEX)),
        "kaggle": ('{{"username":"a","key":"{}"}}', "a1" + some(30, _HEX)), "oracle": ("jdbc:oracle:thin:scott/{}@//h:1521/x", some(9)),
        "1password": ("A3-{}", some(6, _UPPER) + "-" + some(11, _UPPER) + "-" + some(5, _UPPER) + "-" + some(5, _UPPER) + "-" + some(5, _UPPER)),
        "clickhouse": ("4b1d{}", "a1B2" + some(34)), "facebook app": (some(16, "123456789") + "|{}", some(27)), "grafana key": ("eyJrIjoi{}", some(72)), "vault before": ("s.{}", "a1B2" + some(20)),
        "new relic": ("NRAK-{}", some(27, _UPPER)), "intra42": ("s-s4t2ud-{}", some(64, _HEX)), "web token in base64": ("ZXlK{}", some(60)), "twitter": ("TWITTER_ACCESS_TOKEN={}", some(18, "123456789") + "-" + some(40)),
        "in a quoted address": ("q=%22ghp_{}%22", some(36)), "quoted hook": ("u=https%3A%2F%2Fhooks.slack.com%2Fservices%2F{}", "T" + some(8) + "%2FB" + some(8) + "%2F" + some(24)),
        "pgp": ("-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n{}\n-----END PGP PRIVATE KEY BLOCK-----", some(64)),
    }  # fmt: skip
    return {kind: (text.format(secret), secret) for kind, (text, secret) in plain.items()}


_AROUND = (
    "{}",
    "INFO rank 3: got {} from the server",
    '["{}"]',
    "ValueError: {}\n  next line",
    "x={},y=2",
    "\x1b[31m{}\x1b[0m",
)


@pytest.mark.parametrize("kind", made(0))
def test_secrets_of_every_kind_are_hidden(kind: str) -> None:
    for number in range(20):
        text, secret = made(number)[kind]
        for around in _AROUND:
            if around == '["{}"]' and '"' in text:
                continue
            whole = around.format(text)
            assert secret not in redact(whole), whole
            line = whole.encode() + b"\n"
            assert secret.encode() not in OutputRedactor().clean(line), whole


def test_a_name_above_its_value_counts_when_lines_come_one_by_one() -> None:
    redactor = OutputRedactor()
    lines = [b"- name: DB_PASSWORD\n", b"  value: q1w2e3r4\n", b"api_key: |\n", b"  q1w2e3r4\n", b"value: 12345\n"]
    assert b"".join(map(redactor.clean, lines)) == (
        b"- name: DB_PASSWORD\n  value: [redacted]\napi_key: |\n  [redacted]\nvalue: 12345\n"
    )


HEALTHY = """\
tokens per second: 123456
tokens/s=1234.5 token_count: 99999 num_tokens=4096
pad_token: <pad> eos_token_id=50256 bos_token: '<|endoftext|>' mask_token=[MASK]
Tokenizer: gpt2-medium tokenizer=bert-base-uncased max_new_tokens=256, token_type_ids=[0,0]
Missing key(s) in state_dict: "module.layers.0.attn.weight", "module.layers.1.attn.weight"
Unexpected key: module.layers.12.self_attn.q_proj.weight
cache key: 3f2a9c0e1b7d6f5a4c3b2a1908f7e6d5
sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
commit 1b2c3d4e5f6071829304a5b6c7d8e9f001122334
HF_TOKEN=None
basic configuration of the network, basic transformations123
init_method='tcp://10.0.0.1:29500' http://10.0.0.3:8080/metrics ssh://git@github.com/x/y
KeyError: 'model_state_dict'
step 100 key=value auth: ok pass: 3 session 2
[rank0]: [W1117 23:00:00.123 ProcessGroupNCCL.cpp:1234] store key=0//worker/rank_12345678901
NCCL INFO comm 0x55d0c8 rank 0 nranks 2 cudaDev 0 busId 1000 commId 0xabc123def4567890
epoch 3 step 1200/5000 loss=2.3456e-01 lr=1.0e-04 grad_norm=0.987 mem=12345MiB
  File "/usr/lib/python3.11/site-packages/torch/nn/modules/module.py", line 1553, in _wrapped_call_impl
copying horovod/runner/common/util/secret.py -> build/lib.linux-x86_64-cpython-311/horovod/runner/common/util
password authentication failed for user "svc"; api_key is required; the secret is in the mixture
name="layer_key" value="0.31" id_token: int64 signature: bool forward(Tensor x, int y) ('token', 'embedding')
password=$DB_PASSWORD api_key=${KEY} secret=%s token={token!r} password: "%(password)s"
node17:5432:ml:jobs:running login node: gpu-a100-node17 device_code: cuda:0
secrets: os.environ["HF_TOKEN"], password=args.password, api_key=get_key()
""".splitlines()


@pytest.mark.parametrize("line", HEALTHY)
def test_healthy_output_stays_readable(line: str) -> None:
    assert redact(line) == line


def hostile() -> list[str]:
    words = ["_token-", "token=", "key=a", "a://", 'password="', ".eyJ", "eyJa.eyJa.", "sk-", "x" * 30 + "@", "-----BEGIN PRIVATE KEY-----",
             "Authorization: ", "bearer ", "cookie: ", "curl -u ", "mysql -p", "?sig=", "--token ", "hooks.slack.com/services/", "\\\"password\\\": \\\"",
             "name: token\n ", "a%3A%2F%2Fx%3A", "password='\\'", "secret</td><td>", "digest response=", "'token', '", "password=a&;", "key=a('", "password={a.b", "password \t"]  # fmt: skip
    return [*words, "0123456789abcdef", "token" + "0123456789abcdef" * 64]


@pytest.mark.parametrize("word", hostile())
def test_time_grows_with_the_length_alone(word: str) -> None:
    """Measured: 64 kB take at most 90 ms on a loaded machine; with backtracking it was minutes."""
    redact("warm")
    text = (word * (65536 // len(word) + 1))[:65536]
    began = time.process_time()
    redact(text)
    assert time.process_time() - began < 1.0


def test_every_form_is_compiled_and_none_is_named_twice() -> None:
    assert len({form.name for form in FORMS}) == len(FORMS)


def test_names_of_variables_and_options() -> None:
    shown = redact_environment({
        "DB_PWD": "x1", "AZURE_PAT": "abc", "MY_KEY": "a\n-----BEGIN PRIVATE KEY-----", "NOTE": "-----BEGIN EC PRIVATE KEY-----\nMII\n-----END EC PRIVATE KEY-----", "PWD": "/home/me", "OLDPWD": "/home",
        "TOKENIZERS_PARALLELISM": "true", "MAX_TOKENS": "512", "SLACK_WEBHOOK_URL": "https://x.test/a", "DATABASE_URL": "postgres://u:pw@h/d", "LICENSE_KEY": "abc-def", "SESSION_COOKIE": "a=b",
    })  # fmt: skip
    hidden = {name for name, value in shown.items() if "[redacted]" in value}
    assert hidden == {"DB_PWD", "AZURE_PAT", "MY_KEY", "NOTE", "SLACK_WEBHOOK_URL", "DATABASE_URL", "LICENSE_KEY", "SESSION_COOKIE"}  # fmt: skip
    assert "MII" not in shown["NOTE"]
    words = ["t.py", "--password", "hunter2", "-phunter2", "-p8080", "--max-tokens", "512", "--tokenizer", "gpt2", "--api-key=abcdef", "--db-pwd", "x9", "--lr", "0.1", "--pad-token", "x", "MY_SECRET=abcd"]  # fmt: skip
    assert redact_command(words) == ["t.py", "--password", "[redacted]", "-p[redacted]", "-p8080", "--max-tokens", "512", "--tokenizer", "gpt2", "--api-key=[redacted]", "--db-pwd", "[redacted]", "--lr", "0.1", "--pad-token", "x", "MY_SECRET=[redacted]"]  # fmt: skip


def test_redacted_source_still_runs() -> None:
    source = """\
# password: hunter2hunter2
is_secret = name == other
login(api_key="abcdef123456", password=password, token=make(\'x\'))
url = "postgres://me:hunter2@h/d"  # \u00fc
note = \'\'\'secret = "opensesame"\'\'\'
"""
    shown = redact_source(source)
    for secret in ("hunter2", "abcdef123456", "opensesame"):
        assert secret not in shown
    assert "is_secret = name == other" in shown
    assert "password=password, token=make('x')" in shown
    compile(shown, "shown", "exec")
    assert redact_source("password = 'abcdefgh") == "password = '[redacted]"


def test_a_key_that_never_ends_does_not_swallow_the_rest_of_the_output() -> None:
    redactor = OutputRedactor()
    assert b"MII" not in redactor.clean(b"-----BEGIN RSA PRIVATE KEY-----\nMIIabc\n")
    for _ in range(400):
        assert redactor.clean(b"MIIdef\n") == b"[redacted]\n"
    assert redactor.clean(b"step 1\n") == b"step 1\n"


def test_the_beginning_of_a_line_that_may_become_a_secret_is_not_settled() -> None:
    redactor = OutputRedactor()
    redactor.hide(["opensesame99"])
    for beginning in (b"password=hu", b"token ghp_ab", b"the word is opense", b"https://me:pa"):
        assert not redactor.is_settled(beginning), beginning
    for beginning in (b"loss=0.5 step", b"epoch 3: 100%|##", b"Enter a number> "):
        assert redactor.is_settled(beginning), beginning
