"""Rows of arrays, files and folders, by the stages of pipelines, and pictures of them."""

from __future__ import annotations

import difflib
import errno
import functools
import importlib
import inspect
import json
import os
import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any, BinaryIO, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Union, overload

import numpy as np

from . import _melflow, arguments, items
from ._melflow import ConfigError, FeatureChain, RunError, preset_rate
from .call_results import array_of
from .graph import Graph
from .loader import Loader
from . import program
from .rows import FileRows, Rows
from .stage_methods import stages


class Features(arguments.Reopened):
    """The stages of a pipeline after its decoder, as a function of samples. It may be called from many
    threads, and is pickled as its arguments.

    pipeline, vars, sets: as those of melflow.Loader.

    rows = Features("speech.yaml")(samples, 16000): what the pipeline gives for a file of these samples, bit for bit.
    """

    def __init__(self, pipeline: arguments.Pipeline, *, vars: Optional[Mapping[str, Any]] = None,
                 sets: Optional[Mapping[str, Any]] = None) -> None:
        name, text = arguments.pipeline(pipeline)
        self._chain = FeatureChain(name, text, arguments.assigned("vars", vars),
                                   arguments.assigned("sets", sets))
        arguments.warn(self._chain.warnings)

    def __call__(self, samples: Any, sample_rate: int) -> np.ndarray:
        """samples: [samples] of one channel, int16, or floating point with 1 as full scale. Gives [rows, columns], or
        [rows, frames, columns] where the pipeline cuts recordings. Raises RunError where a stage refuses them, and warns where
        one has a warning."""
        return _with_warning(_rows_of(self._chain, samples, sample_rate))

    @property
    def fingerprint(self) -> str:
        """A text that is equal for equal features: the attribute `feature_fingerprint` of files that the pipeline writes."""
        return self._chain.fingerprint

    @property
    def unit(self) -> str:
        return self._chain.unit

    def check(self, fingerprint: str) -> None:
        """Raises RunError if the features differ from those with this fingerprint, with which a model was trained."""
        if not isinstance(fingerprint, str):
            raise TypeError("a fingerprint is a text, as the attribute feature_fingerprint of a "
                            f"file, not {arguments.shown(fingerprint)}")
        if fingerprint != self.fingerprint:
            raise RunError(f"the model was trained on features with the fingerprint {fingerprint}, these have "
                           f"{self.fingerprint}; `melflow compare` says which settings differ")


_Rows = Tuple[np.ndarray, str]  # with the warning about them, or ""


def _with_warning(made: _Rows) -> np.ndarray:
    """Shows the warning about the rows, and returns them."""
    rows, warning = made
    arguments.warn([warning] if warning else [])
    return rows


_KINDS = ("audio is a file's path, its bytes, an open file, an array, a dict of these as the package datasets has it, or a list of "
          "such recordings")


def _rows_of(chain: FeatureChain, samples: Any, sample_rate: int) -> _Rows:
    array = array_of(samples)
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{_KINDS}, not {arguments.shown(samples)}")
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
    rows, warning, _ = chain.rows(np.ascontiguousarray(array), arguments.rate("sample_rate", sample_rate))
    scale = _melflow.scale_remark(float(max(array.max(), -array.min()))) if array.dtype.kind == "f" and len(array) else ""
    return rows, "; ".join(filter(None, (scale, warning)))


_TIMES = ("n_fft", "win_length", "hop")
_OF_DECODE = ("truncated", "downmix")


def _rate(sample_rate: Any, options: Mapping[str, Any], of_files: bool) -> int:
    """The rate [Hz] of the samples for the stage mel: sample_rate or, for files without it, the rate of the preset."""
    preset = options.get("preset")
    theirs = None if preset is None else preset_rate(arguments.text_of(preset))
    if sample_rate is None and of_files:
        sample_rate = theirs
    if sample_rate is None:
        raise TypeError("files need a preset of a model, or sample_rate, the rate [Hz] to which they are resampled" if of_files
                        else "an array needs sample_rate, the rate [Hz] of its samples, not None")
    rate = arguments.rate("sample_rate", sample_rate)
    if theirs not in (None, rate) and not any(name in options for name in _TIMES):
        raise ValueError(f"preset {preset} is for samples at {theirs} Hz, and sample_rate is {rate}: "
                         f"{'leave it out' if of_files else f'resample them to {theirs} Hz before'}, or give n_fft, win_length and hop "
                         f"in samples of {rate} Hz")
    return rate


