"""Arguments as they must be, or an exception that names them."""

from __future__ import annotations

import operator
from typing import Any, Mapping, Optional, Sequence


def whole(name: str, value: Any, least: Optional[int] = 0) -> int:
    """An integer, also NumPy's, from `least` on; None: any."""
    try:
        out = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is a whole number, not {value!r}") from None
    if least is not None and out < least:
        raise ValueError(f"{name} is {least} or more, not {out}")
    return out


def state(value: Any, keys: Sequence[str], what: str) -> Mapping[str, Any]:
    """What state_dict() of `what` gave."""
    if not isinstance(value, Mapping):
        raise TypeError(f"a state is what state_dict() gives, not {value!r}")
    missing = [k for k in keys if k not in value]
    if missing:
        raise ValueError(f"not a state of {what}: it lacks {', '.join(missing)}")
    return value


def rank(number: Any, world_size: Any) -> "tuple[int, int]":
    """`rank` and `world_size`."""
    number, world_size = whole("rank", number), whole("world_size", world_size, 1)
    if number >= world_size:
        raise ValueError(f"rank {number} of {world_size}: rank is 0 to world_size - 1")
    return number, world_size
