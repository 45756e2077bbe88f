"""Every line of a log is kept: a good one with its fields, a bad one with its reason and its very place."""

from __future__ import annotations

import bz2
import gzip
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, Row, SparkSession

from panda_spark import ingest
from panda_spark.schema import CORRUPT, LINE, LINE_BYTES_MAX, PLACE, WHOLE

SAID = [name for name in LINE.names if name not in ("run", CORRUPT)]
BLOCK, SMALL_BLOCK = "512kb", "1000b"
PARTITION = "spark.sql.files.maxPartitionBytes"
OPEN_COST = "spark.sql.files.openCostInBytes"


@pytest.fixture(autouse=True, scope="module")
def many_blocks(spark: SparkSession) -> Iterator[None]:
    """Files are cut into blocks, as large ones are."""
    before = {name: spark.conf.get(name) for name in (PARTITION, OPEN_COST)}
    spark.conf.set(PARTITION, BLOCK)
    spark.conf.set(OPEN_COST, "1b")
    yield
    for name, value in before.items():
        spark.conf.set(name, str(value))


def line(kind: str = "pause", **fields: Any) -> bytes:
    said = {"v": 1, "t": 10.5, "host": "h", "run": "r", "proc": "p", "kind": kind, **fields}
    return json.dumps({name: value for name, value in said.items() if value is not ...}).encode()


PUBLISH = {"id": "P:0:1", "client": "P", "time": 10.0}
COUNTS = {"peer": "B", "role": "broker", "records_in": 1, "records_out": 1, "bytes_in": 1, "bytes_out": 1}

GOOD = {
    "plain": line(),
    "with an end as other systems write it": line() + b"\r",
    "with fields that nobody knows": line("moved", what={"deep": [1, None]}, v2=[]),
    "with a whole number where any may be": line(t=10),
    "in other alphabets": line(host="größe 😀", proc="\u2028"),
    "of the largest size": line(why="x" * (LINE_BYTES_MAX - len(line(why="")))),
    "with no class": line("publish", **PUBLISH),
    "with numbers that JSON cannot write": line("publish", **PUBLISH, floats={"x": None}),
    "with the largest integer": line("publish", **PUBLISH, integers={"x": 2**63 - 1}),
    "with a field that is null": line(ack_s=None),
    "with no run": line(run=...),
}
BAD = {
    "gigantic": [line(why="x" * (2 << 20)), b"x" * (LINE_BYTES_MAX + 1)],
    "not UTF-8": [line(why="@").replace(b"@", b"\xff\xfe"), b"\xc3", line()[:-1] + b"\xed\xa0\x80}"],
    "truncated": [line()[:-1], b"{", b'{"v":1,"t":', line() + b" trailing"],
    "not JSON": [
        b"",
        b"\r",
        b" ",
        b"null",
        b"[]",
        b"5",
        b"{'v':1}",
        b"{,}",
        b"oops",
        b"\0\0",
        line()[1:],
        line().replace(b"10.5", b"NaN"),
        line().replace(b"10.5", b"-Infinity"),
        line() + line(),
    ],
    "unknown version": [line(v=2), line(v=0), line(v=-1), line(v=2, hops="one"), line(v=2, t=...)],
    "missing field": [
        *(line(**{name: ...}) for name in ("v", "t", "host", "proc", "kind")),
        *(line(**{name: None}) for name in ("v", "t", "host", "proc", "kind")),
        *(line("publish", **{**PUBLISH, name: ...}) for name in PUBLISH),
        line("deliver", id="P:0:1"),
        line("deliver", client="S"),
        line("subscribe", id="S:0:1"),
        line("unsubscribe", client="S"),
        line("detect", id="D", client="S"),
        line("link_up"),
        line("link_down", reason="gone"),
        *(line("counts", **{**COUNTS, name: ...}) for name in COUNTS),
        line("load", publications=1),
        b"{}",
    ],
    "wrong type": [
        line(hops="one"),
        line(hops=1.5),
        line(t="now"),
        line(t="NaN"),
        line(t=[1]),
        line(v="1"),
        line(resumed="yes"),
        line(resumed=1),
        line(filter={}),
        line(filter=["x"]),
        line(to="S:0:1"),
        line("publish", **PUBLISH, integers={"x": "1"}),
        line("publish", **PUBLISH, integers={"x": 2**63}),
        line("publish", **PUBLISH, flags={"x": 1}),
        line("publish", **PUBLISH, texts=["x"]),
    ],
}


def log(folder: Path, name: str, parts: Iterable[bytes], end: bytes = b"\n") -> str:
    path = folder / "a run" / "hosts" / "h1" / "processes" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    data = b"\n".join(parts) + end
    packed = {".gz": gzip.compress, ".bz2": bz2.compress}.get(path.suffix)
    path.write_bytes(packed(data) if packed else data)
    return str(path)


def placed(parts: Iterable[bytes]) -> list[tuple[int, bytes]]:
    found, offset = [], 0
    for part in parts:
        found.append((offset, part))
        offset += len(part) + 1
    return found


def bronze(spark: SparkSession, *paths: str) -> DataFrame:
    """The lines with their fields beside each other."""
    read = ingest.bronze(ingest.lines(spark, paths))
    assert read.schema.names == WHOLE.names
    return read.select("run", *PLACE.names, "reason_bad", "text_bad", *(f"line.{name}" for name in SAID))


ALL = [(reason, text) for reason, texts in BAD.items() for text in texts]