def _check_names(function: Callable[..., Any], options: Mapping[str, Any]) -> None:
    """Raises if an option is none of mel: TypeError if it is, or resembles, an argument of this or a sister function."""
    known = stages()["mel"]["properties"]
    for name in options:
        if name in known or name in _OF_DECODE:
            continue
        arguments_of = {f.__name__: inspect.signature(f).parameters for f in (function, features, folder, show)}
        owners = [f"melflow.{f}" for f, names in arguments_of.items() if name in names]
        near = difflib.get_close_matches(name, arguments_of[function.__name__], 1, 0.75)
        if owners:
            raise TypeError(f"melflow.{function.__name__} has no argument {name!r}; {' and '.join(owners)} {'has' if len(owners) == 1 else 'have'} it")
        if near:
            raise TypeError(f"melflow.{function.__name__} has no argument {name!r}. Did you mean {near[0]!r}?")
        if function is folder:  # Graph refuses it
            continue
        advice = _melflow.option_advice("mel", name, str(options[name]))
        raise ConfigError(f"{name}: unknown option of mel{advice or '; `melflow stages mel` lists its options'}")


def _noted(remarks: Optional[List[Dict[str, Any]]], noted: Sequence[Dict[str, Any]] = ()) -> None:
    """Adds remarks to the list that the caller passed, if any."""
    if remarks is not None and not isinstance(remarks, list):
        raise TypeError(f"remarks is a list, to which recordings that are lost or damaged are added, not {arguments.shown(remarks)}")
    (remarks if remarks is not None else []).extend(noted)


_ALL_IN = "a list given as `remarks` gets all"


Nodes = Optional[Sequence[Mapping[str, Any]]]


def _nodes(argument: str, nodes: Nodes) -> List[Dict[str, Any]]:
    """The nodes given as `argument`, [{"stage": "fit_samples", "multiple": 128}], with their names as `node`."""
    if isinstance(nodes, (str, Mapping)) or not all(isinstance(node, Mapping) and isinstance(node.get("stage"), str) for node in nodes or ()):
        raise TypeError(f'{argument} is a list of nodes such as {{"stage": "fit_samples", "multiple": 128}}, not {arguments.shown(nodes)}')
    made: List[Dict[str, Any]] = []
    for node in nodes or ():
        same = sum(one["stage"] == node["stage"] for one in made)
        made.append({**arguments.plain(dict(node)), "node": f"{node['stage']}{same + 1 if same else ''}"})
    return made


@functools.lru_cache(maxsize=32)
def _chain_of(options: str, rate: int, of_files: bool) -> FeatureChain:
    mel = json.loads(options)
    before, after = mel.pop("before"), mel.pop("after")
    graph = {"files": {"stage": "file_list", "root": "/"}, "read": {"stage": "disk_read", "from": "files"},
             "decode": {"stage": "decode", "from": "read", **{name: mel.pop(name, None) for name in _OF_DECODE}}}
    if of_files:
        graph["resample"] = {"stage": "resample", "from": "decode", "rate": rate}

    def add(nodes: List[Dict[str, Any]], last: str) -> str:
        for node in nodes:
            name = node.pop("node")
            graph[name] = {**node, "from": last}
            last = name
        return last

    stage = _melflow.preset_stage(arguments.text_of(mel.get("preset") or ""))
    graph["mel"] = {"stage": stage, "from": add(before, "resample" if of_files else "decode"), **mel, "sample_rate": rate}
    graph["rows"] = {"stage": "batches", "from": add(after, "mel")}
    try:
        return FeatureChain("pipeline", json.dumps({"version": 1, "graph": graph}), {}, {}, of_files)
    except ConfigError as error:  # the user has not written that text
        raise ConfigError(re.sub(r"(?m)^(mel|decode)\.", "", str(error))) from None


Audio = Union[np.ndarray, "os.PathLike[str]", str, bytes, bytearray, memoryview, BinaryIO, Mapping[str, Any]]


@overload
def features(audio: "Audio | Sequence[float]", sample_rate: Optional[int] = None, *, truncated: Optional[str] = None,
             downmix: "Optional[str | int]" = None, before: Nodes = None, after: Nodes = None,
             remarks: Optional[List[Dict[str, Any]]] = None, **options: Any) -> np.ndarray: ...


@overload
def features(audio: Sequence[Audio], sample_rate: Optional[int] = None, *, truncated: Optional[str] = None,
             downmix: "Optional[str | int]" = None, before: Nodes = None, after: Nodes = None,
             remarks: Optional[List[Dict[str, Any]]] = None, **options: Any) -> List[np.ndarray]: ...


