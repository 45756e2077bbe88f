"""Decides the colours of a report, by light and by dark; never what they stand for.

A figure is drawn in the light colours. In the page every one of them becomes a variable of the style sheet,
so that the same picture follows the reader's scheme and is light on paper. Hues are near those of Okabe and
Ito, which colour-blind readers tell apart; no two names share a light colour, for it is what is looked for.
"""

from __future__ import annotations

import re

LIGHT = {
    "ground": "#ffffff",
    "ink": "#18212e",
    "soft": "#5a6675",
    "line": "#d9dee5",
    "grid": "#eceff3",
    "rest": "#b4bcc7",
    "blue": "#0b62a4",
    "mid": "#5b9bd0",
    "pale": "#a9cbe8",
    "amber": "#c98500",
    "teal": "#00866b",
    "red": "#c8461b",
    "rose": "#b65c92",
    "sky": "#3fa3d9",
    "heat1": "#dbe9f4",
    "heat2": "#aecde6",
    "heat3": "#74a9d3",
    "heat4": "#3a7fb9",
    "heat5": "#11528c",
}
DARK = {
    "ground": "#14181f",
    "ink": "#e9edf3",
    "soft": "#a3aebc",
    "line": "#37404d",
    "grid": "#252c36",
    "rest": "#5c6775",
    "blue": "#6cb4f0",
    "mid": "#3f86c2",
    "pale": "#2b5a85",
    "amber": "#e9b13a",
    "teal": "#35c3a1",
    "red": "#f2825a",
    "rose": "#dc94bd",
    "sky": "#84cdf5",
    "heat1": "#1e3348",
    "heat2": "#27507a",
    "heat3": "#3a78b0",
    "heat4": "#66a8de",
    "heat5": "#b4daf8",
}
SERIES = tuple(LIGHT[name] for name in ("blue", "amber", "teal", "rose", "sky", "red"))
HEAT = tuple(LIGHT[f"heat{step}"] for step in range(1, 6))
VERDICTS = {
    "delivered": LIGHT["blue"],
    "late": LIGHT["amber"],
    "out of order": LIGHT["rose"],
    "twice": LIGHT["sky"],
    "lost": LIGHT["red"],
    "unexpected": LIGHT["ink"],
    "unsettled": LIGHT["rest"],
    "unknown": LIGHT["soft"],
}

_NAMES = {colour: name for name, colour in LIGHT.items()}
_PAINT = re.compile(r'\b(fill|stroke)="(#[0-9a-f]{6})"')


def themed_svg(svg: str) -> str:
    """The picture with variables in place of colours."""
    return _PAINT.sub(lambda found: f'{found[1]}="{_variable(found[2])}"', svg)


def themed_spec(part: object) -> object:
    """The same for a specification; its data stay as they are."""
    if isinstance(part, dict):
        return {
            key: value if key in {"values", "datasets"} else themed_spec(value) for key, value in part.items()
        }
    if isinstance(part, (list, tuple)):
        return [themed_spec(each) for each in part]
    return _variable(part) if isinstance(part, str) else part


def _variable(colour: str) -> str:
    name = _NAMES.get(colour)
    return f"var(--{name})" if name else colour


LABEL_FONT = 11  # pixels high
LEGEND_LABEL = 160  # pixels that a name in a legend may be wide
LEGEND: dict[str, object] = {
    "orient": "top",
    "title": None,
    "labelColor": LIGHT["soft"],
    "labelFontSize": LABEL_FONT,
    "symbolSize": 70,
    "labelLimit": LEGEND_LABEL,
    "offset": 6,
}
CONFIG: dict[str, object] = {
    "font": "sans-serif",
    "aria": False,  # a figure has its caption and its data; a label for each point would only be noise
    "background": LIGHT["ground"],
    "view": {"stroke": None},
    "axis": {
        "labelColor": LIGHT["soft"],
        "titleColor": LIGHT["soft"],
        "titleFontWeight": "normal",
        "titleFontSize": 11,
        "labelFontSize": LABEL_FONT,
        "labelLimit": 0,  # an axis of names says where they are cut
        "domainColor": LIGHT["line"],
        "tickColor": LIGHT["line"],
        "gridColor": LIGHT["grid"],
        "labelPadding": 5,
        "tickSize": 4,
    },
    "axisY": {"domain": False, "ticks": False},
    "legend": LEGEND,
    "text": {"color": LIGHT["ink"], "fontSize": 11},
    "line": {"strokeWidth": 1.8, "strokeJoin": "round"},
}
