"""Rows of a corpus by number, computed from the audio when they are asked for."""

from __future__ import annotations

import os
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

import numpy as np

from ._melflow import AudioRows as _AudioRows
from ._melflow import RunError
from ._melflow import version as _version
from . import arguments, inputs
from .rows import Rows

_OUTCOMES = ("ok", "skipped", "failed")  # in the order of the numbers in files/status of an output
_INDEX_FORMAT = 2


def _of_each(find: Callable[[int], Any], firsts: List[int], workers: int, what: str) -> List[Any]:
    """The results of `find` for all of `firsts`, with a progress bar on stderr if that is a terminal."""
    out: List[Any] = []
    if not firsts:
        return out
    shows = sys.stderr is not None and sys.stderr.isatty()
    with ThreadPoolExecutor(min(workers, len(firsts))) as pool:
        try:
            # Submits in steps, because all submitted work is finished before a program ends.
            step = (4 if shows else 32) * workers
            for at in range(0, len(firsts), step):
                out += pool.map(find, firsts[at:at + step])
                if shows:
                    done = 20 * len(out) // len(firsts)
                    sys.stderr.write(f"\r{what} [{'#' * done}{' ' * (20 - done)}] {len(out):,} of {len(firsts):,} recordings")
                    sys.stderr.flush()
        except BaseException:  # Ctrl-C, too
            pool.shutdown(wait=True, cancel_futures=True)
            raise
        finally:
            if shows:
                sys.stderr.write("\n")
    return out


