"""A publication that does not match is explained predicate by predicate."""

import pytest
from hypothesis import given

from broker_runtime.language import (
    explain,
    explain_refusal,
    parse_advertisement,
    parse_publication,
    parse_subscription,
)
from tests.language import strategies

SUBSCRIPTION = "[class,eq,'STOCK'],[open,>,25.0],[volume,isPresent,@INTEGER],['job name',eq,'x']"


@pytest.mark.parametrize(
    ("publication", "lines"),
    [
        ("[class,STOCK],[open,26],[volume,5],['job name',x]", []),
        ("[class,BOND],[open,26],[volume,5],['job name',x]", ["[class,eq,'STOCK'] fails: class is 'BOND'"]),
        (
            "[class,STOCK],[open,'26'],[volume,2.5]",
            [
                "[open,>,25.0] fails: open is the string '26', not a number",
                "[volume,isPresent,@INTEGER] fails: volume is 2.5, not an integer",
                "['job name',eq,'x'] fails: the publication has no 'job name'",
            ],
        ),
    ],
)
def test_why_a_subscription_does_not_match(publication, lines):
    assert explain(parse_subscription(SUBSCRIPTION), parse_publication(publication)) == lines


def test_a_variable_that_does_not_fit_is_told():
    subscription = parse_subscription("[class,eq,A],[x,=,$X],[y,>,$X + 5]")
    assert explain(subscription, {"class": "A", "x": 1, "y": 7}) == []
    assert explain(subscription, {"class": "A", "x": 1, "y": 6}) == [
        "[y,>,$X + 5] fails: y is 6, which does not fit the variable"
    ]


def test_why_an_advertisement_does_not_induce():
    advertisement = parse_advertisement("[class,eq,'STOCK'],[open,>,0.0]")
    assert explain_refusal(advertisement, {"class": "STOCK", "open": 1}) == []
    assert explain_refusal(advertisement, {"open": -1, "company": "IBM"}) == [
        "the publication has no class",
        "[open,>,0.0] fails: open is -1",
        "the attribute company is not advertised",
    ]


@given(strategies.subscriptions, strategies.contents)
def test_there_is_an_explanation_exactly_when_there_is_no_match(subscription, content):
    assert subscription.matches(content) == (not explain(subscription, content))


@given(strategies.advertisements, strategies.contents)
def test_there_is_a_reason_exactly_when_a_publication_is_not_induced(advertisement, content):
    assert advertisement.induces(content) == (not explain_refusal(advertisement, content))
