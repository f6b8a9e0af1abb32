"""Models as nodes: ONNX by onnxruntime, and voice activity by Silero's model.

    g.map(node, "melflow.models:Onnx", model="speaker.onnx", takes="rows", gives="rows", columns=192)
    g.map(node, "melflow.models:Vad", gives="utterances").segments_by()
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import os
from typing import Any, List, NamedTuple, Optional, Tuple

import numpy as np

from . import inputs
from ._melflow import RunError


def _hash_of_file(path: str) -> str:
    if not os.path.exists(path):
        raise RunError(f"{path}: there is no such file in {os.getcwd()}")
    found = hashlib.sha256()
    for part in (path, path + "_data", path + ".data"):  # weights may be in a file beside it
        if part == path or os.path.exists(part):
            with inputs.opened(part, inputs.MODEL) as file:
                while piece := file.read(1 << 20):
                    found.update(piece)
    return found.hexdigest()[:32]


def _session(path: str, threads: int) -> Any:
    try:
        import onnxruntime
    except ImportError:
        raise ImportError("onnxruntime is not installed (pip install 'melflow[onnx]')") from None
    inputs.opened(path, inputs.MODEL).close()  # onnxruntime would wait for a FIFO, and read a device without an end
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads  # the run's workers call it at once
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


class _Ends(NamedTuple):
    """The name and shape of a model's input, and of one of its outputs with its type: "tensor(int64)"."""

    input: str
    input_shape: List[Any]
    output: str
    shape: List[Any]
    type: str


def _ends(model: str, session: Any, output: "int | str") -> _Ends:
    given, made = session.get_inputs(), session.get_outputs()
    if len(given) != 1:
        raise RunError(f"{model}: has the inputs {', '.join(i.name for i in given)}; models with one input are supported")
    if given[0].type != "tensor(float)":
        raise RunError(f"{model}: its input {given[0].name} is {given[0].type}, and samples and rows are tensor(float)")
    names = [one.name for one in made]
    if isinstance(output, int) and not 0 <= output < len(names) or isinstance(output, str) and output not in names:
        raise RunError(f"{model}: has no output {output!r}; its outputs are {', '.join(names)}")
    which = made[output] if isinstance(output, int) else made[names.index(output)]
    return _Ends(given[0].name, list(given[0].shape), which.name, list(which.shape or []), which.type)


@functools.lru_cache(maxsize=64)
def _ends_of(model: str, _hash: str, output: "int | str") -> _Ends:
    """As _ends, cached by the file's content: several plans of one run open it once."""
    return _ends(model, _session(model, 1), output)


