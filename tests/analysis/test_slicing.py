"""Slices are whole lines, each once, whatever happens to the log and whenever somebody looks."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panda.analysis.slicing import SLICE_BYTES_MAX, Cut, cut_of, reader_of, slice_log, slice_run


def slices(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.glob("*.jsonl"))}


def test_what_a_log_grew_by_is_a_new_file_named_by_where_it_began(tmp_path: Path) -> None:
    log, folder = tmp_path / "log.jsonl", tmp_path / "out"
    log.write_bytes(b"one\ntwo\n")
    assert slice_log(reader_of(log), folder) == 8
    with log.open("ab") as file:
        file.write(b"three\n")
    assert slice_log(reader_of(log), folder) == 6
    assert slice_log(reader_of(log), folder) == 0
    assert slices(folder) == {
        "0-0000000000000000.jsonl": b"one\ntwo\n",
        "0-0000000000000008.jsonl": b"three\n",
    }


def test_half_a_line_waits_for_its_other_half(tmp_path: Path) -> None:
    log, folder = tmp_path / "log.jsonl", tmp_path / "out"
    log.write_bytes(b"ha")
    assert slice_log(reader_of(log), folder) == 0
    assert not folder.exists()
    log.write_bytes(b"half\nand")
    assert slice_log(reader_of(log), folder) == 5
    log.write_bytes(b"half\nand half\n")
    assert slice_log(reader_of(log), folder) == 9
    assert b"".join(slices(folder).values()) == b"half\nand half\n"


@pytest.mark.parametrize("text", [b"new\n", b"other lines\nof the same length\n", b"longer" * 100 + b"\n"])
def test_a_log_that_was_replaced_is_cut_from_its_beginning(tmp_path: Path, text: bytes) -> None:
    log, folder = tmp_path / "log.jsonl", tmp_path / "out"
    log.write_bytes(b"first lines\nof the log, yes!!\n")
    slice_log(reader_of(log), folder)
    log.write_bytes(text)
    slice_log(reader_of(log), folder)
    assert slices(folder) == {
        "0-0000000000000000.jsonl": b"first lines\nof the log, yes!!\n",
        "1-0000000000000000.jsonl": text,
    }
    assert cut_of(folder) == Cut(1, len(text), folder / "1-0000000000000000.jsonl")


def test_a_log_that_is_emptied_and_filled_again_is_the_next_generation(tmp_path: Path) -> None:
    log, folder = tmp_path / "log.jsonl", tmp_path / "out"
    for number in range(3):
        log.write_bytes(b"line %d\n" % number)
        slice_log(reader_of(log), folder)
        log.write_bytes(b"")
        assert slice_log(reader_of(log), folder) == 0
    assert [*slices(folder).values()] == [b"line 0\n", b"line 1\n", b"line 2\n"]


def test_a_packed_log_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    log, folder = tmp_path / "log.jsonl.gz", tmp_path / "out"
    text = b"".join(b"line %d\n" % number for number in range(20_000))
    whole = gzip.compress(text[:90_000]) + gzip.compress(text[90_000:])
    log.write_bytes(whole[: len(whole) // 2])
    first = slice_log(reader_of(log), folder)
    assert 0 < first < len(text)
    log.write_bytes(whole)
    assert slice_log(reader_of(log), folder) == len(text) - first
    assert b"".join(slices(folder).values()) == text


def test_a_packed_log_that_is_broken_gives_what_is_before(tmp_path: Path) -> None:
    log, folder = tmp_path / "log.jsonl.gz", tmp_path / "out"
    log.write_bytes(gzip.compress(b"good\n") + b"this was never packed")
    assert slice_log(reader_of(log), folder) == 5
    assert slice_log(reader_of(log), folder) == 0


def test_a_line_without_end_is_cut_and_does_not_stop_the_rest(tmp_path: Path) -> None:
    log, folder = tmp_path / "log.jsonl", tmp_path / "out"
    text = b"x" * (SLICE_BYTES_MAX + 25) + b"\nshort\n"
    log.write_bytes(text)
    slice_log(reader_of(log), folder)
    assert b"".join(slices(folder).values()) == text
    assert all(len(each) <= SLICE_BYTES_MAX for each in slices(folder).values())


def test_every_log_of_a_run_has_its_own_folder_and_links_are_not_followed(tmp_path: Path) -> None:
    for host, process, name in (("h1", "A", "log.jsonl"), ("h1", "B", "log.jsonl.gz"), ("h2", "A", "stderr")):
        folder = tmp_path / "hosts" / host / "processes" / process
        folder.mkdir(parents=True)
        (folder / name).write_bytes(gzip.compress(b"packed\n") if name.endswith("gz") else b"plain\n")
    linked = tmp_path / "hosts/h2/processes/A/log.jsonl"
    linked.symlink_to(tmp_path / "hosts/h1/processes/A/log.jsonl")
    assert slice_run(tmp_path / "hosts", tmp_path / "stream") == 13
    found = {str(path.relative_to(tmp_path / "stream").parent) for path in tmp_path.glob("stream/*/*/*")}
    assert found == {"h1/A", "h1/B"}


def test_what_was_left_half_written_is_not_taken_for_a_slice(tmp_path: Path) -> None:
    log, folder = tmp_path / "log.jsonl", tmp_path / "out"
    log.write_bytes(b"one\ntwo\n")
    folder.mkdir()
    (folder / ".0-0000000000000000.jsonl.part").write_bytes(b"one\nt")
    slice_log(reader_of(log), folder)
    assert slices(folder) == {"0-0000000000000000.jsonl": b"one\ntwo\n"}


@given(st.lists(st.binary(max_size=30), max_size=12), st.booleans())
def test_however_it_grows_the_slices_are_the_log_up_to_its_last_whole_line(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[bytes], packed: bool
) -> None:
    folder = tmp_path_factory.mktemp("log")
    log = folder / ("log.jsonl.gz" if packed else "log.jsonl")
    log.write_bytes(b"")
    for piece in pieces:
        with log.open("ab") as file:
            file.write(gzip.compress(piece) if packed else piece)
        slice_log(reader_of(log), folder / "out")
    whole = b"".join(pieces)
    wanted = whole[: whole.rfind(b"\n") + 1]
    found = slices(folder / "out")
    assert b"".join(found.values()) == wanted
    assert all(each.endswith(b"\n") for each in found.values())
    assert all(name.startswith("0-") for name in found)


@pytest.mark.parametrize("kept", [0, 1, 9, 299])
def test_an_older_copy_of_a_log_has_nothing_new_to_say(tmp_path: Path, kept: int) -> None:
    log, copy, folder = tmp_path / "log.jsonl", tmp_path / "copy.jsonl", tmp_path / "out"
    text = b"".join(b"line %4d\n" % number for number in range(30))
    log.write_bytes(text)
    slice_log(reader_of(log), folder)
    copy.write_bytes(text[:kept])
    assert slice_log(reader_of(copy), folder) == 0
    with log.open("ab") as file:
        file.write(b"more\n")
    assert slice_log(reader_of(log), folder) == 5
    assert b"".join(slices(folder).values()) == text + b"more\n"
