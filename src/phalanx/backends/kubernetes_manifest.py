"""What Kubernetes is given for a job: a Secret with the token, and a JobSet or a TrainJob with one pod a node."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from phalanx.backends.backend import BackendError, Request

KINDS = {"jobset": "JobSet", "trainjob": "TrainJob"}
CONTAINER = "node"  # also what Trainer's own runtimes call the job and the container that train
_SCHEMA = Path(__file__).with_name("schemas") / "kubernetes.json"
_TOKEN_KEY = "token"
_MORE_SECONDS = 600  # beyond the call's own time-out, which is to come first: it says more
_KEPT_SECONDS = 3600  # after its end, should nobody be left to delete it
# The agent reads its number; frameworks must not take it, nor what a runtime says of torchrun, for their ranks'.
_NUMBER = "JOB_COMPLETION_INDEX"
_TOLD_TO_PODS = f"{_NUMBER},PET_"


def job_name(request: Request) -> str:
    """Unique, and short enough for the pods' names made of it."""
    words = re.sub(r"[^a-z0-9]+", "-", request.name.lower()).strip("-")[:30].strip("-") or "job"
    mark = hashlib.sha256(f"{request.folder}\0{request.token}".encode()).hexdigest()[:6]
    return f"{words if words[0].isalpha() else f'job-{words}'}-{mark}"


def secret(request: Request) -> dict[str, Any]:
    """Holds the job's token, so that it is in no manifest that people look at."""
    data = {_TOKEN_KEY: base64.b64encode(request.token.encode()).decode()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": _metadata(request), "type": "Opaque", "data": data}


def job(request: Request, kind: str, layout: tuple[int, ...]) -> dict[str, Any]:
    """The JobSet or TrainJob. Raises BackendError for options that make no sense."""
    container = {
        "name": CONTAINER,
        "image": _image(request),
        "command": [_inert(word) for word in _command(request)],
        "env": _environment(request),
        "resources": _resources(request, max(layout)),
    }
    extra = _extra(request)
    make = _job_set if kind == "jobset" else _train_job
    return make(request, len(layout), {name: part for name, part in container.items() if part}, extra)


def check(document: Mapping[str, Any]) -> None:
    """Refuse what the cluster would refuse, and fields that it would drop without a word. Raises BackendError."""
    try:
        from jsonschema import Draft202012Validator
        from jsonschema.exceptions import best_match
    except ImportError:
        raise BackendError('manifests cannot be checked: pip install "phalanx-training[kubernetes]"') from None
    kind = str(document["kind"])
    shipped = json.loads(_SCHEMA.read_text(encoding="utf-8"))
    errors = Draft202012Validator({**shipped, "$ref": f"#/$defs/{kind}"}).iter_errors(document)
    wrong = best_match(errors)
    if wrong is not None:
        where = wrong.json_path.removeprefix("$.") or "the document"
        raise BackendError(f"the {kind} would not be valid: {where}: {wrong.message[:300]}")


def _job_set(request: Request, nodes: int, container: dict[str, Any], extra: dict[str, Any]) -> dict[str, Any]:
    # PyTorch's loaders and NCCL want more shared memory than the 64 MiB of a container.
    pod = {
        "restartPolicy": "Never",
        "containers": [{**container, "volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}]}],
        "volumes": [{"name": "shm", "emptyDir": {"medium": "Memory"}}],
    }
    work: dict[str, Any] = {
        "parallelism": nodes,
        "completions": nodes,
        "completionMode": "Indexed",
        # An agent that is lost must not take the others with it: they still have to tell what they saw.
        "backoffLimitPerIndex": 0,
        "template": {"metadata": {"labels": _labels()}, "spec": _merged(_merged(pod, _wishes(request)), extra)},
    }
    if request.timeout is not None:
        work["activeDeadlineSeconds"] = math.ceil(request.timeout) + _MORE_SECONDS
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": _metadata(request),
        "spec": {
            "ttlSecondsAfterFinished": _KEPT_SECONDS,
            "failurePolicy": {"maxRestarts": 0},  # phalanx tries again by itself, and says why
            "replicatedJobs": [{"name": CONTAINER, "replicas": 1, "template": {"spec": work}}],
        },
    }


def _train_job(request: Request, nodes: int, container: dict[str, Any], extra: dict[str, Any]) -> dict[str, Any]:
    kind, _, runtime = request.option("runtime", "torch-distributed").rpartition("/")
    trainer = {"image": container["image"], "command": container["command"], "env": container["env"], "numNodes": nodes}
    if "resources" in container:
        trainer["resourcesPerNode"] = container["resources"]
    spec: dict[str, Any] = {
        "runtimeRef": {
            "apiGroup": "trainer.kubeflow.org",
            "kind": kind or "ClusterTrainingRuntime",
            "name": runtime,
        },
        "trainer": trainer,
    }
    if patch := _merged(_wishes(request), extra):
        pods = {"name": CONTAINER, "template": {"spec": {"template": {"spec": patch}}}}
        inner = {"template": {"spec": {"replicatedJobs": [pods]}}}
        spec["runtimePatches"] = [{"manager": "phalanx.dev/phalanx", "trainingRuntimeSpec": inner}]
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": _metadata(request),
        "spec": spec,
    }


def _labels() -> dict[str, str]:
    return {"app.kubernetes.io/managed-by": "phalanx"}


def _metadata(request: Request) -> dict[str, Any]:
    labels = _labels()
    if queue := request.option("queue"):
        labels["kueue.x-k8s.io/queue-name"] = queue
    return {"name": job_name(request), "labels": labels}


def _image(request: Request) -> str:
    image = request.option("image")
    if not image:
        raise BackendError("kubernetes needs image=…: one with the job's interpreter, packages and phalanx")
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._:/@-]{0,500}", image):
        raise BackendError(f"image={image!r}: no name of an image")
    return image


