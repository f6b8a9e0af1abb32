"""The input of every export format: the recordings of a file of rows, with their names, records and splits."""

from __future__ import annotations

import csv
import io
import json
import os
import re
from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Optional, Tuple

import numpy as np

from ._melflow import RowExport, RunError, as_recording_name, recording_names, rows_hash
from .rows import FileRows

_STATUS = ("ok", "skipped", "failed", "not_run")


def _names_by(rows: FileRows, column: str) -> List[str]:
    """Names of recordings by a column of the file."""
    if column not in rows.columns:
        raise ValueError(f"utterance: there is no column {column!r}; there are: {', '.join(rows.columns) or 'none'}")
    out = [as_recording_name(value) for value in rows.columns[column]]
    seen: Dict[str, str] = {}
    for path, name, count in zip(rows.path, out, rows.count.tolist()):
        if count and (not name or name in seen):
            raise ValueError(f"utterance: {path} has the name {name!r} in {column!r}" +
                             (f", as {seen[name]} has" if name else "") + "; each utterance needs one of its own")
        if count:
            seen[name] = path
    return out


def _csv_line(values: Iterable[Any]) -> str:
    """A line of CSV. Before Python 3.13 the module csv quotes a text with a CR only if lines end with one."""
    out = io.StringIO(newline="")
    csv.writer(out, lineterminator="\r\n").writerow(values)
    return out.getvalue()[:-2] + "\n"


def text(value: str) -> str:
    """The text as UTF-8, with bytes that are no UTF-8 as \\xNN."""
    return os.fsencode(value).decode("utf-8", "backslashreplace")


class Piece(NamedTuple):
    """A result of a recording (a channel, a variant, an utterance), or a whole recording: its name, its rows within those of
    the recording, and what is known of it."""

    name: str
    rows: slice
    record: Dict[str, Any]


class Audio(NamedTuple):
    """The audio of a recording, or of an utterance in one: a file of its own, and where [s] in it that begins."""

    path: str
    start: float
    is_part: bool  # an utterance
    listed: str  # the file as rows name it: below its root, behind the name of its source where there are several


