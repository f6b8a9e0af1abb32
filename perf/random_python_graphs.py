#!/usr/bin/env python3
"""Random pipelines with functions of Python that fail, skip, warn, give several results and are slow, also in batches and blocks.

In:  python3 perf/random_python_graphs.py [COUNT=1000] [SEED=1], with a Python that has melflow.
Out: how many pipelines were wrong: whose accounts do not add up, whose reasons are not what the functions raise, or whose rows
     differ between one worker and several, threads and processes. Exit status 0 when none was.
"""
import os
import random
import sys
import tempfile
import time
import zlib

import melflow
import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tests/python"))
import corpus  # noqa: E402


def act(samples, rate, kind="one", fail=0.0, skip=0.0, note=0.0, slow=0.0, most=3):
    """What it does depends on the samples alone."""
    chance = random.Random(zlib.crc32(samples.tobytes()))
    if chance.random() < slow:
        time.sleep(0.002)
    if chance.random() < fail:
        raise ValueError("fails on purpose")
    if chance.random() < skip:
        melflow.skip("skipped on purpose")
    if chance.random() < note:
        melflow.note("noted on purpose")
    if kind == "many":
        return (samples[:len(samples) // (i + 1)] for i in range(chance.randrange(1, most + 1)))
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
        if random.Random(zlib.crc32(block.tobytes())).random() < self.fail / 20:
            raise ValueError("fails on purpose")
        before, self.kept = self.kept, block * np.float32(0.5)
        return before

    def finish(self):
        return self.kept


def change_rows_together(rows, fail=0.0):
    return [change_rows(one, fail) for one in rows]


def change_rows(rows, fail=0.0):
    if random.Random(zlib.crc32(rows.tobytes())).random() < fail:
        raise KeyError("fails on purpose")
    return rows + 1


def graph(chance, root, out, workers, processes):
    here = os.path.abspath(__file__)
    rate = {"fail": chance.choice([0, 0.2]), "skip": chance.choice([0, 0.2]), "note": chance.choice([0, 0.5]), "slow": chance.choice([0, 0.3])}
    g = melflow.Graph(workers=workers, memory={"host": "2GiB"})
    node = g.file_list(root=root).disk_read().decode(truncated="fail")
    for _ in range(chance.randrange(0, 3)):
        how = chance.choice(["one", "together", "blocks"])
        if how == "blocks":
            node = node.map(f"{here}:Quieter", blocks=chance.choice([100, 1000, 20000]), fail=rate["fail"])
        else:
            options = {"batch": chance.choice([1, 4, 16])} if how == "together" else {}
            node = node.map(f"{here}:act{'_together' if options else ''}", kind="one", processes=processes, **options, **rate)
    kind = chance.choice(["one", "many", "utterances"])
    of_batches = {"batch": chance.choice([2, 8])} if chance.random() < 0.3 else {}
    function = f"{here}:act{'_together' if of_batches else ''}"
    if kind == "many":
        node = node.map(function, **of_batches, kind="many", gives="waveforms", grows=4, processes=processes, **rate)
    elif kind == "utterances":
        node = node.map(function, **of_batches, kind="utterances", gives="utterances", processes=processes, **rate).segments_by()
    node = node.mel(sample_rate=8000, n_fft=256, hop=80, n_mels=8)
    if chance.random() < 0.5:
        options = {"batch": chance.choice([1, 4])} if chance.random() < 0.5 else {}
        node = node.map(f"{here}:change_rows{'_together' if options else ''}", takes="rows", gives="rows", grows=1,
                        processes=processes, fail=rate["fail"], **options)
    node.hdf5_write(path=out, overwrite=True)
    return g


REASONS = ("ValueError: fails on purpose", "KeyError: 'fails on purpose'", "skipped on purpose", "noted on purpose")


def run(g, out):
    """The rows and what became of each recording."""
    if os.path.exists(out):
        os.unlink(out)
    try:
        report = g.run()
    except melflow.RunError as error:
        return str(error).split(";")[0]
    files = report["files"]
    assert files["found"] == files["ok"] + files["skipped"] + files["failed"], files
    said = sorted((r["path"], r["status"], r["reason"]) for r in report["remarks"])
    for remark in report["remarks"]:
        assert not remark["stage"].startswith("python") or remark["reason"].startswith(REASONS), remark
    rows = melflow.open(out)
    return said, list(rows.path), rows[:].tobytes()


def main(count=1000, seed=1):
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        root = os.path.join(folder, "audio")
        corpus.make_corpus(root, 24)
        for i in range(int(count)):
            found = []
            for workers, processes in ((1, 0), (3, 0), (2, 2 if i % 50 == 0 else 0)):
                out = os.path.join(folder, "out.h5")
                try:
                    found.append(run(graph(random.Random(int(seed) * 1000003 + i), root, out, workers, processes), out))
                except Exception as error:
                    found.append(repr(error))
                    wrong += 1
                    print(f"{i}: {error!r}", flush=True)
            if any(other != found[0] for other in found[1:]):
                wrong += 1
                print(f"{i}: differs between workers", flush=True)
    print(f"{count} pipelines, each run three times: {wrong} wrong")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
