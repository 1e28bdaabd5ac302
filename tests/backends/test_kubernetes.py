"""Manifests for Kubernetes: what is in them, what is refused before anything is queued, and how states are read."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from phalanx.backends import kubernetes, kubernetes_manifest
from phalanx.backends.backend import BackendError, Plan, Request, State

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("jsonschema") is None, reason="needs jsonschema: pip install jsonschema"
)


def request(workers: int = 4, gpus: int | None = None, **options: object) -> Request:
    return Request(
        "Train_X.1", workers, (sys.executable, "-m", "agent", "--dial"), Path("/job"), gpus=gpus,
        environment={"PHALANX_DRIVER": "a:7,b:7", "PHALANX_TOKEN_FILE": "/job/token", "ODD": "x $(PATH) $HOME; `id`"},
        token="very-secret", timeout=100, options={"image": "registry/train:1", **options},
    )  # fmt: skip


def documents(plan: Plan) -> tuple[dict[str, Any], dict[str, Any]]:
    secret, job = (json.loads(file.text) for file in plan.files)
    return secret, job


def pod_of(job: dict[str, Any]) -> dict[str, Any]:
    return dict(job["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"])


def test_a_job_set_has_one_pod_a_node_and_the_token_is_in_the_secret_alone() -> None:
    plan = kubernetes.plan(request(nodes=2, cpus_per_worker=3, memory="8Gi", driver="10.0.0.9"))
    secret, job = documents(plan)
    assert plan.layout == (2, 2)
    assert [file.is_secret for file in plan.files] == [True, False]
    assert "very-secret" not in plan.files[1].text
    assert "very-secret" not in str(plan.commands)
    assert secret["metadata"]["name"] == job["metadata"]["name"]
    work = job["spec"]["replicatedJobs"][0]["template"]["spec"]
    assert (work["completions"], work["parallelism"], work["completionMode"]) == (2, 2, "Indexed")
    assert work["activeDeadlineSeconds"] == 700
    container = pod_of(job)["containers"][0]
    assert container["command"][:4] == ["python3", "-m", "agent", "--dial"]
    assert container["resources"] == {"limits": {"memory": "8Gi"}, "requests": {"cpu": "6", "memory": "8Gi"}}
    variables = {one["name"]: one for one in container["env"]}
    assert variables["PHALANX_DRIVER"]["value"] == "10.0.0.9:7"
    assert "PHALANX_TOKEN_FILE" not in variables
    assert variables["ODD"]["value"] == "x $$(PATH) $$HOME; `id`"  # nothing that a kubelet would replace


def test_gpus_are_limits_of_the_name_they_have_there() -> None:
    def limits(**options: object) -> object:
        return pod_of(documents(kubernetes.plan(request(gpus=2, nodes=2, **options)))[1])["containers"][0]["resources"]

    assert limits() == {"limits": {"nvidia.com/gpu": "4"}}
    assert limits(gpu_resource="amd.com/gpu") == {"limits": {"amd.com/gpu": "4"}}


def test_a_train_job_refers_to_a_runtime_and_patches_its_pods() -> None:
    asked = request(
        kind="trainjob", nodes=4, runtime="TrainingRuntime/mine", service_account="me", node_selector="a/b=c,d=e"
    )
    job = documents(kubernetes.plan(asked))[1]
    assert job["kind"] == "TrainJob"
    assert job["spec"]["runtimeRef"] == {"apiGroup": "trainer.kubeflow.org", "kind": "TrainingRuntime", "name": "mine"}
    assert job["spec"]["trainer"]["numNodes"] == 4
    patch = job["spec"]["runtimePatches"][0]["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"][0]
    assert patch["template"]["spec"]["template"]["spec"] == {
        "serviceAccountName": "me",
        "nodeSelector": {"a/b": "c", "d": "e"},
    }
    assert "runtimePatches" not in documents(kubernetes.plan(request(kind="trainjob")))[1]["spec"]


def test_names_fit_kubernetes_and_differ_between_jobs() -> None:
    name = kubernetes_manifest.job_name(request())
    assert name.startswith("train-x-1-")
    assert len(name) < 40
    other = Request("9" * 80, 1, ("python3",), Path("/other"), options={"image": "i"})
    assert kubernetes_manifest.job_name(other).startswith("job-999")
    assert kubernetes_manifest.job_name(other) != name


def test_a_users_pod_file_is_merged_and_its_mistakes_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "pod.json"
    more = {
        "tolerations": [{"key": "gpu", "operator": "Exists"}],
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
        "containers": [{"name": "node", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}],
    }
    path.write_text(json.dumps(more))
    pod = pod_of(documents(kubernetes.plan(request(pod=path)))[1])
    assert [one["name"] for one in pod["volumes"]] == ["shm", "data"]
    assert len(pod["containers"]) == 1
    assert [one["mountPath"] for one in pod["containers"][0]["volumeMounts"]] == ["/dev/shm", "/data"]
    assert pod["containers"][0]["image"] == "registry/train:1"
    path.write_text(json.dumps({"tolerationz": []}))
    with pytest.raises(BackendError, match=r"JobSet would not be valid: .*template\.spec: .*tolerationz"):
        kubernetes.plan(request(pod=path))
    path.write_text("tolerations: []")
    with pytest.raises(BackendError, match="cannot be read as JSON"):
        kubernetes.plan(request(pod=path))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"image": ""}, "needs image"),
        ({"image": "a b; reboot"}, "no name of an image"),
        ({"kind": "pytorchjob"}, "jobset or trainjob"),
        ({"nodes": 9}, "cannot be spread"),
        ({"memory": "8 gigabytes"}, "would not be valid"),
        ({"node_selector": "gpu"}, "label=value"),
        ({"driver": "a:5$(x)"}, "as pods see it"),
    ],
)
def test_mistakes_are_told_before_anything_is_queued(options: dict[str, object], words: str) -> None:
    with pytest.raises(BackendError, match=words):
        kubernetes.plan(request(**options))


def test_the_users_cluster_is_named_on_every_command() -> None:
    plan = kubernetes.plan(request(context="c", namespace="n; rm", kubectl="/opt/kubectl"))
    assert plan.commands
    for command in plan.commands:
        assert command.argv[:4] == ("/opt/kubectl", "--request-timeout=30s", "--context=c", "--namespace=n; rm")


def test_the_shipped_schema_is_what_the_models_of_trainer_say() -> None:
    pytest.importorskip("kubeflow_trainer_api", reason="needs the models: pip install kubeflow-trainer-api==2.3.0")
    from .make_kubernetes_schema import schema

    shipped = Path(kubernetes_manifest.__file__).with_name("schemas") / "kubernetes.json"
    assert json.loads(shipped.read_text()) == schema()


def pod(phase: str, **status: object) -> dict[str, Any]:
    return {"metadata": {"name": "p"}, "spec": {"nodeName": "n7"}, "status": {"phase": phase, **status}}


def waiting(reason: str) -> dict[str, Any]:
    return pod("Pending", containerStatuses=[{"state": {"waiting": {"reason": reason, "message": "why"}}}])


UNSCHEDULED = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes"}
KILLED = {"state": {"terminated": {"reason": "OOMKilled", "exitCode": 137}}}


@pytest.mark.parametrize(
    ("condition", "pods", "state", "reason"),
    [
        (None, [], State.QUEUED, ""),
        ("Suspended", [], State.QUEUED, "told"),
        (None, [pod("Pending", conditions=[UNSCHEDULED])] * 2, State.QUEUED, "Unschedulable: 0/3 nodes"),
        (None, [pod("Running"), waiting("ContainerCreating")], State.STARTING, ""),
        (None, [pod("Running"), waiting("ImagePullBackOff")], State.STARTING, "ImagePullBackOff: why"),
        (None, [pod("Running"), waiting("InvalidImageName")], State.FAILED, "InvalidImageName: why"),
        (None, [pod("Running")] * 2, State.RUNNING, ""),
        (None, [pod("Running"), pod("Failed", containerStatuses=[KILLED])], State.FAILED, "p on n7: Failed, OOMKilled, exit status 137"),
        ("Failed", [pod("Failed", reason="Evicted")], State.FAILED, "told; p on n7: Failed, Evicted"),
        ("Completed", [], State.DONE, ""),
        ("Complete", [], State.DONE, ""),
    ],
)  # fmt: skip
def test_states(condition: str | None, pods: list[dict[str, Any]], state: State, reason: str) -> None:
    told = [{"type": condition, "status": "True", "message": "told"}] if condition else []
    assert kubernetes.state_of({"status": {"conditions": told}}, pods, 2) == (state, reason)
