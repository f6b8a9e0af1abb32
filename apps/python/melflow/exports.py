"""Rows of a file that melflow has written, as other libraries read them: melflow.export, and the verb of that name.

A format writes the recordings into the folder DIR.part, each compared with its hash; what its library then reads back is
compared, too, before the folder gets its name. Beside the rows lie recordings.csv, with every recording of the file and what
became of it, and about.json, with what holds for all.
"""

from __future__ import annotations

import csv
import fcntl
import importlib
import io
import json
import os
import re
import shutil
from contextlib import contextmanager, suppress
from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Optional, Tuple

import numpy as np

from . import arguments, inputs
from ._melflow import RowExport, RunError, as_recording_name, recording_names, rows_hash
from .rows import FileRows

_ABOUT, _UNITS = "about.json", {"": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
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
    """Before Python 3.13 a text with a CR is put in quotes only where lines end with one."""
    out = io.StringIO(newline="")
    csv.writer(out, lineterminator="\r\n").writerow(values)
    return out.getvalue()[:-2] + "\n"


def text(value: str) -> str:
    """As UTF-8: bytes that are none as \\xNN."""
    return os.fsencode(value).decode("utf-8", "backslashreplace")


class Piece(NamedTuple):
    """A result of a recording (a channel, a variant, an utterance), or a recording that has one: its name, its rows among those of
    the recording, and what is known of it."""

    name: str
    rows: slice
    record: Dict[str, Any]


class Source:
    """What a format writes. rows: the file. names: of the recordings, each once. parts: the splits with rows, and the numbers of
    their recordings in the order of the rows; one without a name where there are no splits. renamed: splits of which the files
    are called otherwise."""

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
        self.hashes: Dict[int, int] = {}
        self._reasons: Dict[int, Tuple[str, str]] = {file: (stage, why) for file, _, stage, why in rows._remarks}

    def recording(self, i: int) -> np.ndarray:
        """Its rows as they are stored, bfloat16 as uint16; raises RunError where they are not what was written."""
        out, self.hashes[i] = self.archives.rows(i)
        return out  # type: ignore[no-any-return]

    def usual(self, i: int) -> np.ndarray:
        """Likewise, bfloat16 as the float32 that it stands for."""
        out = self.recording(i)
        return (out.astype(np.uint32) << 16).view(np.float32) if self.rows.dtype == "bfloat16" else out

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
        """For each split the name that its files begin with, "rows" where there are no splits. are_words: as a library wants them
        that knows splits by such names: of letters, digits and _."""
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
        """Compares what a library reads with what was written."""
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
        """Recordings in turn of at most `most` bytes (not given: a shard) together, or one."""
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
        """The names of the shards, such as train-00000-of-00004.tar, what is in them, and their split."""
        names = self.file_names(are_words)
        for split, numbers in self.parts.items():
            shards = list(self.shards(numbers))
            for n, shard in enumerate(shards):
                yield f"{names[split]}-{n:05}-of-{len(shards):05}{ending}", shard, split

    def record(self, i: int) -> Dict[str, Any]:
        """What is known of a recording, by name."""
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
        """Every recording of the file, with rows or without, and why. Names and paths have their bytes."""
        with open(path, "w", encoding="utf-8", errors="surrogateescape", newline="") as file:
            for i, count in enumerate(self.rows.count.tolist()):
                record = {**self.record(i), "name": self.names[i], "path": self.rows.path[i]}
                stage, reason = self._reasons.get(i, ("", ""))
                record |= {"rows": count, "status": _STATUS[self.rows.status[i]], "stage": stage, "reason": reason,
                           "rows_hash": f"{int(self.rows._hashes[i]):016x}"}
                if i == 0:
                    file.write(_csv_line(record))
                file.write(_csv_line(";".join(v) if isinstance(v, list) else "" if v is None else v for v in record.values()))


def _is_export(folder: str) -> bool:
    try:
        return "melflow_export" in json.loads(inputs.read(os.path.join(folder, _ABOUT), inputs.DOCUMENT))
    except (OSError, ValueError, RecursionError):
        return False


# What an export does not finish, or replaces, has a file of this name until nothing else is in it.
_MARK = ".melflow-export"


def _is_left(folder: str) -> bool:
    """Whether it is a folder that an interrupted export began or was about to remove."""
    mark = os.path.join(folder, _MARK)
    has_mark = os.path.isfile(mark) and not os.path.islink(mark)
    return os.path.isdir(folder) and not os.path.islink(folder) and (has_mark or not os.listdir(folder))


def _clear(folder: str) -> None:
    """Removes all but the mark, which is made first."""
    mark = os.path.join(folder, _MARK)
    open(mark, "wb").close()
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        if path != mark:
            shutil.rmtree(path) if os.path.isdir(path) and not os.path.islink(path) else os.unlink(path)


def _remove(folder: str) -> None:
    """What cannot be removed is left with the mark, for the next export. Of a link, what it leads to stays."""
    with suppress(OSError):
        if os.path.islink(folder):
            os.unlink(folder)
            return
        _clear(folder)
        os.unlink(os.path.join(folder, _MARK))
        os.rmdir(folder)


@contextmanager
def _folder(target: str, overwrite: bool) -> Iterator[str]:
    """A folder that gets its name when all is in it."""
    part, replaced = target + ".part", target + ".replaced"
    if _is_left(replaced):
        _remove(replaced)
    elif _is_export(replaced) and not os.path.lexists(target):
        os.rename(replaced, target)  # an export was interrupted between two names
    elif _is_export(replaced) and _is_export(target):
        _remove(replaced)  # and this one after both
    is_empty = os.path.isdir(target) and not os.path.islink(target) and not os.listdir(target)
    if os.path.lexists(target) and not is_empty:
        if not _is_export(target):
            raise RunError(f"{target}: exists, and is no export of melflow, so it is left as it is; name a folder that is not there")
        if not overwrite:
            raise RunError(f"{target}: is an export already; replace it by overwrite=True (--overwrite), or name another folder")
    if os.path.lexists(replaced):
        raise RunError(f"{replaced}: is in the way; an export that is replaced is called so for a moment")
    try:
        os.mkdir(part)
    except FileExistsError:
        # A complete export was interrupted before it had its name.
        if not _is_left(part) and not (_is_export(part) and not os.path.islink(part)):
            raise RunError(f"{part}: is in the way, and no export of melflow began it; remove it, or name another folder") from None
    except OSError as error:
        raise RunError(f"{part}: cannot be made: {error.strerror}") from None
    lock = os.open(part, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RunError(f"{part}: another export writes there") from None
        _clear(part)
        try:
            yield part
        except BaseException:
            _remove(part)
            raise
        os.unlink(os.path.join(part, _MARK))
        if os.path.lexists(target) and not is_empty:
            os.rename(target, replaced)
        os.rename(part, target)
        if os.path.lexists(replaced):
            _remove(replaced)
    finally:
        os.close(lock)


def export(source: "os.PathLike[str] | str", folder: "os.PathLike[str] | str", format: str, *, shard: str = "256MiB",
           overwrite: bool = False, utterance: Optional[str] = None, compression: int = 0) -> Dict[str, Any]:
    """Writes the rows of a file that melflow has written (.h5 or .npy) for other libraries, into a new folder.

    format: "parquet", "arrow" (IPC files), "zarr" (version 3, sharded), "kaldi" (ark and scp), "tar" (WebDataset), "shar"
      (Lhotse Shar), "safetensors", or "hf" (a dataset of Hugging Face's datasets). Each needs the library that it is named after;
      kaldi, tar and shar need none.
    shard: about how many bytes of rows a file has. overwrite: replaces an earlier export. utterance: the column whose texts name
      recordings; not given: their paths without the ending. compression: of kaldi, by the number that copy-feats has for it, which
      loses precision: 1 (2, or 3 up to 8 rows), 2 (8 bits by quarters of each column), 3 (16 bits) or 5 (8 bits); 0: none.

    All rows are compared with the hashes of the file, and again as the library reads them back (Kaldi's files byte by byte). recordings.csv in the folder lists
    every recording, also those without rows and why; about.json has the settings. Gives counts: recordings, rows, bytes, without_rows;
    and as renamed_splits those whose files are called otherwise.
    RunError: rows are damaged, a library is not installed, or the folder is no place for it; nothing is left then."""
    from .export_formats import COMPRESSIONS, FORMATS  # which imports this module

    if arguments.text("format", format) not in FORMATS:
        raise ValueError(f"format: there is no {format!r}; the arguments are output, folder, format. {arguments.meant(format, FORMATS)}")
    match = re.fullmatch(r"(\d+)(|KiB|MiB|GiB)", arguments.text("shard", shard))
    if not match or int(match[1]) == 0:
        raise ValueError(f"shard: {shard!r} is no size of a file; write one such as 256MiB or 1GiB")
    overwrite = arguments.flag("overwrite", overwrite)
    target = os.path.abspath(arguments.path("folder", folder))
    if arguments.whole("compression", compression) and (format != "kaldi" or compression not in COMPRESSIONS):
        raise ValueError(f"compression is for kaldi, and is one of {', '.join(map(str, COMPRESSIONS))}; not {compression} for {format}")
    writer = FORMATS[format]()
    writer.compression = compression
    for library in writer.libraries:
        try:
            importlib.import_module(library)
        except ImportError as error:
            raise RunError(f"format {format} needs the library {library}, which cannot be imported ({error}); "
                           f"install it: pip install {library}") from None
    rows = FileRows(source)
    if compression and len(rows.shape) == 1:
        raise ValueError(f"compression: the recordings of {rows.file} are samples, so vectors, which Kaldi does not compress")
    if os.path.realpath(rows.file).startswith(os.path.realpath(target) + os.sep):
        raise RunError(f"{target}: the file of rows lies in this folder; name another one")
    given = Source(rows, int(match[1]) * _UNITS[match[2]], None if utterance is None else arguments.text("utterance", utterance))
    try:
        with _folder(target, overwrite) as part:
            writer.write(given, part)
            for i, read in writer.read(given, part):
                given.confirm(i, read)
            if given.hashes:
                raise RunError(f"{rows.path[min(given.hashes)]} cannot be read back")
            given.write_table(os.path.join(part, "recordings.csv"))
            with open(os.path.join(part, _ABOUT), "w", encoding="utf-8") as file:
                json.dump({"melflow_export": format, **given.about(), **({"compression": compression} if compression else {}),
                           **({"renamed_splits": given.renamed} if given.renamed else {})}, file, indent=1)
            size = sum(os.path.getsize(os.path.join(at, name)) for at, _, names in os.walk(part) for name in names)
    except OSError as error:
        raise RunError(f"{target}: {error.strerror or error}") from None
    return {"folder": target, "format": format, "recordings": int((rows.count > 0).sum()), "rows": len(rows), "bytes": size,
            "without_rows": int((rows.count == 0).sum()), "renamed_splits": given.renamed}


def of_verb(words: str) -> Tuple[int, str, str]:
    """The verb: its arguments as JSON. Gives its exit status, what it prints, and its complaint."""
    done = export(**json.loads(words, strict=False))
    text = (f"{done['folder']}: {done['format']}, {done['recordings']} recordings, {done['rows']} rows, {done['bytes']} bytes" +
            (f"; {done['without_rows']} recordings have no rows: recordings.csv says why" if done["without_rows"] else "") +
            "".join(f"; the files of {split} are called {name}" for split, name in done["renamed_splits"].items()))
    return 0, text, ""
