"""Logs of many processes become one, and nothing in them steers a terminal."""

import json

from panda_tui.logbook import FIRST_BYTES, SETTLE_S, Line, Logbook, Page
from panda_tui.watch import Piece


class Files:
    def __init__(self) -> None:
        self.data: dict[tuple[str, str], bytes] = {}

    def write(self, process: str, stream: str, *lines: str) -> None:
        text = "".join(f"{line}\n" for line in lines).encode()
        self.data[process, stream] = self.data.get((process, stream), b"") + text

    def log(self, process: str, at: float, kind: str, **fields: object) -> None:
        self.write(process, "log", json.dumps({"v": 1, "t": at, "proc": process, "kind": kind, **fields}))

    def read(self, process: str, stream: str, offset: int, length: int) -> Piece:
        data = self.data.get((process, stream), b"")
        return Piece(data[offset : offset + length], len(data))


def texts(lines: list[Line]) -> list[str]:
    return [f"{line.process} {line.text}" for line in lines]


def test_lines_stand_in_the_order_of_corrected_time() -> None:
    files = Files()
    files.log("A", 100.0, "ready")
    files.log("B", 105.5, "ready")  # its host's clock is six seconds ahead
    book = Logbook({"A": "h1", "B": "h2"}, ("log",))
    came = book.more(files.read, {"h1": 0.0, "h2": 6.0}, 200.0)
    assert texts(came) == ["B ready", "A ready"]
    assert [line.at for line in came] == [99.5, 100.0]


def test_a_line_waits_until_slower_ones_may_have_come() -> None:
    files = Files()
    book = Logbook({"A": "h", "B": "h"}, ("log",))
    assert book.more(files.read, {}, 99.0) == []
    files.log("A", 100.0, "ready")
    assert book.more(files.read, {}, 100.1) == []
    files.log("B", 99.9, "start")
    assert texts(book.more(files.read, {}, 100.0 + SETTLE_S)) == ["B start", "A ready"]


def test_what_is_read_grows_by_whole_lines() -> None:
    files = Files()
    book = Logbook({"A": "h"}, ("stderr",))
    book.more(files.read, {}, 1.0)
    files.data["A", "stderr"] = b"first\nsec"
    book.more(files.read, {}, 2.0)
    files.data["A", "stderr"] += b"ond\n"
    assert texts(book.more(files.read, {}, 10.0)) == ["A first"]
    assert texts(book.more(files.read, {}, 20.0)) == ["A second"]


def test_of_a_long_file_the_end_is_read_beginning_with_a_whole_line() -> None:
    files = Files()
    files.write("A", "stdout", *(f"line {number:06}" for number in range(FIRST_BYTES // 6)))
    came = Logbook({"A": "h"}, ("stdout",)).more(files.read, {}, 1.0)
    assert came[-1].text == f"line {FIRST_BYTES // 6 - 1:06}"
    assert all(len(line.text) == len("line 000000") for line in came)
    assert len(came) < FIRST_BYTES // 6


def test_a_file_that_was_begun_anew_is_read_from_its_beginning() -> None:
    files = Files()
    files.write("A", "stdout", "a long first life")
    book = Logbook({"A": "h"}, ("stdout",))
    assert texts(book.more(files.read, {}, 1.0)) == ["A a long first life"]
    files.data["A", "stdout"] = b"new\n"
    book.more(files.read, {}, 2.0)
    assert texts(book.more(files.read, {}, 10.0) + book.more(files.read, {}, 20.0)) == ["A new"]


def test_no_control_sequence_survives() -> None:
    files = Files()
    hostile = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202e\x00 [red]x[/red]"
    files.write("A", "stderr", hostile)
    files.log("A", 1.0, "link_down", reason=hostile)
    files.log("A", 1.0, hostile)
    files.data["A", "log"] += b"\xff\xfe\x1b[0m no json\n"
    came = Logbook({"A": "h"}, ("stderr", "log")).more(files.read, {}, 5.0)
    assert len(came) == 4
    assert all(line.text.isprintable() for line in came)
    assert "[red]x[/red]" in came[0].text + came[1].text, "what is no control sequence stays"


def test_errors_are_known_and_found() -> None:
    files = Files()
    files.log("A", 1.0, "ready")
    files.log("A", 2.0, "dial_failed", reason="Connection refused")
    files.log("A", 3.0, "link_up", peer="B")
    files.log("A", 4.0, "deliver", id="x", text="[class,'error']")
    files.write("A", "stderr", "Traceback (most recent call last):")
    files.write("A", "stdout", "[class,'STOCK'],[name,'error']")
    page = Page(100)
    page.add(Logbook({"A": "h"}, ("stderr", "stdout", "log")).more(files.read, {}, 5.0))
    shown = [line.text.split()[0] for line in page.shown]
    assert shown == ["ready", "dial_failed", "link_up", "Traceback"], "traffic is left out"
    assert page.next_wrong(-1, 1) == 1
    assert page.next_wrong(1, 1) == 3
    assert page.next_wrong(3, 1) is None
    assert page.next_wrong(3, -1) == 1
    assert len(page.choose("", traffic=True)) == 6
    assert [line.text for line in page.choose("a log link", traffic=False)] == ["link_up peer=B"]


def test_a_page_has_an_end() -> None:
    page = Page(3)
    page.add(Line(float(number), "A", number, "stdout", str(number)) for number in range(10))
    assert [line.text for line in page.shown] == ["7", "8", "9"]
