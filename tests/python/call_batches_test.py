"""Functions of Python that get several recordings together, or recordings block by block."""

import os
import subprocess
import sys
import textwrap
import unittest
import wave

import melflow
import numpy as np

from calls_test import CallsCase


class CallBatchesTest(CallsCase):
    def samples_of(self, name, map_node, **options):
        """Of each recording, and the report."""
        _, node = self.decoded(**options)
        rows, report = self.written(name, map_node(node).samples(sample_rate=8000))
        return [rows.recording(i).reshape(-1) for i in range(len(rows.path))], report

    def test_batches(self):
        import own

        plain, _ = self.samples_of("singly", lambda node: node)
        for options in ({"workers": 1}, {"workers": 3}, {"workers": 2, "processes": 2}):
            with self.subTest(**options):
                processes = options.pop("processes", 0)
                own.seen_shapes.clear()
                doubled, report = self.samples_of("batches", lambda node: node.map("own:of_batches", batch=8, processes=processes), **options)
                self.assertEqual(own.seen_shapes, set() if processes else {8})
                self.assertEqual([r for r in report["remarks"] if r["stage"] == "python"], [])
                for one, other in zip(doubled, plain):
                    np.testing.assert_array_equal(one, 2 * other)
        _, node = self.decoded(workers=2)
        pairs, _ = self.written("pairs", self.mel(node.map("own:of_batches", batch=4, is_many=True, gives="waveforms", grows=2)))
        _, node = self.decoded()
        expected, _ = self.written("unpaired", self.mel(node))
        for i in np.flatnonzero(expected.count)[:5]:
            self.assertEqual(len(pairs.results(i)), 2)
            np.testing.assert_array_equal(pairs.recording(i)[:expected.count[i]], expected.recording(i))
        _, node = self.decoded()
        pooled, _ = self.written("pooled_batches", self.mel(node).map("own:rows_in_batches", takes="rows", gives="rows", batch=4))
        for i in np.flatnonzero(expected.count)[:5]:
            np.testing.assert_allclose(pooled.recording(i)[0], expected.recording(i).mean(0), rtol=1e-5)

    def test_functions_that_give_their_own_memory_again(self):
        plain, _ = self.samples_of("fresh", lambda node: node)
        for options in ({"function": "own:OwnBlocks", "blocks": 1000}, {"function": "own:OwnBatches", "batch": 4},
                        {"function": "own:OwnBatches", "batch": 4, "processes": 2}):
            with self.subTest(**options):
                doubled, _ = self.samples_of("reused", lambda node: node.map(**options), workers=4)
                for one, other in zip(doubled, plain):
                    np.testing.assert_array_equal(one, 2 * other)
        for processes in (0, 2):
            both, _ = self.samples_of("own_results", lambda node: node.map("own:own_results", gives="waveforms", grows=2, processes=processes))
            for one, other in zip(both, plain):
                np.testing.assert_array_equal(one, np.concatenate([2 * other, 3 * other]))

    def test_a_list_of_results_needs_to_be_asked_for(self):
        _, report = self.samples_of("lists", lambda node: node.map(lambda samples: [samples, samples] if len(samples) < 9000 else samples))
        said = {r["reason"] for r in report["remarks"] if r["stage"] == "python"}
        self.assertEqual(len(said), 1)
        self.assertIn("the function gives 2 arrays of samples; give one, or write gives: waveforms", said.pop())

    def test_a_batch_fails_only_what_is_wrong_in_it(self):
        def told(**options):
            _, node = self.decoded(workers=2)
            rows, report = self.written("told", self.mel(node.map("own:choosy_in_batches", **options)))
            said = sorted((r["path"], r["status"], r["reason"]) for r in report["remarks"] if r["stage"] == "python")
            return [count for count in rows.count], said

        for processes in (0, 2):
            counts, said = told(batch=8, processes=processes)
            self.assertEqual({status for _, status, _ in said}, {"skipped", "failed", "ok"})
            self.assertTrue(all("own.py" in reason for _, status, reason in said if status == "failed"), said)
            self.assertEqual((counts, said), told(batch=1))
        found = []
        for processes, batch in ((0, 1), (0, 8), (2, 8)):  # recordings of one length come together
            g = melflow.Graph(workers=2)
            g.synthetic(count=100, duration="0.1s", rate="8kHz").map("own:choosy_by_content", name="f", processes=processes,
                                                                      batch=batch).discard()
            report = g.run()
            found.append((report["files"]["ok"], [(r["path"], r["status"], r["reason"].split(" (")[0]) for r in report["remarks"]]))
        self.assertEqual({reason[-1] for _, _, reason in found[0][1]}, {"0", "1", "2"})
        self.assertEqual(found[0], found[1])
        self.assertEqual(found[0], found[2])
        import own

        self.assertGreater(own.most_together, 1)
        _, report = self.written("dies_in_batches", self.mel(self.decoded()[1].map("own:dies_in_batches", batch=4, processes=2, timeout=5)))
        reasons = [r["reason"] for r in report["remarks"] if r["stage"] == "python"]
        self.assertIn("the process of the function ended by signal 9", reasons)
        self.assertGreater(report["files"]["ok"], 20)

    def test_a_batch_gives_one_result_for_each(self):
        for function, said in [("own:one_of_a_batch", r"the function gives \d+ results for a batch of 4; give one for each"),
                               ("own:total_of_a_batch", "the function gives .* for a batch of 4; give one for each")]:
            with self.subTest(function), self.assertRaisesRegex(melflow.RunError, said):
                _, node = self.decoded()
                self.mel(node.map(function, batch=4)).discard().graph.run()

    def test_python_ends_while_a_batch_waits(self):
        code = textwrap.dedent("""
            import melflow, threading
            seen = threading.Event()
            def slow(batch):
                seen.set()
                return batch
            g = melflow.Graph()
            g.synthetic(count=500000, rate="8kHz").map(slow, batch=4).mel(sample_rate=8000, n_fft=256, hop=80, n_mels=20).discard()
            threading.Thread(target=g.run, daemon=True).start()
            assert seen.wait(60)
            """)
        ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
        self.assertEqual((ended.stdout, ended.stderr, ended.returncode), ("", "", 0))

    def test_blocks_of_recordings_of_any_length(self):
        plain, _ = self.samples_of("plain_samples", lambda node: node)
        sizes = {len(samples) for samples in plain}
        self.assertTrue(any(size > 16384 for size in sizes) and any(size % 1000 for size in sizes))
        for by, options in ((300, {}), (1000, {"workers": 1})):
            with self.subTest(by, **options):
                delayed, _ = self.samples_of("delayed", lambda node: node.map("own:Delayed", blocks=1000, by=by), **options)
                for one, other in zip(delayed, plain):
                    expected = np.concatenate([np.zeros(by, np.float32), other]) if len(other) else other
                    np.testing.assert_array_equal(one, expected)
        late, _ = self.samples_of("late_blocks", lambda node: node.map("own:Late", blocks=20000))
        for one, other in zip(late, plain):
            np.testing.assert_array_equal(one, other)
        louder, _ = self.samples_of("louder_blocks", lambda node: node.map("own:Louder", blocks=777))
        for one, other in zip(louder, plain):
            np.testing.assert_array_equal(one, 2 * other)

        def in_pieces(options, **of_graph):
            g = melflow.Graph(workers=2, **of_graph)
            node = g.file_list(root=self.root).disk_read(whole="64KiB").decode(truncated="fail", block="64KiB").map(**options)
            path = os.path.join(self.folder.name, "pieces.h5")
            node.samples(sample_rate=8000).hdf5_write(path=path, overwrite=True)
            return g.run(), melflow.open(path)

        # 64 KiB of a recording at a time, in memory that is too little for 16 MiB of it.
        report, rows = in_pieces({"function": "own:Delayed", "blocks": 1000, "by": 300}, memory={"host": "24MiB"})
        python = next(stage for stage in report["stages"] if stage["name"] == "python")
        self.assertGreater(python["items_in"], len(plain))
        for i, samples in enumerate(plain):
            expected = np.concatenate([np.zeros(300, np.float32), samples]) if len(samples) else samples
            np.testing.assert_array_equal(rows.recording(i).reshape(-1), expected)
        _, rows = in_pieces({"function": "own:Late", "blocks": 20000})  # which gives 20000 samples more than come in a piece
        for i, samples in enumerate(plain):
            np.testing.assert_array_equal(rows.recording(i).reshape(-1), samples)
        # WAV files are as long as their size tells, not as long as a block of the function may be.
        report, _ = in_pieces({"function": "own:louder"}, memory={"host": "64MiB"})
        self.assertIn("64MiB is enough for short files only", "\n".join(report["warnings"]))

    def test_what_lies_in_two_blocks_of_a_recording_comes_whole(self):
        # Stretches of 1.5 s, and pauses of 0.25 s, in blocks of 4.1 s: a function takes up to 2.05 s.
        rate, stretch, pause = 8000, 12000, 2000
        samples = np.random.default_rng(5).integers(-9000, 9000, 60 * rate).astype(np.int16)
        samples[np.arange(len(samples)) % (stretch + pause) >= stretch] = 0
        root = os.path.join(self.folder.name, "long")
        os.makedirs(root)
        with wave.open(os.path.join(root, "long.wav"), "wb") as out:
            out.setparams((1, 2, rate, 0, "NONE", ""))
            out.writeframes(samples.tobytes())
        spans = [(at, min(at + stretch, len(samples))) for at in range(0, len(samples), stretch + pause)]
        spans += [(at, at + stretch) for at in range(500, 20 * rate, 7000)]  # which overlap
        spans += [(5000, 5000 + 16500), (len(samples) - 15000, len(samples))]
        spans.sort()
        manifest = os.path.join(root, "spans.csv")
        with open(manifest, "w") as file:
            file.write("path,start,end\n" + "".join(f"long.wav,{begin},{end}\n" for begin, end in spans))

        def rows_of(marks, *functions, block="64KiB"):
            g = melflow.Graph(workers=2)
            listed = {} if marks else {"manifest": manifest, "utterances": {"unit": "samples"}}
            node = g.file_list(root=root, **listed).disk_read(whole="64KiB").decode(block="64KiB")
            node = node.mark_sound(keep=0, silence="0.1s", frame="16ms", hop="8ms").segments_by() if marks else node
            node = node.samples(sample_rate=rate)
            for function in functions:
                node = node.map(function, takes="rows", gives="rows", block=block)
            return self.written("in_blocks", node)

        for marks in (False, True):
            with self.subTest(marks=marks):
                lengths = []
                plain, _ = rows_of(marks)
                plain = [plain.recording(i) for i in range(len(plain.path))]
                called, report = rows_of(marks, lambda rows: lengths.append(len(rows)) or rows)
                failed = [r["path"] for r in report["remarks"] if "longer than what the function takes" in r["reason"]]
                # Of the spans, one is longer than the function takes.
                self.assertEqual(failed, [] if marks else [called.path[spans.index((5000, 21500))]])
                self.assertEqual(len(lengths), len(spans) - 1 if not marks else 35)
                for i, expected in enumerate(plain):
                    if called.path[i] not in failed:
                        np.testing.assert_array_equal(called.recording(i), expected)

    def test_a_recording_that_fails_in_a_later_block_fails_alone(self):
        plain, _ = self.samples_of("plain_samples", lambda node: node)
        some, report = self.samples_of("some", lambda node: node.map("own:Delayed", blocks=1000, by=0, fails_at=50))
        is_long = [len(samples) > 49000 for samples in plain]
        self.assertIn(True, is_long)
        for i, (one, other) in enumerate(zip(some, plain)):
            np.testing.assert_array_equal(one, other[:0] if is_long[i] else other)
        reasons = [r["reason"] for r in report["remarks"] if r["stage"] == "python"]
        self.assertEqual(len(reasons), sum(is_long))
        self.assertRegex(reasons[0], r"ValueError: fails at block 50 \(.*own.py:\d+ in __call__\)")

    def test_what_blocks_cannot_have(self):
        for call, options, said in [
            ("own:louder", {}, "own:louder: is no class; with blocks, an object of a class is made for each recording"),
            ("own:Louder", {"batch": 4}, "python.batch: and blocks are both given; remove one"),
            ("own:Louder", {"processes": 2}, "python.processes: is for functions that get whole recordings"),
            ("own:Louder", {"gives": "waveforms"}, "python.gives: with blocks a function gives samples"),
        ]:
            with self.subTest(said), self.assertRaisesRegex(melflow.ConfigError, said):
                _, node = self.decoded()
                node.map(call, blocks=1000, **options).samples().discard().graph.validate()
        with self.assertRaisesRegex(melflow.ConfigError, "python.blocks: is for samples; with takes: rows, remove it"):
            _, node = self.decoded()
            self.mel(node).map("own:Louder", takes="rows", gives="rows", blocks=1000).discard().graph.validate()
        g = melflow.Graph()
        g.synthetic(count=1, duration="60s", rate="8kHz").map("own:Hoarder", blocks=1000).samples().discard()
        with self.assertRaisesRegex(melflow.RunError, "gives .* times the values that it gets, and grows is 1; raise it"):
            g.run()


if __name__ == "__main__":
    unittest.main()
