"""Decides how a template becomes a topology's text: Jinja2 in a sandbox, with limits; never reads a file.

Of Jinja2 there are variables, conditions, loops, `set` and the filters and functions named here; no macros,
no includes, no methods: what is left cannot make much from little. Every line comes with the line of the
template that it stems from. No newline is trimmed after a tag, as a step is a line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from jinja2 import StrictUndefined, TemplateError, TemplateSyntaxError, UndefinedError, meta, nodes
from jinja2.environment import Template
from jinja2.exceptions import SecurityError
from jinja2.ext import Extension
from jinja2.lexer import TOKEN_DATA, Token, TokenStream
from jinja2.sandbox import ImmutableSandboxedEnvironment

from broker_runtime.dialect.options import nearest
from panda.topology.model import Place
from panda.topology.problems import Problem, error, shown, warning

RENDERED_MAX_CHARACTERS: Final = 8_000_000
STRING_MAX_CHARACTERS: Final = 100_000
LOOP_ROUNDS_MAX: Final = 200_000
INTEGER_MAX: Final = 10**12

MARKS: Final = ("{{", "{%", "{#")
_NUMBER_FILTERS: Final = frozenset(("abs", "float", "int", "max", "min", "round", "sum"))
_TEXT_FILTERS: Final = frozenset(("d", "default", "lower", "string", "trim", "upper"))
_LIST_FILTERS: Final = frozenset(("count", "first", "last", "length", "list", "sort", "unique"))
_FILTERS: Final = _NUMBER_FILTERS | _TEXT_FILTERS | _LIST_FILTERS
_OWN_FILTERS: Final = frozenset(("join",))
_FUNCTIONS: Final = frozenset(("range", "namespace", "cycle", "changed"))
_REFUSED: Final[Mapping[type[nodes.Node], str]] = {
    nodes.Macro: "macros",
    nodes.CallBlock: "macros",
    nodes.FilterBlock: "filter blocks",
    nodes.AssignBlock: "blocks",
    nodes.Block: "blocks",
    nodes.Include: "includes",
    nodes.Import: "imports",
    nodes.FromImport: "imports",
    nodes.Extends: "inheritance",
    nodes.Pow: "powers",
}
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_INTEGER = re.compile(r"[+-]?[0-9]{1,12}")
_DECIMAL = re.compile(r"[+-]?[0-9]{1,12}\.[0-9]{1,12}")
_LINE_END = re.compile("\x02([0-9]{1,7})\x03")


@dataclass(frozen=True, slots=True)
class Rendered:
    """The text, and for each of its lines the template's line; None when it was refused."""

    text: str | None
    origins: tuple[int, ...] = ()
    problems: tuple[Problem, ...] = ()


def is_template(text: str) -> bool:
    return any(mark in text for mark in MARKS)


def read_variable(text: str) -> tuple[str, object]:
    """`brokers=10`; whole and decimal numbers, true and false are such, the rest is text. ValueError."""
    name, equals, value = text.partition("=")
    if not equals or not _VARIABLE.fullmatch(name):
        raise ValueError(f"{shown(text)} is no variable: write NAME=VALUE, such as brokers=10")
    if _INTEGER.fullmatch(value):
        return name, int(value)
    if _DECIMAL.fullmatch(value):
        return name, float(value)
    return name, {"true": True, "false": False}.get(value.lower(), value)


def render(text: str, path: str, variables: Mapping[str, object]) -> Rendered:
    environment = _Environment()
    try:
        tree = environment.parse(text)
        refused = list(_refused(tree, path))
        if refused:
            return Rendered(None, problems=tuple(refused))
        unused = _unused(tree, path, variables)
        _bound(tree)
        template = Template.from_code(environment, environment.compile(tree), environment.globals.copy())
        return _split(_limited(template.generate(**variables)), unused)
    except TemplateSyntaxError as problem:
        return _failed(path, problem.lineno, _sentence(problem.message), "see docs/topology-language.md")
    except UndefinedError as problem:
        message = _sentence(problem.message)
        return _failed(path, _line_of(problem), message, "set it with -D NAME=VALUE, or give a default")
    except (TemplateError, SecurityError) as problem:
        return _failed(path, _line_of(problem), _sentence(problem.message), "")
    except (ArithmeticError, LookupError, TypeError, ValueError, RecursionError, MemoryError) as problem:
        return _failed(path, _line_of(problem), f"the template fails: {_sentence(str(problem))}", "")


class TooMuch(TemplateError):
    """The template would make more than anybody can want."""


class _LineEnds(Extension):
    """Notes at the end of each line which line of the template it was."""

    def filter_stream(self, stream: TokenStream) -> Iterator[Token]:
        for token in stream:
            if token.type == TOKEN_DATA:
                first, *others = token.value.split("\n")
                parts = [first]
                for number, part in enumerate(others, token.lineno):
                    parts += [f"\x02{number}\x03\n", part]
                token = Token(token.lineno, token.type, "".join(parts))
            yield token


