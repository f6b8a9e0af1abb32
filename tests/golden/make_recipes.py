#!/usr/bin/env python3
"""Makes recipes.json: what the Python of docs/recipes.md gives for a signal that a test can make, too.

In:  make_recipes.py      in the environment of setup.sh
Out: recipes.json beside it: for each recipe its title, the rate of its signal [Hz], the number of frames, and
     the first rows.
"""
import json
import os
import re
import tempfile

import kaldi_native_fbank  # noqa: F401  (used by the recipes, as are the next)
import lhotse  # noqa: F401
import librosa  # noqa: F401
import numpy as np
import soundfile
import torchaudio  # noqa: F401
import transformers  # noqa: F401
import whisper  # noqa: F401

import golden_text

HERE = os.path.dirname(os.path.abspath(__file__))
SAMPLES, ROWS = 4000, 16
RATES = {"Whisper: recordings of any rate": 22050}  # [Hz]; others 16 kHz


def signal():
    """Silence, then noise that swells, in integers, so that every language makes the same."""
    i = np.arange(SAMPLES, dtype=np.int64)
    noise = (i * i * 7 % 16001) * (i % 3000) // 3000 - 4000
    return np.where(i < 1200, 0, noise).astype(np.int16)


def main():
    with open(os.path.join(HERE, "../../docs/recipes.md"), encoding="utf-8") as f:
        recipes = re.findall(r"### (.*?)\n\n```python\n(.*?)```", f.read(), re.S)
    out = []
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "signal.wav")
        for title, code in recipes:
            rate = RATES.get(title, 16000)
            soundfile.write(path, signal(), rate, subtype="PCM_16")
            names = {**globals(), "path": path}
            exec(code, names)  # pylint: disable=exec-used
            rows = np.asarray(names["rows"], dtype=np.float64)
            out.append({"title": title, "rate": rate, "frames": rows.shape[0], "bands": rows.shape[1],
                        "rows": [[float(f"{v:.7g}") for v in row] for row in rows[:ROWS]]})
    golden_text.write("recipes.json", [json.dumps(r) for r in out])


if __name__ == "__main__":
    main()
