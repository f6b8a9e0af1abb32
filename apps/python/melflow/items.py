"""Corpora that Python gives: the option `call` of the stage file_list, and Graph.items.

    def clips():
        for row in table:
            yield {"path": row.id, "audio": row.bytes, "label": row.word}

An item is a dict. `audio`: bytes of a sound file; an array [samples], [samples, channels] or [channels, samples] (the shorter axis is the
channels) of floats or int16, with the item's `sample_rate`; the path or URL of a file; or a function that gives one of these when it is needed. Without it, `path` is the
path of the file. `path`: its name in the corpus; items without one are numbered, and cannot be updated. `version`: any
text or number; if it differs, the item has changed. `bytes`: the size, if known in advance. All other keys are columns, which
become texts where an option asks for them.
"""

from __future__ import annotations

import datetime
import decimal
import enum
import hashlib
import json
import os
import posixpath
import struct
import tempfile
from typing import Any, Dict, Iterator, List, Mapping, Optional, Tuple, Union

import numpy as np

from . import _melflow, call_results, calls, inputs, stores
from ._melflow import RunError
from .call_loading import load

_OWN = ("audio", "sample_rate", "sampling_rate", "version", "bytes", "path")
_LIST = "\x1f"  # between the values of a list
_LARGEST = (1 << 32) - 4096  # of a WAV file


def _hash(data: Any) -> int:
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "little") >> 1


def _is_missing(value: Any) -> bool:
    """None, and what stands for it in tables of pandas: NaN, NaT and NA."""
    if isinstance(value, (float, np.floating, decimal.Decimal)):
        return bool(value != value)
    return value is None or type(value).__name__ in ("NAType", "NaTType") or isinstance(value, np.datetime64) and bool(np.isnat(value))


def _text(value: Any) -> str:
    """A cell of a table."""
    if isinstance(value, enum.Enum):
        value = value.value
    if isinstance(value, np.datetime64) and isinstance(value.item(), int):  # of nanoseconds, which datetime lacks
        value = value.astype("datetime64[us]")
    if hasattr(value, "item") and getattr(value, "ndim", 0) == 0:  # a number of NumPy or torch
        value = value.item()
    if _is_missing(value):
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value).decode("utf-8", "surrogateescape")
    if isinstance(value, (set, frozenset)):
        value = sorted(map(_text, value))  # in no order of their own
    if isinstance(value, (list, tuple)) or hasattr(value, "tolist"):
        return _LIST.join(map(_text, value))
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    return json.dumps(value, default=_str) if isinstance(value, Mapping) else _str(value)


def _str(value: Any) -> str:
    """The text of an object. Raises TypeError if that has the object's address in it, which differs in each run."""
    if type(value).__str__ is object.__str__ and type(value).__repr__ is object.__repr__:
        raise TypeError(f"is of the type {type(value).__qualname__}, which has no text; give the text or number that it stands for")
    return str(value)


def _wav(audio: Any, rate: Any) -> bytes:
    """An array of samples as a WAV file."""
    samples = call_results.array_of(audio)
    if isinstance(audio, np.ndarray) and not rate:
        raise TypeError("an array of samples needs `sample_rate`")
    if samples.ndim == 2 and samples.shape[0] == samples.shape[1] > 1:
        raise ValueError(f"audio is {call_results.shown(audio)}, of which either axis may be the channels; give more samples, or one axis")
    if samples.ndim == 2 and samples.shape[0] < samples.shape[1]:  # [channels, samples]
        samples = samples.T
    if samples.dtype.kind == "f":
        samples = samples.astype("<f4", copy=False)
    if samples.ndim not in (1, 2) or samples.dtype not in (np.float32, np.int16) or not rate:
        raise TypeError(f"audio is {call_results.shown(audio)}; it is bytes of a sound file, an array [samples] or [samples, channels] of "
                        "floats or int16 with `sample_rate`, a path, or a function that gives one of these")
    if float(rate) != int(rate) or int(rate) <= 0:
        raise ValueError(f"sample_rate is {rate!r}; it is a whole number of Hz")
    channels = 1 if samples.ndim == 1 else samples.shape[1]
    data = np.ascontiguousarray(samples).tobytes()
    if len(data) > _LARGEST:
        raise ValueError("an array of more than 4 GiB; give a file")
    width = samples.dtype.itemsize
    form = struct.pack("<HHIIHH", 3 if width == 4 else 1, channels, int(rate), int(rate) * channels * width, channels * width,
                       8 * width)
    return b"RIFF" + struct.pack("<I", 36 + len(data)) + b"WAVEfmt " + struct.pack("<I", 16) + form + b"data" + \
        struct.pack("<I", len(data)) + data


