"""Runs a playbook on hosts: a subprocess and a fresh folder per run, which leave nothing behind."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Timer

from panda.hosts.host import Host
from panda.prepare.inventory import CannotPrepare, inventory, ssh_config
from panda.prepare.offspring import end, offspring
from panda.prepare.outcome import Preparation, State, TaskResult, host_results
from panda.prepare.playbooks import playbook

PARTS = ("directories", "packages", "limits", "time")
FORKS_MAX = 16
TIMEOUT_S = 1800
END_TIMEOUT_S = 10.0
SAID_LINES_MAX = 12
KEPT_VARIABLES = ("HOME", "LANG", "LOGNAME", "SSH_AUTH_SOCK", "TZ", "USER")
"""Of the controller's environment; a stray ANSIBLE_ variable could switch off the checking of host keys."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What is to be run; `parts` empty means all of them."""

    playbook: str = "prepare"
    parts: tuple[str, ...] = ()
    become: bool = False
    become_password_file: str = ""
    check: bool = False
    timeout_s: int = TIMEOUT_S
    variables: Mapping[str, object] | None = None


def prepare(
    hosts: Sequence[Host],
    wish: Wish,
    known_hosts: Sequence[Path],
    ssh_configs: Sequence[Path],
    on_result: Callable[[TaskResult], None] = lambda _result: None,
) -> Preparation:
    """Blocks until the playbook has ended on every host; raises CannotPrepare before anything has begun."""
    assert set(wish.parts) <= set(PARTS)
    with tempfile.TemporaryDirectory(prefix="panda-") as name:
        folder = Path(name)
        request = _request(folder, hosts, wish, known_hosts, ssh_configs)
        tasks: list[TaskResult] = []
        last: dict[str, object] = {}
        with _running(request, folder) as process:
            assert process.stdout is not None
            for line in process.stdout:
                message = json.loads(line)
                if message.pop("kind") == "end":
                    last = message
                    continue
                result = TaskResult(**{**message, "state": State(message["state"])})
                tasks.append(result)
                on_result(result)
        results = host_results([host.name for host in hosts], tasks)
        problem = _problem(Preparation(results), last, _last_lines(folder / "stderr"))
    return Preparation(results, problem)


def _request(
    folder: Path, hosts: Sequence[Host], wish: Wish, known_hosts: Sequence[Path], ssh_configs: Sequence[Path]
) -> dict[str, object]:
    config, hosts_file, settings = folder / "ssh_config", folder / "hosts.json", folder / "ansible.cfg"
    config.write_text(ssh_config(hosts, known_hosts, [path for path in ssh_configs if path.is_file()]))
    hosts_file.write_text(inventory(hosts, config, sys.executable))
    settings.write_text("[defaults]\n")
    options = ["--check"] if wish.check else []
    if wish.parts:
        options += ["--tags", ",".join(wish.parts)]
    if wish.become_password_file:
        options += ["--become-password-file", str(Path(wish.become_password_file).expanduser().absolute())]
    return {
        "folder": str(folder / "run"),
        "playbook": str(playbook(wish.playbook)),
        "inventory": str(hosts_file),
        "environment": {
            "ANSIBLE_CONFIG": str(settings),
            "ANSIBLE_HOME": str(folder / "home"),
            "ANSIBLE_LOCAL_TEMP": str(folder / "tmp"),
            "ANSIBLE_HOST_KEY_CHECKING": "True",
            "ANSIBLE_PIPELINING": "True",
            "ANSIBLE_NOCOWS": "True",
            "ANSIBLE_SSH_CONTROL_PATH_DIR": str(folder / "cp"),
            "ANSIBLE_SSH_ARGS": "-o ControlMaster=auto -o ControlPersist=10s",
        },
        "variables": {**(wish.variables or {}), "panda_become": wish.become},
        "options": shlex.join(options) or None,
        "forks": max(1, min(FORKS_MAX, len(hosts))),
        "timeout_s": wish.timeout_s,
    }


@contextlib.contextmanager
def _running(request: dict[str, object], folder: Path) -> Iterator[subprocess.Popen[str]]:
    """The subprocess leads a group of its own: the terminal's Ctrl-C is ours; its children end with it."""
    (folder / "run").mkdir()
    with (folder / "stderr").open("w") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "panda.prepare.runner"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            cwd=folder,
            env=environment_for_ansible(os.environ),
            start_new_session=True,
        )
    deadline = Timer(float(str(request["timeout_s"])) + END_TIMEOUT_S, _end, (process,))
    deadline.daemon = True
    deadline.start()
    try:
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError), process.stdin:
            json.dump(request, process.stdin)
        yield process
        process.wait(END_TIMEOUT_S)
    finally:
        deadline.cancel()
        _end(process)
        assert process.stdout is not None
        process.stdout.close()


def environment_for_ansible(ours: Mapping[str, str]) -> dict[str, str]:
    return {
        **{name: ours[name] for name in KEPT_VARIABLES if name in ours},
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{ours.get('PATH', os.defpath)}",
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        "LC_ALL": "C.UTF-8",  # Ansible refuses to start where it cannot write UTF-8
    }


def _end(process: subprocess.Popen[str]) -> None:
    """With ansible-playbook, its workers and their ssh processes."""
    if process.returncode is not None:
        return
    below = offspring(process.pid)
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(END_TIMEOUT_S)
            break
        below |= offspring(process.pid)
    end(below)


def _problem(preparation: Preparation, end: dict[str, object], said: list[str]) -> str:
    """Why the run failed where no host is to blame."""
    if not end:
        return "ansible-runner ended early" + (f": {' / '.join(said)}" if said else "")
    if end["status"] == "timeout":
        return "the playbook did not end in time"
    if end["status"] != "successful" and not preparation.failed and not preparation.unreachable:
        last = end["last"] if isinstance(end["last"], list) else []
        return " / ".join(str(line).strip() for line in last) or f"ansible-playbook ended with {end['code']}"
    silent = [host.host for host in preparation.hosts if host.failure is None and not host.ok + host.changed]
    if silent and end["status"] == "successful":
        return f"nothing was done on {', '.join(silent[:5])}"
    return ""


def _last_lines(path: Path) -> list[str]:
    lines = path.read_text(errors="replace").splitlines()
    return [line.strip() for line in lines if line.strip()][-SAID_LINES_MAX:]


__all__ = ["PARTS", "CannotPrepare", "Preparation", "TaskResult", "Wish", "prepare"]
