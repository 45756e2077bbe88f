"""`panda query`: ask the tables of the analysis in SQL."""

from __future__ import annotations

import csv
import io
import sys
from typing import Annotated, Any

import typer

from panda.cli import desk, ground, printing
from panda.cli.desk import listed

CELL_LENGTH_MAX = 60  # at a terminal
LIMIT_MAX = 1_000_000


def query(
    sql: Annotated[str, typer.Argument(metavar="[SQL]", help="What to ask; - reads it from stdin.")] = "",
    tables: Annotated[bool, typer.Option("--tables", help="List the tables with their columns.")] = False,
    limit: Annotated[int, typer.Option(metavar="N", min=1, max=LIMIT_MAX, help="Rows at most.")] = 1000,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print rows as CSV.")] = False,
    lake: desk.LakeOption = "",
    master: desk.MasterOption = "",
    remote: desk.RemoteOption = "",
    cold: desk.ColdOption = False,
    runs: ground.RunsOption = ground.RUNS,
    as_json: printing.JsonOption = False,
) -> None:
    """Ask the tables in SQL.

    docs/tables.md says what each holds; panda spark up makes answers quick.

    Example: panda query "SELECT run, lost, latency_p99_s FROM summary ORDER BY run"
    """
    with desk.failing():
        if tables == bool(sql):
            raise typer.BadParameter("say what to ask, or --tables")
        if as_csv and as_json:
            raise typer.BadParameter("--csv and --json: choose one")
        at = desk.desk_of(runs, lake, master, remote, cold=cold, quiet=as_json or as_csv)
        at.refuse_without_tables()
        if tables:
            data = at.ask("tables", []).data
            printing.result(data, tables_text(data, as_csv=as_csv), as_json=as_json)
            return
        text = sys.stdin.read() if sql == "-" else sql
        data = at.ask("query", ["--limit", str(limit), "--", text]).data
    head = [str(column.get("name")) for column in listed(data.get("columns"))]
    rows = [row for row in listed(data.get("rows")) if len(row) == len(head)]
    at_terminal = sys.stdout is not None and sys.stdout.isatty()
    width_max = CELL_LENGTH_MAX if at_terminal else 0
    text = csv_text(head, rows) if as_csv else desk.table_text(head, rows, width_max)
    printing.result(data, text, as_json=as_json)
    if data.get("more"):
        printing.note(f"there are more than {printing.counted(limit, 'row')}: say --limit N for more")


def csv_text(head: list[str], rows: list[list[Any]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(head)
    writer.writerows(rows)
    return out.getvalue().removesuffix("\n")


def tables_text(data: dict[str, Any], *, as_csv: bool) -> str:
    rows = [
        [table.get("name"), column.get("name"), column.get("type")]
        for table in listed(data.get("tables"))
        for column in listed(table.get("columns"))
    ]
    head = ["table", "column", "type"]
    return csv_text(head, rows) if as_csv else desk.table_text(head, rows)
