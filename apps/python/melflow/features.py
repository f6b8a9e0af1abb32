"""Rows of recordings in memory and of files, by the stages of pipelines, from any number of threads."""

from __future__ import annotations

import asyncio
import difflib
import functools
import inspect
import json
import os
import re
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, BinaryIO, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Union, overload

import numpy as np

from . import _melflow, arguments, given_audio, row_lists
from ._melflow import ConfigError, FeatureChain, RowCall, RunError
from .given_audio import OF_DECODE, Made
from .stage_methods import stages

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .stage_methods import MelOptions

Padded = Tuple[np.ndarray, np.ndarray]
Nodes = Optional[Sequence[Mapping[str, Any]]]
Resampling = Optional[Mapping[str, Any]]


class Features(arguments.Reopened):
    """Rows of recordings, as a service computes them: by the stages of a pipeline, or by options of the stage mel. It may be called
    from many threads, which compute at the same time, and is pickled as its arguments.

        melflow.Features("speech.yaml")(samples, 16000)                  # what the pipeline gives for a file of these samples, bit for bit
        whisper = melflow.Features(preset="whisper", pad_to="30s")
        rows = whisper(upload, max_seconds=30)                           # [3000, 80]
        rows = await whisper.acall(upload, max_seconds=30, deadline=2)   # in one of `workers` threads

    pipeline, vars, sets: as those of melflow.Loader; a pipeline has all options.
    sample_rate, truncated, downmix, resample, pad_to, dtype, before, after, options: as those of melflow.features. sample_rate: of the rows; a preset
    of a model has it.
    workers: threads for lists and acall; as many as there are cores."""

    _warns_of_preset = True

    def __init__(self, pipeline: Optional[arguments.Pipeline] = None, *, vars: Optional[Mapping[str, Any]] = None,
                 sets: Optional[Mapping[str, Any]] = None, sample_rate: Optional[int] = None, truncated: Optional[str] = None,
                 downmix: "Optional[str | int]" = None, resample: Resampling = None, pad_to: "Optional[str | int]" = None, dtype: Any = None,
                 before: Nodes = None, after: Nodes = None, workers: Optional[int] = None, **options: Any) -> None:
        self._workers = len(os.sched_getaffinity(0)) if workers is None else arguments.workers(workers)
        self._pool: Optional[Tuple[int, ThreadPoolExecutor]] = None  # of the process with that number
        self._is_window = pad_to is not None
        if pipeline is None:
            if vars or sets:
                raise TypeError(f"{'vars' if vars else 'sets'}: for a pipeline, and none is given")
            check_names(Features, options)
            self._chain = _chain_of(rate_of(sample_rate, options, True), {"truncated": truncated, "downmix": downmix}, options_of_resample(resample),
                                    pad_to, dtype, named_nodes("before", before), named_nodes("after", after), options)
            self._said = said_of_preset(self._chain.warnings, options.get("preset"))
            if self._warns_of_preset:
                arguments.warn(self._said)
            return
        options.update(sample_rate=sample_rate, truncated=truncated, downmix=downmix, resample=resample, pad_to=pad_to, dtype=dtype, before=before,
                       after=after)
        if given := [name for name, value in options.items() if value is not None]:
            raise TypeError(f"{', '.join(given)}: a pipeline has its own; sets={{\"NODE.OPTION\": value}} changes them")
        name, text = arguments.pipeline(pipeline)
        self._chain = FeatureChain(name, text, arguments.assigned("vars", vars), arguments.assigned("sets", sets))
        arguments.warn(self._chain.warnings)

    @overload
    def __call__(self, audio: "Audio | Sequence[float]", sample_rate: Optional[int] = None, *, out: Any = None, max_seconds: Optional[float] = None,
                 max_samples: Optional[int] = None, deadline: Optional[float] = None, remarks: Optional[List[Dict[str, Any]]] = None) -> np.ndarray: ...

    @overload
    def __call__(self, audio: "Sequence[Audio]", sample_rate: Optional[int] = None, *, out: Any = None, padded: bool = False,
                 max_seconds: Optional[float] = None, max_samples: Optional[int] = None, deadline: Optional[float] = None,
                 remarks: Optional[List[Dict[str, Any]]] = None) -> "List[np.ndarray] | Padded": ...

    @arguments.renamed(samples="audio")
    def __call__(self, audio: Any, sample_rate: Optional[int] = None, *, out: Any = None, padded: bool = False,
                 max_seconds: Optional[float] = None, max_samples: Optional[int] = None, deadline: Optional[float] = None,
                 remarks: Optional[List[Dict[str, Any]]] = None) -> Any:
        """The rows of a recording, [rows, columns], or [rows, frames, columns] where the pipeline cuts recordings; or of a list.

        audio, out, padded, max_seconds, max_samples, deadline, remarks: as those of melflow.features. sample_rate: of samples; files have
        theirs. Where no stage resamples, samples and files have to be of the pipeline's rate. Raises and warns as melflow.features."""
        call = _call(max_seconds, max_samples, self._is_window, deadline)
        row_lists.noted(remarks)
        if not given_audio.is_list(audio):
            row_lists.refuse_padded(padded)
            return row_lists.shown(self._rows(audio, sample_rate, call, out), remarks)
        tasks = row_lists.tasks(audio, out, padded, lambda one, to: self._rows(one, sample_rate, call, to))
        return row_lists.joined(self._threads().map(row_lists.made_or_error, tasks), out, padded, remarks)

    async def acall(self, audio: Any, sample_rate: Optional[int] = None, *, out: Any = None, padded: bool = False,
                    max_seconds: Optional[float] = None, max_samples: Optional[int] = None, deadline: Optional[float] = None,
                    remarks: Optional[List[Dict[str, Any]]] = None) -> Any:
        """The same from a coroutine: the rows are computed in one of `workers` threads, those of a list in all. The deadline counts
        from here, also while others are computed. Cancelled, it computes no further."""
        call = _call(max_seconds, max_samples, self._is_window, deadline)
        row_lists.noted(remarks)
        is_list = given_audio.is_list(audio)
        if not is_list:
            row_lists.refuse_padded(padded)
        elif not audio:
            return row_lists.joined([], out, padded, remarks)
        tasks = row_lists.tasks(audio if is_list else [audio], out if is_list or out is None else [out], padded or not is_list,
                                lambda one, to: self._rows(one, sample_rate, call, to))
        futures = [self._threads().submit(row_lists.made_or_error, task) for task in tasks]
        waits = [asyncio.wrap_future(one) for one in futures]
        try:
            _, late = await asyncio.wait(waits, timeout=deadline)
        finally:
            call.end()
            for one in waits:
                one.cancel()
            running = [one for one in futures if not one.cancel() and not one.done()]
            if running and out is not None:  # a thread ends after the block at hand, and may write to `out` until then
                await asyncio.shield(asyncio.wait([asyncio.wrap_future(one) for one in running]))
        if late:
            raise TimeoutError(f"not ended by its deadline, {deadline:g} s")
        made = [one.result() for one in futures]
        if is_list:
            return row_lists.joined(made, out, padded, remarks)
        if isinstance(made[0], Exception):
            raise made[0]
        return row_lists.shown(made[0], remarks)

    def _threads(self) -> ThreadPoolExecutor:
        if self._pool is None or self._pool[0] != os.getpid():  # also in a process that was forked off, which has no threads
            self._pool = os.getpid(), ThreadPoolExecutor(self._workers, thread_name_prefix="melflow")
        return self._pool[1]

    def _rows(self, audio: Any, sample_rate: Optional[int], call: RowCall, out: Any) -> Made:
        audio, is_file, sample_rate = given_audio.recording_of(audio, sample_rate)
        to = None if out is None else given_audio.writable(out)
        if to is not None and self._is_window:
            to = to[None]
        if is_file:
            if sample_rate is not None:
                raise TypeError(f"sample_rate is that of samples, and a file has its own; leave {arguments.shown(sample_rate)} out")
            rows, warning = given_audio.rows_of_file(self._chain, audio, call, to)
        else:
            rows, warning = given_audio.rows_of_samples(self._chain, audio, sample_rate, call, to)
        if out is None:
            return rows[0] if self._is_window else rows, warning
        return out if self._is_window else out[:rows], warning

    @property
    def fingerprint(self) -> str:
        """A text that is equal for equal features: the attribute `feature_fingerprint` of files that the pipeline writes."""
        return self._chain.fingerprint

    def to_json(self) -> str:
        """All settings that can change a value, resolved, as a JSON object for code in another language: `format` (1), `melflow` (the
        version), `fingerprint`, and `stages` in the order of the data. An option that is not there has no effect, or its default."""
        return json.dumps({"format": 1, "melflow": _melflow.version, "fingerprint": self.fingerprint,
                           "stages": json.loads(self._chain.settings)})

    @property
    def unit(self) -> str:
        return self._chain.unit

    @property
    def band_hz(self) -> List[float]:
        """The centres of the columns [Hz], where they are bands."""
        return self._chain.band_hz

    @property
    def frame_seconds(self) -> float:
        """From a row to the next [s]; 0 where the rows are windows."""
        return self._chain.frame_seconds

    def check(self, fingerprint: str) -> None:
        """Raises RunError if the features differ from those with this fingerprint, with which a model was trained."""
        if not isinstance(fingerprint, str):
            raise TypeError("a fingerprint is a text, as the attribute feature_fingerprint of a "
                            f"file, not {arguments.shown(fingerprint)}")
        if fingerprint != self.fingerprint:
            raise RunError(f"the model was trained on features with the fingerprint {fingerprint}, these have "
                           f"{self.fingerprint}; `melflow compare` says which settings differ")


