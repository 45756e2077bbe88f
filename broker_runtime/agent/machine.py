"""Decides what is told of the machine itself: disk, load, processors, memory."""

from __future__ import annotations

import os
from pathlib import Path


def told(folder: Path) -> dict[str, object]:
    disk = os.statvfs(folder)
    return {
        "disk_free_bytes": disk.f_bavail * disk.f_frsize,
        "load": os.getloadavg()[0],
        "cpus": len(os.sched_getaffinity(0)),
        "memory_free_bytes": _memory_free_bytes(),
    }


def _memory_free_bytes() -> int | None:
    try:
        with Path("/proc/meminfo").open() as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) << 10
    except OSError:
        pass
    return None
