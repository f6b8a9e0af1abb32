"""melflow.stream beside the rows of whole recordings."""

import json
import threading
import unittest
import warnings

import melflow
import numpy as np
from melflow.stage_methods import stages

import stream_front_ends as fronts


def bits(array):
    return array.shape, array.tobytes()


class StreamsTest(unittest.TestCase):
    def setUp(self):
        hidden = warnings.catch_warnings()
        hidden.__enter__()
        self.addCleanup(hidden.__exit__, None, None, None)
        warnings.simplefilter("ignore", UserWarning)  # of plans

    def test_any_pieces_give_the_bits_of_the_whole_recording(self):
        random = np.random.default_rng(1)
        for number, (name, text) in enumerate(fronts.all_pipelines().items()):
            features = melflow.Features(text)
            for rate in (fronts.RATES[number % 6], fronts.RATES[(number + 3) % 6]):
                samples = fronts.recording(random, random.uniform(1, 4), rate)
                whole = features(samples, rate)
                stream = melflow.stream(text, sample_rate=rate)
                self.assertEqual(stream.fingerprint, features.fingerprint)
                for _ in range(2):
                    with self.subTest(name, rate=rate):
                        self.assertEqual(bits(fronts.streamed(stream, samples, random)), bits(whole))

    def test_options_are_those_of_features(self):
        samples = fronts.recording(np.random.default_rng(2), 1, 16000)
        for options in ({"preset": "kaldi"}, {"n_mels": 40, "n_fft": 512, "hop": "10ms"}):
            stream = melflow.stream(sample_rate="16kHz", **options)
            rows = np.concatenate([stream.push(samples[:5000]), stream.push(samples[5000:]), stream.finish()])
            self.assertEqual(bits(rows), bits(melflow.features(samples, 16000, **options)))
        self.assertEqual(melflow.stream(preset="hifigan", sample_rate=48000).columns, 80)
        after = [{"stage": "mfcc"}, {"stage": "deltas"}, {"stage": "stack", "frames": 2}]
        stream = melflow.stream(preset="kaldi", sample_rate=16000, after=after)
        rows = np.concatenate([stream.push(samples), stream.finish()])
        self.assertEqual(bits(rows), bits(melflow.features(samples, 16000, preset="kaldi", after=after)))
        with self.assertRaisesRegex(TypeError, "after is a list of nodes"):
            melflow.stream(preset="kaldi", sample_rate=16000, after={"stage": "mfcc"})
        narrow = melflow.stream(sample_rate=48000, resample=8000, n_mels=23)
        self.assertEqual(len(narrow.push(np.zeros(48000, np.int16))) + len(narrow.finish()), 8000 // 200 + 1)

    def test_every_length_to_the_third_window_can_be_finished(self):
        random = np.random.default_rng(3)
        samples = fronts.recording(random, 1, 16000)
        for text in (fronts.pipeline({"preset": "kaldi"}, []), fronts.all_pipelines()["funasr lfr 7/6"]):
            features, stream = melflow.Features(text), melflow.stream(text, sample_rate=16000)
            for n in [*range(0, 1300, 37), 399, 400, 401, 559, 560]:
                stream.reset()
                rows = np.concatenate([stream.push(samples[:n]), stream.finish()])
                try:
                    whole = features(samples[:n], 16000)
                except (melflow.RunError, ValueError):  # shorter than a frame; no samples
                    self.assertEqual(len(rows), 0)
                else:
                    self.assertEqual(bits(rows), bits(whole))

    def test_what_needs_the_whole_recording_is_refused_by_name_or_waits_for_the_end(self):
        refused = {"whisper": "top_db", "whisper_large_v3": "top_db", "nemo": "normalize", "speechbrain": "top_db"}
        loud_first = np.concatenate([np.ones(800, np.int16) * 30000, np.ones(31200, np.int16) * 10])
        for preset in stages()["mel"]["properties"]["preset"]["anyOf"][0]["enum"]:
            options = {"preset": preset, "sample_rate": 16000}
            if preset not in refused:
                with self.subTest(preset):
                    try:
                        self.assertGreater(melflow.stream(**options).delay.samples, 0)
                    except melflow.RunError as error:
                        self.assertRegex(str(error), "needs the whole recording|is for whole recordings|known at its end")
                continue
            with self.subTest(preset), self.assertRaisesRegex(melflow.RunError, rf"{refused[preset]} needs the whole recording; write "):
                melflow.stream(**options)
            stream = melflow.stream(**options, finish_only=True)
            self.assertIsNone(stream.delay)
            self.assertEqual([len(stream.push(loud_first[:9000])), len(stream.push(loud_first[9000:]))], [0, 0])
            self.assertEqual(bits(stream.finish()), bits(melflow.features(loud_first, **options)))
        # Not by values: with the loudest frame first, rows of a part are those of the whole.
        whole = melflow.features(loud_first, 16000, preset="whisper")
        self.assertEqual(bits(melflow.features(loud_first[:16000], 16000, preset="whisper")[:90]), bits(whole[:90]))
        for options, name in (({"ref": "max", "log": "db"}, "ref"), ({"normalize": "all_features"}, "normalize")):
            with self.assertRaisesRegex(melflow.RunError, f"{name} needs the whole recording"):
                melflow.stream(sample_rate=16000, **options)

    def test_stages_that_cannot_be_in_a_stream_are_named(self):
        def refusal(rate=16000, **changes):
            graph = json.loads(fronts.pipeline({"preset": "kaldi"}, []))
            for node, options in changes.items():
                graph["graph"].setdefault(node, {}).update(options)
            with self.assertRaises(melflow.RunError) as caught:
                melflow.stream(graph, sample_rate=rate)
            return str(caught.exception)

        self.assertIn("segment.length: a row is a window", refusal(segment={"length": "1s"}))
        self.assertIn("segment.min_length: whether", refusal(segment={"min_length": "1s"}))
        self.assertIn("decode.fit: the length", refusal(decode={"fit": "1s"}))
        self.assertIn("trim: the stage trim_silence is for whole recordings",
                      refusal(trim={"stage": "trim_silence", "from": "resample", "top_db": 60}, segment={"from": "trim"}))
        text = json.loads(fronts.pipeline({"preset": "kaldi"}, []))
        del text["graph"]["resample"]
        text["graph"]["segment"]["from"] = "decode"
        with self.assertRaisesRegex(melflow.RunError, "mel: the stream is sampled at 8000 Hz, mel.sample_rate is 16000"):
            melflow.stream(text, sample_rate=8000)

    def test_several_streams_in_one_call(self):
        random = np.random.default_rng(4)
        first = melflow.stream(preset="kaldi", sample_rate=16000)
        streams = [first, *(first.another() for _ in range(20)), melflow.stream(preset="kaldi", sample_rate=16000)]
        samples = random.integers(-9000, 9000, (len(streams), 16000)).astype(np.int16)
        rows = [[] for _ in streams]
        for at in range(0, 16000, 1600):  # as an array, and as pieces of different lengths
            cut = at + 800
            for got, of in zip(melflow.push(streams, samples[:, at:cut]), rows):
                of.append(got)
            pieces = [samples[i, cut - (i % 3 == 1) * 0:cut + 800] for i in range(len(streams))]
            for got, of in zip(melflow.push(streams, pieces), rows):
                of.append(got)
        for stream, x, of in zip(streams, samples, rows):
            whole = melflow.features(x, 16000, preset="kaldi")
            self.assertEqual(bits(np.concatenate([*of, stream.finish()])), bits(whole))
        self.assertEqual(melflow.push([], []), [])
        with self.assertRaisesRegex(melflow.RunError, "it occurs twice in this call"):
            melflow.push([first.another(), *[first.another()] * 2], np.zeros((3, 10), np.float32))
        with self.assertRaisesRegex(melflow.RunError, "have one front end"):
            melflow.push([first.another(), melflow.stream(preset="ast", sample_rate=16000)], np.zeros((2, 10), np.float32))
        with self.assertRaisesRegex(ValueError, "1 arrays of samples for 2 streams"):
            melflow.push([first.another(), first.another()], [np.zeros(4, np.float32)])

    def test_one_failing_stream_does_not_take_the_rows_of_others(self):
        good, bad = (melflow.stream(preset="kaldi", sample_rate=16000) for _ in range(2))
        samples = np.zeros((2, 800), np.float32)
        samples[1, 500] = np.nan
        rows, error = melflow.push([good, bad], samples)
        self.assertEqual(len(rows), 3)
        self.assertRegex(str(error), "row 1 is not finite")
        with self.assertRaisesRegex(melflow.RunError, r"has failed \(row 1 is not finite.*reset"):
            bad.push(samples[0])
        bad.reset()
        self.assertEqual(len(bad.push(samples[0])), 3)
        good.finish()
        with self.assertRaisesRegex(melflow.RunError, "has ended; reset"):
            good.push(samples[0])

    def test_wrong_samples(self):
        stream = melflow.stream(preset="kaldi", sample_rate=16000)
        for wrong, message in ((np.zeros((2, 3)), "one axis"), (np.zeros(3, np.int32), "these are int32")):
            with self.assertRaisesRegex(ValueError, message):
                stream.push(wrong)
        self.assertEqual(stream.push([]).shape, (0, 23))
        with self.assertRaisesRegex(TypeError, "its own options"):
            melflow.stream({"graph": {}}, sample_rate=16000, n_mels=3)

    def test_rows_are_out_when_the_delay_says(self):
        random = np.random.default_rng(5)
        for name, text in fronts.all_pipelines().items():
            for rate in (16000, 44100):
                stream = melflow.stream(text, sample_rate=rate)
                hop = melflow.Features(text)._chain.frame_seconds * rate
                samples = fronts.recording(random, 4.5, rate)
                rows = at = 0
                while at < len(samples):
                    n = int(random.integers(1, 3000))
                    rows += len(stream.push(samples[at:at + n]))
                    at = min(at + n, len(samples))
                    due = int(np.ceil((at - stream.delay.samples) / hop))  # rows t with t * hop + delay <= at
                    with self.subTest(name, rate=rate, at=at):
                        self.assertGreaterEqual(rows, due)
                self.assertAlmostEqual(stream.delay.seconds, stream.delay.samples / rate)

    def test_streams_in_threads(self):
        samples = fronts.recording(np.random.default_rng(6), 2, 48000)
        whole = melflow.Features(fronts.pipeline({"preset": "kaldi"}, []))(samples, 48000)
        made = [None] * 4

        def work(number):
            stream = melflow.stream(preset="kaldi", sample_rate=48000)
            made[number] = fronts.streamed(stream, samples, np.random.default_rng(number))

        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for rows in made:
            self.assertEqual(bits(rows), bits(whole))


if __name__ == "__main__":
    unittest.main()
