"""A host without Python, and everything that `panda prepare` brings really brought, kept and taken back.

The host has files and processes of its own but this machine's network, so that it reaches Debian's registry.
It has no systemd to start chrony with, so chrony is left out there.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping

from tests.deployment.panda import Ended
from tests.soak.ground import Options, Part, panda_on, timed
from tests.testbed.bed import Bed, BedHost

SLOW_S = 300.0
CLEAN = ("env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin")
LIMITS = "/etc/security/limits.d/panda.conf"
WITHOUT_PYTHON = "apt-get -q -y purge '^python3.*' '^libpython3.*' && rm -rf /var/lib/apt/lists/*"


def soak(options: Options) -> list[str]:
    with Bed(1, options.folder / "bed", kind="networked") as bed:
        (host,) = bed.hosts
        inside(host, f"export DEBIAN_FRONTEND=noninteractive; {WITHOUT_PYTHON}")
        panda = panda_on(Part(bed, bed.hosts), options.folder)
        words = (*panda.inventory, "--become", "--json")
        try:
            return _brought_and_taken_back(host, lambda verb: panda.end(panda.start(verb, *words), SLOW_S))
        finally:
            panda.close()


def _brought_and_taken_back(host: BedHost, panda: Callable[[str], Ended]) -> list[str]:
    wrong = []
    if inside(host, "command -v python3"):
        wrong.append("the host has a Python to begin with")
    for verb, name, holds in (
        ("prepare", "the first time", brought),
        ("prepare", "the second time", brought),
        ("unprepare", "taking it back", taken_back),
        ("unprepare", "taking it back twice", taken_back),
    ):
        took = timed()
        ended = panda(verb)
        seen = looked_at(host)
        print(f"  {verb}, {name}: exit code {ended.code}, {took():.0f} s; {told(ended)}")
        wrong += [f"{name}: {text}" for text in holds(seen)]
        if ended.code:
            wrong.append(f"{name}: {ended.code} {ended.out} {ended.err[-2000:]}")
        elif "second" in name or "twice" in name:
            wrong += [f"{name}: {task['changed']} changed" for task in ended.data["hosts"] if task["changed"]]
    return wrong


def looked_at(host: BedHost) -> dict[str, str]:
    return {
        "python": inside(host, "python3 --version"),
        "limits": inside(host, f"cat {LIMITS}"),
        "folder": inside(host, f"stat --format '%a %U' /home/{host.user}/.panda/runs"),
        "marker": inside(host, f"cat /home/{host.user}/.panda/prepared.json"),
    }


def brought(seen: Mapping[str, str]) -> list[str]:
    wrong = [f"no {name}" for name, found in seen.items() if not found]
    if seen["folder"] != f"700 {seen_user(seen)}":
        wrong.append(f"the folder is {seen['folder']}")
    if "nofile 65536" not in seen["limits"]:
        wrong.append(f"limits: {seen['limits']}")
    marker = json.loads(seen["marker"] or "{}")
    if (marker.get("packages"), marker.get("files")) != ([], [LIMITS]):
        wrong.append(f"marker: {marker}")
    return wrong


def seen_user(seen: Mapping[str, str]) -> str:
    return seen["limits"].partition(" ")[0]


def taken_back(seen: Mapping[str, str]) -> list[str]:
    wrong = [f"{name} is left: {found}" for name, found in seen.items() if found and name != "python"]
    return wrong if seen["python"] else [*wrong, "Python, which others may rely on, is gone"]


def told(ended: Ended) -> str:
    try:
        (host,) = ended.data["hosts"]
    except (ValueError, KeyError):
        return "no answer"
    return f"{host['changed']} changed, {host['ok']} as they were"


def inside(host: BedHost, script: str) -> str:
    """What the script says on the host; nothing if it fails."""
    done = subprocess.run(
        [*host.entrance(), *CLEAN, "sh", "-c", script],
        capture_output=True,
        text=True,
        check=False,
        timeout=SLOW_S,
    )
    return done.stdout.strip() if done.returncode == 0 else ""
