"""Being a client of any broker: advertise, subscribe, publish, trace, and see what arrives."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.message import Message
from textual.widgets import Input, RichLog, Static
from textual.worker import Worker

from broker_runtime.client import Trace
from broker_runtime.language import LanguageError
from panda_tui import steering
from panda_tui.deeds import Deed
from panda_tui.escaping import lines, plain
from panda_tui.failures import words_of_failure
from panda_tui.messages.arrivals import Arrivals
from panda_tui.messages.completion import Names, Vocabulary
from panda_tui.messages.desk import FAILURES, Desk, Kind, WordRefused
from panda_tui.messages.line import LineInput
from panda_tui.messages.recall import Batch, batch_of
from panda_tui.messages.words import Line, is_comment, read
from panda_tui.model import Snapshot
from panda_tui.overlay.details import way_text
from panda_tui.routing import tables_of
from panda_tui.screens.frame import ConsoleScreen
from panda_tui.watch import Watch

LINES_KEPT_MAX = 5_000
SHOW_EVERY_S = 0.1
AGAIN_S = 1.0
BATCH_BYTES_MAX = 1 << 20
LEARNED_MAX = 300  # entries of the broker's tables, for completion
STYLES: Mapping[Kind, str] = {Kind.DONE: "green", Kind.PROBLEM: "red", Kind.NOTE: "", Kind.ARRIVED: "cyan"}
MANUAL = """\
You are an ordinary client of the broker named above the line; `connect B` goes to another one. What was
advertised and subscribed ends with the stay.

    a [class,eq,'STOCK'],[price,isPresent,*]      advertise: say what you will publish
    s [class,eq,'STOCK'],[price,>,10]             subscribe; notifications appear as they arrive
    p [class,'STOCK'],[price,20]                  publish
    trace [class,'STOCK'],[price,20]              publish, and see its way; it lights up on the overlay
    inject B publish [class,'STOCK'],[price,20]   the same as if broker B's own client had said it
    batch FILE                                    the lines of a file, step by step

