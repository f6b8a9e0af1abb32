"""Arguments as they must be, or an exception that names them."""

from __future__ import annotations

import difflib
import enum
import functools
import hashlib
import inspect
import json
import operator
import os
import re
import sys
import warnings
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, Mapping, Optional, Sequence, Tuple, TypeVar, Union

import numpy as np

from ._melflow import with_arguments

if TYPE_CHECKING:
    from .graph import Graph

_PACKAGE = os.path.dirname(__file__) + os.sep
Call = TypeVar("Call", bound=Callable[..., Any])
Pipeline = Union["os.PathLike[str]", str, Mapping[str, Any], "Graph"]


def pipeline(given: Pipeline) -> Tuple[str, str]:
    """The path of a pipeline's file and "", or of a Graph, a dict or a text its name in messages and the
    text. A text has a line break in it, or begins with {."""
    if hasattr(given, "_is_melflow_graph"):
        given.check_sources()
        given = given.to_dict()
    if isinstance(given, Mapping):
        return "pipeline", json.dumps(plain(given), ensure_ascii=False)
    if isinstance(given, str) and ("\n" in given or given.lstrip().startswith("{")):
        return "pipeline", given
    what = "a pipeline is a Graph, the path of a YAML file, the text of one, or a dict"
    if not isinstance(given, (str, bytes, os.PathLike)):
        raise TypeError(f"{what}, not {shown(given)}")
    if not os.fspath(given):
        raise ValueError(f"{what}, not {given!r}")
    return os.fsdecode(given), ""


def shown(value: Any) -> str:
    """A value in a message."""
    text = repr(value)
    return text if len(text) <= 100 else text[:100] + "…"


def renamed(**names: str) -> Callable[[Call], Call]:
    """Makes a function refuse arguments by names that an earlier version had, each with its name today."""
    def of(function: Call) -> Call:
        @functools.wraps(function)
        def call(*args: Any, **given: Any) -> Any:
            for name in names.keys() & given.keys():
                raise TypeError(f"{name}: this argument is called {names[name]} since melflow 0.2")
            return function(*args, **given)
        return call  # type: ignore[return-value]
    return of


def size(count: float) -> str:
    """Bytes in a message."""
    for unit, factor in (("MiB", 2**20), ("KiB", 2**10)):
        if count >= factor:
            return f"{count / factor:,.1f} {unit}"
    return f"{count:.0f} bytes"


def digest(value: Any) -> str:
    """A hash of a setting that decides which samples come, for one that may be long; bytes count as they are."""
    data = value if isinstance(value, bytes) else repr(value).encode()
    return "#" + hashlib.sha256(data).hexdigest()[:12]


