"""Every refusal says where, what was expected and found, and what would fix it."""

# ruff: noqa: E501 — one case is one line

from datetime import UTC, datetime

import pytest

from broker_runtime.language import LanguageError, parse_advertisement, parse_publication, parse_subscription
from broker_runtime.language.limits import PROBLEMS_MAX_PER_TEXT

NOW = datetime(2024, 2, 29, 12, tzinfo=UTC)
NAMES = {"MY_LOC": 25, "ME": "Ada"}


def problems(parse, text):
    with pytest.raises(LanguageError) as refused:
        parse(text, environment=NAMES, now=NOW)
    return [str(problem) for problem in refused.value.problems]


SUBSCRIPTIONS = [
    ("", "1, column 1: expected '[', found the end of the text (a subscription has predicates [attribute, operator, value])"),
    ("class eq STOCK", "1, column 1: expected '[', found 'class' (a subscription has predicates [attribute, operator, value])"),
    ("[class,eqq,'A']", "1, column 8: unknown operator 'eqq' (did you mean eq?)"),
    ("[class,lt,'A']", "1, column 8: unknown operator 'lt' (did you mean <?)"),
    ("[class,isPresnt,*]", "1, column 8: unknown operator 'isPresnt' (did you mean isPresent?)"),
    ("[class,~~~~,1]", "1, column 8: unknown operator '~~~~' (the operators are eq neq < <= > >= isPresent in between "
                       "before after and str-prefix and its kin)"),
    ("[class,'STOCK']", "1, column 8: expected an operator, found \"'\" (a subscription has predicates "
                        "[attribute, operator, value]; write [class, eq, 'STOCK'])"),
    ("[class,25.2]", "1, column 8: expected an operator, found '25.2' (a subscription has predicates "
                     "[attribute, operator, value]; write [class, eq, 25.2])"),
    ("[class,isPresent]", "1, column 17: expected ',' after the operator isPresent, found ']' (write [class, isPresent, *])"),
    ("[class,> 5]", "1, column 10: expected ',' after the operator >, found '5' (write [class, >, value])"),
    ("[class > 5]", "1, column 8: expected ',' after the attribute 'class', found '>' (a subscription has predicates [attribute, operator, value])"),
    ("[job name,eq,x]", "1, column 6: expected ',' after the attribute 'job', found 'name' (a name with spaces or signs needs quotes)"),
    ("[class]", "1, column 7: expected ',' after the attribute 'class', found ']' (a subscription has predicates [attribute, operator, value])"),
    ("[,eq,1]", "1, column 2: expected an attribute, found ',' (a subscription has predicates [attribute, operator, value])"),
    ("[class,eq,]", "1, column 11: expected a value, found ']' (a value is 'text', 12, 2.5, true or a date in quotes)"),
    ("[class,eq,'A'", "1, column 14: expected ']' after the value, found the end of the text (the bracket that begins at line 1, column 1 is not closed)"),
    ("[class,eq,'A' [x,=,1]", "1, column 15: expected ']' after the value, found '[' (the bracket that begins at line 1, column 1 is not closed)"),
    ("[class,eq,'A]", "1, column 11: the string that begins here has no closing ' on its line (close it, or write \\n for a new line inside it)"),
    ("[class,eq,‘A]", "1, column 11: the string that begins here has no closing ’ on its line (close it, or write \\n for a new line inside it)"),
    ("[class,eq,'A],\n[x,eq,'B']", "1, column 11: the string that begins here has no closing ' on its line (close it, or write \\n for a new line inside it)"),
    ("[class,eq,'A],[x,eq,'B']", "1, column 22: expected ']' after the value, found 'B' (a quote may be missing in the string that begins at line 1, column 11)"),
    ("[class,eq,STOCK']", "1, column 16: expected ']' after the value, found \"'\" (a quote may be missing before the value at line 1, column 11)"),
    ("[class,eq,'\\d']", "1, column 12: \\d is not an escape (write \\\\ for a backslash; the escapes are \\n \\t \\r \\\\ \\' \\\" \\xHH \\uHHHH \\UHHHHHHHH)"),
    ("[class,eq,'\\x4']", "1, column 12: \\x needs 2 hexadecimal digits"),
    ("[class,eq,'\\ud83d']", "1, column 12: \\ud83d is half of a surrogate pair, not a character (write the whole character as \\UHHHHHHHH)"),
    ("[class,eq,'\\U00110000']", "1, column 12: \\U00110000 is beyond the last character, \\U0010FFFF"),
    ("[class,eq,'\ud800']", "1, column 11: a string holds a lone surrogate, which no UTF-8 text can carry"),
    ("['\ud800',eq,1]", "1, column 2: a string holds a lone surrogate, which no UTF-8 text can carry"),
    ("[class,eq,'31-Feb-2008']", "1, column 11: '31-Feb-2008': no such day: day is out of range for month (add @STRING behind the quotes if it is not a date)"),
    ("[class,eq,'today'@DATE]", "1, column 11: 'today': not a date; write '12-Aug-2008', '12-Aug-08 14:30:05' or '2008-08-12T14:30:05Z'"),
    ("[class,eq,'5'@INTEGER]", "1, column 14: @INTEGER cannot follow a quoted text (only @STRING and @DATE can; other values are written without quotes)"),
    ("[class,eq,@STRING]", "1, column 11: @STRING goes with isPresent (write [attribute, isPresent, @STRING])"),
    ("[class,isPresent,@STRNG]", "1, column 18: expected @STRING, @INTEGER, @FLOAT, @DATE, @BOOLEAN or *, found '@STRNG' (did you mean @STRING?)"),
    ("[class,isPresent,5]", "1, column 18: expected @STRING, @INTEGER, @FLOAT, @DATE, @BOOLEAN or *, found '5' (isPresent takes a type, or * for any)"),
    ("[class,str-lt,5]", "1, column 15: str-lt takes a string, not a number (use < for a number, or put the operand into quotes)"),
    ("[class,str-prefix,5]", "1, column 19: str-prefix takes a string, not a number (put the operand into quotes)"),
    ("[class,str-eq,true]", "1, column 15: str-eq takes a string, not a boolean (put the operand into quotes)"),
    ("[class,before,'noon']", "1, column 15: before takes a date, not a string (a date is written '12-Aug-2008' or '2008-08-12T14:30:05Z')"),
    ("[class,after,5]", "1, column 14: after takes a date, not a number (a date is written '12-Aug-2008' or '2008-08-12T14:30:05Z')"),
    ("[class,<,true]", "1, column 10: < needs an order, which booleans do not have"),
    ("[class,eq,nan]", "1, column 11: NaN compares with nothing (ask for it by isPresent)"),
    ("[class,in,{1,'a'}]", "1, column 14: a string among members that are numbers (the values of IN are of one kind)"),
    ("[class,in,{1,2]", "1, column 15: expected ',' or '}' in the list, found ']'"),
    ("[class,in,{}]", "1, column 12: expected a value, found '}' (a value is 'text', 12, 2.5, true or a date in quotes)"),
    ("[class,in,{$X}]", "1, column 12: IN takes values, not the variable $X"),
    ("[class,between,1]", "1, column 17: expected ',' or AND between the bounds, found ']' (write [class, between, 10, 20])"),
    ("[class,between,1,'z']", "1, column 18: bounds of two kinds: a number and a string"),
    ("[class,between,1,2,3]", "1, column 19: expected ']' after the value, found ','"),
    ("[class,eq,12..5]", "1, column 11: '12..5' is neither a number nor a date (put a string into quotes)"),
    ("[class,eq,10.0.0.1]", "1, column 11: '10.0.0.1' is neither a number nor a date (put a string into quotes)"),
    ("[class,eq,1e999]", "1, column 11: '1e999' is beyond the range of a float (write inf for infinity)"),
    ("[class,eq,10s]", "1, column 11: '10s' is a duration, not a value (add it to a date: now + 10s)"),
    ("[class,eq,a/b]", "1, column 11: expected a value, found 'a/b' (put a string into quotes: '…')"),
    ("[class,eq,MYLOC + 1]", "1, column 11: unknown name 'MYLOC' (did you mean MY_LOC?; put a string into quotes)"),
    ("[class,eq,ZZZ + 1]", "1, column 11: unknown name 'ZZZ' (the known names are ME, MY_LOC and now; put a string into quotes)"),
    ("[class,eq,MY_LOC + 10s]", "1, column 18: a number + a duration does not add up"),
    ("[class,eq,ME + 1]", "1, column 14: a string + a number does not add up"),
    ("[class,eq,now - 1]", "1, column 15: a date - a number does not add up (a date takes a duration such as 500ms, 10s, 5 min, 1h, 2 days, 1 week or 2 months)"),
    ("[class,eq,now - 9999 years]", "1, column 15: the result is out of range"),
    ("[class,eq,now - 3 parsecs]", "1, column 15: not a unit of time: 'parsecs' (a duration is 500ms, 10s, 5 min, 1h, 2 days, 1 week or 2 months)"),
    ("[class,eq,MY_LOC * 2]", "1, column 11: expected a value, found 'MY_LOC * 2' (put a string into quotes: '…')"),
    ("[class,eq,MY_LOC + 2 * 2]", "1, column 22: expected + or - and a number or a duration, found '*'"),
    ("[class,str-prefix,$X]", "1, column 19: str-prefix takes a value, not the variable $X"),
    ("[price,>,5]", "1, column 1: the subscription has no class (add [class,eq,'STOCK'])"),
    ("[class,eq,A],", "1, column 14: expected '[' after the comma, found the end of the text"),
    ("[class,eq,A] x", "1, column 14: expected '[' or the end of the text, found 'x'"),
    ("([class,eq,A]", "1, column 14: expected ')', found the end of the text (the parenthesis at line 1, column 1 is not closed)"),
    ("[class,eq,A])", "1, column 13: expected '[' or the end of the text, found ')'"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), SUBSCRIPTIONS)
