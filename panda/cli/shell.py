"""`panda shell`: the console words of old, at a prompt or from a script; each is one of today's verbs."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from panda.cli import ground, printing
from panda.cli.exits import Exit

WORDS = {
    "load FILE": "read and check a topology",
    "sshtest": "check every host of it (panda doctor)",
    "plan": "show what deploy would do",
    "install, uninstall, reinstall": "prepare the hosts, or take that back (panda prepare, unprepare)",
    "upload": "bring the runtime to every host",
    "deploy": "deploy it, and come back when phase 2 has begun",
    "auto": "the whole experiment: deploy, wait, stop, collect (also: deploy auto)",
    "status": "processes, links, clocks, times",
    "5.0 CUT A B for 2s": "any timed line: one more of the topology, also while it runs",
    "stop [PROCESS]": "stop a process, or everything, and bring the logs home",
    "get logs": "bring home what was logged so far",
    "get errors": "show what processes complained about",
    "clean": "stop, and remove what is on the hosts",
    "ls": "all runs",
    "help, exit": "",
}


def shell(
    topology: Annotated[Path | None, typer.Argument(metavar="[TOPOLOGY]", help="Loaded first.")] = None,
    inventory: ground.InventoryOption = None,
    local: ground.LocalOption = False,
    runs: ground.RunsOption = ground.RUNS,
) -> None:
    """Deploy and steer with the console words of old.

    At a prompt or from a script.

    From a script the first word that fails ends it, with that word's exit code.

    Example: printf 'load topologies/three-brokers.txt\\nauto\\n' | panda shell --local
    """
    console = _Shell(inventory, local, runs)
    if topology is not None:
        code = console.obey(f"load {shlex.quote(str(topology))}")
        if code and not printing.at_terminal():
            raise typer.Exit(code)
    at_terminal = printing.at_terminal()
    while True:
        line = _line(at_terminal)
        if line is None or line.strip() in ("exit", "quit"):
            return
        code = console.obey(line)
        if code and not at_terminal:
            raise typer.Exit(code)


def _line(at_terminal: bool) -> str | None:
    if at_terminal:
        import readline  # noqa: F401 — gives the prompt its history and editing

        try:
            return input("panda> ")
        except EOFError:
            return None
        except KeyboardInterrupt:
            printing.note("")
            return ""
    return sys.stdin.readline() or None


class _Shell:
    def __init__(self, inventory: Path | None, local: bool, runs: Path) -> None:
        self._where: list[str] = []
        if inventory is not None:
            self._where += ["--inventory", str(inventory)]
        if local:
            self._where += ["--local"]
        self._runs = ["--runs", str(runs)]
        self._runs_folder = runs
        self._topology: list[str] = []
        self._run = ""  # the one that was deployed from here
        self._acts: dict[str, Callable[[list[str]], int]] = {
            "help": self._help,
            "load": self._load,
            "sshtest": lambda rest: self._with_topology("doctor", rest),
            "plan": lambda rest: self._with_topology("plan", rest),
            "install": lambda rest: self._prepare("prepare", rest),
            "uninstall": lambda rest: self._prepare("unprepare", rest),
            "reinstall": self._reinstall,
            "upload": lambda rest: self._with_topology("upload", rest),
            "deploy": self._deploy,
            "auto": lambda rest: self._with_topology("run", [*rest, *self._runs]),
            "status": lambda rest: self._with_run("status", rest),
            "stop": self._stop,
            "get": self._get,
            "clean": lambda rest: self._with_run("clean", ["--yes", *rest]),
            "ls": lambda rest: self._verb("ls", [*rest, *self._runs]),
        }

    def obey(self, line: str) -> int:
        """Carry out one line; its exit code."""
        try:
            words = shlex.split(line, comments=True)
        except ValueError as error:
            printing.problem(f"{error}: {line.strip()}")
            return Exit.REFUSED
        if not words:
            return Exit.DONE
        act = self._acts.get(words[0].lower())
        if act is not None:
            return act(words[1:])
        if words[0][0].isdigit():
            return self._timed(line.strip())
        from broker_runtime.dialect.options import nearest

        printing.problem(f"unknown word {words[0]!r}{nearest(words[0].lower(), self._acts)}; help shows them")
        return Exit.REFUSED

    def _help(self, rest: list[str]) -> int:
        width = max(map(len, WORDS))
        printing.result({}, "\n".join(f"  {word:<{width}}  {what}".rstrip() for word, what in WORDS.items()))
        return Exit.DONE

    def _load(self, rest: list[str]) -> int:
        self._topology = []
        code = self._verb("validate", rest)
        if not code:
            self._topology, self._run = rest, ""
        return code

    def _reinstall(self, rest: list[str]) -> int:
        return self._prepare("unprepare", rest) or self._prepare("prepare", rest)

    def _deploy(self, rest: list[str]) -> int:
        if rest[:1] == ["auto"]:
            return self._acts["auto"](rest[1:])
        code = self._with_topology("deploy", ["--yes", "--detach", *rest, *self._runs])
        if code in (Exit.DONE, Exit.DETACHED):
            self._run = ground.find_run(self._runs_folder, "").id
            return Exit.DONE
        return code

    def _stop(self, rest: list[str]) -> int:
        return self._with_run("stop", [word for id_ in rest for word in ("--process", id_)])

    def _get(self, rest: list[str]) -> int:
        what = rest[0].lower() if rest else ""
        if what == "logs":
            return self._with_run("collect", rest[1:])
        if what == "errors":
            return self._with_run("logs", rest[1:], option="--run")
        printing.problem("say get logs or get errors")
        return Exit.REFUSED

    def _timed(self, line: str) -> int:
        return self._with_run("step", [line], option="--run")

    def _prepare(self, verb: str, rest: list[str]) -> int:
        if "--local" in self._where:
            printing.note("this machine needs no preparation")
            return Exit.DONE
        return self._with_topology(verb, rest)

    def _with_topology(self, verb: str, rest: list[str]) -> int:
        if not self._topology:
            printing.problem("no topology is loaded: say load FILE first")
            return Exit.REFUSED
        return self._verb(verb, [*self._topology, *rest, *self._where])

    def _with_run(self, verb: str, rest: list[str], option: str = "") -> int:
        named = [word for word in (option, self._run) if word] if self._run else []
        return self._verb(verb, [*rest, *named, *self._runs])

    def _verb(self, verb: str, arguments: list[str]) -> int:
        """The verb itself, in this process; whatever it ends with is a code."""
        from panda.cli.main import run_verb

        return run_verb([verb, *arguments])