def _command(request: Request) -> list[str]:
    """The agent in the image, whose interpreter is not ours unless the user says so."""
    first, *others = request.agent
    python = "python3" if first == sys.executable else first
    return [python, *others, "--node-in", _NUMBER, "--forget", _TOLD_TO_PODS]


def _environment(request: Request) -> list[dict[str, Any]]:
    given = {name: value for name, value in request.environment.items() if name != "PHALANX_TOKEN_FILE"}
    if host := request.option("driver"):
        if not re.fullmatch(r"[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]", host):
            raise BackendError(f"driver={host!r}: give the name or address of this machine as pods see it")
        port = given.get("PHALANX_DRIVER", "").rpartition(":")[2] or "PORT"
        given["PHALANX_DRIVER"] = f"{host}:{port}"
    key = {"name": job_name(request), "key": _TOKEN_KEY}
    return [
        *({"name": name, "value": _inert(value)} for name, value in sorted(given.items())),
        {"name": "PHALANX_TOKEN", "valueFrom": {"secretKeyRef": key}},
        {"name": "PHALANX_NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
    ]


def _inert(text: str) -> str:
    """As it stands: Kubernetes replaces $(NAME) in words and values, and reads $$ as $."""
    return text.replace("$", "$$")


def _resources(request: Request, workers: int) -> dict[str, Any]:
    """For the node with the most workers; all pods are alike."""
    limits: dict[str, Any] = {}
    requests: dict[str, Any] = {}
    if "cpus_per_worker" in request.options:
        requests["cpu"] = str(request.count("cpus_per_worker", 1) * workers)
    if memory := request.option("memory"):
        requests["memory"] = limits["memory"] = memory
    if request.gpus:
        limits[request.option("gpu_resource", "nvidia.com/gpu")] = str(request.gpus * workers)
    return {name: part for name, part in (("limits", limits), ("requests", requests)) if part}


def _wishes(request: Request) -> dict[str, Any]:
    """Options that belong to the pod."""
    found: dict[str, Any] = {}
    if account := request.option("service_account"):
        found["serviceAccountName"] = account
    if pull := request.option("image_pull_secret"):
        found["imagePullSecrets"] = [{"name": pull}]
    for part in filter(None, request.option("node_selector").split(",")):
        name, mark, value = part.partition("=")
        if not mark or not name.strip():
            raise BackendError(f"node_selector={part!r}: give label=value,…")
        found.setdefault("nodeSelector", {})[name.strip()] = value.strip()
    return found


def _extra(request: Request) -> dict[str, Any]:
    """What the user's own file says of the pod."""
    path = request.option("pod")
    if not path:
        return {}
    try:
        told = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BackendError(f"pod={path}: cannot be read as JSON: {error}") from error
    if not isinstance(told, dict):
        raise BackendError(f"pod={path}: give an object with fields of a pod's spec, as tolerations or volumes")
    return told


def _merged(base: Any, more: Any) -> Any:
    """`more` over `base`: objects by field, lists of named parts by name, other lists one after the other."""
    if isinstance(base, dict) and isinstance(more, dict):
        both = {name: _merged(base[name], more[name]) for name in base.keys() & more.keys()}
        return {**base, **more, **both}
    if isinstance(base, list) and isinstance(more, list):
        named = {part["name"]: part for part in more if isinstance(part, dict) and "name" in part}
        kept = [_merged(part, named.pop(_name_of(part), {})) if isinstance(part, dict) else part for part in base]
        return [*kept, *(part for part in more if not isinstance(part, dict) or _name_of(part) in {*named, None})]
    return more


def _name_of(part: dict[str, Any]) -> Any:
    return part.get("name")
