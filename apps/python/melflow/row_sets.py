"""Several kinds of rows of the same recordings, each in a file of its own, together by number and in batches."""

from __future__ import annotations

import os
from typing import Any, Dict, List, Mapping, Optional, Sequence

import numpy as np

from ._melflow import RowBatches
from . import arguments
from .epochs import Batch, Epochs
from .rows import FileRows, RowLoader, Rows, Where

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
        self._have_all = np.logical_and.reduce([r.count > 0 for r in self.rows.values()])
        kinds = {r.is_ragged for r in self.rows.values()}
        self._is_ragged = kinds.pop() if len(kinds) == 1 else None  # None: the sets differ
        files_taken = np.flatnonzero(self._have_all)
        self._by_windows = None if self._is_ragged is not False else np.cumsum(self._windows(files_taken))
        self._taken = files_taken

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

    def batches(self, batch_size: int = 32, **options: Any) -> "RowSetLoader":
        """Batches of the samples, shuffled again in each epoch: see RowSetLoader."""
        return RowSetLoader(self, batch_size, **options)


class _Member(RowLoader):
    """The batches of one set, of given recordings in their order."""

    def __init__(self, rows: Rows, files: np.ndarray, batch_size: int, **options: Any) -> None:
        self._given = files
        super().__init__(rows, batch_size, **options)

    def _select(self, split: Optional[str], where: Optional[Where]) -> np.ndarray:
        return self._given


class _Runs:
    """The runs of all sets, in one order."""

    def __init__(self, runs: List[RowBatches]) -> None:
        self._runs, self._taken = runs, []

    def take(self, seconds: float) -> Any:
        while len(self._taken) < len(self._runs):
            taken = self._runs[len(self._taken)].take(seconds)
            if not taken:
                return taken
            self._taken.append(taken)
        out, self._taken = self._taken, []
        return out

    def stop(self) -> None:
        for run in self._runs:
            run.stop()


class RowSetLoader(Epochs):
    """Goes over the samples of several files once for each `for`, and gives dicts of arrays: the rows of every set by its name,
    for recordings with NAME_length, and one description of the samples.

    Options are those of RowLoader. where goes by the columns of the first file, bucket and max_rows
    by its lengths. normalize: True, or the names of the sets that are scaled by the statistics in
    their files, or for each such name True or a text, {"mel": "speaker"}, as RowLoader takes it. recordings=True takes recordings, also where rows are windows.
    workers: threads for each set.
    """

    _STATE = RowLoader._STATE

    def __init__(self, sets: RowSets, batch_size: int = 32, *, split: Optional[str] = None,
                 normalize: "bool | Sequence[str] | Mapping[str, bool | str]" = False, recordings: Optional[bool] = None,
                 where: Optional[Where] = None, **options: Any) -> None:
        if recordings is not None:
            recordings = arguments.flag("recordings", recordings)
        is_ragged = sets._is_ragged if recordings is None else recordings
        if is_ragged is None:
            raise ValueError("some files have windows and others frames or samples of whole recordings: take recordings=True")
        if not isinstance(normalize, (bool, list, tuple, dict)):
            raise TypeError("normalize is True, False, a list of names of rows or a dict such as "
                            f'{{"mel": "speaker"}}, not {arguments.shown(normalize)}')
        scaled: Mapping[str, "bool | str"] = (normalize if isinstance(normalize, dict) else dict.fromkeys(sets.rows, normalize)
                                              if isinstance(normalize, bool) else dict.fromkeys(normalize, True))
        unknown = [name for name in scaled if name not in sets.rows]
        if unknown:
            raise ValueError(f"normalize: there are no rows {unknown[0]!r}; there are: {', '.join(sets.rows)}")
        taken = sets._have_all
        if split is not None:
            if arguments.text("split", split) not in sets.split_names:
                raise ValueError(f"there is no split {split!r}; there are: {', '.join(sets.split_names) or 'none'}")
            taken = taken & (sets.split == sets.split_names.index(split))
        if where is not None:
            selected = np.zeros(len(taken), bool)
            selected[sets._first.select(where)] = True
            taken = taken & selected
            if not taken.any():
                raise ValueError(f"where: no recording of the split {split!r} has all of {dict(where)!r}")
        files = np.flatnonzero(taken)
        if not is_ragged:
            sets._windows(files)
        self.sets = sets
        self._members: List[_Member] = []
        for name, rows in sets.rows.items():
            try:
                self._members.append(_Member(rows, files, batch_size, split=split, recordings=is_ragged,
                                             normalize=scaled.get(name, False), **options))
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from None

    def _order_settings(self) -> Dict[str, Any]:
        all_of = [member._order_settings() for member in self._members]
        rows = [(name, of["features"], of["rows"]) for name, of in zip(self.sets.rows, all_of)]
        return all_of[0] | {"rows": arguments.digest(rows)}

    @property
    def samples(self) -> int:
        """The number of samples in an epoch, for all ranks together."""
        return self._members[0].samples

    def __len__(self) -> int:
        """The number of batches in an epoch, for each rank."""
        return self._members[0]._order(self._next_epoch()).count()

    def _begin(self) -> _Runs:
        order = self._members[0]._order(self._epoch, self._delivered)
        return _Runs([member._run_of(order) for member in self._members])

    def _batch(self, run: _Runs, taken: List[Any]) -> Batch:
        batches = [member._batch(run, one) for member, one in zip(self._members, taken)]
        self._delivered = self._members[0]._delivered
        return self._joined(batches)

    def _joined(self, batches: List[Batch]) -> Batch:
        out: Batch = {}
        for (name, rows), batch in zip(self.sets.rows.items(), batches):
            out[name] = batch.pop(rows.name)
            if "length" in batch:
                out[name + "_length"] = batch.pop("length")
        out.update(batches[0])
        return out
