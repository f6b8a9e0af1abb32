"""Rows by number and by recording, of files that melflow has written to HDF5 or .npy."""

from __future__ import annotations

import difflib
import html
import json
import os
import warnings
from typing import Any, Dict, Iterable, List, Mapping, Optional, Tuple

import numpy as np

from ._melflow import RowReader, RunError, open_file, run_hash
from . import arguments
from .row_loader import RowLoader, Where
from .samples import Samples


def _wanted(name: str, texts: "str | Iterable[str]") -> List[str]:
    out = [texts] if isinstance(texts, str) else list(texts) if isinstance(texts, Iterable) else []
    if not out or not all(isinstance(text, str) for text in out):
        raise TypeError(f"where: {name}: {arguments.shown(texts)}: is no text and no list of texts")
    return out


def _known(what: str, wanted: str, there: List[str]) -> str:
    """Returns `wanted` if it is one of `there`, else raises ValueError."""
    if wanted in there:
        return wanted
    near = difflib.get_close_matches(wanted, there, 1)
    some = ", ".join(there[:10]) + (f", … ({len(there)} in all)" if len(there) > 10 else "")
    raise ValueError(f"where: there is no {what} {wanted!r}" + (f". Did you mean {near[0]!r}? There" if near else "; there") +
                     f" are: {some or 'none'}")


