"""Test signals that any language can make again bit for bit: integers only, int16 out.

In:  a sample rate [Hz].
Out: a numpy int16 array. As floats they are sample / 32768, exact in single precision.

Throughout: `//` of non-negative integers; `>>` is the arithmetic shift, which rounds down (C++20's
on int64_t); nothing exceeds int64, except the generator's state, which is uint64 and wraps.
All counts are integer divisions: 3/4 s is rate * 3 // 4 samples.

Generator (Knuth's MMIX constants): state = state * 6364136223846793005 + 1442695040888963407
mod 2^64, then the draw is the state's upper 16 bits read as int16: static_cast<int16_t>(state >> 48).
A signal's first sample uses the state after one step.

The golden vectors are of these signals: tests/golden makes them by this file.
"""

import numpy as np

MULTIPLIER = 6364136223846793005
INCREMENT = 1442695040888963407
VOICE_SEED = 1
NOISE_SEED = 2
HARMONICS = (16, 12, 10, 8, 6, 5, 4, 3, 2, 1)  # weight of harmonic 1, 2, ..., 10


def draws(seed: int, count: int) -> np.ndarray:
    """int64; state i is MULTIPLIER^i seed + INCREMENT (1 + MULTIPLIER + ... + MULTIPLIER^(i - 1))."""
    powers = np.multiply.accumulate(np.full(count + 1, MULTIPLIER, np.uint64))  # MULTIPLIER^(i + 1)
    sums = np.add.accumulate(np.concatenate([np.ones(1, np.uint64), powers[:-1]]))[:count]
    states = powers[:count] * np.uint64(seed) + sums * np.uint64(INCREMENT)
    return (states >> np.uint64(48)).astype(np.uint16).view(np.int16).astype(np.int64)


def sine(phase: np.ndarray) -> np.ndarray:
    """Parabolic sine of a uint32 phase (2^32 is a full turn): -32768 to 32768.

    s = int16_t(phase >> 16); (s * (32768 - |s|)) >> 13
    """
    s = (phase >> 16).astype(np.uint16).view(np.int16).astype(np.int64)
    return (s * (32768 - np.abs(s))) >> 13


def voice(rate: int) -> np.ndarray:
    """Ten harmonics gliding from 110 to 330 Hz over noise; n = rate * 3 // 4 samples.

    first = (110 << 32) // rate, last = (330 << 32) // rate, attack = n // 8, phase = 0 (uint32).
    For i = 0 .. n-1:
      tone = sum over h = 1..10 of HARMONICS[h-1] * sine(uint32(h * phase))
      envelope = min((i + 1) * 32768 // attack, (n - i) * 32768 // n)
      sample = ((tone * envelope) >> 22) + (draw >> 7)          draw: the generator from seed 1
      phase = uint32(phase + first + (last - first) * i // n)
    """
    n = rate * 3 // 4
    first, last, attack = (110 << 32) // rate, (330 << 32) // rate, n // 8
    i = np.arange(n)
    steps = first + (last - first) * i // n
    phase = np.cumsum(steps) - steps
    tone = sum(w * sine((h * phase) & 0xFFFFFFFF) for h, w in enumerate(HARMONICS, 1))
    envelope = np.minimum((i + 1) * 32768 // attack, (n - i) * 32768 // n)
    return (((tone * envelope) >> 22) + (draws(VOICE_SEED, n) >> 7)).astype(np.int16)


def noise(rate: int) -> np.ndarray:
    """draw >> 2 of the generator from seed 2; rate * 3 // 10 samples."""
    return (draws(NOISE_SEED, rate * 3 // 10) >> 2).astype(np.int16)


def silence(rate: int) -> np.ndarray:
    """rate // 5 zeros."""
    return np.zeros(rate // 5, dtype=np.int16)


def impulse(rate: int) -> np.ndarray:
    """n = rate // 5 zeros, but 20000 at index n // 2."""
    out = silence(rate)
    out[len(out) // 2] = 20000
    return out


def full_scale(rate: int) -> np.ndarray:
    """rate // 5 samples: -32768 where (i // 37) is even, else 32767."""
    i = np.arange(rate // 5)
    return np.where(i // 37 % 2 == 0, -32768, 32767).astype(np.int16)


def dc(rate: int) -> np.ndarray:
    """rate // 5 samples of 12000."""
    return np.full(rate // 5, 12000, dtype=np.int16)


def short(rate: int) -> np.ndarray:
    """The first 150 samples of voice(rate)."""
    return voice(rate)[:150]


def one(rate: int) -> np.ndarray:
    """A single sample, 12345, whatever the rate."""
    return np.array([12345], dtype=np.int16)


SIGNALS = dict(voice=voice, noise=noise, silence=silence, impulse=impulse, full_scale=full_scale,
               dc=dc, short=short, one=one)


def checksum(samples: np.ndarray) -> int:
    """FNV-1a, 32 bits, over the little-endian bytes: for a test that its signals are these."""
    value = 2166136261
    for byte in samples.astype("<i2").tobytes():
        value = ((value ^ byte) * 16777619) & 0xFFFFFFFF
    return value
