"""Prints the table of stages/quality/snr.cpp, or with --check FILE compares it with that in FILE.

WADA-SNR (Kim and Stern 2008): amplitudes of speech are gamma-distributed with shape 0.4 and a random sign, noise is
Gaussian. For z = speech + noise, G = ln E|z| - E ln|z| grows with the signal-to-noise ratio alone. Expectations over the
noise are exact, those over the speech by quadrature. Needs SciPy.
"""

import re
import sys

import numpy as np
from scipy.integrate import quad
from scipy.special import digamma, erf, gamma, gammaln

SHAPE = 0.4


def log_square(ratio):
    """E ln (s + n)^2 for unit noise and s^2 = ratio: of a noncentral chi-squared variable."""
    if ratio > 500:
        return np.log(ratio) - 1 / ratio - 1.5 / ratio**2
    j = np.arange(int(ratio / 2 + 12 * np.sqrt(ratio / 2 + 1) + 60))
    half = max(ratio / 2, 1e-300)
    weights = np.exp(-half + j * np.log(half) - gammaln(j + 1))
    return np.log(2) + np.sum(weights * digamma(0.5 + j))


def magnitude(s):
    """E |s + n| for unit noise."""
    return np.sqrt(2 / np.pi) * np.exp(-s * s / 2) + s * erf(s / np.sqrt(2))


def statistic(db):
    # The scale of the gamma distribution that gives this ratio with unit noise.
    scale = np.sqrt(10 ** (db / 10) / (SHAPE * (SHAPE + 1)))

    # s = scale * t^(1/SHAPE) takes the pole of the density away.
    def mean(of):
        inside = lambda t: np.exp(-t ** (1 / SHAPE)) * of(scale * t ** (1 / SHAPE))
        edges = [0, *np.logspace(-6, 0, 25), 1.5, 2, 3, 4.5]
        return sum(quad(inside, a, b, limit=200)[0] for a, b in zip(edges, edges[1:])) / (SHAPE * gamma(SHAPE))

    return np.log(mean(magnitude)) - mean(lambda s: log_square(s * s)) / 2


values = [statistic(db) for db in range(-20, 101)]
if sys.argv[1:2] == ["--check"]:
    text = open(sys.argv[2]).read()
    table = text[text.index("kTable"):]
    there = [float(x) for x in re.findall(r"\b\d\.\d{6}\b", table[: table.index("}")])]
    assert len(there) == len(values), len(there)
    worst = max(abs(a - b) for a, b in zip(there, values))
    assert worst < 1e-6, worst
    print("equal")
else:
    for i in range(0, len(values), 8):
        print("    " + ", ".join(f"{v:.6f}" for v in values[i : i + 8]) + ",")