def test_the_first_problem_of_a_subscription(text, expected):
    assert problems(parse_subscription, text)[0] == f"line {expected}"


PUBLICATIONS = [
    ("[class,eq,'A']", "1, column 8: expected a value, found the operator eq (a publication has pairs [attribute, value])"),
    ("[class,=,'A']", "1, column 8: expected a value, found the operator = (a publication has pairs [attribute, value])"),
    ("[class,A],[x,1],[x,2]", "1, column 18: the attribute 'x' stands here a second time (a publication gives each attribute one value)"),
    ("[class,A],[x,$X]", "1, column 14: $X: a publication holds values; variables stand in subscriptions"),
    ("[x,1]", "1, column 1: the publication has no class (add [class,'STOCK'])"),
    ("[class,A],[x]", "1, column 13: expected ',' after the attribute 'x', found ']' (a publication has pairs [attribute, value])"),
    ("[class,A] && [x,1]", "1, column 11: '&&' belongs to a composite subscription, and this is a publication (inside one message, brackets are separated by commas)"),
    ("[class,A],[x,{1,2}]", "1, column 14: expected a value, found '{' (a value is 'text', 12, 2.5, true or a date in quotes)"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), PUBLICATIONS)
def test_the_first_problem_of_a_publication(text, expected):
    assert problems(parse_publication, text)[0] == f"line {expected}"


