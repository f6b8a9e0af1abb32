"""The formats of melflow.export. Each writes recordings into a folder by the library that others read them with, and reads them
back by it."""

from __future__ import annotations

import io
import json
import os
import shutil
import tarfile
import warnings
from typing import Any, Dict, Iterator, List, Tuple

import numpy as np

from .exports import Source, text

Read = Iterator[Tuple[int, np.ndarray]]
_GROUP = 32 << 20  # bytes of rows that Arrow holds at a time


class Format:
    libraries: Tuple[str, ...] = ()

    def write(self, source: Source, folder: str) -> None:
        raise NotImplementedError

    def read(self, source: Source, folder: str) -> Read:
        """Yields the number of each recording and its rows."""
        raise NotImplementedError


class Parquet(Format):
    """A row of the table is a recording: `rows` is a list of fixed-size lists. The names of the files are those by which
    datasets.load_dataset recognises splits."""

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
        for name, numbers, _ in source.files(self._ENDING):
            with self._writer(os.path.join(folder, "data", name), schema) as out:
                for group in source.shards(numbers, _GROUP):
                    records = [source.record(i) for i in group]
                    columns = [pa.array([r[f.name] for r in records], f.type) for f in fields]
                    out.write(pa.record_batch([*columns, self._rows(source, group)], schema=schema))

    @staticmethod
    def _typical(source: Source) -> Dict[str, Any]:
        """A record from which the types are seen."""
        numbers = next(iter(source.parts.values()), [])
        return source.record(numbers[0]) if numbers else {}

    @staticmethod
    def _type_of(value: Any) -> Any:
        import pyarrow as pa
        return (pa.int64() if isinstance(value, int) else pa.float64() if isinstance(value, float) else
                pa.list_(pa.string()) if isinstance(value, list) else pa.string())

    @staticmethod
    def _rows(source: Source, group: List[int]) -> Any:
        import pyarrow as pa
        parts = [source.usual(i) for i in group]
        out = pa.array(np.concatenate([part.reshape(-1) for part in parts]))
        for width in reversed(source.rows.shape[1:]):
            out = pa.FixedSizeListArray.from_arrays(out, width)
        ends = np.cumsum([0, *(len(part) for part in parts)])
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
            for batch in self._batches(os.path.join(folder, "data", name)):
                yield from self._recordings(source, batch)

    @staticmethod
    def _recordings(source: Source, batch: Any) -> Read:
        for number, rows in zip(batch.column("number").to_pylist(), batch.column("rows")):
            values = rows.values
            for _ in source.rows.shape[1:]:
                values = values.flatten()
            yield number, values.to_numpy(zero_copy_only=False).reshape(-1, *source.rows.shape[1:])


class _Groups:
    """A writer of Parquet, of which each batch is a row group."""

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
        for name, _, split in source.files(self._ENDING):
            files.setdefault(split or "rest", []).append(datasets.Dataset.from_file(os.path.join(cache, "data", name)))
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
            for batch in part.with_format("arrow").select_columns(["number", "rows"]).iter(64):
                yield from self._recordings(source, batch)


