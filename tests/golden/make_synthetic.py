#!/usr/bin/env python3
"""Makes synthetic.json: what the source `synthetic` computes, by its definition in whole numbers.

In:  nothing; any Python.
Out: synthetic.json beside this file: [{options, name, frequency, samples, sha256}]; sha256 of the
     recording's samples as little-endian int16, `frequency` of a tone [mHz], else null. A sine is at
     most 1e-4 from the true one before it is rounded, which is checked here.

draw(x): x = x * 6364136223846793005 + 1442695040888963407 mod 2^64; x >> 48.
seed of recording i: x = seed * 0x9E3779B97F4A7C15 + i + 1, then splitmix64's last three steps.
"""

import hashlib
import json
import math

import golden_text

MASK = 2**64 - 1
CASES = [dict(kind=kind, count=2, duration=duration, rate=rate, **more)
         for kind, duration, rate, more in [
             ("tone", 16000, 16000, {}),
             ("tone", 5000, 8000, dict(low=440, high=440, amplitude=1)),
             ("tone", 5000, 44100, dict(seed=7, low=20, high=20000)),
             ("sweep", 30000, 16000, dict(low=50, high=8000, amplitude=0.9)),
             ("noise", 16000, 16000, {}),
             ("noise", 3001, 16000, dict(seed=4294967295, amplitude=0.125)),
             ("silence", 100, 16000, {}),
         ]]


def draw(state):
    state = (state * 6364136223846793005 + 1442695040888963407) & MASK
    return state, state >> 48


def seed_of(seed, recording):
    x = (seed * 0x9E3779B97F4A7C15 + recording + 1) & MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def sine(phase, amplitude):
    """Taylor's series of the sine to z^13, in 30 bits behind the point."""
    rest = phase % 2**62
    if phase & 2**62:
        rest = 2**62 - rest
    z = (rest >> 32) * round(math.pi / 2 * 2**30) >> 30
    z2 = z * z >> 30
    total = 2**30
    for k in (156, 110, 72, 42, 20, 6):
        total = 2**30 - (z2 * total >> 30) // k
    exact = amplitude * (z * total >> 30)
    assert abs(exact / 2**30 - amplitude * abs(math.sin(phase / 2**63 * math.pi))) < 1e-4
    size = exact + 2**29 >> 30
    return -size if phase >> 63 else size


def recordings(kind, count, duration, rate, low=100, high=None, amplitude=0.5, seed=0):
    low, high = low * 1000, rate * 1000 * 9 // 20 if high is None else high * 1000
    scale = math.floor(amplitude * 32767 + 0.5)
    for i in range(count):
        state = seed_of(seed, i)
        frequency = low + (high - low) * draw(state)[1] // 65535
        first, last = (frequency, frequency) if kind == "tone" else (low, high)
        step, phase, out = (first << 64) // (rate * 1000), 0, []
        growth = ((last << 64) // (rate * 1000) - step) // duration
        for _ in range(duration):
            if kind == "noise":
                state, value = draw(state)
                value -= 65536 if value >= 32768 else 0
                size = abs(value) * scale // 32768
                out.append(size if value >= 0 else -size)
            elif kind == "silence":
                out.append(0)
            else:
                out.append(sine(phase, scale))
                phase, step = (phase + step) & MASK, step + growth
        yield f"{kind}/{i:06}", frequency if kind == "tone" else None, out


def main():
    lines = []
    for options in CASES:
        for name, frequency, samples in recordings(**options):
            data = b"".join(s.to_bytes(2, "little", signed=True) for s in samples)
            lines.append(json.dumps(dict(options=options, name=name, frequency=frequency,
                                         samples=len(samples),
                                         sha256=hashlib.sha256(data).hexdigest())))
    golden_text.write("synthetic.json", lines)


if __name__ == "__main__":
    main()
