"""Kubernetes: a JobSet, or a TrainJob of Kubeflow's Trainer, with one pod a node; the user's own `kubectl` speaks to the cluster.

    train.on("kubernetes", image="registry/train:1", nodes=2)
    phalanx run -n 8 --on kubernetes --with image=registry/train:1 --with nodes=2 train.py

The image holds interpreter, packages and phalanx; the job's own files travel as on every engine. Pods connect to the driver.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

from phalanx.backends import kubernetes_manifest as manifest
from phalanx.backends.asking import AskedJob, ask
from phalanx.backends.backend import (
    BackendError,
    Command,
    Plan,
    PlannedFile,
    Reach,
    Request,
    Started,
    State,
    fewer_nodes,
    spread,
)
from phalanx.backends.words import printable

NAME = "kubernetes"
REACH = Reach.NETWORK
OPTIONS: Mapping[str, str] = {
    "image": "what the pods run: the job's interpreter and packages, and phalanx; needed",
    "kind": "jobset (unless said) or trainjob",
    "nodes": "how many pods share the workers; 1 unless said",
    "namespace": "as for kubectl",
    "context": "as for kubectl",
    "kubeconfig": "as for kubectl",
    "driver": "this machine's name or address as pods see it; else its own addresses are tried",
    "cpus_per_worker": "processors that each worker asks for",
    "memory": "memory of each pod: 64Gi",
    "gpu_resource": "what a GPU is called there; nvidia.com/gpu unless said",
    "node_selector": "label=value,… of the nodes",
    "service_account": "of the pods",
    "image_pull_secret": "for a private registry",
    "queue": "a local queue of Kueue's",
    "runtime": "of a TrainJob: a ClusterTrainingRuntime (torch-distributed unless said) or TrainingRuntime/name",
    "pod": "a JSON file with more fields of the pod's spec: tolerations, volumes, affinity",
    "kubectl": "another program than kubectl",
}
SECRET_FILE, JOB_FILE = "secret.json", "job.json"
_ASK_EVERY = 2.0  # seconds
_PULL_FOR = 120.0  # seconds in which an image that cannot be pulled may still come
_HOPELESS = ("InvalidImageName", "ErrImageNeverPull", "CreateContainerConfigError", "CreateContainerError")
_STUCK = ("ErrImagePull", "ImagePullBackOff")


def plan(request: Request) -> Plan:
    """Both manifests, checked, and the commands that create them."""
    kind = request.option("kind", "jobset")
    if kind not in manifest.KINDS:
        raise BackendError(f"kind={kind}: give {' or '.join(manifest.KINDS)}")
    layout = spread(request.workers, request.count("nodes", 1))
    files = []
    for name, document in (
        (SECRET_FILE, manifest.secret(request)),
        (JOB_FILE, manifest.job(request, kind, layout)),
    ):
        manifest.check(document)
        text = json.dumps(document, indent=2) + "\n"
        files.append(PlannedFile(request.folder / name, text, is_secret=name == SECRET_FILE))
    kubectl = _kubectl(request)
    secret, job = (str(file.path) for file in files)
    commands = (
        Command((*kubectl, "create", "--dry-run=server", "-o", "name", "-f", job), "have the cluster look at it"),
        Command((*kubectl, "create", "-o", "name", "-f", secret), "the job's token"),
        Command((*kubectl, "create", "-o", "json", "-f", job), "queue the job"),
    )
    notes = (
        "the pods connect to this machine, which must be reachable from them (driver=…; a fixed port: PHALANX_DRIVER_PORT)",
        "the secret goes with the job, and the job an hour after its end at the latest"
        if kind == "jobset"
        else "the secret goes with the job",
    )
    return Plan(layout, commands, tuple(files), notes=notes)


def without(options: Mapping[str, object], nodes: tuple[str, ...]) -> Mapping[str, object]:
    """So many nodes fewer; which they are is the cluster's affair."""
    return fewer_nodes(options, len(nodes))


def start(plan: Plan, request: Request) -> Started:
    """Have the cluster look at the job, then create it. Raises BackendError."""
    look, token, job = (command.argv for command in plan.commands)
    ask(look)
    kubectl, name = _kubectl(request), manifest.job_name(request)
    ask(token)
    try:
        made = _read(ask(job))
    except BackendError:
        _quietly([*kubectl, "delete", "secret", name, "--ignore-not-found", "--wait=false"])
        raise
    # Whoever deletes the job, or its time to live, takes the secret along: also when we are no more.
    owner = {"name": name, "uid": made.get("metadata", {}).get("uid", "")}
    owner |= {"apiVersion": str(made.get("apiVersion")), "kind": str(made.get("kind"))}
    patch = json.dumps({"metadata": {"ownerReferences": [owner]}})
    _quietly([*kubectl, "patch", "secret", name, "--type=merge", "-p", patch])
    return KubernetesJob(kubectl, f"{request.option('kind', 'jobset')}s", name, len(plan.layout))