def features(audio: Any, sample_rate: Optional[int] = None, *, truncated: Optional[str] = None,
             downmix: "Optional[str | int]" = None, before: Nodes = None, after: Nodes = None,
             remarks: Optional[List[Dict[str, Any]]] = None, **options: Any) -> Any:
    """Mel rows [frames, bands] of one recording, or a list of them for a list of recordings, which are computed in as many
    threads as there are cores.

        melflow.features("a.flac", preset="whisper")
        melflow.features(samples, 16000, n_mels=80)

    audio: a file's path, its bytes, or an open binary file, of any format and rate, which is resampled to sample_rate or the rate
    of the preset; or samples of one channel at sample_rate [Hz], int16, or floating point with 1 as full scale; or a dict with
    these as `path`, `bytes`, or `array` and `sampling_rate`, as the package datasets gives them.
    sample_rate: 16000, or "16kHz".
    truncated, downmix: of files, as of the stage decode. A damaged or cut-off file is lost where more than a tenth of it is; with
    "keep" what can be read is used, with "fail" it is always lost. Channels are averaged; "left", "right" or a number takes one.
    options: those of the stage mel (preset="whisper", n_mels=80, hop="10ms", ...; `melflow stages mel`). A preset of a model
    is for one rate; at another one it needs n_fft, win_length or hop. None is the default, also where a preset sets another
    value: top_db=None clips nothing.
    before, after: nodes before mel, of samples, and behind it, of rows, in their order:
    before=[{"stage": "normalize_samples"}, {"stage": "fit_samples", "multiple": 128}], after=[{"stage": "stack", "frames": 2}].

    remarks: of a list, a list to which each recording that is lost or damaged is added, as a dict of `index`, `status` ("failed" or
    "ok") and `reason`.

    Raises ConfigError where options are wrong, RunError where a recording is lost (of a list: when all others have been computed,
    with how many); warns of those that are damaged otherwise."""
    if isinstance(audio, list) and not audio:
        return []
    if isinstance(audio, tuple) and len(audio) == 2 and np.ndim(audio[0]) > 0 and isinstance(audio[1], (int, np.integer)):
        raise TypeError("audio is a pair of samples and their rate; write features(samples, rate, ...)")
    _noted(remarks)
    _check_names(features, options)
    options |= {"truncated": truncated, "downmix": downmix, "before": _nodes("before", before), "after": _nodes("after", after)}
    if not _is_list(audio):
        return _with_warning(_features(audio, sample_rate, options)[0])

    def rows_or_error(of: Any) -> Any:
        try:
            return _features(of, sample_rate, options)[0]
        except (OSError, RunError) as error:
            return error

    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        made = list(pool.map(rows_or_error, audio))
    lost = {i: str(one) for i, one in enumerate(made) if isinstance(one, Exception)}
    said = {i: one[1] for i, one in enumerate(made) if i not in lost and one[1]}
    for status, of in (("failed", lost), ("ok", said)):
        _noted(remarks, [{"index": i, "status": status, "reason": text} for i, text in of.items()])
    for what, of in (("gave no rows", lost), ("have a warning", said)):
        if not of:
            continue
        text = arguments.counted(what, [f"[{i}] {text}" for i, text in of.items()], len(made), _ALL_IN)
        if of is lost:
            raise RunError(text)
        arguments.warn([text])
    return [rows for rows, _ in made]


def _is_list(audio: Any) -> bool:
    return isinstance(audio, (list, tuple)) and bool(audio) and not isinstance(audio[0], (int, float, np.number))


def _features(audio: Any, sample_rate: Optional[int], options: Dict[str, Any]) -> Tuple[_Rows, FeatureChain]:
    if isinstance(audio, Mapping):
        audio, rate_of_dict = items.audio_of(audio)
        if rate_of_dict is not None and sample_rate not in (None, rate_of_dict):
            raise ValueError(f"the samples of the dict have {rate_of_dict} Hz, and sample_rate is {arguments.shown(sample_rate)}; leave it out")
        sample_rate = sample_rate if rate_of_dict is None else rate_of_dict
    if audio is None:
        raise TypeError(f"{_KINDS}, not None")
    is_file = isinstance(audio, (str, os.PathLike)) or _is_bytes(audio) or hasattr(audio, "read")
    for name in () if is_file else _OF_DECODE:
        if options.get(name) is not None:
            raise TypeError(f"{name} is for files, and this is an array of samples; leave it out")
    rate = _rate(sample_rate, options, is_file)
    chain = _chain_of(json.dumps(arguments.plain({"before": [], "after": [], **options})), rate, is_file)
    return _rows_of_file(chain, audio) if is_file else _rows_of(chain, audio, rate), chain


