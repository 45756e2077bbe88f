"""Decides what subscriptions and advertisements mean: match, induce, cover and overlap.

A subscription asks for publications that carry all of its attributes; an advertisement promises
publications that carry none but its attributes (every attribute is nullable, `class` is not). So the two
read their attribute sets in opposite directions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from broker_runtime.language.constraints import Constraint, constraint_of
from broker_runtime.language.limits import ATTRIBUTES_MAX_PER_PUBLICATION
from broker_runtime.language.predicates import Op, Predicate, Test, Variable, compiled, predicate
from broker_runtime.language.values import Value, check_attribute, checked

Content = Mapping[str, Value]

CLASS = "class"


class Conjunction:
    """Predicates in the order written, with the constraint that each attribute's predicates make."""

    __slots__ = ("_constraints", "_tests", "predicates")

    predicates: tuple[Predicate, ...]

    def __init__(self, predicates: Iterable[Predicate]) -> None:
        self.predicates = tuple(predicates)
        if not any(p.attribute == CLASS for p in self.predicates):
            raise ValueError("the class is missing: add a predicate such as [class,eq,'STOCK']")
        self._tests: tuple[tuple[str, Test], ...] | None = None
        self._constraints: dict[str, Constraint] | None = None

    @property
    def constraints(self) -> dict[str, Constraint]:
        """Attribute → constraint, in the order of first mention. Variables leave only presence."""
        if self._constraints is None:
            grouped: dict[str, list[Predicate]] = {}
            for each in self.predicates:
                bound = grouped.setdefault(each.attribute, [])
                if each.bound:
                    bound.append(each)
            self._constraints = {name: constraint_of(tuple(group)) for name, group in grouped.items()}
        return self._constraints

    @property
    def tests(self) -> tuple[tuple[str, Test], ...]:
        if self._tests is None:
            self._tests = tuple((p.attribute, compiled(p)) for p in self.predicates if p.bound)
        return self._tests

    def __eq__(self, other: object) -> bool:
        return self.__class__ is other.__class__ and self.predicates == other.predicates

    def __hash__(self) -> int:
        return hash(self.predicates)

    def __repr__(self) -> str:
        from broker_runtime.language.printing import print_predicates

        return f"{type(self).__name__}({print_predicates(self.predicates)})"


class Subscription(Conjunction):
    """An atomic subscription."""

    __slots__ = ("joins",)

    def __init__(self, predicates: Iterable[Predicate]) -> None:
        super().__init__(predicates)
        self.joins: tuple[Predicate, ...] = tuple(p for p in self.predicates if not p.bound)

    def matches(self, content: Content) -> bool:
        get = content.get
        for attribute, test in self.tests:
            value = get(attribute)
            if value is None or not test(value):
                return False
        return not self.joins or self._joined(content)

    def covers(self, other: Subscription) -> bool:
        """Whether every publication that matches `other` matches this one."""
        if any(theirs.empty for theirs in other.constraints.values()):
            return True
        if self.joins and not set(self.joins) <= set(other.joins):
            return False
        others = other.constraints
        for attribute, mine in self.constraints.items():
            theirs = others.get(attribute)
            if theirs is None or not mine.includes(theirs):
                return False
        return True

    def overlaps(self, other: Subscription) -> bool:
        """Whether some publication may match both."""
        if self.satisfiable and other.satisfiable:
            others = other.constraints
            return all(
                mine.meets(others[attribute])
                for attribute, mine in self.constraints.items()
                if attribute in others
            )
        return False

    @property
    def satisfiable(self) -> bool:
        return not any(each.empty for each in self.constraints.values())

    def failing(self, content: Content) -> list[Predicate]:
        """The predicates that keep the content from matching, in the order written."""
        bindings = self._bindings(content)
        return [each for each in self.predicates if not _holds(each, content, bindings)]

    def _joined(self, content: Content) -> bool:
        """Whether one binding of the variables fits every predicate that names one (L14)."""
        bindings = self._bindings(content)
        return all(_holds(each, content, bindings) for each in self.joins)

    def _bindings(self, content: Content) -> dict[str, Value]:
        bindings: dict[str, Value] = {}
        for each in self.joins:
            operand: Variable = each.operand  # type: ignore[assignment]
            if each.op is Op.EQ and not operand.shift and each.attribute in content:
                bindings.setdefault(operand.name, content[each.attribute])
        return bindings


def _holds(wanted: Predicate, content: Content, bindings: dict[str, Value]) -> bool:
    value = content.get(wanted.attribute)
    if value is None:
        return False
    return compiled(wanted)(value) if wanted.bound else _join_holds(wanted, value, bindings)


def _join_holds(wanted: Predicate, value: Value, bindings: dict[str, Value]) -> bool:
    variable: Variable = wanted.operand  # type: ignore[assignment]
    bound = bindings.get(variable.name)
    if bound is None:
        return True
    if wanted.op is Op.EQ and value is bound:
        return True
    try:
        operand = checked(bound + variable.shift) if variable.shift else bound  # type: ignore[operator]
        return bool(compiled(predicate(wanted.attribute, wanted.op, operand))(value))
    except (TypeError, ValueError, OverflowError):
        return False


class Advertisement(Conjunction):
    """The template of what a publisher will publish."""

    __slots__ = ("_promises",)

    def __init__(self, predicates: Iterable[Predicate]) -> None:
        super().__init__(predicates)
        for each in self.predicates:
            if not each.bound:
                raise ValueError(f"an advertisement names no variables: [{each.attribute},…]")
        self._promises: dict[str, Test] | None = None

    def induces(self, content: Content) -> bool:
        """Whether a publisher that advertised this may publish the content (L6)."""
        promises = self._promises
        if promises is None:
            promises = self._promises = {name: _all(c.tests) for name, c in self.constraints.items()}
        try:
            for attribute, value in content.items():
                if not promises[attribute](value):
                    return False
        except KeyError:
            return False
        return CLASS in content

    def covers(self, other: Advertisement) -> bool:
        """Whether every publication that `other` induces is induced by this one."""
        if other.constraints[CLASS].empty:
            return True
        mine = self.constraints
        for attribute, theirs in other.constraints.items():
            if theirs.empty:
                continue
            ours = mine.get(attribute)
            if ours is None or not ours.includes(theirs):
                return False
        return True

    def overlaps(self, subscription: Subscription) -> bool:
        """Whether some publication that this induces may match the subscription."""
        if self.constraints[CLASS].empty:
            return False
        mine = self.constraints
        for attribute, asked in subscription.constraints.items():
            promised = mine.get(attribute)
            if promised is None or not promised.meets(asked):
                return False
        return True


def _all(tests: tuple[Test, ...]) -> Test:
    if len(tests) == 1:
        return tests[0]
    return lambda value: all(test(value) for test in tests)


def publication_content(pairs: Mapping[str, object]) -> dict[str, Value]:
    """Checked content of a publication; ValueError names the attribute at fault."""
    if len(pairs) > ATTRIBUTES_MAX_PER_PUBLICATION:
        raise ValueError(f"a publication has at most {ATTRIBUTES_MAX_PER_PUBLICATION} attributes")
    content: dict[str, Value] = {}
    for attribute, value in pairs.items():
        check_attribute(attribute)
        try:
            content[attribute] = checked(value)
        except ValueError as error:
            raise ValueError(f"attribute {attribute!r}: {error}") from error
    if CLASS not in content:
        raise ValueError("the class is missing: add a pair such as [class,'STOCK']")
    return content
