"""Writes fingerprint.json: words of the stage fingerprint by numpy, from the definition in
docs/decisions/0041-fingerprints.md, for 4 s of noise at each rate that
tests/numerics/fingerprint_test.cpp makes anew.

    python3 tests/golden/make_fingerprint.py > tests/golden/fingerprint.json
"""

import json

import numpy as np

FRAME, HOP, BANDS, SMOOTHED, LAG, SECONDS = 0.064, 0.0125, 33, 25, 16, 4


def noise(count):
    state, out = 1, []
    for _ in range(count):
        state = (state * 1664525 + 1013904223) % 2**32
        out.append((state // 2**16 - 32768) / 32768)
    return np.array(out)


def halved(samples, length, beta):
    at = np.arange(length) - length // 2
    taps = np.sinc(at / 2) * np.kaiser(length, beta)
    odd = at % 2 != 0
    taps[odd] /= 2 * taps[odd].sum()
    taps[~odd] = 0.5 * (at[~odd] == 0)
    return np.convolve(samples, taps)[length // 2 :][: len(samples)][::2]


def words(rate):
    samples = noise(SECONDS * rate)
    while rate >= 8000:
        samples = halved(samples, *((11, 4.5) if rate >= 16000 else (47, 3.4)))
        rate /= 2
    frame = 2 * round(rate * FRAME / 2)
    edges = 300 * (1800 / 300) ** (np.arange(BANDS + 1) / BANDS)
    bins = np.rint((np.rint(edges * FRAME) - 0.5) / FRAME * frame / rate + 0.5).astype(int)
    hann = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(frame) / frame)
    energies = []
    while (at := int(len(energies) * HOP * rate + 0.5)) + frame <= len(samples):
        power = np.abs(np.fft.rfft(samples[at : at + frame] * hann)) ** 2
        energies.append([power[a:b].sum() for a, b in zip(bins, bins[1:])])
    energies = np.array(energies)
    weights = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(1, SMOOTHED + 1) / (SMOOTHED + 1))
    smooth = np.array([np.convolve(band, weights, "valid") for band in energies.T]).T
    slope = smooth[:, :-1] - smooth[:, 1:]
    bits = slope[LAG:] - slope[:-LAG] > 0
    return [sum(int(bit) << b for b, bit in enumerate(row)) for row in bits]


print(json.dumps({rate: words(rate) for rate in (4000, 8000, 16000, 37800, 44100, 48000)}))
