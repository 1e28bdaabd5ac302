"""The JSON contract that others build on."""

from __future__ import annotations

import json

import jsonschema

from phalanx.knowledge import FIX_PATTERNS, SYMPTOMS
from phalanx.model import Stage

from ..conftest import Diagnose

CONTRACT = {
    "type": "object",
    "required": ["schema", "world", "verdict", "findings", "not_checked"],
    "properties": {
        "schema": {"const": "phalanx.report/1"},
        "world": {
            "type": "object",
            "required": ["size", "framework", "launcher", "hosts"],
            "properties": {
                "size": {"type": ["integer", "null"]},
                "framework": {"type": ["string", "null"]},
                "launcher": {"type": ["string", "null"]},
                "hosts": {"type": "array"},
            },
        },
        "verdict": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/finding"}]},
        "findings": {"type": "array", "items": {"$ref": "#/$defs/finding"}},
        "not_checked": {
            "type": "array",
            "items": {"type": "object", "required": ["what", "needs"], "additionalProperties": {"type": "string"}},
        },
    },
    "$defs": {
        "finding": {
            "type": "object",
            "required": [
                "symptom", "stage", "cause", "rule", "confidence", "distributed_specific", "culprit_ranks", "victim_ranks",
                "summary", "fixes", "evidence",
            ],
            "properties": {
                "symptom": {"enum": list(SYMPTOMS)},
                "stage": {"enum": [stage.value for stage in Stage]},
                "cause": {"type": "string", "pattern": "^[a-z0-9-]+$"},
                "rule": {"type": ["string", "null"], "pattern": "^[A-Z]{3}[0-9]{3}$"},
                "confidence": {"enum": ["confirmed", "likely", "possible"]},
                "distributed_specific": {"type": "boolean"},
                "culprit_ranks": {"type": "array", "items": {"type": "integer", "minimum": 0}},
                "victim_ranks": {"type": "array", "items": {"type": "integer", "minimum": 0}},
                "summary": {"type": "string", "minLength": 10},
                "fixes": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/fix"}},
                "evidence": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/evidence"}},
            },
        },
        "fix": {
            "type": "object",
            "required": ["pattern", "title", "do", "why", "where", "safety", "study_share"],
            "properties": {
                "pattern": {"enum": list(FIX_PATTERNS)},
                "where": {"type": ["object", "null"], "required": ["file", "line"]},
                "safety": {"enum": ["safe", "unsafe", "display"]},
                "study_share": {"type": ["number", "null"], "minimum": 0, "maximum": 1},
            },
        },
        "evidence": {
            "type": "object",
            "required": ["rank", "file", "line", "text", "role"],
            "properties": {
                "rank": {"type": ["integer", "null"]},
                "line": {"type": "integer"},
                "role": {"enum": ["root", "supports", "cascade", "requires"]},
            },
        },
    },
}  # fmt: skip

OOM = """\
[rank0]: step 10 loss 0.5
[rank2]: Traceback (most recent call last):
[rank2]:   File "/home/user/train.py", line 88, in train
[rank2]:     loss = model(x)
[rank2]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 2 has a total capacity of 15.8 GiB
[rank1]: RuntimeError: [../gloo/transport/tcp/pair.cc:553] Connection closed by peer [10.0.0.5]:4242
[rank3]: RuntimeError: [../gloo/transport/tcp/pair.cc:553] Connection closed by peer [10.0.0.5]:4243
"""


def test_verdict_follows_the_contract(diagnose: Diagnose) -> None:
    document = json.loads(json.dumps(diagnose(OOM).to_json()))
    jsonschema.validate(document, CONTRACT)
    assert document["verdict"] == document["findings"][0]
    assert document["verdict"]["culprit_ranks"] == [2]
    assert document["verdict"]["fixes"][0]["where"] == {"file": "/home/user/train.py", "line": 88}


def test_nothing_wrong_follows_the_contract(diagnose: Diagnose) -> None:
    document = diagnose("epoch 1 step 10 loss 0.3\nepoch 2 step 20 loss 0.2\ntraining finished\n").to_json()
    jsonschema.validate(document, CONTRACT)
    assert document["verdict"] is None
    assert document["findings"] == []


def test_unrecognised_exception_follows_the_contract(diagnose: Diagnose) -> None:
    log = 'Traceback (most recent call last):\n  File "train.py", line 3, in <module>\n    go()\nZorkError: the grue ate it\n'
    document = diagnose(log).to_json()
    jsonschema.validate(document, CONTRACT)
    assert document["verdict"]["rule"] is None
    verdict = document["verdict"]
    assert (verdict["confidence"], verdict["cause_confidence"]) == ("confirmed", "possible")
    assert document["not_checked"] == [], "no other output would tell more of an exception"
