"""docs/trainers.md: stopped at any step and resumed, a training sees the same batches and losses as undisturbed. Each part needs its trainer."""

import contextlib
import importlib.util
import io
import json
import logging
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import unittest
import warnings

import numpy as np

import melflow
from melflow.torch_dataset import as_torch

import corpus

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/trainers.md")
EPOCHS = 3


def needs(*names):
    missing = [name for name in names if importlib.util.find_spec(name) is None]
    return unittest.skipIf(missing, f"{', '.join(missing)}: not installed")


def block(heading, number=0):
    """A block of code of a section of the page."""
    with open(PAGE, encoding="utf-8") as page:
        section = re.split(rf"(?m)^## {heading}.*$", page.read())[1].split("\n## ")[0]
    return re.findall(r"(?s)```python\n(.*?)```", section)[number]


class Stopped(Exception):
    pass


def net():
    """A model whose losses depend on all batches so far, and what it saw: (samples, loss) of each step."""
    import torch

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            torch.set_num_threads(1)  # the order of sums
            self.layer = torch.nn.Linear(20, 3)
            self.seen = []

        def forward(self, x, labels, where=None):
            loss = torch.nn.functional.cross_entropy(self.layer(x.mean(1) / 20), labels)
            if self.training:
                self.seen.append((where, loss.item()))
            return {"loss": loss}

    return Net()


def convert(batch):
    import torch
    where = tuple(zip(batch["file"].tolist(), batch["offset"].tolist()))
    return {"x": torch.from_numpy(batch["mel"]), "labels": torch.from_numpy(batch["label"]).long(), "where": where}


class TrainersTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        case = dict(segment=", length: 4000, hop: 4000", chain=corpus.MEL.replace("  rows:", "  mel:"))

        def pipeline(sink):
            return corpus.pipeline(cls.root, sink, **case).replace("from: rows", "from: mel")

        cls.root = os.path.join(cls.folder, "audio")
        corpus.make_corpus(cls.root)
        cls.yaml = os.path.join(cls.folder, "train.yaml")
        with open(cls.yaml, "w", encoding="utf-8") as out:
            out.write(pipeline("stage: batches"))
        cls.file = corpus.write_rows(cls.folder, "rows", pipeline(f"stage: hdf5_write, path: {cls.folder}/rows.h5"))
        warnings.simplefilter("ignore")

    def by_number(self):
        return melflow.open(self.file).batches(64, seed=1)

    def from_audio(self):
        return melflow.open(self.yaml).batches(64, seed=1, workers=2)

    def stream(self):
        return melflow.Loader(self.yaml, batch_size=64, shuffle=500, seed=1)

    def check(self, train, stops=20):
        """train(stop, checkpoint): what is seen until the step `stop`, at which a checkpoint is made, after that checkpoint."""
        whole = train(None, None)
        self.assertGreater(len(whole), 2 * EPOCHS)
        self.assertEqual(len({where for where, _ in whole}), len(whole))  # no epoch is like another
        per_epoch = len(whole) // EPOCHS
        ends = [per_epoch, 2 * per_epoch]
        others = [step for step in range(1, len(whole)) if step not in ends]
        for stop in ends + random.Random(1).sample(others, min(stops, len(others))):
            with self.subTest(stop=stop, steps=len(whole)), tempfile.TemporaryDirectory(dir=self.folder) as checkpoint:
                before = train(stop, checkpoint)
                self.assertEqual(len(before), stop)
                self.assertEqual(before + train(None, checkpoint), whole)

    # ---- PyTorch Lightning

    def lightning(self, make, at_ends=False, **options):
        """at_ends: checkpoints are made when an epoch has ended, as Lightning makes its own."""
        import lightning
        import torch
        logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)

        class Module(lightning.LightningModule):
            def __init__(self, stop, path):
                super().__init__()
                self.net, self.stop, self.path = net(), stop, path

            def on_before_batch_transfer(self, batch, number):
                return convert(batch)

            def training_step(self, batch, number):
                loss = self.net(**batch)["loss"]
                self.log("loss", loss, on_epoch=True)
                return loss

            def on_train_batch_end(self, *_):
                if self.trainer.global_step == self.stop and not at_ends:
                    self.trainer.save_checkpoint(self.path)
                    raise Stopped

            def on_train_epoch_end(self):
                if self.trainer.global_step == self.stop:
                    self.trainer.save_checkpoint(self.path)
                    raise Stopped

            def validation_step(self, batch, number):
                self.log("val", self.net(**batch)["loss"])

            def configure_optimizers(self):
                return torch.optim.SGD(self.parameters(), 0.1)

        def train(stop, checkpoint):
            path = os.path.join(checkpoint, "last.ckpt") if checkpoint else None
            module = Module(stop, path)
            loader = make()
            known = {"lightning": lightning}
            exec(compile(block("PyTorch Lightning").split("\ntrainer")[0], "docs/trainers.md", "exec"), known)
            trainer = lightning.Trainer(max_epochs=EPOCHS, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
                                        enable_model_summary=False, callbacks=[known["KeepLoader"](loader)], **options)
            validation = melflow.open(self.file).batches(200, shuffle=False)
            with contextlib.redirect_stderr(io.StringIO()), contextlib.suppress(Stopped):
                trainer.fit(module, loader, validation, ckpt_path=None if stop else path)
            return module.net.seen

        return train

    @needs("torch", "lightning")
    def test_lightning_by_number(self):
        self.check(self.lightning(self.by_number))

    @needs("torch", "lightning")
    def test_lightning_from_audio_by_number(self):
        self.check(self.lightning(lambda: self.from_audio().as_torch()), 5)

    @needs("torch", "lightning")
    def test_lightning_with_a_stream(self):
        self.check(self.lightning(lambda: self.stream().as_torch(ahead=1)))

    @needs("torch", "lightning")
    def test_lightning_from_the_end_of_an_epoch(self):
        for make in (self.by_number, lambda: self.stream().as_torch(ahead=1), lambda: self.stream().as_torch(steps=4)):
            self.check(self.lightning(make, at_ends=True), 0)

    @needs("torch", "lightning")
    def test_lightning_with_epochs_of_some_steps(self):
        for steps in (3, 7):
            with self.subTest(steps=steps):
                self.check(self.lightning(lambda: self.stream().as_torch(steps=steps)), 6)
        self.check(self.lightning(lambda: self.by_number().as_torch(steps=4), val_check_interval=2), 6)

    # ---- Transformers

    def transformers(self, make, name, number, page, **options):
        """The trainer of the page called `name`."""
        import torch
        import transformers

        class Stop(transformers.TrainerCallback):
            def __init__(self, stop):
                self.stop = stop

            def on_step_end(self, arguments, state, control, **_):
                if state.global_step == self.stop:
                    control.should_save = control.should_training_stop = True
                return control

        def train(stop, checkpoint):
            found = os.path.join(checkpoint, f"checkpoint-{max(map(int, (d[11:] for d in os.listdir(checkpoint))))}") if checkpoint and not stop else None
            arguments = transformers.TrainingArguments(
                checkpoint or self.folder, num_train_epochs=EPOCHS, save_strategy="no", logging_strategy="no", report_to=[], use_cpu=True, disable_tqdm=True,
                learning_rate=0.1, **options)
            model = net()
            known = {"torch": torch, "transformers": transformers, "model": model, "arguments": arguments, "checkpoint": found, name: make(), "convert": convert}
            code = block("Transformers", page)
            before = code[:code.index("trainer.train(")]
            exec(compile(before, "docs/trainers.md", "exec"), known)
            known["trainer"].add_callback(Stop(stop))
            known["trainer"].train(resume_from_checkpoint=found)
            return model.seen

        return train

    @needs("torch", "transformers", "accelerate")
    def test_transformers_by_number(self):
        self.check(self.transformers(self.by_number, "batches", 0, 0))

    @needs("torch", "transformers", "accelerate")
    def test_transformers_with_a_stream(self):
        class Of:  # as_torch(steps=1000) of the page, with fewer steps
            def __init__(self, loader):
                self.as_torch = lambda steps: loader.as_torch(steps=6)

        self.check(self.transformers(lambda: Of(self.stream()), "stream", 1, 1))

    # ---- headroom

    def check_headroom(self, train):
        """train(headroom) gives what was seen in one go through it."""
        h = self.by_number().headroom(7)
        self.assertEqual(len(h), 14)
        seen = [where for where, _ in train(h)]
        self.assertEqual(seen[:7], seen[7:])
        self.assertEqual(len(set(seen)), 7)
        self.assertIn(h.cause, ("program", "loader", "both"))

    @needs("torch", "transformers", "accelerate")
    def test_headroom_in_transformers(self):
        self.check_headroom(lambda h: self.transformers(lambda: h, "batches", 0, 0, max_steps=14)(None, None))

    @needs("torch", "lightning")
    def test_headroom_in_lightning(self):
        self.check_headroom(lambda h: self.lightning(lambda: h, max_steps=14)(None, None))

    # ---- Accelerate

    @needs("torch", "accelerate")
    def test_accelerate(self):
        import accelerate
        import torch

        def training(make):
            def train(stop, checkpoint):
                model, accelerator = net(), accelerate.Accelerator(cpu=True)
                known = {"accelerator": accelerator, "model": model, "optimizer": torch.optim.SGD(model.parameters(), 0.1), "batches": make(),
                         "checkpoint": None if stop else checkpoint}
                seen = model.seen

                def step(batch):
                    known["optimizer"].zero_grad()
                    accelerator.backward(known["model"](**convert(batch))["loss"])
                    known["optimizer"].step()
                    if len(seen) == stop:
                        accelerator.save_state(checkpoint)
                        raise Stopped

                code = block("Accelerate").replace("...  ", "step(batch)  ")
                with contextlib.suppress(Stopped):
                    exec(compile(code, "docs/trainers.md", "exec"), {**known, "step": step})
                return seen
            return train

        self.check(training(self.by_number))
        self.check(training(self.stream), 8)

    # ---- Keras

    @needs("torch", "keras")
    def test_keras_at_the_ends_of_epochs(self):
        os.environ.setdefault("KERAS_BACKEND", "torch")
        import keras

        losses = []
        code = block("Keras")

        def model():
            keras.utils.set_random_seed(0)
            layers = [keras.layers.Input((None, 20)), keras.layers.GlobalAveragePooling1D(), keras.layers.Rescaling(0.05), keras.layers.Dense(3)]
            made = keras.Sequential(layers)
            made.compile(keras.optimizers.SGD(0.1), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
            fit = made.fit
            keep = keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: losses.append((epoch, logs["loss"], made.get_weights())))
            made.fit = lambda *given, **options: fit(*given, callbacks=[keep], verbose=0, **options)
            return made

        exec(compile(code, "docs/trainers.md", "exec"), {"batches": self.by_number(), "model": model(), "first": 0})
        whole = losses[:]
        self.assertEqual([epoch for epoch, *_ in whole], [0, 1, 2])
        for first in (1, 2):
            losses.clear()
            resumed = model()
            resumed.set_weights(whole[first - 1][2])
            exec(compile(code, "docs/trainers.md", "exec"), {"batches": self.by_number(), "model": resumed, "first": first})
            self.assertEqual([loss[:2] for loss in losses], [loss[:2] for loss in whole[first:]])

    # ---- as_torch

    @needs("torch")
    def test_numbers_of_epochs_that_trainers_give(self):
        def first(dataset):
            batch = next(iter(dataset))
            return tuple(batch["file"].tolist())

        loader = self.by_number()
        orders = []
        for epoch in range(4):
            loader.set_epoch(epoch)
            orders.append(first(loader.as_torch()))
        self.assertEqual(len(set(orders)), 4)
        dataset = loader.as_torch()
        dataset.set_epoch(2)
        self.assertEqual(first(dataset), orders[2])
        loader.set_epoch(2)
        state = loader.state_dict()
        dataset.load_state_dict(state)
        dataset.set_epoch(0)  # a trainer that counts from its own beginning
        self.assertEqual(first(dataset), orders[2])
        dataset.set_epoch(1)
        self.assertEqual(first(dataset), orders[3])
        dataset.load_state_dict(state)
        dataset.set_epoch(3)  # one that ended that epoch early
        self.assertEqual(first(dataset), orders[3])

    @needs("torch")
    def test_wrong_uses(self):
        loader = self.by_number()
        dataset = loader.as_torch(steps=2)
        self.assertEqual(len(dataset), 2)
        with self.assertRaisesRegex(ValueError, "epochs of 2 steps follow each other, so the next one is 0, not 3; .*load_state_dict"):
            dataset.set_epoch(3)
        with self.assertRaisesRegex(ValueError, "the state is of epochs of 2 steps, and here they have 3"):
            loader.as_torch(steps=3).load_state_dict(dataset.state_dict())
        with self.assertRaisesRegex(RuntimeError, "an epoch of the loader has no batch"):
            next(iter(as_torch([], steps=2)))
        for options, what in (({"steps": 0}, "steps"), ({"ahead": -1}, "ahead"), ({"ahead": 65}, "ahead"), ({"steps": "2"}, "steps")):
            with self.subTest(options), self.assertRaisesRegex((ValueError, TypeError), what):
                loader.as_torch(**options)

    # ---- samples for DataLoader

    @needs("torch")
    def test_samples_with_workers_and_labels(self):
        import torch
        rows = melflow.open(self.file)
        samples = rows.samples()
        loaded = torch.utils.data.DataLoader(samples, batch_size=50, num_workers=2, multiprocessing_context="spawn")
        taken = list(loaded)
        batches = list(rows.batches(50, shuffle=False))
        self.assertEqual(len(taken), len(batches))
        for one, other in zip(taken, batches):
            np.testing.assert_array_equal(one["mel"].numpy(), other["mel"])
            self.assertEqual(one["label"].tolist(), other["label"].tolist())
            self.assertEqual(one["path"], other["path"])
        whole = rows.samples(recordings=True, where={"label": "ant"})
        batch = next(iter(torch.utils.data.DataLoader(whole, batch_size=4, collate_fn=whole.pad)))
        other = next(iter(rows.batches(4, shuffle=False, recordings=True, where={"label": "ant"})))
        np.testing.assert_array_equal(batch["mel"].numpy(), other["mel"])
        self.assertEqual(batch["length"].tolist(), other["length"].tolist())
        self.assertEqual(set(batch), set(other))
        self.assertRaises(IndexError, lambda: samples[len(samples)])

    # ---- two processes

    @needs("torch")
    def test_two_ranks_that_are_killed(self):
        """Files fail; the ranks are killed five times, and resume from the last checkpoint: the same losses to the last bit."""
        script = os.path.join(self.folder, "ranks.py")
        with open(script, "w", encoding="utf-8") as out:
            out.write(RANKS)

        def run(kills):
            with tempfile.TemporaryDirectory(dir=self.folder) as here:
                log = os.path.join(here, "log")
                for stop in [*kills, 0]:
                    ranks = [subprocess.Popen([sys.executable, script, self.yaml, here, str(rank), str(stop)], stderr=subprocess.PIPE)
                             for rank in range(2)]
                    said = [rank.communicate(timeout=300)[1].decode() for rank in ranks]
                    self.assertEqual([rank.returncode for rank in ranks], [-signal.SIGKILL if stop else 0] * 2, said)
                with open(log, encoding="utf-8") as lines:
                    return [json.loads(line) for line in lines]

        whole = run([])
        self.assertEqual(len({step for step, *_ in whole}), len(whole))
        kills = sorted(random.Random(2).sample(range(1, len(whole)), 5))
        last = {}
        for step, *values in run(kills):  # steps after the last checkpoint come twice, alike
            self.assertEqual(last.setdefault(step, values), values)
        self.assertEqual(last, {step: values for step, *values in whole})


    @needs("torch")
    def test_ranks_that_become_fewer_and_more(self):
        """One of three ranks is killed, and the others fail with it; training goes on with other numbers of ranks: each sample once in an epoch."""
        script = os.path.join(self.folder, "elastic.py")
        with open(script, "w", encoding="utf-8") as out:
            out.write(ELASTIC)
        rows = melflow.open(self.file)

        def train(options, every, lives):
            """Batches by epoch: those that count, of all ranks in turn. every: steps between checkpoints; lives: (number of ranks, the step at which one
            is killed, or 0)."""
            steps = []
            with tempfile.TemporaryDirectory(dir=self.folder) as here:
                for life, (ranks, stop) in enumerate(lives):
                    started = [subprocess.Popen([sys.executable, script, self.file, here, *map(str, (life, rank, ranks, stop, every)), json.dumps(options)],
                                                stderr=subprocess.PIPE) for rank in range(ranks)]
                    said = [rank.communicate(timeout=300)[1].decode() for rank in started]
                    codes = [rank.returncode for rank in started]
                    self.assertEqual(codes[-1], -signal.SIGKILL if stop else 0, said)
                    self.assertEqual(codes[:-1], [1 if stop else 0] * (ranks - 1), said)
                    with open(f"{here}/log-{life}", encoding="utf-8") as lines:
                        seen = [json.loads(line) for line in lines]
                    self.assertEqual(seen[0][0], len(steps) + 1)  # after the last checkpoint
                    steps += [line for line in seen if not stop or line[0] <= stop - stop % every]
            self.assertEqual([step for step, *_ in steps], list(range(1, len(steps) + 1)))
            epochs = [[], []]
            for _, epoch, batches in steps:
                epochs[epoch] += batches
            return epochs

        windows = {(int(f), int(o)) for batch in rows.batches(64, shuffle=False) for f, o in zip(batch["file"], batch["offset"])}
        recordings = {(int(f), int(o)) for batch in rows.batches(64, shuffle=False, recordings=True) for f, o in zip(batch["file"], batch["offset"])}
        by_length = {"recordings": True, "max_rows": 40, "bucket": 16, "groups": 6}
        for options, every, lives in (({"batch_size": 10}, 3, ((3, 4), (2, 8), (3, 0))),
                                      (by_length, 6, ((3, 7), (2, 14), (1, 0))),  # after whole groups
                                      (by_length, 1, ((3, 4), (2, 0)))):          # in the middle of one
            with self.subTest(options, every=every):
                whole, samples = rows.batches(**options, seed=3), recordings if "groups" in options else windows
                for batches in train(options, every, lives):
                    alone = [[(int(f), int(o)) for f, o in zip(batch["file"], batch["offset"])] for batch in whole]
                    if every == 6:  # the batches are those of any number of ranks
                        self.assertEqual(batches, [[list(sample) for sample in batch] for batch in alone])
                    taken = [tuple(sample) for batch in batches for sample in batch]
                    self.assertEqual(set(taken[:len(samples)]), samples)  # those after them fill up the last batches
                    self.assertLess(len(taken), len(samples) + 30)
                    if every == 3:
                        self.assertEqual(taken[:len(samples)], sum(alone, []))
        with self.assertRaisesRegex(ValueError, "groups: 6 batches are not shared out evenly by world_size 4"):
            rows.batches(**by_length, rank=0, world_size=4)
        three = rows.batches(**by_length | {"groups": None}, rank=0, world_size=3)
        next(iter(three))
        with self.assertRaisesRegex(ValueError, "groups.* 3 .*world_size 2"):
            rows.batches(**by_length | {"groups": None}, rank=0, world_size=2).load_state_dict(three.state_dict())


