"""Files come home whole, only what grew is fetched, and no name leads out of their folder."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_runtime.agent.protocol import READ_BYTES_MAX
from panda.deploy.collecting import NameRefused, collect, place
from panda.deploy.session import AgentSession
from panda.hosts.remote import HostError
from tests.support.agents import ScriptedAgent


class Files(ScriptedAgent):
    """An agent that offers files; it counts what was asked for."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        super().__init__()
        self.files = dict(files)
        self.sent_bytes = 0

    def answer(self, do: str, message: Mapping[str, Any]) -> Mapping[str, Any]:
        if do == "files":
            return {"files": [{"path": path, "size": len(data)} for path, data in self.files.items()]}
        assert do == "read"
        data = self.files[message["path"]][message["offset"] : message["offset"] + message["length"]]
        self.sent_bytes += len(data)
        packed = zlib.compress(data) if message.get("compressed") else data
        return {"data": base64.b64encode(packed).decode(), "compressed": bool(message.get("compressed"))}


def fetch(agent: Files, target: Path) -> list[str]:
    session = AgentSession("h", agent)
    try:
        return collect(session, target).problems
    finally:
        session.close()


def test_files_come_home_whole_also_those_that_take_several_reads(tmp_path: Path) -> None:
    large = bytes(range(256)) * (2 * READ_BYTES_MAX // 256) + b"the end"
    agent = Files({"processes/A/log.jsonl": large, "processes/A/stderr": b"", "journal.jsonl": b"{}\n"})
    assert fetch(agent, tmp_path) == []
    assert (tmp_path / "processes/A/log.jsonl").read_bytes() == large
    assert (tmp_path / "journal.jsonl").read_bytes() == b"{}\n"
    assert (tmp_path / "processes/A/stderr").read_bytes() == b""


def test_the_second_time_only_what_grew_is_fetched(tmp_path: Path) -> None:
    agent = Files({"processes/A/log.jsonl": b"one\n" * 1000})
    fetch(agent, tmp_path)
    again = Files({"processes/A/log.jsonl": b"one\n" * 1000 + b"two\n"})
    fetch(again, tmp_path)
    assert again.sent_bytes == len(b"two\n")
    assert (tmp_path / "processes/A/log.jsonl").read_bytes() == b"one\n" * 1000 + b"two\n"


def test_a_file_that_became_shorter_is_another_one_and_is_fetched_anew(tmp_path: Path) -> None:
    fetch(Files({"journal.jsonl": b"old and long\n"}), tmp_path)
    fetch(Files({"journal.jsonl": b"new\n"}), tmp_path)
    assert (tmp_path / "journal.jsonl").read_bytes() == b"new\n"


@pytest.mark.parametrize("name", ["../x", "/etc/x", "a/../../x", "", ".", "a\\b", "a/\x1b[2J/b", "x" * 300])
def test_a_name_that_leads_elsewhere_is_refused_and_the_rest_still_comes(tmp_path: Path, name: str) -> None:
    target = tmp_path / "inner"
    problems = fetch(Files({name: b"evil", "journal.jsonl": b"good"}), target)
    assert len(problems) == 1
    assert {path.name for path in tmp_path.iterdir()} == {"inner"}
    assert {path.name for path in target.iterdir()} == {"journal.jsonl"}


def test_nothing_is_written_through_a_link_that_lies_in_the_way(tmp_path: Path) -> None:
    outside, target = tmp_path / "outside", tmp_path / "inner"
    outside.mkdir()
    target.mkdir()
    (target / "processes").symlink_to(outside)
    (target / "journal.jsonl").symlink_to(outside / "journal.jsonl")
    problems = fetch(Files({"processes/A": b"evil", "journal.jsonl": b"evil"}), target)
    assert len(problems) == 2
    assert list(outside.iterdir()) == []


@given(st.text(max_size=40))
def test_whatever_a_host_calls_its_files_they_stay_inside(name: str) -> None:
    target = Path("/nowhere/target")
    try:
        parts = place("h", _Dry(target), name).parts
    except (NameRefused, ValueError):
        return
    assert parts[: len(target.parts)] == target.parts
    assert ".." not in parts


class _Dry(type(Path())):  # type: ignore[misc]
    """A path that makes no folders."""

    def mkdir(self, *_: Any, **__: Any) -> None:
        pass


def test_an_answer_that_is_larger_than_what_was_asked_for_is_refused(tmp_path: Path) -> None:
    class Bomb(Files):
        def answer(self, do: str, message: Mapping[str, Any]) -> Mapping[str, Any]:
            if do == "files":
                return {"files": [{"path": "journal.jsonl", "size": 10}]}
            bomb = zlib.compress(b"\0" * (64 << 20))
            return {"data": base64.b64encode(bomb).decode(), "compressed": True}

    with pytest.raises(HostError, match=r"more of journal\.jsonl than was asked for"):
        fetch(Bomb({}), tmp_path)
