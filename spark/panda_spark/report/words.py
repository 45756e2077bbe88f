"""Decides how figures read in prose, tables and axes; never what they mean."""

from __future__ import annotations

from collections.abc import Sequence

LONG = 120  # characters of a text from a log that a sentence or a label carries

SECONDS = ((3600.0, "h"), (60.0, "min"), (1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))
BYTES = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B"))


def digits(value: float) -> str:
    """Three digits that matter, with separators and without an exponent."""
    if value == 0:
        return "0"
    if abs(value) >= 999.5:
        return f"{value:,.0f}" if abs(value) < 1e15 else f"{value:.2e}"
    text = f"{value:.3g}"
    return text if "e" not in text else f"{value:.9f}".rstrip("0").rstrip(".") or "0"


def seconds(value: float | None) -> str:
    """A time span in the unit that suits its size: 28 ms, 1.4 s."""
    if value is None:
        return "–"
    if value == 0:
        return "0 s"
    size, unit = next((each for each in SECONDS if abs(value) >= each[0] * 0.9995), SECONDS[-1])
    if unit in {"h", "min"} and abs(value) < 600:
        size, unit = 1.0, "s"
    return f"{digits(value / size)} {unit}".replace("-", "−")


def size(value: float | None) -> str:
    if value is None:
        return "–"
    unit_size, unit = next((each for each in BYTES if abs(value) >= each[0]), BYTES[-1])
    return f"{digits(value / unit_size)} {unit}"


def plain(value: float | None) -> str:
    return "–" if value is None else digits(value).replace("-", "−")


def share(value: float | None) -> str:
    """A part of a whole; what is not all is never rounded to 100 %, what is not nothing never to 0 %."""
    if value is None:
        return "–"
    if 0.999 < value < 1:
        return ">99.9 %"
    if 0 < value < 0.001:
        return "<0.1 %"
    return f"{digits(value * 100)} %".replace("-", "−")


def counted(amount: float, one: str, many: str = "") -> str:
    """1 broker, 3 brokers, no brokers."""
    noun = one if amount == 1 else many or f"{one}s"
    return f"{digits(amount) if amount else 'no'} {noun}"


def short(text: str, characters_max: int = LONG) -> str:
    """Text that fits: one line without control characters, cut with an ellipsis."""
    line = " ".join(
        "".join(each if each.isprintable() else " " for each in text[: 4 * characters_max]).split()
    )
    return line if len(line) <= characters_max else f"{line[: characters_max - 1].rstrip()}…"


def ident(text: str, characters_max: int = 40) -> str:
    """An id that fits: it keeps its end, for that is where long ones differ."""
    line = short(text if len(text) <= 4 * LONG else text[: 2 * LONG] + text[-2 * LONG :], 4 * LONG)
    end = characters_max // 3
    return line if len(line) <= characters_max else f"{line[: characters_max - end - 1]}…{line[-end:]}"


def listed(parts: Sequence[str]) -> str:
    """a, b and c."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}" if parts else ""
