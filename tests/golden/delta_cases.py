"""Deltas of small matrices by librosa and torchaudio, for make_presets.py.

In:  nothing. The input is written in integers: input[t][b] = (7 t^2 + 13 b t + 5 b) mod 23 - 11.
Out: lines of JSON: {name, library, version, function, method, order, width,
     "input": [frames][bands], "output": [frames][bands]}.

melflow's methods: librosa (Savitzky-Golay, mode interp), regression (torchaudio; an order above 1
repeats it), kaldi (order n is one filter, the regression's kernel convolved n times, on the input
with its edge frames repeated; Kaldi has no package, so these are its definition in numpy).
"""

import librosa
import numpy as np
import torch
import torchaudio

import golden_text

CASES = [  # method, frames, order, width
    ("librosa", 14, 1, 9), ("librosa", 14, 2, 9), ("librosa", 14, 1, 5), ("librosa", 9, 1, 9),
    ("librosa", 9, 2, 9),
    ("regression", 14, 1, 5), ("regression", 14, 1, 9), ("regression", 14, 2, 5),
    ("regression", 3, 1, 5), ("regression", 1, 1, 5),
    ("kaldi", 14, 1, 5), ("kaldi", 14, 2, 5), ("kaldi", 14, 1, 7), ("kaldi", 3, 2, 5),
]


def matrix(frames, bands=3):
    t, b = np.arange(frames)[:, None], np.arange(bands)[None]
    return ((7 * t * t + 13 * b * t + 5 * b) % 23 - 11).astype(float)


def by_librosa(x, order, width):
    return librosa.feature.delta(x, width=width, order=order, axis=0, mode="interp")


def by_torchaudio(x, order, width):
    out = torch.from_numpy(x.T)
    for _ in range(order):
        out = torchaudio.functional.compute_deltas(out, win_length=width)
    return out.numpy().T


def by_kaldi(x, order, width):
    reach = width // 2
    ramp = np.arange(-reach, reach + 1)
    kernel, scales = ramp / (ramp**2).sum(), np.ones(1)
    for _ in range(order):
        scales = np.convolve(scales, kernel)
    reach *= order
    at = np.clip(np.arange(len(x))[:, None] + np.arange(-reach, reach + 1), 0, len(x) - 1)
    return np.einsum("k,tkb->tb", scales, x[at])


METHODS = dict(
    librosa=(by_librosa, "librosa", librosa.__version__, "librosa.feature.delta"),
    regression=(by_torchaudio, "torchaudio", torchaudio.__version__,
                "torchaudio.functional.compute_deltas"),
    kaldi=(by_kaldi, "definition of Kaldi's add-deltas", "", "delta_cases.by_kaldi"))


def lines():
    out = []
    for method, frames, order, width in CASES:
        call, library, version, function = METHODS[method]
        x = matrix(frames)
        fields = dict(name=f"{method}, order {order}, width {width}, {frames} frames",
                      library=library, version=version, function=function, method=method,
                      order=order, width=width)
        for key, values in (("input", x), ("output", call(x, order, width))):
            text = ",".join(golden_text.numbers(row, 9) for row in values)
            fields[key] = f"[{text}]".encode()
        out.append("  " + golden_text.line(fields))
    return out
