"""Integers as rows: tokens of an ONNX quantiser and of functions, in every output, export and loader as the model gives them."""

import importlib.util
import json
import os
import subprocess
import tarfile
import tempfile
import unittest
import wave

import h5py
import melflow
import numpy as np

import corpus

FRAME, CODES, BOOKS = 320, 1024, 2  # samples of a frame; entries of a codebook; codebooks


def has(*names):
    return all(importlib.util.find_spec(name) for name in names)


def codebooks():
    """[books, codes, frame]"""
    return np.random.default_rng(7).standard_normal((BOOKS, CODES, FRAME)).astype(np.float32) * 0.1


def make_quantiser(path):
    """in [n] -> codes [n / FRAME, books] of int64: the entries of each codebook that are nearest to the frames; loud: their largest sample."""
    from onnx import TensorProto, helper, numpy_helper, save

    books = codebooks()
    node, constant = helper.make_node, numpy_helper.from_array
    nodes = [node("Reshape", ["in", "frames_shape"], ["frames"]), node("ReduceMax", ["frames", "last"], ["loud"], keepdims=1)]
    constants = [constant(np.array([-1, FRAME], np.int64), "frames_shape"), constant(np.array([1], np.int64), "last")]
    for k, book in enumerate(books):
        # The nearest entry has the largest x.c - |c|^2 / 2.
        constants += [constant(book.T.copy(), f"book{k}"), constant((book ** 2).sum(1) / 2, f"half{k}")]
        nodes += [node("MatMul", ["frames", f"book{k}"], [f"dot{k}"]), node("Sub", [f"dot{k}", f"half{k}"], [f"score{k}"]),
                  node("ArgMax", [f"score{k}"], [f"code{k}"], axis=1, keepdims=1)]
    nodes.append(node("Concat", [f"code{k}" for k in range(BOOKS)], ["codes"], axis=1))
    graph = helper.make_graph(nodes, "quantiser", [helper.make_tensor_value_info("in", TensorProto.FLOAT, [None])],
                              [helper.make_tensor_value_info("codes", TensorProto.INT64, [None, BOOKS]),
                               helper.make_tensor_value_info("loud", TensorProto.FLOAT, [None, 1])], constants)
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), path)