def named_nodes(argument: str, nodes: Nodes) -> List[Dict[str, Any]]:
    """The nodes given as `argument`, [{"stage": "fit_samples", "multiple": 128}], with their names as `node`."""
    if isinstance(nodes, (str, Mapping)) or not all(isinstance(node, Mapping) and isinstance(node.get("stage"), str) for node in nodes or ()):
        raise TypeError(f'{argument} is a list of nodes such as {{"stage": "fit_samples", "multiple": 128}}, not {arguments.shown(nodes)}')
    made: List[Dict[str, Any]] = []
    for node in nodes or ():
        same = sum(one["stage"] == node["stage"] for one in made)
        made.append({**arguments.plain(dict(node)), "node": f"{node['stage']}{same + 1 if same else ''}"})
    return made


def options_of_resample(resample: Resampling) -> Dict[str, Any]:
    """The options of the stage resample that are given as `resample`."""
    if resample is not None and (not isinstance(resample, Mapping) or {"rate", "stage", "from"} & set(resample)):
        raise TypeError(f'resample is a dict of options of the stage resample, such as {{"length": "librosa"}}, without the rate, which is sample_rate or '
                        f'the preset\'s, not {arguments.shown(resample)}')
    return arguments.plain(dict(resample or {}))


def said_of_preset(warnings: Sequence[str], preset: Any) -> List[str]:
    """Of the warnings of the pipeline that options stand for, those about a preset that is a model's file, or the name of a folder with one: what
    no file tells, and what the class does with long recordings. Other options have none that their user would not know."""
    name = arguments.text_of(preset or "")
    about = [text.partition(".preset: ")[2] for text in warnings if ".preset: " in text]
    return [f"preset: {text}" for text in about if _of_file(preset) or f"write ./{name} " in text]


