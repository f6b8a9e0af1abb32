"""The formats of melflow.export. Each writes recordings into a folder with the library that others read them with, and reads them
back with it."""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import shutil
import tarfile
import warnings
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Tuple

import numpy as np

from . import arguments
from ._melflow import RunError
from .export_source import Audio, Piece, Source, text

Read = Iterator[Tuple[int, np.ndarray]]
_GROUP = 32 << 20  # bytes of rows that Arrow holds at a time


COMPRESSIONS = (1, 2, 3, 5)  # those of Kaldi's CompressionMethod that go by the range of the values


class Format:
    libraries: Tuple[str, ...] = ()
    takes_integers = True
    compression = 0

    def write(self, source: Source, folder: str) -> None:
        raise NotImplementedError

    def read(self, source: Source, folder: str) -> Read:
        """Reads back; yields the number of each recording and its rows."""
        raise NotImplementedError


class Parquet(Format):
    """A row of the table is a recording, or a result of one: `rows` is a list of fixed-size lists. The names of the files are those
    by which datasets.load_dataset recognises splits."""

    libraries: Tuple[str, ...] = ("pyarrow",)
    _ENDING = ".parquet"

    def write(self, source: Source, folder: str) -> None:
        import pyarrow as pa
        kind = pa.from_numpy_dtype(np.dtype(source.usual_type))
        for width in reversed(source.rows.shape[1:]):
            kind = pa.list_(kind, width)
        fields = [pa.field(name, self._type_of(value)) for name, value in self._typical(source).items()]
        schema = pa.schema([*fields, pa.field("rows", pa.list_(kind))], {"melflow": json.dumps(source.about())})
        os.mkdir(os.path.join(folder, "data"))
        for name, numbers, _ in source.files(self._ENDING, True):
            with self._writer(os.path.join(folder, "data", name), schema) as out:
                for group in source.shards(numbers, _GROUP):
                    pieces = [(i, source.pieces(i)) for i in group]
                    records = [self._flat(piece) for _, of in pieces for piece in of]
                    columns = [pa.array([r[f.name] for r in records], f.type) for f in fields]
                    out.write(pa.record_batch([*columns, self._rows(source, pieces)], schema=schema))

    @staticmethod
    def _typical(source: Source) -> Dict[str, Any]:
        """A record with a value for every key, for the types."""
        numbers = next(iter(source.parts.values()), [])
        return Parquet._flat(source.pieces(numbers[0])[0]) if numbers else {}

    @staticmethod
    def _flat(piece: Piece) -> Dict[str, Any]:
        return {name: json.dumps(value) if isinstance(value, dict) else value for name, value in piece.record.items()}

    @staticmethod
    def _type_of(value: Any) -> Any:
        import pyarrow as pa
        return (pa.int64() if isinstance(value, int) else pa.float64() if isinstance(value, float) else
                pa.list_(pa.string()) if isinstance(value, list) else pa.string())

    @staticmethod
    def _rows(source: Source, pieces: List[Tuple[int, List[Piece]]]) -> Any:
        import pyarrow as pa
        out = pa.array(np.concatenate([source.usual(i).reshape(-1) for i, _ in pieces]))
        for width in reversed(source.rows.shape[1:]):
            out = pa.FixedSizeListArray.from_arrays(out, width)
        ends = np.cumsum([0, *(piece.rows.stop - piece.rows.start for _, of in pieces for piece in of)])
        return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), out)

    def _writer(self, path: str, schema: Any) -> Any:
        import pyarrow.parquet as pq
        return _Groups(pq.ParquetWriter(path, schema, compression="zstd", use_dictionary=False))

    def _batches(self, path: str) -> Iterator[Any]:
        import pyarrow.parquet as pq
        with pq.ParquetFile(path) as file:
            for group in range(file.num_row_groups):
                yield from file.read_row_group(group, ["number", "rows"]).to_batches()

    def read(self, source: Source, folder: str) -> Read:
        for name in sorted(os.listdir(os.path.join(folder, "data"))):
            yield from self._recordings(source, self._batches(os.path.join(folder, "data", name)))

    @staticmethod
    def _recordings(source: Source, batches: Iterable[Any]) -> Read:
        held: List[np.ndarray] = []
        count = 0
        for batch in batches:
            for number, rows in zip(batch.column("number").to_pylist(), batch.column("rows")):
                values = rows.values
                for _ in source.rows.shape[1:]:
                    values = values.flatten()
                held.append(values.to_numpy(zero_copy_only=False).reshape(-1, *source.rows.shape[1:]))
                count += len(held[-1])
                if count >= source.rows.count[number]:  # all results of the recording
                    yield number, held[0] if len(held) == 1 else np.concatenate(held)
                    held, count = [], 0