class IntegersCase(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.root = os.path.join(cls.folder.name, "audio")
        random = np.random.default_rng(1)
        cls.audio = {}
        for i in range(cls.RECORDINGS):
            folder = os.path.join(cls.root, ("ant", "bee")[i % 2])
            os.makedirs(folder, exist_ok=True)
            samples = (random.standard_normal(FRAME * int(random.integers(1, 60))) * 3000).astype(np.int16)
            with wave.open(os.path.join(folder, f"{i:03}.wav"), "wb") as out:
                out.setnchannels(1)
                out.setsampwidth(2)
                out.setframerate(corpus.RATE)
                out.writeframes(samples.tobytes())
            cls.audio[f"{('ant', 'bee')[i % 2]}/{i:03}.wav"] = samples / np.float32(32768)

    @classmethod
    def decoded(cls):
        g = melflow.Graph(memory={"host": "512MiB"})
        return g.file_list(root=cls.root, labels="top_dir").disk_read().decode(truncated="fail").resample(rate=corpus.RATE)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def program(self, *words, code=0):
        ended = subprocess.run([os.environ["MELFLOW_PROGRAM"], *words], capture_output=True, text=True)
        self.assertEqual(ended.returncode, code, ended.stdout + ended.stderr)
        return ended.stdout + ended.stderr

    def refused(self, text, node):
        with self.assertRaisesRegex(melflow.ConfigError, text):
            node.graph.validate()


@unittest.skipUnless(has("onnxruntime", "onnx"), "onnxruntime or onnx is not installed")
class TokensTest(IntegersCase):
    RECORDINGS = 200

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        import onnxruntime

        cls.model = os.path.join(cls.folder.name, "quantiser.onnx")
        make_quantiser(cls.model)
        session = onnxruntime.InferenceSession(cls.model, providers=["CPUExecutionProvider"])
        cls.codes = {path: session.run(["codes"], {"in": samples})[0] for path, samples in cls.audio.items()}
        assert len({code for codes in cls.codes.values() for code in codes.ravel().tolist()}) > CODES // 2

    @classmethod
    def tokens(cls, dtype="int16", **options):
        return cls.decoded().onnx(model=cls.model, columns=BOOKS, dtype=dtype, hop=FRAME, **options)

    def same(self, rows, dtype="int16"):
        self.assertEqual((rows.dtype, rows.shape[1]), (dtype, BOOKS))
        self.assertEqual(sorted(rows.path), sorted(self.codes))
        for i, path in enumerate(rows.path):
            got = rows.recording(i)
            self.assertEqual(got.dtype, np.dtype(dtype))
            np.testing.assert_array_equal(got, self.codes[path])

    @classmethod
    def file(cls):
        """An output that all tests may read."""
        path = os.path.join(cls.folder.name, "tokens.h5")
        if not os.path.exists(path):
            cls.tokens().hdf5_write(path=path).graph.run()
        return path

    def test_sinks(self):
        sizes = {}
        for dtype in ("uint16", "int16", "int32", "int64"):
            for name, options in (("plain.h5", {}), ("packed.h5", {"compression": "deflate"}), ("tokens.npy", {})):
                with self.subTest(f"{dtype} {name}"):
                    path = self.path(f"{dtype}.{name}")
                    node = self.tokens(dtype)
                    (node.npy_write if name.endswith(".npy") else node.hdf5_write)(path=path, **options).graph.run()
                    self.same(melflow.open(path), dtype)
                    sizes[dtype, name] = os.path.getsize(path)
        rows = sum(map(len, self.codes.values()))
        print(f"\n{rows} rows of {BOOKS} tokens:", ", ".join(f"{dtype} {name} {size} bytes" for (dtype, name), size in sizes.items()))
        with h5py.File(self.path("uint16.plain.h5")) as file:
            self.assertEqual((file.attrs["rows"], file["features"].dtype), ("features", np.dtype("<u2")))
        self.assertEqual(np.load(self.path("uint16.tokens.npy")).dtype, np.dtype("<u2"))
        self.assertEqual(sizes["uint16", "tokens.npy"], 4096 + 2 * BOOKS * rows)
        self.assertIn("uint16", self.program("inspect", self.path("uint16.plain.h5")))
        for name in ("uint16.plain.h5", "int64.packed.h5", "int32.tokens.npy"):
            self.program("verify", self.path(name))
        self.program("verify", self.path("int16.plain.h5"), "--recompute")
        self.program("compare", self.path("int16.plain.h5"), self.path("int16.tokens.npy"))
        self.program("show", self.path("int16.plain.h5"), "-o", self.path("tokens.svg"))

    def test_webdataset(self):
        path = self.path("tokens.tar")
        self.tokens().tar_write(path=path).graph.run()
        with tarfile.open(path) as file:
            read = {json.load(file.extractfile(m.name[:-4] + ".json"))["path"]: np.load(file.extractfile(m)) for m in file
                    if m.name.endswith(".npy")}
        self.assertEqual(sorted(read), sorted(self.codes))
        for name, rows in read.items():
            self.assertEqual(rows.dtype, np.int16)
            np.testing.assert_array_equal(rows, self.codes[name])
        print(f"\ntar: {os.path.getsize(path)} bytes")

    def test_kaldi_is_refused(self):
        self.refused("kaldi_write.from: archives of Kaldi are float32, and what arrives are integers of int16; write them by hdf5_write",
                     self.tokens().kaldi_write(path=self.path("no.ark")))
        for format in ("kaldi", "lhotse", "espnet"):
            if format == "lhotse" and not has("lhotse"):
                continue
            with self.assertRaisesRegex(ValueError, f"archives of Kaldi, as in {format}, are float32, and the rows of .* are integers of int16"):
                melflow.export(self.file(), self.path("no"), format)
            self.assertFalse(os.path.exists(self.path("no")))

    def exported(self, format):
        folder = self.path("of_" + format)
        done = melflow.export(self.file(), folder, format)
        self.assertEqual(done["recordings"], self.RECORDINGS)
        print(f"\n{format}: {done['bytes']} bytes")
        return folder

    def check(self, read):
        self.assertEqual(sorted(read), sorted(self.codes))
        for path, rows in read.items():
            np.testing.assert_array_equal(rows, self.codes[path])

    @unittest.skipUnless(has("pyarrow"), "pyarrow is not installed")
    def test_parquet_and_arrow(self):
        import pyarrow as pa
        import pyarrow.dataset as ds

        for format in ("parquet", "arrow"):
            table = ds.dataset(os.path.join(self.exported(format), "data"), format="parquet" if format == "parquet" else "ipc").to_table()
            self.assertEqual(table.schema.field("rows").type.value_type.value_type, pa.int16())
            self.check(dict(zip(table["path"].to_pylist(), map(np.array, table["rows"].to_pylist()))))

    @unittest.skipUnless(has("datasets"), "datasets is not installed")
    def test_datasets(self):
        import datasets

        made = datasets.load_from_disk(self.exported("hf"))
        self.check({one["path"]: np.array(one["rows"]) for one in made})

    @unittest.skipUnless(has("zarr"), "zarr is not installed")
    def test_zarr(self):
        import zarr

        group = zarr.open_group(self.exported("zarr"), mode="r")
        rows, files = group["rows"][:], group["files"]
        self.assertEqual(rows.dtype, np.int16)
        self.check({str(path): rows[offset:offset + count] for path, offset, count in zip(files["path"][:], files["offset"][:], files["count"][:])})

    @unittest.skipUnless(has("safetensors"), "safetensors is not installed")
    def test_safetensors(self):
        from safetensors.numpy import load_file

        folder = self.exported("safetensors")
        read = {}
        for name in os.listdir(folder):
            if name.endswith(".safetensors"):
                read.update(load_file(os.path.join(folder, name)))
        self.assertEqual({rows.dtype for rows in read.values()}, {np.dtype(np.int16)})
        self.check({name + ".wav": rows for name, rows in read.items()})

    def test_archives(self):
        for format, ending in (("tar", ".tar"), ("shar", ".tar")):
            folder, read = self.exported(format), {}
            for place, _, names in os.walk(folder):
                for name in names:
                    if not name.endswith(ending):
                        continue
                    with tarfile.open(os.path.join(place, name)) as file:
                        read.update({m.name[:-4] + ".wav": np.load(file.extractfile(m)) for m in file if m.name.endswith(".npy")})
            self.check(read)

    def test_loader(self):
        text = self.tokens().batches(size=8).graph.to_yaml()
        read = {}
        for batch in melflow.Loader(text, batch_size=7):
            self.assertEqual(batch["features"].dtype, np.int16)
            for path, rows, length in zip(batch["path"], batch["features"], batch["length"]):
                read[path] = rows[:length]
        self.check(read)
        rows = melflow.open(self.file())
        read = {}
        for batch in rows.batches(16, max_rows=300):
            self.assertEqual(batch["features"].dtype, np.int16)
            for file, tokens, length in zip(batch["file"], batch["features"], batch["length"]):
                read[rows.path[file]] = tokens[:length]
        self.check(read)
        with self.assertRaisesRegex(ValueError, "dtype: the rows are integers of int16 and stay as they are"):
            rows.batches(16, dtype="float32")

    def test_tokens_beside_mel_in_a_batch(self):
        wave = self.decoded()
        mel = wave.mel(n_fft=FRAME, hop=FRAME, n_mels=8, center=False)
        tokens = wave.onnx(model=self.model, columns=BOOKS, dtype="uint16")
        for dtype in (None, "float16"):  # of the floats
            batches = wave.graph.batches([mel, tokens], names=["mel", "tokens"], name="given")
            read = {}
            for batch in melflow.Loader(batches.graph.to_yaml(), batch_size=9, **({"dtype": dtype} if dtype else {})):
                self.assertEqual((batch["mel"].dtype, batch["tokens"].dtype), (np.dtype(dtype or "float32"), np.uint16))
                for path, rows, length in zip(batch["path"], batch["tokens"], batch["tokens_length"]):
                    read[path] = rows[:length]
            self.check(read)

    def test_update_resume_and_repair(self):
        path, yaml = self.path("grown.h5"), self.path("grown.yaml")
        for options in ({}, {"compression": "deflate"}):
            with self.subTest(**options):
                with open(yaml, "w", encoding="utf-8") as file:
                    file.write(self.tokens("int32").hdf5_write(path=path, **options).graph.to_yaml())
                moved = {name: self.path(os.path.basename(name)) for name in list(self.codes)[3:150:7]}
                for name, away in moved.items():
                    os.rename(os.path.join(self.root, name), away)
                self.program("run", yaml)
                for name, away in moved.items():
                    os.rename(away, os.path.join(self.root, name))
                self.program("update", yaml)
                self.same(melflow.open(path), "int32")
                if not options:
                    with h5py.File(path, "r+") as file:  # rows of one recording are damaged
                        file["features"][5] += 1
                    self.program("verify", path, code=1)
                    self.program("repair", path)
                    self.same(melflow.open(path), "int32")
                self.program("verify", path)
                os.remove(path)

    def test_a_job_of_several_parts(self):
        path, job, yaml = self.path("merged.h5"), self.path("job"), self.path("job.yaml")
        with open(yaml, "w", encoding="utf-8") as file:
            file.write(self.tokens("uint16").hdf5_write(path=path).graph.to_yaml())
        self.program("plan", yaml, "-o", job, "--part", "500KiB")
        self.program("work", job)
        self.program("merge", job)
        self.same(melflow.open(path), "uint16")

    def test_an_output_of_floats_is_refused(self):
        self.refused(r"output loud is tensor\(float\), and dtype: int16 is for integers", self.decoded().onnx(
            model=self.model, columns=1, output="loud", dtype="int16").discard())


class FunctionsTest(IntegersCase):
    RECORDINGS = 12

    def given(self, function, **options):
        return self.decoded().map(function, gives="rows", **{"columns": 1, **options})

    def test_the_ends_of_every_type(self):
        for dtype in ("int8", "uint8", "int16", "uint16", "int32", "int64"):
            ends = np.iinfo(dtype)
            for given in (np.dtype(dtype), np.dtype(np.int64)):
                for processes in (0, 2):
                    with self.subTest(f"{dtype} as {given}, {processes}"):
                        def units(samples, ends=(ends.min, 0, 1, ends.max), given=given):
                            return np.array(ends, given)

                        name = self.path("ends.py")
                        with open(name, "w", encoding="utf-8") as file:
                            file.write(f"import numpy as np\ndef units(samples):\n    return np.array([{ends.min}, 0, 1, {ends.max}], '{given}')\n")
                        path = self.path(f"{dtype}{given}{processes}.h5")
                        node = self.given(name + ":units" if processes else units, dtype=dtype, processes=processes)
                        node.hdf5_write(path=path, layout="chunked", compression="deflate").graph.run()
                        rows = melflow.open(path)
                        self.assertEqual((rows.dtype, rows.shape), (dtype, (4 * self.RECORDINGS, 1)))
                        self.assertEqual(rows.recording(3).ravel().tolist(), [ends.min, 0, 1, ends.max])
                        self.assertEqual(h5py.File(path)["features"][:4].ravel().tolist(), [ends.min, 0, 1, ends.max])

    def test_what_a_function_gives_is_checked(self):
        for dtype, value, said in (
                ("uint16", np.array([[0], [65536]]), r"the function gives 65536 at \[1, 0\], and uint16 holds 0 to 65535; set a wider dtype"),
                ("uint8", np.array([[-1]], np.int8), r"the function gives -1 at \[0, 0\], and uint8 holds 0 to 255"),
                ("int16", np.array([[-32769]]), r"gives -32769 at \[0, 0\], and int16 holds -32768 to 32767"),
                ("int32", np.array([[2**31]]), "gives 2147483648"),
                ("int64", np.array([[2**63]], np.uint64), "gives 9223372036854775808"),
                ("int16", np.zeros((3, 1), np.float32), r"gives an array \(3, 1\) of float32, and dtype: int16 is for integers; convert them"),
                ("int16", np.zeros((3, 1), bool), "rows are an array"),
                ("int16", np.zeros((2, 5), np.int16), "rows of 5 values, and columns is 1; set columns: 5")):
            with self.subTest(said):
                report = self.given(lambda samples, value=value: value, dtype=dtype).discard().graph.run(allow_failures=True)
                self.assertEqual(report["files"]["failed"], self.RECORDINGS)
                self.assertRegex(report["remarks"][0]["reason"], said)

    def test_without_dtype_rows_are_floats(self):
        path = self.path("floats.h5")
        self.given(lambda samples: np.arange(5)[:, None]).hdf5_write(path=path).graph.run()
        rows = melflow.open(path)
        self.assertEqual((rows.dtype, rows.recording(0).ravel().tolist()), ("float32", [0, 1, 2, 3, 4]))
        self.assertNotIn("dtype", json.loads(rows.attributes["feature_settings"])[-2])

    def test_what_computes_with_floats_refuses_integers(self):
        def units(samples):
            return np.zeros((3, 4), np.int16)

        refusal = "what arrives are integers of int16, and this node computes with floats; write or deliver them as they are"
        for more in (lambda n: n.deltas(), lambda n: n.stack(frames=2), lambda n: n.fit_rows(length=3), lambda n: n.sliding_cmvn(),
                     lambda n: n.map(units, takes="rows", gives="rows")):
            self.refused("from: " + refusal, more(self.given(units, columns=4, dtype="int16")).discard())
        for options, said in (({"dtype": "float16"}, "dtype: what arrives are integers of int16, which are stored as they are; leave it out"),
                              ({"dtype": "int32"}, "dtype: what arrives are integers of int16"),
                              ({"statistics": "all"}, "statistics: the rows are integers of int16, which are stored as they are and not scaled")):
            self.refused(said, self.given(units, columns=4, dtype="int16").hdf5_write(path=self.path("no.h5"), **options))
        self.given(units, columns=4, dtype="int16").hdf5_write(path=self.path("yes.h5"), dtype="int16").graph.validate()
        for dtype in ("float16", "bfloat16"):
            self.refused("python.dtype: a function gives float32 or integers; leave it out", self.given(units, dtype=dtype).discard())
        self.refused("python.dtype: is for rows; write gives: rows", self.decoded().map(units, dtype="int16").samples().discard())
        self.refused("hdf5_write.dtype: int32 holds integers, which a node python or onnx gives by a dtype of its own, and what arrives is "
                     "features; store float32", self.given(units, columns=4).hdf5_write(path=self.path("no.h5"), dtype="int32"))

    def test_rows_beside_others(self):
        def level(samples):
            return np.abs(samples.reshape(-1, FRAME)).mean(1, keepdims=True)

        def units(samples):
            return (samples.reshape(-1, FRAME)[:, :2] * 32768).astype(np.int16)

        wave = self.decoded()
        mel = wave.mel(n_fft=FRAME, hop=FRAME, n_mels=4, center=False)
        node = wave.map(units, gives="rows", columns=2, hop=FRAME, dtype="int16", name="units")
        self.refused("concat.from: mel gives rows of float32, units of int16; give them the same dtype, or each an output of its own "
                     r"\(batches takes both: from: \[mel, units\]\)", wave.graph.concat([mel, node]).discard())
        wave = self.decoded()
        both = wave.graph.concat([wave.map(units, gives="rows", columns=2, hop=FRAME, dtype="int16", name=name) for name in ("a", "b")])
        path = self.path("both.h5")
        both.hdf5_write(path=path).graph.run()
        rows = melflow.open(path)
        self.assertEqual((rows.dtype, rows.shape[1]), ("int16", 4))
        for i, name in enumerate(rows.path):
            expected = units(self.audio[name])
            np.testing.assert_array_equal(rows.recording(i), np.hstack([expected, expected]))


if __name__ == "__main__":
    unittest.main()
