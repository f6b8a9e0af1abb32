"""The signals of front_ends.json, in integers, so that every machine makes the same; NumPy alone.

Speech is among them because it has silence, pauses and weak bands: music alone misses a wrong floor of the logarithm,
and a start in silence misses a wrong edge of the pre-emphasis.
"""

import pathlib
import sys

import numpy as np

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "apps/python/melflow"))

from parity_signals import draws, sine  # noqa: E402

# [Hz] of three formants at 16 kHz, and the samples: of a, i, u and s
SOUNDS = (((730, 1090, 2440), 4200, True), ((4500, 5500, 6500), 1800, False), ((270, 2290, 3010), 3600, True),
          (None, 1300, False), ((300, 870, 2240), 3900, True))
SILENCE = 1500
ONE = 1 << 14  # of the resonators' coefficients


def resonator(x, hz):
    """Two poles with a bandwidth of 120 Hz, in fixed point; cos by its series, whose error is that of a formant's place."""
    angle = np.float64(2 * 355 / 113 * hz / 16000)
    square = angle * angle
    cosine = 1 - square / 2 * (1 - square / 12 * (1 - square / 30 * (1 - square / 56)))
    b1, b2, out = int(2 * 0.977 * cosine * ONE), int(0.954 * ONE), []
    y1 = y2 = 0
    for v in x:
        y1, y2 = v + (b1 * y1 - b2 * y2 >> 14), y1
        out.append(y1)
    return out


def speech():
    """Vowels over a falling pitch, a fricative and pauses; silence before and after."""
    noise, out, at = draws(5, 30000) >> 8, [0] * SILENCE, 0
    for formants, count, is_voiced in SOUNDS:
        source, left = [0] * count, 0
        for i in range(count if formants else 0):
            source[i] = int(noise[at + i]) // (8 if is_voiced else 1)
            if is_voiced and left <= 0:
                source[i] += 6000
                left = 120 + (at + i) // 300  # [samples] of a period
            left -= 1
        at += count
        tone = [0] * count
        for hz in formants or ():
            tone = [a + b for a, b in zip(tone, resonator(source, hz))]
        fade = [min(i, count - 1 - i, 400) for i in range(count)]
        out += [max(-20000, min(20000, t * f // 1200)) for t, f in zip(tone, fade)]
    return np.array(out + [0] * SILENCE, np.int16)


def music():
    """Two chords at once that ring from the first sample on."""
    i = np.arange(15000, dtype=np.int64)
    out = sum((sine((step * i + (phase << 28)) & 0xFFFFFFFF) * (30000 - i)) >> 18
              for step, phase in ((59055800, 3), (74401900, 5), (88477000, 1), (236223000, 9), (1288490188, 4)))
    return out.astype(np.int16)


def click():
    out = np.zeros(6000, np.int16)
    out[2345] = 30000
    return out


def lsb():
    """The last bit alone."""
    return (draws(7, 5000) % 3 - 1).astype(np.int16)


SIGNALS = dict(speech=speech, music=music, click=click, lsb=lsb, short=lambda: speech()[3000:3200])
