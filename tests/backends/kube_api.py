"""A small API server of Kubernetes' kind for the real `kubectl`, with pods that are processes of this machine.

It serves discovery, create (with dry runs and strict fields), get, list, watch, patch, delete and logs of Secrets, Pods, JobSets
and TrainJobs over HTTP, and does what the controllers and kubelets would: makes pods of a job, gives them their environment,
runs their commands, and writes down how they ended. There is no scheduler, no network of its own and no image: `python3` is
the interpreter of the tests. It is not a cluster.
"""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import sys
import threading
import time
import urllib.parse
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from phalanx.backends import kubernetes_manifest
from phalanx.backends.backend import BackendError

Document = dict[str, Any]
RESOURCES = {  # by the path of their group: name, kind
    "api/v1": [("secrets", "Secret"), ("pods", "Pod"), ("pods/log", "Pod")],
    "apis/jobset.x-k8s.io/v1alpha2": [("jobsets", "JobSet")],
    "apis/trainer.kubeflow.org/v1alpha1": [("trainjobs", "TrainJob")],
}
VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
_SET_LABEL = "jobset.sigs.k8s.io/jobset-name"


class Cluster:
    """Objects, and the processes that stand for pods. `events` tells what was asked, for tests."""

    def __init__(self, folder: Path, namespace: str = "default") -> None:
        self.folder = folder
        self.namespace = namespace
        self.objects: dict[tuple[str, str], Document] = {}
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.events: list[str] = []
        self.schedules = True  # where it is not, pods wait
        self.changed = threading.Condition()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"cluster": self}))
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.kubeconfig = folder / "kubeconfig"
        self.kubeconfig.write_text(self._config())

    def _config(self) -> str:
        server = f"http://127.0.0.1:{self._server.server_address[1]}"
        return json.dumps(
            {
                "apiVersion": "v1", "kind": "Config", "current-context": "test",
                "clusters": [{"name": "test", "cluster": {"server": server}}],
                "users": [{"name": "test", "user": {}}],
                "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test", "namespace": self.namespace}}],
            }
        )  # fmt: skip

    def close(self) -> None:
        """End the pods, by id, and the server."""
        for process in self.processes.values():
            if process.poll() is None:
                process.kill()
                process.wait()
        self._server.shutdown()
        self._server.server_close()

    def create(self, resource: str, document: Document, is_dry: bool) -> Document:
        """Check it as a strict server does, keep it, and do what its controller would. Raises BackendError."""
        if resource != "pods":
            kubernetes_manifest.check({name: part for name, part in document.items() if name != "status"})
        name = document["metadata"]["name"]
        if (resource, name) in self.objects:
            raise BackendError(f'{resource} "{name}" already exists')
        document["metadata"] |= {"uid": str(uuid.uuid4()), "namespace": self.namespace, "resourceVersion": "1"}
        document["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
        if not is_dry:
            self.keep(resource, document)
            if resource in ("jobsets", "trainjobs"):
                threading.Thread(target=self._control, args=(resource, document), daemon=True).start()
        return document

    def keep(self, resource: str, document: Document) -> None:
        with self.changed:
            version = int(document["metadata"].get("resourceVersion", "0")) + 1
            document["metadata"]["resourceVersion"] = str(version)
            self.objects[resource, document["metadata"]["name"]] = document
            self.changed.notify_all()

    def delete(self, resource: str, name: str, is_forced: bool = False) -> Document | None:
        """With all that it owns, as the collector of garbage does."""
        with self.changed:
            gone = self.objects.pop((resource, name), None)
            self.changed.notify_all()
        if gone is None:
            return None
        process = self.processes.get(name)
        if resource == "pods" and process is not None and process.poll() is None:
            process.kill() if is_forced else process.terminate()
        uid = gone["metadata"].get("uid")
        for (kind, other), document in list(self.objects.items()):
            if uid in [owner.get("uid") for owner in document["metadata"].get("ownerReferences", ())]:
                self.delete(kind, other)
        return gone

    def _control(self, resource: str, job: Document) -> None:
        """One pod for each index; then their ends make the job's."""
        spec, count = _pod_spec(job)
        names = []
        for index in range(count):
            name = f"{job['metadata']['name']}-node-0-{index}-{uuid.uuid4().hex[:5]}"
            names.append(name)
            owner = {"apiVersion": job["apiVersion"], "kind": job["kind"], "name": job["metadata"]["name"]}
            metadata = {
                "name": name, "labels": {_SET_LABEL: job["metadata"]["name"]},
                "ownerReferences": [{**owner, "uid": job["metadata"]["uid"]}],
            }  # fmt: skip
            self.create("pods", {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec.copy()}, False)
            self._run(name, index)
        ended = {name: self.processes[name].wait() for name in names if name in self.processes}
        for name, code in ended.items():
            self._status(name, "Succeeded" if code == 0 else "Failed", {"terminated": _terminated(code)})
        if not ended:
            return  # they wait for a node
        is_bad = any(ended.values())
        kind = "Failed" if is_bad else ("Completed" if resource == "jobsets" else "Complete")
        told = {"type": kind, "status": "True", "message": "jobset failed" if is_bad else "jobset completed"}
        job["status"] = {"conditions": [told]}
        if (resource, job["metadata"]["name"]) in self.objects:
            self.keep(resource, job)

    def _run(self, name: str, index: int) -> None:
        pod = self.objects.get(("pods", name))
        if pod is None:
            return
        if not self.schedules:
            told = {
                "type": "PodScheduled",
                "status": "False",
                "reason": "Unschedulable",
                "message": "0/3 nodes are available",
            }
            pod["status"] = {"phase": "Pending", "conditions": [told]}
            self.keep("pods", pod)
            return
        pod["spec"]["nodeName"] = f"worker{index}"
        container = pod["spec"]["containers"][0]
        variables = {
            "JOB_COMPLETION_INDEX": str(index),
            "PATH": os.environ["PATH"],
            "HOME": os.environ.get("HOME", "/"),
        }
        for one in container["env"]:
            variables[one["name"]] = self._value(one, pod)
        words = [_expanded(word, variables) for word in container["command"]]
        words[0] = sys.executable if words[0] == "python3" else words[0]
        with (self.folder / f"{name}.log").open("wb") as log:
            self.processes[name] = subprocess.Popen(
                words, env=variables, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder,
                start_new_session=True,
            )  # fmt: skip
        self._status(name, "Running", {"running": {"startedAt": "2026-01-01T00:00:00Z"}})

    def _value(self, one: Document, pod: Document) -> str:
        source = one.get("valueFrom", {})
        if "secretKeyRef" in source:
            secret = self.objects["secrets", source["secretKeyRef"]["name"]]
            return base64.b64decode(secret["data"][source["secretKeyRef"]["key"]]).decode()
        if "fieldRef" in source:
            assert source["fieldRef"]["fieldPath"] == "spec.nodeName"
            return str(pod["spec"]["nodeName"])
        return _expanded(one["value"], {})

    def _status(self, name: str, phase: str, state: Document) -> None:
        pod = self.objects.get(("pods", name))
        if pod is not None:
            status = {
                "name": "node",
                "ready": phase == "Running",
                "restartCount": 0,
                "state": state,
                "image": "",
                "imageID": "",
            }
            pod["status"] = {"phase": phase, "containerStatuses": [status]}
            self.keep("pods", pod)


class _Handler(BaseHTTPRequestHandler):
    """One request of kubectl's."""

    cluster: Cluster
    protocol_version = "HTTP/1.1"

    def log_message(self, *words: object) -> None:
        """Quiet."""

    def _path(self) -> tuple[str, list[str], dict[str, str]]:
        told = urllib.parse.urlsplit(self.path)
        path = told.path.strip("/")
        for group in RESOURCES:
            if path.startswith(f"{group}/"):
                parts = path.removeprefix(f"{group}/").split("/")
                if parts[0] == "namespaces" and len(parts) > 2:
                    parts = parts[2:] if parts[1] == self.cluster.namespace else ["elsewhere"]
                return group, parts, dict(urllib.parse.parse_qsl(told.query))
        return path, [], dict(urllib.parse.parse_qsl(told.query))

    def do_GET(self) -> None:
        group, parts, query = self._path()
        if not parts:
            found = _discovery(group)
            self._answer(found or _failure(404, "NotFound", "no such path"), 200 if found else 404)
        elif parts[-1] == "log":
            self._log(parts[1])
        elif len(parts) == 2:
            self._note(f"get {parts[0]}")
            document = self.cluster.objects.get((parts[0], parts[1]))
            self._answer(*((document, 200) if document else _missing(parts)))
        elif "watch" in query:
            self._watch(parts[0], query)
        else:
            self._note(f"list {parts[0]}")
            self._answer(self._listed(group, parts[0], query))

    def _listed(self, group: str, resource: str, query: dict[str, str]) -> Document:
        kinds = dict(RESOURCES[group])
        items = [one for (kind, _), one in list(self.cluster.objects.items()) if kind == resource and _fits(one, query)]
        version = group.removeprefix("apis/").removeprefix("api/")
        return {
            "apiVersion": version,
            "kind": f"{kinds[resource]}List",
            "metadata": {"resourceVersion": "1"},
            "items": items,
        }

    def _watch(self, resource: str, query: dict[str, str]) -> None:
        """Every state of every object, once, for at most a minute."""
        self._note(f"watch {resource}")
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Connection", "close")
        self.end_headers()
        seen: dict[str, Document] = {}
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            with self.cluster.changed:
                now = {
                    name: dict(one)
                    for (kind, name), one in self.cluster.objects.items()
                    if kind == resource and _fits(one, query)
                }
                gone = [("DELETED", one) for name, one in seen.items() if name not in now]
                new = [
                    ("MODIFIED" if name in seen else "ADDED", one) for name, one in now.items() if seen.get(name) != one
                ]
                if not gone and not new:
                    self.cluster.changed.wait(1)
                    continue
            try:
                for kind, one in [*gone, *new]:
                    self.wfile.write(json.dumps({"type": kind, "object": one}).encode() + b"\n")
            except OSError:
                return
            seen = now

    def _log(self, pod: str) -> None:
        self._note("logs")
        path = self.cluster.folder / f"{pod}.log"
        text = path.read_bytes() if path.exists() else b""
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def do_POST(self) -> None:
        _, parts, query = self._path()
        document = self._body()
        is_dry = "dryRun" in query
        self._note(f"{'dry-run' if is_dry else 'create'} {parts[0]}")
        try:
            self._answer(self.cluster.create(parts[0], document, is_dry), 201)
        except BackendError as error:
            self._answer(_failure(422, "Invalid", str(error)), 422)

    def do_PATCH(self) -> None:
        _, parts, _ = self._path()
        self._note(f"patch {parts[0]}")
        document = self.cluster.objects.get((parts[0], parts[1]))
        if document is None:
            self._answer(*_missing(parts))
            return
        document["metadata"] |= self._body()["metadata"]
        self.cluster.keep(parts[0], document)
        self._answer(document)

    def do_DELETE(self) -> None:
        _, parts, _ = self._path()
        self._note(f"delete {parts[0]}")
        gone = self.cluster.delete(parts[0], parts[1], self._body().get("gracePeriodSeconds") == 0)
        self._answer(*((gone, 200) if gone else _missing(parts)))

    def _body(self) -> Document:
        length = int(self.headers.get("Content-Length") or 0)
        return dict(json.loads(self.rfile.read(length) or b"{}"))

    def _answer(self, document: Document, status: int = 200) -> None:
        text = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def _note(self, event: str) -> None:
        self.cluster.events.append(event)


def _pod_spec(job: Document) -> tuple[Document, int]:
    """What the job's controller makes of it."""
    if job["kind"] == "JobSet":
        work = job["spec"]["replicatedJobs"][0]["template"]["spec"]
        return work["template"]["spec"], int(work["completions"])
    trainer = job["spec"]["trainer"]
    container = {"name": "node", "image": trainer["image"], "command": trainer["command"]}
    told = {"name": "PET_NNODES", "value": str(trainer["numNodes"])}  # as Trainer's runtime for PyTorch does
    return {"containers": [{**container, "env": [*trainer["env"], told]}]}, int(trainer["numNodes"])


def _expanded(text: str, variables: dict[str, str]) -> str:
    """As a kubelet reads words: $(NAME) is replaced where the name is known, $$ is one $."""
    return re.sub(
        r"\$\$|\$\(([^)]*)\)", lambda found: "$" if found[0] == "$$" else variables.get(found[1], found[0]), text
    )


def _terminated(code: int) -> Document:
    status = code if code >= 0 else 128 - code
    return {"exitCode": status, "reason": "Completed" if status == 0 else "Error"}


def _fits(document: Document, query: dict[str, str]) -> bool:
    labels = document["metadata"].get("labels", {})
    wanted = [part.split("=", 1) for part in query.get("labelSelector", "").split(",") if part]
    name = query.get("fieldSelector", "").removeprefix("metadata.name=")
    return all(labels.get(key) == value for key, value in wanted) and name in ("", document["metadata"]["name"])


def _failure(code: int, reason: str, message: str) -> Document:
    return {
        "apiVersion": "v1",
        "kind": "Status",
        "status": "Failure",
        "code": code,
        "reason": reason,
        "message": message,
    }


def _missing(parts: list[str]) -> tuple[Document, int]:
    return _failure(404, "NotFound", f'{parts[0]} "{parts[-1]}" not found'), 404


def _discovery(path: str) -> Document | None:
    groups = [path.split("/")[1:] for path in RESOURCES if path.startswith("apis/")]
    if path == "version":
        return {"major": "1", "minor": "33", "gitVersion": "v1.33.0"}
    if path == "api":
        return {"kind": "APIVersions", "versions": ["v1"]}
    if path == "apis":
        told = [(name, {"groupVersion": f"{name}/{version}", "version": version}) for name, version in groups]
        all_groups = [{"name": name, "versions": [one], "preferredVersion": one} for name, one in told]
        return {"apiVersion": "v1", "kind": "APIGroupList", "groups": all_groups}
    if path == "openapi/v3":
        return {"paths": {group: {"serverRelativeURL": f"/openapi/v3/{group}"} for group in RESOURCES}}
    if path.startswith("openapi/v3/"):
        return _parameters(path.removeprefix("openapi/v3/"))
    if path in RESOURCES:
        version = path.removeprefix("apis/").removeprefix("api/")
        found = [
            {"name": name, "singularName": kind.lower(), "kind": kind, "namespaced": True, "verbs": VERBS}
            for name, kind in RESOURCES[path]
        ]
        return {"apiVersion": "v1", "kind": "APIResourceList", "groupVersion": version, "resources": found}
    return None


def _parameters(group: str) -> Document | None:
    """That the server takes dry runs and is strict about fields; kubectl looks for it before it asks."""
    *_, name, version = ["", *group.removeprefix("apis/").removeprefix("api/").split("/")]
    query = [{"name": one, "in": "query", "schema": {"type": "string"}} for one in ("dryRun", "fieldValidation")]
    paths = {
        f"/{group}/namespaces/{{namespace}}/{resource}/{{name}}": {
            "patch": {
                "parameters": query,
                "responses": {"200": {"description": "OK"}},
                "x-kubernetes-group-version-kind": {"group": name, "version": version, "kind": kind},
            }
        }
        for resource, kind in RESOURCES.get(group, ())
        if "/" not in resource
    }
    return {"openapi": "3.0.0", "info": {"title": "test", "version": "1"}, "paths": paths} if paths else None
