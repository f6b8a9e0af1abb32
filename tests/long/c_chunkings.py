"""Streams of melflow.h in 1,000 random chunkings of each front end, beside melflow.Features of the whole recording, bit for bit.

In:  tests/long/c_chunkings.py [LIBRARY] [--count 1000], with a Python that has melflow. LIBRARY: libmelflow.so, by default the package's; the front end
     alone as a shared library is compared as well (c_library_test.sh says how it is made). MELFLOW_INSTRUCTION_SET chooses the instructions.
Out: for each preset that begins at mel how many of the chunkings, of recordings of 0 to 2 s, int16 and float, have other bits; status 1 if any has.
"""
import glob
import os
import random
import sys
import warnings

import melflow
import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../apps"))
import c_libraries as c  # noqa: E402

warnings.simplefilter("ignore")
words = sys.argv[1:]
count = int(words.pop(words.index("--count") + 1)) if "--count" in words else 1000
words = [word for word in words if word != "--count"]
library = c.Library(words[0] if words else glob.glob(os.path.join(os.path.dirname(melflow.__file__), "lib", "libmelflow.so.*"))[0])
by, failed, fronts = random.Random(1), 0, 0
for name in c.presets():
    try:
        front = c.Front(library, "preset", name)
    except RuntimeError:
        continue
    features = melflow.Features(preset=name, sample_rate=front.rate)
    flags = other = 0
    try:
        if front.stream(c.noise(0, 1), []) is None:
            flags = c.FINISH_ONLY
    except RuntimeError:  # changes samples before mel
        continue
    fronts += 1
    noise = {kind: c.noise(2 * front.rate, 2, kind) for kind in "hf"}
    wholes = {}
    for _ in range(count):
        kind, length = by.choice("hf"), by.choice([0, 1, 100, 399, 400, 5000, front.rate, 2 * front.rate - 7])
        samples = noise[kind][:length]
        if (kind, length) not in wholes:
            try:
                rows = np.ascontiguousarray(features(np.array(samples), front.rate))
                wholes[kind, length] = rows.tobytes()
            except (ValueError, melflow.RunError):  # no samples, or too few for a row
                wholes[kind, length] = b""
        cuts = sorted(by.choices(range(length + 1), k=by.choice([0, 1, 7, 60])))
        other += front.stream(samples, cuts, flags) != wholes[kind, length]
    failed += other
    print(f"{name}: {other} of {count}", flush=True)
print(f"{fronts} front ends, {failed} chunkings with other bits")
sys.exit(failed > 0)