class Rows(arguments.Reopened):
    """A map-style dataset: len(rows), rows[i] and rows[a:b] are rows, rows.recording(i) all rows of a recording. Of whole
    recordings (is_ragged) a row is a single frame; a sample of batches() is then a recording.

    name, unit, shape, dtype: of the rows. path, label (or labels), target, split, status, offset, count, columns (texts by
    name), measures (of the stage quality, by name; NaN where a recording has no value): of the recordings, by number. label_names, split_names. mean, std: of the columns, or None. With statistics by speaker, or by another text of
    recordings, statistics_by is its name, group_names are the texts, and group_mean, group_std [groups, columns].
    attributes: what is known of the rows as a whole.

    Any number of threads may use it. It is pickled as its arguments: another process opens it again.
    """

    _reader: RowReader
    attributes: Dict[str, Any]
    name: str
    unit: str
    shape: Tuple[int, ...]
    dtype: str
    is_ragged: bool
    offset: np.ndarray
    count: np.ndarray
    status: np.ndarray
    path: List[str]
    measures: Dict[str, np.ndarray]
    label: Optional[np.ndarray] = None
    labels: Any = None
    target: Optional[np.ndarray] = None
    split: Optional[np.ndarray] = None
    label_names: List[str] = []
    split_names: List[str] = []
    columns: Dict[str, List[str]] = {}
    mean: Optional[np.ndarray] = None
    std: Optional[np.ndarray] = None
    is_normalized = False
    rows_per_second = 0.0  # of a recording; 0: not known
    statistics_by: Optional[str] = None
    group_names: List[str] = []
    group_frames: Optional[np.ndarray] = None
    group_mean: Optional[np.ndarray] = None
    group_std: Optional[np.ndarray] = None
    _batch_workers = 1
    _kept_rows: Optional[int] = None  # computed rows that memory can keep; None: all rows are stored
    _firsts: np.ndarray  # of each recording or utterance, the first one computed together with it

    @property
    def _has_integers(self) -> bool:
        """Whether rows are integers that a node gave, which nothing converts; samples of int16 are not."""
        return "int" in self.dtype and self.name not in ("waveform", "windows")

    def _order(self) -> None:
        """Sorts recordings by their rows; called when offset and count are known."""
        present = np.flatnonzero(self.count > 0)
        self._by_offset = present[np.argsort(self.offset[present], kind="stable")]

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, at: Any) -> np.ndarray:
        if isinstance(at, slice):
            first, end, step = at.indices(len(self))
            if step != 1:
                raise ValueError("rows are read in one piece: a slice has no step")
            return self._reader.read(first, max(0, end - first))
        return self._reader.read(arguments.index("row", at, len(self)), 1)[0]

    def recording(self, i: int) -> np.ndarray:
        """All rows of the recording with that number."""
        i = arguments.index("recording", i, len(self.path))
        return self._reader.read(int(self.offset[i]), int(self.count[i]))

    def recording_of(self, rows: Any) -> np.ndarray:
        """The numbers of the recordings to which rows, given by number, belong."""
        rows = np.asarray(rows)
        if rows.dtype.kind not in "iu":
            raise TypeError(f"rows are whole numbers, not {arguments.shown(rows)}")
        if rows.size and not 0 <= rows.min() <= rows.max() < len(self):
            raise IndexError(f"rows are 0 to {len(self) - 1}, not {rows.min()} to {rows.max()}")
        starts = self.offset[self._by_offset]
        return self._by_offset[np.searchsorted(starts, rows, side="right") - 1]

    def select(self, where: Where) -> np.ndarray:
        """The numbers of the recordings with rows that meet all conditions of `where`: {"speaker": ["ann", "bob"], "split": "train"}.

        Names are label, split, path, and those of columns; of several texts one has to match. Raises ValueError for a name or
        text that is not there, and where no recording is left.
        """
        taken = self.count > 0
        if not isinstance(where, Mapping):
            raise TypeError('where is a dict such as {"speaker": ["ann", "bob"]}, not '
                            f"{arguments.shown(where)}")
        for name, texts in where.items():
            taken &= self._has(name, _wanted(name, texts))
        if not taken.any():
            raise ValueError(f"where: no recording with rows has all of {dict(where)!r}")
        return np.flatnonzero(taken)

    def _has(self, name: str, texts: List[str]) -> np.ndarray:
        names = [n for n, there in (("label", self.label_names), ("split", self.split_names)) if there]
        _known("name", name, names + ["path"] + list(self.columns))
        if name == "label" and name not in self.columns:
            numbers = [self.label_names.index(_known("label", text, self.label_names)) for text in texts]
            return self.labels[:, numbers].any(axis=1) if self.labels is not None else np.isin(self.label, numbers)
        if name == "split" and name not in self.columns:
            return np.isin(self.split, [self.split_names.index(_known("split", text, self.split_names)) for text in texts])
        values = self.columns.get(name, self.path)
        there = sorted(set(values))
        wanted = {_known(name, text, there) for text in texts}
        return np.fromiter((value in wanted for value in values), bool, len(values))

    def _texts(self, by: str) -> List[str]:
        """Of each recording the text of a column, or the name of its label or split."""
        if by in self.columns:
            return self.columns[by]
        names, numbers = (self.label_names, self.label) if by == "label" else (self.split_names, self.split)
        return [names[i] if i >= 0 else "" for i in (numbers if numbers is not None else ())]

    def _groups(self, by: str) -> np.ndarray:
        """The number of each recording's text in group_names; len(group_names) for none."""
        number = {name: i for i, name in enumerate(self.group_names)}
        return np.array([number.get(text, len(number)) for text in self._texts(by)], np.int64)

    # ---- as the only one of the sets of a RowLoader

    @property
    def _sets(self) -> "Dict[str, Rows]":
        return {self.name: self}

    @property
    def _have_rows(self) -> np.ndarray:
        return self.count > 0  # type: ignore[no-any-return]

    def _windows(self, files: np.ndarray) -> np.ndarray:
        return self.count[files]

    def _scaled(self, normalize: Any) -> Dict[str, Any]:
        return {self.name: normalize}

    def samples(self, **options: Any) -> Samples:
        """A map-style dataset of the samples with what is known of them, for torch's DataLoader: see Samples."""
        arguments.known("samples", Samples, options)
        return Samples(self, **options)

    def _reasons(self) -> Dict[str, str]:
        """By path, what is known of recordings that gave no rows."""
        return {path: f"{node}: {reason}" for path, _, node, reason in getattr(self, "remarks", ())}

    def batches(self, batch_size: Optional[int] = None, **options: Any) -> RowLoader:
        """Batches of the rows, shuffled again in each epoch: see RowLoader. A sample of a recording is all its rows, also where
        it has several results."""
        if any(getattr(self, "_results", ())) and (self.is_ragged if options.get("recordings") is None else options["recordings"]):
            warnings.warn("recordings have several results (channels, utterances, variants), and here a sample has the rows of all "
                          "of them: melflow.Loader of the pipeline gives each as a sample, results(i) takes them apart", stacklevel=2)
        arguments.known("batches", RowLoader, options)
        return RowLoader(self, batch_size, **options)