def test_an_advertisement_names_no_variables():
    assert problems(parse_advertisement, "[class,eq,$X]") == [
        "line 1, column 11: $X: an advertisement names no variables; they stand in subscriptions"
    ]


@pytest.mark.parametrize("connective", ["&&", "&", "AND", "and", "∧", "||", "OR", "∨", ";"])
def test_connectives_belong_to_composite_subscriptions(connective):
    [problem] = problems(parse_subscription, f"[class,eq,A] {connective} [class,eq,B]")
    assert problem.startswith(f"line 1, column 14: '{connective}' belongs to a composite subscription")


@pytest.mark.parametrize(
    "text", ["([class,eq,A]) ([class,eq,B])", "([class,eq,A] && [class,eq,B])", "[class,eq,A] ([x,=,1])"]
)
def test_parentheses_around_several_groups_belong_to_composite_subscriptions(text):
    [problem] = problems(parse_subscription, text)
    assert "belongs to a composite subscription" in problem


def test_now_must_be_given():
    with pytest.raises(
        LanguageError, match=r"line 2, column 7: now is not known here \(give the time as now="
    ):
        parse_subscription("[class,eq,A],\n[t,<, now - 1h]")


def test_several_problems_are_told_at_once_with_their_lines():
    text = "[class,eq,'A'],\r\n[x,gt,5],\n[y,5],\n[z,eq,'ok'],[w,isPresent,STRING]"
    assert [p.split(":")[0] for p in problems(parse_subscription, text)] == [
        "line 2, column 4",
        "line 3, column 4",
        "line 4, column 26",
    ]


def test_the_number_of_problems_is_bounded():
    assert len(problems(parse_subscription, "[" * 1000)) == PROBLEMS_MAX_PER_TEXT


def test_a_broken_class_is_not_also_a_missing_class():
    assert len(problems(parse_subscription, "[class,eqq,'A'],[x,=,1]")) == 1


def test_a_problem_points_into_its_line():
    with pytest.raises(LanguageError) as refused:
        parse_subscription("[class,eq,'A'],\n  [x,gt,5]")
    assert refused.value.problems[0].pointing() == (
        "line 2, column 6: unknown operator 'gt' (did you mean >?)\n    [x,gt,5]\n       ^"
    )
