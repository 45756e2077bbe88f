"""What the doctor asks on a host: this file's text is sent there and run by the host's own Python.

Standard library only, and nothing newer than Python 3.8, so that an old interpreter can at least say so.
One line of JSON in, one out, after a mark, for login scripts may print before it. Writes nothing to disk.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import socket
import sys
import time
from pathlib import Path
from typing import Any

MARK = "PANDA-PROBE 1"
PIECE_BYTES = 256 * 1024


def main() -> None:
    questions, answers = sys.stdin.buffer, sys.stdout
    answers.write("\n" + MARK + "\n")
    answers.flush()
    while True:
        line = questions.readline(1 << 20)
        if not line:
            return
        received = time.time()
        question = json.loads(line.decode())
        answer: dict[str, Any] = {}
        if question["ask"] == "clock":
            answer = {"received": received}
        elif question["ask"] == "facts":
            answer = facts(question["root"])
        elif question["ask"] == "ports":
            answer = {"busy": [port for port in question["ports"] if not is_free(question["address"], port)]}
        elif question["ask"] == "sink":
            left = question["size"]
            while left:
                piece = questions.read(min(left, PIECE_BYTES))
                if not piece:
                    return
                left -= len(piece)
        answer["answered"] = time.time()
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def facts(root: str) -> dict[str, Any]:
    """The disk is asked where the root is, or would be."""
    place = Path.home() / (root[2:] if root.startswith("~/") else root)  # noqa: FURB188 - newer than 3.8
    while not place.is_dir() and place.parent != place:
        place = place.parent
    return {
        "python": list(sys.version_info[:3]),
        "machine": platform.machine(),
        "system": platform.system(),
        "cpus": os.cpu_count(),
        "disk_free_bytes": shutil.disk_usage(str(place)).free,
        "writable": os.access(str(place), os.W_OK | os.X_OK),
    }


def is_free(address: str, port: int) -> bool:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address, port))
        listener.listen(1)
    except OSError:
        return False
    finally:
        listener.close()
    return True


if __name__ == "__main__":
    main()
