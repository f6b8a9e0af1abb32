"""Whether loader.headroom foretells what a loop gains: headroom.py [--steps 60]

Makes a corpus of four recordings for each step, and loops that are made slow on purpose: the program (a wait in each step), the loader (a wait in a node of
each recording), or both. Out: for each the verdict, the gain foretold, and the gain seen, by a loop over the same batches from a list."""
import argparse
import os
import tempfile
import time
import wave

import melflow
import numpy as np


def pipeline(root, wait):
    g = melflow.Graph()
    node = g.file_list(root=root).disk_read().decode().mel(preset="kaldi", sample_rate=16000)
    if wait:
        def slow(rows):
            time.sleep(wait)
            return rows
        node = node.map(slow, takes="rows", gives="rows", concurrency=1)
    node.batches(size=4)
    return g


def seconds_per_step(batches, work, steps):
    begin = 0.0
    for i, _ in enumerate(batches):
        if i == 3:
            begin = time.perf_counter()
        time.sleep(work)
        if i + 1 == steps:
            break
    return (time.perf_counter() - begin) / (steps - 3)


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--steps", type=int, default=60)
    steps = arguments.parse_args().steps
    random = np.random.default_rng(1)
    with tempfile.TemporaryDirectory() as root:
        for i in range(4 * steps):
            with wave.open(os.path.join(root, f"{i:04}.wav"), "wb") as file:
                file.setparams((1, 2, 16000, 0, "NONE", ""))
                file.writeframes((random.standard_normal(16000) * 3000).astype(np.int16).tobytes())
        print("| slow | program [ms] | loader [ms a batch] | verdict | gain foretold | gain seen |\n|---|---|---|---|---|---|")
        for name, work, load in (("program", 0.04, 0.0), ("loader", 0.002, 0.04), ("both", 0.02, 0.03)):
            loader = melflow.Loader(pipeline(root, load / 4))
            h = loader.headroom(steps)
            for _ in h:
                time.sleep(work)
            now = seconds_per_step(melflow.Loader(pipeline(root, load / 4)), work, steps)
            perfect = seconds_per_step(list(melflow.Loader(pipeline(root, 0))), work, steps)
            print(f"| {name} | {1e3 * work:g} | {1e3 * load:g} | {h.cause} | {h.gain:.2f} | {now / perfect:.2f} |", flush=True)


if __name__ == "__main__":
    main()
