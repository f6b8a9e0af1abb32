"""The stage kaldi_write, beside h5py, and Kaldi's own code where it is installed. An export has the same bytes
(exports_test.py), and is read by kaldiio there."""

import importlib.util
import os
import pathlib
import re
import resource
import shutil
import struct
import sys
import unittest
import unittest.mock

import h5py
import melflow
import numpy as np

import corpus

CASES = {
    "whole": {},
    "windows": corpus.WINDOWS,
    "waves": dict(chain=corpus.SAMPLES),
    "samples": dict(segment=", length: 2000", chain=corpus.SAMPLES),
}
SINK = "stage: kaldi_write, path: {out}/feats.ark, overwrite: true, statistics: all"


def matrices(path):
    """The keys, offsets and arrays of an ark, by Kaldi's description of it."""
    with open(path, "rb") as file:
        data = file.read()
    at, out = 0, {}
    while at < len(data):
        key, begin = data[at:data.index(b" ", at)], data.index(b" ", at) + 1
        assert data[begin:begin + 3] == b"\0BF", data[begin:begin + 5]
        is_matrix = data[begin + 3:begin + 5] == b"M "
        sizes = data[begin + 5:begin + (15 if is_matrix else 10)]
        shape = struct.unpack("<bibi" if is_matrix else "<bi", sizes)[1::2]
        at = begin + 5 + len(sizes)
        out[key] = begin, np.frombuffer(data, "<f4", int(np.prod(shape)), at).reshape(shape)
        at += 4 * int(np.prod(shape))
    return out


def table(path):
    with open(path, "rb") as file:
        return dict(line[:-1].split(b" ", 1) for line in file)


def contents(folder):
    return {name: pathlib.Path(folder, name).read_bytes() for name in sorted(os.listdir(folder))}