class Zarr(Format):
    """A group like the HDF5 file: `rows` [rows, ...] in shards of chunks, and an array for each thing known of recordings."""

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
                files.create_array(name.replace("/", "_"), data=values, dimension_names=["file"])

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
    """feats.scp with its arks, float, and the files of a data folder; a folder for each split. A matrix is a recording, or a window
    where rows are windows of several frames. Paths in feats.scp are within its folder."""

    libraries = ("kaldiio",)

    @staticmethod
    def _keys(source: Source, i: int) -> List[str]:
        name = source.names[i]
        return [name] if len(source.rows.shape) < 3 else [f"{name}-{n:06}" for n in range(int(source.rows.count[i]))]

    def write(self, source: Source, folder: str) -> None:
        import kaldiio
        for split, numbers in source.parts.items():
            place = os.path.join(folder, split)
            os.makedirs(place, exist_ok=True)
            tables: Dict[str, Dict[str, str]] = {"feats.scp": {}, "utt2spk": {}, "utt2num_frames": {}}
            for n, shard in enumerate(source.shards(numbers)):
                ark = f"feats-{n:05}.ark"
                with open(os.path.join(place, ark), "wb") as file:
                    for i in shard:
                        self._put(source, i, ark, file, tables, kaldiio)
            speakers: Dict[str, List[str]] = {}
            for key in sorted(tables["utt2spk"], key=os.fsencode):
                speakers.setdefault(tables["utt2spk"][key], []).append(key)
            tables["spk2utt"] = {speaker: " ".join(keys) for speaker, keys in speakers.items()}
            for name, lines in tables.items():  # Kaldi wants them sorted by bytes
                with open(os.path.join(place, name), "wb") as out:
                    out.writelines(os.fsencode(f"{key} {lines[key]}\n") for key in sorted(lines, key=os.fsencode))

    def _put(self, source: Source, i: int, ark: str, file: Any, tables: Dict[str, Dict[str, str]], kaldiio: Any) -> None:
        record = source.record(i)
        rows = source.usual(i).astype(np.float32)
        speaker = "_".join(str(record.get("speaker") or "").split())
        for key, values in zip(self._keys(source, i), [rows] if rows.ndim < 3 else rows):
            tables["feats.scp"][key] = f"{ark}:{file.tell() + len(os.fsencode(key)) + 1}"
            # Of a name that is not UTF-8 the bytes are written, which the library's own text cannot hold.
            whole = io.BytesIO()
            kaldiio.save_ark(whole, {"": values})
            file.write(os.fsencode(key) + whole.getvalue())
            tables["utt2spk"][key] = speaker or key
            tables["utt2num_frames"][key] = str(len(values))
            if "text" in record:
                tables.setdefault("text", {})[key] = " ".join(record["text"].split())
            if record.get("label"):
                tables.setdefault("utt2label", {})[key] = "_".join(record["label"].split())

    def read(self, source: Source, folder: str) -> Read:
        import kaldiio
        for split, numbers in source.parts.items():
            place = os.path.join(folder, split)
            with open(os.path.join(place, "feats.scp"), "rb") as file:
                at = dict(line[:-1].split(b" ", 1) for line in file)
            for i in numbers:
                found = [kaldiio.load_mat(os.path.join(place, os.fsdecode(at[os.fsencode(key)]))) for key in self._keys(source, i)]
                yield i, found[0] if len(source.rows.shape) < 3 else np.stack(found)


class Tar(Format):
    """Shards of WebDataset: NAME.npy, NAME.json, and NAME.txt and NAME.cls where there are texts and labels. Headers say nothing of
    the machine or the time."""

    @staticmethod
    def _add(out: tarfile.TarFile, name: str, data: bytes) -> None:
        info = tarfile.TarInfo(name)
        info.size = len(data)
        out.addfile(info, io.BytesIO(data))

    def write(self, source: Source, folder: str) -> None:
        rows = source.rows
        for name, numbers, _ in source.files(".tar"):
            with tarfile.open(os.path.join(folder, name), "w", format=tarfile.PAX_FORMAT) as out:
                for i in numbers:
                    record, key, array = source.record(i), source.names[i], io.BytesIO()
                    np.lib.format.write_array(array, source.usual(i), version=(1, 0))
                    self._add(out, key + ".npy", array.getvalue())
                    self._add(out, key + ".json", json.dumps(record, ensure_ascii=False).encode())
                    if "text" in record:
                        self._add(out, key + ".txt", record["text"].encode())
                    if rows.label is not None and rows.labels is None and rows.label[i] >= 0:
                        self._add(out, key + ".cls", str(int(rows.label[i])).encode())

    def read(self, source: Source, folder: str) -> Read:
        for name, numbers, _ in source.files(".tar"):
            with tarfile.open(os.path.join(folder, name)) as file:
                for i in numbers:
                    member = file.extractfile(source.names[i] + ".npy")
                    assert member is not None
                    yield i, np.lib.format.read_array(io.BytesIO(member.read()))


class SafeTensors(Format):
    """A tensor for each recording, by its name, and an index of the files like that of a model."""

    libraries = ("safetensors",)

    def write(self, source: Source, folder: str) -> None:
        import safetensors
        index: Dict[str, str] = {}
        about = {"melflow": json.dumps(source.about())}
        for name, numbers, _ in source.files(".safetensors"):
            arrays = {text(source.names[i]): source.recording(i) for i in numbers}  # alive until they are written
            tensors = {key: self._tensor(safetensors, source.rows.dtype, rows) for key, rows in arrays.items()}
            safetensors.serialize_file(tensors, os.path.join(folder, name), about)
            index.update(dict.fromkeys(tensors, name))
        size = len(source.rows) * source.rows._reader.row_bytes
        with open(os.path.join(folder, "rows.safetensors.index.json"), "w", encoding="utf-8") as file:
            json.dump({"metadata": {"total_size": size}, "weight_map": index}, file, indent=1)

    @staticmethod
    def _tensor(safetensors: Any, dtype: str, rows: np.ndarray) -> Any:
        """Not by the library's arrays of NumPy, which lack bfloat16."""
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
                tensor = there[text(source.names[i])]
                yield i, np.frombuffer(tensor["data"], stored).reshape(tensor["shape"])


FORMATS = {"parquet": Parquet, "arrow": Arrow, "zarr": Zarr, "kaldi": Kaldi, "tar": Tar, "safetensors": SafeTensors,
           "hf": HuggingFace}