ELASTIC = """
import json, os, signal, sys
import melflow, torch
import torch.distributed as dist
file, here, life, rank, ranks, stop, often = *sys.argv[1:3], *map(int, sys.argv[3:8])
torch.set_num_threads(1)
dist.init_process_group("gloo", store=dist.FileStore(f"{here}/meet-{life}", ranks), rank=rank, world_size=ranks)
options = json.loads(sys.argv[8])
batches = melflow.open(file).batches(**options, seed=3, rank=rank, world_size=ranks)
layer = torch.nn.Linear(20, 3)
model = torch.nn.parallel.DistributedDataParallel(layer)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
step, path = 0, f"{here}/checkpoint"
if os.path.exists(path):
    state = torch.load(path)
    step = state["step"]
    layer.load_state_dict(state["layer"])
    batches.load_state_dict(state["batches"])
while batches.epoch < 2:
    for batch in batches:
        x, y = torch.from_numpy(batch["mel"]), torch.from_numpy(batch["label"]).long()
        if "groups" in options:
            x = x.flatten(1, -2)
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x.mean(1) / 20), y).backward()
        optimizer.step()
        step += 1
        every = [None] * ranks
        dist.all_gather_object(every, [[int(f), int(o)] for f, o in zip(batch["file"], batch["offset"])])
        if rank == 0:
            with open(f"{here}/log-{life}", "a") as log:
                log.write(json.dumps([step, batches.epoch, every]) + "\\n")
        if step % often == 0:
            state = {"step": step, "layer": layer.state_dict(), "batches": batches.state_dict()}
            if rank == 0:
                torch.save(state, path + ".new")
                os.replace(path + ".new", path)
            dist.barrier()
        if step == stop and rank == ranks - 1:
            os.kill(os.getpid(), signal.SIGKILL)
dist.barrier()
"""