class AudioRows(Rows):
    """The rows of a pipeline that ends in a node of the stage `batches`, of all its recordings or utterances, by number.

    How many rows each recording gives is found out once, and is written to an index. With it, the order of samples, len()
    and states are exact. If the number follows from a recording's length, that is read from its header; otherwise, and with
    `scan`, all rows are computed for it. Computed rows are kept in memory as far as `store` allows; others
    are computed again.

    pipeline, vars, sets: as those of melflow.Loader.
    scan: computes all rows before the first batch, so that recordings that fail are left out, and rows are those of the file
      that the pipeline would write.
    remarks: (path, outcome, node, reason) of each recording that was computed for the index and gave no rows, or has
      a warning.
    losses: path and reason of recordings that could not be read, or that turned out not to have the rows in the index.
    index: the path of the index, or None. computed: how often all rows of a recording were computed. stored_bytes: the size
    of the stored rows.
    """

    _reader: _AudioRows

    def __init__(self, pipeline: arguments.Pipeline, *, vars: Optional[Mapping[str, Any]] = None,
                 sets: Optional[Mapping[str, Any]] = None, store: "int | str" = "1GiB",
                 index: "os.PathLike[str] | str | bool | None" = None, workers: Optional[int] = None,
                 scan: bool = False) -> None:
        name, text = arguments.pipeline(pipeline)
        workers = 0 if workers is None else arguments.workers(workers, 0)
        workers = workers or len(os.sched_getaffinity(0))
        if not isinstance(store, str):
            store = arguments.integer("store", store)
        reader = self._reader = _AudioRows(name, text, arguments.assigned("vars", vars),
                                           arguments.assigned("sets", sets), str(store), workers)
        arguments.warn(reader.remarks)
        if index is None or index is True:
            index = None if text else os.path.splitext(name)[0] + ".index.npz"
        elif index is not False:
            index = arguments.path("index", index)
        self.index: Optional[str] = index or None
        self._batch_workers = min(2, workers)  # threads that pass a batch's recordings to the workers
        columns = reader.columns()
        self.path = columns["path"]
        if len(self.path) == 0:
            raise RunError(f"{name}: lists no files")
        self._measure(name, workers, arguments.flag("scan", scan))
        self._kept_rows: Optional[int] = reader.kept_rows
        self._firsts = reader.firsts()
        self.name, self.unit, self.dtype = reader.name, reader.unit, reader.dtype
        self.rows_per_second = reader.rows_per_second
        self.offset = np.cumsum(self.count) - self.count
        self.shape = (int(self.count.sum()), *reader.row_shape)
        self.is_ragged = reader.frames == 0
        self.label, self.labels = columns.get("label"), columns.get("labels")
        self.split, self.target = columns.get("split"), columns.get("target")
        self.label_names, self.split_names = reader.label_names, reader.split_names
        self.columns = {k: columns[k] for k in reader.text_names}
        self.attributes = {"rows": self.name, "feature_fingerprint": reader.fingerprint}
        self._order()

    # ---- the index

    def _measure(self, name: str, workers: int, scan: bool) -> None:
        stamps = self._reader.stamps()
        known = self._read_index()
        numbers = np.zeros((len(self.path), 3), np.int64)  # status, rows, whether the count comes from the header
        said: Dict[int, Tuple[str, str]] = {}
        firsts = self._reader.firsts()  # of each entry, the first one cut out of the same recording
        missing: Dict[int, None] = {}  # numbers of such first entries, in order
        for i, path in enumerate(self.path):
            old = known.get(path)
            if old is None or old[0] != tuple(stamps[i]) or (scan and old[1][2]):
                missing[int(firsts[i])] = None
                continue
            _, numbers[i], reason = old
            if reason[1]:
                said[i] = reason
        unknown = list(missing)
        if self._reader.tells_counts and not scan:
            counts = _of_each(self._reader.count_by_header, unknown, workers, f"{name}: reads lengths")
            for first, rows in zip(unknown, counts):
                numbers[first] = 0, rows, 1
                said.pop(first, None)
            unknown = [first for first, rows in zip(unknown, counts) if rows < 0]
        for first, recording in zip(unknown, _of_each(self._reader.measure, unknown, workers, f"{name}: counts rows")):
            for i, (status, rows, node, reason) in enumerate(recording, first):
                numbers[i] = status, rows, 0
                said.pop(i, None)
                if reason:
                    said[i] = node, reason
        self.status, self.count = numbers[:, 0].astype(np.int8), numbers[:, 1].copy()
        self.remarks = [(self.path[i], _OUTCOMES[int(self.status[i])], *said[i]) for i in sorted(said)]
        if not self.count.any():
            path, _, node, reason = self.remarks[0] if self.remarks else (self.path[0], "", "", "gave no rows")
            raise RunError(f"no recording gave rows; the first: {path}: {node}: {reason}")
        if missing or len(known) != len(self.path):
            self._write_index(stamps, numbers, said)
        self._reader.place(self.count, *(np.ascontiguousarray(c) for c in (stamps[:, 0], stamps[:, 1], numbers[:, 2])))

    def _identity(self) -> str:
        return f"{_INDEX_FORMAT} {_version} {self._reader.fingerprint} {self._reader.dtype}"

    def _read_index(self) -> Dict[str, Any]:
        if self.index is None or not os.path.exists(self.index):
            return {}
        try:
            with inputs.opened(self.index, inputs.INDEX) as index, np.load(index, allow_pickle=False) as file:
                if any(part.compress_type for part in file.zip.infolist()):
                    raise ValueError("it is packed")
                if str(file["identity"]) != self._identity():
                    return {}
                texts = {k: bytes(file[k]).decode("utf-8", "surrogateescape").split("\0")
                         for k in ("path", "node", "reason")}
                stamps, numbers = file["stamps"], file["numbers"]
                if not len(texts["path"]) == len(texts["node"]) == len(texts["reason"]) == len(stamps) == len(numbers):
                    raise ValueError("its columns have different lengths")
                return {p: (tuple(stamps[i]), numbers[i], (texts["node"][i], texts["reason"][i]))
                        for i, p in enumerate(texts["path"])}
        except Exception as error:  # any error that a file which is no index causes
            warnings.warn(f"{self.index}: this is no index that can be read ({error}), and is recreated", stacklevel=5)
            return {}

    def _write_index(self, stamps: np.ndarray, numbers: np.ndarray, said: Mapping[int, Tuple[str, str]]) -> None:
        if self.index is None:
            return

        def column(of: List[str]) -> np.ndarray:
            return np.frombuffer("\0".join(of).encode("utf-8", "surrogateescape"), np.uint8)

        none = ("", "")
        work = f"{self.index}.{os.getpid()}.part"
        try:
            if os.path.lexists(work):  # left by an interrupted process
                os.unlink(work)
            with open(work, "xb") as file:  # does not follow a link that somebody else made
                np.savez(file, identity=np.array(self._identity()), path=column(self.path), stamps=stamps, numbers=numbers,
                         node=column([said.get(i, none)[0] for i in range(len(self.path))]),
                         reason=column([said.get(i, none)[1] for i in range(len(self.path))]))
            os.replace(work, self.index)
        except OSError as error:
            if os.path.exists(work):
                os.unlink(work)
            warnings.warn(f"{self.index}: the index cannot be written ({error.strerror}), and is made again next time; "
                          "index=PATH puts it elsewhere, index=False keeps none", stacklevel=5)

    # ---- information

    @property
    def losses(self) -> Dict[str, str]:
        return self._reader.losses

    @property
    def computed(self) -> int:
        return self._reader.computed

    @property
    def stored_bytes(self) -> int:
        return self._reader.stored_bytes
