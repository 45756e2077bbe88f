"""The program of the subprocess in which ansible-runner works: a request in, a line of JSON per result out.

ansible-runner takes over signals and the environment of its process, so the process is its alone.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from typing import Any, TextIO

from panda.prepare.outcome import task_result

LAST_LINES = 12


def main(request: dict[str, Any], results: TextIO) -> None:
    import ansible_runner  # type: ignore[import-untyped]

    def say(kind: str, data: dict[str, object]) -> None:
        results.write(json.dumps({"kind": kind, **data}) + "\n")
        results.flush()

    def took_place(event: dict[str, Any]) -> bool:
        if result := task_result(event):
            say("task", asdict(result))
        return True

    runner = ansible_runner.run(
        private_data_dir=request["folder"],
        playbook=request["playbook"],
        inventory=request["inventory"],
        envvars=request["environment"],
        extravars=request["variables"],
        cmdline=request["options"],
        forks=request["forks"],
        settings={"job_timeout": request["timeout_s"], "suppress_ansible_output": True},
        event_handler=took_place,
        quiet=True,
    )
    said = runner.stdout.read() if runner.rc else ""
    lines = [line for line in said.splitlines() if line.strip()]
    say("end", {"status": str(runner.status), "code": int(runner.rc or 0), "last": lines[-LAST_LINES:]})


if __name__ == "__main__":
    # Whatever a library prints must not get between our lines.
    results, sys.stdout = sys.stdout, sys.stderr
    main(json.load(sys.stdin), results)