class KaldiTest(corpus.CorpusTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        os.rename(os.path.join(cls.root, "ant", "003.wav"), os.path.join(cls.root, "ant", "a b.c.wav"))
        os.rename(os.path.join(cls.root, "ant", "006.wav"), os.path.join(cls.root, "ant", os.fsdecode(b"caf\xe9.wav")))
        shutil.copy(os.path.join(cls.root, "ant", "009.wav"), os.path.join(cls.root, "ant", "009.WAV"))
        with open(os.path.join(cls.folder.name, "list.csv"), "wb") as out:
            out.write(b"path,id,who,words,kind\n")
            for i, at in enumerate(sorted(os.path.relpath(os.path.join(d, f), cls.root) for d, _, fs in os.walk(cls.root) for f in fs)):
                out.write(os.fsencode(f"{at},utt{i:03},{'ann lee' if i % 2 else 'bob'},{'' if i == 4 else f' said   {i} '},same\n"))

    def text(self, out, more="", listed="", **case):
        return corpus.pipeline(self.root, SINK.format(out=out) + more, files=listed, **case)

    def listed(self, columns):
        return f', manifest: {self.folder.name}/list.csv, columns: [{columns}]'

    def test_values_are_those_of_hdf5(self):
        for name, case in CASES.items():
            for normalize in ("", ", normalize: true"):
                with self.subTest(name, normalize=normalize):
                    out = self.out("a")
                    h5 = out + ".h5"
                    self.run_program(self.text(out, normalize, **case) + "  h5: {stage: hdf5_write, from: rows, overwrite: true, "
                                     f"statistics: all{normalize}, path: {h5}}}\n")
                    with h5py.File(h5) as file:
                        rows, offset = file[file.attrs["rows"]][:], file["files/offset"][:]
                    there = matrices(os.path.join(out, "feats.ark"))
                    values = np.concatenate([v[None] if rows.ndim == 3 else v for _, v in there.values()])
                    self.assertEqual(values.tobytes(), rows.tobytes())
                    self.assertEqual(table(os.path.join(out, "feats.scp")), {k: b"feats.ark:%d" % at for k, (at, _) in there.items()})
                    self.assertEqual(list(table(os.path.join(out, "feats.scp"))), sorted(there))
                    self.assertEqual(sorted(os.listdir(out)), ["feats.ark", "feats.index.json", "feats.index.npy", "feats.scp"])
                    self.assertTrue({b"ant/a%20b%2Ec", b"ant/caf\xe9", b"ant/009%2Ewav", b"ant/009%2EWAV"} <=
                                    {key[:-7] if rows.ndim == 3 else key for key in there})
                    index = np.load(os.path.join(out, "feats.index.npy"))
                    np.testing.assert_array_equal(index["offset"], offset)
                    self.assertIn("the rows of", self.program("verify", os.path.join(out, "feats.ark")))
                    self.assertIn("equal: same features", self.program("compare", os.path.join(out, "feats.ark"), h5))
                    self.assertIn("kaldi_write", self.program("inspect", os.path.join(out, "feats.ark"), "--files"))

    @unittest.skipUnless(importlib.util.find_spec("kaldi_native_io"), "kaldi_native_io: not installed")
    def test_kaldis_own_code_reads_it(self):
        import kaldi_native_io
        for name, reader in (("whole", kaldi_native_io.SequentialFloatMatrixReader),
                             ("waves", kaldi_native_io.SequentialFloatVectorReader)):
            out = self.out("native")
            self.run_program(self.text(out, listed=", include: ['*/0*.wav'], exclude: ['*/caf*']", **CASES[name]))
            expected = {key.decode(): values for key, (_, values) in matrices(os.path.join(out, "feats.ark")).items()}
            before = os.getcwd()
            os.chdir(out)
            try:
                for source in ("ark:feats.ark", "scp:feats.scp"):
                    with reader(source) as there:
                        read = {key: np.array(values) for key, values in there}
                    self.assertEqual(sorted(read), sorted(expected))
                    for key, values in read.items():
                        self.assertEqual(values.tobytes(), expected[key].tobytes())
            finally:
                os.chdir(before)

    def test_tables_of_columns(self):
        out = self.out("tables")
        self.run_program(self.text(out, ", utterance: id, speaker: who, text: words", self.listed("id, who, words")))
        scp, speakers, texts = (table(os.path.join(out, name)) for name in ("feats.scp", "utt2spk", "text"))
        self.assertEqual(list(scp), sorted(scp))
        self.assertEqual(list(speakers), list(scp))
        self.assertEqual({k: v for k, v in speakers.items()}, {k: b"ann_lee" if int(k[3:]) % 2 else b"bob" for k in scp})
        self.assertEqual(texts, {k: b"said %d" % int(k[3:]) for k in scp if int(k[3:]) != 4})
        back = table(os.path.join(out, "spk2utt"))
        self.assertEqual({u: s for s, us in back.items() for u in us.split(b" ")}, speakers)

    def test_a_data_folder_comes_out_as_it_went_in(self):
        data, out = self.out("data"), self.out("fbank")
        wav = os.path.join(self.root, "bee", "001.wav")
        tables = {"wav.scp": f"ann-a {wav}\nbob-b {os.path.join(self.root, 'cat', '002.wav')}\n",
                  "segments": "ann-a-1 ann-a 0 0.3\nann-a-2 ann-a 0.3 0.5\nbob-b-1 bob-b 0.1 0.4\n",
                  "utt2spk": "ann-a-1 ann\nann-a-2 ann\nbob-b-1 bob\n", "text": "ann-a-1 one two\nann-a-2 three\nbob-b-1 four\n"}
        for name, lines in tables.items():
            pathlib.Path(data, name).write_text(lines, encoding="utf-8")
        self.run_program(self.text(out, ", utterance: utterance, speaker: speaker, text: text",
                                   f", manifest: {data}/segments, utterances: {{}}, columns: [utterance, speaker, text]").replace(
            f"root: {self.root}, labels: top_dir, ", ""))
        for name in ("utt2spk", "text"):
            self.assertEqual(pathlib.Path(out, name).read_text(encoding="utf-8"), tables[name])
        self.assertEqual(pathlib.Path(out, "spk2utt").read_text(encoding="utf-8"), "ann ann-a-1 ann-a-2\nbob bob-b-1\n")
        self.assertEqual({key: v.shape for key, (_, v) in matrices(os.path.join(out, "feats.ark")).items()},
                         {b"ann-a-1": (31, 20), b"ann-a-2": (21, 20), b"bob-b-1": (31, 20)})

    def test_same_bytes_whatever_the_run(self):
        more = ", utterance: id, speaker: who, text: words, normalize: true"
        a, b = self.out("same1"), self.out("same2")
        self.run_program(self.text(a, more, self.listed("id, who, words")) + "workers: 1\n")
        self.run_program(self.text(b, more, self.listed("id, who, words")) + "workers: 4\n")
        one, other = contents(a), contents(b)
        document = "feats.index.json"  # names the output's folder and the workers
        self.assertEqual({n: d for n, d in one.items() if n != document}, {n: d for n, d in other.items() if n != document})
        job, c = os.path.join(self.folder.name, "job"), self.out("same3")
        yaml = os.path.join(self.folder.name, "job.yaml")
        pathlib.Path(yaml).write_text(self.text(c, more, self.listed("id, who, words")), encoding="utf-8")
        self.program("plan", yaml, "-o", job, "--part", "200KiB")
        self.program("work", job)
        self.program("merge", job, code=3, cwd=os.path.dirname(job))
        merged = contents(c)
        self.assertEqual({n: d for n, d in one.items() if n != document}, {n: d for n, d in merged.items() if n != document})

    def test_an_interrupted_run_goes_on(self):
        whole, out = self.out("whole"), self.out("cut")
        big = dict(segment="", chain=corpus.MEL)
        self.run_program(self.text(whole, **big))
        text = self.text(out, ", checkpoint: 4KiB", **big) + "workers: 1\n"
        self.run_program(text, "run", "--quiet", "--stop-after", "1ms", code=(0, 3, 75))
        self.kill(text, os.path.join(out, "feats.ark.part"), 100_000)
        self.run_program(text)
        for name in ("feats.ark", "feats.scp", "feats.index.npy"):
            self.assertEqual(contents(out)[name], contents(whole)[name], name)
        self.assertEqual(sorted(os.listdir(out)), sorted(os.listdir(whole)))

    def test_rows_moved_apart_halfway_are_made_again(self):
        """A run that ends while it moves the rows apart, for want of room, leaves work that the next one goes on with."""
        whole, out = self.out("moved"), self.out("halfway")
        self.run_program(self.text(whole))
        size = os.path.getsize(os.path.join(whole, "feats.ark"))
        said = self.run_program(self.text(out), code=1,
                                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size - 200, size - 200)))
        self.assertRegex(said, "feats.ark.part.*File too large")
        self.assertNotIn("feats.ark", os.listdir(out))
        self.run_program(self.text(out))
        self.assertEqual(contents(out)["feats.ark"], contents(whole)["feats.ark"])

    def test_work_of_a_killed_run_is_known(self):
        more = ", utterance: id, speaker: who, text: words"
        whole, out = self.out("known"), self.out("left")
        self.run_program(self.text(whole, more, self.listed("id, who, words")))
        for name, data in contents(whole).items():
            pathlib.Path(out, name + ".part").write_bytes(data)
        self.run_program(self.text(out, more, self.listed("id, who, words")))
        self.assertEqual(contents(out)["feats.ark"], contents(whole)["feats.ark"])
        self.assertEqual(sorted(os.listdir(out)), sorted(os.listdir(whole)))
        for name in ("feats.scp", "utt2spk", "text"):
            letter = pathlib.Path(out, name + ".part")
            letter.write_text("Dear Ann,\n" * 100, encoding="utf-8")
            said = self.run_program(self.text(out, more, self.listed("id, who, words")), code=1)
            self.assertIn(f"{name}.part: this exists already and is not melflow's", said)
            self.assertTrue(letter.exists())
            letter.unlink()

    def test_what_is_read_is_not_replaced(self):
        data = self.out("own")
        pathlib.Path(data, "wav.scp").write_text(f"a {os.path.join(self.root, 'bee', '001.wav')}\n", encoding="utf-8")
        pathlib.Path(data, "segments").write_text("a-1 a 0 0.3\n", encoding="utf-8")
        pathlib.Path(data, "utt2spk").write_text("a-1 ann\n", encoding="utf-8")
        listed = f", manifest: {data}/segments, utterances: {{}}, columns: [speaker]"
        text = self.text(data, ", speaker: speaker", listed).replace(f"root: {self.root}, labels: top_dir, ", "")
        for given in (text, text.replace("utterances: {}", "commands: allow, utterances: {}")):
            with unittest.mock.patch.dict(os.environ, {"MELFLOW_PYTHON": sys.executable}):
                said = self.run_program(given, code=1)
            self.assertRegex(said, "own/feats.ark: this run reads the folder of data that it lies in, whose utt2spk")
        self.assertEqual(sorted(os.listdir(data)), ["segments", "utt2spk", "wav.scp"])
        self.run_program(text.replace(", speaker: speaker", ""))
        self.assertIn("feats.ark", os.listdir(data))

    def test_update(self):
        root = os.path.join(self.folder.name, "grows")
        shutil.copytree(self.root, root)
        late = [os.path.join(root, "bee", name) for name in sorted(os.listdir(os.path.join(root, "bee")))[3:6]]
        for path in late:
            os.rename(path, os.path.join(self.folder.name, os.path.basename(path)))
        out, fresh = self.out("updated"), self.out("fresh")
        text = self.text(out).replace(self.root, root)
        self.run_program(text)
        for path in late:
            os.rename(os.path.join(self.folder.name, os.path.basename(path)), path)
        self.run_program(text, "update")
        self.run_program(text.replace(out, fresh))
        for name in ("feats.ark", "feats.scp"):
            self.assertEqual(contents(out)[name], contents(fresh)[name], name)

    def test_sums_of_speakers(self):
        more = ", utterance: id, speaker: who, statistics_by: who"
        for case in ("whole", "windows"):
            with self.subTest(case):
                out = self.out("sums")
                self.run_program(self.text(out, more, self.listed("id, who"), **CASES[case]))
                rows = {key.decode(): values.astype(np.float64) for key, (_, values) in matrices(os.path.join(out, "feats.ark")).items()}
                speakers = {key.decode(): words.decode().split() for key, words in table(os.path.join(out, "spk2utt")).items()}
                with open(os.path.join(out, "cmvn.ark"), "rb") as file:
                    data = file.read()
                scp = table(os.path.join(out, "cmvn.scp"))
                self.assertEqual([key.decode() for key in scp], sorted(speakers))
                for speaker, keys in speakers.items():
                    at = int(scp[speaker.encode()].rsplit(b":", 1)[1])
                    self.assertEqual(data[at:at + 15], b"\0BDM " + struct.pack("<bibi", 4, 2, 4, 21))
                    self.assertEqual(data[:at].rsplit(b" ", 1)[0][-len(speaker):], speaker.encode())
                    got = np.frombuffer(data, "<f8", 42, at + 15).reshape(2, 21)
                    values = np.concatenate([rows[key] for key in keys])
                    np.testing.assert_allclose(got, [[*values.sum(0), len(values)], [*(values ** 2).sum(0), 0]], rtol=1e-11)
                    for library in ("kaldiio", "kaldi_native_io"):
                        if importlib.util.find_spec(library):
                            path = f"{out}/cmvn.ark:{at}"
                            module = __import__(library)
                            read = module.load_mat(path) if library == "kaldiio" else np.array(module.DoubleMatrix.read(path))
                            self.assertEqual(np.array(read).tobytes(), got.tobytes(), library)
        self.program("verify", os.path.join(out, "feats.ark"))
        # Sums that are applied already are not offered to be applied again.
        out = self.out("applied")
        self.run_program(self.text(out, more + ", normalize: true", self.listed("id, who")))
        self.assertFalse([name for name in os.listdir(out) if name.startswith("cmvn")])

    def test_a_result_is_a_matrix(self):
        for case in ("whole", "windows"):
            with self.subTest(case):
                out = self.out("results")
                h5 = out + ".h5"
                text = corpus.varied(self.text(out, **CASES[case]) + f"  h5: {{stage: hdf5_write, from: rows, overwrite: true, path: {h5}}}\n")
                self.run_program(text)
                there = matrices(os.path.join(out, "feats.ark"))
                rows, n = melflow.open(h5), 0
                for i in np.flatnonzero(rows.count).tolist():
                    name = list(there)[n].rsplit(b"-", 1 if case == "whole" else 2)[0]
                    for said, values in rows.results(i):
                        key = name + b"-%d" % said["number"]["takes"]
                        if case == "whole":
                            self.assertEqual(there[key][1].tobytes(), values.tobytes(), key)
                            n += 1
                        for k, window in enumerate(values if case == "windows" else ()):
                            self.assertEqual(there[key + b"-%06d" % k][1].tobytes(), window.tobytes(), key)
                            n += 1
                self.assertEqual(n, len(there))
                self.program("verify", os.path.join(out, "feats.ark"))
                before = contents(out)
                self.run_program(text, "update")
                self.assertEqual(contents(out)["feats.ark"], before["feats.ark"])
                index = np.load(os.path.join(out, "feats.index.npy"), mmap_mode="r+")
                i = int(np.flatnonzero(index["count"])[0])
                index["results"][i] = re.sub(rb'"rows": ?(\d+)', lambda m: b'"rows": %d' % (int(m[1]) - 1), index["results"][i], count=1)
                index.flush()
                self.assertIn("the results of a recording have", self.program("inspect", os.path.join(out, "feats.ark"), code=1))

    def packed(self, method, case):
        """A compressed output, and its folder, beside the same without compression: keys with rows of both, and the tokens."""
        out, plain = self.out("packed"), self.out("plain")
        self.run_program(self.text(out, f", compression: {method}", **case))
        self.run_program(self.text(plain, **case))
        there = {key: values for key, (_, values) in matrices(os.path.join(plain, "feats.ark")).items()}
        scp, data = table(os.path.join(out, "feats.scp")), pathlib.Path(out, "feats.ark").read_bytes()
        self.assertEqual(list(scp), sorted(there))
        return out, there, scp, {key: data[int(at.rsplit(b":", 1)[1]):][:6] for key, at in scp.items()}

    def test_compressed_matrices(self):
        cases = {"whole": {}, "windows": corpus.WINDOWS, "three frames": dict(segment=", length: 160"), "samples": CASES["samples"]}
        for name, case in cases.items():
            for method, token in ((1, b"CM"), (2, b"CM "), (3, b"CM2 "), (5, b"CM3 ")):
                with self.subTest(name, method=method):
                    out, there, scp, tokens = self.packed(method, case)
                    few = [len(rows) <= 8 for rows in there.values()]
                    self.assertTrue(all(of.startswith(b"\0B" + token) for of in tokens.values()))
                    if method == 1:
                        self.assertEqual([tokens[key][4:5] == b"2" for key in there], few)
                    read = {}
                    for library in ("kaldiio", "kaldi_native_io"):
                        if importlib.util.find_spec(library):
                            module = __import__(library)
                            read[library] = {key: np.array(module.load_mat(os.path.join(out, os.fsdecode(at))) if library == "kaldiio" else
                                                           module.FloatMatrix.read(os.path.join(out, os.fsdecode(at))))
                                             for key, at in list(scp.items())[:300]}
                    for key, rows in list(there.items())[:300]:
                        whole = np.ptp(rows.astype(np.float64))
                        in_columns = method == 2 or (method == 1 and len(rows) > 8)
                        step = np.ptp(rows.astype(np.float64), axis=0) / 63 if in_columns else whole / {1: 65535, 3: 65535, 5: 255}[method]
                        for library, by_key in read.items():
                            if key in by_key:
                                off = np.abs(by_key[key] - rows.astype(np.float64))
                                self.assertTrue((off <= step / 2 + 3 * whole / 65535 + 1e-6 * np.abs(rows)).all(), (library, key))
                    ark = os.path.join(out, "feats.ark")
                    self.program("verify", ark)
                    self.assertLess(os.path.getsize(ark), (0.6 if name not in ("three frames", "samples") else 2) * sum(4 * v.size for v in there.values()))

    @unittest.skipUnless(importlib.util.find_spec("kaldi_native_io"), "kaldi_native_io: not installed")
    def test_compressed_matrices_are_those_of_kaldis_code(self):
        import kaldi_native_io
        methods = {1: "kAutomaticMethod", 2: "kSpeechFeature", 3: "kTwoByteAuto", 5: "kOneByteAuto"}
        for case in ({}, dict(segment=", length: 160"), dict(segment=", length: 480")):
            for method, name in methods.items():
                out, there, scp, _ = self.packed(method, case)
                kind = getattr(kaldi_native_io.CompressionMethod, name)
                data, whole = pathlib.Path(out, "feats.ark").read_bytes(), os.path.join(out, "kaldi.ark")
                keys = [key for key in there if key.isascii()][:200]
                with kaldi_native_io.CompressedMatrixWriter("ark:" + whole) as writer:
                    for key in keys:
                        writer.write(key.decode(), there[key], kind)
                theirs = pathlib.Path(whole).read_bytes()
                for key in keys:
                    begin = theirs.index(key + b" \0B")
                    mine = int(scp[key].rsplit(b":", 1)[1])
                    size = {2: 19 + 8 * 20 + there[key].size, 3: 20 + 2 * there[key].size, 5: 20 + there[key].size}[
                        method if method != 1 else 2 if len(there[key]) > 8 else 3]
                    self.assertEqual(data[mine:mine + 2 + size], theirs[begin + len(key) + 1:][:2 + size], (key, method))

    def test_compressed_output_is_one_like_others(self):
        more = ", utterance: id, speaker: who, statistics_by: who, compression: 2"
        listed = self.listed("id, who")
        one, other = self.out("one"), self.out("other")
        self.run_program(self.text(one, more, listed) + "workers: 1\n")
        self.run_program(self.text(other, more, listed) + "workers: 4\n")
        self.assertEqual({n: d for n, d in contents(one).items() if n != "feats.index.json"},
                         {n: d for n, d in contents(other).items() if n != "feats.index.json"})
        ark = os.path.join(one, "feats.ark")
        self.assertIn("compression=2", self.program("inspect", ark))
        self.assertIn("equal: same features", self.program("compare", ark, os.path.join(other, "feats.ark")))
        self.assertIn("compressed with loss, so that rows are not compared", self.program("verify", ark, "--recompute", "100%", code=1))
        self.assertIn("compressed matrices cannot be updated", self.run_program(self.text(one, more, listed), "update", code=1))
        job, merged = os.path.join(self.folder.name, "packed_job"), self.out("merged")
        self.run_program(self.text(merged, more, listed), "plan", "-o", job, "--part", "200KiB", code=0)
        self.program("work", job)
        self.program("merge", job, code=3, cwd=os.path.dirname(job))
        self.assertEqual(contents(merged)["feats.ark"], contents(one)["feats.ark"])
        left = self.out("left")
        self.kill(self.text(left, more + ", checkpoint: 4KiB", listed) + "workers: 1\n", os.path.join(left, "feats.ark.part"), 100_000)
        self.run_program(self.text(left, more + ", checkpoint: 4KiB", listed) + "workers: 1\n")
        self.assertEqual(contents(left)["feats.ark"], contents(one)["feats.ark"])
        data = contents(one)["feats.ark"]
        for at, why in ((3, "at byte 0 there is no matrix"), (20, "a compressed matrix is damaged, or of another size"),
                        (len(data) // 2, ""), (len(data) - 1, "")):
            damaged = data[:at] + bytes([data[at] ^ 1]) + data[at + 1:]
            pathlib.Path(ark).write_bytes(damaged)
            self.assertIn("those of 1 file", self.program("verify", ark, code=1))
            if why:
                self.assertIn(why, self.program("show", ark, "--file", "ant/000.wav", "-o", os.path.join(one, "a.svg"), code=1))
        pathlib.Path(ark).write_bytes(data[:-1])
        self.assertIn("and its rows end at", self.program("verify", ark, code=1))

    def test_refusals(self):
        out = self.out("refused")
        for more, listed, why in (
                (", dtype: float16", "", "archives of Kaldi are float32"),
                (", compression: 4", "", "4 is for whole numbers"),
                (", compression: 6", "", "compression"),
                (", split_files: true", "", "an archive and its tables are one folder of data"),
                (", utterance: name", self.listed("id, who"), r"kaldi_write.utterance: the list has no column 'name', there are id, who"),
                (", speaker: who", "", "kaldi_write.speaker: the list has no column 'who'; name one that"),
                (", utterance: who", self.listed("id, who"), "has the name 'ann lee', which is no word"),
                (", utterance: kind", self.listed("id, kind"), "has the name 'same', which another one has"),
                (", utterance: label", self.listed("id, who"), "has the name 'ant', which another one has")):
            with self.subTest(why):
                self.assertRegex(self.run_program(self.text(out, more, listed), code=(1, 78)), why)
        said = self.run_program(self.text(out, ", compression: 2", chain=corpus.SAMPLES), code=78)
        self.assertIn("recordings of samples are vectors, which Kaldi does not compress", said)
        said = self.run_program(self.text(out).replace("feats.ark", "feats.kaldi"), code=78)
        self.assertIn("does not end in .ark", said)
        self.assertEqual(os.listdir(out), [])

    def test_damaged_files(self):
        out = self.out("damaged")
        self.run_program(self.text(out))
        ark = os.path.join(out, "feats.ark")
        there = contents(out)

        def check(name, data, why, code=1):
            with open(os.path.join(out, name), "wb") as file:
                file.write(data)
            self.assertRegex(self.program("verify", ark, code=code), why)
            with open(os.path.join(out, name), "wb") as file:
                file.write(there[name])
        data = there["feats.ark"]
        at = matrices(ark)[b"ant/009%2Ewav"][0]
        check("feats.ark", data[:-1], "and its rows end at")
        check("feats.ark", data[:at + 40] + bytes([data[at + 40] ^ 1]) + data[at + 41:], "ant/009.wav")
        check("feats.ark", data[:at + 3] + b"V" + data[at + 4:], "those of 1 file are not:\n  ant/009.wav")
        check("feats.scp", there["feats.scp"].replace(b"009%2Ewav", b"009%2Ewaw"), "those of 1 file are not:\n  ant/009.wav")
        check("feats.scp", there["feats.scp"] + there["feats.scp"], "lines, and there are")
        check("feats.scp", there["feats.scp"].replace(b"ark:", b"ark:x"), "line 1 has no offset")
        check("feats.scp", there["feats.scp"].replace(b"ark:%d\n" % at, b"ark:%d\n" % (len(data) + 9)), "which is none of")
        index = np.load(os.path.join(out, "feats.index.npy"))
        rows, last = int(index["count"].sum()), int(np.argmax(index["offset"]))
        index["count"][last] += 1 << 40
        np.save(os.path.join(out, "feats.index.npy"), index)
        document = there["feats.index.json"].replace(b"[%d," % rows, b"[%d," % (rows + (1 << 40)))
        check("feats.index.json", document, "the file has [0-9]+ bytes, its rows [0-9]+|is not a list of")
        pathlib.Path(out, "feats.index.npy").write_bytes(there["feats.index.npy"])
        os.rename(os.path.join(out, "feats.index.json"), os.path.join(out, "away"))
        self.assertIn("no rows that melflow wrote", self.program("inspect", ark, code=1))
        os.rename(os.path.join(out, "away"), os.path.join(out, "feats.index.json"))
        with self.assertRaisesRegex(melflow.RunError, "rows of an ark lie apart"):
            melflow.open(ark)
        self.assertEqual(contents(out), there)


if __name__ == "__main__":
    unittest.main()