class _Environment(ImmutableSandboxedEnvironment):
    intercepted_binops = frozenset(("+", "*", "%"))

    def __init__(self) -> None:
        super().__init__(
            undefined=StrictUndefined,
            extensions=[_LineEnds],
            keep_trailing_newline=True,
            auto_reload=False,
            cache_size=0,
        )
        self.filters = {name: self.filters[name] for name in _FILTERS} | {
            "join": _joined,
            "_rounds": self._rounds,
            "_short": _short,
        }
        self.globals = {name: self.globals[name] for name in ("range", "namespace")}
        self._left = LOOP_ROUNDS_MAX

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        """Methods of values are not for templates: some of them make much from little."""
        return not isinstance(obj, (str, int, float, list, tuple, dict)) and super().is_safe_attribute(
            obj, attr, value
        )

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        if operator == "%" and isinstance(left, str):
            raise SecurityError("a text is not formatted with %: use ~")
        if operator == "*" and not (_is_number(left) and _is_number(right)):
            raise SecurityError("only numbers are multiplied")
        return _short(super().call_binop(context, operator, left, right))

    def _rounds(self, items: Any) -> Iterator[Any]:
        for item in items:
            self._left -= 1
            if self._left < 0:
                raise TooMuch(f"loops go round at most {LOOP_ROUNDS_MAX} times in all")
            yield item


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float))


def _joined(items: Any, separator: object = "") -> str:
    between, parts, length = str(_short(separator)), [], 0
    for item in items:
        parts.append(str(_short(item)))
        length += len(parts[-1]) + len(between)
        if length > STRING_MAX_CHARACTERS:
            raise TooMuch(f"a value has at most {STRING_MAX_CHARACTERS} characters")
    return between.join(parts)


def _short(value: Any) -> Any:
    if _size(value, STRING_MAX_CHARACTERS) > STRING_MAX_CHARACTERS:
        raise TooMuch(f"a value has at most {STRING_MAX_CHARACTERS} characters or members")
    if isinstance(value, (int, float)) and abs(value) > INTEGER_MAX:
        raise TooMuch(f"a number is at most {INTEGER_MAX}")
    return value


def _size(value: object, enough: int) -> int:
    """Characters, or members at any depth; stops counting soon after enough."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, dict):
        value = [*value, *value.values()]
    if not isinstance(value, (list, tuple)):
        return 1
    size = 1
    for member in value:
        if size > enough:
            break
        size += _size(member, enough - size)
    return size


def _refused(tree: nodes.Template, path: str) -> Iterator[Problem]:
    for node in tree.find_all(nodes.Node):
        what = _REFUSED.get(type(node), "")
        if isinstance(node, nodes.Filter) and node.name not in _FILTERS | _OWN_FILTERS:
            what = f"the filter {node.name}{nearest(node.name, _FILTERS | _OWN_FILTERS)}"
        elif isinstance(node, nodes.Call) and _called(node) not in _FUNCTIONS:
            what = "calls of anything but range, namespace and loop.cycle"
        elif isinstance(node, nodes.For) and node.recursive:
            what = "recursive loops"
        if what:
            hint = "a template has variables, conditions, loops, set and a few filters"
            yield error(Place(path, node.lineno, 1), f"{what}: not in a topology's template", hint)


def _called(call: nodes.Call) -> str:
    if isinstance(call.node, nodes.Name):
        return call.node.name if call.node.name in ("range", "namespace") else ""
    loop = isinstance(call.node, nodes.Getattr) and isinstance(call.node.node, nodes.Name)
    return call.node.attr if loop and call.node.node.name == "loop" else ""  # type: ignore[attr-defined]


def _unused(tree: nodes.Template, path: str, variables: Mapping[str, object]) -> tuple[Problem, ...]:
    asked = meta.find_undeclared_variables(tree)
    return tuple(
        warning(Place(path), f"nothing asks for the variable {name}", nearest(name, asked).strip(" ()"))
        for name in variables
        if name not in asked
    )


def _bound(tree: nodes.Template) -> None:
    """Have each loop counted, and each text that is put together measured."""
    for loop in list(tree.find_all(nodes.For)):
        loop.iter = _filtered(loop.iter, "_rounds")
    for node in list(tree.find_all(nodes.Assign)):
        node.node = _filtered(node.node, "_short")


def _filtered(node: nodes.Node, name: str) -> nodes.Filter:
    filtered = nodes.Filter(cast(nodes.Expr, node), name, [], [], None, None, lineno=node.lineno)
    filtered.environment = node.environment
    return filtered


def _limited(pieces: Iterator[str]) -> str:
    parts, length = [], 0
    for piece in pieces:
        length += len(piece)
        if length > RENDERED_MAX_CHARACTERS:
            raise TooMuch(f"a template makes at most {RENDERED_MAX_CHARACTERS} characters")
        parts.append(piece)
    return "".join(parts)


def _split(text: str, problems: tuple[Problem, ...]) -> Rendered:
    lines: list[str] = []
    origins: list[int] = []
    origin = 0
    for line in text.split("\n"):
        found = _LINE_END.findall(line)
        origin = int(found[-1]) if found else origin + (not origins)
        lines.append(_LINE_END.sub("", line))
        origins.append(origin)
    return Rendered("\n".join(lines), tuple(origins), problems)


def _failed(path: str, line: int, message: str, hint: str) -> Rendered:
    return Rendered(None, problems=(error(Place(path, line, 1), message, hint),))


def _line_of(problem: BaseException) -> int:
    """The template's line in the traceback, which Jinja2 has rewritten."""
    line, trace = 0, problem.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename in ("<template>", "<unknown>"):
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


def _sentence(message: str | None) -> str:
    return shown((message or "refused").replace("\n", " "))