def graph_text(rate: int, options: Mapping[str, Any], *, before: Sequence[Mapping[str, Any]] = (), after: Sequence[Mapping[str, Any]] = (),
               of_decode: Optional[Mapping[str, Any]] = None, of_resample: Optional[Mapping[str, Any]] = None, pad_to: Any = None,
               dtype: Any = None) -> str:
    """The pipeline that options stand for: those of the stage mel, with nodes (of named_nodes) before and behind it."""
    graph: Dict[str, Any] = {"files": {"stage": "file_list", "root": "/"}, "read": {"stage": "disk_read", "from": "files"},
                             "decode": {"stage": "decode", "from": "read", **(of_decode or {})},
                             "resample": {**(of_resample or {}), "stage": "resample", "from": "decode", "rate": rate}}

    def add(nodes: Sequence[Mapping[str, Any]], last: str) -> str:
        for node in nodes:
            name = node["node"]
            while name in graph:
                name += "_"
            graph[name] = {**{key: value for key, value in node.items() if key != "node"}, "from": last}
            last = name
        return last

    last = add(before, "resample")
    if pad_to is not None:
        graph["pad_to"] = {"stage": "segment", "from": last, "length": pad_to, "tail": "pad"}
        last = "pad_to"
    stage = _melflow.preset_stage(arguments.text_of(options.get("preset") or ""))
    graph["mel"] = {"stage": stage, "from": last, **options, "sample_rate": rate}
    graph["rows"] = {"stage": "batches", "from": add(after, "mel"), **({} if dtype is None else {"dtype": dtype})}
    return json.dumps(arguments.plain({"version": 1, "graph": graph}))