`help` lists the other words. What is wrong with a line is told under its place while you type; Tab completes
words, attributes, operators and values, ↑ brings back earlier lines. Escape stops waiting for an answer, then
a batch, then leaves the line, so that the keys of the other screens work.
"""


@dataclass
class Told(Message):
    kind: Kind
    text: str


@dataclass
class Settled(Message):
    """The stay at a broker has begun, or ended."""

    desk: Desk | None
    why: str = ""


@dataclass
class LineDone(Message):
    ok: bool
    instead: str = ""
    trace: Trace | None = None


@dataclass
class BatchRead(Message):
    batch: Batch


class MessagesScreen(ConsoleScreen):
    title_ = "Messages"
    manual = MANUAL
    CSS = """
    MessagesScreen Horizontal { height: 1fr; }
    MessagesScreen RichLog { width: 1fr; padding: 0 1; background: $background; }
    MessagesScreen #standing { width: 50; border-left: solid $panel; padding: 0 1; display: none; }
    MessagesScreen.-wide #standing { display: block; }
    MessagesScreen #where { height: 1; padding: 0 1; background: $panel; }
    MessagesScreen #help { height: 2; padding: 0 1; }
    """
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (130, "-wide")]  # noqa: RUF012 — Textual declares it so
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "stop, leave", key_display="Esc"),
        Binding("i,enter", "type", "type", show=False),
        Binding("ctrl+n", "skip", "batch: pass over a line", show=False),
        Binding("ctrl+r", "run_on", "batch: run the rest", show=False),
        Binding("ctrl+l", "clear", "empty", show=False),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.broker = ""
        self._watched: Watch | None = None
        self._client_id = f"console-{secrets.token_hex(3)}"
        self._desk: Desk | None = None
        self._why = ""
        self._vocabulary = Vocabulary()
        self._arrivals = Arrivals()
        self._batch: Batch | None = None
        self._running_on = False
        self._waiting = 0  # lines that are being carried out
        self._stay: Worker[None] | None = None

    def body(self) -> ComposeResult:
        with Horizontal():
            yield RichLog(id="log", wrap=True, max_lines=LINES_KEPT_MAX, min_width=1)
            with VerticalScroll(id="standing", can_focus=False):
                yield Static(id="standing-text")
        yield Static(id="where")
        yield LineInput(self._vocabulary, self._names, id="line")
        yield Static(id="help")

    @property
    def line(self) -> LineInput:
        return self.query_one(LineInput)

    def on_mount(self) -> None:
        self.line.focus()
        self.set_interval(SHOW_EVERY_S, self._show_arrivals)

    def show(self, snapshot: Snapshot) -> None:
        watched = self.console_app.watched
        if watched is not self._watched:  # another run: nothing of the old one is left
            self._watched = watched
            self._leave()
        if not self.broker:
            brokers = [each.id for each in snapshot.overlay.brokers if each.living]
            if brokers:
                self.go_to(snapshot.connected_to if snapshot.connected_to in brokers else brokers[0])
        self._show_where()

    # The stay at a broker

    def _leave(self) -> None:
        if self._stay is not None:
            self._stay.cancel()
        self.broker, self._desk, self._why = "", None, ""
        self.workers.cancel_group(self, "lines")

    def go_to(self, broker: str) -> None:
        self._leave()
        self.broker = broker
        self._stay = self.run_worker(self._stay_at(broker), group="stay", exit_on_error=False)

    async def _stay_at(self, broker: str) -> None:
        """As long as this screen is open and nobody wants to go elsewhere; a lost broker is dialled again."""
        while True:
            try:
                async with self.console_app.watched.visit(broker, self._client_id) as client:
                    self.post_message(Settled(Desk(client, self._take, self._vocabulary)))
                    await asyncio.gather(self._learn(broker), client.ended())
            except FAILURES as error:
                self.post_message(Settled(None, words_of_failure(error)))
            await asyncio.sleep(AGAIN_S)

    async def _learn(self, broker: str) -> None:
        """What the broker knows makes good completions."""
        try:
            answer = await self.console_app.watched.control(broker, "tables")
            tables = await asyncio.to_thread(tables_of, answer.tables())
        except FAILURES:
            return  # then there is less to complete
        for entry in (*tables.advertisements, *tables.subscriptions)[:LEARNED_MAX]:
            if entry.meaning is not None and not entry.is_control:
                self._vocabulary.learn_predicates(entry.meaning)

    def _take(self, kind: Kind, text: str) -> None:
        if kind is Kind.ARRIVED:
            self._arrivals.add(text)
        else:
            self.post_message(Told(kind, text))

    def on_settled(self, message: Settled) -> None:
        message.stop()
        if message.desk is not None:
            self._write(Kind.NOTE, f"a client of {self.broker}, as {self._client_id}", "dim")
        elif message.why != self._why:
            self._write(Kind.PROBLEM, f"{self.broker}: {message.why}")
        self._desk, self._why = message.desk, message.why
        self._show_where()

    def _names(self) -> Names:
        standing = self._desk.standing if self._desk is not None else None
        return Names(
            [each.id for each in self.console_app.watched.snapshot.overlay.brokers],
            list(standing.advertised) if standing else (),
            list(standing.subscribed) if standing else (),
        )

    # Lines

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        if is_comment(event.value):
            return
        self.line.recalled.add(event.value)
        self._write(Kind.NOTE, f"> {event.value}", "bold")
        try:
            line = read(event.value, datetime.now(UTC))
        except LanguageError as error:
            self._write(Kind.PROBLEM, "\n".join(each.pointing() for each in error.problems))
            self._running_on = False
            return  # it stays, to be mended
        self.line.clear()
        self._begin(line)

    def _begin(self, line: Line) -> None:
        name, rest = line.word.name, line.rest
        if name == "connect":
            self.go_to(rest)
            self._finish(LineDone(ok=True))
        elif name == "clear":
            self.action_clear()
            self._finish(LineDone(ok=True))
        elif name in ("pause", "resume", "shutdown"):
            self.console_app.carry_out(steering.broker_deed(self.console_app, name, rest))
            self._finish(LineDone(ok=True))
        elif name == "cut":
            self.console_app.carry_out(self._cut(*rest.split()))
            self._finish(LineDone(ok=True))
        elif name == "batch":
            self.run_worker(self._open_batch(rest), group="batch", exit_on_error=False)
        else:
            self._waiting += 1
            self._show_where()
            self.run_worker(self._carry_out(line, self._desk), group="lines", exit_on_error=False)

    async def _carry_out(self, line: Line, desk: Desk | None) -> None:
        done = LineDone(ok=False)
        try:
            if desk is None:
                raise WordRefused(self._why or f"not connected to {self.broker or 'any broker'} yet")
            desk.traced = None
            await desk.carry_out(line)
            done = LineDone(ok=True, trace=desk.traced)
        except FAILURES as error:
            self.post_message(Told(Kind.PROBLEM, str(error)))
            done = LineDone(ok=False, instead=getattr(error, "instead", ""))
        except asyncio.CancelledError:
            self.post_message(Told(Kind.PROBLEM, "no longer waited for"))
            raise
        finally:
            self.post_message(done)

    def on_line_done(self, message: LineDone) -> None:
        message.stop()
        self._waiting -= 1
        self._finish(message)

    def _finish(self, done: LineDone) -> None:
        if done.trace is not None:
            self.console_app.trace = done.trace
            self._log.write(way_text(done.trace))
        if done.instead and not self.line.value:
            self.line.put(done.instead)
            self._write(Kind.NOTE, "Enter says this first; ↑ brings back the other.", "dim")
        elif self._batch is not None:
            self._step_batch(done)
        self._show_where()

    def _cut(self, broker: str, peer: str) -> Deed:
        watched = self.console_app.watched

        async def act(force: bool) -> str:
            await watched.control(broker, "cut", peer=peer)
            return f"{broker}: the connection to {peer} is cut"

        means = "The connection is broken under whatever is on it. Its ends dial again, and nothing is lost."
        record = {"action": "cut", "broker": broker, "peer": peer}
        return Deed(f"Cut {broker} – {peer}", means, act, record, self.console_app.folder)

    # Batches: the next line stands ready, Enter carries it out

    async def _open_batch(self, name: str) -> None:
        try:
            text = await asyncio.to_thread(_read, name)
        except (OSError, ValueError) as error:
            self.post_message(Told(Kind.PROBLEM, f"{name}: {getattr(error, 'strerror', None) or error}"))
        else:
            self.post_message(BatchRead(batch_of(name, text)))

    def on_batch_read(self, message: BatchRead) -> None:
        message.stop()
        self._batch = message.batch
        self._offer_next()

    def _offer_next(self) -> None:
        batch = self._batch
        assert batch is not None
        upcoming = batch.next
        if upcoming is None:
            self._end_batch(batch.caption())
            return
        self.line.put(upcoming[1])
        self._show_where()
        if self._running_on:
            self.call_later(self.line.action_submit)

    def _step_batch(self, done: LineDone) -> None:
        if not done.ok:
            self._running_on = False
        assert self._batch is not None
        self._batch.step()
        self._offer_next()

    def _end_batch(self, why: str) -> None:
        self._batch, self._running_on = None, False
        self._write(Kind.NOTE, why, "dim")
        self._show_where()

    def action_skip(self) -> None:
        if self._batch is not None:
            self._batch.step()
            self._offer_next()

    def action_run_on(self) -> None:
        if self._batch is not None:
            self._running_on = True
            self.call_later(self.line.action_submit)

    # Showing

    @property
    def _log(self) -> RichLog:
        return self.query_one("#log", RichLog)

    def on_told(self, message: Told) -> None:
        message.stop()
        self._write(message.kind, message.text)

    def _write(self, kind: Kind, text: str, style: str = "") -> None:
        shown = lines(text)
        shown.stylize(style or STYLES[kind])
        self._log.write(shown)

    def _show_arrivals(self) -> None:
        left_out, arrived = self._arrivals.take()
        if left_out:
            self._write(Kind.NOTE, f"… {left_out} more notifications", "dim")
        if arrived:
            self._write(Kind.ARRIVED, "\n".join(arrived))
            self._show_where()

    def _show_where(self) -> None:
        client = self._desk.client if self._desk is not None else None
        text = Text(no_wrap=True, overflow="ellipsis", end="")
        if client is not None and client.connected:
            text.append("● ", "green").append_text(plain(f"at {self.broker} as {client.id}"))
        else:
            text.append("○ ", "bold red").append_text(
                plain(f"{self.broker or 'no broker'}: {self._why or 'connecting'}")
            )
        if self._waiting:
            text.append(f" · {self._waiting} being carried out (Escape stops waiting)", "yellow")
        if self._batch is not None:
            text.append_text(
                plain(f" · {self._batch.caption()}: Enter, ^n pass over, ^r run the rest, Esc end", "cyan")
            )
        elif self._arrivals.total:
            total = self._arrivals.total
            text.append(f" · {total} notification{'s' if total != 1 else ''}", "dim")
        self.query_one("#where", Static).update(text)
        standing = "\n".join(self._desk.standing_lines()) if self._desk is not None else ""
        self.query_one("#standing-text", Static).update(
            lines(standing or "nothing is advertised or subscribed")
        )

    def on_line_input_helped(self, event: LineInput.Helped) -> None:
        event.stop()
        self.query_one("#help", Static).update(event.text)

    # Keys

    def action_type(self) -> None:
        self.line.focus()

    def action_clear(self) -> None:
        self._log.clear()

    def action_back(self) -> None:
        if self._waiting:
            self.workers.cancel_group(self, "lines")
        elif self._batch is not None:
            self.line.clear()
            self._end_batch(f"{self._batch.name} is left")
        elif self.line.has_focus:
            self._log.focus()
        else:
            self.line.focus()


def _read(name: str) -> str:
    with Path(name).expanduser().open("rb") as file:
        data = file.read(BATCH_BYTES_MAX + 1)
    if len(data) > BATCH_BYTES_MAX:
        raise ValueError(f"it is larger than {BATCH_BYTES_MAX >> 20} MB")
    return data.decode()
