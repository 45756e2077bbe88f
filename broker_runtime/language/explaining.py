"""Decides how to say why a publication does not match a subscription, or is not induced."""

from __future__ import annotations

from broker_runtime.language.messages import CLASS, Advertisement, Content, Subscription
from broker_runtime.language.predicates import Op, Predicate, satisfies
from broker_runtime.language.printing import print_attribute, print_predicate, print_value
from broker_runtime.language.values import Type, Value, kind_of


def explain(subscription: Subscription, content: Content) -> list[str]:
    """One line for every predicate that fails; no lines when the publication matches."""
    return [_failure(each, content.get(each.attribute)) for each in subscription.failing(content)]


def explain_refusal(advertisement: Advertisement, content: Content) -> list[str]:
    """One line for every reason why the advertisement does not induce the publication (L6)."""
    advertised = advertisement.constraints
    lines = [] if CLASS in content else ["the publication has no class"]
    for attribute, value in content.items():
        if attribute not in advertised:
            lines.append(f"the attribute {print_attribute(attribute)} is not advertised")
            continue
        lines += [
            _failure(each, value) for each in advertised[attribute].predicates if not satisfies(value, each)
        ]
    return lines


def _failure(failed: Predicate, value: Value | None) -> str:
    wanted = print_predicate(failed)
    name = print_attribute(failed.attribute)
    if value is None:
        return f"{wanted} fails: the publication has no {name}"
    kind = kind_of(value)
    if failed.kind is not None and failed.kind is not kind:
        return f"{wanted} fails: {name} is the {kind.value} {print_value(value)}, not a {failed.kind.value}"
    if failed.op is Op.PRESENT and failed.operand is Type.INTEGER:
        return f"{wanted} fails: {name} is {print_value(value)}, not an integer"
    if not failed.bound:
        return f"{wanted} fails: {name} is {print_value(value)}, which does not fit the variable"
    return f"{wanted} fails: {name} is {print_value(value)}"