def _chain_of(rate: int, of_decode: Mapping[str, Any], of_resample: Mapping[str, Any], pad_to: Any, dtype: Any, before: List[Dict[str, Any]],
              after: List[Dict[str, Any]], options: Mapping[str, Any]) -> FeatureChain:
    text = graph_text(rate, options, before=before, after=after, of_decode=of_decode, of_resample=of_resample, pad_to=pad_to, dtype=dtype)
    try:
        return FeatureChain("pipeline", text, {}, {})
    except ConfigError as error:  # the user has not written that text
        raise ConfigError(re.sub(r"(?m)^(mel|decode|rows)\.", "",
                                 str(error).replace("pad_to.length", "pad_to").replace("resample.rate", "sample_rate"))) from None


def _call(max_seconds: Any, max_samples: Any, is_window: bool, deadline: Any) -> RowCall:
    return RowCall(None if max_seconds is None else arguments.seconds("max_seconds", max_seconds),
                   None if max_samples is None else arguments.integer("max_samples", max_samples), 1 if is_window else None,
                   None if deadline is None else arguments.seconds("deadline", deadline))


_TIMES = ("n_fft", "win_length", "hop")
_rate_of_name = functools.lru_cache(maxsize=32)(_melflow.preset_rate)


def _of_file(preset: Any) -> str:
    """What a preset that is a model's own file stands for, as JSON, read anew, as the file may have changed; "" for a name."""
    return "" if preset is None else _melflow.model_nodes(arguments.text_of(preset))


def _preset_rate(preset: Any) -> Optional[int]:
    of_file = _of_file(preset)
    return json.loads(of_file)["sample_rate"] if of_file else _rate_of_name(arguments.text_of(preset))


def rate_of(sample_rate: Any, options: Mapping[str, Any], of_files: bool) -> int:
    """The rate [Hz] of the samples for the stage mel: that of a model's preset, else sample_rate."""
    preset = options.get("preset")
    theirs = None if preset is None else _preset_rate(preset)
    if sample_rate is None and (theirs is None or not of_files):
        of_preset = "" if preset is None else f", as the preset {preset} is for any rate"
        raise TypeError(f"files need a preset of a model, or sample_rate, the rate [Hz] to which they are resampled{of_preset}" if of_files
                        else "an array needs sample_rate, the rate [Hz] of its samples, not None")
    rate = theirs if sample_rate is None else arguments.rate("sample_rate", sample_rate)
    if theirs in (None, rate) or any(name in options for name in _TIMES):
        return rate
    if of_files:
        raise ValueError(f"preset {preset} is for samples at {theirs} Hz, and sample_rate is {rate}: leave it out, or give n_fft, win_length "
                         f"and hop in samples of {rate} Hz")
    return theirs


