"""Decides which Java Spark gets, and whether it is new enough; installs nothing."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from panda.analysis.refusals import AnalysisRefused

OLDEST = 17
ANSWER_TIMEOUT_S = 20.0
INSTALL = "apt-get install openjdk-17-jre-headless installs one on Debian"
_VERSION = re.compile(r'version "(?:1\.)?(\d+)')  # "1.8.0_392", "17.0.15", "21-ea"


@dataclass(frozen=True, slots=True)
class Java:
    path: Path
    version: int


def find_java(environment: Mapping[str, str]) -> Java:
    """The one that Spark would take: of JAVA_HOME, else of PATH; refused if there is none or an old one."""
    home = environment.get("JAVA_HOME", "")
    if home:
        path = Path(home) / "bin" / "java"
        if not path.is_file():
            raise AnalysisRefused(
                f"JAVA_HOME is {home}, and there is no bin/java in it", f"unset it, or {INSTALL}"
            )
    else:
        found = shutil.which("java", path=environment.get("PATH", ""))
        if found is None:
            raise AnalysisRefused(
                f"Spark needs Java {OLDEST} or newer, and neither JAVA_HOME nor PATH has one", INSTALL
            )
        path = Path(found)
    version = _version_of(path, environment)
    if version < OLDEST:
        raise AnalysisRefused(f"Spark needs Java {OLDEST} or newer, and {path} is Java {version}", INSTALL)
    return Java(path, version)


def _version_of(path: Path, environment: Mapping[str, str]) -> int:
    try:
        said = subprocess.run(
            [path, "-version"],
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=ANSWER_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise AnalysisRefused(f"{path} cannot be started ({error})", INSTALL) from None
    text = (said.stderr + said.stdout).decode("utf-8", "replace")
    found = _VERSION.search(text)
    if said.returncode or found is None:
        first = (text.strip().splitlines() or ["nothing"])[0][:200]
        raise AnalysisRefused(f"{path} does not tell its version, it says: {first}", INSTALL)
    return int(found[1])
