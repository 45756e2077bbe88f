"""Decides how a text becomes a topology, or a list of what is wrong; alone in this room it opens files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePath
from typing import Final

from panda.topology.assembly import assemble
from panda.topology.checks import check_all
from panda.topology.lines import Lines, read_lines
from panda.topology.model import Place, Topology
from panda.topology.problems import PROBLEMS_MAX, Problem, Reading, error, warning
from panda.topology.scanning import character_name, refused_character

TEXT_MAX_CHARACTERS: Final = 8_000_000
STEPS_MAX: Final = 100_000
YAML_SUFFIXES: Final = frozenset((".yaml", ".yml"))
CONSOLE: Final = "console"


def open_topology(path: Path, variables: Mapping[str, object] | None = None) -> Reading:
    """Read a file; that it cannot be read is a problem like any other."""
    try:
        with path.open("rb") as file:
            data = file.read(TEXT_MAX_CHARACTERS * 4 + 1)
    except OSError as problem:
        return Reading(None, (error(Place(str(path)), f"cannot be read: {problem.strerror}"),))
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        line = data.count(b"\n", 0, problem.start) + 1
        column = problem.start - data.rfind(b"\n", 0, problem.start)
        return Reading(None, (error(Place(str(path), line, column), "this is no UTF-8", "save it as UTF-8"),))
    return read_topology(text, str(path), variables)


def read_topology(text: str, path: str, variables: Mapping[str, object] | None = None) -> Reading:
    """Read text or YAML, by the suffix of `path`; a template is filled in before. All problems at once."""
    if len(text) > TEXT_MAX_CHARACTERS:
        return Reading(None, (error(Place(path), f"it has more than {TEXT_MAX_CHARACTERS} characters"),))
    rows = _rows(text)
    refused = list(_refused_characters(rows, path))
    if refused:
        return _told(None, refused, rows, ())
    filled, origins, problems = _filled(text, path, variables or {})
    if filled is None:
        return _told(None, problems, rows, ())
    rows = _rows(filled)
    name, lines = _read(rows, path)
    if len(lines.steps) > STEPS_MAX:
        return Reading(None, (error(Place(path), f"it has more than {STEPS_MAX} steps"),))
    topology = assemble(name or PurePath(path).stem, text, lines.steps, lines.unread)
    problems += [*lines.problems, *check_all(topology)]
    if not topology.steps and not lines.problems:
        problems.append(warning(Place(path), "there is no step in it"))
    return _told(topology, problems, rows, origins)


def add_line(topology: Topology, line: str, path: str = CONSOLE) -> Reading:
    """The topology with one more line, typed at a console; problems are those of the line."""
    lines = read_lines([(Place(path, 1, 1), line)])
    longer = assemble(topology.name, topology.source, [*topology.steps, *lines.steps], lines.unread)
    problems = [each for each in (*lines.problems, *check_all(longer)) if each.place.path == path]
    return _told(longer, problems, [line], ())


def is_yaml(path: str) -> bool:
    return PurePath(path).suffix.lower() in YAML_SUFFIXES


def _read(rows: Sequence[str], path: str) -> tuple[str, Lines]:
    if is_yaml(path):
        from panda.topology.documents import read_document

        return read_document("\n".join(rows), path)
    return "", read_lines((Place(path, number, 1), row) for number, row in enumerate(rows, 1))


def _filled(
    text: str, path: str, variables: Mapping[str, object]
) -> tuple[str | None, Sequence[int], list[Problem]]:
    """The text of a template, with the template's line for each of its own."""
    from panda.topology.templates import MARKS, render

    if not variables and not any(mark in text for mark in MARKS):
        return text, (), []
    rendered = render(text, path, variables)
    return rendered.text, rendered.origins, list(rendered.problems)


def _rows(text: str) -> list[str]:
    return [row.removesuffix("\r") for row in text.split("\n")]


def _refused_characters(rows: Sequence[str], path: str) -> Iterable[Problem]:
    for number, row in enumerate(rows, 1):
        at = refused_character(row)
        if at is not None:
            hint = "remove it; control characters are not part of a topology"
            yield error(Place(path, number, at + 1), f"a topology holds no {character_name(row[at])}", hint)


def _told(
    topology: Topology | None, problems: Iterable[Problem], rows: Sequence[str], origins: Sequence[int]
) -> Reading:
    """In order of place, errors and warnings alike; of too many the first, errors before warnings."""
    found = list(dict.fromkeys(problems))
    if len(found) > PROBLEMS_MAX:
        found.sort(key=lambda each: (not each.refuses, each.place.line, each.place.column))
        rest = len(found) - PROBLEMS_MAX
        kind = error if any(each.refuses for each in found[PROBLEMS_MAX:]) else warning
        found[PROBLEMS_MAX:] = [kind(Place(found[0].place.path), f"and {rest} more problems")]
    found.sort(key=lambda each: (not each.place.line, each.place.line, each.place.column))
    return Reading(topology, tuple(_with_line(each, rows, origins) for each in found))


def _with_line(problem: Problem, rows: Sequence[str], origins: Sequence[int]) -> Problem:
    """With the line as it was read; of a template, at the place in the template."""
    place = problem.place
    if not 0 < place.line <= len(rows):
        return problem
    text = rows[place.line - 1]
    if origins:
        place = replace(place, line=origins[place.line - 1] or place.line)
    return replace(problem, place=place, line_text=text)
