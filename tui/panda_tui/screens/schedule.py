"""What happens when: the steps of the run on a time line, planned and actual, and a line to add."""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.suggester import SuggestFromList
from textual.widgets import DataTable, Input, Static

from panda.experiment.folder import RunRefused
from panda.topology.model import PROCESS_ACTIONS, Action
from panda.topology.problems import Problem
from panda_tui import steering
from panda_tui.escaping import lines, plain
from panda_tui.model import Snapshot, StepRow
from panda_tui.screens.filling import fill
from panda_tui.screens.frame import ConsoleScreen
from panda_tui.timeline import Timeline

LATE_S = 0.1
COLUMNS = ("at s", "what", "host", "actual s", "late ms", "how it stands")
EXAMPLES = tuple(f"{1 if action in PROCESS_ACTIONS else 0} {action} " for action in Action)


class ScheduleScreen(ConsoleScreen):
    title_ = "Schedule"
    manual = (
        "Every step of the run with the time that was planned and the time at which its agent did it,"
        " since phase 2"
        " began. Bars are faults for as long as their lease lasts; the upright line is now.\n\n"
        "`a` adds a line, as in a topology file and with the same checks; problems are shown under the cursor"
        " while you type. A time that is past means now:\n\n"
        "    0 CUT Alice Bob for 5s\n\n"
        "    30 MARK half time"
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("a", "add", "add a line"),
        Binding("escape", "close", "close", show=False),
        Binding("n", "next", "next step"),
        Binding("s", "stop", "stop the run"),
    ]
    CSS = """
    ScheduleScreen Timeline { height: auto; max-height: 40%; }
    ScheduleScreen #line { dock: bottom; margin-bottom: 1; }
    ScheduleScreen #problem { height: auto; max-height: 6; color: $text-error; padding: 0 2; }
    """

    class Checked(Message):
        def __init__(self, line: str, problems: tuple[Problem, ...], refused: str = "") -> None:
            super().__init__()
            self.line = line
            self.problems = problems
            self.refused = refused

    def body(self) -> ComposeResult:
        yield Timeline()
        yield DataTable(cursor_type="row", zebra_stripes=True, id="steps")
        yield Static("", id="problem")
        line = Input(placeholder="0 CUT Alice Bob for 5s", id="line", suggester=SuggestFromList(EXAMPLES))
        line.display = False
        yield line

    def on_mount(self) -> None:
        table = self.query_one("#steps", DataTable)
        for column in COLUMNS:
            table.add_column(column, key=column)
        table.focus()

    def show(self, snapshot: Snapshot) -> None:
        self.query_one(Timeline).show(snapshot)
        rows = [(str(step.number), _cells(step, snapshot)) for step in snapshot.steps]
        fill(self.query_one("#steps", DataTable), rows)

    def action_next(self) -> None:
        """To the step that comes next."""
        steps = self.console_app.watched.snapshot.steps
        coming = next((n for n, step in enumerate(steps) if step.actual_s is None), None)
        if coming is not None:
            self.query_one("#steps", DataTable).move_cursor(row=coming)

    def action_stop(self) -> None:
        app = self.console_app
        if app.folder is None:
            app.say("no run is watched", problem=True)
            return
        app.carry_out(steering.stop_deed(app, app.folder))

    # A line

    def action_add(self) -> None:
        if self.console_app.folder is None:
            self.console_app.say("no run is watched", problem=True)
            return
        line = self.query_one("#line", Input)
        line.display = True
        line.focus()

    def action_close(self) -> None:
        line = self.query_one("#line", Input)
        line.display = False
        self.query_one("#problem", Static).update("")
        self.query_one("#steps").focus()

    def on_input_changed(self, changed: Input.Changed) -> None:
        if changed.value.strip():
            self._check(changed.value)
        else:
            self.query_one("#problem", Static).update("")

    @work(thread=True, exclusive=True, group="check")
    def _check(self, line: str) -> None:
        folder = self.console_app.folder
        if folder is None:
            return
        try:
            problems = steering.problems_of(folder, line)
        except (RunRefused, OSError) as refused:
            self.post_message(self.Checked(line, (), str(refused)))
            return
        self.post_message(self.Checked(line, problems))

    def on_schedule_screen_checked(self, message: Checked) -> None:
        if message.line != self.query_one("#line", Input).value:
            return
        told = message.refused
        if message.problems:
            first = message.problems[0]
            caret = " " * max(0, first.place.column - 1) + "^"
            hint = f"  ({first.hint})" if first.hint else ""
            told = f"{caret}\n{first.severity}: {first.message}{hint}"
        self.query_one("#problem", Static).update(lines(told))

    def on_input_submitted(self, submitted: Input.Submitted) -> None:
        line = submitted.value.strip()
        if not line:
            self.action_close()
            return
        self._hand_in(line)

    @work(thread=True, exclusive=True, group="check")
    def _hand_in(self, line: str) -> None:
        """Checked once more, wholly; then asked."""
        app = self.console_app
        assert app.folder is not None
        try:
            steering.check_line(app.folder, line, app.options.token)
            deed = steering.line_deed(app, line)
        except Exception as error:
            from panda_tui.failures import words_of_failure

            app.call_from_thread(app.say, words_of_failure(error), problem=True)
            return
        app.call_from_thread(app.carry_out, deed)
        app.call_from_thread(self._clear)

    def _clear(self) -> None:
        self.query_one("#line", Input).value = ""
        self.action_close()


def _cells(step: StepRow, snapshot: Snapshot) -> tuple[Text, ...]:
    late_s = step.late_s
    timed = step.at_s > 0
    late = Text("")
    if late_s is not None and timed:
        late = Text(f"{1000 * late_s:+.1f}", "red" if late_s > LATE_S else "")
    return (
        Text(f"{step.at_s:g}", justify="right"),
        plain(step.text, "bold" if step.actual_s is None else ""),
        plain(step.host),
        Text("" if step.actual_s is None else f"{step.actual_s:.3f}"),
        late,
        _standing(step, snapshot),
    )


def _standing(step: StepRow, snapshot: Snapshot) -> Text:
    since_s = snapshot.since_t0_s
    if step.error:
        return plain(step.error, "bold red")
    if step.actual_s is None:
        if since_s is None or snapshot.state not in ("running", "phase 1", "schedule done"):
            return Text("not done", "dim")
        due_s = step.at_s - since_s
        return Text(f"in {due_s:.0f} s" if due_s > 0 else "due", "cyan" if due_s > 0 else "yellow")
    if step.for_s and since_s is not None and since_s < step.actual_s + step.for_s:
        return Text(f"heals in {step.actual_s + step.for_s - since_s:.0f} s", "bold yellow")
    return Text("healed" if step.for_s else "done", "green")
