"""The Python of docs/recipes.md that reads outputs. Prints what is wrong, nothing if all is right.

read_recipes.py PAGE FOLDER    Whisper: the batch and the frames of each row, of FOLDER/features.h5
"""
import os
import re
import sys

import h5py
import numpy as np


def whisper(page, folder):
    with open(page, encoding="utf-8") as f:
        text = f.read().split("## Whisper, as the model takes it")[1].split("\n## ")[0]
    os.chdir(folder)
    names = {"h5py": h5py, "np": np}
    for code in re.findall(r"```python\n(.*?)```", text, re.S):
        exec(code, names)  # pylint: disable=exec-used
    rows, inputs, frames = names["rows"], names["inputs"], names["frames"]
    if inputs.shape != (min(16, len(rows)), 80, 3000):
        return f"inputs are {inputs.shape}"
    for i, one in enumerate(inputs):
        if not np.array_equal(one.T, rows[i]):
            return f"inputs[{i}] is not rows[{i}]"
    # The attention mask of transformers: one per sample, of which every 160th.
    wanted = []
    with h5py.File("features.h5") as f:
        for path in f["files/path"].asstr():
            samples = int(re.search(r"([0-9]+)\.wav", path)[1])
            for begin in range(0, max(samples, 1), 480000):
                wanted.append(len(range(begin, min(samples, begin + 480000), 160)))
    return "" if list(frames) == wanted else f"frames are {list(frames)}, not {wanted}"


print(whisper(*sys.argv[1:]), end="")
