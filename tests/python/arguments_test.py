"""What the package says of arguments that cannot be: which one, what it got and what is allowed."""

import os
import unittest

import melflow
import numpy as np

import corpus

WRONG = {
    "whole": [True, False, np.True_, 1.5, "8", None, [1], {}, b"1", float("nan"), np.float32(1)],
    "flag": [0, 1, "yes", None, [], 1.0, np.int8(1)],
    "text": [3, 1.5, True, b"train", ["train"], {}],
    "path": [3, True, 1.5, ["a"], {}, ""],
    "dict": [3, "a", ["a"], True],
}


class ArgumentsTest(corpus.CorpusTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.yaml, cls.mel, cls.audio = cls.make("whole")
        cls.rows = {"of a pipeline": melflow.open(cls.yaml, scan=True), "of a file": melflow.open(cls.mel),
                    "of files": melflow.open({"mel": cls.mel, "audio": cls.audio})}

    def check(self, act, argument, value, allowed="."):
        with self.subTest(f"{argument}={value!r}"):
            with self.assertRaises((TypeError, ValueError, IndexError)) as raised:
                act(value)
            said = str(raised.exception)
            self.assertNotIn("incompatible function arguments", said)
            self.assertNotIn("--set", said)
            self.assertIn(argument, said)
            self.assertRegex(said, allowed)
            shown = value if isinstance(value, str) and value else repr(value)
            self.assertIn(shown[:40], said)

    def check_all(self, function, arguments, may_be_none):
        for argument, kind in arguments.items():
            for value in WRONG[kind]:
                if value is not None or not may_be_none:
                    self.check(lambda v: function(**{argument: v}), argument, value)

    def test_a_loader(self):
        make = lambda **options: melflow.Loader(self.yaml, **options)
        numbers = ["batch_size", "max_rows", "bucket", "seed", "prefetch", "workers"]
        self.check_all(make, dict.fromkeys(numbers, "whole") | dict.fromkeys(["vars", "sets"], "dict") |
                       dict(drop_last="flag", shuffle_recordings="flag", split="text", dtype="text"), True)
        self.check_all(make, dict(world_size="whole", rank="whole"), True)
        for name, value in ((n, v) for n in numbers + ["rank"] for v in (-1, 2**70)):
            self.check(lambda v, name=name: make(**{name: v}), name, value)
        for name, value, allowed in (("batch_size", 2**20 + 1, "allowed: 1 to 1048576"), ("world_size", 2**62, "or less"),
                                     ("dtype", "float63", "is not one of float32"), ("shuffle", True, "such as 4096, or False"),
                                     ("shuffle", "8", "whole number"), ("shuffle", [], "whole number"), ("split", "", "None for all")):
            self.check(lambda v, name=name: make(**{name: v}), name, value, allowed)
        for value in WRONG["path"]:
            if value != {}:
                self.check(melflow.Loader, "a pipeline is a Graph", value)
        self.check(lambda v: make().set_epoch(v), "epoch", 1.5)
        with self.assertRaisesRegex(melflow.ConfigError, "^sets: out.sise: unknown option"):
            make(sets={"out.sise": 3})
        with self.assertRaisesRegex(melflow.ConfigError, "^vars: NO: nothing in the configuration uses"):
            make(vars={"NO": 3})

    def test_batches_by_number(self):
        for name, rows in self.rows.items():
            with self.subTest(name):
                self.check_all(rows.batches, dict.fromkeys(
                    ["max_rows", "bucket", "seed", "prefetch"], "whole"), False)
                self.check_all(rows.batches, dict(batch_size="whole", workers="whole", rank="whole", world_size="whole", recordings="flag", split="text", where="dict"), True)
                self.check_all(rows.batches, dict(shuffle="flag", drop_last="flag", pack="flag"), False)
                for argument in ("batch_size", "world_size", "seed", "workers", "rank"):
                    for value in (-1, 2**62 if argument != "seed" else 2**64):
                        self.check(lambda v, a=argument: rows.batches(**{a: v}), argument, value)
                for given, lacks in (dict(rank=0), "rank is 0, and world_size is not given: .*WORLD_SIZE"), (dict(world_size=2), "and rank is not given"):
                    with self.assertRaisesRegex(ValueError, lacks):
                        rows.batches(**given)
                for value in (3, 1.5, b"float32", "float63", np.float64):
                    self.check(lambda v: rows.batches(dtype=v), "dtype", value)
                self.check(lambda v: rows.batches(normalize=v), "normalize", 1)
                self.check(lambda v: rows.batches(split=v), "split", "vall", "there are: none")
                for value in ("a", 1.5, True, None, [1]):
                    self.check(lambda v: rows[v], "the number of a", value)
                    self.check(rows.recording, "the number of a recording", value)
                self.check(rows.recording, "recording", 60, "of 60")
                np.testing.assert_equal(rows.recording(-1), rows.recording(59))

    def test_states(self):
        makers = {name: rows.batches for name, rows in self.rows.items()}
        makers["stream"] = lambda: melflow.Loader(self.yaml)
        for name, make in makers.items():
            with self.subTest(name):
                loader = make()
                state = loader.state_dict()
                kind = next(k for k in state if k not in ("epoch", "delivered"))
                for argument in ("epoch", "delivered"):
                    for value in WRONG["whole"] + [-1, 2**64]:
                        self.check(lambda v, a=argument: loader.load_state_dict({**state, a: v}), argument + " of a state", value)
                for value in (3, "a", None, [1]):
                    self.check(lambda v: loader.load_state_dict({**state, kind: v}), kind + " of a state", value)
                    self.check(loader.load_state_dict, "a state is what state_dict() gives", value)
                if name != "stream":
                    self.check(lambda v: loader.load_state_dict({**state, "delivered": v}), "delivered of a state", 10**18,
                               f"at most {loader.samples}, the samples of an epoch")
        # The number of samples of a stream is known only at its end.
        loader = melflow.Loader(self.yaml)
        next(iter(loader))
        state = {**loader.state_dict(), "delivered": 10**18}
        loader.load_state_dict(state)
        with self.assertRaisesRegex(melflow.RunError, f"{10**18} samples of this epoch were delivered, .* has 55"):
            list(loader)

    def test_what_else_there_is(self):
        for name, values in (("workers", WRONG["whole"][:-3]), ("store", [True, 1.5, [1], "much", -1]), ("index", [3, 1.5, ["a"]])):
            for value in values:
                if value is not None:
                    self.check(lambda v, name=name: melflow.open(self.yaml, **{name: v}), name, value)
        features = melflow.Features(self.yaml)
        for value in [v for v in WRONG["whole"] if not isinstance(v, np.floating)] + [0, 2**40]:
            self.check(lambda v: features(np.zeros(800, np.int16), v), "sample_rate", value)
            self.check(lambda v: melflow.features(np.zeros(800, np.int16), v), "sample_rate", value)
        self.check(features.check, "a fingerprint is a text", 3)
        for value in WRONG["path"]:
            self.check(melflow.inspect, "path", value)
        for act in (melflow.run, melflow.update):
            self.check(lambda v: act(self.yaml, workers=v), "workers", 1.5)
            self.check(lambda v: act(self.yaml, progress=v), "progress", 1)
            with self.assertRaisesRegex(melflow.ConfigError, "^sets: out.sise: unknown option"):
                act(self.yaml, sets={"out.sise": 3})
        rows = self.rows["of a file"]
        self.check(rows.recording_of, "rows", "a")
        self.check(rows.recording_of, "rows", len(rows))
        self.check(rows.recording_of, "rows", -1)


if __name__ == "__main__":
    unittest.main()