def _is_bytes(audio: Any) -> bool:
    """Of a file; a view of other numbers is of samples."""
    return isinstance(audio, (bytes, bytearray)) or isinstance(audio, memoryview) and audio.format in ("B", "b", "c")


def _rows_of_file(chain: FeatureChain, file: Any) -> _Rows:
    if isinstance(file, (str, os.PathLike)):
        path = arguments.path("audio", file)
        if "://" in path and not os.path.exists(path):
            raise ValueError(f"{_melflow.without_secrets(path)}: is a URL, and melflow.features opens none; give what it has, as bytes "
                             "(urllib.request.urlopen(url)), or list it by file_list of a pipeline")
        if not os.path.exists(path):
            raise FileNotFoundError(errno.ENOENT, f"there is no such file in {os.getcwd()}", path)
        return _rows_at(chain, path, path)
    data = file if _is_bytes(file) else file.read()
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise TypeError("audio is a file opened in binary mode (open(path, 'rb')), not one of text")
    memory = os.memfd_create("melflow", os.MFD_CLOEXEC)
    try:
        with open(memory, "wb", closefd=False) as copy:
            copy.write(data)
        return _rows_at(chain, f"/proc/self/fd/{memory}", str(getattr(file, "name", "audio")))
    finally:
        os.close(memory)


def _rows_at(chain: FeatureChain, path: str, name: str) -> _Rows:
    try:
        rows, warning, _ = chain.rows_of_file(path)
        return rows, f"{name}: {_with_arguments(warning)}" if warning else ""
    except RunError as error:
        raise RunError(f"{name}: {_with_arguments(str(error))}") from None


def _with_arguments(reason: str) -> str:
    """The reason from the stage decode, with YAML option names as Python arguments."""
    return re.sub(rf"\b({'|'.join(_OF_DECODE)}): (\w+)", r'\1="\2"', reason)


class _QuietLoader(Loader):
    """Without warnings of what only a pipeline could have otherwise. `warnings.catch_warnings` would hide them, too, but makes Python
    forget which warnings of any code it has shown."""
    _warns_of_graph = _warns_of_recordings = False


def folder(root: "os.PathLike[str] | str", *, sample_rate: Optional[int] = None, include: Any = None,
           labels: Optional[str] = None, workers: Optional[int] = None, truncated: Optional[str] = None,
           downmix: "Optional[str | int]" = None, before: Nodes = None, after: Nodes = None,
           remarks: Optional[List[Dict[str, Any]]] = None, table: str = "dict", **options: Any) -> Any:
    """Mel rows of every recording in a folder and its folders, as a table with a row for each that could be read: `path`,
    `features` ([frames, bands] each), `frames`, and with labels="parent_dir" `label`.

        melflow.folder("clips", preset="whisper", table="pandas")

    sample_rate, truncated, downmix, before, after, options: as those of melflow.features. remarks: a list to which each recording that is lost or
    damaged is added, as report["remarks"] of melflow.run has it: `path`, `status`, `reason`. include: patterns of paths, such as ["**/*.flac"]. workers:
    threads. table: "dict" (of lists), "pandas" or "polars" (a data frame). All rows are in memory: for what is larger, write an
    output (melflow.run). Warns of recordings that are lost or damaged: how many, and the first with their reasons."""
    _noted(remarks)
    _check_names(folder, options)
    if table not in ("dict", "pandas", "polars"):
        raise ValueError(f"table is dict, pandas or polars, not {arguments.shown(table)}")
    if not os.path.isdir(arguments.path("root", root)):
        raise NotADirectoryError(errno.ENOTDIR, f"there is no such folder in {os.getcwd()}", os.fspath(root))
    frames: Any = None
    if table != "dict":
        try:
            frames = importlib.import_module(table)
        except ImportError as error:
            raise ImportError(f"table={table!r} needs the package {table}: pip install {table}; table=\"dict\" needs none") from error
    rate = _rate(sample_rate, options, True)
    graph = Graph()
    decoded = graph.file_list(root=root, include=include, labels=labels).disk_read().decode(truncated=truncated, downmix=downmix)

    def add(nodes: List[Dict[str, Any]], last: Any) -> Any:
        for node in nodes:
            last = getattr(last, node.pop("stage"))(**{name: value for name, value in node.items() if name != "node"})
        return last

    samples = add(_nodes("before", before), decoded.resample(rate=rate))
    stage = _melflow.preset_stage(arguments.text_of(options.get("preset") or ""))
    add(_nodes("after", after), graph.add(stage, samples, sample_rate=rate, **options)).batches(size=64)
    loader = _QuietLoader(graph, shuffle=False, workers=workers)
    out: Dict[str, List[Any]] = {"path": [], **({"label": []} if labels else {}), "features": [], "frames": []}
    try:
        for batch in loader:
            out["path"] += batch["path"]
            if labels:
                out["label"] += [loader.label_names[i] for i in batch["label"]]
            out["frames"] += batch["length"].tolist()
            rows = next(batch[name] for name in ("mel", "mfcc", "spectrogram", "samples") if name in batch)
            out["features"] += [some[:frames].copy() for some, frames in zip(rows, batch["length"])]
    except RunError as error:
        raise RunError(_with_arguments(str(error))) from None
    report: Any = loader.report
    noted = [{**one, "reason": _with_arguments(one["reason"])} for one in report["remarks"]]
    _noted(remarks, noted)
    for is_ok, what in ((False, "gave no rows"), (True, "have a warning")):
        if said := [f"{one['path']}: {one['reason']}" for one in noted if (one["status"] == "ok") == is_ok]:
            arguments.warn([arguments.counted(what, said, report["files"]["found"], _ALL_IN)])
    if table == "dict":
        return out
    if table == "polars":  # which takes no list of arrays of several lengths
        out["features"] = [frames.Series(rows) for rows in out["features"]]
    return frames.DataFrame(out)