@pytest.fixture(scope="module", params=["log.jsonl", "log.jsonl.gz", "log.jsonl.bz2"])
def mixed(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> tuple[list[tuple[str, bytes]], list[Row], list[Row]]:
    """A log in which every bad line has good ones around it: what it holds, and what became of it."""
    parts: list[tuple[str, bytes]] = []
    good = list(GOOD.values())
    for place, (reason, text) in enumerate(ALL):
        parts += [("", good[place])] if place < len(good) else [("", good[0])]
        parts.append((reason, text))
    folder = tmp_path_factory.mktemp("ingest")
    path = log(folder, f"p1/{request.param}", [text for _, text in parts])
    read = bronze(spark, path).persist()
    rows = read.orderBy("block", "row").collect()
    bad = ingest.quarantine(read).orderBy("offset").collect()
    read.unpersist()
    return parts, rows, bad


Mixed = tuple[list[tuple[str, bytes]], list[Row], list[Row]]


def test_every_bad_line_has_its_reason_and_the_byte_at_which_it_begins(mixed: Mixed) -> None:
    parts, _, bad = mixed
    offsets = placed([text for _, text in parts])
    due = [
        (offset, reason, len(text))
        for (offset, text), (reason, _) in zip(offsets, parts, strict=True)
        if reason
    ]
    assert [(row.offset, row.reason, row.bytes) for row in bad] == due


def test_no_line_is_dropped_and_the_good_ones_are_whole(mixed: Mixed) -> None:
    parts, rows, _ = mixed
    assert len(rows) == len(parts)
    assert [row.reason_bad or "" for row in rows] == [reason for reason, _ in parts]
    for row, (reason, text) in zip(rows, parts, strict=True):
        if not reason:
            said = json.loads(text)
            assert (row.t, row.host, row.proc, row.kind) == (
                said["t"],
                said["host"],
                said["proc"],
                said["kind"],
            )
            assert row.bytes == len(text)
        assert row.run == "a run"


def test_a_bad_line_shows_its_beginning_as_good_text_and_nothing_of_its_fields(mixed: Mixed) -> None:
    _, rows, bad = mixed
    for row in bad:
        assert len(row.text) <= ingest.SHOWN_CHARACTERS
        row.text.encode()
    for row in rows:
        if row.reason_bad:
            assert [row[name] for name in SAID] == [None] * len(SAID)
        else:
            assert row.text_bad is None


def test_a_plain_log_was_read_in_many_blocks(spark: SparkSession, tmp_path: Path) -> None:
    parts = [line(why="x" * (place % 90), hops=place) for place in range(500)]
    parts[137] = parts[333] = b"oops"
    parts[498] = line(why="y" * 5000)[:-1]  # over several blocks
    spark.conf.set(PARTITION, SMALL_BLOCK)
    rows = bronze(spark, log(tmp_path, "p1/log.jsonl", parts)).persist()
    ordered = rows.orderBy("block", "row").collect()
    spark.conf.set(PARTITION, BLOCK)
    assert len({row.block for row in ordered}) > 20
    assert [row.hops for row in ordered if not row.reason_bad] == [
        place for place in range(500) if place not in (137, 333, 498)
    ]
    bad = ingest.quarantine(rows).orderBy("offset").collect()
    offsets = placed(parts)
    assert [row.offset for row in bad] == [offsets[place][0] for place in (137, 333, 498)]


def test_files_of_one_reading_have_offsets_of_their_own(spark: SparkSession, tmp_path: Path) -> None:
    paths = [
        log(tmp_path, f"p{number}/log.jsonl{'.gz' * (number % 2)}", [line()] * number + [b"oops", line()])
        for number in range(1, 6)
    ]
    bad = ingest.quarantine(bronze(spark, *paths)).collect()
    found = {Path(row.file).parent.name: row.offset for row in bad}
    assert found == {f"p{number}": number * (len(line()) + 1) for number in range(1, 6)}


@pytest.mark.parametrize(
    ("data", "reasons"),
    [
        (b"", []),
        (b"\n", ["not JSON"]),
        (b"\n\n", ["not JSON", "not JSON"]),
        (line(), [None]),
        (line() + b"\n", [None]),
        (line() + b"\r\n" + line() + b"\r\n", [None, None]),
        (line() + line(), ["not JSON"]),
        (line(why="}{"), [None]),
        (line() + b"\n" + line()[:20], [None, "truncated"]),
    ],
)
def test_the_ends_of_lines_and_of_files_are_taken_as_they_come(
    spark: SparkSession, tmp_path: Path, data: bytes, reasons: list[str | None]
) -> None:
    path = log(tmp_path, "p1/log.jsonl", [data], end=b"")
    rows = bronze(spark, path).orderBy("block", "row").collect()
    assert [row.reason_bad for row in rows] == reasons


@pytest.mark.parametrize(
    "name", ["a b", "a+b", "100%", "a%20b", "größe", "x=1", "[a]", "{a,b}", "a*b?", "'\"", "#1"]
)
def test_the_folder_may_have_any_name(spark: SparkSession, tmp_path: Path, name: str) -> None:
    path = log(tmp_path / "in" / name, "p1/log.jsonl", [line(), b"oops"])
    run = tmp_path / "in" / name
    (run / "a run").rename(run / name)
    path = path.replace("/a run/", f"/{name}/")
    rows = bronze(spark, path).collect()
    assert {row.run for row in rows} == {name}
    assert {row.file.removeprefix("file:").removeprefix("//") for row in rows} == {path}