def check_names(function: Callable[..., Any], options: Mapping[str, Any]) -> None:
    """Raises if an option is none of mel: TypeError if it is, or resembles, an argument of this or a sister function."""
    known = stages()["mel"]["properties"]
    for name in options:
        if name in known or name in OF_DECODE:
            continue
        from . import folders, pictures  # which need this module
        arguments_of = {f.__name__: inspect.signature(f.__init__ if f is Features else f).parameters
                        for f in (function, features, folders.folder, pictures.show)}
        owners = [f"melflow.{f}" for f, names in arguments_of.items() if name in names]
        near = difflib.get_close_matches(name, arguments_of[function.__name__], 1, 0.75)
        if owners:
            raise TypeError(f"melflow.{function.__name__} has no argument {name!r}; {' and '.join(owners)} {'has' if len(owners) == 1 else 'have'} it")
        if near:
            raise TypeError(f"melflow.{function.__name__} has no argument {name!r}. Did you mean {near[0]!r}?")
        if function is folders.folder:  # Graph refuses it
            continue
        advice = _melflow.option_advice("mel", name, str(options[name]))
        raise ConfigError(f"{name}: unknown option of mel{advice or '; `melflow stages mel` lists its options'}")


class _KeptFeatures(Features):
    """Which is made once for many calls, each of which says what is to be said of the preset."""
    _warns_of_preset = False


@functools.lru_cache(maxsize=32)
def _of_options(options: str, rate: int, of_file: str) -> Features:  # pylint: disable=unused-argument
    return _KeptFeatures(sample_rate=rate, **json.loads(options))


def features_of(audio: Any, sample_rate: Any, options: Mapping[str, Any]) -> "Tuple[Features, Any, Any]":
    """What computes a recording with arguments of melflow.features, the recording, and the rate of its samples."""
    audio, is_file, sample_rate = given_audio.recording_of(audio, sample_rate)
    for name in () if is_file else OF_DECODE:
        if options.get(name) is not None:
            raise TypeError(f"{name} is for files, and this is an array of samples; leave it out")
    by = _of_options(json.dumps(arguments.plain(options)), rate_of(sample_rate, options, is_file), _of_file(options.get("preset")))
    return by, audio, None if is_file else sample_rate


Audio = Union[np.ndarray, "os.PathLike[str]", str, bytes, bytearray, memoryview, BinaryIO, Mapping[str, Any]]


@overload
def features(audio: "Audio | Sequence[float]", sample_rate: Optional[int] = None, *, truncated: Optional[str] = None,
             downmix: "Optional[str | int]" = None, resample: Resampling = None, pad_to: "Optional[str | int]" = None, dtype: Any = None,
             before: Nodes = None, after: Nodes = None, out: Any = None,
             max_seconds: Optional[float] = None, max_samples: Optional[int] = None, deadline: Optional[float] = None,
             remarks: Optional[List[Dict[str, Any]]] = None, **options: "Unpack[MelOptions]") -> np.ndarray: ...


@overload
def features(audio: Sequence[Audio], sample_rate: Optional[int] = None, *, truncated: Optional[str] = None,
             downmix: "Optional[str | int]" = None, resample: Resampling = None, pad_to: "Optional[str | int]" = None, dtype: Any = None,
             before: Nodes = None, after: Nodes = None, out: Any = None,
             padded: bool = False, max_seconds: Optional[float] = None, max_samples: Optional[int] = None,
             deadline: Optional[float] = None, remarks: Optional[List[Dict[str, Any]]] = None,
             **options: "Unpack[MelOptions]") -> "List[np.ndarray] | Padded": ...


