"""Speaks the protocol of `python -m panda_spark` without Spark, and misbehaves when STAND_IN says so."""

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

BEHAVIOUR = os.environ.get("STAND_IN", "")
SUMMARY = {
    "published": 60,
    "expected": 60,
    "delivered": 57,
    "late": 0,
    "lost": 3,
    "latency_p99_s": 0.25,
    "hops_mean": None,
}


def main(arguments: list[str]) -> int:
    remember(arguments)
    print("26/11/18 12:00:00 WARN Spark talks to itself", file=sys.stderr, flush=True)
    progress("starting Spark")
    if BEHAVIOUR == "refuse":
        return say({"error": {"message": "there are no logs", "hint": "collect them first"}}, 2)
    if BEHAVIOUR == "bug":
        print("Traceback: our bug", file=sys.stderr)
        return 70
    if BEHAVIOUR == "die":
        print("java.lang.OutOfMemoryError: Java heap space", file=sys.stderr, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    if BEHAVIOUR == "babble":
        print("this is not JSON")
        return 0
    if BEHAVIOUR == "hang":
        hang()
    if BEHAVIOUR == "hang in Spark":
        hang_in_spark()
    word, options, rest = split(arguments)
    return WORDS[word](options, rest)


def remember(arguments: list[str]) -> None:
    """What we were told, for the test to see."""
    if path := os.environ.get("STAND_IN_TOLD"):
        spark = {name: value for name, value in os.environ.items() if name.startswith("SPARK")}
        with Path(path).open("a") as file:
            file.write(json.dumps({"arguments": arguments, "environment": spark, "pid": os.getpid()}) + "\n")


def hang() -> None:
    """With a child that outlives its parent, as a virtual machine would."""
    code = "import threading; threading.Event().wait()"
    child = subprocess.Popen([sys.executable, "-c", code])
    tell_pids(child.pid)
    threading.Event().wait()


def hang_in_spark() -> None:
    """In a job of a real Spark, with its real virtual machine."""
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    tell_pids(spark.sparkContext._gateway.proc.pid)
    spark.sql("SELECT count(*) FROM range(1000000) a CROSS JOIN range(1000000) b").collect()


def tell_pids(child: int) -> None:
    Path(os.environ["STAND_IN_TOLD"]).with_name("pids").write_text(f"{os.getpid()} {child}\n")


def split(arguments: list[str]) -> tuple[str, dict[str, list[str]], list[str]]:
    """The word, its options with all that follows each, and what follows the last flag."""
    word, *rest = arguments
    options: dict[str, list[str]] = {}
    name = ""
    for each in rest:
        if each.startswith("--"):
            name = each
            options.setdefault(name, [])
        else:
            options[name].append(each)
    return word, options, options.get(name, [])


def analyze(options: dict[str, list[str]], rest: list[str]) -> int:
    folders = [each for each in rest if "/" in each]
    progress("reading logs", 1, 2)
    progress("reading logs", 2, 2)
    progress("making tables")
    reported = "--report" in options
    runs = [
        {
            "run": Path(folder).name,
            "folder": folder,
            "new": True,
            "summary": SUMMARY,
            "sentence": "60 publications, 57 of 60 deliveries arrived.",
            "report": f"{folder}/report/report.html" if reported else None,
        }
        for folder in folders
    ]
    return say({"runs": runs, "files_read": 2, "quarantined": 1, "took_s": {"reading logs": 0.1}})


def compare(options: dict[str, list[str]], rest: list[str]) -> int:
    crossed = options.get("--threshold", [])
    row = {
        "metric": "latency_p99_s",
        "a_mean": 0.25,
        "a_low": 0.2,
        "a_high": 0.3,
        "b_mean": 0.5,
        "b_low": None,
        "b_high": None,
        "difference": 0.25,
        "difference_share": 1.0,
        "significant": True,
    }
    data = {"metrics": [row], "crossed": crossed, "notes": ["B is one run"], "sentence": "B is slower."}
    return say(data, 1 if crossed else 0)


def query(options: dict[str, list[str]], rest: list[str]) -> int:
    columns = [{"name": "run", "type": "string"}, {"name": "lost", "type": "bigint"}]
    rows = [["r1", 3], ["r2 \x1b[31m, red", None]]
    return say({"columns": columns, "rows": rows, "more": options["--limit"] == ["1"]})


def tables(options: dict[str, list[str]], rest: list[str]) -> int:
    return say({"tables": [{"name": "summary", "columns": [{"name": "lost", "type": "bigint"}]}]})


def forget(options: dict[str, list[str]], rest: list[str]) -> int:
    return say({"run": rest[-1], "forgotten": True})


def notebook(options: dict[str, list[str]], rest: list[str]) -> int:
    cells = [
        {"kind": "markdown", "text": "# What happened"},
        {"kind": "code", "text": "lake = {!r}\nrun = {!r}".format(options["--lake"][0], options["--run"][0])},
        {"kind": "code", "text": "print(run, lake)"},
    ]
    return say({"cells": cells})


def follow(options: dict[str, list[str]], rest: list[str]) -> int:
    """A window for each slice; ends when there is a file `.end` and everything is read, or nobody listens."""
    alone = threading.Event()

    def wait() -> None:
        sys.stdin.buffer.read()
        alone.set()

    threading.Thread(target=wait, daemon=True).start()
    stream = Path(options["--stream"][0])
    seen: set[Path] = set()
    while True:
        last = alone.wait(0.1) or (stream / ".end").exists()
        for path in sorted(stream.glob("[!.]*/*/[!.]*.jsonl")):
            if path not in seen:
                seen.add(path)
                kinds = [json.loads(line) for line in path.read_text().splitlines()]
                say(
                    {
                        "window_s": [1_000_000_000 + len(seen), 1_000_000_005 + len(seen)],
                        "final": True,
                        "published": sum(each["kind"] == "publish" and "ack_s" in each for each in kinds),
                        "delivered": sum(each["kind"] == "deliver" and "latency_s" in each for each in kinds),
                        "p50_s": 0.001,
                        "p99_s": None,
                        "errors": 0,
                        "late_lines": 0,
                    }
                )
        if last:
            return 0


def progress(stage: str, done: int | None = None, of: int | None = None) -> None:
    said: dict[str, Any] = {"stage": stage}
    if done is not None:
        said |= {"done": done, "of": of}
    print(f"PANDA-SPARK {json.dumps(said)}", file=sys.stderr, flush=True)


def say(data: dict[str, Any], code: int = 0) -> int:
    print(json.dumps(data), flush=True)
    return code


WORDS = {
    "analyze": analyze,
    "compare": compare,
    "query": query,
    "tables": tables,
    "forget": forget,
    "notebook": notebook,
    "follow": follow,
}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
