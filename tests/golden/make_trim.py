#!/usr/bin/env python3
"""Makes trim.json: what librosa.effects.trim leaves of recordings.

In:  nothing; in the environment of setup.sh. A recording is a row of stretches [samples, shift]: of
     signals.draws(4) the next draws >> shift, or that many zeros where shift is 16 or more. As
     floats they are sample / 32768.
Out: trim.json beside this file: [{name, version, stretches, options, begin, end}]; librosa leaves the
     samples [begin, end). `ref` in options: the level of 0 dB, 1.0, where it is not the loudest
     frame's. No frame of any case is nearer than 1e-3 dB to where it would be silent or not.
"""

import itertools

import librosa
import numpy as np

import golden_text
import signals

SEED = 4
SHORT = dict(frame_length=400, hop_length=160)
QUIET_ENDS = [(5000, 13), (9000, 3), (7000, 12)]
CASES = [  # name, stretches, librosa's arguments
    ("zeros at both ends", [(6000, 16), (9000, 2), (4000, 16)], {}),
    ("zeros at both ends, by level", [(6000, 16), (9000, 2), (4000, 16)], dict(top_db=40, ref=1.0)),
    ("noise at both ends is sound at 60 dB", QUIET_ENDS, {}),
    ("noise at both ends is silence at 40 dB", QUIET_ENDS, dict(top_db=40)),
    ("noise at the end is sound at 56 dB", QUIET_ENDS, dict(top_db=56)),
    ("noise at both ends is silence at -40 dB", QUIET_ENDS, dict(top_db=40, ref=1.0)),
    ("a pause stays", [(3000, 16), (2000, 3), (20000, 16), (2000, 4), (3000, 16)], dict(top_db=40)),
    ("a pause stays, by level", [(3000, 16), (2000, 3), (20000, 16), (2000, 4), (3000, 16)],
     dict(top_db=40, ref=1.0)),
    ("frames of 400, every 160", [(3001, 16), (2003, 3), (3007, 16)], SHORT),
    ("frames of 400, every 160, by level", [(3001, 16), (2003, 3), (3007, 16)],
     dict(top_db=30, ref=1.0, **SHORT)),
    ("frames of an odd length", [(3001, 16), (2003, 3), (3007, 16)],
     dict(frame_length=401, hop_length=160, top_db=30)),
    ("frames of an odd length, by level", [(3001, 16), (2003, 3), (3007, 16)],
     dict(frame_length=401, hop_length=160, top_db=30, ref=1.0)),
    ("frames apart", [(3001, 16), (2003, 3), (3007, 16)],
     dict(frame_length=100, hop_length=333, top_db=30, ref=1.0)),
    ("a frame of one sample", [(301, 16), (203, 3), (307, 16)],
     dict(frame_length=1, hop_length=1, top_db=30, ref=1.0)),
    ("sound to the end", [(5000, 16), (5000, 3)], dict(top_db=40)),
    ("sound from the start, by level", [(5000, 3), (5000, 16)], dict(top_db=40, ref=1.0)),
    ("silence alone", [(5000, 16)], {}),
    ("silence alone, by level", [(5000, 16)], dict(top_db=40, ref=1.0)),
    ("quiet throughout, by level", [(5000, 14)], dict(top_db=40, ref=1.0)),
    ("shorter than a frame", [(10, 16), (700, 3), (10, 16)], {}),
    ("shorter than a frame, by level", [(10, 16), (700, 3), (10, 16)], dict(top_db=40, ref=1.0)),
    ("one sample", [(1, 3)], {}),
    ("a click at the very end", [(4096, 16), (20, 1)], dict(top_db=30, ref=1.0, **SHORT)),
    ("a click at the end of the last hop", [(4140, 16), (20, 1)], dict(top_db=30, ref=1.0, **SHORT)),
    ("a click that only the frame at the end hears", [(4140, 16), (20, 1)],
     dict(frame_length=30, hop_length=160, top_db=30, ref=1.0)),
]


def samples(stretches):
    draws = signals.draws(SEED, sum(count for count, _ in stretches))
    return np.array([0 if shift >= 16 else draw >> shift for count, shift in stretches
                     for draw in itertools.islice(draws, count)], np.int16)


def nearest(x, frame_length=2048, hop_length=512, top_db=60.0, ref=np.max):
    """How near [dB] a frame is to the limit."""
    rms = librosa.feature.rms(y=x.astype(np.float64), frame_length=frame_length,
                              hop_length=hop_length, dtype=np.float64)
    return np.abs(librosa.amplitude_to_db(rms, ref=ref, top_db=None) + top_db).min()


def line(name, stretches, options):
    x = samples(stretches).astype(np.float32) / 32768
    assert nearest(x, **options) > 1e-3, name
    begin, end = librosa.effects.trim(x, **options)[1]
    return golden_text.line(dict(name=name, version=librosa.__version__, stretches=stretches,
                                 options=options, begin=int(begin), end=int(end)))


def main():
    golden_text.write("trim.json", [line(*case) for case in CASES])


if __name__ == "__main__":
    main()
