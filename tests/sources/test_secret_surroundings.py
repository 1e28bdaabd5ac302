"""A named secret is hidden however it is written down, wherever it stands in a line, and whatever its length."""

from __future__ import annotations

import json
from collections.abc import Iterator
from urllib.parse import quote

import pytest

from phalanx.sources.secrets import OutputRedactor, redact, redact_command


def written(name: str, secret: str) -> Iterator[str]:
    """The same name and value in configurations, shells, code, documents, tables, addresses and messages."""
    low, option = name.lower(), name.lower().replace("_", "-")
    document = json.dumps({low: secret, "x": 1})
    yield from (
        f"{name}={secret}",
        f"export {name}='{secret}'",
        f'declare -x {name}="{secret}"',
        f"docker run -e {name}={secret} image",
    )
    yield from (
        f"ENV {name} {secret}",
        f"setx {name} {secret}",
        f'$env:{name} = "{secret}"',
        f"env:\\n{name}={secret}\\nX=1",
    )
    yield from (
        f"a:\n  {low}: {secret}\n  lr: 0.1",
        f'- name: {name}\n  value: "{secret}"',
        f"{low}: |\n  {secret}\n",
        f"{low}:\n  {secret}\n",
        f"{{{low}: {secret}, lr: 3}}",
    )
    yield from (
        f'{low} = "{secret}"',
        f"[db]\n{low} = {secret}\n",
        f'  + {low}   =   "{secret}"',
        f"<{low}>{secret}</{low}>",
        f'<c {low}="{secret}"/>',
    )
    yield from (
        document,
        json.dumps({"body": document}),
        json.dumps({"a": json.dumps({"body": document})}),
        json.dumps({low: secret}, indent=2),
        f'{{"{low}":\n   "{secret}"}}',
    )
    yield from (
        f'[{{"name": "{name}", "value": "{secret}"}}]',
        f'{{"value": "{secret}", "name": "{name}"}}',
        json.dumps([[name, secret]]),
        f"('{name}', '{secret}')",
    )
    yield from (json.dumps({"env": json.dumps([{"name": name, "value": secret}])}), f"('{name}', b'{secret}')")
    yield from (
        repr({low: secret}),
        repr({low: secret.encode()}),
        f"Settings(host='h', {low}={secret!r}, port=3)",
        f"os.environ.setdefault('{name}', '{secret}')",
    )
    yield from (
        f"train.py --{option} {secret} --lr 1",
        f"train.py --{low}={secret}",
        repr(["train.py", f"--{option}", secret, "--lr"]),
    )
    yield from (
        f"| {low} | {secret} |",
        f"\u2502 {low}      \u2502 {secret} \u2502",
        f"{name}\t{secret}",
        f"\x1b[36m{low}\x1b[0m=\x1b[32m{secret}\x1b[0m",
    )
    yield from (
        f"https://h.test/a?x=1&{low}={quote(secret)}&y=2",
        quote(f"https://h.test/a?{low}={secret}&y=2", safe=""),
    )
    yield f"1 validation error for Settings\n{low}\n  Input should be a valid integer [type=int_parsing, input_value='{secret}', input_type=str]"
    yield f"[rank0]: db.{low}\n[rank0]:   Value error, bad [type=value_error, input_value={secret!r}, input_type=str]"
    yield f"ValidationError: 1 validation error for Settings {low} Input should be a valid integer [type=int_parsing, input_value={secret!r}, input_type=str]"


NAMES = ("PASSWORD", "DB_PASSWORD", "SMTP_PASS", "CLIENT_SECRET", "WANDB_API_KEY", "GITLAB_ACCESS_TOKEN")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("secret", ["hunter2", "s3cr3t!", "letmein", "geheim", "a1B2c3D4e5F6", "8=7-lqfoqcu9r7"])
def test_a_named_secret_is_hidden_however_it_is_written(name: str, secret: str) -> None:
    for text in written(name, secret):
        assert secret not in redact(text), text
        redactor = OutputRedactor()
        lines = [redactor.clean(line) for line in text.encode().splitlines(keepends=True)]
        assert secret.encode() not in b"".join(lines), text


@pytest.mark.parametrize("name", NAMES)
def test_it_is_hidden_wherever_it_stands_in_a_line(name: str) -> None:
    """Hyperscan misses an expression that begins with a set and a counted repeat at some distances: no form may be of that kind."""
    for text in written(name, "hunter2"):
        for count in (1, 7, 15, 16, 17, 31, 33, 63, 65, 130, 300):
            for before in ("x" * count + " ", " " * count, "x" * count + "("):
                assert "hunter2" not in redact(before + text), before + text


def test_a_header_may_stand_on_the_line_above() -> None:
    for text in (
        "Authorization:\nBearer q1w2",
        "authorization:\n  Basic bWU6cHc=",
        '"Authorization":\n  "token abcdef"',
        "authorization:\n  a1b2c3d4e5f6",
    ):
        shown = redact(text)
        assert "[redacted]" in shown, text
        assert "q1w2" not in shown
        assert "abcdef" not in shown


