"""Runs one recorded rank again, alone. Made by `phalanx replay --export`; needs only what the script itself needs."""

import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))


def main() -> int:
    """Run the script, then say what came out: 0 if it repeats the recording, 1 if it differs, 2 if it could not run."""
    with open(os.path.join(HERE, "repro.json"), encoding="utf-8") as file:
        facts = json.load(file)
    with tempfile.TemporaryDirectory() as found:
        settings = dict(facts["settings"])
        recording = os.path.join(HERE, "recording")
        settings["attempt"] = recording
        settings["folder"] = os.path.join(recording, "rank%d" % settings["rank"], "record")
        settings["result"] = found
        settings["script"] = os.path.normpath(os.path.join(HERE, "script", facts["sources"]))
        settings["debugger"] = "--pdb" in sys.argv[1:]
        variables = dict(os.environ)
        variables.update(facts["environment"])
        variables["RANK"], variables["WORLD_SIZE"] = str(settings["rank"]), str(settings["size"])
        path = os.environ.get("PYTHONPATH", "")
        variables["PYTHONPATH"] = os.path.join(HERE, "inside") + (os.pathsep + path if path else "")
        variables["PHALANX_RECORD"] = json.dumps(settings)
        subprocess.call([sys.executable] + facts["command"], cwd=os.path.join(HERE, "script"), env=variables)
        result = os.path.join(found, "replayed.json")
        if not os.path.isfile(result):
            print("the script ended before anything could be compared", file=sys.stderr)
            return 2
        with open(result, encoding="utf-8") as file:
            told = json.load(file)
    print("%s; %d calls compared, %d differences" % (told["why"], told["compared"], len(told["differences"])))
    for one in told["differences"][:5]:
        print("  step %s: %s %s %s" % (one["step"], one.get("op", ""), one["what"], one.get("line", "")))
    return 1 if told["differences"] else 0


if __name__ == "__main__":
    sys.exit(main())
