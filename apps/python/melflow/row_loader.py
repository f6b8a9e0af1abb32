"""Batches of rows by number."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from ._melflow import BatchRows, EpochOrder, RowBatches, RunError
from . import arguments, length_batches, mixing
from .epochs import Batch, Epochs

if TYPE_CHECKING:
    from .row_sets import RowSets
    from .rows import Rows

# For each name, a text, or several of which one has to match.
Where = Mapping[str, "str | Iterable[str]"]


class RowLoader(Epochs):
    """Goes over rows once for each `for`, and gives dicts of arrays, as melflow.Loader does. Of several files (RowSets) those of each
    by its name, of recordings with NAME_length, and once what is known of the samples.

    A sample is a row of frames or, if rows are single frames, a recording: then rows are padded with zeros, with
    "length". `recordings`: chooses one of the two, whatever the rows are.
    split: name of the split whose samples it takes; not given: all. where: takes those of the recordings that rows.select(where)
      names: {"speaker": ["ann", "bob"]}; of several files, of the first one.
    shuffle: True or False: by one permutation of all samples for each (seed, epoch); recordings come in the order that
      melflow.Loader(shuffle_recordings=True) gives them for the same seed, with the same buckets.
    batch_size: the most samples of a batch; not given: 32, and any number with max_seconds, max_cost or pack.
    max_rows: the most rows of a batch, its padding included, where a sample is a recording; a longer
      recording is a batch of its own. 0: any number. Of several files the rows of the first count.
    max_seconds: the same in seconds of audio. max_cost, in its place: the most that a batch costs, its samples times the cost of the longest;
      cost: a function that gives for an array of numbers of rows what a sample of each costs, lambda rows: rows + rows**2 / 5000.
    bucket: among so many recordings, in the order that `shuffle` gives, those of similar length come in
      one batch, so that it needs little padding. Batches leave in random order, others each epoch.
    max_padding: the greatest part of a sample's rows that may be padding, from 0 to 1; batches are smaller for it.
    pack: a batch has its samples one after the other in one row, [1, rows, columns], without padding, at most max_rows or max_seconds, as those among
      `bucket` (1024) fit best; "cu_seqlens" [samples + 1], int32, is where each begins and the last one ends. Of several files NAME_cu_seqlens.
    groups: with bucket or pack, the batches of an epoch are made in groups of so many that are alike, and each step of all ranks has its batches
      from one group; a multiple of world_size. The same order comes with any number of ranks that divides it. Not given: world_size, or that of the state.
    mix: the sources of an epoch with their weights, {"libri": 0.7, "calls": 0.3} by melflow.join, or a melflow.Mix. A recording that fails is
      replaced by another one of its source.
    rank, world_size: the samples of a batch of all ranks together are shared out evenly; all ranks have as many batches.
      The last batch is filled up by samples from the beginning of the epoch to as many for each rank;
      with drop_last it is dropped unless every rank has batch_size samples.
    normalize: True scales columns by the file's statistics; "speaker" those of each recording by its speaker's, where the file
      was written with statistics_by: speaker. A recording without one uses the statistics of all. Of several files True is for
      each; for some, their names, or for each such name True or a text, {"mel": "speaker"}. dtype: "float32", or None for the stored type, which integers always have.
    prefetch, workers: batches that are prefetched, and threads that do so.

    len() is exact, for the epoch under way, else for the next one; with max_rows epochs differ.
    state_dict() has the number of samples that all ranks together have had, so training continues at once,
    also with another number of workers or ranks, or another batch size. With bucket, pack or groups the batches
    have to be as they were, and the number of ranks divides `groups`.

    report: of the last epoch that came to its end. preview(epoch): the same of one to come.
    """

    _STATE = "rows"
    _warned = False

    def __init__(self, rows: "Union[Rows, RowSets]", batch_size: Optional[int] = None, *, max_rows: int = 0,
                 max_seconds: Optional[float] = None, max_cost: Optional[float] = None, cost: Optional[length_batches.Cost] = None,
                 max_padding: float = 1.0, pack: bool = False, groups: Optional[int] = None,
                 mix: "mixing.Mix | mixing.Weights | None" = None, split: Optional[str] = None, shuffle: bool = True, bucket: int = 0, seed: int = 0,
                 rank: Optional[int] = None, world_size: Optional[int] = None, drop_last: bool = False,
                 normalize: "bool | str | Sequence[str] | Mapping[str, bool | str]" = False,
                 dtype: Optional[str] = None, recordings: Optional[bool] = None, prefetch: int = 4,
                 workers: Optional[int] = None, where: Optional[Where] = None) -> None:
        rank, world_size = arguments.rank(rank, world_size)
        workers = rows._batch_workers if workers is None else arguments.workers(workers)
        pack, max_padding = arguments.flag("pack", pack), length_batches.fraction("max_padding", max_padding)
        if batch_size is None:
            batch_size = 32 if max_seconds is None and max_cost is None and not pack else 2**31 - 1
        batch_size = arguments.integer("batch_size", batch_size, 1, 2**31 - 1)
        prefetch, bucket = arguments.integer("prefetch", prefetch, 1), arguments.integer("bucket", bucket)
        bucket = 1024 if pack and not bucket else bucket
        seed, max_rows = arguments.integer("seed", seed), arguments.integer("max_rows", max_rows)
        if not isinstance(shuffle, (bool, np.bool_)):
            raise TypeError("shuffle is True or False for rows by number, since all samples are "
                            f"shuffled at once; not {arguments.shown(shuffle)}")
        drop_last = arguments.flag("drop_last", drop_last)
        if split is not None:
            arguments.text("split", split)
        scaled = rows._scaled(normalize)
        is_ragged = rows.is_ragged if recordings is None else arguments.flag("recordings", recordings)
        if is_ragged is None:
            raise ValueError("some files have windows and others frames or samples of whole recordings: take recordings=True")
        for name, value in (("pack", pack), ("bucket", bucket), ("max_rows", max_rows), ("max_seconds", max_seconds), ("max_cost", max_cost),
                            ("max_padding", max_padding < 1)):
            if value and not is_ragged:
                raise ValueError(f"{name} is for whole recordings; windows are equally long")
        self.rows, self._first, self._is_ragged = rows, next(iter(rows._sets.values())), is_ragged
        self._files = self._select(split, where)
        self._counts = np.ascontiguousarray(self._first.count[self._files] if is_ragged else rows._windows(self._files), np.int64)
        self._costs = self._file_counts = self._counts
        max_rows = self._limit(max_rows, max_seconds, max_cost, cost)
        if pack and (not max_rows or max_cost is not None):
            raise ValueError("pack: takes max_rows or max_seconds, which is how much fits into a batch")
        if pack and max_padding < 1:
            raise ValueError("max_padding: packed batches have no padding; give one of the two")
        self._groups = world_size if groups is None else arguments.integer("groups", groups, 1, 2**20)
        self._keeps_groups = self._groups_are_given = groups is not None
        if groups is not None and not (bucket or max_rows):
            raise ValueError("groups: is for batches by length: give bucket, max_rows, max_seconds, max_cost or pack")
        if self._groups % world_size:
            raise ValueError(f"groups: {self._groups} batches are not shared out evenly by world_size {world_size}; give a multiple of it")
        self._max_padding, self._pack = max_padding, pack
        self._together = self._samples_together(np.arange(len(self._files)), 1.0) if shuffle else None
        self._ranges: Dict[str, Tuple[np.ndarray, np.ndarray]] = {}  # starts and counts
        self._inputs: List[BatchRows] = []
        for name, of in rows._sets.items():
            try:
                self._add(name, of, scaled.get(name, False), dtype)
            except ValueError as error:
                raise ValueError(f"{name}: {error}" if of is not rows else str(error)) from None
        self._starts, self._counts = self._ranges[next(iter(rows._sets))]
        self._every_end = {name: np.cumsum(counts) for name, (_, counts) in self._ranges.items()}
        self._ends = self._every_end[next(iter(rows._sets))]
        self._batch_size, self._max_rows = batch_size, max_rows
        self._shuffle, self._bucket, self._seed = bool(shuffle), bucket, seed
        self._rank, self._world_size, self._drop_last = rank, world_size, drop_last
        self._prefetch, self._workers = prefetch, workers
        self._split = split
        self._made_order: Tuple[Any, Any] = None, None
        self._last: Optional[Tuple[Any, ...]] = None
        self._begun: Tuple[int, Optional[mixing.Sources]] = -1, None  # the epoch that began last, and its sources
        self._sources = None if mix is None else self._sources_of(mix)
        if self._sources is not None:
            self._sources.order(0)  # says at once what is wrong
        if drop_last and not max_rows and 0 < self.samples < batch_size * world_size:
            raise ValueError(f"drop_last: there are {self.samples} samples, fewer than batch_size {batch_size} for each of "
                             f"{world_size} ranks, so an epoch would have no batch; take a smaller batch_size, or omit drop_last")

    def _select(self, split: Optional[str], where: Optional[Where]) -> np.ndarray:
        """The numbers of the recordings that are used, in the order of their rows."""
        rows = self._first
        taken = self.rows._have_rows
        if split is not None:
            if split not in rows.split_names:
                raise ValueError(f"there is no split {split!r}; there are: {', '.join(rows.split_names) or 'none'}")
            taken = taken & (rows.split == rows.split_names.index(split))
        if where is not None:
            selected = np.zeros(len(taken), bool)
            selected[rows.select(where)] = True
            taken = taken & selected
            if not taken.any():
                raise ValueError(f"where: no recording of the split {split!r} has all of {dict(where)!r}")
        files = np.flatnonzero(taken)
        return files[np.argsort(rows.offset[files], kind="stable")]

    def _add(self, name: str, rows: Rows, normalize: Any, dtype: Optional[str]) -> None:
        """Adds the rows that samples have in one of the sets."""
        by = normalize if isinstance(normalize, str) else None
        normalize = by is not None or arguments.flag("normalize", normalize)
        if dtype is not None and rows is self.rows and rows._has_integers:
            raise ValueError(f"dtype: the rows are integers of {rows.dtype} and stay as they are; leave it out")
        if dtype is not None and arguments.dtype(dtype) not in ("float32", rows.dtype):
            raise ValueError(f"dtype is None for {rows.dtype}, as the rows are, or float32, not {dtype!r}")
        if normalize and rows.mean is None:
            raise ValueError("there are no statistics to normalize by: a file has them by `statistics: train`")
        if normalize and rows.is_normalized:
            raise ValueError("the rows are normalized already")
        if by is not None and by != rows.statistics_by:
            raise ValueError(f"there are no statistics by {by!r} to normalize by: a file has them by `statistics_by: {by}`" +
                             (f"; this one has those by {rows.statistics_by!r}" if rows.statistics_by else ""))
        starts = np.ascontiguousarray(rows.offset[self._files], np.int64)
        counts = np.ascontiguousarray(rows.count[self._files], np.int64)
        groups = rows._groups(by)[self._files] if by is not None else np.zeros(0, np.int64)
        if not self._is_ragged and len(starts) > 0:  # adjacent ranges become one
            differs = starts[1:] != (starts + counts)[:-1]
            if by is not None:
                differs |= groups[1:] != groups[:-1]
            begins = np.flatnonzero(np.r_[True, differs])
            groups = groups[begins] if by is not None else groups
            starts, counts = starts[begins], np.add.reduceat(counts, begins)
        mean, std = (rows.mean, rows.std) if normalize else (np.zeros(0), np.zeros(0))
        if by is not None:  # the last one: of all
            mean, std = np.vstack([rows.group_mean, mean]), np.vstack([rows.group_std, std])
        self._ranges[name] = starts, counts
        as_float32 = dtype is not None and arguments.dtype(dtype) == "float32" and not rows._has_integers
        self._inputs.append(BatchRows(rows._reader, name, "length" if rows is self.rows else name + "_length", starts, counts,
                                      as_float32, mean.ravel().tolist(), np.where(std == 0, 1, std).ravel().tolist(), groups))

    def _limit(self, max_rows: int, max_seconds: Any, max_cost: Any, cost: Any) -> int:
        """The most that a batch has of what counts, of which _costs is how much each sample has."""
        given = [name for name, value in (("max_rows", max_rows or None), ("max_seconds", max_seconds), ("max_cost", max_cost)) if value is not None]
        if len(given) > 1:
            raise ValueError(f"{' and '.join(given)}: give one limit of a batch")
        if (cost is None) != (max_cost is None):
            raise ValueError("max_cost and cost come together: how much a batch may cost, and the function that gives what samples cost")
        if max_seconds is not None:
            return length_batches.rows_in(max_seconds, self._first.rows_per_second)
        if max_cost is not None:
            self._costs, most = length_batches.costs_of(self._counts, cost, max_cost)
            return most
        return max_rows

    def _sources_of(self, mix: "mixing.Mix | mixing.Weights") -> mixing.Sources:
        return mixing.Sources(mix, self._first, self._files, self._file_counts, self._is_ragged, self._shuffle, self._seed, self._samples_together)

    def set_mix(self, mix: "mixing.Mix | mixing.Weights") -> None:
        """Makes the next epoch have other weights. Raises RunError while one is under way, and where a state goes on in the middle of one."""
        if self._run is not None or self._resumes:
            raise RunError(f"set_mix: epoch {self._epoch} is under way, whose order would change; call it between epochs")
        if self._sources is None:
            raise ValueError("set_mix: is for batches(mix=...)")
        sources = self._sources_of(mix)
        sources.order(self._next_epoch())  # says at once what is wrong
        self._sources, self._made_order = sources, (None, None)

    def _samples_together(self, of: np.ndarray, share: float) -> Optional[Tuple[np.ndarray, np.ndarray, int]]:
        """Where not all rows are kept that have to be computed, samples and rows of each recording of `of`, and the window of rows
        within which its samples come; so that each is computed once. `share`: of the rows that are kept, how many are for these."""
        kept = self._first._kept_rows
        if kept is None or self._file_counts.sum() <= kept:
            return None
        kept, counts = int(kept * share), self._file_counts[of]
        firsts = self._first._firsts[self._files[of]]
        begins = np.flatnonzero(np.r_[True, firsts[1:] != firsts[:-1]])
        rows = np.add.reduceat(counts, begins)
        samples = np.diff(np.r_[begins, len(firsts)]) if self._is_ragged else rows
        if samples.max() == 1:
            return None
        # Between two samples of a recording come the samples of at most two windows, and those looked ahead.
        return samples, rows, max(0, int(kept // 2 - 2 * rows.max()))

    def _ahead(self) -> int:
        """The number of batches whose recordings are computed ahead."""
        if self._together is None:
            return 0
        samples, rows, window = self._together
        recordings = min(self._workers, (self._first._kept_rows - 2 * window) // int(rows.max()) - 1)
        return max(0, recordings) * -(-int(samples.max()) // (self._batch_size * self._world_size))

    def _order_settings(self) -> Dict[str, Any]:
        paths = "\0".join(self.rows.path[i] for i in self._files).encode("utf-8", "surrogateescape")
        all_of = [(name, rows.attributes.get("feature_fingerprint"),
                   arguments.digest(b"".join((*(c.tobytes() for c in self._ranges[name]), paths))))
                  for name, rows in self.rows._sets.items()]
        out = {"features": all_of[0][1], "split": self._split, "samples": self._available,
               "rows": all_of[0][2] if self._first is self.rows else arguments.digest(all_of), "recordings": self._is_ragged,
               "shuffle": self._shuffle, "bucket": self._bucket, "seed": self._seed}
        if self._together is not None:
            out |= {"window (by store)": self._together[2]}
        if self._has_groups():
            out |= {"batch_size times groups": self._batch_size * self._groups, "max_rows": self._max_rows, "drop_last": self._drop_last,
                    "groups": self._groups, "max_padding": self._max_padding, "pack": self._pack}
        if self._has_groups() and self._costs is not self._file_counts:
            out |= {"cost": arguments.digest(self._costs.tobytes())}
        if self._sources is not None:
            out |= {"mix": self._sources.mix.settings()}
        return out

    def _has_groups(self) -> bool:
        """Whether the order depends on how batches are cut."""
        return self._bucket > 0 or self._pack or self._keeps_groups

    def _list_settings(self, epoch: int, loads: bool) -> Dict[str, Any]:
        sources = self._begun[1] if self._begun[0] == epoch and not loads else self._sources
        if sources is None:
            return {}
        shares = sources.order(epoch).shares
        return {"shares": shares if len(shares) <= 16 else arguments.digest(sorted(shares.items()))}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        there = arguments.state(state, ("epoch", "delivered", self._STATE), "a RowLoader")[self._STATE]
        earlier, groups = (self._groups, self._keeps_groups), there.get("groups")
        if isinstance(groups, int) and groups > 0 and (groups != self._groups or not self._has_groups()) and (self._bucket or self._max_rows):
            if not self._max_rows and self._bucket and self._batch_size * self._groups == there.get("batch_size times groups"):
                state = {**state, self._STATE: {**there, "groups": self._groups}}  # batches of all ranks together are the same
            elif groups % self._world_size:
                fitting = ", ".join(str(n) for n in range(1, groups + 1) if groups % n == 0)
                raise ValueError(f"the state is of groups of {groups} batches, which world_size {self._world_size} does not divide, so that ranks would be "
                                 f"out of step; go on with a number of ranks of: {fitting}")
            elif not self._groups_are_given:
                self._groups, self._keeps_groups = groups, True
        try:
            super().load_state_dict(state)
        except Exception:
            self._groups, self._keeps_groups = earlier
            raise
        self._made_order = None, None

    @property
    def _available(self) -> int:
        """The number of different samples."""
        return len(self._starts) if self._is_ragged else int(self._counts.sum())

    def _most(self, epoch: int) -> int:
        fills = self._groups if self._groups != self._world_size else 0  # which count in groups of several steps
        return self._count(epoch) + fills

    def _count(self, epoch: int) -> int:
        return self._available if self._sources is None else len(self._sources.order(epoch).samples)

    @property
    def samples(self) -> int:
        """The number of samples in an epoch, for all ranks together."""
        return self._count(self._next_epoch())

    def __len__(self) -> int:
        """The number of batches in an epoch, for each rank."""
        return self._order(self._next_epoch()).count()

    def _order(self, epoch: int, begin: int = 0) -> EpochOrder:
        """The order of the samples from `begin` on."""
        if self._made_order[0] != (epoch, begin):
            self._made_order = (epoch, begin), self._make_order(epoch, begin, self._sources)
        return self._made_order[1]

    def _make_order(self, epoch: int, begin: int, sources: Optional[mixing.Sources]) -> EpochOrder:
        settings: Dict[str, Any] = {}
        if self._bucket or self._max_rows:
            settings |= {"lengths": self._costs}
        if self._is_ragged:
            settings |= {"places": self._files.astype(np.int64), "listed": len(self._first.path)}
        if self._together is not None:
            settings |= dict(zip(("together", "rows_together", "window"), self._together))
        if sources is not None:
            settings |= {"order": sources.order(epoch).samples, "sources": sources.samples}
        return EpochOrder(samples=self._available, shuffles=self._shuffle, bucket=self._bucket, seed=self._seed, epoch=epoch, size=self._batch_size,
                          max_rows=self._max_rows, group=self._groups, ranks=self._world_size, keeps_groups=self._keeps_groups, max_padding=self._max_padding, packs=self._pack,
                          drop_last=self._drop_last, begin=begin, **settings)

    def _begin(self) -> RowBatches:
        if self._first._kept_rows is not None and not self._warned:
            self._warned = True
            if self._together is not None:
                self._warn_if_slow(int(self._together[1].max()))
            if self._shuffle or self._bucket:
                self._warn_if_short()
        self._begun = self._epoch, self._sources
        return RowBatches(self._order(self._epoch, self._delivered), self._inputs, self._is_ragged, self._pack, self._rank, self._prefetch,
                          self._workers, self._ahead())

    def _end(self, run: RowBatches) -> None:
        self._last = self._epoch, self._sources, self.waits

    @property
    def report(self) -> Optional[Dict[str, Any]]:
        """Of the last epoch that came to its end, for all ranks together: `epoch`, `samples`; with a mix, by source the share `asked` for and that `reached`, its
        `samples` and `seconds`, how many `passes` that is, and after how many samples of all it had `ended_after` its last one; with batches by length their
        `batches`, `padding`, `fill` and `entropy_of_neighbours` (docs/loader.md); and `waits`. None before."""
        return None if self._last is None else self._figures(*self._last)

    def preview(self, epoch: int = 0) -> Dict[str, Any]:
        """What `report` will say about an epoch, without `waits`, before anything is read."""
        epoch = arguments.integer("epoch", epoch)
        return self._figures(epoch, self._sources, None)

    def _figures(self, epoch: int, sources: Optional[mixing.Sources], waits: Any) -> Dict[str, Any]:
        out: Dict[str, Any] = {"epoch": epoch, "samples": self._available if sources is None else len(sources.order(epoch).samples)}
        if sources is not None:
            out["mix"] = sources.report(epoch)
        if self._bucket or self._max_rows:
            samples, ends = self._make_order(epoch, 0, sources).batches()
            out["batches"] = len(ends)
            if len(ends):
                out |= length_batches.figures(samples, ends, self._counts, self._costs, self._max_rows, self._pack)
        return out if waits is None else {**out, "waits": waits}

    def _warn_if_slow(self, most: int) -> None:
        reader, kept = self._first._reader, self._first._kept_rows
        if most > kept:
            each = most * reader.row_bytes
            warnings.warn(f"this epoch will be slow: the rows of a recording take up to {arguments.size(each)}, and store keeps "
                          f"{arguments.size(kept * reader.row_bytes)}, so a recording is decoded again for each batch that has "
                          f'samples of it. store="{math.ceil(6 * each / 2**20)}MiB" decodes it once an epoch; so does melflow.Loader',
                          stacklevel=5)

    def _warn_if_short(self) -> None:
        """Warns if memory has less room than `store` allows, on which the order is based."""
        reader = self._first._reader
        wanted = min(int(self._counts.sum()), self._first._kept_rows or 0) * reader.row_bytes
        able = getattr(reader, "storable_bytes", wanted)
        if wanted > able:
            mib = max(1, int(able) >> 20)
            warnings.warn(f"this epoch will be slow: store may keep {arguments.size(wanted)} of rows, but of the memory that is available "
                          f"here (the machine's, less what control groups of a container or a job take away) it uses {mib:,} MiB at most, so "
                          f'recordings are decoded again and again. store="{mib}MiB" mixes samples within what is kept', stacklevel=5)

    def _batch(self, run: RowBatches, taken: Tuple[Any, ...]) -> Batch:
        out, samples, self._delivered = taken
        if self._pack:
            for name in [name for name in out if name.endswith("length")]:
                out[name[:-len("length")] + "cu_seqlens"] = np.concatenate([[0], np.cumsum(out[name])]).astype(np.int32)
        return out | self._facts(samples)  # type: ignore[no-any-return]

    def _facts(self, samples: np.ndarray) -> Batch:
        """What is known of samples, by their numbers."""
        out: Batch = {}
        rows = self._first
        if self._is_ragged:
            files, offset = self._files[samples], np.zeros(len(samples), np.int64)
        else:
            at = np.searchsorted(self._ends, samples, side="right")
            row = self._starts[at] + samples - (self._ends[at] - self._counts[at])
            files = rows.recording_of(row)
            offset = row - rows.offset[files]
        out["path"] = [rows.path[i] for i in files]
        if rows.labels is not None:
            out["labels"] = [rows.labels[i] for i in files]
        elif rows.label is not None and rows.label_names:
            out["label"] = rows.label[files]
        if rows.split_names:
            out["split"] = rows.split[files]
        if rows.target is not None:
            out["target"] = rows.target[files]
        for name, texts in rows.columns.items():
            out[name] = [texts[i] for i in files]
        out["file"], out["offset"] = files, offset
        return out

    def _sample(self, i: int) -> Batch:
        """A sample by its number, as it is stored, with "length" as in batches."""
        out: Batch = {}
        for name, rows in self.rows._sets.items():
            starts, counts = self._ranges[name]
            at = i if self._is_ragged else int(np.searchsorted(self._every_end[name], i, side="right"))
            if self._is_ragged:
                out[name] = rows._reader.read(int(starts[at]), int(counts[at]))
                out["length" if rows is self.rows else name + "_length"] = int(counts[at])
            else:
                row = starts[at] + counts[at] + i - self._every_end[name][at]
                out[name] = rows._reader.read(int(row), 1)[0]
        return out | {name: values[0].item() if isinstance(values[0], np.generic) else values[0]
                      for name, values in self._facts(np.array([i])).items()}
