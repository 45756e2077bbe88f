"""Decides how the keys of surviving slots are read out of a block's row; never drops or adds one."""

from __future__ import annotations

from typing import Any

import numpy as np

from broker_runtime.matching.block import slots_of

SLOTS_ONE_BY_ONE_MAX = 32


def keys_of(row: int, keys: list[Any]) -> list[Any]:
    """The keys of the slots whose bits are set, ascending."""
    count = row.bit_count()
    if count == len(keys):
        return keys.copy()
    if count <= SLOTS_ONE_BY_ONE_MAX:
        return [keys[slot] for slot in slots_of(row)]
    packed = np.frombuffer(row.to_bytes(len(keys) // 8 + 1, "little"), np.uint8)
    slots = np.unpackbits(packed, bitorder="little").view(np.bool_).nonzero()[0]
    return list(map(keys.__getitem__, slots.tolist()))
