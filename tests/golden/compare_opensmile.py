"""HTK's filters by openSMILE (htkcompatible): how far definition.py's are from those.

In:  pip install opensmile (2.6.0; its license is for private, research and educational use)
Out: a line for each filterbank: the largest distance of a weight, and of the sum of the first and
     the last band with each htk_mode.

openSMILE rounds samples to 16 bits: weights are off by 2e-5 to 4e-5 for that alone.
"""

import pathlib
import tempfile

import numpy as np
import opensmile

import definition
import option_table

AMPLITUDE = 0.99
CONFIG = """
[componentInstances:cComponentManager]
instance[dataMemory].type = cDataMemory
instance[frames].type = cFramer
instance[fft].type = cTransformFFT
instance[magnitude].type = cFFTmagphase
instance[mel].type = cMelspec
\\{\\cm[source{?}:include external source]}
[frames:cFramer]
reader.dmLevel = wave
writer.dmLevel = frames
frameSize = FRAME
frameStep = FRAME
frameCenterSpecial = left
noPostEOIprocessing = 1
[fft:cTransformFFT]
reader.dmLevel = frames
writer.dmLevel = fft
[magnitude:cFFTmagphase]
reader.dmLevel = fft
writer.dmLevel = magnitude
[mel:cMelspec]
reader.dmLevel = magnitude
writer.dmLevel = lld
nBands = BANDS
lofreq = LOW
hifreq = HIGH
usePower = 1
htkcompatible = 1
\\{\\cm[sink{?}:include external sink]}
"""


def filters(o):
    """[n_mels, n_fft / 2 + 1]: the frame of a bin's cosine gives the weights of that bin."""
    rate, n = o["sample_rate"], o["n_fft"]
    bins = np.arange(n // 2 + 1)
    cosines = AMPLITUDE * np.cos(2 * np.pi * bins[:, None] * np.arange(n) / n)
    text = CONFIG
    values = dict(FRAME=n / rate, BANDS=o["n_mels"], LOW=o["fmin"], HIGH=o["fmax"])
    for name, value in values.items():
        text = text.replace(name, str(value))
    with tempfile.TemporaryDirectory() as folder:
        config = pathlib.Path(folder) / "mel.conf"
        config.write_text(text)
        smile = opensmile.Smile(feature_set=str(config), feature_level="lld")
        rows = smile.process_signal(cosines.ravel().astype(np.float32), rate).to_numpy()
    return rows.T / (32767 * AMPLITUDE * n / 2) ** 2


def main():
    for rate, n_fft, n_mels, fmin, fmax in (
            (16000, 512, 26, 0.0, 8000.0), (16000, 512, 26, 20.0, 7800.0),
            (16000, 512, 26, 64.0, 8000.0), (16000, 512, 26, 125.0, 7600.0),
            (16000, 512, 23, 133.0, 6855.0), (8000, 256, 20, 64.0, 3800.0),
            (44100, 1024, 40, 133.3333, 6855.4976), (16000, 512, 80, 60.0, 7990.0)):
        o = option_table.resolve(dict(
            sample_rate=rate, n_fft=n_fft, n_mels=n_mels, fmin=fmin, fmax=fmax, mel_scale="kaldi",
            triangles="mel"))
        theirs = filters(o)
        print(f"{rate} Hz, {n_fft}, {n_mels} bands, {fmin:g} to {fmax:g} Hz:")
        for mode in (False, "kaldi", "htk"):
            ours = definition.filters(dict(o, htk_mode=mode))
            sums = ours.sum(axis=1) / theirs.sum(axis=1) - 1
            print(f"  htk_mode {mode}: a weight {np.abs(ours - theirs).max():.1e}, band 0 "
                  f"{100 * sums[0]:+.2f} %, the last {100 * sums[-1]:+.2f} %")


if __name__ == "__main__":
    main()
