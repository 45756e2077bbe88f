"""Decides what a timed line says: `<time> VERB …`; never whether the steps make sense together.

A line that cannot be read becomes problems, and the ids on it are remembered as unread.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from broker_runtime.dialect.options import nearest
from panda.topology.model import (
    LEASED_ACTIONS,
    PROCESS_ACTIONS,
    VALUED_ACTIONS,
    Action,
    Place,
    Step,
)
from panda.topology.problems import Problem, error, shown, warning
from panda.topology.quantities import TIME_EXAMPLES, read_rate, read_share, read_time
from panda.topology.scanning import LineScanner, ScanningError, Token

LINE_MAX_CHARACTERS: Final = 100_000
ARGUMENTS_MAX: Final = 1_000

EXAMPLES: Final[Mapping[Action, str]] = {
    Action.ADD: "0.0 ADD BrokerA 10.0.1.1 startbroker.sh -p 10000 -i BrokerA",
    Action.REMOVE: "3500 REMOVE BrokerA 10.0.1.1",
    Action.KILL: "10 KILL BrokerA for 5s",
    Action.PAUSE: "10 PAUSE BrokerA for 5s",
    Action.RESUME: "10 RESUME BrokerA",
    Action.RESTART: "10 RESTART BrokerA",
    Action.CUT: "10 CUT BrokerA BrokerB for 5s",
    Action.PARTITION: "10 PARTITION A,B | C,D for 10s",
    Action.DELAY: "10 DELAY BrokerA BrokerB 50ms for 30s",
    Action.LOSS: "10 LOSS BrokerA BrokerB 5% for 10s",
    Action.RATE: "10 RATE BrokerA BrokerB 100kB/s for 10s",
    Action.HEAL: "20 HEAL BrokerA BrokerB",
    Action.MARK: "10 MARK load doubles",
}
_VALUES: Final[Mapping[Action, Callable[[str], float]]] = {
    Action.DELAY: read_time,
    Action.LOSS: read_share,
    Action.RATE: read_rate,
}
_MEMBER = re.compile(r"[^,|]+|[,|]")
_FOR: Final = "for"


@dataclass(slots=True)
class Lines:
    """What lines say. Steps are numbered later, when they are put in order."""

    steps: list[Step] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    unread: set[str] = field(default_factory=set)


def read_lines(numbered: Iterable[tuple[Place, str]]) -> Lines:
    """Read lines that stand at these places."""
    lines = Lines()
    for place, text in numbered:
        read_line(place, text, lines)
    return lines


def read_line(place: Place, text: str, into: Lines, *, exact: bool = True) -> None:
    """Read one line; `place` is where its first character stands, or if not exact, all of it."""
    line = _Line(place, into, exact)
    try:
        line.read(text)
    except ScanningError as refused:
        into.problems.append(error(line.at(refused.column), refused.message, refused.hint))


class _Refused(Exception):
    """The rest of the line cannot be read."""


class _Line:
    """One line being read."""

    def __init__(self, place: Place, into: Lines, exact: bool) -> None:
        self._place = place
        self._exact = exact
        self._into = into
        self._spots: dict[str, Place] = {}
        self._start = place
        self._at_s: float | None = None
        self._for_s: float | None = None

    def at(self, column: int) -> Place:
        start = self._place
        return Place(start.path, start.line, start.column + column - 1) if self._exact else start

    def read(self, text: str) -> None:
        if len(text) > LINE_MAX_CHARACTERS:
            raise ScanningError(1, f"a line has at most {LINE_MAX_CHARACTERS} characters", "split it")
        scanner = LineScanner(text)
        first = scanner.next()
        if first is None:
            return
        try:
            self._at_s = self._time(first)
            self._start = self.at(first.column)
            verb = scanner.next()
            if verb is None:
                raise self._refuse(scanner.column, "a verb is missing", f"such as {EXAMPLES[Action.ADD]}")
            action = self._action(verb)
            if action is Action.MARK:
                step = self._mark(scanner)
            else:
                step = self._step(action, scanner)
        except _Refused:
            self._remember(text)
            return
        except ScanningError:
            self._remember(text)
            raise
        if self._at_s is None:
            self._forget(step)
        else:
            self._into.steps.append(step)

    def _step(self, action: Action, scanner: LineScanner) -> Step:
        words = scanner.words()
        if action is Action.ADD:
            return self._add(words, scanner.column)
        words = self._lease(action, words)
        if action in PROCESS_ACTIONS:
            return self._on_process(action, words, scanner.column)
        if action is Action.PARTITION:
            return self._partition(words, scanner.column)
        return self._on_link(action, words, scanner.column)

    def _add(self, words: list[Token], end: int) -> Step:
        if len(words) < 3:
            missing = ("an id, a host and a command are", "a host and a command are", "a command is")[
                len(words)
            ]
            raise self._refuse(end, f"{missing} missing", _like(Action.ADD))
        if len(words) - 2 > ARGUMENTS_MAX:
            raise self._refuse(
                words[0].column,
                f"a command has at most {ARGUMENTS_MAX} words",
                "put them into a file",
            )
        self._spot("process", words[0])
        self._spot("host", words[1])
        for index, word in enumerate(words[2:]):
            self._spot(f"argument {index}", word)
        return self._made(Action.ADD, words[0].text, words[1].text, command=tuple(w.text for w in words[2:]))

    def _on_process(self, action: Action, words: list[Token], end: int) -> Step:
        if not words:
            raise self._refuse(end, f"{action} of what? The id of a process is missing", _like(action))
        if len(words) > 2:
            raise self._refuse(words[2].column, f"{shown(words[2].text)} is too much", _like(action))
        self._spot("process", words[0])
        if len(words) == 2:
            self._spot("host", words[1])
        elif action is Action.REMOVE:
            self._into.problems.append(
                warning(self.at(end), "the host is missing", f"write it as the papers do: {_like(action)}")
            )
        return self._made(action, words[0].text, words[1].text if len(words) == 2 else "")

    def _on_link(self, action: Action, words: list[Token], end: int) -> Step:
        value = None
        wanted = 3 if action in VALUED_ACTIONS else 2
        if action is Action.HEAL and len(words) < 2:
            wanted = len(words)
        if len(words) < wanted:
            what = "two processes" if len(words) < 2 else "a value"
            raise self._refuse(end, f"{action} needs {what}", _like(action))
        if len(words) > wanted:
            raise self._refuse(
                words[wanted].column, f"{shown(words[wanted].text)} is too much", _like(action)
            )
        if action in VALUED_ACTIONS:
            value = self._quantity(action, words.pop())
        for word in words:
            self._spot(f"member {word.text}", word)
        return self._made(action, groups=tuple((word.text,) for word in words), value=value)

    def _partition(self, words: list[Token], end: int) -> Step:
        groups: list[list[str]] = [[]]
        for word in words:
            for match in _MEMBER.finditer(word.text):
                if match[0] == "|":
                    groups.append([])
                elif match[0] != ",":
                    groups[-1].append(match[0])
                    column = word.column + (0 if word.quoted else match.start())
                    self._spots.setdefault(f"member {match[0]}", self.at(column))
        if len(groups) < 2 or not all(groups):
            column = words[0].column if words else end
            raise self._refuse(column, "PARTITION needs two groups", _like(Action.PARTITION))
        return self._made(Action.PARTITION, groups=tuple(map(tuple, groups)))

    def _mark(self, scanner: LineScanner) -> Step:
        remark = scanner.remark()
        extra = scanner.next()
        if remark is None or not remark.text:
            raise self._refuse(scanner.column, "MARK needs a text", _like(Action.MARK))
        if extra is not None:
            raise self._refuse(extra.column, "more follows the quoted text", "put all of it in quotes")
        self._spot("text", remark)
        return self._made(Action.MARK, text=remark.text)

    def _made(
        self,
        action: Action,
        process: str = "",
        host: str = "",
        *,
        command: tuple[str, ...] = (),
        groups: tuple[tuple[str, ...], ...] = (),
        value: float | None = None,
        text: str = "",
    ) -> Step:
        return Step(
            number=0,
            at_s=self._at_s or 0.0,
            action=action,
            place=self._start,
            process=process,
            host=host,
            command=command,
            groups=groups,
            value=value,
            for_s=self._for_s,
            text=text,
            spots=self._spots,
        )

    def _lease(self, action: Action, words: list[Token]) -> list[Token]:
        """Take `for <time>` off the end."""
        places = [index for index, word in enumerate(words) if word.text.lower() == _FOR and not word.quoted]
        if not places:
            return words
        at = places[-1]
        if action not in LEASED_ACTIONS:
            raise self._refuse(words[at].column, f"{action} takes no lease", f"write {EXAMPLES[action]}")
        if len(words) != at + 2:
            raise self._refuse(words[at].column, "for needs a time, and ends the line", _like(action))
        try:
            self._for_s = read_time(words[at + 1].text)
            if not self._for_s:
                raise ValueError("a lease is longer than 0")
        except ValueError as problem:
            raise self._refuse(
                words[at + 1].column, f"for {shown(words[at + 1].text)}: {problem}", TIME_EXAMPLES
            ) from None
        self._spot("for", words[at + 1])
        return words[:at]

    def _time(self, word: Token) -> float | None:
        """None when it is refused; the rest of the line is read nevertheless."""
        try:
            return read_time(word.text)
        except ValueError as problem:
            if word.text.upper() in Action.__members__:
                hint = f"write 0.0 {word.text} …"
                raise self._refuse(word.column, "a line begins with a time", hint) from None
            message = f"{shown(word.text)}: {problem}"
            self._into.problems.append(error(self.at(word.column), message, TIME_EXAMPLES))
            return None

    def _action(self, word: Token) -> Action:
        try:
            return Action(word.text.upper())
        except ValueError:
            close = nearest(word.text.upper(), list(Action)).strip(" ()")
            verbs = ", ".join(Action)
            message = f"unknown verb {shown(word.text)}"
            raise self._refuse(word.column, message, close or f"the verbs are {verbs}") from None

    def _quantity(self, action: Action, word: Token) -> float:
        try:
            return _VALUES[action](word.text)
        except ValueError as problem:
            message = f"{action} {shown(word.text)}: {problem}"
            raise self._refuse(word.column, message, _like(action)) from None

    def _spot(self, part: str, word: Token) -> None:
        self._spots.setdefault(part, self.at(word.column))

    def _refuse(self, column: int, message: str, hint: str) -> _Refused:
        self._into.problems.append(error(self.at(column), message, hint))
        return _Refused()

    def _forget(self, step: Step) -> None:
        if step.action is Action.ADD:
            self._into.unread.add(step.process)

    def _remember(self, text: str) -> None:
        """The id of an ADD line that could not be read."""
        words = text.split()
        verbs = [index for index, word in enumerate(words[:2]) if word.upper() == Action.ADD]
        self._into.unread.update(words[index + 1] for index in verbs if index + 1 < len(words))


def _like(action: Action) -> str:
    return f"such as {EXAMPLES[action]}"
