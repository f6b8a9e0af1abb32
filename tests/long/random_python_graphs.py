#!/usr/bin/env python3
"""Random pipelines with functions of Python, several results, damaged recordings, filters, routes and merges.

In:  python3 tests/long/random_python_graphs.py [COUNT=1000] [SEED=1], with a Python that has melflow.
Out: how many pipelines were wrong: whose outputs, and outcomes of recordings, are not what a loop over the recordings with NumPy
     computes, or whose rows differ between one worker and several, threads and processes. Exit status 0 when none was.
"""
import os
import random
import sys
import tempfile
import time
import wave
import zlib

import melflow
import numpy as np
from melflow.call_results import Skipped

RATE = 8000
WHY = {"fail": "fails on purpose", "skip": "skipped on purpose"}


# --- The functions of the pipelines. What they do depends on what they get alone.


def chance_of(array):
    return random.Random(zlib.crc32(np.ascontiguousarray(array).tobytes()))


def act(samples, rate, kind="one", fail=0.0, skip=0.0, note=0.0, slow=0.0):
    chance = chance_of(samples)
    if chance.random() < slow:
        time.sleep(0.002)
    if chance.random() < fail:
        raise ValueError(WHY["fail"])
    if chance.random() < skip:
        melflow.skip(WHY["skip"])
    if chance.random() < note:
        melflow.note("noted on purpose")
    if kind == "many":
        return (samples[:len(samples) // (i + 1)] for i in range(chance.randrange(1, 4)))
    if kind == "utterances":
        cuts = sorted(chance.uniform(0, len(samples) / rate) for _ in range(2 * chance.randrange(1, 4)))
        return [(a, b) for a, b in zip(cuts[::2], cuts[1::2]) if b - a > 0.01]
    return samples * np.float32(0.5)


def act_together(batch, rate, **options):
    return [act(samples, rate, **options) for samples in batch]


class Quieter:
    """Gives each block one call later."""

    def __init__(self, fail=0.0):
        self.fail, self.kept = fail, None

    def __call__(self, block):
        if chance_of(block).random() < self.fail / 20:
            raise ValueError(WHY["fail"])
        before, self.kept = self.kept, block * np.float32(0.5)
        return before

    def finish(self):
        return self.kept


def change_rows(rows, fail=0.0):
    if chance_of(rows).random() < fail:
        raise KeyError(WHY["fail"])
    return rows + 1


def change_rows_together(rows, fail=0.0):
    return [change_rows(one, fail) for one in rows]


# --- A way is a list of steps, each a name and its options, which are done by melflow and by a loop.


def random_way(chance, processes):
    """From the bytes of a recording to its results."""
    def rates():
        return {name: chance.choice(some) for name, some in
                (("fail", [0, 0.15]), ("skip", [0, 0.1]), ("note", [0, 0.5]), ("slow", [0, 0.3]))}

    def call(kind, **options):
        together = {"batch": chance.choice([1, 4, 16])} if chance.random() < 0.3 else {}
        return "map", dict(kind=kind, processes=processes, **together, **options, **rates())

    cuts = 1  # decode; at most three in a row
    steps = []
    if chance.random() < 0.2:
        steps.append(("repeat", {"times": chance.randrange(1, 4)}))
        cuts += 1
    steps.append(("decode", {"downmix": chance.choice(["mean", "left", "each", 1, 2]), "truncated": chance.choice(["keep", "fail"]),
                             "block": chance.choice(["64KiB", "1MiB"])}))
    cuts += steps[-1][1]["downmix"] == "each"
    if cuts == 1 and chance.random() < 0.3:
        steps.append(("filter", {"where": {"duration": "> 1s"}}))
    if chance.random() < 0.5:
        steps.append(("blocks", {"blocks": chance.choice([1000, 20000]), "fail": rates()["fail"]}) if chance.random() < 0.3 else call("one"))
    kind = chance.choice(["one", "many", "utterances"])
    if cuts == 3 or kind == "one":
        return steps
    steps.append(call(kind, gives="waveforms", grows=4) if kind == "many" else call(kind, gives="utterances"))
    if kind == "utterances":
        steps.append(("segments_by", {}))
    if chance.random() < 0.5:
        steps.append(call("one"))
    return steps


def random_end(chance, processes):
    """From results to rows."""
    length = chance.choice([200, 1000, 4000])
    steps = [("segment", {"length": length, "hop": chance.choice([length, length // 2]), "tail": chance.choice(["drop", "pad"])}),
             ("samples", {"sample_rate": RATE})]
    if chance.random() < 0.4:
        together = {"batch": chance.choice([1, 4])} if chance.random() < 0.3 else {}
        steps.append(("rows", {"fail": chance.choice([0, 0.1]), "processes": processes, **together}))
    return steps


class Plan:
    """Ways of the labels in `routed`, and of all others the last way; they end together or each for itself. Or two ways of all."""

    def __init__(self, chance, processes):
        self.sources = chance.choice([1, 1, 2])
        self.without = chance.choice([None, None, "bee"])  # the label that a filter excludes
        self.routed = chance.sample(["ant", "bee", "cat"], chance.choice([0, 0, 1, 2]))
        self.ways = [random_way(chance, processes) for _ in range(len(self.routed) + 1)]
        self.ends = [random_end(chance, processes) for _ in range(1 if chance.random() < 0.6 else len(self.ways))]
        self.fans = not self.routed and chance.random() < 0.3
        if self.fans:
            self.ways, self.ends = self.ways * 2, [random_end(chance, processes) for _ in range(2)]
            self.ways[1] = random_way(chance, processes)
        self.sink = chance.choice([".h5", ".npy"])
        self.workers = chance.randrange(2, 5)

    def end_of(self, way):
        return way if len(self.ends) > 1 else 0


def add(node, steps):
    here = os.path.abspath(__file__)
    for name, options in steps:
        together = "_together" if "batch" in options else ""
        if name == "map":
            node = node.map(f"{here}:act{together}", block="1MiB", **options)
        elif name == "blocks":
            node = node.map(f"{here}:Quieter", **options)
        elif name == "rows":
            node = node.map(f"{here}:change_rows{together}", takes="rows", gives="rows", grows=1, block="1MiB", **options)
        else:
            node = getattr(node, name)(**options)
    return node


def graph_of(plan, root, outs, workers):
    g = melflow.Graph(workers=workers, memory={"host": "2GiB"})
    node = [g.file_list(name=f"files{i}", root=os.path.join(root, str(i)), labels="top_dir") for i in range(plan.sources)]
    node = g.merge(node) if len(node) > 1 else node[0]
    if plan.without:
        node = node.filter(where={"label": "!" + plan.without})
    node = node.disk_read()
    made = [node, node] if plan.fans else [node]
    if plan.routed:
        route = node.route(outputs={label: {"label": label} for label in plan.routed}, else_="others")
        made = [route[label] for label in [*plan.routed, "others"]]
    made = [add(node, way) for node, way in zip(made, plan.ways)]
    if len(plan.ends) < len(made):
        made = [g.merge(made)]
    for node, end, out in zip(made, plan.ends, outs):
        node = add(node, end)
        (node.hdf5_write if plan.sink == ".h5" else node.npy_write)(path=out, overwrite=True)
    return g


# --- The same by a loop.


class Failed(Exception):
    pass


class Excluded(Exception):
    """From the outputs of a way alone."""


def recordings(root, sources):
    """Path, label and file of each recording, in the order of the output."""
    for source in range(sources):
        top = os.path.join(root, str(source))
        for path in sorted(os.path.join(label, name) for label in os.listdir(top) for name in os.listdir(os.path.join(top, label))):
            yield path if sources == 1 else f"files{source}/{path}", path.split("/")[0], os.path.join(top, path)


def decoded(path, downmix, truncated):
    """The samples of each result."""
    with open(path, "rb") as file:
        data = file.read()
    if data[:4] != b"RIFF":
        raise Failed
    channels = int.from_bytes(data[22:24], "little")
    said = int.from_bytes(data[40:44], "little") // (2 * channels)
    samples = np.frombuffer(data, np.int16, offset=44, count=(len(data) - 44) // (2 * channels) * channels)
    samples = samples.reshape(-1, channels).astype(np.float32) / np.float32(32768)
    if len(samples) < said and truncated == "fail":
        raise Failed
    if downmix == "each":
        return list(samples.T)
    if downmix == "mean":
        return [samples.sum(axis=1) / np.float32(channels)]
    number = 1 if downmix == "left" else downmix
    if number > channels:
        raise Failed
    return [samples[:, number - 1]]


def in_blocks(samples, blocks, fail):
    quieter = Quieter(fail)
    pieces = [quieter(samples[i:i + blocks]) for i in range(0, len(samples), blocks)] + [quieter.finish()]
    return np.concatenate([samples[:0], *(piece for piece in pieces if piece is not None)])


def windows(samples, length, hop, tail):
    count = (len(samples) - length) // hop + 1 if len(samples) >= length else 0
    rest = len(samples) - ((count - 1) * hop + length if count else 0)
    count += tail == "pad" and rest > 0
    if count == 0:
        raise Skipped
    padded = np.concatenate([samples, np.zeros(length, np.float32)])
    return np.array([padded[i * hop:i * hop + length] for i in range(count)])


def step(array, name, options, path):
    """What a step makes of one result: a list of results."""
    options = {key: value for key, value in options.items() if key not in ("gives", "grows", "processes", "batch")}
    if name == "repeat":
        return [array] * options["times"]
    if name == "decode":
        return decoded(path, options["downmix"], options["truncated"])
    if name == "filter":
        if len(decoded(path, "left", "keep")[0]) <= RATE:
            raise Excluded
    elif name == "blocks":
        return [in_blocks(array, **options)]
    elif name == "map":
        made = act(array, RATE, **{**options, "slow": 0, "note": 0})
        if options["kind"] == "many":
            return list(made)
        if options["kind"] == "utterances":
            return [array[round(a * RATE):round(b * RATE)] for a, b in made]
        return [made]
    elif name == "segment":
        return [windows(array, **options)]
    elif name == "rows":
        return [change_rows(array, **options)]
    return [array]


def results_of(array, steps, path, outcomes):
    """All results of a recording; `outcomes`: what became of each."""
    if not steps:
        outcomes.add("ok")
        return [array]
    try:
        made = step(array, *steps[0], path)
    except (Skipped, Excluded) as error:
        outcomes.add("skipped" if isinstance(error, Skipped) else "excluded")
        return []
    except (Failed, ValueError, KeyError):
        outcomes.add("failed")
        return []
    if not made:
        outcomes.add("skipped")
    return [result for one in made for result in results_of(one, steps[1:], path, outcomes)]


def expected(plan, root):
    """For each output {path: (rows, rows of each result)}, and {path: outcomes that a recording may have}."""
    outputs, outcomes = [{} for _ in plan.ends], {}
    for name, label, path in recordings(root, plan.sources):
        outcomes[name] = set()
        if label == plan.without:
            outcomes[name].add("skipped")
            continue
        way = plan.routed.index(label) if label in plan.routed else len(plan.routed)
        of_ends = {}
        for way in (0, 1) if plan.fans else (way,):
            became = set()
            results = results_of(None, plan.ways[way] + plan.ends[plan.end_of(way)], path, became)
            if became == {"ok"}:
                of_ends[plan.end_of(way)] = np.concatenate(results), [len(rows) for rows in results]
            outcomes[name] |= became
        if outcomes[name] & {"failed", "skipped"}:  # of which no output has rows
            outcomes[name] -= {"ok", "excluded"}
        else:
            outcomes[name] = {"ok" if of_ends else "skipped"}
            for end, rows in of_ends.items():
                outputs[end][name] = rows
    return outputs, outcomes


def run(plan, root, folder, workers, outputs, outcomes):
    """What was reported of each recording; raises AssertionError for what is not as expected."""
    outs = [os.path.join(folder, f"out{i}{plan.sink}") for i in range(len(plan.ends))]
    try:
        report = graph_of(plan, root, outs, workers).run()
    except melflow.RunError as error:
        if not any(outputs) and str(error).startswith("no file is ok"):
            return str(error)
        raise
    said = {remark["path"]: remark["status"] for remark in report["remarks"] if remark["status"] in ("skipped", "failed")}
    for name, allowed in outcomes.items():
        assert said.get(name, "ok") in allowed, f"{name}: {said.get(name, 'ok')}, not {allowed}"
    for kept, out in zip(outputs, outs):
        rows = melflow.open(out)
        found = {rows.path[i]: i for i in range(len(rows.path)) if len(rows.recording(i)) > 0}
        assert list(found) == list(kept), f"{out}: {sorted(set(found) ^ set(kept))} are too many or missing, or the order is another"
        for name, i in found.items():
            assert np.array_equal(rows.recording(i), kept[name][0]), f"{out}: {name} has other rows"
            lengths = [len(one) for _, one in rows.results(i)]
            assert lengths == kept[name][1], f"{out}: {name} has results of {lengths} rows, not {kept[name][1]}"
    return sorted((r["path"], r["status"], r["stage"], r["reason"]) for r in report["remarks"])


def make_corpora(root):
    """Two of 14 and 8 recordings of 0 to 3 s in one, two or four channels; some are damaged."""
    values = np.random.default_rng(1)
    for i in range(22):
        channels = (1, 2, 1, 4)[i % 4]
        frames = 0 if i == 5 else int(values.integers(100, 3 * RATE))
        folder = os.path.join(root, str(int(i >= 14)), ("ant", "bee", "cat", "dog")[i % 3 if i % 7 else 3])
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, f"{i:02}.wav")
        with wave.open(path, "wb") as out:
            out.setnchannels(channels)
            out.setsampwidth(2)
            out.setframerate(RATE)
            out.writeframes(values.integers(-9000, 9000, (frames, channels)).astype(np.int16).tobytes())
        if i in (3, 9, 16):
            os.truncate(path, 44 + frames * channels)  # half of it
        elif i == 12:
            with open(path, "r+b") as out:
                out.write(b"JUNK")


def main(count=1000, seed=1):
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        root = os.path.join(folder, "audio")
        make_corpora(root)
        for i in range(int(count)):
            of_seed = int(seed) * 1000003 + i
            plan = Plan(random.Random(of_seed), 0)
            outputs, outcomes = expected(plan, root)
            try:
                first = run(plan, root, folder, 1, outputs, outcomes)
                again = run(plan, root, folder, plan.workers, outputs, outcomes)
                assert again == first, f"other remarks with {plan.workers} workers: {sorted(set(first) ^ set(again))}"
                if i % 50 == 0:
                    assert run(Plan(random.Random(of_seed), 2), root, folder, 2, outputs, outcomes) == first, "other remarks with processes"
            except Exception as error:
                wrong += 1
                print(f"{i}: {type(error).__name__}: {error}", flush=True)
    print(f"{count} pipelines, each run twice: {wrong} wrong")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
