"""Makes the schema that Kubernetes manifests are checked against, from the models of the package `kubeflow-trainer-api`.

    python -m tests.backends.make_kubernetes_schema > src/phalanx/backends/schemas/kubernetes.json

The models are generated from the resource definitions of Trainer, JobSet and Kubernetes. Descriptions are left out; fields
that a definition does not have are refused.
"""

from __future__ import annotations

import json
import sys
from typing import Any

VERSION = "kubeflow-trainer-api 2.3.0"
_UNWANTED = ("description", "title", "default", "format")
_LABEL = "^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$"
_QUANTITY = r"^[0-9]+(\.[0-9]+)?([KMGTPE]i?|[mk]|e[0-9]+)?$"
_STRICTER: dict[str, dict[str, Any]] = {
    "IoK8sApimachineryPkgApiResourceQuantity": {"type": ["string", "integer"], "pattern": _QUANTITY},
    "IoK8sApimachineryPkgUtilIntstrIntOrString": {"type": ["string", "integer"]},
}
_SECRET = {
    "type": "object",
    "additionalProperties": False,
    "required": ["apiVersion", "kind", "metadata"],
    "properties": {
        "apiVersion": {"const": "v1"},
        "kind": {"const": "Secret"},
        "metadata": {"$ref": "#/$defs/IoK8sApimachineryPkgApisMetaV1ObjectMeta"},
        "type": {"type": "string"},
        "immutable": {"type": "boolean"},
        "data": {"type": "object", "additionalProperties": {"type": "string", "pattern": "^[A-Za-z0-9+/]*={0,2}$"}},
        "stringData": {"type": "object", "additionalProperties": {"type": "string"}},
    },
}


def schema() -> dict[str, Any]:
    """One document: `$defs` has what the kinds share, `JobSet`, `TrainJob` and `Secret` are the kinds."""
    from kubeflow_trainer_api import models

    parts: dict[str, Any] = {}
    for kind, version, model in (
        ("JobSet", "jobset.x-k8s.io/v1alpha2", models.JobsetV1alpha2JobSet),
        ("TrainJob", "trainer.kubeflow.org/v1alpha1", models.TrainerV1alpha1TrainJob),
    ):
        told = model.model_json_schema(by_alias=True)
        parts |= told.pop("$defs")
        told["properties"].pop("status")
        told["properties"] |= {"apiVersion": {"const": version}, "kind": {"const": kind}}
        told["required"] = ["apiVersion", "kind", "metadata", "spec"]
        parts[kind] = told
    strict = {name: _STRICTER.get(name) or _strict(part) for name, part in sorted(parts.items())}
    strict["IoK8sApimachineryPkgApisMetaV1ObjectMeta"]["properties"]["name"] = {"type": "string", "pattern": _LABEL}
    strict["Secret"] = _SECRET
    return {"$comment": f"made by tests/backends/make_kubernetes_schema.py from {VERSION}", "$defs": _used(strict)}


def _strict(part: Any) -> Any:
    """Without texts and nulls; objects with fields have no others."""
    if isinstance(part, list):
        return [_strict(one) for one in part]
    if not isinstance(part, dict):
        return part
    some = [one for one in part.get("anyOf", ()) if one != {"type": "null"}]
    if len(some) == 1:
        return _strict(some[0])
    fields = part.get("properties")
    if isinstance(fields, dict) and part.get("type") == "object":
        kept = {"type": "object", "properties": {name: _strict(field) for name, field in fields.items()}}
        return kept | {"additionalProperties": False} | ({"required": part["required"]} if "required" in part else {})
    return {name: _strict(one) for name, one in part.items() if name not in _UNWANTED}


def _used(parts: dict[str, Any]) -> dict[str, Any]:
    """Those that the kinds refer to, at whatever depth."""
    found: dict[str, Any] = {}
    wanted = ["JobSet", "TrainJob", "Secret"]
    while wanted:
        name = wanted.pop()
        if name not in found:
            found[name] = parts[name]
            text = json.dumps(parts[name])
            wanted += [piece.split('"')[0] for piece in text.split("#/$defs/")[1:]]
    return dict(sorted(found.items()))


if __name__ == "__main__":
    json.dump(schema(), sys.stdout, separators=(",", ":"))
    print()