class Source:
    """The data for a format. rows: the file. names: of the recordings, all different. parts: the splits with rows, and the numbers of
    their recordings in the order of the rows; one without a name if there are no splits. renamed: splits whose files
    have other names."""

    def __init__(self, rows: FileRows, shard: int, utterance: Optional[str] = None) -> None:
        self.rows: Any = rows
        self.shard = shard
        self.names = recording_names(rows.path) if utterance is None else _names_by(rows, utterance)
        self.renamed: Dict[str, str] = {}
        self.archives = RowExport(rows.file, self.names, rows.attributes.get("index_hash", ""))
        by_split: Dict[str, List[int]] = {}
        for i in rows._by_offset.tolist():
            by_split.setdefault(rows.split_names[rows.split[i]] if rows.split[i] >= 0 else "", []).append(i)
        self.parts = by_split
        self._sources: List[Dict[str, str]] = json.loads(rows.attributes.get("sources", "[]"))
        self.roots = " or ".join(repr(source["root"]) for source in self._sources or [{"root": rows._root}])
        self.hashes: Dict[int, int] = {}
        self._reasons: Dict[int, Tuple[str, str]] = {file: (stage, why) for file, _, stage, why in rows._remarks}

    def recording(self, i: int) -> np.ndarray:
        """A recording's rows as stored, bfloat16 as uint16; raises RunError if they are not what was written."""
        out, self.hashes[i] = self.archives.rows(i)
        return out  # type: ignore[no-any-return]

    def usual(self, i: int) -> np.ndarray:
        """The same rows, with bfloat16 converted to float32."""
        out = self.recording(i)
        return (out.astype(np.uint32) << 16).view(np.float32) if self.rows.dtype == "bfloat16" else out

    def audio(self, i: int) -> Optional[Audio]:
        """The audio of a recording; None where it is no file of its own that is there now."""
        listed, root = self.rows.path[i], self.rows._root
        for source in self._sources:
            if listed.startswith(source["name"] + "/"):
                listed, root = listed[len(source["name"]) + 1:], source["root"]
                break
        path = os.path.abspath(os.path.join(root, listed))
        if os.path.isfile(path):
            return Audio(path, 0.0, False, self.rows.path[i])
        span = re.search(r"#(t|samples)=([0-9.e+-]+)(,[^#]*)?\Z", path)
        rate = int(self.rows._sample_rate[i])
        if span is None or not os.path.isfile(path[:span.start()]) or (span[1] == "samples" and rate == 0):
            return None
        begin = float(span[2]) / (rate if span[1] == "samples" else 1)
        return Audio(path[:span.start()], begin, True, self.rows.path[i][:span.start() - len(path)])

    @property
    def usual_type(self) -> str:
        return "float32" if self.rows.dtype == "bfloat16" else self.rows.dtype

    def pieces(self, i: int) -> List[Piece]:
        """The results of a recording, in the order of their rows."""
        record = self.record(i)
        said = json.loads(self.rows._results[i] or "[]")
        if not said:
            return [Piece(self.names[i], slice(0, int(self.rows.count[i])), record)]
        record.pop("results", None)
        out: List[Piece] = []
        end = 0
        for one, (name, count) in zip(said, self.archives.results(i)):
            end += count
            out.append(Piece(name, slice(end - count, end), {**record, "name": text(name), "result": one}))
        return out

    def file_names(self, are_words: bool) -> Dict[str, str]:
        """For each split the beginning of its files' names, "rows" if there are no splits. are_words: for a library
        that recognizes splits by names of letters, digits and _."""
        out: Dict[str, str] = {}
        for split in self.parts:
            name = unique = (re.sub(r"\W", "_", split) if are_words else split) or "rows"
            n = 1
            while unique in out.values():
                n += 1
                unique = f"{name}_{n}"
            out[split] = unique
        self.renamed = {split: name for split, name in out.items() if split and split != name}
        return out

    def confirm(self, i: int, read: np.ndarray) -> None:
        """Compares the rows that a library has read back with those written."""
        if self.rows.dtype == "bfloat16" and read.dtype != np.uint16:
            bits = np.ascontiguousarray(read, np.float32).view(np.uint32)
            read = (bits >> 16).astype(np.uint16) if not (bits & 0xFFFF).any() else bits
        elif self.rows.dtype != "bfloat16":
            with np.errstate(all="ignore"):
                as_stored = read.astype(self.rows.dtype)
            same = np.array_equal(as_stored.astype(read.dtype), read, equal_nan=True)
            read = as_stored if same else np.zeros(0)
        shape = (int(self.rows.count[i]), *self.rows.shape[1:])
        if read.shape != shape or rows_hash(np.ascontiguousarray(read)) != self.hashes.pop(i, None):
            raise RunError(f"what is read back of {self.rows.path[i]} is not what was written: the disk, or the library that "
                           "writes this format, makes errors")

    def shards(self, numbers: List[int], most: Optional[int] = None) -> Iterator[List[int]]:
        """Groups recordings in order: at most `most` bytes together (not given: a shard), or a single one."""
        most = self.shard if most is None else most
        taken: List[int] = []
        held = 0
        for i in numbers:
            size = int(self.rows.count[i]) * self.rows._reader.row_bytes
            if taken and held + size > most:
                yield taken
                taken, held = [], 0
            taken.append(i)
            held += size
        if taken:
            yield taken

    def files(self, ending: str, are_words: bool = False) -> Iterator[Tuple[str, List[int], str]]:
        """For each shard its name, such as train-00000-of-00004.tar, the numbers of its recordings, and the split."""
        names = self.file_names(are_words)
        for split, numbers in self.parts.items():
            shards = list(self.shards(numbers))
            for n, shard in enumerate(shards):
                yield f"{names[split]}-{n:05}-of-{len(shards):05}{ending}", shard, split

    def record(self, i: int) -> Dict[str, Any]:
        """The properties of a recording, by name."""
        rows = self.rows
        out: Dict[str, Any] = {"number": i, "name": text(self.names[i]), "path": text(rows.path[i])}
        if rows.labels is not None:
            out["labels"] = [text(rows.label_names[n]) for n in np.flatnonzero(rows.labels[i])]
        elif rows.label_names:
            out["label"] = text(rows.label_names[rows.label[i]]) if rows.label[i] >= 0 else None
        if rows.split_names:
            out["split"] = text(rows.split_names[rows.split[i]]) if rows.split[i] >= 0 else None
        out |= {"sample_rate": int(rows._sample_rate[i]), "duration": float(rows._duration[i])}
        if any(rows._results):
            out["results"] = rows._results[i]
        more: Dict[str, Any] = {} if rows.target is None else dict(zip(rows._target_names, map(float, rows.target[i])))
        more |= {name: text(texts[i]) for name, texts in rows.columns.items()}
        for name, value in more.items():
            out[name + "_" if name in out or name in ("rows", "status", "stage", "reason") else name] = value
        return out

    def about(self) -> Dict[str, Any]:
        rows = self.rows
        out = {"rows": rows.name, "unit": rows.unit, "shape": rows.shape, "dtype": rows.dtype, "labels": rows.label_names,
               "splits": rows.split_names, "warnings": rows._warnings, "attributes": rows.attributes}
        if rows._band_hz.size:
            out["band_hz"] = [None if np.isnan(f) else f for f in rows._band_hz.tolist()]
        if rows.mean is not None and rows.std is not None:
            out["statistics"] = {"mean": rows.mean.tolist(), "std": rows.std.tolist(), "applied": rows.is_normalized}
            if rows.statistics_by is not None:
                out["statistics_by"] = {"column": rows.statistics_by, "name": [text(name) for name in rows.group_names],
                                        "frames": rows.group_frames.tolist(), "mean": rows.group_mean.tolist(),
                                        "std": rows.group_std.tolist()}
        return dict(json.loads(json.dumps(out)))  # no arrays and tuples

    def write_table(self, path: str) -> None:
        """Writes a table of all recordings of the file, with the reason for those without rows. Names and paths keep their bytes."""
        with open(path, "w", encoding="utf-8", errors="surrogateescape", newline="") as file:
            for i, count in enumerate(self.rows.count.tolist()):
                record = {**self.record(i), "name": self.names[i], "path": self.rows.path[i]}
                stage, reason = self._reasons.get(i, ("", ""))
                record |= {"rows": count, "status": _STATUS[self.rows.status[i]], "stage": stage, "reason": reason,
                           "rows_hash": f"{int(self.rows._hashes[i]):016x}"}
                if i == 0:
                    file.write(_csv_line(record))
                file.write(_csv_line(";".join(v) if isinstance(v, list) else "" if v is None else v for v in record.values()))
