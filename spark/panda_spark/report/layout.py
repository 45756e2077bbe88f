"""Decides where the nodes of a network lie on a plane: as far apart as there are links between them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

ROUNDS_MAX = 400  # half a second for the largest network that is drawn
SETTLED = 1e-6  # of the stress: a round that gains less changes no pixel

Matrix = NDArray[np.float64]


def laid_out(names: Sequence[str], links: Iterable[tuple[str, str]]) -> dict[str, tuple[float, float]]:
    """A place for each name; parts without a link between them lie side by side."""
    places = _settled(_apart(names, links))
    return {name: (float(x), float(y)) for name, (x, y) in zip(names, places, strict=True)}


def _apart(names: Sequence[str], links: Iterable[tuple[str, str]]) -> Matrix:
    """How many links there are between any two (Floyd and Warshall)."""
    place = {name: number for number, name in enumerate(names)}
    apart = np.full((len(names), len(names)), np.inf)
    np.fill_diagonal(apart, 0)
    for a, b in links:
        apart[place[a], place[b]] = apart[place[b], place[a]] = 1
    for via in range(len(names)):
        _shorten(apart, via)
    before = 0
    for one in range(1, len(names)):
        if np.isinf(apart[one, :one]).all():  # the first of another part: linked to the part before it
            apart[one, before] = apart[before, one] = 1
            for end in (before, one):
                _shorten(apart, end)
            before = one
    return apart


def _shorten(apart: Matrix, via: int) -> None:
    np.minimum(apart, apart[:, via, None] + apart[None, via], out=apart)


def _settled(apart: Matrix) -> Matrix:
    """Places with little stress, by majorization: Gansner, Koren, North, Graph Drawing 2004, section 2."""
    turn = np.linspace(0, 2 * np.pi, len(apart), endpoint=False)
    places: Matrix = np.column_stack([np.cos(turn), np.sin(turn)])
    weights = np.zeros_like(apart)
    np.divide(1, apart**2, out=weights, where=apart > 0)
    inverse = np.linalg.pinv(np.diag(weights.sum(axis=1)) - weights)
    before = np.inf
    for _ in range(ROUNDS_MAX):
        across = places[:, None] - places[None]
        found = np.sqrt((across**2).sum(axis=-1))
        stress = float((weights * (found - apart) ** 2).sum())
        if before - stress <= SETTLED * (stress + 1):
            break
        before = stress
        pull = weights * apart / np.maximum(found, 1e-9)
        places = inverse @ (pull.sum(axis=1)[:, None] * places - pull @ places)
    return places