class _Groups:
    """A writer of Parquet that makes a row group of each batch."""

    def __init__(self, writer: Any) -> None:
        self._writer = writer

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: Any) -> None:
        self._writer.close()

    def write(self, batch: Any) -> None:
        self._writer.write_batch(batch, row_group_size=batch.num_rows)


class Arrow(Parquet):
    """IPC files, uncompressed, so that they can be mapped."""

    _ENDING = ".arrow"

    def _writer(self, path: str, schema: Any) -> Any:
        import pyarrow as pa
        return pa.ipc.new_file(path, schema)

    def _batches(self, path: str) -> Iterator[Any]:
        import pyarrow as pa
        with pa.memory_map(path) as mapped, pa.ipc.open_file(mapped) as file:
            for i in range(file.num_record_batches):
                yield file.get_batch(i).select(["number", "rows"])


class HuggingFace(Parquet):
    """A DatasetDict of the splits, or a Dataset: datasets.load_from_disk reads it."""

    libraries = ("datasets",)
    _ENDING = ".arrow"

    def _writer(self, path: str, schema: Any) -> Any:
        import pyarrow as pa
        return pa.ipc.new_stream(path, schema)  # which the library maps

    def write(self, source: Source, folder: str) -> None:
        import datasets
        cache, are_hidden = os.path.join(folder, ".cache"), datasets.are_progress_bars_disabled()
        os.mkdir(cache)
        super().write(source, cache)
        files: Dict[str, List[Any]] = {}
        splits = source.file_names(True)
        for name, _, split in source.files(self._ENDING, True):
            files.setdefault(splits[split] if split else "rest", []).append(datasets.Dataset.from_file(os.path.join(cache, "data", name)))
        parts = {split: datasets.concatenate_datasets(of_split) for split, of_split in files.items()}
        datasets.disable_progress_bars()
        try:
            whole = parts["rest"] if list(parts) == ["rest"] else datasets.DatasetDict(parts)
            whole.save_to_disk(folder, max_shard_size=source.shard)
        finally:
            if not are_hidden:
                datasets.enable_progress_bars()
        del files, parts, whole
        shutil.rmtree(cache)

    def read(self, source: Source, folder: str) -> Read:
        import datasets
        there = datasets.load_from_disk(folder)
        for part in there.values() if isinstance(there, datasets.DatasetDict) else [there]:
            yield from self._recordings(source, part.with_format("arrow").select_columns(["number", "rows"]).iter(64))


