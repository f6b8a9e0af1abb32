#!/usr/bin/env python3
"""Makes pcen.json: per-channel energy normalisation of small matrices by librosa.pcen.

In:  nothing; in the environment of setup.sh. The input of a case is float32(draw^2 / 2^28) times its
     scale, where draw are the int16 of signals.draws(3), row after row; rows of `silent` are 0.
Out: pcen.json beside this file: [{name, version, sample_rate, hop, options, scale, silent, frames,
     bands, "output": [frames][bands]}].
"""

import itertools

import librosa
import numpy as np

import golden_text
import signals

BANDS, SEED = 3, 3
CASES = [  # name, frames, scale, silent rows, sample_rate, hop, librosa's arguments
    ("defaults, samples in the range of int32", 40, 2.0**31, (), 22050, 512, {}),
    ("defaults, samples up to 1", 40, 1.0, (), 22050, 512, {}),
    ("silence at the start and within", 30, 2.0**31, (0, 1, 2, 17), 22050, 512, {}),
    ("other exponents", 24, 2.0**31, (), 16000, 160, dict(gain=0.8, bias=10.0, power=0.25)),
    ("gain 0", 12, 8.0, (), 16000, 160, dict(gain=0.0)),
    ("power 1", 12, 8.0, (5,), 16000, 160, dict(power=1.0)),
    ("power 0", 24, 2.0**20, (3,), 16000, 160, dict(power=0.0)),
    ("bias 0", 24, 2.0**20, (3,), 16000, 160, dict(bias=0.0)),
    ("bias 0, power 0", 24, 2.0**20, (3,), 16000, 160, dict(bias=0.0, power=0.0)),
    ("time constant 2 s", 24, 2.0**31, (), 16000, 160, dict(time_constant=2.0)),
    ("b 0.025, eps 1e-3", 24, 2.0**31, (), 16000, 160, dict(b=0.025, eps=1e-3)),
    ("b 1", 12, 2.0**31, (), 16000, 160, dict(b=1.0)),
    ("one frame", 1, 2.0**31, (), 16000, 160, {}),
]


def matrix(frames, scale, silent):
    draws = np.array(list(itertools.islice(signals.draws(SEED, frames * BANDS), frames * BANDS)))
    out = (draws.astype(float) ** 2 / 2.0**28 * scale).astype(np.float32).reshape(frames, BANDS)
    out[list(silent)] = 0.0
    return out


def line(name, frames, scale, silent, rate, hop, options):
    x = matrix(frames, scale, silent)
    out = librosa.pcen(x.T.astype(float), sr=rate, hop_length=hop, **options).T
    rows = "[" + ",".join(golden_text.numbers(row, 9) for row in out) + "]"
    return golden_text.line(dict(
        name=name, version=librosa.__version__, sample_rate=rate, hop=hop, options=options,
        scale=scale, silent=silent, frames=frames, bands=BANDS, output=rows.encode()))


def main():
    golden_text.write("pcen.json", [line(*case) for case in CASES])


if __name__ == "__main__":
    main()
