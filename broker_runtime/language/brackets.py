"""Decides what one bracket says: `[attribute, value]` or `[attribute, operator, operand]`.

The common forms are matched whole by one expression for each slot; whatever fails there is read again piece
by piece, which also finds out what is wrong with it.
"""

from __future__ import annotations

import re
from typing import Final, NoReturn

from broker_runtime.language import limits
from broker_runtime.language.operands import Operands, value_at
from broker_runtime.language.operators import BETWEEN, Spelling, is_operator, nearest, operator_hint, spelling
from broker_runtime.language.predicates import Op, Predicate, Variable, predicate
from broker_runtime.language.scanning import (
    BARE_NAME,
    BARE_RUN,
    QUOTES,
    PlacedError,
    found,
    place,
    quoted,
    shown,
    skip_space,
)
from broker_runtime.language.values import Kind, Type, Value, checked, is_nan, kind_of

_HEAD = re.compile(r"\[\s*([^\W\d][\w.\-]*+)\s*,\s*")
_OPERATOR = re.compile(rf"([^\s\[\](){{}},{QUOTES}]+)\s*,\s*")
_OPERATOR_ALONE = re.compile(rf"[^\s\[\](){{}},{QUOTES}]+")
_VALUE = re.compile(rf"(?:'([^'\\\r\n]*+)'|([^\[\](){{}},;{QUOTES}]++))\s*\]")
_TYPE = re.compile(r"(\*|@\s*\w+)")
_BETWEEN_RUN = re.compile(rf"(?:(?!\sand[\s{QUOTES}])[^\[\](){{}},;{QUOTES}])+", re.IGNORECASE)
_BETWEEN_AND = re.compile(r"\s*(?:,|and\b)\s*", re.IGNORECASE)
_CLOSERS: Final = {"{": "}", "(": ")", "[": "]"}
_TYPES: Final = {each.value: each for each in Type}


