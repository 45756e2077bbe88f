"""Decides which kind of source a text is, by its name and content, unless it was said."""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import PurePath


class Form(StrEnum):
    ANSIBLE_INI = "ansible-ini"
    ANSIBLE_YAML = "ansible-yaml"
    SSH_CONFIG = "ssh-config"
    MANIFEST = "manifest"
    SLURM = "slurm"


_BY_SUFFIX = {
    ".ini": Form.ANSIBLE_INI,
    ".yml": Form.ANSIBLE_YAML,
    ".yaml": Form.ANSIBLE_YAML,
    ".json": Form.ANSIBLE_YAML,
    ".xml": Form.MANIFEST,
    ".rspec": Form.MANIFEST,
    ".ssh_config": Form.SSH_CONFIG,
}
# A host of an inventory may be called `host`, but then `name=value` follows.
_SSH_LINE = re.compile(r"\s*(?:host|match|include|identityfile)\s+[^=]+", re.IGNORECASE)
_SLURM_RANGE = re.compile(r"\[[0-9]+(?:[-,][0-9]+)+\]")
_YAML_KEY = re.compile(r"[\w.\"'-]+:\s*(?:[#{&!].*)?")


def detect(text: str, path: str = "") -> Form:
    name = PurePath(path)
    if text.lstrip("\ufeff \t\r\n").startswith("<"):
        return Form.MANIFEST
    if name.suffix.lower() in _BY_SUFFIX:
        return _BY_SUFFIX[name.suffix.lower()]
    if name.name in ("ssh_config", "config"):
        return Form.SSH_CONFIG
    lines = [line for line in text.splitlines() if line.strip() and line.strip()[0] not in "#;"]
    first = lines[0].strip() if lines else ""
    if first == "---" or first.startswith("{") or _YAML_KEY.fullmatch(first):
        return Form.ANSIBLE_YAML
    if any(_SSH_LINE.fullmatch(line) for line in lines):
        return Form.SSH_CONFIG
    if any(line.lstrip().startswith("[") or "=" in line for line in lines):
        return Form.ANSIBLE_INI
    if any(_SLURM_RANGE.search(line) or "," in line for line in lines):
        return Form.SLURM
    return Form.ANSIBLE_INI
