"""The ten presets on real recordings, by the libraries that define them, for real_presets_test.cpp.

In:  AUDIO, a folder filled by tests/support/fetch_audio.sh.
Out: real_presets.json beside this file: {"recordings": [{package, path, sha256, sample_rate, samples}],
     "cases": [{name, preset, library, version, function, options, recording, sample_rate, frames, bands,
     "rows": [{frame, values, own_error}]}]}, rows as in presets.json (make_presets.py).

The presets are taken at the recordings' own rates: options has what follows from that. Whisper's
extractor knows one rate only: for it the samples count as 16 kHz.
"""

import argparse
import pathlib

import numpy as np

import definition
import golden_text
import make_golden
from make_presets import computed, kaldi_frame, noted_errors, report, row_text

RECORDINGS = [
    make_golden.RECORDINGS[0],
    ("asterisk-core-sounds-ru-wav",
     "usr/share/asterisk/sounds/ru_RU_f_IvrvoiceRU/screen-callee-options.wav"),
    make_golden.RECORDINGS[1],
]
ROWS_PER_CASE = 4


def options_at(preset, rate):
    if preset in ("kaldi", "kaldi_htk", "ast"):
        return kaldi_frame(rate)
    if preset == "hifigan" and rate < 16000:
        return dict(fmax=0.0)
    if preset == "nemo":
        return dict(fmax=0.0)
    return {}


def case_text(preset, index, samples, rate):
    if preset.startswith("whisper"):
        rate = 16000
    options = options_at(preset, rate)
    o = definition.resolve(preset, dict(options, sample_rate=rate))
    exact = definition.rows(o, samples)
    head, got, reason = computed(preset, o, None, samples)
    assert got is not None, (preset, index, reason)
    name = f"{preset}, recording {index}"
    report(name, o, got, exact)
    errors = noted_errors(got, exact, o["log"] != "none")
    fields = dict(name=name, preset=preset, **head, options=options, recording=index,
                  sample_rate=rate, frames=len(exact), bands=exact.shape[1])
    shown = sorted({round(i) for i in np.linspace(0, len(got) - 1, ROWS_PER_CASE)})
    return golden_text.block(fields, "rows", [row_text(t, got[t], errors[t]) for t in shown], "  ")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("audio", type=pathlib.Path)
    audio = parser.parse_args().audio
    recordings, cases = [], []
    for index, (package, path) in enumerate(RECORDINGS):
        text, samples, rate = golden_text.recording(audio, package, path)
        recordings.append("  " + text)
        cases += [case_text(preset, index, samples, rate) for preset in definition.PRESETS]
    golden_text.write("real_presets.json", dict(recordings=recordings, cases=cases))


if __name__ == "__main__":
    main()
