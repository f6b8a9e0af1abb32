"""Test signals that any language can make again bit for bit: integers only, int16 out.

In:  a sample rate [Hz].
Out: a numpy int16 array. As floats they are sample / 32768, exact in single precision.

Throughout: `//` of non-negative integers; `>>` is the arithmetic shift, which rounds down (C++20's
on int64_t); nothing exceeds int64, except the generator's state, which is uint64 and wraps.
All counts are integer divisions: 3/4 s is rate * 3 // 4 samples.

Generator (Knuth's MMIX constants): state = state * 6364136223846793005 + 1442695040888963407
mod 2^64, then the draw is the state's upper 16 bits read as int16: static_cast<int16_t>(state >> 48).
A signal's first sample uses the state after one step.
"""

import numpy as np

MULTIPLIER = 6364136223846793005
INCREMENT = 1442695040888963407
VOICE_SEED = 1
NOISE_SEED = 2
HARMONICS = (16, 12, 10, 8, 6, 5, 4, 3, 2, 1)  # weight of harmonic 1, 2, ..., 10


def int16_of(bits):
    """The low 16 bits read as two's complement."""
    bits &= 0xFFFF
    return bits - 0x10000 if bits >= 0x8000 else bits


def draws(seed, count):
    state = seed
    for _ in range(count):
        state = (state * MULTIPLIER + INCREMENT) & 0xFFFFFFFFFFFFFFFF
        yield int16_of(state >> 48)


def sine(phase):
    """Parabolic sine of a uint32 phase (2^32 is a full turn): -32768 to 32768.

    s = int16_t(phase >> 16); (s * (32768 - |s|)) >> 13
    """
    s = int16_of(phase >> 16)
    return (s * (32768 - abs(s))) >> 13


def voice(rate):
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
    out, phase = [], 0
    for i, draw in enumerate(draws(VOICE_SEED, n)):
        tone = sum(w * sine((h * phase) & 0xFFFFFFFF) for h, w in enumerate(HARMONICS, 1))
        envelope = min((i + 1) * 32768 // attack, (n - i) * 32768 // n)
        out.append(((tone * envelope) >> 22) + (draw >> 7))
        phase = (phase + first + (last - first) * i // n) & 0xFFFFFFFF
    return np.array(out, dtype=np.int16)


def noise(rate):
    """draw >> 2 of the generator from seed 2; rate * 3 // 10 samples."""
    return np.array([d >> 2 for d in draws(NOISE_SEED, rate * 3 // 10)], dtype=np.int16)


def silence(rate):
    """rate // 5 zeros."""
    return np.zeros(rate // 5, dtype=np.int16)


def impulse(rate):
    """n = rate // 5 zeros, but 20000 at index n // 2."""
    out = silence(rate)
    out[len(out) // 2] = 20000
    return out


def full_scale(rate):
    """rate // 5 samples: -32768 where (i // 37) is even, else 32767."""
    i = np.arange(rate // 5)
    return np.where(i // 37 % 2 == 0, -32768, 32767).astype(np.int16)


def dc(rate):
    """rate // 5 samples of 12000."""
    return np.full(rate // 5, 12000, dtype=np.int16)


def short(rate):
    """The first 150 samples of voice(rate)."""
    return voice(rate)[:150]


def one(rate):
    """A single sample, 12345, whatever the rate."""
    return np.array([12345], dtype=np.int16)


SIGNALS = dict(voice=voice, noise=noise, silence=silence, impulse=impulse, full_scale=full_scale,
               dc=dc, short=short, one=one)


def checksum(samples):
    """FNV-1a, 32 bits, over the little-endian bytes: for a test that its signals are these."""
    value = 2166136261
    for byte in samples.astype("<i2").tobytes():
        value = ((value ^ byte) * 16777619) & 0xFFFFFFFF
    return value
