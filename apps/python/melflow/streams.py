"""Rows of samples that come as they are recorded."""

from __future__ import annotations

import functools
import re
from typing import Any, List, Mapping, NamedTuple, Optional, Sequence, Union

import numpy as np

from . import _melflow, arguments
from ._melflow import ConfigError, RunError, StreamFront, preset_rate
from .call_results import array_of
from .features import Nodes, graph_text, named_nodes


class Delay(NamedTuple):
    """Row t is out at the latest when t hops and `samples` samples have been pushed."""
    samples: int
    seconds: float


class Stream:
    """One recording whose samples come in pieces; melflow.stream makes it.

    push() gives the rows that no later sample can change, finish() the rest: together, bit for bit, the rows of the whole
    recording, whatever the pieces. A stream is for one thread at a time; different streams are for any threads."""

    def __init__(self, front: StreamFront, sample_rate: int) -> None:
        self._front = front
        self._stream = front.stream()
        self.sample_rate = sample_rate

    def push(self, samples: Any) -> np.ndarray:
        """Takes samples of one channel, any number of them: int16, or floating point with 1 as full scale. Gives rows
        [n, columns], n often being 0. Raises RunError after finish(), and where rows are not finite."""
        return _given(push_all([self._stream], [_samples(samples)], False))

    def finish(self) -> np.ndarray:
        """The rows that remain, as no samples follow; of a recording shorter than a frame there are none."""
        return _given(push_all([self._stream], None, True))

    def reset(self) -> None:
        """Begins another recording."""
        self._stream.reset()

    def another(self) -> "Stream":
        """A stream of another recording, with the same settings, whose tables it shares."""
        return Stream(self._front, self.sample_rate)

    @property
    def delay(self) -> Optional[Delay]:
        """How long rows wait, in samples of the stream; None where all come from finish()."""
        given = self._front.delay
        return None if given is None else Delay(*given)

    @property
    def columns(self) -> int:
        return self._front.columns

    @property
    def unit(self) -> str:
        return self._front.unit

    @property
    def fingerprint(self) -> str:
        """A text that is equal for equal features, as that of melflow.Features and of files."""
        return self._front.fingerprint


def push_all(streams: "List[Any]", chunks: Any, is_last: bool) -> Any:
    return _melflow.push(streams, chunks, is_last)


def _given(made: Any) -> np.ndarray:
    rows, _, failed = made
    for reason in failed.values():
        raise RunError(reason)
    return rows


def _samples(samples: Any) -> np.ndarray:
    if isinstance(samples, (bytes, bytearray)) or (isinstance(samples, memoryview) and samples.format in ("B", "b", "c")):
        raise TypeError("samples are an array, and these are bytes; of 16 bits write numpy.frombuffer(data, numpy.int16)")
    if type(samples) is not np.ndarray:
        samples = array_of(samples)
        if samples.size == 0:
            samples = samples.astype(np.float32)
    if samples.ndim != 1:
        raise ValueError(f"samples have one axis, these have the shape {samples.shape}; give one channel, or the mean of all")
    return _typed(samples)


def _typed(samples: np.ndarray) -> np.ndarray:
    if samples.dtype not in (np.float32, np.int16):
        if samples.dtype.kind != "f":
            raise ValueError(f"samples are floating point with 1 as full scale, or int16, these are {samples.dtype}")
        samples = samples.astype(np.float32)
    return np.ascontiguousarray(samples)


def push(streams: Sequence[Stream], chunks: Union[Sequence[Any], np.ndarray]) -> "List[Union[np.ndarray, RunError]]":
    """Pushes samples to several streams of one front end (the same arguments of melflow.stream, or Stream.another) in one call,
    which computes their rows together. chunks: an array of samples for each, or [streams, samples] for all; they may be of any
    length, also empty. Gives the rows of each, as Stream.push; of a stream that fails, the RunError in their place."""
    inner = [s._stream for s in streams]
    if not inner:
        return []
    given: Any = _typed(chunks) if isinstance(chunks, np.ndarray) and chunks.ndim == 2 else [_samples(c) for c in chunks]
    rows, counts, failed = push_all(inner, given, False)
    out: "List[Union[np.ndarray, RunError]]" = []
    begin = 0
    for count in counts:
        out.append(rows[begin:begin + count])
        begin += count
    for i, reason in failed.items():
        out[i] = RunError(reason)
    return out


@functools.lru_cache(maxsize=32)
def _front_of(text: str, sample_rate: int, finish_only: bool) -> StreamFront:
    try:
        return StreamFront("pipeline", text, {}, {}, sample_rate, finish_only)
    except (ConfigError, RunError) as error:  # the user has not written that text
        raise type(error)(re.sub(r"\bmel\.(?=\w)", "", str(error))) from None


def stream(pipeline: Optional[arguments.Pipeline] = None, *, sample_rate: Any, resample: Any = None, finish_only: bool = False,
           after: Nodes = None, vars: Optional[Mapping[str, Any]] = None, sets: Optional[Mapping[str, Any]] = None,
           **options: Any) -> Stream:
    """A stream, which gives rows of samples while they come:

        s = melflow.stream(preset="kaldi", sample_rate=48000)
        for samples in microphone:
            rows = s.push(samples)
        rows = s.finish()

    sample_rate: of the samples [Hz], 48000 or "48kHz". resample: the rate to which they are resampled for mel; left out, that of
    the preset, or sample_rate. options: those of the stage mel. after: nodes behind it, after=[{"stage": "deltas"}], as those of
    melflow.features. Or a pipeline, with vars and sets as of melflow.Loader: its stages
    from the decoder to its rows, which have to be one way.
    finish_only: allows what needs the whole recording (top_db, ref: max, normalize: per_feature); all rows then come from finish(),
    and the rows before that step are held in memory.

    Raises ConfigError where options are wrong, RunError where a stage or an option cannot be in a stream, with its name and what
    can be instead."""
    device = arguments.rate("sample_rate", sample_rate)
    if pipeline is not None:
        if options or resample is not None or after is not None:
            raise TypeError(f"a pipeline has its own options; leave out {', '.join(options) or 'resample and after'}")
        name, text = arguments.pipeline(pipeline)
        front = StreamFront(name, text, arguments.assigned("vars", vars), arguments.assigned("sets", sets), device, bool(finish_only))
        arguments.warn(front.warnings)
        return Stream(front, device)
    if vars is not None or sets is not None:
        raise TypeError("vars and sets are for a pipeline")
    preset = options.get("preset")
    theirs = None if preset is None else preset_rate(arguments.text_of(preset))
    rate = arguments.rate("resample", resample) if resample is not None else theirs or device
    text = graph_text(rate, options, after=named_nodes("after", after))
    return Stream(_front_of(text, device, bool(finish_only)), device)
