"""Reads a Slurm node list, as `SLURM_JOB_NODELIST` or `squeue -o %N` gives it. Asks no Slurm."""

from __future__ import annotations

from panda.hosts.sources.entry import HOSTS_MAX, Entry, name_problem
from panda.hosts.sources.ranges import BadRange, expand_slurm, split_slurm
from panda.hosts.sources.refusal import Findings

HINT = "a node list looks like node[01-03,07],gpu1"


def read_slurm(text: str, path: str = "") -> list[Entry]:
    findings = Findings(path)
    entries: dict[str, Entry] = {}
    for number, line in enumerate(text.splitlines(), 1):
        indent = len(line) - len(line.lstrip())
        content = line.partition("#")[0].strip().rstrip(",")
        if not content:
            continue
        for at, item in split_slurm(content):
            column = indent + at + 1
            try:
                names = expand_slurm(item.strip())
            except BadRange as error:
                findings.add(str(error), HINT, number, column + error.column)
                continue
            for name in names or [""]:
                if problem := name_problem(name):
                    findings.add(problem, HINT, number, column)
                    break
                entries[name] = Entry(name)
            if len(entries) > HOSTS_MAX:
                findings.add(f"more than {HOSTS_MAX} hosts", "", number, column)
                findings.check()
    findings.check()
    return list(entries.values())