class BracketReader:
    """Reads the brackets of one text. `message` says what the text is, in the words of an error."""

    __slots__ = ("message", "operands", "text")

    def __init__(self, text: str, message: str, operands: Operands) -> None:
        self.text = text
        self.message = message
        self.operands = operands

    def pair(self, offset: int, content: dict[str, Value]) -> int:
        """Read one `[attribute, value]` into the content; the offset behind the bracket."""
        start = offset
        attribute, offset = self._attribute(offset)
        common = _VALUE.match(self.text, offset)
        value: Value | Variable
        if common is not None:
            if common[1] is not None:
                value = self.operands.literal(common[1], offset)
            else:
                value = self.operands.bare(common[2].rstrip(), offset)
            end = common.end()
        else:
            word = _OPERATOR.match(self.text, offset)
            if word is not None and is_operator(word[1]):
                raise PlacedError(offset, f"expected a value, found the operator {word[1]}", self.shape())
            value, end = value_at(self.operands, BARE_RUN, offset, None)
            end = self._closed(start, offset, end)
        if attribute in content:
            raise PlacedError(
                start + 1,
                f"the attribute {shown(attribute)} stands here a second time",
                "a publication gives each attribute one value",
                end,
            )
        if len(content) >= limits.ATTRIBUTES_MAX_PER_PUBLICATION:
            raise too_many(
                start,
                "a publication",
                "ATTRIBUTES_MAX_PER_PUBLICATION",
                limits.ATTRIBUTES_MAX_PER_PUBLICATION,
            )
        content[attribute] = value  # type: ignore[assignment]  # variables are refused by `operands`
        return end

    def predicate(self, offset: int, predicates: list[Predicate]) -> int:
        """Read one `[attribute, operator, operand]` into the list; the offset behind the bracket."""
        start = offset
        attribute, offset = self._attribute(offset)
        word = _OPERATOR.match(self.text, offset)
        if word is None:
            self._no_operator(attribute, offset)
        at = word.end()
        known = spelling(word[1])
        if known is None:
            if word[1].lower() == BETWEEN:
                return self._between(start, attribute, at, predicates)
            raise PlacedError(offset, f"unknown operator {shown(word[1])}", operator_hint(word[1]))
        common = _VALUE.match(self.text, at) if known.op is not Op.PRESENT and known.op is not Op.IN else None
        operand: object
        if common is not None:
            if common[1] is not None:
                operand = self.operands.literal(common[1], at, known.kind)
            else:
                operand = self.operands.bare(common[2].rstrip(), at)
            end = common.end()
        else:
            operand, end = self._uncommon_operand(known, at)
            end = self._closed(start, at, end)
        predicates.append(self._built(attribute, known, operand, at))
        if len(predicates) > limits.PREDICATES_MAX_PER_MESSAGE:
            raise too_many(
                start, article(self.message), "PREDICATES_MAX_PER_MESSAGE", limits.PREDICATES_MAX_PER_MESSAGE
            )
        return end

    def _uncommon_operand(self, known: Spelling, offset: int) -> tuple[object, int]:
        if known.op is Op.PRESENT:
            return self._type(offset)
        if known.op is Op.IN:
            return self._members(offset)
        return value_at(self.operands, BARE_RUN, offset, known.kind)

    def _built(self, attribute: str, known: Spelling, operand: object, offset: int) -> Predicate:
        wanted = known.kind
        if wanted is not None and not isinstance(operand, Variable):
            kind = kind_of(operand)  # type: ignore[arg-type]
            if kind is not wanted:
                raise PlacedError(
                    offset,
                    f"{known.name} takes a {wanted.value}, not a {kind.value}",
                    _kind_hint(known, wanted, kind),
                )
        try:
            return predicate(attribute, known.op, operand)
        except ValueError as error:
            hint = "ask for it by isPresent" if is_nan(operand) else ""  # type: ignore[arg-type]
            raise PlacedError(offset, str(error), hint) from None

    def _attribute(self, offset: int) -> tuple[str, int]:
        """The attribute of the bracket at the offset, and the offset behind its comma."""
        text = self.text
        head = _HEAD.match(text, offset)
        if head is not None:
            attribute, end = head[1], head.end()
        else:
            attribute, end = self._uncommon_attribute(offset)
        if len(attribute) > limits.ATTRIBUTE_NAME_MAX_CHARACTERS:
            raise too_many(
                offset + 1,
                "the name of an attribute",
                "ATTRIBUTE_NAME_MAX_CHARACTERS",
                limits.ATTRIBUTE_NAME_MAX_CHARACTERS,
            )
        return attribute, end

    def _uncommon_attribute(self, offset: int) -> tuple[str, int]:
        text = self.text
        at = skip_space(text, offset + 1)
        if at < len(text) and text[at] in QUOTES:
            attribute, end = quoted(text, at)
            if not attribute:
                raise PlacedError(at, "an attribute needs a name", self.shape())
            try:
                checked(attribute)
            except ValueError as error:
                raise PlacedError(at, str(error)) from None
        else:
            name = BARE_NAME.match(text, at)
            if name is None:
                raise PlacedError(at, f"expected an attribute, found {found(text, at)}", self.shape())
            attribute, end = name[0], name.end()
        comma = skip_space(text, end)
        if text[comma : comma + 1] != ",":
            raise PlacedError(
                comma,
                f"expected ',' after the attribute {shown(attribute)}, found {found(text, comma)}",
                self._comma_hint(comma),
            )
        return attribute, skip_space(text, comma + 1)

    def _comma_hint(self, offset: int) -> str:
        word = _OPERATOR_ALONE.match(self.text, offset)
        if word is None or is_operator(word[0]):
            return self.shape()
        return "a name with spaces or signs needs quotes"

    def _no_operator(self, attribute: str, offset: int) -> NoReturn:
        text = self.text
        word = _OPERATOR_ALONE.match(text, offset)
        if word is not None and is_operator(word[0]):
            at = skip_space(text, word.end())
            hint = f"write [{attribute}, isPresent, *]" if word[0].lower() == "ispresent" else ""
            raise PlacedError(
                at,
                f"expected ',' after the operator {word[0]}, found {found(text, at)}",
                hint or f"write [{attribute}, {word[0]}, value]",
            )
        at = skip_space(text, word.end()) if word else offset
        if text[offset : offset + 1] in QUOTES or text[at : at + 1] == "]":
            raise PlacedError(
                offset,
                f"expected an operator, found {found(text, offset)}",
                f"{article(self.message)} has predicates [attribute, operator, value]; "
                f"write [{attribute}, eq, {_rest_of_pair(text, offset)}]",
            )
        if word is None:
            raise PlacedError(offset, f"expected an operator, found {found(text, offset)}", self.shape())
        raise PlacedError(offset, f"unknown operator {shown(word[0])}", operator_hint(word[0]))

    def _type(self, offset: int) -> tuple[Type, int]:
        word = _TYPE.match(self.text, offset)
        written = "".join(word[0].split()).upper() if word else ""
        known = _TYPES.get(written)
        if word is None or known is None:
            close = nearest(written, _TYPES) if written else None
            raise PlacedError(
                offset,
                f"expected @STRING, @INTEGER, @FLOAT, @DATE, @BOOLEAN or *, found {found(self.text, offset)}",
                f"did you mean {close}?" if close else "isPresent takes a type, or * for any",
            )
        return known, word.end()

    def _members(self, offset: int) -> tuple[list[Value], int]:
        """`{1,2}`, `(1,2)`, `[1,2]`, or `1,2` up to the end of the bracket."""
        text = self.text
        closer = _CLOSERS.get(text[offset : offset + 1])
        at = offset + 1 if closer else offset
        members: list[Value] = []
        while True:
            at = skip_space(text, at)
            member, end = value_at(self.operands, BARE_RUN, at, None)
            if isinstance(member, Variable):
                raise PlacedError(at, f"IN takes values, not the variable ${member.name}")
            members.append(member)
            if len(members) > limits.IN_MAX_MEMBERS:
                raise too_many(at, "an IN list", "IN_MAX_MEMBERS", limits.IN_MAX_MEMBERS)
            if kind_of(member) is not kind_of(members[0]):
                raise PlacedError(
                    at,
                    f"a {kind_of(member).value} among members that are {kind_of(members[0]).value}s",
                    "the values of IN are of one kind",
                )
            end = skip_space(text, end)
            if text[end : end + 1] != ",":
                break
            at = end + 1
        if closer is None:
            return members, end
        if text[end : end + 1] != closer:
            raise PlacedError(end, f"expected ',' or {closer!r} in the list, found {found(text, end)}")
        return members, end + 1

    def _between(self, start: int, attribute: str, offset: int, predicates: list[Predicate]) -> int:
        low, end = value_at(self.operands, _BETWEEN_RUN, offset, None)
        separator = _BETWEEN_AND.match(self.text, end)
        if separator is None:
            raise PlacedError(
                end,
                f"expected ',' or AND between the bounds, found {found(self.text, end)}",
                f"write [{attribute}, between, 10, 20]",
            )
        high_at = separator.end()
        high, end = value_at(self.operands, BARE_RUN, high_at, None)
        end = self._closed(start, high_at, end)
        kinds = [kind_of(bound) for bound in (low, high) if not isinstance(bound, Variable)]
        if len(set(kinds)) > 1:
            raise PlacedError(high_at, f"bounds of two kinds: a {kinds[0].value} and a {kinds[1].value}")
        predicates.append(self._built(attribute, Spelling(BETWEEN, Op.GE), low, offset))
        predicates.append(self._built(attribute, Spelling(BETWEEN, Op.LE), high, high_at))
        if len(predicates) > limits.PREDICATES_MAX_PER_MESSAGE:
            raise too_many(
                start, article(self.message), "PREDICATES_MAX_PER_MESSAGE", limits.PREDICATES_MAX_PER_MESSAGE
            )
        return end

    def _closed(self, start: int, value_at_offset: int, offset: int) -> int:
        """The offset behind the ']' that ends the bracket."""
        text = self.text
        at = skip_space(text, offset)
        if text[at : at + 1] == "]":
            return at + 1
        what = found(text, at)
        literal = text[value_at_offset:offset]
        if literal[:1] in QUOTES and ("]" in literal or "[" in literal):
            raise PlacedError(
                at,
                f"expected ']' after the value, found {what}",
                f"a quote may be missing in the string that begins at {place(text, value_at_offset)}",
                value_at_offset + 1,
            )
        if text[at : at + 1] in QUOTES and at < len(text):
            hint = f"a quote may be missing before the value at {place(text, value_at_offset)}"
        elif what in ("'['", _END):
            hint = f"the bracket that begins at {place(text, start)} is not closed"
        else:
            hint = ""
        raise PlacedError(at, f"expected ']' after the value, found {what}", hint)

    def shape(self) -> str:
        if self.message == "publication":
            return "a publication has pairs [attribute, value]"
        return f"{article(self.message)} has predicates [attribute, operator, value]"


_END: Final = "the end of the text"


def too_many(offset: int, what: str, limit: str, most: int) -> PlacedError:
    return PlacedError(offset, f"{what} has more than {limit}, which is {most}")


def article(what: str) -> str:
    return f"an {what}" if what[0] in "aeiou" else f"a {what}"


def _rest_of_pair(text: str, offset: int) -> str:
    """The value that was written where an operator belongs, to show in a hint."""
    end = text.find("]", offset, offset + 40)
    return text[offset:end].strip() if end >= 0 and "\n" not in text[offset:end] else "value"


def _kind_hint(known: Spelling, wanted: Kind, kind: Kind) -> str:
    if wanted is Kind.DATE:
        return "a date is written '12-Aug-2008' or '2008-08-12T14:30:05Z'"
    plain = known.op.value if isinstance(known.op, Op) else known.name
    if kind in (Kind.NUMBER, Kind.DATE) and plain[0] != "s":
        return f"use {plain} for a {kind.value}, or put the operand into quotes"
    return "put the operand into quotes"
