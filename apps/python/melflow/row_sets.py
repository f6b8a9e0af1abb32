"""Several kinds of rows of the same recordings, each in a file of its own, together by number and in batches."""

from __future__ import annotations

import os
from typing import Any, Dict, Mapping, Optional

import numpy as np

from . import arguments
from .row_loader import RowLoader
from .rows import FileRows
from .samples import Samples

_TAKEN = ("path", "label", "labels", "split", "target", "file", "offset", "length")


def _check_alike(first: FileRows, other: FileRows) -> None:
    """Checks that both files have the same recordings in the same state."""
    a, b = first.file, other.file
    alike = "make them by one pipeline with both outputs, or bring them together with `melflow update` of it"
    if first.path != other.path:
        there = set(other.path)
        odd = next((p for p in first.path if p not in there), None)
        what = f"{odd} is in the first only" if odd else f"they have {len(first.path)} and {len(other.path)}, or in another order"
        raise ValueError(f"{a} and {b}: are of other recordings: {what}; {alike}")
    for name in ("label_names", "label", "labels", "split_names", "split"):
        mine, theirs = getattr(first, name), getattr(other, name)
        if (mine is None) != (theirs is None) or (mine is not None and not np.array_equal(mine, theirs)):
            raise ValueError(f"{a} and {b}: have other {name.replace('_', ' ')}, so that it is not known which are right; {alike}")
    both = (first.count > 0) & (other.count > 0)
    differs = both & first._differs_from(other)
    if differs.any():
        raise ValueError(f"{a} and {b}: {int(differs.sum())} recordings were others when these were made, such as "
                         f"{first.path[int(np.argmax(differs))]}; {alike}")


class RowSets(arguments.Reopened):
    """A map-style dataset: len(sets) samples, sets[i] is a dict of the rows of a sample, by the names of the sets.

    A sample is a row if rows are windows in all files, else a recording, as in batches of one file. Only those are
    taken for which every file has rows. sets.recording(i): the rows of the recording with that number, of each set.

    rows: the FileRows of each set, by name. path, label, target, split, columns, label_names and split_names are those of
    all. Raises ValueError where the files are not of the same recordings, as these were when they were read.
    """

    def __init__(self, files: Mapping[str, "os.PathLike[str] | str"]) -> None:
        if not isinstance(files, Mapping) or not files:
            raise TypeError("several kinds of rows come by name, such as {'mel': 'mel.h5', 'audio': 'audio.h5'}")
        self.rows: Dict[str, FileRows] = {}
        for name, path in files.items():
            if not isinstance(name, str) or not name or name in _TAKEN:
                raise ValueError(f"{name!r} cannot be the name of rows: batches have {', '.join(_TAKEN)} besides; choose another")
            self.rows[name] = FileRows(path)
        self._first = next(iter(self.rows.values()))
        for name in self.rows:
            if name in self._first.columns:
                raise ValueError(f"{name!r} cannot be the name of rows: the recordings have a text of that name; choose another")
        for other in list(self.rows.values())[1:]:
            _check_alike(self._first, other)
        self.path, self.columns, self.target = self._first.path, self._first.columns, self._first.target
        self.label, self.labels, self.label_names = self._first.label, self._first.labels, self._first.label_names
        self.split, self.split_names = self._first.split, self._first.split_names
        self._sets, self._batch_workers = self.rows, sum(r._batch_workers for r in self.rows.values())
        self._have_rows = np.logical_and.reduce([r.count > 0 for r in self.rows.values()])
        kinds = {r.is_ragged for r in self.rows.values()}
        self.is_ragged = kinds.pop() if len(kinds) == 1 else None  # None: the sets differ
        self._taken = np.flatnonzero(self._have_rows)
        self._by_windows = None if self.is_ragged is not False else np.cumsum(self._windows(self._taken))

    def _windows(self, files: np.ndarray) -> np.ndarray:
        """The number of windows of each of these recordings; raises ValueError if the sets differ in it."""
        for name, rows in self.rows.items():
            differs = rows.count[files] != self._first.count[files]
            if differs.any():
                i = int(files[np.argmax(differs)])
                raise ValueError(f"{self._first.file} and {rows.file}: {self.path[i]} has {self._first.count[i]} windows in one and "
                                 f"{rows.count[i]} in the other; cut both by one segment, or take recordings=True")
        return self._first.count[files]

    def __len__(self) -> int:
        return len(self._taken) if self._by_windows is None else int(self._by_windows[-1]) if len(self._taken) else 0

    def __getitem__(self, at: Any) -> Dict[str, np.ndarray]:
        i = arguments.index("sample", at, len(self))
        if self._by_windows is None:
            return self.recording(int(self._taken[i]))
        k = int(np.searchsorted(self._by_windows, i, side="right"))
        window = i - (int(self._by_windows[k - 1]) if k else 0)
        return {name: rows[int(rows.offset[self._taken[k]]) + window] for name, rows in self.rows.items()}

    def recording(self, i: int) -> Dict[str, np.ndarray]:
        """All rows of the recording with that number, of each set."""
        return {name: rows.recording(i) for name, rows in self.rows.items()}

    def _scaled(self, normalize: Any) -> Dict[str, Any]:
        """What each set that is normalized is normalized by."""
        if not isinstance(normalize, (bool, list, tuple, dict)):
            raise TypeError("normalize is True, False, a list of names of rows or a dict such as "
                            f'{{"mel": "speaker"}}, not {arguments.shown(normalize)}')
        scaled: Dict[str, Any] = (normalize if isinstance(normalize, dict) else dict.fromkeys(self.rows, normalize)
                                  if isinstance(normalize, bool) else dict.fromkeys(normalize, True))
        unknown = [name for name in scaled if name not in self.rows]
        if unknown:
            raise ValueError(f"normalize: there are no rows {unknown[0]!r}; there are: {', '.join(self.rows)}")
        return scaled

    def samples(self, **options: Any) -> Samples:
        """A map-style dataset of the samples with what is known of them, for torch's DataLoader: see Samples."""
        arguments.known("samples", Samples, options)
        return Samples(self, **options)

    def batches(self, batch_size: Optional[int] = None, **options: Any) -> RowLoader:
        """Batches of the samples, shuffled again in each epoch: see RowLoader."""
        arguments.known("batches", RowLoader, options)
        return RowLoader(self, batch_size, **options)
