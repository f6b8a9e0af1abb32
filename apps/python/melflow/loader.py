"""Batches from audio: a pipeline's graph, read by a training loop."""

from __future__ import annotations

import hashlib
from typing import Any, Dict, Iterator, Mapping, Optional

from ._melflow import BatchRun, Memory
from . import arguments
from .torch_dataset import as_torch

Batch = Dict[str, Any]

_WAIT = 0.1  # seconds between two looks at signals


class Loader:
    """Goes over a corpus once for each `for`, which is an epoch, and gives dicts of arrays.

    pipeline: the path of a YAML file, its text (with a line break in it, or beginning with {), or
      the same as a dict; it ends in one node of the stage `batches`.
    batch_size, max_rows, shuffle, bucket, seed, drop_last, prefetch, dtype: options of that node; what is not given is as in
      the YAML. `melflow stages batches` explains them.
    workers: threads that compute; not given: as many as there are cores.
    shuffle_recordings: recordings come in random order, another one in each epoch, and not as they are listed. Not
      given: where `shuffle` or this Loader's `seed` is. With windows of recordings both are wanted: `shuffle` mixes what is
      near in that order.
    split: name of the split whose recordings it takes; not given: all.
    rank, world_size: of `world_size` programs, this one takes each `world_size`-th recording.
    vars, sets: values for ${NAME} and for NODE.OPTION, as --var and --set of the program have them,
      or as numbers (NumPy's, too), True, False, None, paths, and in sets lists.

    A batch has the rows by their name ("mel", "waveform", "windows", ...): float32 [samples, frames, columns], or
    where a sample is a recording [samples, rows, columns], padded with zeros, with "length" [samples]. Where the node
    takes several inputs it has the rows of each, with "mel_length", "waveform_length" and so on. Besides
    "path", "file" and "offset" (where in the list, and at which row of the recording, a sample begins), and where the
    list has them "label" or "labels", "split", "target" and texts by their names. Arrays are views of the batch's own
    memory, which lives as long as they do. bfloat16 comes as an object for DLPack (torch.from_dlpack).

    What comes depends on the corpus, the settings, seed and epoch, and not on the number of workers.
    """

    def __init__(
        self,
        pipeline: arguments.Pipeline,
        *,
        batch_size: Optional[int] = None,
        max_rows: Optional[int] = None,
        shuffle: Optional[int] = None,
        bucket: Optional[int] = None,
        seed: Optional[int] = None,
        drop_last: Optional[bool] = None,
        prefetch: Optional[int] = None,
        dtype: Optional[str] = None,
        shuffle_recordings: Optional[bool] = None,
        split: Optional[str] = None,
        workers: Optional[int] = None,
        rank: int = 0,
        world_size: int = 1,
        vars: Optional[Mapping[str, Any]] = None,
        sets: Optional[Mapping[str, Any]] = None,
    ) -> None:
        rank, world_size = arguments.rank(rank, world_size)
        for what, value, least in (("batch_size", batch_size, 1), ("max_rows", max_rows, 1), ("shuffle", shuffle, 0),
                                   ("bucket", bucket, 0), ("seed", seed, 0), ("prefetch", prefetch, 1),
                                   ("workers", workers, 0)):
            if value is not None:
                arguments.whole(what, value, least)
        self._pipeline, self._yaml = arguments.pipeline(pipeline)
        given = dict(size=batch_size, max_rows=max_rows, shuffle=shuffle, bucket=bucket, seed=seed, drop_last=drop_last,
                     prefetch=prefetch, dtype=dtype)
        self._options = {k: arguments.text_of(v) for k, v in given.items() if v is not None}
        self._seed: Optional[int] = None
        if shuffle or seed is not None if shuffle_recordings is None else shuffle_recordings:
            self._seed = int(seed or 0)
        self._vars, self._sets = arguments.assigned("vars", vars), arguments.assigned("sets", sets)
        self._split, self._memory = split or "", Memory()
        self._workers = None if workers is None else int(workers)
        self._rank, self._world_size = rank, world_size
        self._epoch, self._delivered = 0, 0
        self._run: Optional[BatchRun] = None
        self._report: Optional[Dict[str, Any]] = None
        self._facts: Dict[str, Any] = {}
        arguments.warn(BatchRun.check(self._pipeline, self._yaml, self._vars, self._sets,
                                      self._options, self._workers), 2)

    # ---- epochs

    def set_epoch(self, epoch: int) -> None:
        """The next `for` is this epoch, from its beginning."""
        self._epoch, self._delivered = arguments.whole("epoch", epoch), 0

    @property
    def epoch(self) -> int:
        return self._epoch

    def __iter__(self) -> Iterator[Batch]:
        self.close()
        run = self._run = self._begin()
        try:
            while True:
                batch = run.take(_WAIT)
                if batch is None:
                    break
                if batch is False:  # nothing yet; Python looks at its signals here
                    continue
                self._facts = dict(labels=run.label_names, splits=run.split_names, targets=run.target_names)
                self._delivered += len(batch["file"])
                yield batch
            self._report = run.report()
            self._epoch, self._delivered = self._epoch + 1, 0
        finally:
            run.stop()
            if self._run is run:
                self._run = None

    def _begin(self) -> BatchRun:
        return BatchRun(self._pipeline, self._yaml, self._vars, self._sets, self._options, self._workers,
                        self._epoch, self._delivered, self._seed, self._memory, self._split, self._rank, self._world_size)

    def close(self) -> None:
        """Breaks off the epoch that is under way."""
        if self._run is not None:
            self._run.stop()
            self._run = None

    # ---- what is known

    @property
    def report(self) -> Optional[Dict[str, Any]]:
        """What became of every recording in the last epoch that was gone through: counts, remarks (path, outcome,
        node, reason), seconds; None before."""
        return self._report

    @property
    def label_names(self) -> list:
        """The names of the labels, by number; there after the first batch."""
        return self._facts.get("labels", [])

    @property
    def split_names(self) -> list:
        return self._facts.get("splits", [])

    @property
    def target_names(self) -> list:
        return self._facts.get("targets", [])

    # ---- going on

    def _identity(self) -> str:
        what = "" if self._yaml else open(self._pipeline, encoding="utf-8").read()
        order = self._seed, {k: v for k, v in self._options.items() if k in ("shuffle", "bucket", "seed", "dtype")}
        parts = (self._yaml, what, order, self._vars, self._sets, self._split, self._rank, self._world_size)
        return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]

    def state_dict(self) -> Dict[str, Any]:
        """Where training is: after the last batch that was taken. Some hundred bytes."""
        return {"epoch": self._epoch, "delivered": self._delivered, "pipeline": self._identity()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """The next `for` goes on after the last batch that had been taken: the same samples in the same order follow.
        What was delivered of the epoch is read once more."""
        state = arguments.state(state, ("epoch", "delivered", "pipeline"), "a melflow.Loader")
        if state["pipeline"] != self._identity():
            raise ValueError("the state is of another pipeline, seed, shuffle, bucket, rank or world_size, so other samples would "
                             "follow; make the Loader as it was, or use set_epoch()")
        self._epoch, self._delivered = int(state["epoch"]), int(state["delivered"])

    def as_torch(self) -> Any:
        """A torch.utils.data.IterableDataset whose items are batches, for DataLoader(..., batch_size=None)."""
        return as_torch(self)
