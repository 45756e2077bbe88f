"""Decides what stock quotes look like: the papers' class STOCK, with prices that walk at random.

One quote is one trading day: it opens near the last close, and high and low enclose open and close.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Final

from broker_runtime.language.printing import print_value
from broker_runtime.language.values import Value
from broker_runtime.seam import RandomSource

FIRST_DAY: Final = datetime(1996, 4, 12, tzinfo=UTC)  # Yahoo's first; every symbol starts here
LAST_DAY: Final = datetime(9990, 1, 1, tzinfo=UTC)
DAILY_MOVE: Final = 0.02
OVERNIGHT_MOVE: Final = 0.005
PRICE_MIN: Final = 0.05


def advertisement_text(symbol: str) -> str:
    """What a publisher of this stock promises."""
    prices = "".join(f",[{name},isPresent,@FLOAT]" for name in ("open", "high", "low", "close"))
    return (
        f"[class,eq,'STOCK'],[symbol,eq,{print_value(symbol)}]{prices}"
        ",[volume,isPresent,@INTEGER],[date,isPresent,@DATE]"
    )


def quotes(symbol: str, random: RandomSource) -> Iterator[dict[str, Value]]:
    """One quote after the other, for ever."""
    close = round(5.0 + 95.0 * random.random(), 2)
    typical_volume = 10 ** (5.0 + 2.0 * random.random())
    day = FIRST_DAY
    while True:
        opened = _moved(close, OVERNIGHT_MOVE, random)
        close = _moved(opened, DAILY_MOVE, random)
        high = _cents(max(opened, close) * (1 + DAILY_MOVE * random.random() / 2))
        low = max(PRICE_MIN, _cents(min(opened, close) * (1 - DAILY_MOVE * random.random() / 2)))
        yield {
            "class": "STOCK",
            "symbol": symbol,
            "open": opened,
            "high": max(high, opened, close),
            "low": min(low, opened, close),
            "close": close,
            "volume": 100 * round(typical_volume * math.exp(_bell(random) / 2) / 100),
            "date": day,
        }
        day = _next_trading_day(day)


def _moved(price: float, size: float, random: RandomSource) -> float:
    return max(PRICE_MIN, _cents(price * math.exp(size * _bell(random))))


def _bell(random: RandomSource) -> float:
    """About normal, by the sum of twelve: needs nothing but `random()`, so a seed means the same anywhere."""
    return sum(random.random() for _ in range(12)) - 6.0


def _cents(price: float) -> float:
    return round(price, 2)


def _next_trading_day(day: datetime) -> datetime:
    day += timedelta(days=3 if day.weekday() == 4 else 1)
    return day if day < LAST_DAY else FIRST_DAY
