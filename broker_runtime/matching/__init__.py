"""Decides which stored subscriptions and advertisements answer a question; never routes, sends or waits."""

from __future__ import annotations

from typing import Any

from broker_runtime.matching.advertisements import AdvertisementIndex
from broker_runtime.matching.bitrows import BitRowEngine
from broker_runtime.matching.engine import AdvertisementTable, MatchingEngine

__all__ = ["AdvertisementTable", "MatchingEngine", "default_advertisement_table", "default_engine"]


def default_engine() -> MatchingEngine[Any]:
    """The engine that brokers use."""
    return BitRowEngine()


def default_advertisement_table() -> AdvertisementTable[Any]:
    """The table of advertisements that brokers use."""
    return AdvertisementIndex()
