"""Secrets do not reach a report."""

from __future__ import annotations

import json

import pytest

from phalanx.sources.secrets import HIDDEN, OutputRedactor, redact, secret_values

from ..conftest import Diagnose

SECRETS = [
    "AKIAABCDEFGHIJKLMNOP",
    "hf_abcdefghijklmnopqrstuvwxyz012345",
    "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
]


@pytest.mark.parametrize("secret", SECRETS)
def test_keys_known_by_their_form(secret: str) -> None:
    assert secret not in redact(f"using {secret} now")


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("WANDB_API_KEY=0123456789abcdef", f"WANDB_API_KEY={HIDDEN}"),
        ("password: hunter2hunter2", f"password: {HIDDEN}"),
        ("Authorization: Bearer abcdefghijklmnop", f"Authorization: Bearer {HIDDEN}"),
        ("s3://user:topsecret@bucket/x", f"s3://{HIDDEN}@bucket/x"),
    ],
)
def test_keys_known_by_their_name(text: str, left: str) -> None:
    assert redact(text) == left


@pytest.mark.parametrize(
    "text", ["tokens per second: 123456", "Missing key(s) in state_dict: module.fc.weight", "keyboard", "HF_TOKEN=None"]
)
def test_harmless_text_stays(text: str) -> None:
    assert redact(text) == text


def test_no_secret_in_a_report(diagnose: Diagnose) -> None:
    log = (
        "export AWS_SECRET_ACCESS_KEY=abcdefghij1234567890\n"
        'Traceback (most recent call last):\n  File "train.py", line 3, in <module>\n'
        f"ValueError: login with {SECRETS[1]} failed: password=correcthorse\n"
    )
    document = json.dumps([diagnose(log).to_json(), [e.context for f in diagnose(log).findings for e in f.evidence]])
    assert "login with" in document, "the line is shown, but for what is secret"
    for secret in ("abcdefghij1234567890", SECRETS[1], "correcthorse"):
        assert secret not in document


def test_what_is_a_secret_by_its_variables_name_is_one_wherever_it_is_printed() -> None:
    values = secret_values(
        {"AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI/K7M", "TOKENIZERS_PARALLELISM": "true", "GIT_ASKPASS": "/usr/bin/ask", "HOME": "/home/me", "NAME": "resnet-fifty"}
    )  # fmt: skip
    assert values == {"wJalrXUtnFEMI/K7M", "wJalrXUtnFEMI%2FK7M"}, "as it is, and as it stands in an address"
    redactor = OutputRedactor()
    redactor.hide(values)
    assert redactor.clean(b"is wJalrXUtnFEMI/K7M\ntrue resnet-fifty\n") == b"is [redacted]\ntrue resnet-fifty\n"