RANKS = """
import json, os, signal, sys
import melflow, torch
import torch.distributed as dist
pipeline, here, rank, stop = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
torch.set_num_threads(1)
store = dist.FileStore(f"{here}/meet-{stop}", 2)
dist.init_process_group("gloo", store=store, rank=rank, world_size=2)
batches = melflow.open(pipeline, index=f"{here}/index{rank}.npz").batches(32, seed=3, rank=rank, world_size=2)
torch.manual_seed(0)
layer = torch.nn.Linear(20, 3)
model = torch.nn.parallel.DistributedDataParallel(layer)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
step, path = 0, f"{here}/checkpoint{rank}"
if os.path.exists(path):
    state = torch.load(path)
    step = state["step"]
    layer.load_state_dict(state["layer"])
    batches.load_state_dict(state["batches"])
while batches.epoch < 3:
    for batch in batches:
        x, y = torch.from_numpy(batch["mel"]), torch.from_numpy(batch["label"]).long()
        loss = torch.nn.functional.cross_entropy(model(x.mean(1) / 20), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        both = [None, None]
        dist.all_gather_object(both, (batches.epoch, loss.item(), batch["file"].tolist()))
        if rank == 0:
            with open(f"{here}/log", "a") as log:
                log.write(json.dumps([step, *both]) + "\\n")
        if step % 3 == 0:
            torch.save({"step": step, "layer": layer.state_dict(), "batches": batches.state_dict()}, path + ".new")
            dist.barrier()
            os.replace(path + ".new", path)
        if step == stop:
            dist.barrier()
            os.kill(os.getpid(), signal.SIGKILL)
dist.barrier()
"""


if __name__ == "__main__":
    unittest.main()
