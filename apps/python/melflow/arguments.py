"""Arguments as they must be, or an exception that names them."""

from __future__ import annotations

import enum
import functools
import json
import operator
import os
import warnings
from typing import Any, Dict, Iterable, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

Pipeline = Union["os.PathLike[str]", str, Mapping[str, Any]]


def pipeline(given: Pipeline) -> Tuple[str, str]:
    """The path of a pipeline's file and "", or of a dict or a text its name in messages and the
    text. A text has a line break in it, or begins with {."""
    if isinstance(given, Mapping):
        return "pipeline", json.dumps(plain(given), ensure_ascii=False)
    if isinstance(given, str) and ("\n" in given or given.lstrip().startswith("{")):
        return "pipeline", given
    if not isinstance(given, (str, bytes, os.PathLike)):
        raise TypeError("a pipeline is the path of a YAML file, the text of one, or a dict, not "
                        f"{given!r}")
    return os.fsdecode(given), ""


def plain(value: Any) -> Any:
    """A value of an option as JSON has it: of NumPy and of enumerations as what it stands for, a
    path as a text."""
    if isinstance(value, enum.Enum):
        value = value.value
    if isinstance(value, np.dtype) or (isinstance(value, type) and issubclass(value, np.generic)):
        return np.dtype(value).name
    if isinstance(value, os.PathLike):
        return os.fsdecode(value)
    if hasattr(value, "tolist"):  # arrays and scalars of NumPy and torch
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f"{value!r} is no value of an option: these are numbers, texts, paths, True, "
                    "False, None, and lists and dicts of them")


def text_of(value: Any) -> str:
    """A value of an option as --set of the program has it."""
    value = plain(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def assigned(what: str, values: Optional[Mapping[str, Any]]) -> Dict[str, str]:
    """The argument `vars` or `sets`, with values as --var and --set of the program have them."""
    if values is not None and not isinstance(values, Mapping):
        raise TypeError(f"{what} is a dict of names and values, not {values!r}")
    out = {}
    for name, value in (values or {}).items():
        try:
            out[str(name)] = text_of(value)
        except TypeError as error:
            raise TypeError(f"{what}: {name}: {error}") from None
        if what == "vars" and isinstance(plain(value), (list, dict)):
            raise TypeError(f"vars: {name}: a variable stands for one value, and this is "
                            f"{value!r}; give the option itself by sets")
    return out


def warn(messages: Iterable[str], stacklevel: int) -> None:
    """Shows what the program would show as warnings."""
    for message in messages:
        warnings.warn(message, stacklevel=stacklevel + 1)


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


class Reopened:
    """What is pickled as the arguments that it was made of, and opened again where it arrives."""

    _arguments: "tuple[tuple, Dict[str, Any]]"

    def __new__(cls, *args: Any, **options: Any) -> "Reopened":
        self = super().__new__(cls)
        self._arguments = args, options
        return self

    def _position(self) -> Optional[Dict[str, Any]]:
        """Attributes that are pickled beside the arguments."""
        return None

    def __reduce__(self) -> tuple:
        args, options = self._arguments
        return functools.partial(type(self), *args, **options), (), self._position()
