"""Batches from audio: a pipeline's graph, read by a training loop."""

from __future__ import annotations

import json
from typing import Any, Dict, Mapping, Optional

from ._melflow import BatchRun, Memory
from . import arguments, inputs
from .epochs import Batch, Epochs
from .program import Report, warn_of_recordings


class Loader(Epochs):
    """Goes over a corpus once in each `for`, an epoch, and gives batches as dicts of arrays.

    pipeline: the path of a YAML file, its text (with a line break in it, or beginning with {), or
      the same as a dict; it ends in one node of the stage `batches`.
    batch_size, max_rows, shuffle, bucket, seed, drop_last, prefetch, dtype: options of that node; what is not given is as in
      the YAML. `melflow stages batches` explains them. shuffle is a number of samples from which the next one is drawn;
      while they gather, one leaves for every four that come, so that the first batch does not wait for them.
      False: nothing is shuffled, recordings neither.
    workers: threads that compute; not given: as many as there are cores.
    shuffle_recordings: recordings come in a random order that differs in each epoch, not in that of the list. Not
      given: if `shuffle` or this Loader's `seed` is. For windows of recordings use both: `shuffle` mixes samples that are
      near in that order.
    split: name of the split whose recordings it takes; not given: all.
    rank, world_size, which come together: of `world_size` programs, this one takes each `world_size`-th recording, and
      has its own number of batches. RunError where it has no recording.
    vars, sets: values for ${NAME} and for NODE.OPTION, as --var and --set of the program have them,
      or as numbers (NumPy's, too), True, False, None, paths, and in sets lists.

    A batch has the rows by their name ("mel", "waveform", "windows", ...): float32 [samples, frames, columns], or
    where a sample is a recording [samples, rows, columns], padded with zeros, with "length" [samples]. Where the node
    takes several inputs it has the rows of each, with "mel_length", "waveform_length" and so on. Besides
    "path", "file" and "offset" (where in the list, and at which row of the recording, a sample begins), and where the
    list has them "label" or "labels", "split", "target" and texts by their names. Where stages make several results of a
    recording, "result" is a dict of arrays: by each such node, the number of the result that the sample is of, as in
    /files/results of an output, and "result_offset" is at which row of that result a sample begins. Arrays are views of the batch's own
    memory, which lives as long as they do. bfloat16 comes as an object for DLPack (torch.from_dlpack).

    The batches depend on the corpus, the settings, seed and epoch, but not on the number of workers.

    An epoch that is left before its end (break, an exception) counts, and the next `for` is the
    next one, from its beginning; only load_state_dict() goes on in the middle. One epoch is under
    way at a time: an earlier iterator raises RunError. A Loader is pickled as its arguments and
    where it is.
    """

    _STATE = "loader"
    _warns_of_graph = _warns_of_recordings = True

    def __init__(
        self,
        pipeline: arguments.Pipeline,
        *,
        batch_size: Optional[int] = None,
        max_rows: Optional[int] = None,
        shuffle: "Optional[int | bool]" = None,
        bucket: Optional[int] = None,
        seed: Optional[int] = None,
        drop_last: Optional[bool] = None,
        prefetch: Optional[int] = None,
        dtype: Optional[str] = None,
        shuffle_recordings: Optional[bool] = None,
        split: Optional[str] = None,
        workers: Optional[int] = None,
        rank: Optional[int] = None,
        world_size: Optional[int] = None,
        vars: Optional[Mapping[str, Any]] = None,
        sets: Optional[Mapping[str, Any]] = None,
    ) -> None:
        rank, world_size = arguments.rank(rank, world_size)
        if shuffle is True:
            raise TypeError("shuffle is a number of samples, which are held while the next is "
                            "drawn from them, such as 4096, or False; not True")
        if shuffle is False:
            shuffle, shuffle_recordings = 0, shuffle_recordings or False
        for what, value, least in (("batch_size", batch_size, 1), ("max_rows", max_rows, 0),
                                   ("shuffle", shuffle, 0), ("bucket", bucket, 0),
                                   ("seed", seed, 0), ("prefetch", prefetch, 1)):
            if value is not None:
                arguments.integer(what, value, least)
        for what, value in (("drop_last", drop_last), ("shuffle_recordings", shuffle_recordings)):
            if value is not None:
                arguments.flag(what, value)
        if split is not None and not arguments.text("split", split):
            raise ValueError("split is the name of a split, or None for all, not ''")
        self._pipeline, self._yaml = arguments.pipeline(pipeline)
        given = dict(batch_size=batch_size, max_rows=max_rows, shuffle=shuffle, bucket=bucket,
                     seed=seed, drop_last=drop_last, prefetch=prefetch,
                     dtype=None if dtype is None else arguments.dtype(dtype))
        self._options = {k: arguments.text_of(v) for k, v in given.items() if v is not None}
        self._seed: Optional[int] = None
        if shuffle or seed is not None if shuffle_recordings is None else shuffle_recordings:
            self._seed = int(seed or 0)
        self._vars, self._sets = arguments.assigned("vars", vars), arguments.assigned("sets", sets)
        self._split, self._memory = split or "", Memory()
        self._workers = None if workers is None else arguments.workers(workers, 0)
        self._rank, self._world_size = rank, world_size
        self._report: Optional[Report] = None
        self._facts: Dict[str, Any] = {}  # about the list
        self._is_listed = False  # whether the current epoch has listed the corpus
        self._has_buckets, self._graph_warnings = BatchRun.check(
            self._pipeline, self._yaml, self._vars, self._sets, self._options, self._workers)
        if self._warns_of_graph:
            arguments.warn(self._graph_warnings)

    # ---- epochs

    def _begin(self) -> BatchRun:
        self._is_listed = False
        return BatchRun(self._pipeline, self._yaml, self._vars, self._sets, self._options, self._workers,
                        self._epoch, self._delivered, self._seed, self._memory, self._split, self._rank, self._world_size)

    def _batch(self, run: BatchRun, taken: Batch) -> Batch:
        if not self._is_listed:
            self._facts, self._is_listed = run.listing(), True
        self._delivered += len(taken["file"])
        arguments.warn(run.warnings())
        return taken

    def _end(self, run: BatchRun) -> None:
        arguments.warn(run.warnings())
        self._report = Report({**json.loads(run.report()), "waits": self.waits})
        if self._warns_of_recordings:
            warn_of_recordings(self._report, 'the Loader\'s report["remarks"] has all')

    # ---- information

    @property
    def report(self) -> Optional[Report]:
        """The report on the last complete epoch, as of `melflow run --json` and melflow.run(): files (found, ok,
        skipped, failed, ...), remarks (each recording that was lost or damaged, with the reason), and by stage and queue where the time went; None before. Recordings of other splits
        and ranks are counted by themselves, as other_splits and other_ranks of files."""
        return self._report

    @property
    def label_names(self) -> list:
        """The names of the labels, by number. Lists the corpus if no batch has been taken yet."""
        return self._known()["labels"]

    @property
    def split_names(self) -> list:
        return self._known()["splits"]

    @property
    def target_names(self) -> list:
        return self._known()["targets"]

    def _known(self, anew: bool = False) -> Dict[str, Any]:
        if anew or not self._facts:
            self._facts = BatchRun.list(self._pipeline, self._yaml, self._vars, self._sets)
        return self._facts

    # ---- saving and resuming

    def _order_settings(self) -> Dict[str, Any]:
        text = self._yaml.encode("utf-8", "surrogateescape")
        if not self._yaml:
            text = inputs.read(self._pipeline, inputs.PIPELINE, may_be_pipe=True)
        names = ["shuffle", "bucket", "seed", "dtype"]
        names += ["batch_size", "max_rows", "drop_last"] if self._has_buckets else []
        # The digest of all variables finds a difference; the short ones only say which variable, and do not reveal a password.
        each = {f"{what}.{name}": arguments.digest(value)[:5]
                for what, values in (("vars", self._vars), ("sets", self._sets)) for name, value in values.items()}
        return {"pipeline": arguments.digest(text), "vars": arguments.digest(self._vars),
                "sets": arguments.digest(self._sets), **each, **{k: self._options.get(k) for k in names},
                "shuffle_recordings": self._seed is not None, "split": self._split or None,
                "rank": self._rank, "world_size": self._world_size}

    def _list_settings(self, epoch: int, loads: bool) -> Dict[str, Any]:
        facts = self._known(anew=loads)
        return {"recordings": facts["recordings"], "list": "#" + facts["list"]}