def plain(value: Any) -> Any:
    """A value of an option for JSON: what stands behind NumPy's values and enumerations, a
    path as a text."""
    if isinstance(value, enum.Enum):
        value = value.value
    if isinstance(value, np.dtype) or (isinstance(value, type) and issubclass(value, np.generic)):
        return np.dtype(value).name
    if isinstance(value, os.PathLike):
        return os.fsdecode(value)
    if hasattr(value, "tolist"):  # NumPy and torch arrays and scalars
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
    """A value of an option as text for the program's --set."""
    value = plain(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def assigned(what: str, values: Optional[Mapping[str, Any]]) -> Dict[str, str]:
    """The argument `vars` or `sets`, with values as text for the program's --var and --set."""
    if values is not None and not isinstance(values, Mapping):
        raise TypeError(f"{what} is a dict of names and values, not {shown(values)}")
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


def warn(messages: Iterable[str]) -> None:
    """Shows the program's warnings as Python's, at the line that called this package."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    for message in messages:
        warnings.warn(with_arguments(message), stacklevel=level)


_NAMED = 3


def counted(what: str, said: Sequence[str], count: int, all_in: str) -> str:
    """A message about `count` recordings that names the first ones; all_in: where all of them are listed."""
    more = [f"and {len(said) - _NAMED} more; {all_in}"] * (len(said) > _NAMED)
    return "\n  ".join([f"{len(said)} of {count} recordings {what}:", *said[:_NAMED], *more])


def meant(name: str, known: Iterable[str]) -> str:
    """A name of `known` that is similar, as a question; else all of them."""
    known = list(known)
    near = difflib.get_close_matches(name, known, 1)
    return f"Did you mean {near[0]!r}?" if near else f"There are {', '.join(known)}"


def known(method: str, kind: type, options: Iterable[str]) -> None:
    """Raises TypeError for an option that the class `kind`, of which `method` makes an object, does not take."""
    names = [name for name, p in inspect.signature(kind).parameters.items() if p.kind is p.KEYWORD_ONLY]
    for name in options:
        if name not in names:
            raise TypeError(f"{method} has no argument {name!r}. {meant(name, names)}")


_LARGEST = 2**63 - 1


def integer(name: str, value: Any, least: Optional[int] = 0, most: int = _LARGEST) -> int:
    """An integer, also NumPy's, from `least` (None: any) to `most`."""
    try:
        if isinstance(value, (bool, np.bool_)):
            raise TypeError
        out = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is a whole number, not {shown(value)}") from None
    if least is not None and out < least:
        raise ValueError(f"{name} is {least} or more, not {shown(out)}")
    if out > most:
        raise ValueError(f"{name} is {most} or less, not {shown(out)}")
    return out


def byte_count(name: str, value: Any) -> int:
    """A number of bytes from a text such as 256MiB."""
    match = re.fullmatch(r"(\d+)(|KiB|MiB|GiB)", text(name, value))
    if not match or int(match[1]) == 0:
        raise ValueError(f"{name}: {value!r} is no number of bytes; write one such as 256MiB or 1GiB")
    return int(match[1]) << {"": 0, "KiB": 10, "MiB": 20, "GiB": 30}[match[2]]


def seconds(name: str, value: Any) -> float:
    """A number of 0 or more, also NumPy's."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.number)):
        raise TypeError(f"{name} is a number of seconds, not {shown(value)}")
    if not 0 <= value < float("inf"):
        raise ValueError(f"{name} is 0 or more, not {shown(value)}")
    return float(value)


def rate(name: str, value: Any) -> int:
    """A sample rate [Hz]: 16000, or "16kHz" as in a pipeline."""
    if isinstance(value, str):
        found = re.fullmatch(r"(\d+(?:\.\d+)?) ?(k?)Hz", value)
        if found is None:
            raise ValueError(f"{name} is a rate, such as 16000 or '16kHz', not {shown(value)}")
        value = float(found[1]) * (1000 if found[2] else 1)
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        value = int(value)
    return integer(name, value, 1, 2**31 - 1)


def index(what: str, value: Any, count: int) -> int:
    """The index of one of `count` things; a negative one counts from the end."""
    i = integer(f"the number of a {what}", value, None)
    if not -count <= i < count:
        raise IndexError(f"{what} {shown(i)} of {count}")
    return i % count


def flag(name: str, value: Any) -> bool:
    """True or False, also NumPy's."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} is True or False, not {shown(value)}")
    return bool(value)


def text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{name} is a text, not {shown(value)}")
    return value


def dtype(value: Any) -> str:
    return text("dtype", plain(value) if isinstance(value, (type, np.dtype)) else value)


def workers(value: Any, least: int = 1) -> int:
    return integer("workers", value, least, 4096)


def path(name: str, value: Any) -> str:
    if not isinstance(value, (str, bytes, os.PathLike)) or not os.fspath(value):
        raise TypeError(f"{name} is a path, not {shown(value)}")
    return os.fsdecode(value)


def state(value: Any, keys: Sequence[str], what: str) -> Mapping[str, Any]:
    """Checks a result of state_dict() of `what`; the value of the last key is a dict."""
    if not isinstance(value, Mapping):
        raise TypeError(f"a state is what state_dict() gives, not {shown(value)}")
    missing = [k for k in keys if k not in value]
    if missing:
        raise ValueError(f"not a state of {what}: it lacks {', '.join(missing)}")
    if not isinstance(value[keys[-1]], Mapping):
        raise TypeError(f"{keys[-1]} of a state is a dict, not {shown(value[keys[-1]])}")
    return value


def rank(number: Any, world_size: Any) -> "tuple[int, int]":
    """`rank` and `world_size`, which must be given together; without them, those of a single program."""
    number = None if number is None else integer("rank", number)
    world_size = None if world_size is None else integer("world_size", world_size, 1, 2**31 - 1)
    if number is None and world_size in (None, 1):
        return 0, 1
    if number is None:
        raise ValueError(f"world_size is {world_size}, and rank is not given: each program gives its own, 0 to {world_size - 1}, such as "
                         'int(os.environ["RANK"])')
    if world_size is None:
        raise ValueError(f"rank is {number}, and world_size is not given: it is the number of programs, the same in each, such as "
                         'int(os.environ["WORLD_SIZE"])')
    if number >= world_size:
        raise ValueError(f"rank {number} of {world_size}: rank is 0 to world_size - 1")
    return number, world_size


class _NotOpened:
    """Stands for an object that could not be opened after unpickling; each use raises the error. Raised while it is
    unpickled, the error would end a worker of multiprocessing.Pool, which then waits for the task
    for ever."""

    def __init__(self, error: Exception) -> None:
        self.__dict__["_error"] = error

    def _raise(self, *_: Any, **__: Any) -> Any:
        raise self._error

    __getattr__ = __setattr__ = __getitem__ = __len__ = __iter__ = __call__ = _raise


def _open_again(kind: type, args: tuple, options: Dict[str, Any],
                position: Optional[Dict[str, Any]]) -> Any:
    try:
        out = kind(*args, **options)
    except Exception as error:
        return _NotOpened(error)
    out.__dict__.update(position or {})
    return out


class Reopened:
    """Base of objects that are pickled as their arguments, and opened again where they are unpickled."""

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
        return _open_again, (type(self), args, options, self._position())
