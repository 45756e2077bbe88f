"""`python -m panda_spark WORD`: what `panda` starts, and what a cluster is given to run.

stdout has one JSON object at the end (`follow`: one for each window), stderr a line for each step.
Exit codes: 0 done, 1 an expectation failed, 2 refused, 70 our bug.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import nullcontext
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from panda_spark.press import Press
from panda_spark.refusal import Refused

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from panda_spark.lake import Lake

MARK = "PANDA-SPARK "
EXPECTATION_FAILED, REFUSED, BUG = 1, 2, 70


def main(argv: Sequence[str]) -> int:
    told = _parser().parse_args(argv)
    try:
        answer, code = told.word(told)
    except Refused as refused:
        answer, code = {"error": {"message": refused.message, "hint": refused.hint}}, REFUSED
    if answer is not None:
        _say(answer)
    return int(code)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m panda_spark", description=__doc__)
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--lake", default="runs/tables", help="folder of the tables")
    common.add_argument("--master", default="", help="local[N], spark://HOST:PORT, yarn, k8s://URL")
    common.add_argument("--remote", default="", help="sc://HOST:PORT; or SPARK_REMOTE, which nobody sees")
    common.add_argument("--memory", default="", help="of the driver, such as 4g")
    common.add_argument("--py-files", default="", help="the package, for a cluster")
    words = parser.add_subparsers(required=True, metavar="WORD")

    analyze = words.add_parser("analyze", parents=[common], help="bring the tables up to date")
    analyze.add_argument("--late", type=float, default=1.0, metavar="S")
    analyze.add_argument("--settle", type=float, default=1.0, metavar="S")
    analyze.add_argument("--report", action="store_true", help="write RUN/report/report.html")
    analyze.add_argument("folders", nargs="+", metavar="RUN")
    analyze.set_defaults(word=_analyze)

    compare = words.add_parser("compare", parents=[common], help="two groups of runs")
    compare.add_argument("--a", nargs="+", required=True, metavar="RUN")
    compare.add_argument("--b", nargs="+", required=True, metavar="RUN")
    compare.add_argument("--folders", nargs="*", default=[], help="of runs that may have no tables yet")
    compare.add_argument("--threshold", action="append", default=[])
    compare.add_argument("--out", default="")
    compare.set_defaults(word=_compare)

    query = words.add_parser("query", parents=[common], help="ask the tables by SQL")
    query.add_argument("--limit", type=int, default=1000)
    query.add_argument("sql")
    query.set_defaults(word=_query)

    tables = words.add_parser("tables", parents=[common], help="what tables there are")
    tables.set_defaults(word=_tables)

    forget = words.add_parser("forget", parents=[common], help="remove the tables of runs")
    forget.add_argument("runs", nargs="+", metavar="RUN")
    forget.set_defaults(word=_forget)

    follow = words.add_parser("follow", parents=[common], help="a run while it goes on")
    follow.add_argument("--stream", default="", help="RUN/stream")
    follow.add_argument("--run", required=True, metavar="FOLDER")
    follow.add_argument("--checkpoint", default="")
    follow.add_argument("--window", type=float, default=5.0, metavar="S")
    follow.add_argument("--watermark", type=float, default=10.0, metavar="S", help="how long a window waits")
    follow.add_argument("--once", action="store_true", help="what has happened until now")
    follow.set_defaults(word=_follow)

    notebook = words.add_parser("notebook", parents=[common], help="the cells of a first notebook")
    notebook.add_argument("--run", default="")
    notebook.set_defaults(word=_notebook)
    return parser


def _session(told: argparse.Namespace, folders: Sequence[str] = ()) -> SparkSession:
    """`folders` of runs to be analysed: few bytes are better served by a Java that is soon at work."""
    _tell("starting Spark")
    from panda_spark.session import SMALL_BYTES, Place, open_session
    from panda_spark.store import here_bytes

    quick = bool(folders) and here_bytes(folders) < SMALL_BYTES
    shared = os.environ.get("PANDA_SPARK_SESSION", "") if folders and not told.remote else ""
    return open_session(Place(told.master, told.remote, told.memory, told.py_files, quick, shared))


def _lake(told: argparse.Namespace, spark: SparkSession) -> Lake:
    from panda_spark.lake import Lake

    return Lake(spark, told.lake)


def _analyze(told: argparse.Namespace) -> tuple[dict[str, Any], int]:
    begun = time.monotonic()
    with Press() if told.report else nullcontext() as press:
        spark = _session(told, told.folders)
        started_s = time.monotonic() - begun
        from panda_spark.pipeline import Options, analyze, find

        # A tenth of a second that is needed only when Spark is done.
        threading.Thread(target=import_module, args=("panda_spark.report",), daemon=True).start()
        lake = _lake(told, spark)
        done = analyze(spark, lake, told.folders, Options(told.late, told.settle), _tell)
        from panda_spark.report import sentence, write
        from panda_spark.reporting import briefs, data_of, summary_of

        done.took_s = {"starting": started_s, **done.took_s}
        files = find(spark, told.folders)
        pages = {
            run: Path(files[run].folder) / "report" / "report.html"
            for run in done.runs
            if told.report and "://" not in files[run].folder
        }
        old = {run for run in done.runs if run not in pages or (run not in done.new and pages[run].exists())}
        known = briefs(lake, {run: state for run, state in done.runs.items() if run in old})
        answers: list[dict[str, Any]] = []
        for number, (run, state) in enumerate(done.runs.items()):
            if run in old:
                data = known[run]
            else:
                _tell("writing the report", number, len(done.runs))
                written = time.monotonic()
                data = data_of(spark, lake, files[run], state)
                assert press is not None
                write(data, pages[run].parent, press.draw)
                done.took_s["report"] = done.took_s.get("report", 0.0) + time.monotonic() - written
            summary = summary_of(data)
            said = sentence(summary, run=data.first("runs"), faults=data.rows("faults"))
            answers.append(
                {
                    "run": run,
                    "folder": files[run].folder,
                    "new": run in done.new,
                    "summary": summary,
                    "sentence": said,
                    "report": str(pages[run]) if run in pages else None,
                }
            )
    return {
        "runs": answers,
        "files_read": done.files_read,
        "quarantined": sum(each["summary"].get("quarantined") or 0 for each in answers),
        "took_s": {stage: round(took, 3) for stage, took in done.took_s.items()},
    }, 0


def _compare(told: argparse.Namespace) -> tuple[dict[str, Any], int]:
    from panda_spark.comparison import compare
    from panda_spark.thresholds import thresholds_of

    thresholds_of(told.threshold)  # refuse before Spark is started
    spark = _session(told)
    from panda_spark.asking import known_runs
    from panda_spark.pipeline import Options, analyze
    from panda_spark.report import ComparisonData, write_comparison
    from panda_spark.reporting import briefs, quantiles, summary_of

    lake = _lake(told, spark)
    missing = [each for each in told.folders if Path(each).name not in lake.runs()]
    if missing:
        analyze(spark, lake, missing, Options(), _tell)
    known = known_runs(lake)
    unknown = [run for run in (*told.a, *told.b) if run not in known]
    if unknown:
        raise Refused(f"there are no tables of {', '.join(unknown)}", "panda analyze makes them")
    _tell("comparing")
    chosen = {run: known[run] for run in (*told.a, *told.b)}
    brief = briefs(lake, chosen)
    summaries = {run: summary_of(data) for run, data in brief.items()}
    configs: dict[str, Any] = {run: data.first("runs").get("config") for run, data in brief.items()}
    found = compare(
        [summaries[run] for run in told.a],
        [summaries[run] for run in told.b],
        configs=configs,
        thresholds=told.threshold,
    )
    answer: dict[str, Any] = found.data()
    if told.out:
        _tell("writing the report")
        group = {**dict.fromkeys(told.a, "a"), **dict.fromkeys(told.b, "b")}
        page = write_comparison(
            ComparisonData(
                name=f"{_named(told.a)} and {_named(told.b)}",
                metrics=found.rows,
                runs=[{**summaries[run], "group": group[run]} for run in chosen],
                latencies=[{**row, "group": group[row["run"]]} for row in quantiles(lake, chosen)],
                sentence=found.sentence,
                notes=found.notes,
                provenance={"a": list(told.a), "b": list(told.b), "configurations": configs},
            ),
            Path(told.out),
        )
        answer["report"] = str(page)
    return answer, EXPECTATION_FAILED if found.crossed else 0


def _named(runs: Sequence[str]) -> str:
    return runs[0] if len(runs) == 1 else f"{len(runs)} runs like {runs[0]}"


def _query(told: argparse.Namespace) -> tuple[dict[str, Any], int]:
    spark = _session(told)
    from panda_spark.asking import ask

    _tell("asking")
    return ask(spark, _lake(told, spark), told.sql, told.limit), 0


def _tables(told: argparse.Namespace) -> tuple[dict[str, Any], int]:
    spark = _session(told)
    from panda_spark.asking import listing

    return listing(_lake(told, spark)), 0


def _forget(told: argparse.Namespace) -> tuple[dict[str, Any], int]:
    spark = _session(told)
    from panda_spark.asking import known_runs

    lake = _lake(told, spark)
    known = known_runs(lake)
    unknown = [run for run in told.runs if run not in known]
    if unknown:
        raise Refused(
            f"there are no tables of {', '.join(unknown)}", f"there are {len(known)} runs with tables"
        )
    lake.forget(told.runs)
    return {"forgot": list(told.runs)}, 0


def _follow(told: argparse.Namespace) -> tuple[None, int]:
    from panda_spark.session import LOCAL
    from panda_spark.streaming import Following, check, follow

    if told.remote:
        raise Refused("a Connect server cannot follow a run: it would tell its own machine", "say --master")
    following = Following(
        run=Path(told.run),
        stream=Path(told.stream) if told.stream else None,
        window_s=told.window,
        watermark_s=told.watermark,
        once=told.once,
        checkpoint=Path(told.checkpoint) if told.checkpoint else None,
    )
    check(following)  # refuse before Spark is started
    told.master = told.master or LOCAL  # so that a server named by the environment is left alone
    follow(_session(told), following, _say)
    return None, 0


def _notebook(told: argparse.Namespace) -> tuple[dict[str, Any], int]:
    from panda_spark.notebook import notebook

    return {"cells": notebook(told.lake, told.run)["cells"]}, 0


def _tell(stage: str, done: int = 0, of: int = 0) -> None:
    said: dict[str, object] = {"stage": stage}
    if of:
        said |= {"done": done, "of": of}
    sys.stderr.write(f"{MARK}{json.dumps(said)}\n")
    sys.stderr.flush()


def _say(answer: object) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def entry() -> None:
    try:
        code = main(sys.argv[1:])
    except Exception as error:  # the edge of the process
        import traceback

        traceback.print_exc()
        _say(
            {"error": {"message": f"{type(error).__name__}: {str(error).splitlines()[0][:500]}", "hint": ""}}
        )
        code = BUG
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # a JVM takes a second to say goodbye, and has nothing left to do


if __name__ == "__main__":
    entry()