def _is_url(path: str) -> bool:
    return "://" in path


def _fetched(path: str) -> bytes:
    if not _is_url(path):
        return inputs.read(path, inputs.SOUND)
    return stores.fetched(path)


def audio_of(item: Mapping[str, Any]) -> Tuple[Any, Any]:
    """The audio of a dict of the package datasets (`array` and `sampling_rate`, or `bytes` and `path`), and the rate of an array."""
    if item.get("array") is not None:
        rate = item.get("sampling_rate", item.get("sample_rate"))
        if rate is None:
            raise ValueError("audio is a dict with `array`, and lacks `sampling_rate`")
        return item["array"], rate
    for name in ("bytes", "path"):
        if item.get(name) is not None:
            return item[name], None
    raise ValueError(f"audio is a dict with {', '.join(map(str, item)) or 'nothing'}; it has `array` and `sampling_rate`, `bytes`, or `path`")


def encoded(audio: Any, rate: Any = None) -> Union[bytes, bytearray, memoryview]:
    """Makes the bytes of a sound file from an item's audio."""
    if callable(audio) and not hasattr(audio, "__array__"):
        audio = audio()
    if isinstance(audio, tuple) and len(audio) == 2:
        audio, rate = audio
    if isinstance(audio, Mapping):
        return encoded(*audio_of(audio))
    if isinstance(audio, (bytes, bytearray, memoryview)):
        return audio
    if isinstance(audio, (str, os.PathLike)):
        return _fetched(os.fspath(audio))
    return _wav(audio, rate)


