"""Decides what the messages of the network say and mean; knows no engine, table, socket or clock."""

from broker_runtime.language.dates import parse_duration, write_date, write_duration
from broker_runtime.language.explaining import explain, explain_refusal
from broker_runtime.language.identifiers import check_id
from broker_runtime.language.messages import (
    CLASS,
    Advertisement,
    Conjunction,
    Content,
    Subscription,
    publication_content,
)
from broker_runtime.language.parsing import parse_advertisement, parse_publication, parse_subscription
from broker_runtime.language.predicates import (
    CustomOperator,
    Op,
    Predicate,
    Variable,
    predicate,
    register_operator,
    satisfies,
    unregister_operator,
)
from broker_runtime.language.printing import (
    print_advertisement,
    print_attribute,
    print_predicate,
    print_predicates,
    print_publication,
    print_subscription,
    print_value,
)
from broker_runtime.language.problems import LanguageError, Problem
from broker_runtime.language.values import Kind, Type, Value, kind_of

__all__ = [
    "CLASS",
    "Advertisement",
    "Conjunction",
    "Content",
    "CustomOperator",
    "Kind",
    "LanguageError",
    "Op",
    "Predicate",
    "Problem",
    "Subscription",
    "Type",
    "Value",
    "Variable",
    "check_id",
    "explain",
    "explain_refusal",
    "kind_of",
    "parse_advertisement",
    "parse_duration",
    "parse_publication",
    "parse_subscription",
    "predicate",
    "print_advertisement",
    "print_attribute",
    "print_predicate",
    "print_predicates",
    "print_publication",
    "print_subscription",
    "print_value",
    "publication_content",
    "register_operator",
    "satisfies",
    "unregister_operator",
    "write_date",
    "write_duration",
]
