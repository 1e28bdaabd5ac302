"""The dump on Ray: two real nodes on this machine, the same questions as local processes find."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from phalanx.study.errors import StudyError

sys.path.insert(0, str(Path(__file__).parents[3] / "bench"))
from make_dump import write_dump

CODE = """
import json, re, sys
from pathlib import Path
from ray.cluster_utils import Cluster

if __name__ == "__main__":
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()
    from phalanx.study.collect.presets import Preset
    from phalanx.study.collect.store import Store
    from phalanx.study.dump import read
    from phalanx.study.dump.engines import on_processes, on_ray

    read.RANGE = 2 << 20
    preset = Preset("so", site="stackoverflow", tags=("pytorch", "tensorflow", "keras", "horovod"), keywords=re.compile("distribut", re.I))
    found = {}
    for name, engine in (("ray", on_ray(cluster.address)), ("local", on_processes(1))):
        with Store(Path(sys.argv[2]) / name) as store:
            read.read_dump(store, preset, Path(sys.argv[1]), engine)
            found[name] = [post.key for post in store.posts()]
    import ray

    nodes = len([node for node in ray.nodes() if node["Alive"]])
    print(json.dumps({"same": found["ray"] == found["local"], "posts": len(found["ray"]), "nodes": nodes}))
    ray.shutdown()
    cluster.shutdown()
"""


def test_two_nodes_find_what_local_processes_find(tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="needs the extra `ray`: pip install 'ray>=2.40'")
    path = tmp_path / "Posts.xml"
    write_dump(path, 8 << 20)
    script = tmp_path / "go.py"
    script.write_text(CODE)
    done = subprocess.run(
        [sys.executable, str(script), str(path), str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    last = done.stdout.strip().splitlines()[-1]
    assert re.fullmatch(r'\{"same": true, "posts": [1-9]\d*, "nodes": 2\}', last), last


def test_without_ray_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from phalanx.study.dump.engines import on_ray

    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(StudyError, match=r"pip install 'phalanx-training\[ray\]'"):
        list(on_ray()(lambda _: None, []))  # type: ignore[arg-type,return-value]


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("ray::find()\nModuleNotFoundError: No module named 'phalanx'\n", r"lack phalanx: there, in Ray's Python"),
        ("x\nFileNotFoundError: [Errno 2] No such file or directory: '/d/Posts.xml'", "does not have it"),
        ("ray::find()\nMemoryError: too much\n", r"bytes 0 to 9: the Ray task failed \(MemoryError: too much\)"),
    ],
)
def test_a_failed_task_says_what_to_do(said: str, told: str) -> None:
    from phalanx.study.collect.presets import Preset
    from phalanx.study.dump.engines import _why
    from phalanx.study.dump.read import Range

    assert re.search(told, _why(Range("/d/Posts.xml", 0, 9, Preset("so")), said))
