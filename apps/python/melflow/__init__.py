"""Batches for training, straight from audio or from rows that melflow wrote, and the program as functions.

    import melflow
    for batch in melflow.Loader("speech.yaml", batch_size=32, shuffle=4096, seed=1):
        batch["mel"], batch["label"], batch["path"]

Loader: batches of a pipeline that ends in a node of the stage `batches`; its graph works in threads of this process.
features, Features, folder: rows of arrays, files, their bytes and folders, by the same kernels, also in a service; show: a picture of them.
Graph: a pipeline as an object.
open: the rows of a file, or of a pipeline, by number, and batches of them.
join, Mix: the rows of several corpora, and batches that mix them by weights.
export: the rows of a file for other libraries: Parquet, Arrow, Zarr, Kaldi, WebDataset, safetensors, datasets.
stream, push: rows of samples that come as they are recorded.
check_front_end, vectors: code of one's own beside a front end.
load_plugin: further stages, from a shared library.
run, update, plan, work, merge, explain, tune, inspect and so on: the verbs of the program, in this process;
melflow.distributed.run: a corpus on a Dask cluster.
"""

import os
import sys
from typing import Any, Mapping, Union, overload

if "t" in sys.abiflags:  # whose modules are others
    raise ImportError(f"melflow does not support free-threaded builds of Python, such as this Python {sys.version_info[0]}.{sys.version_info[1]}t; use "
                      "the ordinary build")

from . import arguments, calls, items
from ._melflow import ConfigError, RunError
from ._melflow import version as __version__
from .audio_rows import AudioRows
from .call_results import note, skip
from .exports import export
from .features import Features, features
from .folders import folder
from .graph import Graph, Node
from .joined_rows import JoinedRows
from .loader import Loader
from .mixing import Mix
from .pictures import Picture, show
from .program import (Report, check, duplicates, explain, inspect, load_plugin, merge, plan, run, status, sweep, tune, update, validate, verify,
                      work)
from .row_sets import RowSets
from .rows import FileRows, Rows
from .front_end_check import check_front_end, vectors
from .streams import Stream, push, stream


@overload
def open(path: "os.PathLike[str] | str | Graph", **options: Any) -> Rows: ...


@overload
def open(path: Mapping[str, Any], **options: Any) -> Union[Rows, RowSets]: ...


def open(path: "os.PathLike[str] | str | Graph | Mapping[str, Any]", **options: Any) -> Union[Rows, RowSets]:
    """Rows by number: of a file that melflow has written (FileRows), or of a pipeline, a file
    NAME.yaml or what else melflow.Loader takes, for which `options` are those of AudioRows. Several
    files of the same recordings by name, {"mel": "mel.h5", "audio": "audio.h5"}, give the rows of
    all of them together (RowSets); a dict with "graph" is a pipeline. Raises RunError where a file is
    none that melflow has written, or the program would not use it."""
    if isinstance(path, Mapping) and "graph" not in path:
        if options:
            raise TypeError(f"rows of files have no options, and these are for a pipeline: {', '.join(options)}")
        return RowSets(path)
    name, text = arguments.pipeline(path)
    if text or name.endswith((".yaml", ".yml")):
        return AudioRows(path, **options)
    if options:
        raise TypeError(f"{name}: rows of a file have no options, and these are for a pipeline: {', '.join(options)}")
    return FileRows(name)


def join(sources: "Mapping[str, os.PathLike[str] | str | Graph | Rows]") -> JoinedRows:
    """The rows of several corpora as those of one: {"libri": "libri.h5", "calls": "calls.yaml"}, or what melflow.open gave for
    each. Its batches(mix={"libri": 0.7, "calls": 0.3}) mix them by weights (melflow.Mix)."""
    if not isinstance(sources, Mapping) or not sources:
        raise TypeError(f"sources come by name, such as {{'libri': 'libri.h5', 'calls': 'calls.yaml'}}, not {arguments.shown(sources)}")
    opened = {}
    for name, of in sources.items():
        if not isinstance(name, str) or not name:
            raise TypeError(f"join: the name of a source is a text, not {arguments.shown(name)}")
        try:
            opened[name] = of if isinstance(of, (Rows, RowSets)) else open(of)
        except RunError as error:
            raise RunError(f"join: {name}: {error}") from None
    return JoinedRows(opened)


__all__ = ["AudioRows", "ConfigError", "Features", "FileRows", "Graph", "JoinedRows", "Loader", "Mix", "Node", "Picture", "Report", "RowSets", "Rows", "RunError", "Stream", "__version__",
           "check", "check_front_end", "duplicates", "explain", "export", "features", "folder", "inspect", "join", "load_plugin", "merge", "note", "open", "plan", "push", "run", "show", "skip", "status", "stream", "sweep", "tune", "update",
           "validate", "vectors", "verify", "work"]


def __dir__() -> "list[str]":
    return __all__
