"""Rows of a file that melflow has written, as other libraries read them: melflow.export, and the verb of that name.

A format writes the recordings into the folder DIR.part, each compared with its hash; what its library then reads back is
compared, too, before the folder gets its name. Beside the rows lie recordings.csv, with every recording of the file and what
became of it, and about.json, with what holds for all.
"""

from __future__ import annotations

import fcntl
import importlib
import json
import os
import shutil
from contextlib import contextmanager, suppress
from typing import Any, Dict, Iterator, Optional, Tuple

from . import arguments, inputs
from ._melflow import RunError
from .export_formats import COMPRESSIONS, FORMATS
from .export_source import Source
from .rows import FileRows

_ABOUT = "about.json"


def _is_export(folder: str) -> bool:
    try:
        return "melflow_export" in json.loads(inputs.read(os.path.join(folder, _ABOUT), inputs.DOCUMENT))
    except (OSError, ValueError, RecursionError):
        return False


# A folder that an export has not finished, or is about to remove, has a file of this name, which is removed last.
_MARK = ".melflow-export"


def _is_left(folder: str) -> bool:
    """Whether an interrupted export left the folder, unfinished or about to be removed."""
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
    """Removes a folder; what cannot be removed is left with the mark, for the next export. The target of a link stays."""
    with suppress(OSError):
        if os.path.islink(folder):
            os.unlink(folder)
            return
        _clear(folder)
        os.unlink(os.path.join(folder, _MARK))
        os.rmdir(folder)


@contextmanager
def _folder(target: str, overwrite: bool) -> Iterator[str]:
    """Makes a folder that gets its name only when it is complete."""
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

    format: "parquet", "arrow" (IPC files), "zarr" (version 3, sharded), "kaldi" (ark and scp), "lhotse" (cuts with features), "espnet"
      (a data folder), "nemo" (a manifest of the audio), "tar" (WebDataset), "shar" (Lhotse Shar), "safetensors", or "hf" (a dataset of Hugging Face's
      datasets). parquet, arrow, zarr, safetensors and hf need the library that they are named after.
    shard: about how many bytes of rows a file has. overwrite: replaces an earlier export. utterance: the column whose texts name
      recordings; not given: their paths without the ending. compression: of kaldi, by the number that copy-feats has for it, which
      loses precision: 1 (2, or 3 up to 8 rows), 2 (8 bits by quarters of each column), 3 (16 bits) or 5 (8 bits); 0: none.

    All rows are compared with the hashes of the file, and again as the library reads them back (Kaldi's files byte by byte). recordings.csv in the folder lists
    every recording, also those without rows and why; about.json has the settings. Gives counts: recordings, rows, bytes, without_rows;
    and as renamed_splits the splits whose files have other names.
    RunError: rows are damaged, a library is not installed, or the folder cannot be written or replaced; nothing is left then."""
    if arguments.text("format", format) not in FORMATS:
        raise ValueError(f"format: there is no {format!r}; the arguments are output, folder, format. {arguments.meant(format, FORMATS)}")
    size_of_shard = arguments.byte_count("shard", shard)
    overwrite = arguments.flag("overwrite", overwrite)
    target = os.path.abspath(arguments.path("folder", folder))
    if arguments.integer("compression", compression) and (format not in ("kaldi", "lhotse", "espnet") or compression not in COMPRESSIONS):
        raise ValueError(f"compression is for kaldi, lhotse and espnet, and is one of {', '.join(map(str, COMPRESSIONS))}; not {compression} for {format}")
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
    if rows._has_integers and not writer.takes_integers:
        raise ValueError(f"format: archives of Kaldi, as in {format}, are float32, and the rows of {rows.file} are integers of {rows.dtype}; "
                         "export them as parquet, tar, shar, zarr, safetensors, arrow or hf")
    if os.path.realpath(rows.file).startswith(os.path.realpath(target) + os.sep):
        raise RunError(f"{target}: the file of rows lies in this folder; name another one")
    given = Source(rows, size_of_shard, None if utterance is None else arguments.text("utterance", utterance))
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
    """Runs the verb export, with its arguments as JSON. Gives the exit status, the printed text and the error message."""
    done = export(**json.loads(words, strict=False))
    text = (f"{done['folder']}: {done['format']}, {done['recordings']} recordings, {done['rows']} rows, {done['bytes']} bytes" +
            (f"; {done['without_rows']} recordings have no rows: recordings.csv says why" if done["without_rows"] else "") +
            "".join(f"; the files of {split} are called {name}" for split, name in done["renamed_splits"].items()))
    return 0, text, ""
