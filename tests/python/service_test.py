"""melflow.Features and melflow.features as a service calls them: bytes, limits, memory of the caller, many threads, asyncio."""

import array
import asyncio
import io
import multiprocessing
import os
import pathlib
import re
import resource
import struct
import sys
import tempfile
import threading
import unittest
import warnings
import wave
from unittest import mock

import melflow
import numpy as np

import corpus

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../long"))
import odd_recordings  # noqa: E402

RATE = 16000
OPTIONS = dict(sample_rate=RATE, n_fft=400, hop=160, n_mels=20, log="ln")


def wav(samples, rate=RATE):
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(samples.tobytes())
    return out.getvalue()


def noise(count, seed=1):
    return (np.random.default_rng(seed).standard_normal(count) * 3000).astype(np.int16)


def crc(data, bits, polynomial):
    value, top = 0, 1 << bits - 1
    for byte in data:
        value ^= byte << bits - 8
        for _ in range(8):
            value = (value << 1 ^ polynomial if value & top else value << 1) & (1 << bits) - 1
    return value


def flac_of_silence(seconds, rate=8000):
    """A FLAC of frames of one constant each, 13 to 16 bytes for 65,535 samples (RFC 9639, 9)."""
    block = 65535
    count = seconds * rate // block
    info = struct.pack(">HH", block, block) + bytes(6) + struct.pack(">Q", rate << 44 | 15 << 36 | count * block) + bytes(16)
    out = [b"fLaC\x80\x00\x00\x22", info]
    for number in range(count):
        coded = bytes([number]) if number < 0x80 else chr(number).encode()
        head = b"\xff\xf8\x70\x08" + coded + struct.pack(">H", block - 1)
        frame = head + bytes([crc(head, 8, 0x07)]) + bytes(3)
        out.append(frame + struct.pack(">H", crc(frame, 16, 0x8005)))
    return b"".join(out)


class ServiceTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.samples = noise(2 * RATE)
        cls.data = wav(cls.samples)
        cls.path = os.path.join(cls.folder.name, "a.wav")
        with open(cls.path, "wb") as file:
            file.write(cls.data)
        cls.features = melflow.Features(**OPTIONS)
        cls.rows = cls.features(cls.path)
        cls.hours = flac_of_silence(10 * 3600)

    def test_bytes_are_read_where_they_are(self):
        strided = bytearray(2 * len(self.data))
        strided[::2] = self.data
        given = {"bytes": self.data, "bytearray": bytearray(self.data), "memoryview": memoryview(self.data), "stream": io.BytesIO(self.data),
                 "every other byte": memoryview(strided)[::2], "dict": {"bytes": self.data, "path": "x.wav"},
                 "a part": memoryview(b"abc" + self.data)[3:]}
        with mock.patch.object(os, "memfd_create", side_effect=AssertionError), mock.patch.object(tempfile, "_get_default_tempdir", side_effect=AssertionError):
            for name, audio in given.items():
                with self.subTest(name):
                    np.testing.assert_array_equal(self.features(audio), self.rows)
                    if not isinstance(audio, io.BytesIO):
                        np.testing.assert_array_equal(melflow.features(audio, **OPTIONS), self.rows)
        with open(self.path, "rb") as file:
            np.testing.assert_array_equal(self.features(file), self.rows)
        for name, audio in {"array": self.samples, "floats": self.samples / np.float32(32768), "list": (self.samples / 32768).tolist(),
                            "array.array": array.array("h", self.samples.tobytes())}.items():
            with self.subTest(name):
                np.testing.assert_array_equal(self.features(audio, RATE), self.rows)
        np.testing.assert_array_equal(self.features({"array": self.samples, "sampling_rate": RATE}), self.rows)

    def test_what_is_no_recording(self):
        class Upload:
            async def read(self):
                return b""

        for error, what, call in [
            (melflow.RunError, r"^audio: read: empty file \(0 bytes\)$", lambda: self.features(b"")),
            (melflow.RunError, "^audio: decode: is not an audio file", lambda: self.features(b"abc" * 100)),
            (TypeError, r"^audio is an open file whose read\(\) is a coroutine; give what it reads", lambda: self.features(Upload())),
            (TypeError, "^sample_rate is that of samples, and a file has its own; leave 8000 out", lambda: self.features(self.data, 8000)),
            (TypeError, "^an array needs sample_rate", lambda: self.features(self.samples)),
            (TypeError, "^preset, pad_to: a pipeline has its own; sets=", lambda: melflow.Features("{}", preset="whisper", pad_to="30s")),
            (TypeError, "^sets: for a pipeline, and none is given", lambda: melflow.Features(sets={"a": 1}, preset="whisper")),
            (TypeError, "^files need a preset of a model, or sample_rate", lambda: melflow.Features(n_mels=20)),
            (TypeError, "^files need a preset .* resampled, as the preset librosa is for any rate$", lambda: melflow.Features(preset="librosa")),
            (melflow.ConfigError, "^hop_length: unknown option of mel; use 'hop' instead", lambda: melflow.Features(hop_length=80, sample_rate=8000)),
            (melflow.ConfigError, "^pad_to: ", lambda: melflow.Features(**OPTIONS, pad_to="long")),
            (melflow.ConfigError, "^dtype: ", lambda: melflow.Features(**OPTIONS, dtype="int8")),
        ]:
            with self.subTest(what), self.assertRaisesRegex(error, what):
                call()

    def test_a_pipeline_takes_files_as_its_list_does(self):
        text = corpus.pipeline(self.folder.name, "stage: batches").replace("sample_rate: 8000", f"sample_rate: {RATE}")
        features = melflow.Features(text)
        expected = features(self.samples, RATE)
        for audio in (self.data, self.path):
            np.testing.assert_array_equal(features(audio), expected)
        with self.assertRaisesRegex(melflow.RunError, r"^audio: decode: short: the header promises"):  # truncated: fail
            features(self.data[:-100])
        repeated = text.replace("read, trunc", "twice, trunc").replace("  decode:", "  twice: {stage: repeat, from: read, times: 2}\n  decode:")
        features = melflow.Features(repeated)
        np.testing.assert_array_equal(features(self.samples, RATE), expected)
        with self.assertRaisesRegex(melflow.RunError, "twice makes several results of a recording"):
            features(self.data)

    def test_samples_of_another_rate_than_a_models_are_resampled(self):
        slow = noise(8000, 2)
        expected = melflow.features(wav(slow, 8000), preset="whisper")
        np.testing.assert_array_equal(melflow.features(slow, 8000, preset="whisper"), expected)
        np.testing.assert_array_equal(melflow.Features(preset="whisper")({"array": slow, "sampling_rate": 8000}), expected)

    def test_memory_of_the_caller(self):
        count = len(self.rows)
        for kind in ("float32", "float16"):
            features = melflow.Features(**OPTIONS, dtype=kind)
            out = np.full((count + 5, 20), 7, kind)
            rows = features(self.data, out=out)
            np.testing.assert_array_equal(rows, self.rows.astype(kind))
            self.assertTrue(np.shares_memory(rows, out))
            self.assertTrue((out[count:] == 7).all())
        for error, what, out in [
            (ValueError, f"out has room for {count - 1} rows, and the recording gives {count}", np.zeros((count - 1, 20), np.float32)),
            (ValueError, r"out is an array \[rows, 20\] of float32", np.zeros((count, 20))),
            (ValueError, r"out is an array \[rows, 20\] of float32", np.zeros((count, 21), np.float32)),
            (TypeError, "out is an array that can be written to, .* not a view or a constant", np.zeros((count, 40), np.float32)[:, ::2]),
            (TypeError, "out is an array that can be written to, .* not a view or a constant", np.broadcast_to(np.float32(0), (count, 20))),
            (TypeError, r"out is an array that can be written to, .* not \[\[0", [[0.0] * 20] * count),
        ]:
            with self.subTest(what), self.assertRaisesRegex(error, what):
                self.features(self.data, out=out)

    def test_padded_to_the_length_of_a_model(self):
        text = f"""version: 1
graph:
  files: {{stage: file_list, root: {self.folder.name}, include: a.wav}}
  read: {{stage: disk_read, from: files}}
  decode: {{stage: decode, from: read}}
  resample: {{stage: resample, from: decode, rate: 16kHz}}
  segment: {{stage: segment, from: resample, length: 3s, tail: pad}}
  mel: {{stage: mel, from: segment, preset: whisper}}
  write: {{stage: hdf5_write, from: mel, path: {self.folder.name}/padded.h5}}
"""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of windows of 30 s
            melflow.run(text)
        written = melflow.open(os.path.join(self.folder.name, "padded.h5"))
        features = melflow.Features(preset="whisper", pad_to="3s")
        self.assertEqual(features.fingerprint, written.attributes["feature_fingerprint"])
        np.testing.assert_array_equal(features(self.data), written[0])
        np.testing.assert_array_equal(melflow.features(self.samples, RATE, preset="whisper", pad_to=3 * RATE), written[0])
        out = np.empty((300, 80), np.float32)
        self.assertIs(features(self.data, out=out), out)
        np.testing.assert_array_equal(out, written[0])
        self.assertEqual(features(wav(noise(3 * RATE))).shape, (300, 80))
        with self.assertRaisesRegex(melflow.RunError, "^audio: segment: is longer than pad_to$"):
            features(wav(noise(3 * RATE + 1)))

    def test_a_list_in_one_array(self):
        recordings = [noise(count, count) for count in (400, 12000, 7000)]
        each = [self.features(one, RATE) for one in recordings]
        for call in (lambda **more: self.features([wav(one) for one in recordings], padded=True, **more),
                     lambda **more: melflow.features([wav(one) for one in recordings], padded=True, **more, **OPTIONS)):
            for out in (None, np.full((4, 80, 20), 7, np.float32)):
                rows, lengths = call(out=out)
                self.assertEqual(lengths.tolist(), [len(one) for one in each])
                for i, one in enumerate(each):
                    np.testing.assert_array_equal(rows[i, :len(one)], one)
                    self.assertFalse(rows[i, len(one):].any())
                if out is not None:
                    self.assertIs(rows, out)
                    self.assertTrue((rows[3] == 7).all())
        self.assertEqual(self.features([]), [])
        for error, what, call in [
            (TypeError, "^padded is for a list of recordings, and this is one", lambda: self.features(self.data, padded=True)),
            (TypeError, "^out of a list takes padded=True", lambda: self.features([self.data], out=np.zeros((1, 300, 20), np.float32))),
            (ValueError, "^out has room for 1 recordings, and there are 2", lambda: self.features(
                [self.data] * 2, padded=True, out=np.zeros((1, 300, 20), np.float32))),
        ]:
            with self.subTest(what), self.assertRaisesRegex(error, what):
                call()

    def test_hours_in_a_small_file_fail_by_name(self):
        self.assertLess(len(self.hours), 100_000)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for limit, why in ((dict(max_seconds=60), r"is longer than max_seconds: 60 s, and there are \d+\.\d+ s or more$"),
                           (dict(max_samples=500_000), r"is longer than max_samples: 500000, and there are \d+ or more$")):
            for call in (lambda: self.features(self.hours, **limit), lambda: melflow.features(self.hours, **limit, **OPTIONS)):
                with self.assertRaisesRegex(melflow.RunError, "^audio: decode: " + why):
                    call()
            with self.assertRaisesRegex(melflow.RunError, r"(?s)^1 of 2 recordings gave no rows:\n  \[1\] audio: decode: " + why):
                self.features([self.data, self.hours], **limit)
            with self.assertRaisesRegex(melflow.RunError, "^is longer than max_s"):
                self.features(np.zeros(61 * RATE, np.int16), RATE, **limit)
        self.assertLess(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, 200 << 10)  # all rows take 288 MB
        np.testing.assert_array_equal(self.features(self.data, max_seconds=2, max_samples=2 * RATE, deadline=1e12), self.rows)
        with self.assertRaisesRegex(ValueError, "^max_seconds is 0 or more, not -1"):
            self.features(self.data, max_seconds=-1)

    def test_deadlines(self):
        for call in (lambda: self.features(self.data, deadline=0), lambda: melflow.features(self.path, deadline=0, **OPTIONS),
                     lambda: self.features(self.samples, RATE, deadline=0), lambda: self.features([self.data], deadline=0)):
            with self.assertRaisesRegex(TimeoutError, "not ended by its deadline, 0 s$"):
                call()
        with self.assertRaisesRegex(TimeoutError, "^audio: not ended by its deadline, 0.02 s$"):
            self.features(self.hours, deadline=0.02)

    def test_what_is_damaged_warns_and_is_noted(self):
        remarks = []
        with self.assertWarnsRegex(UserWarning, "^audio: decode: short: the header promises"):
            self.features(self.data[:-100])
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # a list of remarks gets it in place of the warning
            self.features(self.data[:-100], remarks=remarks)
            self.features([self.data[:-100]], remarks=[])
        self.assertEqual([(one["index"], one["status"]) for one in remarks], [(0, "ok")])
        self.assertRegex(remarks[0]["reason"], "^audio: decode: short: the header promises")
        with self.assertRaisesRegex(melflow.RunError, '^audio: decode: short: .* more than a tenth \\(truncated="keep" uses'):
            self.features(self.data[:len(self.data) // 2])

    def test_many_threads_at_once(self):
        recordings = [noise(3000 + 700 * i, i) for i in range(8)]
        expected = [self.features(one, RATE) for one in recordings]
        files = [wav(one) for one in recordings]
        wrong, ready = [], threading.Barrier(4)

        def call(first):
            ready.wait()
            for i in range(40):
                k = (first + i) % len(files)
                if not np.array_equal(self.features(files[k]), expected[k]):
                    wrong.append(k)

        threads = [threading.Thread(target=call, args=(i,)) for i in range(4)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        self.assertEqual(wrong, [])

    @unittest.skipUnless("fork" in multiprocessing.get_all_start_methods(), "there is no fork")
    def test_after_a_fork(self):
        features = melflow.Features(**OPTIONS, workers=2)
        features([self.data, self.data])  # has threads, which the other process has not
        child = os.fork()
        if child == 0:
            ok = False
            try:
                made = [features(self.data), *features([self.data] * 3), asyncio.run(features.acall(self.data))]
                ok = all(np.array_equal(one, self.rows) for one in made)
            finally:
                os._exit(0 if ok else 1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)

    def test_from_coroutines(self):
        features = melflow.Features(**OPTIONS, workers=2)

        async def calls():
            before = set(threading.enumerate())
            made = await asyncio.gather(*(features.acall(self.data) for _ in range(20)))
            self.assertLessEqual(len(set(threading.enumerate()) - before), 2)
            made += await features.acall([self.data, self.path])
            made.append(await features.acall({"array": self.samples, "sampling_rate": RATE}))
            out = np.zeros_like(self.rows)
            self.assertTrue(np.shares_memory(await features.acall(self.data, out=out), out))
            for rows in [*made, out]:
                np.testing.assert_array_equal(rows, self.rows)
            rows, lengths = await features.acall([self.data, self.data], padded=True)
            self.assertEqual((rows.shape, lengths.tolist()), ((2, *self.rows.shape), [len(self.rows)] * 2))
            self.assertEqual(await features.acall([]), [])
            remarks = []
            with self.assertWarnsRegex(UserWarning, "^audio: decode: short") as said:
                await features.acall(self.data[:-100])
            await features.acall(self.data[:-100], remarks=remarks)
            self.assertEqual((said.filename, len(remarks)), (__file__, 1))
            for error, what, audio, more in [
                (melflow.RunError, "^audio: decode: is not an audio file", b"abc" * 100, {}),
                (melflow.RunError, r"^1 of 2 recordings gave no rows:\n  \[1\] audio: read: empty file", [self.data, b""], {}),
                (TypeError, "^an array needs sample_rate", self.samples, {}),
                (TypeError, "^an array needs sample_rate", [self.data, self.samples], {}),
                (TimeoutError, "not ended by its deadline, 0 s", self.data, dict(deadline=0)),
                (TimeoutError, "not ended by its deadline, 0.02 s", self.hours, dict(deadline=0.02)),
                (TimeoutError, "not ended by its deadline, 0.02 s", self.hours, dict(deadline=0.02, out=out)),
                (melflow.RunError, "is longer than max_seconds", self.hours, dict(max_seconds=60)),
            ]:
                with self.subTest(what), self.assertRaisesRegex(error, what):
                    await features.acall(audio, **more)

        asyncio.run(calls())

    def test_a_call_that_is_cancelled_ends(self):
        features = melflow.Features(**OPTIONS, workers=1)

        async def calls():
            for out in (None, np.zeros((10, 20), np.float32)):
                begun = threading.Event()

                class File(io.BytesIO):
                    def read(self, *words):
                        begun.set()
                        return super().read(*words)

                long = asyncio.create_task(features.acall(File(self.hours), out=out))
                waiting = asyncio.create_task(features.acall(self.hours))
                while not begun.is_set():
                    await asyncio.sleep(0)
                for one in (waiting, long):
                    one.cancel()
                    with self.assertRaises(asyncio.CancelledError):
                        await one
                np.testing.assert_array_equal(await features.acall(self.data), self.rows)

        asyncio.run(calls())

    def test_odd_recordings_have_the_verdict_of_their_files(self):
        folder = os.path.join(self.folder.name, "odd")
        os.mkdir(folder)
        some = {name: (make, ending, kinds[1:2]) for name, (make, ending, kinds) in odd_recordings.CONTAINERS.items()}
        with mock.patch.object(odd_recordings, "CONTAINERS", some), mock.patch("sys.stderr", io.StringIO()), \
                mock.patch.object(odd_recordings, "ENCODED", dict(list(odd_recordings.ENCODED.items())[::3])):
            odd_recordings.write_files(pathlib.Path(folder), odd_recordings.random.Random(1))
        graph = melflow.Graph()
        graph.file_list(root=folder).disk_read().decode(downmix=1).segment().samples().hdf5_write(path=os.path.join(self.folder.name, "odd.h5"))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            report = graph.run()
        written = melflow.open(os.path.join(self.folder.name, "odd.h5"))
        told = {one["path"]: (one["status"], f"{one['stage']}: {one['reason']}") for one in report["remarks"]}
        graph = melflow.Graph()
        graph.file_list(root=folder).disk_read().decode(downmix=1).segment().samples().batches()
        features = melflow.Features(graph)
        numbers = {"ok": 0, "failed": 0, "skipped": 0}
        for i, path in enumerate(written.path):
            status, reason = told.get(path, ("ok", ""))
            numbers[status] += 1
            with open(os.path.join(folder, path), "rb") as file:
                data = file.read()
            with self.subTest(path), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                remarks = []
                if status == "ok":
                    np.testing.assert_array_equal(features(data, remarks=remarks), written.recording(i))
                    self.assertEqual([one["reason"] for one in remarks], ["audio: " + with_python_names(reason)] if reason else [])
                else:
                    with self.assertRaisesRegex(melflow.RunError, "^" + re.escape("audio: " + with_python_names(reason)) + "$"):
                        features(data)
        self.assertGreater(min(numbers["ok"], numbers["failed"]), 50)


def with_python_names(reason):
    return reason.replace("truncated: keep", 'truncated="keep"')


if __name__ == "__main__":
    unittest.main()
