"""A recording that a caller gives, as a file or samples, and its rows by the stages of a pipeline."""

from __future__ import annotations

import errno
import inspect
import os
import re
from typing import Any, Mapping, Tuple

import numpy as np

from . import _melflow, arguments, items
from ._melflow import FeatureChain, RowCall, RunError
from .call_results import array_of

Made = Tuple[Any, str]  # rows, and the warning about them or ""

OF_DECODE = ("truncated", "downmix")  # options of files
KINDS = ("audio is a file's path, its bytes, an open file, an array, a dict of these as the package datasets has it, or a list of "
         "such recordings")


def is_list(audio: Any) -> bool:
    """Whether it is a list of recordings; a list of numbers is samples."""
    return isinstance(audio, (list, tuple)) and not (audio and isinstance(audio[0], (int, float, np.number)))


def _is_bytes(audio: Any) -> bool:
    """Of a file; a view of other numbers is of samples."""
    return isinstance(audio, (bytes, bytearray)) or isinstance(audio, memoryview) and audio.format in ("B", "b", "c")


def recording_of(audio: Any, sample_rate: Any) -> Tuple[Any, bool, Any]:
    """A recording without the dict around it, whether it is a file, and the rate of samples."""
    if isinstance(audio, Mapping):
        audio, rate_of_dict = items.audio_of(audio)
        if rate_of_dict is not None and sample_rate not in (None, rate_of_dict):
            raise ValueError(f"the samples of the dict have {rate_of_dict} Hz, and sample_rate is {arguments.shown(sample_rate)}; leave it out")
        sample_rate = sample_rate if rate_of_dict is None else rate_of_dict
    if audio is None:
        raise TypeError(f"{KINDS}, not None")
    return audio, isinstance(audio, (str, os.PathLike)) or _is_bytes(audio) or hasattr(audio, "read"), sample_rate


def rows_of_samples(chain: FeatureChain, samples: Any, sample_rate: Any, call: RowCall, out: Any) -> Made:
    array = array_of(samples)
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{KINDS}, not {arguments.shown(samples)}")
    if array.ndim != 1:
        raise ValueError(f"samples have one axis, these have the shape {array.shape}; give one "
                         "channel, or the mean of all")
    if array.dtype.kind == "f":
        array = array.astype(np.float32, copy=False)
    elif array.dtype != np.int16:
        scale = "divide by the value of full scale"
        if not hasattr(samples, "dtype"):
            scale = "give np.array(samples, np.int16) where they are of 16 bits, or floats"
        elif array.dtype.kind == "i":
            scale = f"divide by 2**{8 * array.dtype.itemsize - 1} where that is their full scale"
        elif array.dtype == np.uint8:
            scale = "of 8 bits without a sign are (samples - 128.0) / 128"
        raise ValueError(f"samples are floating point with 1 as full scale, or int16, these are {array.dtype}: {scale}")
    if sample_rate is None:
        raise TypeError("an array needs sample_rate, the rate [Hz] of its samples, not None")
    rows, warning, _ = chain.rows_of_samples(call, out, np.ascontiguousarray(array), arguments.rate("sample_rate", sample_rate))
    scale = _melflow.scale_remark(float(max(array.max(), -array.min()))) if array.dtype.kind == "f" and len(array) else ""
    return rows, "; ".join(filter(None, (scale, warning)))


def rows_of_file(chain: FeatureChain, file: Any, call: RowCall, out: Any) -> Made:
    if isinstance(file, (str, os.PathLike)):
        name = arguments.path("audio", file)
        if "://" in name and not os.path.exists(name):
            raise ValueError(f"{_melflow.without_secrets(name)}: is a URL, and none is opened here; give what it has, as bytes "
                             "(urllib.request.urlopen(url)), or list it by file_list of a pipeline")
        if not os.path.exists(name):
            raise FileNotFoundError(errno.ENOENT, f"there is no such file in {os.getcwd()}", name)
        rows_of, what = chain.rows_of_file, name
    else:
        rows_of, what, name = chain.rows_of_bytes, _bytes_of(file), str(getattr(file, "name", "audio"))
    try:
        rows, warning, _ = rows_of(call, out, what)
        return rows, f"{name}: {with_arguments(warning)}" if warning else ""
    except TimeoutError as error:
        raise TimeoutError(f"{name}: {error}") from None
    except RunError as error:
        raise RunError(f"{name}: {with_arguments(str(error))}") from None


def _bytes_of(file: Any) -> Any:
    data = file if _is_bytes(file) else file.read()
    if inspect.iscoroutine(data):
        data.close()
        raise TypeError("audio is an open file whose read() is a coroutine; give what it reads (await file.read())")
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise TypeError("audio is a file opened in binary mode (open(path, 'rb')), not one of text")
    return data if not isinstance(data, memoryview) or data.c_contiguous else bytes(data)


def writable(out: Any) -> Any:
    """The memory of `out` as an array."""
    array = np.asarray(out) if hasattr(out, "__array__") else None
    if array is None or not (array.flags.c_contiguous and array.flags.writeable):
        raise TypeError("out is an array that can be written to, its rows one after the other in memory, not "
                        f"{arguments.shown(out) if array is None else 'a view or a constant'}")
    return array


def with_arguments(reason: str) -> str:
    """The reason from the stage decode, with YAML option names as Python arguments."""
    return re.sub(rf"\b({'|'.join(OF_DECODE)}): (\w+)", r'\1="\2"', reason)
