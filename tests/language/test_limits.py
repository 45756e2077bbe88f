"""Every limit holds exactly, and its refusal names it."""

import pytest

from broker_runtime.language import LanguageError, limits, parse_publication, parse_subscription


def padded(characters):
    return "[class,c]".ljust(characters)


def attributes(count):
    return "[class,c]" + "".join(f"[a{n},1]" for n in range(count - 1))


def predicates(count):
    return "[class,eq,c]" + "[x,>,1]" * (count - 1)


def betweens(count):
    return "[class,eq,c][class,eq,c]" + "[x,between,1,2]" * (count // 2 - 1) + "[x,between,1,2]" * (count % 2)


CASES = [
    (parse_publication, "MESSAGE_TEXT_MAX_CHARACTERS", padded),
    (parse_publication, "ATTRIBUTES_MAX_PER_PUBLICATION", attributes),
    (parse_subscription, "PREDICATES_MAX_PER_MESSAGE", predicates),
    (parse_subscription, "PREDICATES_MAX_PER_MESSAGE", betweens),
    (parse_publication, "ATTRIBUTE_NAME_MAX_CHARACTERS", lambda n: f"[class,c],[{'a' * n},1]"),
    (parse_publication, "ATTRIBUTE_NAME_MAX_CHARACTERS", lambda n: f"[class,c],['{'+' * n}',1]"),
    (parse_publication, "STRING_VALUE_MAX_CHARACTERS", lambda n: f"[class,'{'a' * n}']"),
    (parse_publication, "STRING_VALUE_MAX_CHARACTERS", lambda n: f"[class,‘{'a' * n}’]"),
    (parse_publication, "STRING_VALUE_MAX_CHARACTERS", lambda n: f"[class,'{'a' * n}'@STRING]"),
    (parse_publication, "STRING_VALUE_MAX_CHARACTERS", lambda n: f"[class,{'a' * n}]"),
    (parse_publication, "INTEGER_MAX_DIGITS", lambda n: f"[class,-{'9' * n}]"),
    (parse_subscription, "IN_MAX_MEMBERS", lambda n: "[class,in,{" + ",".join(map(str, range(n))) + "}]"),
    (parse_publication, "ARITHMETIC_MAX_TERMS", lambda n: "[class,ONE" + " + 1" * n + "]"),
]


@pytest.mark.parametrize(("parse", "name", "text_of"), CASES)
def test_a_limit_holds_exactly_and_is_named(parse, name, text_of):
    limit = getattr(limits, name)
    parse(text_of(limit), environment={"ONE": 1})
    with pytest.raises(LanguageError, match=f"{name}.*which is {limit}"):
        parse(text_of(limit + 1), environment={"ONE": 1})


def test_escapes_do_not_count_towards_the_length_of_a_string():
    escaped = "\\u00e9" * limits.STRING_VALUE_MAX_CHARACTERS
    assert len(parse_publication(f"[class,'{escaped}']")["class"]) == limits.STRING_VALUE_MAX_CHARACTERS
