"""Rows of all recordings of a folder, as a table."""

from __future__ import annotations

import errno
import importlib
import os
from typing import TYPE_CHECKING, Any, Dict, List, Literal, Optional, Sequence, overload

from . import _melflow, arguments
from ._melflow import RunError
from .features import Nodes, Resampling, check_names, named_nodes, options_of_resample, rate_of, said_of_preset
from .given_audio import with_arguments
from .graph import Graph
from .loader import Loader
from .row_lists import ALL_IN, noted

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .stage_methods import MelOptions


class _QuietLoader(Loader):
    """Without warnings of what only a pipeline could have otherwise. `warnings.catch_warnings` would hide them, too, but makes Python
    forget which warnings of any code it has shown."""
    _warns_of_graph = _warns_of_recordings = False


@overload
def folder(root: "os.PathLike[str] | str", *, sample_rate: Optional[int] = None, include: "Optional[str | Sequence[str]]" = None,
           labels: Optional[str] = None, workers: Optional[int] = None, truncated: Optional[str] = None,
           downmix: "Optional[str | int]" = None, resample: Resampling = None, before: Nodes = None, after: Nodes = None,
           remarks: Optional[List[Dict[str, Any]]] = None, table: Literal["dict"] = "dict", **options: "Unpack[MelOptions]") -> Dict[str, List[Any]]: ...


@overload
def folder(root: "os.PathLike[str] | str", *, sample_rate: Optional[int] = None, include: "Optional[str | Sequence[str]]" = None,
           labels: Optional[str] = None, workers: Optional[int] = None, truncated: Optional[str] = None,
           downmix: "Optional[str | int]" = None, resample: Resampling = None, before: Nodes = None, after: Nodes = None,
           remarks: Optional[List[Dict[str, Any]]] = None, table: Literal["pandas", "polars"], **options: "Unpack[MelOptions]") -> Any: ...


def folder(root: "os.PathLike[str] | str", *, sample_rate: Optional[int] = None, include: Any = None,
           labels: Optional[str] = None, workers: Optional[int] = None, truncated: Optional[str] = None,
           downmix: "Optional[str | int]" = None, resample: Resampling = None, before: Nodes = None, after: Nodes = None,
           remarks: Optional[List[Dict[str, Any]]] = None, table: str = "dict", **options: Any) -> Any:
    """Mel rows of every recording in a folder and its folders, as a table with a row for each that could be read: `path`,
    `features` ([frames, bands] each), `frames`, and with labels="parent_dir" `label`.

        melflow.folder("clips", preset="whisper", table="pandas")

    sample_rate, truncated, downmix, resample, before, after, options: as those of melflow.features. remarks: a list to which each recording that is lost or
    damaged is added, as report["remarks"] of melflow.run has it: `path`, `status`, `reason`. include: patterns of paths, such as ["**/*.flac"]. workers:
    threads. table: "dict" (of lists), "pandas" or "polars" (a data frame). All rows are in memory: for what is larger, write an
    output (melflow.run). Warns of recordings that are lost or damaged: how many, and the first with their reasons."""
    noted(remarks)
    check_names(folder, options)
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
    rate = rate_of(sample_rate, options, True)
    graph = Graph()
    decoded = graph.file_list(root=root, include=include, labels=labels).disk_read().decode(truncated=truncated, downmix=downmix)

    def add(nodes: List[Dict[str, Any]], last: Any) -> Any:
        for node in nodes:
            last = getattr(last, node.pop("stage"))(**{name: value for name, value in node.items() if name != "node"})
        return last

    samples = add(named_nodes("before", before), decoded.resample(rate=rate, **options_of_resample(resample)))
    stage = _melflow.preset_stage(arguments.text_of(options.get("preset") or ""))
    add(named_nodes("after", after), graph.add(stage, samples, sample_rate=rate, **options)).batches(size=64)
    loader = _QuietLoader(graph, shuffle=False, workers=workers)
    arguments.warn(said_of_preset(loader._graph_warnings, options.get("preset")))
    out: Dict[str, List[Any]] = {"path": [], **({"label": []} if labels else {}), "features": [], "frames": []}
    try:
        for batch in loader:
            out["path"] += batch["path"]
            if labels:
                out["label"] += [loader.label_names[i] for i in batch["label"]]
            out["frames"] += batch["length"].tolist()
            rows = next(batch[name] for name in ("mel", "mfcc", "spectrogram", "samples", "waveform") if name in batch)
            out["features"] += [some[:frames].copy() for some, frames in zip(rows, batch["length"])]
    except RunError as error:
        raise RunError(with_arguments(str(error))) from None
    report: Any = loader.report
    told = [{**one, "reason": with_arguments(one["reason"])} for one in report["remarks"]]
    noted(remarks, told)
    for is_ok, what in ((False, "gave no rows"), (True, "have a warning")):
        if said := [f"{one['path']}: {one['reason']}" for one in told if (one["status"] == "ok") == is_ok]:
            arguments.warn([arguments.counted(what, said, report["files"]["found"], ALL_IN)])
    if table == "dict":
        return out
    if table == "polars":  # which takes no list of arrays of several lengths
        out["features"] = [frames.Series(rows) for rows in out["features"]]
    return frames.DataFrame(out)
