"""What was written comes back, whatever a crash left of the last line."""

from pathlib import Path

import pytest

from broker_runtime.agent.journal import ENTRIES_PER_READ_MAX, Journal


def written(path: Path, count: int) -> bytes:
    journal = Journal(path)
    for seq in range(1, count + 1):
        journal.append({"seq": seq, "kind": "mark", "text": "é\n\u2028" * seq})
    journal.flush()
    journal.sync()
    journal.close()
    return path.read_bytes()


def test_wherever_the_file_is_cut_the_whole_entries_before_are_there_and_more_can_be_added(
    tmp_path: Path,
) -> None:
    path = tmp_path / "journal.jsonl"
    data = written(path, 3)
    for size in range(len(data) + 1):
        path.write_bytes(data[:size])
        journal = Journal(path)
        entries = journal.recover()
        assert len(entries) == data[:size].count(b"\n")
        journal.append({"seq": len(entries) + 1, "kind": "more"})
        journal.flush()
        assert [entry["seq"] for entry in journal.read(0)] == list(range(1, len(entries) + 2))
        journal.close()


def test_damage_before_the_last_line_is_refused_and_nothing_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    lines = written(path, 3).splitlines(keepends=True)
    damaged = lines[0] + b"{]\n" + lines[2]
    path.write_bytes(damaged)
    journal = Journal(path)
    with pytest.raises(ValueError, match="line 2"):
        journal.recover()
    journal.close()
    assert path.read_bytes() == damaged


def test_entries_are_read_from_any_number_on_in_portions(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    count = ENTRIES_PER_READ_MAX + 10
    journal = Journal(path)
    for seq in range(1, count + 1):
        journal.append({"seq": seq, "kind": "mark"})
    journal.flush()
    assert [entry["seq"] for entry in journal.read(5)] == list(range(6, 6 + ENTRIES_PER_READ_MAX))
    assert [entry["seq"] for entry in journal.read(count - 1)] == [count]
    assert journal.read(count + 100) == []
    journal.close()
