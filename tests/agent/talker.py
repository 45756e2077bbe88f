"""A process for tests that speaks on its line: ready, and yes to every fault but those for peer `No`."""

import json
import os
import socket

with socket.socket(fileno=int(os.environ["PANDA_LINE"])) as line, line.makefile() as lines:

    def say(message: dict[str, object]) -> None:
        line.sendall(json.dumps(message).encode() + b"\n")

    say({"say": "ready", "id": "T", "address": "127.0.0.1:9"})
    say({"say": "link", "peer": "Bob", "up": True})
    for text in lines:
        asked = json.loads(text)
        fine = asked.get("peer") != "No"
        say(
            {
                "say": "fault",
                "number": asked["number"],
                "ok": fine,
                **({} if fine else {"error": "no such peer"}),
            }
        )
