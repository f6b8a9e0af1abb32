#!/usr/bin/env python3
"""Functions of Python as nodes: what they cost beside the functions themselves, and whether they keep anything.

In:  python3 perf/python_nodes.py [ROUNDS=5], with a Python that has melflow; for the models onnxruntime, onnx and silero-vad, too.
Out: medians over the rounds, in turn, and of the rounds' ratios: calls a second of a NumPy function (gain and noise) in a graph
     with one worker and alone; of it in another process; of a function that holds Python's lock with processes: 2 and 1, with
     what the rest of the run needs; seconds of audio a second of voice activity and of an ONNX model in a graph and by
     onnxruntime alone. Then memory (of the process, and traced in Python), descriptors and threads after 5,000 and 10,000
     recordings, which functions pass, skip and fail.
"""
import importlib.util
import operator
import os
import statistics
import sys
import tempfile
import time
import tracemalloc

import melflow
import numpy as np

COUNT, LONG, HOLDING, RATE = 400, 1000, 300, 16000


def noisy(samples, rate):
    noise = np.random.default_rng(len(samples)).standard_normal(len(samples), np.float32)
    return samples * np.float32(0.5) + np.float32(0.01) * noise


def choosy(samples, rate):
    if samples[0] > 0.1:
        melflow.skip("begins loud")
    if samples[0] < -0.1:
        raise ValueError("begins low")
    return samples


def holds_the_lock(samples, rate):
    total = 0
    for i in range(1000000):
        total += i % 7
    return samples


def graph(function, count=COUNT, seconds=4, **options):
    workers = options.pop("workers", 1)
    g = melflow.Graph(workers=workers)
    g.synthetic(count=count, duration=f"{seconds}s", rate=RATE, kind="noise").map(function, **options).discard()
    return g


def without(count=COUNT, seconds=4):
    g = melflow.Graph(workers=1)
    g.synthetic(count=count, duration=f"{seconds}s", rate=RATE, kind="noise").discard()
    return g


def timed(run):
    begin = time.perf_counter()
    run()
    return time.perf_counter() - begin


def held():
    with open("/proc/self/statm") as file:
        resident = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 20
    return (f"{resident} MiB, {tracemalloc.get_traced_memory()[0] >> 10} KiB traced, {len(os.listdir('/proc/self/fd'))} descriptors, "
            f"{len(os.listdir('/proc/self/task'))} threads")


def write_model(path):
    """[pieces, 400] to [pieces, 192], by three matrices."""
    from onnx import TensorProto, helper, numpy_helper, save

    sizes, nodes, weights = [400, 1024, 1024, 192], [], []
    for i, shape in enumerate(zip(sizes, sizes[1:])):
        weights.append(numpy_helper.from_array(np.random.default_rng(i).standard_normal(shape, np.float32) / 30, f"w{i}"))
        nodes += [helper.make_node("MatMul", [f"x{i}", f"w{i}"], [f"y{i}"]), helper.make_node("Relu", [f"y{i}"], [f"x{i + 1}"])]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [None, n]) for name, n in (("x0", 400), ("x3", 192))]
    save(helper.make_model(helper.make_graph(nodes, "layers", ends[:1], ends[1:], weights),
                           opset_imports=[helper.make_opsetid("", 18)], ir_version=9), path)


def main(rounds=5):
    samples = np.random.default_rng(1).standard_normal(4 * RATE).astype(np.float32) / 4
    alone, inside, other, one, two, rest, model, vad, session, onnx = ([] for _ in range(10))
    has_onnx = all(importlib.util.find_spec(name) for name in ("onnxruntime", "onnx"))
    path = os.path.join(tempfile.mkdtemp(), "layers.onnx")
    layers = None
    if has_onnx:
        from melflow.models import _session

        write_model(path)
        layers = _session(path, 1)
    has_vad = all(importlib.util.find_spec(name) for name in ("onnxruntime", "silero_vad"))
    detector = None
    if has_vad:
        from melflow.models import Vad

        detector = Vad()
    here = os.path.abspath(__file__)
    for _ in range(int(rounds)):
        alone.append(COUNT / timed(lambda: [noisy(samples, RATE) for _ in range(COUNT)]))
        empty = timed(lambda: without().run())
        inside.append(COUNT / (timed(lambda: graph(noisy).run()) - empty))
        other.append(COUNT / (timed(lambda: graph(f"{here}:noisy", processes=1).run()) - empty))
        # Long enough that the start of the processes, which is in it, does not count.
        before = time.process_time()
        one.append(HOLDING / timed(lambda: graph(f"{here}:holds_the_lock", HOLDING, 1, processes=1).run()))
        rest.append((time.process_time() - before) / HOLDING * one[-1])
        two.append(HOLDING / timed(lambda: graph(f"{here}:holds_the_lock", HOLDING, 1, processes=2, workers=2).run()))
        if detector is not None:
            model.append(40 * 30 / timed(lambda: [detector.probabilities(np.tile(samples, 8)[:30 * RATE]) for _ in range(40)]))
            took = timed(lambda: graph("melflow.models:Vad", 40, 30, gives="utterances").run())
            vad.append(40 * 30 / (took - timed(lambda: without(40, 30).run())))
        if layers is not None:
            pieces = samples[:64000].reshape(10, 16, 400)
            session.append(LONG * 4 / timed(lambda: [layers.run(None, {"x0": p}) for _ in range(LONG) for p in pieces]))
            took = timed(lambda: graph("melflow.models:Onnx", LONG, model=path, frames=400, gives="rows", columns=192).run())
            onnx.append(LONG * 4 / (took - timed(lambda: without(LONG).run())))
    middle = statistics.median

    def ratio(rates, others):
        return f"{middle(map(operator.truediv, rates, others)):.2f}"

    print(f"NumPy function: {middle(inside):.0f} calls/s in a graph with one worker (without what makes the samples), "
          f"{middle(alone):.0f} alone: {ratio(inside, alone)}")
    print(f"  in another process: {middle(other):.0f} calls/s")
    print(f"holds the lock: {middle(two):.1f} calls/s by two processes, {middle(one):.1f} by one: {ratio(two, one)} "
          f"(this process needs {100 * middle(rest):.1f}% of a core beside one)")
    if has_vad:
        print(f"voice activity: {middle(vad):.0f} s of audio a second, {middle(model):.0f} by onnxruntime alone: "
              f"{ratio(vad, model)}")
    else:
        print("voice activity: skipped, onnxruntime or silero-vad is not installed")
    if has_onnx:
        print(f"ONNX model: {middle(onnx):.0f} s of audio a second, {middle(session):.0f} by onnxruntime alone: "
              f"{ratio(onnx, session)}")
    else:
        print("ONNX model: skipped, onnxruntime or onnx is not installed")
    tracemalloc.start()
    for i in (1, 2):
        g = melflow.Graph(workers=2)
        node = g.synthetic(count=5000, duration="0.1s", rate=RATE, kind="noise").map(noisy).map(choosy)
        node.map(f"{here}:noisy", processes=2).discard()
        g.run()
        del g, node
        print(f"after {5000 * i} recordings: {held()}")


if __name__ == "__main__":
    main(*sys.argv[1:])
