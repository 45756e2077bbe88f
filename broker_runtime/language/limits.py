"""Decides how large a message text may be; the unit stands in each name, and each refusal names the limit."""

from __future__ import annotations

from typing import Final

MESSAGE_TEXT_MAX_CHARACTERS: Final = 1_000_000
ATTRIBUTES_MAX_PER_PUBLICATION: Final = 256
PREDICATES_MAX_PER_MESSAGE: Final = 256
ATTRIBUTE_NAME_MAX_CHARACTERS: Final = 128
STRING_VALUE_MAX_CHARACTERS: Final = 65_536
INTEGER_MAX_DIGITS: Final = 1_000
IN_MAX_MEMBERS: Final = 1_024
ARITHMETIC_MAX_TERMS: Final = 16
PROBLEMS_MAX_PER_TEXT: Final = 10
SOURCE_LINE_MAX_CHARACTERS: Final = 200
