"""Writes fingerprint.json: words of the stage fingerprint by numpy, from the definition in
docs/duplicates.md, for noise that tests/numerics/fingerprint_test.cpp makes anew.

    python3 tests/golden/make_fingerprint.py > tests/golden/fingerprint.json
"""

import json

import numpy as np

RATE, FRAME, HOP, BANDS, SMOOTHED, LAG, ROWS = 4000, 256, 50, 33, 25, 16, 300


def noise(count):
    state, out = 1, []
    for _ in range(count):
        state = (state * 1664525 + 1013904223) % 2**32
        out.append((state // 2**16 - 32768) / 32768)
    return np.array(out)


samples = noise(FRAME + (SMOOTHED - 1 + LAG + ROWS - 1) * HOP)
edges = 300 * (1800 / 300) ** (np.arange(BANDS + 1) / BANDS)
bins = np.rint(edges * FRAME / RATE).astype(int)
hann = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(FRAME) / FRAME)
energies = []
for at in range(0, len(samples) - FRAME + 1, HOP):
    power = np.abs(np.fft.rfft(samples[at : at + FRAME] * hann)) ** 2
    energies.append([power[a:b].sum() for a, b in zip(bins, bins[1:])])
energies = np.array(energies)
weights = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(1, SMOOTHED + 1) / (SMOOTHED + 1))
smooth = np.array([np.convolve(band, weights, "valid") for band in energies.T]).T
slope = smooth[:, :-1] - smooth[:, 1:]
bits = slope[LAG:] - slope[:-LAG] > 0
assert bits.shape == (ROWS, BANDS - 1)
words = [sum(int(bit) << b for b, bit in enumerate(row)) for row in bits]
print(json.dumps({"words": words}))