def features(audio: Any, sample_rate: Optional[int] = None, *, truncated: Optional[str] = None,
             downmix: "Optional[str | int]" = None, resample: Resampling = None, pad_to: "Optional[str | int]" = None, dtype: Any = None,
             before: Nodes = None, after: Nodes = None, out: Any = None,
             padded: bool = False, max_seconds: Optional[float] = None, max_samples: Optional[int] = None,
             deadline: Optional[float] = None, remarks: Optional[List[Dict[str, Any]]] = None, **options: Any) -> Any:
    """Mel rows [frames, bands] of one recording, or a list of them for a list of recordings, which are computed in as many
    threads as there are cores.

        melflow.features("a.flac", preset="whisper")
        melflow.features(samples, 16000, n_mels=80)

    audio: a file's path, its bytes (bytes, bytearray, memoryview, which are read where they are), or an open binary file, of any format
    and rate, which is resampled to sample_rate or the rate of the preset; or samples of one channel at sample_rate [Hz], int16, or
    floating point with 1 as full scale, which are resampled where the preset is of a model for another rate; or a dict with these as
    `path`, `bytes`, or `array` and `sampling_rate`, as the package datasets gives them.
    sample_rate: 16000, or "16kHz".
    resample: options of the stage resample: {"length": "librosa"} gives as many samples as librosa does.
    truncated, downmix: of files, as of the stage decode. A damaged or cut-off file is lost where more than a tenth of it is; with
    "keep" what can be read is used, with "fail" it is always lost. Channels are averaged; "left", "right" or a number takes one.
    pad_to: a length ("30s", or samples) to which each recording is padded with silence before its rows are computed, as `segment:
    {length: 30s, tail: pad}` does; a longer one is lost. dtype: of the rows: float32, float16 or bfloat16.
    options: those of the stage mel (preset="whisper", n_mels=80, hop="10ms", ...; `melflow stages mel`). A preset of a model
    is for one rate; at another one it needs n_fft, win_length or hop. None is the default, also where a preset sets another
    value: top_db=None clips nothing.
    before, after: nodes before mel, of samples, and behind it, of rows, in their order:
    before=[{"stage": "normalize_samples"}, {"stage": "fit_samples", "multiple": 128}], after=[{"stage": "stack", "frames": 2}].

    out: an array [rows, columns] or more rows, which gets the rows; the result is that part of it.
    padded: of a list, gives one array [recordings, rows, columns], with zeros behind the shorter ones, and the numbers of rows; `out`
    may be such an array.
    max_seconds, max_samples: a longer recording is lost, before more of it is decoded; samples are those of a channel, at its own rate.
    deadline: [s] from now; TimeoutError after that.
    remarks: a list to which each recording that is lost or damaged is added, as a dict of `index`, `status` ("failed" or
    "ok") and `reason`; given, nothing warns of those that are damaged.

    Raises ConfigError where options are wrong, RunError where a recording is lost (of a list: when all others have been computed,
    with how many); warns of those that are damaged otherwise, and of what a preset that is a model's file leaves open, such as where the class
    cuts long recordings."""
    if isinstance(audio, tuple) and len(audio) == 2 and np.ndim(audio[0]) > 0 and isinstance(audio[1], (int, np.integer)):
        raise TypeError("audio is a pair of samples and their rate; write features(samples, rate, ...)")
    row_lists.noted(remarks)
    check_names(features, options)
    call = _call(max_seconds, max_samples, pad_to is not None, deadline)
    options.update(truncated=truncated, downmix=downmix, before=before, after=after, **({} if pad_to is None else {"pad_to": pad_to}),
                   **({} if dtype is None else {"dtype": arguments.dtype(dtype)}), **({} if resample is None else {"resample": resample}))
    said: Dict[str, None] = {}  # in the order of the first call

    def rows_of(one: Any, to: Any) -> Made:
        by, one, rate = features_of(one, sample_rate, options)
        said.update(dict.fromkeys(by._said))
        return by._rows(one, rate, call, to)

    if not given_audio.is_list(audio):
        row_lists.refuse_padded(padded)
        result = row_lists.shown(rows_of(audio, out), remarks)
    else:
        tasks = row_lists.tasks(audio, out, padded, rows_of)
        with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            result = row_lists.joined(pool.map(row_lists.made_or_error, tasks), out, padded, remarks)
    arguments.warn(said)
    return result
