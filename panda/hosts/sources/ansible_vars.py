"""Decides what an Ansible inventory's variables say about a host. Evaluates no template."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from panda.hosts.sources.entry import (
    Entry,
    jump_problem,
    name_problem,
    path_problem,
    port_number,
    user_problem,
)
from panda.hosts.sources.refusal import Findings, shown
from panda.hosts.sources.ssh_config import jump_of_command

ALIASES_MAX = 1024
READ = {
    "ansible_connection",
    "ansible_host",
    "ansible_ssh_host",
    "ansible_port",
    "ansible_ssh_port",
    "ansible_user",
    "ansible_ssh_user",
    "ansible_ssh_private_key_file",
    "ansible_private_key_file",
    "ansible_ssh_common_args",
    "ansible_ssh_extra_args",
    "ansible_python_interpreter",
    "panda_root",
    "panda_aliases",
}
"""Every other variable is somebody else's, perhaps a secret: it is not even remembered."""


@dataclass(frozen=True, slots=True)
class Value:
    text: str
    line: int = 0
    column: int = 0


def entry_of(name: str, variables: Mapping[str, Value], groups: tuple[str, ...], findings: Findings) -> Entry:
    words = _Words(variables, findings)
    local = words.first("ansible_connection") == "local"
    address = words.checked(name_problem, "ansible_host", "ansible_ssh_host")
    port = words.checked(_port_problem, "ansible_port", "ansible_ssh_port")
    user = words.checked(user_problem, "ansible_user", "ansible_ssh_user")
    key = words.checked(path_problem, "ansible_ssh_private_key_file", "ansible_private_key_file")
    python = words.checked(path_problem, "ansible_python_interpreter")
    return Entry(
        name,
        address,
        port_number(port),
        user,
        (key,) if key else (),
        words.jump("ansible_ssh_common_args") or words.jump("ansible_ssh_extra_args"),
        words.checked(path_problem, "panda_root"),
        "" if python.startswith("auto") else python,
        local,
        words.names("panda_aliases"),
        groups,
    )


def _port_problem(text: str) -> str:
    return "" if port_number(text) else f"a port is a number between 1 and 65535, not {shown(text)}"


class _Words:
    def __init__(self, variables: Mapping[str, Value], findings: Findings) -> None:
        self._variables = variables
        self._findings = findings

    def first(self, *words: str) -> str:
        return next((self._variables[word].text for word in words if word in self._variables), "")

    def checked(self, problem_of: Callable[[str], str], *words: str) -> str:
        for word in words:
            value = self._variables.get(word)
            if value is None or not value.text:
                continue
            if "{{" in value.text or "{%" in value.text:
                self._refuse(value, f"{word} is a template", "panda evaluates none: write the value itself")
                return ""
            if problem := problem_of(value.text):
                self._refuse(value, f"{word}: {problem}", "")
                return ""
            return value.text
        return ""

    def names(self, word: str) -> tuple[str, ...]:
        """Further names or addresses, separated by commas or blanks."""
        value = self._variables.get(word)
        if value is None:
            return ()
        names = tuple(dict.fromkeys(value.text.replace(",", " ").split()))
        problem = next((problem for problem in map(name_problem, names) if problem), "")
        if problem or len(names) > ALIASES_MAX:
            self._refuse(value, f"{word}: {problem or 'too many names'}", "")
            return ()
        return names

    def jump(self, word: str) -> str:
        """The ProxyJump among ssh's arguments; what else they say is for ssh itself."""
        value = self._variables.get(word)
        if value is None or not value.text:
            return ""
        try:
            jump = _jump_of_arguments(shlex.split(value.text))
        except ValueError:
            self._refuse(value, f"{word} has an unbalanced quote", "")
            return ""
        if jump is None:
            hint = "say -J JUMPHOST or -o ProxyJump=JUMPHOST"
            self._refuse(value, f"{word} has a ProxyCommand, which panda does not run", hint)
            return ""
        if jump and (problem := jump_problem(jump)):
            self._refuse(value, f"{word}: {problem}", "")
            return ""
        return jump

    def _refuse(self, value: Value, message: str, hint: str) -> None:
        self._findings.add(message, hint, value.line, value.column)


def _jump_of_arguments(words: list[str]) -> str | None:
    """Empty if there is none; None if there is a command that we cannot understand."""
    rest = iter(words)
    for word in rest:
        if word.startswith("-J"):
            return word[2:] or next(rest, "")
        if not word.startswith("-o"):
            continue
        option = word[2:] or next(rest, "")
        name, _, value = option.replace("=", " ", 1).strip().partition(" ")
        if name.lower() == "proxyjump":
            return "" if value.strip() == "none" else value.strip()
        if name.lower() == "proxycommand":
            return jump_of_command(value.strip()) or None
    return ""