class Picture:
    """A picture as a document of SVG; a notebook shows it."""

    def __init__(self, svg: str) -> None:
        self.svg = svg

    def _repr_svg_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return f"<Picture, {len(self.svg)} characters of SVG; .save(path) writes it>"

    def save(self, path: "os.PathLike[str] | str") -> None:
        to = arguments.path("path", path)
        if os.path.splitext(to)[1].lower() not in ("", ".svg"):
            raise ValueError(f"{arguments.shown(to)}: pictures are written as SVG; end the name in .svg. A browser, rsvg-convert or "
                             "Inkscape makes a PNG of it")
        with open(to, "w", encoding="utf-8") as file:
            file.write(self.svg)


def show(what: Any, recording: "int | str" = 0, *, unit: str = "", title: str = "", sample_rate: Optional[int] = None,
         **options: Any) -> Picture:
    """A picture of rows, time to the right and low bands at the bottom, which a notebook shows; .save(path) writes it.

    what: an array [frames, bands]; the path of a recording, with sample_rate and options as those of melflow.features; or what
    melflow.open gives, or the path of an output, of which the recording with this number or path is drawn.
    unit: "power", "dB", "ln power", ... of an array: linear values are drawn as dB."""
    band_hz: List[float] = []
    frame_seconds = 0.0
    if isinstance(what, (str, bytes, os.PathLike)):
        _check_names(show, options)
    if isinstance(what, (str, os.PathLike)) and os.fspath(what).endswith((".h5", ".npy")):
        what = FileRows(what)
    if isinstance(what, (str, bytes, os.PathLike)):
        title = title or ("" if isinstance(what, bytes) else os.path.basename(os.fsdecode(what)))
        made, chain = _features(what, sample_rate, options)
        what = _with_warning(made)
        unit, band_hz, frame_seconds = chain.unit, chain.band_hz, chain.frame_seconds
    elif options or sample_rate is not None:
        raise TypeError(f"{', '.join(options) or 'sample_rate'}: for a file's path; what has rows already has no such options")
    elif isinstance(what, Rows):
        if isinstance(recording, str):
            paths = list(what.path)
            if recording not in paths:
                raise ValueError(f"there is no recording {recording!r}. {arguments.meant(recording, paths[:1000])}")
            recording = paths.index(recording)
        number = arguments.index("recording", recording, len(what.path))
        title, unit = title or str(what.path[number]), str(what.unit)
        if isinstance(what, FileRows):
            facts = program.inspect(what.file)
            band_hz = facts.get("band_hz") or []
            if what.is_ragged and facts.get("sample_rate"):
                frame_seconds = facts["hop_length"] / facts["sample_rate"]
        what = what.recording(number)
    rows = np.ascontiguousarray(what, np.float32)
    if rows.ndim == 3:  # windows one after the other
        rows = rows.reshape(-1, rows.shape[-1])
    if rows.ndim != 2:
        raise ValueError(f"rows have the axes [frames, bands], these have the shape {rows.shape}")
    return Picture(_melflow.picture(rows, arguments.text("unit", unit), frame_seconds, band_hz, title))