class Zarr(Format):
    """A group like the HDF5 file: `rows` [rows, ...] in shards of chunks, and an array for each property of the recordings."""

    libraries = ("zarr",)
    _CHUNK = 1 << 20  # bytes

    def write(self, source: Source, folder: str) -> None:
        import zarr
        rows, width = source.rows, source.rows.shape[1:]
        size = int(np.prod(width, dtype=np.int64)) * np.dtype(source.usual_type).itemsize
        chunk = max(1, min(self._CHUNK // size, max(1, len(rows))))
        shard = chunk * max(1, min(source.shard // (chunk * size), -(-max(1, len(rows)) // chunk)))
        order = [i for numbers in source.parts.values() for i in numbers]
        group = zarr.open_group(folder, mode="a", zarr_format=3, attributes=source.about())
        axes = ["row", "frame", "column"] if len(width) == 2 else ["row", "column"] if width else ["row"]
        out = group.create_array("rows", shape=rows.shape, dtype=source.usual_type, chunks=(chunk, *width), shards=(shard, *width),
                                 dimension_names=axes)
        offset = np.zeros(len(rows.path), np.int64)
        held: List[np.ndarray] = []
        count, done = 0, 0
        for i in order:  # whole shards are written at once
            offset[i] = done + count
            held.append(source.usual(i))
            count += len(held[-1])
            if count >= shard:
                block = np.concatenate(held)
                whole = count // shard * shard
                out[done:done + whole] = block[:whole]
                held, done, count = [block[whole:].copy()], done + whole, count - whole
        if count:
            out[done:done + count] = np.concatenate(held)
        self._describe(source, group.create_group("files"), offset)

    @staticmethod
    def _describe(source: Source, files: Any, offset: np.ndarray) -> None:
        records = [source.record(i) for i in range(len(source.names))]
        columns: Dict[str, Any] = {"offset": offset, "count": np.array(source.rows.count.tolist(), np.int64),
                                   "status": source.rows.status}
        for name in records[0] if records else ():
            values = [r[name] for r in records]
            first = values[0]
            columns[name if name not in columns else name + "_"] = (
                np.array(values) if isinstance(first, (int, float)) else
                np.array([";".join(v) if isinstance(v, list) else v or "" for v in values], np.dtypes.StringDType()))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # texts of any length are young in Zarr 3
            for name, values in columns.items():
                files.create_array(Zarr._free_name(name, files), data=values, dimension_names=["file"])

    @staticmethod
    def _free_name(name: str, group: Any) -> str:
        """A name for an array: targets may have any names, but Zarr takes those with / for paths and keeps some for itself."""
        name = re.sub(r"\A(?=\.|__|\Z)", "of_", name.replace("/", "_"))
        while name in group:
            name += "_"
        return name

    def read(self, source: Source, folder: str) -> Read:
        import zarr
        group: Any = zarr.open_group(folder, mode="r")
        rows, count, offset = group["rows"], group["files/count"][:], group["files/offset"][:]
        first, held = 0, np.zeros((0, *source.rows.shape[1:]), source.usual_type)
        step = rows.shards[0]
        for i in np.argsort(offset, kind="stable").tolist():
            if count[i] == 0:
                continue
            end = int(offset[i] + count[i])
            while first + len(held) < end:  # every shard is read once
                begin = first + len(held)
                kept = held[int(offset[i]) - first:]
                first, held = int(offset[i]), np.concatenate([kept, rows[begin:min(begin + step, rows.shape[0])]])
            yield i, held[int(offset[i]) - first:end - first]


class Kaldi(Format):
    """feats.scp with its arks, float, and the files of a data folder; a folder for each split. A matrix is a recording, a result of one, or a
    window where rows are windows of several frames. Paths in feats.scp are within its folder. All files are read back as they are written."""

    takes_integers = False

    def write(self, source: Source, folder: str) -> None:
        for split, numbers in source.parts.items():
            place = os.path.join(folder, split)
            os.makedirs(place, exist_ok=True)
            for n, shard in enumerate(source.shards(numbers)):
                source.archives.write_ark(place, f"feats-{n:05}.ark", shard, self.compression)
            source.archives.write_tables(place)

    def read(self, source: Source, folder: str) -> Read:
        return iter(())


def _write_lines(path: str, lines: Iterable[Dict[str, Any]]) -> None:
    """Writes JSON lines, packed where the name ends in .gz; equal lines give equal bytes."""
    data = "".join(json.dumps(line) + "\n" for line in lines).encode()
    with open(path, "wb") as file:
        file.write(gzip.compress(data, mtime=0) if path.endswith(".gz") else data)


def _final(folder: str) -> str:
    """The place that the files of an unfinished folder will have."""
    return folder[:-len(".part")] if folder.endswith(".part") else folder


class Lhotse(Kaldi):
    """Manifests of Lhotse for each split, recordings, supervisions and cuts with features, over the arks of the format kaldi. The cuts name them by
    absolute paths. A cut lasts as long as its audio where Lhotse would count as many frames in that, else as long as its frames."""

    libraries = ("lhotse",)

    def write(self, source: Source, folder: str) -> None:
        if Shar._field(source) != "features":
            raise RunError("lhotse: its features are frames of recordings that are not cut, and these rows are windows or samples; export them as shar")
        super().write(source, folder)
        without = several = 0
        for split, numbers in source.parts.items():
            place = os.path.join(folder, split)
            with open(os.path.join(place, "feats.scp"), encoding="utf-8", errors="surrogateescape") as table:
                at = dict(line.rstrip("\n").split(" ", 1) for line in table)
            recordings: Dict[str, Dict[str, Any]] = {}  # by their names
            cuts = []
            for i in numbers:
                audio = source.audio(i)
                pieces = source.pieces(i)
                of_file = None
                if is_whole := all("result" not in piece.record for piece in pieces):
                    of_file = None if audio is None else self._recording(source, audio, pieces[0].name, recordings)
                    without += of_file is None
                several += not is_whole
                for piece in pieces:
                    cuts.append(self._cut(source, piece, os.path.join(_final(folder), split, at[piece.name]),
                                          0.0 if audio is None else audio.start, of_file))
            _write_lines(os.path.join(place, "recordings.jsonl.gz"), recordings.values())
            _write_lines(os.path.join(place, "supervisions.jsonl.gz"),
                         ({**spoken, "start": cut["start"]} for cut in cuts for spoken in cut["supervisions"]))
            _write_lines(os.path.join(place, "cuts.jsonl.gz"), cuts)
        count = sum(map(len, source.parts.values()))
        arguments.warn(f"lhotse: {some} of {count} recordings have cuts with features alone: {why}" for some, why in (
            (several, "each has several results, such as speeds or channels, and no file has the audio of one"),
            (without, f"their audio is no file of one channel of its own below {source.roots}, looked for from {os.getcwd()}")) if some)

    @staticmethod
    def _recording(source: Source, audio: Audio, name: str, known: Dict[str, Dict[str, Any]]) -> Optional[Dict[str, Any]]:
        """The recording of a file by Lhotse's own reading of its header, with a name that no other has; None of one with several channels, of whose
        mean the rows are."""
        from lhotse import Recording

        if audio.is_part:
            name = os.path.splitext(audio.listed)[0]
            if text(name) in known and known[text(name)]["sources"][0]["source"] != audio.path:
                name = audio.listed
        name = text(name)
        if name not in known:
            try:
                made = Recording.from_file(audio.path, recording_id=name)
            except Exception:  # of any of its readers: the cuts have features all the same
                return None
            if made.num_channels != 1:
                return None
            known[name] = made.to_dict()
        return known[name]

    @staticmethod
    def _cut(source: Source, piece: Piece, stored: str, start: float, recording: Optional[Dict[str, Any]]) -> Dict[str, Any]:
        rate, hop = int(source.rows.attributes["sample_rate"]), int(source.rows.attributes["hop_length"])
        frames, duration = piece.rows.stop - piece.rows.start, piece.record["duration"]
        # lhotse.utils.compute_num_frames, for the features and for the cut.
        for of in {rate} | ({recording["sampling_rate"]} if recording else set()):
            shift = round(hop / rate * of)
            if (round(duration * of) + shift // 2) // max(1, shift) != frames:
                duration = frames * hop / rate
        name, recorded = text(piece.name), recording["id"] if recording else text(piece.name)
        start = start if recording else 0.0
        features = {"type": source.rows.name, "num_frames": frames, "num_features": int(source.rows.shape[1]), "frame_shift": hop / rate,
                    "sampling_rate": rate, "start": start, "duration": duration, "storage_type": "kaldiio", "storage_path": stored,
                    "storage_key": name, "recording_id": recorded, "channels": 0}
        cut = {"id": name, "start": start, "duration": duration, "channel": 0, "supervisions": [_spoken(piece, recorded, duration)],
               "features": features, "custom": {"melflow": piece.record}, "type": "MonoCut"}
        return {**cut, "recording": recording} if recording else cut


class Espnet(Kaldi):
    """A data folder of ESPnet for each split: that of the format kaldi, with absolute paths in feats.scp, and feats_shape and feats_type. Without a
    column of speakers each recording is one of its own."""

    def write(self, source: Source, folder: str) -> None:
        super().write(source, folder)
        for split in source.parts:
            place = os.path.join(folder, split)
            if os.path.exists(os.path.join(place, "cmvn.scp")):
                self._rewrite(place, "cmvn.scp", "cmvn.scp", lambda key, value: os.path.join(_final(folder), split, value))
            self._rewrite(place, "feats.scp", "feats.scp", lambda key, value: os.path.join(_final(folder), split, value))
            columns = int(source.rows.shape[-1])
            self._rewrite(place, "utt2num_frames", "feats_shape", lambda key, value: f"{value},{columns}")
            if not os.path.exists(os.path.join(place, "utt2spk")):
                for name in ("utt2spk", "spk2utt"):
                    self._rewrite(place, "feats.scp", name, lambda key, value: key)
            with open(os.path.join(place, "feats_type"), "w", encoding="utf-8") as file:
                file.write("extracted\n")

    @staticmethod
    def _rewrite(place: str, source: str, target: str, value_of: Callable[[str, str], str]) -> None:
        """Makes a table of another one, line by line."""
        options: Dict[str, Any] = {"encoding": "utf-8", "errors": "surrogateescape", "newline": "\n"}
        with open(os.path.join(place, source), **options) as file:
            lines = [line.rstrip("\n").split(" ", 1) for line in file]
        with open(os.path.join(place, target), "w", **options) as file:
            file.writelines(f"{key} {value_of(key, value)}\n" for key, value in lines)


class Nemo(Format):
    """A manifest of NeMo for each split, SPLIT.json: the audio of the recordings that have rows, with offset, duration and text. NeMo computes its own
    features; these are of the same recordings, by the name in `melflow`."""

    def write(self, source: Source, folder: str) -> None:
        for split, numbers in source.parts.items():
            lines = []
            for i in numbers:
                audio = source.audio(i)
                if audio is None:
                    raise RunError(f"nemo: {source.rows.path[i]} is no file of its own that is there now, and a manifest of NeMo names files of audio; "
                                   "export where the corpus is")
                record = source.record(i)
                more = {name: record[name] for name in ("text", "speaker", "label", "lang") if isinstance(record.get(name), str)}
                at = {"offset": audio.start} if audio.start else {}
                lines.append({"audio_filepath": audio.path, **at, "duration": record["duration"], "text": "", **more, "melflow": record["name"]})
            _write_lines(os.path.join(folder, (source.file_names(False)[split]) + ".json"), lines)

    def read(self, source: Source, folder: str) -> Read:
        return iter(())


def _spoken(piece: Piece, recording: str, duration: float) -> Dict[str, Any]:
    """A supervision of Lhotse over a whole cut."""
    spoken = {"id": text(piece.name), "recording_id": recording, "start": 0.0, "duration": duration, "channel": 0}
    return spoken | {name: piece.record[name] for name in ("text", "language", "speaker", "gender") if isinstance(piece.record.get(name), str)}


def _npy(values: np.ndarray) -> bytes:
    out = io.BytesIO()
    np.lib.format.write_array(out, values, version=(1, 0))
    return out.getvalue()


def _in_tar(file: tarfile.TarFile, pieces: List[Piece]) -> np.ndarray:
    """The rows of a recording, from the NAME.npy of each of its pieces."""
    parts = []
    for piece in pieces:
        member = file.extractfile(piece.name + ".npy")
        assert member is not None
        parts.append(np.lib.format.read_array(io.BytesIO(member.read())))
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _add(out: tarfile.TarFile, name: str, data: bytes) -> None:
    """Adds a file; its header has neither user nor time, so that equal data gives equal bytes."""
    info = tarfile.TarInfo(name)
    info.size = len(data)
    out.addfile(info, io.BytesIO(data))


class Tar(Format):
    """Shards of WebDataset, as tar_write makes them: NAME.json, NAME.txt and NAME.cls where there are texts and labels, NAME.npy."""

    def write(self, source: Source, folder: str) -> None:
        for name, numbers, _ in source.files(".tar"):
            source.hashes.update(zip(numbers, source.archives.write_tar(os.path.join(folder, name), numbers)))

    def read(self, source: Source, folder: str) -> Read:
        for name, numbers, _ in source.files(".tar"):
            with tarfile.open(os.path.join(folder, name)) as file:
                for i in numbers:
                    yield i, _in_tar(file, source.pieces(i))


class Shar(Format):
    """Shards of Lhotse Shar, a folder for each split: cuts as JSON lines, and their rows in a tar, NAME.npy and what lhotse knows of
    it. Frames of floats are `features`, which a cut loads by load_features(); other rows are the array `rows`, for load_rows()."""

    def write(self, source: Source, folder: str) -> None:
        field = self._field(source)
        for split, numbers in source.parts.items():
            place = os.path.join(folder, source.file_names(False)[split])
            os.mkdir(place)
            for n, shard in enumerate(source.shards(numbers)):
                with tarfile.open(os.path.join(place, f"{field}.{n:06}.tar"), "w", format=tarfile.PAX_FORMAT) as out, \
                        open(os.path.join(place, f"cuts.{n:06}.jsonl.gz"), "wb") as packed, \
                        gzip.GzipFile("", "wb", fileobj=packed, mtime=0) as cuts:
                    for i in shard:
                        values = source.usual(i)
                        for piece in source.pieces(i):
                            cut, stored = self._cut(source, piece, values[piece.rows])
                            _add(out, piece.name + ".npy", _npy(values[piece.rows]))
                            _add(out, piece.name + ".json", json.dumps(stored).encode())
                            cuts.write(json.dumps(cut).encode() + b"\n")

    @staticmethod
    def _field(source: Source) -> str:
        rows, about = source.rows, source.rows.attributes
        # A row of a window with one frame looks like a frame, and does not last a hop.
        are_windows = any(stage.get("stage") == "segment" and stage.get("length") for stage in json.loads(about["feature_settings"]))
        is_timed = about.get("hop_length") and about.get("sample_rate")
        is_feature = rows.is_ragged and len(rows.shape) == 2 and not rows._has_integers
        return "features" if is_feature and is_timed and not are_windows else "rows"

    def _cut(self, source: Source, piece: Piece, values: np.ndarray) -> Tuple[Dict[str, Any], Dict[str, Any]]:
        """A cut, which lasts as long as its frames, and the manifest of its rows."""
        about, record = source.rows.attributes, piece.record
        place = {"storage_type": "shar", "storage_path": "", "storage_key": ""}
        if self._field(source) == "features":
            rate = int(about["sample_rate"])
            shift = about["hop_length"] / rate
            duration = len(values) * about["hop_length"] / rate
            stored = {"type": source.rows.name, "num_frames": len(values), "num_features": values.shape[1], "frame_shift": shift,
                      "sampling_rate": rate, "start": 0, "duration": duration, **place, "recording_id": piece.name, "channels": 0}
        else:
            duration = record["duration"]
            stored = {**place, "shape": list(values.shape)}
        cut = {"id": piece.name, "start": 0, "duration": duration, "channel": 0, "supervisions": [_spoken(piece, piece.name, duration)],
               "custom": {"melflow": record}, "type": "MonoCut"}
        return cut, stored

    def read(self, source: Source, folder: str) -> Read:
        for split, numbers in source.parts.items():
            place = os.path.join(folder, source.file_names(False)[split])
            for n, shard in enumerate(source.shards(numbers)):
                with tarfile.open(os.path.join(place, f"{self._field(source)}.{n:06}.tar")) as file:
                    for i in shard:
                        yield i, _in_tar(file, source.pieces(i))


class SafeTensors(Format):
    """A tensor for each recording, or result of one, by its name, and an index of the files like that of a model."""

    libraries = ("safetensors",)

    def write(self, source: Source, folder: str) -> None:
        import safetensors
        index: Dict[str, str] = {}
        about = {"melflow": json.dumps(source.about())}
        for name, numbers, _ in source.files(".safetensors"):
            arrays = {}  # alive until they are written
            for i in numbers:
                rows = source.recording(i)
                arrays.update({text(piece.name): rows[piece.rows] for piece in source.pieces(i)})
            tensors = {key: self._tensor(safetensors, source.rows.dtype, rows) for key, rows in arrays.items()}
            safetensors.serialize_file(tensors, os.path.join(folder, name), about)
            index.update(dict.fromkeys(tensors, name))
        size = len(source.rows) * source.rows._reader.row_bytes
        with open(os.path.join(folder, "rows.safetensors.index.json"), "w", encoding="utf-8") as file:
            json.dump({"metadata": {"total_size": size}, "weight_map": index}, file, indent=1)

    @staticmethod
    def _tensor(safetensors: Any, dtype: str, rows: np.ndarray) -> Any:
        """Makes a tensor from bytes: the library's interface for NumPy lacks bfloat16."""
        if hasattr(safetensors, "TensorSpec"):  # since 0.8
            return safetensors.TensorSpec(dtype=dtype, shape=rows.shape, data_ptr=rows.ctypes.data, data_len=rows.nbytes)
        return {"dtype": dtype, "shape": rows.shape, "data": rows.tobytes()}

    def read(self, source: Source, folder: str) -> Read:
        import safetensors
        stored = np.dtype("uint16" if source.rows.dtype == "bfloat16" else source.rows.dtype)
        for name, numbers, _ in source.files(".safetensors"):
            with open(os.path.join(folder, name), "rb") as file:
                there = dict(safetensors.deserialize(file.read()))
            for i in numbers:
                tensors = [there[text(piece.name)] for piece in source.pieces(i)]
                yield i, np.concatenate([np.frombuffer(of["data"], stored).reshape(of["shape"]) for of in tensors])


FORMATS = {"parquet": Parquet, "arrow": Arrow, "zarr": Zarr, "kaldi": Kaldi, "lhotse": Lhotse, "espnet": Espnet, "nemo": Nemo, "tar": Tar,
           "shar": Shar, "safetensors": SafeTensors, "hf": HuggingFace}
