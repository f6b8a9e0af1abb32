#!/usr/bin/env python3
"""Makes lengths.json: how many samples librosa and torchaudio give of so many at another rate.

In:  nothing; in the environment of setup.sh.
Out: lengths.json beside this file: [{from, to, samples, librosa, torchaudio}]. Where the two differ,
     librosa's product in double precision is a little more than a whole number.
"""

import json

import librosa
import numpy as np
import torch
import torchaudio

import golden_text

RATES = [(44100, 16000), (48000, 16000), (22050, 16000), (11025, 24000), (8000, 22050), (16000, 44100)]
COUNTS = [1, 2, 3, 100, 147, 441, 1000, 1176, 3234, 4410, 5292, 12001]


def lengths(old, new, count):
    x = np.zeros(count, np.float32)
    return {"from": old, "to": new, "samples": count,
            "librosa": len(librosa.resample(x, orig_sr=old, target_sr=new)),
            "torchaudio": len(torchaudio.functional.resample(torch.from_numpy(x), old, new))}


def main():
    golden_text.write("lengths.json", [json.dumps(lengths(*rates, count)) for rates in RATES for count in COUNTS])


if __name__ == "__main__":
    main()