class KubernetesJob(AskedJob):
    """A JobSet or TrainJob and its pods."""

    def __init__(self, kubectl: Sequence[str], resource: str, name: str, nodes: int) -> None:
        super().__init__(_ASK_EVERY, (*kubectl, "delete", resource, name, "--ignore-not-found", "--wait=false"))
        self.name = name
        self._kubectl = kubectl
        self._resource = resource
        self._nodes = nodes
        self._stuck_since: float | None = None
        self._said: dict[str, str] = {}

    def _look(self) -> tuple[State, str]:
        try:
            job = _read(ask([*self._kubectl, "get", self._resource, self.name, "-o", "json"]))
            return self._judged(state_of(job, self._pods(), self._nodes))
        except BackendError as error:
            if "notfound" not in str(error).lower().replace(" ", ""):
                raise
            return (State.CANCELLED, "") if self._cancels else (State.FAILED, "somebody has deleted the job")

    def _end(self, by_force: bool) -> None:
        self._keep_words()  # gone with the pods
        if by_force:
            _quietly(
                [*self._kubectl, "delete", "pods", *self._selector(), "--grace-period=0", "--force", "--wait=false"]
            )
        _quietly([*self._kubectl, "delete", self._resource, self.name, "--ignore-not-found", "--wait=false"])

    def _part(self) -> dict[str, str]:
        self._keep_words()
        for what in (self._resource, "secret"):
            _quietly([*self._kubectl, "delete", what, self.name, "--ignore-not-found", "--wait=false"])
        return self._said

    def _judged(self, found: tuple[State, str]) -> tuple[State, str]:
        """An image that does not come in a while does not come at all."""
        state, reason = found
        if not reason.startswith(_STUCK):
            self._stuck_since = None
        elif self._stuck_since is None:
            self._stuck_since = time.monotonic()
        elif time.monotonic() - self._stuck_since > _PULL_FOR:
            return State.FAILED, reason
        return state, reason

    def _keep_words(self) -> None:
        with contextlib.suppress(BackendError):
            pods = self._pods()
            if pods:
                self._said["kubernetes-pods"] = "\n".join(_pod_line(pod) for pod in pods)
                words = ["logs", *self._selector(), "--tail=200", "--prefix", "--ignore-errors"]
                told = ask([*self._kubectl, *words, f"--max-log-requests={max(5, self._nodes)}"]).strip()
                self._said |= {"kubernetes": printable(told)} if told else {}

    def _pods(self) -> list[dict[str, Any]]:
        return list(_read(ask([*self._kubectl, "get", "pods", *self._selector(), "-o", "json"])).get("items", ()))

    def _selector(self) -> tuple[str, str]:
        return "-l", f"jobset.sigs.k8s.io/jobset-name={self.name}"  # a TrainJob's JobSet has its name


def state_of(job: Mapping[str, Any], pods: Sequence[Mapping[str, Any]], nodes: int) -> tuple[State, str]:
    """From the job's conditions, then from its pods."""
    conditions = job.get("status", {}).get("conditions", ())
    true = {one["type"]: str(one.get("message", "")) for one in conditions if one.get("status") == "True"}
    if "Completed" in true or "Complete" in true:
        return State.DONE, ""
    if "Failed" in true:
        lines = [_pod_line(pod) for pod in pods if pod.get("status", {}).get("phase") == "Failed"]
        return State.FAILED, "; ".join([true["Failed"] or "failed", *lines[:3]])
    if "Suspended" in true:
        return State.QUEUED, true["Suspended"] or "suspended"
    waits = [found for pod in pods if (found := _waits_for(pod))]
    hopeless = [reason for reason in waits if reason.startswith(_HOPELESS)]
    if hopeless:
        return State.FAILED, hopeless[0]
    phases = [pod.get("status", {}).get("phase") for pod in pods]
    if "Failed" in phases:
        return State.FAILED, "; ".join(_pod_line(pod) for pod in pods if pod["status"].get("phase") == "Failed")
    if sum(phase in ("Running", "Succeeded") for phase in phases) == nodes:
        return State.RUNNING, ""
    unscheduled = [reason for reason in waits if reason.startswith(("Unschedulable", "SchedulingGated"))]
    if unscheduled:
        return State.QUEUED, unscheduled[0]
    return (State.STARTING if pods else State.QUEUED), (waits[0] if waits else "")


def _waits_for(pod: Mapping[str, Any]) -> str:
    """Why a pod does not run yet, in Kubernetes' own words."""
    status = pod.get("status", {})
    for one in status.get("containerStatuses", ()):
        waiting = one.get("state", {}).get("waiting")
        if waiting and waiting.get("reason") not in (None, "ContainerCreating", "PodInitializing"):
            return f"{waiting['reason']}: {waiting.get('message', '')}".rstrip(": ")[:300]
    for one in status.get("conditions", ()):
        if one.get("type") == "PodScheduled" and one.get("status") == "False":
            return f"{one.get('reason', '')}: {one.get('message', '')}".rstrip(": ")[:300]
    return ""


def _pod_line(pod: Mapping[str, Any]) -> str:
    """`train-ab12cd-node-0-1-x7k2p on node7: Failed, OOMKilled, exit status 137`."""
    status = pod.get("status", {})
    parts = [str(status.get("phase")), *filter(None, [status.get("reason")])]
    for one in status.get("containerStatuses", ()):
        if ended := one.get("state", {}).get("terminated"):
            parts += [str(ended.get("reason", "ended")), f"exit status {ended.get('exitCode')}"]
    where = pod.get("spec", {}).get("nodeName", "no node")
    return f"{pod.get('metadata', {}).get('name')} on {where}: {', '.join(parts)}"


def _kubectl(request: Request) -> tuple[str, ...]:
    chosen = [
        f"--{name}={request.option(name)}" for name in ("kubeconfig", "context", "namespace") if name in request.options
    ]
    return (request.option("kubectl", "kubectl"), "--request-timeout=30s", *chosen)


def _read(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise BackendError(f"kubectl answered {text[:200]!r} instead of JSON")
    return found


def _quietly(command: Sequence[str]) -> None:
    with contextlib.suppress(BackendError):
        ask(command)