class Onnx:
    """A model with one input of float32, for the samples or rows of one recording.

    model: the path. output: the name or number of the output that becomes rows. batch: adds an axis of size 1 before the input
    and removes it from the output; not given: where the model's input has one axis more than the samples or rows. frames: cuts
    the samples or rows into pieces of so many, the last one padded with zeros, and calls the model with `at_once` of them as a
    batch, filled up with the last of them, whatever the recording's length, so that rows do not depend on it; each piece gives a
    row. threads: of one call."""

    def __init__(self, model: str, output: "int | str" = 0, batch: Optional[bool] = None, frames: Optional[int] = None,
                 at_once: int = 16, threads: int = 1) -> None:
        self._session = _session(model, threads)
        ends = _ends(model, self._session, output)
        self._name, self._shape, self._output = ends.input, ends.input_shape, ends.output
        self._batch, self._frames, self._at_once = batch, frames, at_once

    @staticmethod
    def _melflow_check(columns: int, dtype: str, model: str, output: "int | str" = 0, **_: Any) -> None:
        """Checks before a run that the model can be called, and gives rows of `columns` values (0: not known) for `dtype`."""
        ends = _ends_of(model, _hash_of_file(model), output)
        name, shape = ends.output, ends.shape
        if dtype != "float32" and "int" not in ends.type:
            raise RunError(f"{model}: its output {name} is {ends.type}, and dtype: {dtype} is for integers; leave out dtype, or name an "
                           "output of integers")
        values = shape[-1] if shape else None
        if columns and isinstance(values, int) and (columns != values if len(shape) <= 2 else columns % values):
            raise RunError(f"{model}: its output {name} is {shape}, rows of {values} values, and columns is {columns}; set columns: {values}")

    @staticmethod
    def fingerprint(model: str, **_: Any) -> str:
        return _hash_of_file(model)

    def _run(self, array: np.ndarray) -> np.ndarray:
        fits = len(self._shape) == array.ndim and all(not isinstance(n, int) or n == m for n, m in zip(self._shape, array.shape))
        if not fits:
            raise ValueError(f"the model takes {list(self._shape)}, and this recording gives {list(array.shape)}")
        return self._session.run([self._output], {self._name: array})[0]

    def __call__(self, array: np.ndarray) -> np.ndarray:
        if self._frames is None:
            batch = self._batch if self._batch is not None else len(self._shape) == array.ndim + 1
            out = self._run(array[None] if batch else array)
            return out[0] if batch else out
        if not len(array):
            raise ValueError("this recording is empty")
        count = -(-len(array) // self._frames)
        pieces = np.empty((-(-count // self._at_once) * self._at_once, self._frames, *array.shape[1:]), np.float32)
        flat = pieces.reshape(-1, *array.shape[1:])
        flat[:len(array)] = array
        flat[len(array):count * self._frames] = 0
        pieces[count:] = pieces[count - 1]
        rows = [self._run(pieces[i:i + self._at_once]) for i in range(0, count, self._at_once)]
        return np.concatenate(rows)[:count]


_RATE, _PIECE, _CONTEXT, _AT_ONCE = 16000, 512, 64, 512  # [Hz], [samples], [samples], pieces of a call


class Vad:
    """Stretches of speech, by the model of the package silero-vad (pip install --no-deps silero-vad onnxruntime) and the rule of
    its get_speech_timestamps: for gives: utterances. Samples are at 16 kHz.

    threshold: probability at which speech begins; it ends below threshold - 0.15. min_speech, min_silence, pad [s]: shorter
    speech is left out, shorter silence is part of speech, and so much before and after belongs to it. max_speech [s]: longer
    speech is cut at its longest silence of 98 ms or more, or there. model: the path of silero_vad_16k_sequence.onnx."""

    def __init__(self, threshold: float = 0.5, min_speech: float = 0.25, min_silence: float = 0.1, pad: float = 0.03,
                 max_speech: float = float("inf"), model: Optional[str] = None) -> None:
        self._session = _session(self._model(model), 1)
        self._threshold, self._least, self._silence = threshold, min_speech, min_silence
        self._pad, self._most = pad, max_speech

    @staticmethod
    def _model(model: Optional[str]) -> str:
        if model is not None:
            return model
        found = importlib.util.find_spec("silero_vad")
        if found is None or not found.submodule_search_locations:
            raise ImportError("silero-vad is not installed (pip install --no-deps silero-vad)")
        return os.path.join(found.submodule_search_locations[0], "data", "silero_vad_16k_sequence.onnx")

    @classmethod
    def fingerprint(cls, model: Optional[str] = None, **_: Any) -> str:
        return _hash_of_file(cls._model(model))

    def probabilities(self, samples: np.ndarray) -> np.ndarray:
        """The probability of speech in each piece of 32 ms."""
        pieces = -(-len(samples) // _PIECE)
        padded = np.zeros(_CONTEXT + pieces * _PIECE, np.float32)
        padded[_CONTEXT:_CONTEXT + len(samples)] = samples
        # Each piece with the end of the one before.
        views = np.lib.stride_tricks.sliding_window_view(padded, _CONTEXT + _PIECE)[::_PIECE]
        h = c = np.zeros((1, 1, 128), np.float32)
        out = [np.zeros(0, np.float32)]
        for at in range(0, pieces, _AT_ONCE):
            block = np.ascontiguousarray(views[at:at + _AT_ONCE])
            some, h, c = self._session.run(["speech_probs", "hn", "cn"], {"input": block, "h": h, "c": c})
            out.append(some)
        return np.concatenate(out)

    def __call__(self, samples: np.ndarray, rate: int) -> List[Tuple[float, float]]:
        if rate != _RATE:
            raise ValueError(f"samples are at {rate} Hz; put a resample stage with rate: 16kHz before")
        pad = self._pad * _RATE
        speech = _stretches(self.probabilities(samples), _PIECE, len(samples), self._threshold, self._least * _RATE,
                            self._silence * _RATE, pad, self._most * _RATE - _PIECE - 2 * pad, 0.098 * _RATE)
        return [(begin / _RATE, end / _RATE) for begin, end in speech]


def _stretches(probabilities: np.ndarray, size: int, count: int, threshold: float, least: float, silence: float, pad: float,
               most: float, least_cut: float) -> List[Tuple[int, int]]:
    """[samples]. Speech begins at the threshold, and has ended where the probability was then below threshold - 0.15 for so
    long (silence). Where it gets too long (most), it is cut at the longest silence in it."""
    found: List[Tuple[int, int]] = []
    begin: Optional[int] = None  # of the present stretch
    quiet: Optional[int] = None  # where silence began in it
    cut = (0, 0)  # the longest silence in it: length and beginning
    for i, probability in enumerate(probabilities):
        at = i * size
        is_speech = probability >= threshold
        if is_speech and quiet is not None:
            if at - quiet > least_cut and at - quiet > cut[0]:
                cut = (at - quiet, quiet)
            quiet = None
        if begin is None:
            begin = at if is_speech else None
            continue
        if at - begin > most:
            length, where = cut
            found.append((begin, where if length else at))
            begin, quiet, cut = where + length if length else None, None, (0, 0)
            if begin is None:
                continue
        if probability < threshold - 0.15:
            quiet = at if quiet is None else quiet
            if at - quiet >= silence:
                if quiet - begin > least:
                    found.append((begin, quiet))
                begin, quiet, cut = None, None, (0, 0)
    if begin is not None and count - begin > least:
        found.append((begin, count))
    # Each end moves by `pad`, but not beyond the middle of the silence there.
    ends = [-2 * pad - 1, *(end for _, end in found)]
    begins = [*(begin for begin, _ in found), count + 2 * pad + 1]
    return [(int(max(0, begin - min(pad, (begin - ends[i]) // 2))), int(min(count, end + min(pad, (begins[i + 1] - end) // 2))))
            for i, (begin, end) in enumerate(found)]