class Items:
    """The corpus of a call. next() lists it; read() gives the bytes of an item by its path."""

    def __init__(self, function: str, arguments: str, *web: int) -> None:
        self._limits = stores.Limits(*web)
        self._kept: Any = None  # a file with what an iterable has given
        target = load(function)
        try:
            with stores.within(self._limits):
                self._corpus = target(**json.loads(arguments))
        except Exception as error:
            raise RunError(f"{calls.shown_name(function)}: {call_results.described(error)}") from None
        if hasattr(self._corpus, "iterrows"):  # a data frame of pandas, whose [i] are columns
            self._corpus = self._corpus.to_dict("records")
        elif hasattr(self._corpus, "to_dicts"):  # of polars
            self._corpus = self._corpus.to_dicts()
        corpus = self._corpus
        self._is_indexed = hasattr(corpus, "__len__") and hasattr(corpus, "__getitem__")
        if isinstance(corpus, (str, bytes)) or not (self._is_indexed or hasattr(corpus, "__iter__")):
            raise RunError(f"{calls.shown_name(function)}: gives {call_results.shown(corpus)}; a corpus is an iterable of dicts, one for each recording")
        self._function = calls.shown_name(function)
        self._pairs = self._listed()
        self._at: Dict[str, Tuple[str, Any]] = {}  # how an item's audio is found
        self._known: Dict[str, Tuple[int, int, str]] = {}
        self._count = 0
        self._row: Dict[str, Any] = {}  # the columns of the item that next() gave last
        self._item = ""
        self.has_paths = True

    def __del__(self) -> None:
        if self._kept is not None:
            self._kept.close()

    def _listed(self) -> Iterator[Tuple[Any, Any]]:
        if isinstance(self._corpus, Mapping):
            for key in self._corpus:
                yield key, self._corpus[key]
        elif self._is_indexed:
            for i in range(len(self._corpus)):
                yield i, self._corpus[i]
        else:
            yield from enumerate(self._corpus)

    def next(self) -> Optional[Tuple[str, List[str], int, int, str, str]]:
        """path, names of columns, size, time, file or URL, and problem of the next item."""
        try:
            with stores.within(self._limits):
                key, item = next(self._pairs)
            self._count += 1
        except StopIteration:
            return None
        except RunError:
            raise
        except Exception as error:
            raise RunError(f"{self._function}: {call_results.described(error)}") from None
        self._item = f"item {key}"
        try:
            name, *rest = self._entry(key, item)
            self._row = {_text(column): value for column, value in item.items() if column not in _OWN}
        except Exception as error:
            path = item.get("path") if isinstance(item, Mapping) else None
            name = _text(path) if path else key if isinstance(key, str) else f"{self._count - 1:08}"
            self._row, rest = {}, [0, 0, "", f"{self._item}: {call_results.described(error)}"]
        columns = [*self._row, *(self._columns() if self._count == 1 else ())]  # the first item says what the columns are
        return name, columns, *rest

    def cell(self, column: str) -> Tuple[str, str]:
        """The text of a column of the last item of next(), or why it has none; only cells that are asked for are checked."""
        try:
            text = _text(self._row.get(column))
            text.encode()
            return text, ""
        except UnicodeEncodeError:
            return "", f"{self._item}: {column!a} is not UTF-8: {text[:100]!a}"
        except Exception as error:
            return "", f"{self._item}: {column!a}: {call_results.described(error)}"

    def _columns(self) -> List[str]:
        """The columns of all items, if these are in memory."""
        items = list(self._corpus.values()) if isinstance(self._corpus, dict) else self._corpus
        if not isinstance(items, (list, tuple)):
            return []
        keys = dict.fromkeys(key for item in items if isinstance(item, dict) for key in item if isinstance(key, str))
        return [key for key in keys if key not in _OWN]

    def _entry(self, key: Any, item: Any) -> Tuple[str, int, int, str, str]:
        if not isinstance(item, Mapping):
            raise TypeError(f"is {call_results.shown(item)}; an item is a dict")
        own = {name: item[name] for name in _OWN if name in item and not _is_missing(item[name])}
        audio, path = own.get("audio"), own.get("path")
        rate = own.get("sample_rate", own.get("sampling_rate"))
        if path is None and isinstance(key, str):
            path = key
        if audio is None:
            audio = path
        if audio is None:
            raise ValueError(f"has neither `audio` nor `path`, but {', '.join(map(str, item)) or 'nothing'}")
        if path is None:
            path = f"{self._count - 1:08}"
            self.has_paths = False
        name = posixpath.normpath(_text(path)).lstrip("/")
        if not name or name == "." or name.startswith("../") or "\0" in name:
            raise ValueError(f"has the path {path!r}, which is no name")
        if isinstance(audio, Mapping) and audio.get("bytes") is None and audio.get("array") is None:
            audio = audio.get("path")
        version, size, file = own.get("version"), int(own.get("bytes") or 0), ""
        if not 0 <= size < 1 << 62:
            raise ValueError(f"has {size} bytes")
        how: Tuple[str, Any] = ("file", None)
        time = 0 if version is None else _hash(_text(version).encode("utf-8", "surrogatepass"))
        if isinstance(audio, (str, os.PathLike)) and not _is_url(os.fspath(audio)):
            file = os.path.abspath(os.fspath(audio))
        elif callable(audio) and not hasattr(audio, "__array__") or isinstance(audio, str):
            how = ("later", audio if rate is None or isinstance(audio, str) else (lambda: (audio(), rate)))
            if isinstance(audio, str) and stores.is_plain(audio):
                file = audio
        else:
            data = encoded(audio, rate)
            size = len(data)
            time = time or _hash(data)
            how = ("index", key) if self._is_indexed else ("kept", data)
        # Utterances of a recording have its path each.
        if self._known.setdefault(name, (size, time, file)) != (size, time, file):
            raise ValueError(f"has the path {name!r} of another item, which is another recording")
        if name not in self._at:
            self._at[name] = ("kept", self._keep(how[1])) if how[0] == "kept" else how
        return name, size, time, file, ""

    def _keep(self, data: Any) -> Tuple[int, int]:
        if self._kept is None:
            self._kept = tempfile.TemporaryFile(buffering=0)
        at = self._kept.seek(0, os.SEEK_END)
        view = memoryview(data).cast("B")
        while view:
            view = view[self._kept.write(view):]
        return at, len(data)

    def read(self, path: str) -> Tuple[Any, str, bool]:
        """The bytes of the item, or None with the reason and whether the item is left out. From any thread."""
        with stores.within(self._limits):
            return self._read(path)

    def _read(self, path: str) -> Tuple[Any, str, bool]:
        try:
            how, what = self._at[path]
            if how == "index":
                item = self._corpus[what]
                return encoded(item["audio"], item.get("sample_rate", item.get("sampling_rate"))), "", False
            if how == "later":
                return encoded(what), "", False
            data = bytearray()
            while len(data) < what[1]:  # a call gives at most 2 GiB
                more = os.pread(self._kept.fileno(), what[1] - len(data), what[0] + len(data))
                if not more:
                    raise OSError("the temporary file has become shorter")
                data += more
            return data, "", False
        except call_results.Skipped as error:
            return None, str(error), True
        except BaseException as error:
            return None, call_results.described(error), False


_melflow.set_items(Items)