def _of_other_runs(name: str, run: Optional[str], splits: List[str]) -> List[str]:
    """The files of other splits beside this one that come from another run."""
    stem, ending = os.path.splitext(name)
    mine = [split for split in splits if stem.endswith("." + split)] if run is not None else []
    out = []
    for split in splits if mine else []:
        path = stem[:-len(mine[0])] + split + ending
        if split == mine[0] or not os.path.exists(path):
            continue
        try:
            other: Optional[str] = run_hash(path)
        except RunError:
            other = None
        if other != run:
            out.append(path)
    return out


class FileRows(Rows):
    """The rows of a file that melflow has written: .h5 or .npy.

    file: its path.

    Opens it with the checks of the program. Raises RunError if the program would not use the file; and,
    when rows are read, if the file has changed since.
    """

    def __init__(self, path: "os.PathLike[str] | str") -> None:
        self._batch_workers = min(2, len(os.sched_getaffinity(0)))
        self.file = name = arguments.path("the file of rows", path)
        self._reader, index = open_file(name)
        self.dtype = self._reader.dtype
        for of_all in ("attributes", "name", "unit", "shape", "offset", "count", "status", "path", "label", "split",
                       "label_names", "split_names", "columns", "measures"):
            setattr(self, of_all, index[of_all])
        self._size, self._modified, self._content = index["size"], index["modified"], index["content"]
        self._hashes, self._duration, self._sample_rate = index["rows_hash"], index["duration"], index["sample_rate"]
        self._results, self._remarks, self._warnings = index["results"], index["remarks"], index["warnings"]
        self._target_names, self._band_hz, self._root = index["target_names"], index["band_hz"], index["root"]
        self.target, self.labels = index.get("targets"), index.get("labels")
        self.mean, self.std = index.get("mean"), index.get("std")
        self.is_normalized = index.get("is_normalized", False)
        rate, hop = self.attributes.get("sample_rate", 0), self.attributes.get("hop_length", 0)
        self.rows_per_second = float(rate) if self.name == "waveform" else rate / hop if hop else 0.0
        self.statistics_by, self.group_names = index.get("statistics_by"), index.get("group_names", [])
        if self.mean is not None and self.statistics_by is not None:
            self.group_frames = index["group_frames"]
            self.group_mean, self.group_std = (index[name].reshape(-1, len(self.mean)) for name in ("group_mean", "group_std"))
        for other in _of_other_runs(name, self.attributes.get("run_hash"), self.split_names):
            warnings.warn(f"{other}: this file is not of the same run as {name}: labels, splits or features may be others. "
                          "`melflow update` of its pipeline makes them of one run", stacklevel=3)
        # True where a row is a frame or a sample of a recording, not a window.
        self.is_ragged = self.name == "waveform" or (self.name != "windows" and len(self.shape) < 3)
        self._order()

    def _reasons(self) -> Dict[str, str]:
        return {self.path[file]: f"{node}: {reason}" for file, _, node, reason in self._remarks}

    def results(self, recording: int) -> "List[Tuple[Dict[str, Any], np.ndarray]]":
        """The results of a recording (channels, utterances, variants): the description of each, as in /files/results, and its
        rows. One without a description, if the pipeline makes one."""
        rows = self.recording(recording)
        said = json.loads(self._results[recording] or "[]") or [{"rows": len(rows)}]
        ends = np.cumsum([one["rows"] for one in said])
        return [(one, rows[end - one["rows"]:end]) for one, end in zip(said, ends)]

    def __repr__(self) -> str:
        return f"<FileRows of {self.file}: {self.name}, {self.shape} {self.dtype}, {len(self.path)} recordings>"

    def _repr_html_(self) -> str:
        facts = {"rows": self.name, "shape": self.shape, "type": self.dtype, "unit": self.unit, "recordings": len(self.path),
                 "labels": self.label_names, "splits": self.split_names}
        lines = "".join(f"<tr><th>{name}</th><td>{html.escape(arguments.shown(value))}</td></tr>" for name, value in facts.items())
        return f"<table><caption>{html.escape(self.file)}</caption>{lines}</table>"

    def _differs_from(self, other: "FileRows") -> np.ndarray:
        """Which recordings had changed between the runs that made the two files, as far as these tell."""
        by_content = (self._content != 0) & (other._content != 0)  # 0: not known
        by_stamp = (self._size >= 0) & (other._size >= 0)
        stamps_differ = (self._size != other._size) | (self._modified != other._modified)
        return np.where(by_content, self._content != other._content, by_stamp & stamps_differ)