def test_in_quotes_any_length_is_a_secret() -> None:
    for text in (
        "password='ab'",
        '{"password": "abc"}',
        '[{"name": "DB_PASSWORD", "value": "a"}]',
        "ALTER USER me WITH PASSWORD 'x'",
    ):
        assert "[redacted]" in redact(text), text


@pytest.mark.parametrize("name", ["CLIENT_SECRET", "MY_ACCESS_TOKEN", "DB_PASSWORD", "HF_TOKEN"])
@pytest.mark.parametrize(
    "secret", ["vMpoD8_l3C774ZK5T1g5", "4t_7c6-2mc3fcf-jr5076yyabm9d7b", "i6Jy_=Bb_Ea=YP833q-19a=sXR6-o_6n"]
)
def test_what_looks_like_a_secret_is_hidden_beside_a_name(name: str, secret: str) -> None:
    """Nothing need assign it: only punctuation, colours, a line end and words such as `is` stand between."""
    low = name.lower()
    for text in (
        f"{low}:\n- {secret}\n", f"{low}: !!str {secret}", f"| {name} | `{secret}` |", f"{low} ......... {secret}", f'{{"Name":"{name}","Value":"{secret}"}}', f"the {low} is {secret}",
        f"{name}<<EOF\n{secret}\nEOF", f"{name}: ***{secret}", f"getenv('{name}', default='{secret}')", f"E   assert '{secret}' == {low}", f"{low}[0]='{secret}'", f"{low} (str): {secret}",
        f"{name}\n{secret}\n", f"\x1b[34m{low}\x1b[0m \x1b[32m'{secret}'\x1b[0m", f"{{{{ {name} | default('{secret}') }}}}", f"{low.replace('_', ' ')} provided: {secret}",
    ):  # fmt: skip
        assert secret not in redact(text), text
        redactor = OutputRedactor()
        assert secret.encode() not in b"".join(map(redactor.clean, text.encode().splitlines(keepends=True))), text


@pytest.mark.parametrize(
    "text",
    [
        "token embedding of run a1b2c3d4e5 loaded", "api_key missing for run 1a2b3c4d5e", "secret scan: 0 findings in 3f2a9c0e1b7d6f5a", "tokens: 8192 step 1a2b3c4d5e", "tokenizer 3f2a9c0e1b7d6f5a",
        "| password | required | yes |", "fields: ['password', 'user', 'host']", "password:\n  type: string\n  min: 8", "secrets:\n  - hf\n", "access_token:\n  from: vault",
        "Permission denied (publickey,password,keyboard-interactive).", "bearer authentication is off", '{"value": "0.31", "name": "layer_norm"}', "ENV PYTHONPATH /app/src",
        "forward_pass=12345678 backward_pass: 0.0123 num_pass = 1000", "loss\n  Input should be a valid number [type=float_parsing, input_value='high', input_type=str]",
        "tokenizer\n  Input should be a valid string [type=string_type, input_value=3, input_type=int]", "('tokens', 'per second')", "[rank0]: key:\n[rank0]:   module.layer",
    ],
)  # fmt: skip
def test_what_only_looks_alike_stays(text: str) -> None:
    assert redact(text) == text


def test_programs_whose_short_options_are_given_a_password() -> None:
    assert redact_command(["/usr/bin/curl", "-u", "me:hunter2", "http://x"]) == [
        "/usr/bin/curl",
        "-u",
        "me:[redacted]",
        "http://x",
    ]
    assert redact_command(["sshpass", "-p", "hunter2", "ssh", "h"]) == ["sshpass", "-p", "[redacted]", "ssh", "h"]
    assert redact_command(["curl", "-u", "me", "x"]) == ["curl", "-u", "me", "x"]
    assert redact_command(["python", "-u", "a:b"]) == ["python", "-u", "a:b"]


def test_an_excerpt_may_begin_within_a_private_key() -> None:
    lines = [b"MIIabc\n", b"MIIdef\n", b"-----END RSA PRIVATE KEY-----\n", b"step 1\n"]
    redactor = OutputRedactor(b"".join(lines))
    assert [redactor.clean(line) for line in lines] == [b"[redacted]\n"] * 3 + [b"step 1\n"]
    assert (
        OutputRedactor(b"-----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY-----\n").clean(b"a\n") == b"a\n"
    )


def test_a_token_quoted_in_an_address_or_in_other_case_is_hidden() -> None:
    for text in (
        "https://h.test/x?v=glc_pL4HzCanRHq13cjA%2BQ7IkhSjxmk%2BqmVmy6a96Vz%3D%3D",
        "dor_v1_0c0BD508a041AC3ed09c7c033061010a39Ce942FC3a29d09ef2F7d8f7c22B2Bf",
        "pat.Lao8BVb-sBD3SipLQppq-L.xmK9M51QA86S64gWAeHPFYgL.kQLFfgGSEpjGqWLDK5Y3",
        "AGE-SECRET-KEY-1F55UZFPKW5NKKR056N3R4K3R3FQ6T4DCM8DZ3V7GES3S7WW7HWEQ47A95A",
    ):
        shown = redact(text)
        assert text[-8:] not in shown, text
        assert text[-40:-32] not in shown, text
