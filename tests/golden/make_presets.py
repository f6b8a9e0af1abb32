"""Rows of ten presets, the front ends of well-known libraries, on the signals of signals.py.

Out: presets.json beside this file:
     {"presets": {name: options}         melflow's option names, where they differ from its defaults
      "signals": [{signal, sample_rate, samples, fnv1a}],
      "tolerances": {preset: {atol, rtol, source}},   what the libraries' own tests allow
      "cases": [{name, preset, library, version, function, options, sample_rate, signal, samples,
                 frames, bands, "rows": [{frame, values, own_error?}]}],
      "deltas": [{name, library, version, function, method, order, width, input, output}]}
     A case has "mfcc" where cepstra follow the mel bands. "left_out" instead of frames: the library
     gives nothing for this signal, and why. "note" with frames 0: the library stops, though its
     definition has no frame here. "torchaudio_difference": the greatest difference between
     kaldi-native-fbank and torchaudio.compliance.kaldi.fbank, over all frames; of linear values, in
     parts of the greatest.
     own_error: per value, in the values' unit, how far the library is from definition.py, which is
     in double precision; only in rows where some value's is more than 1e-4 (logarithms) or 1e-4 of
     the value (linear), and 0 for the values where it is not.

The options of a case are written down once; the library's arguments follow from them.
"""

import argparse
import functools

import numpy as np

import definition
import delta_cases
import golden_text
import libraries
import signals
from tolerances import TOLERANCES

DIGITS = 7
WORTH_NOTING = 1e-4
# The frames whose rows are stored, relative to the last frame.
ROWS = (0, 1 / 2, 1)
ROWS_OF_VOICE = (0, 2 / 7, 5 / 7, 1)
MUCH_AS_OTHERS = ("kaldi_htk", "ast", "whisper_large_v3")
RATES = (8000, 11025, 16000, 22050, 44100, 48000)
OTHER_RATES = dict(librosa=(8000, 48000), torchaudio=(11025, 48000), kaldi=(8000, 44100),
                   kaldi_htk=(8000, 44100), ast=(8000, 22050), nemo=(8000, 44100),
                   speechbrain=(11025, 44100), hifigan=(8000, 44100))
MFCC = dict(n_mfcc=13, dct_type=2, ortho=True, lifter=0, lifter_style="librosa")
KALDI_MFCC = dict(MFCC, lifter=22, lifter_style="kaldi")
LOG_MEL = dict(log="db", top_db=80.0)
NARROW = dict(n_fft=512, hop=128, n_mels=40)
GIVEN = dict(window="values", win_length=16,
             window_values=[round(0.1 + (7 * i % 16) / 32, 5) for i in range(16)])
LHOTSE = dict(input_scale=1.0, n_mels=80, fmax=-400.0, snip_edges=False, energy_eps=1e-15,
              energy_floor=1e-10)

# name, preset, options, signal; mfcc
VARIANTS = [
    ("librosa amplitude", "librosa", dict(NARROW, power=1.0), "voice"),
    ("librosa kaiser window", "librosa", dict(NARROW, window="kaiser", kaiser_beta=8.6), "voice"),
    ("librosa gauss window", "librosa", dict(NARROW, window="gauss", gauss_std=80.0), "voice"),
    ("librosa blackman_harris window", "librosa", dict(NARROW, window="blackman_harris"), "voice"),
    ("librosa blackman window, symmetric", "librosa",
     dict(NARROW, window="blackman", periodic=False), "voice"),
    ("librosa gauss window, symmetric", "librosa",
     dict(NARROW, window="gauss", gauss_std=80.0, periodic=False), "voice"),
    ("librosa boxcar window", "librosa", dict(NARROW, window="boxcar"), "voice"),
    ("librosa nuttall window", "librosa", dict(NARROW, window="nuttall"), "voice"),
    ("librosa bartlett window", "librosa", dict(NARROW, window="bartlett"), "voice"),
    ("librosa cosine window", "librosa", dict(NARROW, window="cosine"), "voice"),
    ("librosa cosine window, symmetric", "librosa",
     dict(NARROW, window="cosine", periodic=False), "voice"),
    ("librosa tukey window", "librosa", dict(NARROW, window="tukey"), "voice"),
    ("librosa tukey window, alpha 0.2, symmetric", "librosa",
     dict(NARROW, window="tukey", tukey_alpha=0.2, periodic=False), "voice"),
    ("librosa hamming window, alpha 0.6", "librosa",
     dict(NARROW, window="hamming", hamming_alpha=0.6), "voice"),
    ("librosa blackman window, coefficient 0.4", "librosa",
     dict(NARROW, window="blackman", blackman_coeff=0.4), "voice"),
    ("librosa given window", "librosa", dict(NARROW, **GIVEN), "voice"),
    ("librosa norm 1", "librosa", dict(NARROW, norm="1"), "voice"),
    ("librosa norm 2", "librosa", dict(NARROW, norm="2", mel_scale="htk"), "voice"),
    ("librosa norm inf", "librosa", dict(NARROW, norm="inf"), "voice"),
    ("librosa linear ramp", "librosa", dict(NARROW, pad_mode="linear_ramp"), "noise"),
    ("librosa linear ramp", "librosa", dict(NARROW, pad_mode="linear_ramp"), "dc"),
    ("librosa linear ramp, longer than the signal", "librosa",
     dict(NARROW, pad_mode="linear_ramp"), "short"),
    ("librosa amplitude, power_to_db", "librosa",
     dict(NARROW, **LOG_MEL, power=1.0, db_factor=10.0), "voice"),
    ("librosa short hamming window", "librosa",
     dict(NARROW, window="hamming", win_length=400), "voice"),
    ("librosa reflect", "librosa", dict(NARROW, pad_mode="reflect"), "noise"),
    ("librosa symmetric", "librosa", dict(NARROW, pad_mode="symmetric"), "noise"),
    ("librosa edge", "librosa", dict(NARROW, pad_mode="edge"), "noise"),
    ("librosa reflect, longer than the signal", "librosa",
     dict(NARROW, pad_mode="reflect"), "short"),
    ("librosa not centred", "librosa", dict(NARROW, center=False), "noise"),
    ("librosa htk without norm, band limits", "librosa",
     dict(NARROW, mel_scale="htk", norm="none", fmin=100.0, fmax=7000.0), "voice"),
    ("librosa db, top 80 dB", "librosa", dict(NARROW, **LOG_MEL), "voice"),
    ("librosa amplitude, db, reference 0.5", "librosa",
     dict(NARROW, power=1.0, log="db", ref=0.5, amin=1e-5), "voice"),
    ("torchaudio amplitude", "torchaudio", dict(power=1.0, n_mels=64), "voice"),
    ("torchaudio normalized by the window", "torchaudio",
     dict(normalized="window", n_mels=64), "voice"),
    ("torchaudio normalized by the frame length, short window", "torchaudio",
     dict(normalized="frame_length", n_fft=512, win_length=400, hop=160, n_mels=64), "voice"),
    ("torchaudio not centred", "torchaudio", dict(center=False, n_mels=64), "noise"),
    ("torchaudio kaiser window", "torchaudio",
     dict(window="kaiser", kaiser_beta=12.0, n_mels=64), "voice"),
    ("torchaudio db, slaney, constant padding", "torchaudio",
     dict(LOG_MEL, mel_scale="slaney", norm="slaney", n_fft=512, hop=160, n_mels=80,
          pad_mode="constant"), "voice"),
    ("torchaudio bartlett window", "torchaudio", dict(window="bartlett", n_mels=64), "voice"),
    ("torchaudio hamming window, alpha 0.5, symmetric", "torchaudio",
     dict(window="hamming", hamming_alpha=0.5, periodic=False, n_mels=64), "voice"),
    ("torchaudio given window", "torchaudio", dict(GIVEN, n_mels=16), "voice"),
    ("torchaudio odd n_fft", "torchaudio", dict(n_fft=401, n_mels=40), "voice"),
    ("torchaudio pad 100", "torchaudio", dict(pad_zeros=100, n_mels=64), "dc"),
    ("torchaudio pad 300, longer than half a frame", "torchaudio",
     dict(pad_zeros=300, n_mels=64), "noise"),
    ("torchaudio pad 70, not centred", "torchaudio",
     dict(pad_zeros=70, center=False, n_mels=64), "noise"),
    ("torchaudio amplitude, 80 dB of powers", "torchaudio",
     dict(LOG_MEL, power=1.0, db_factor=10.0, n_mels=64), "voice"),
    ("kaldi without snip_edges", "kaldi", dict(snip_edges=False), "voice"),
    ("kaldi without snip_edges", "kaldi", dict(snip_edges=False), "short"),
    ("kaldi without snip_edges", "kaldi", dict(snip_edges=False), "one"),
    ("kaldi with energy", "kaldi", dict(use_energy=True), "voice"),
    ("kaldi with energy after the window", "kaldi",
     dict(use_energy=True, raw_energy=False), "voice"),
    ("kaldi with energy, floor", "kaldi", dict(use_energy=True, energy_floor=1.0), "silence"),
    ("kaldi with energy, no floor", "kaldi", dict(use_energy=True), "silence"),
    ("kaldi with energy, htk_compat", "kaldi", dict(use_energy=True, htk_compat=True), "noise"),
    ("kaldi hann window", "kaldi", dict(window="hann"), "voice"),
    ("kaldi hamming window", "kaldi", dict(window="hamming"), "voice"),
    ("kaldi blackman window", "kaldi", dict(window="blackman"), "voice"),
    ("kaldi blackman window, coefficient 0.36", "kaldi",
     dict(window="blackman", blackman_coeff=0.36), "voice"),
    ("kaldi sine window", "kaldi", dict(window="sine"), "voice"),
    ("kaldi boxcar window", "kaldi", dict(window="boxcar"), "voice"),
    ("kaldi vtln_warp 0.9", "kaldi", dict(vtln_warp=0.9), "voice"),
    ("kaldi vtln_warp 1.1", "kaldi", dict(vtln_warp=1.1), "voice"),
    ("kaldi vtln_warp 1.1, other cut-offs", "kaldi",
     dict(vtln_warp=1.1, vtln_low=60.0, vtln_high=7200.0), "noise"),
    ("kaldi 80 bands to 400 Hz below Nyquist", "kaldi", dict(n_mels=80, fmax=-400.0), "voice"),
    ("kaldi amplitude", "kaldi", dict(power=1.0), "voice"),
    ("kaldi linear", "kaldi", dict(log="none"), "voice"),
    ("kaldi amplitude, linear", "kaldi", dict(power=1.0, log="none"), "noise"),
    ("kaldi with dc", "kaldi", dict(remove_dc=False), "dc"),
    ("kaldi without preemphasis", "kaldi", dict(preemphasis=0.0), "voice"),
    ("kaldi htk_mode", "kaldi", dict(htk_mode="kaldi"), "voice"),
    ("kaldi 32 ms by 8 ms", "kaldi", dict(win_length=512, hop=128, n_mels=40), "noise"),
    ("kaldi_htk without energy", "kaldi_htk", dict(use_energy=False), "voice"),
    ("kaldi_htk low 20 Hz, energy after the window", "kaldi_htk",
     dict(fmin=20.0, raw_energy=False), "voice"),
    ("whisper with n_mels 64", "whisper", dict(n_mels=64), "voice"),
    ("nemo without normalisation", "nemo", dict(normalize="none"), "voice"),
    ("nemo without normalisation", "nemo", dict(normalize="none"), "silence"),
    ("nemo all_features", "nemo", dict(normalize="all_features"), "voice"),
    ("nemo 128 bands", "nemo", dict(n_mels=128), "noise"),
    ("speechbrain 80 bands, n_fft 512", "speechbrain", dict(n_mels=80, n_fft=512, win_length=400),
     "voice"),
    ("speechbrain odd n_fft", "speechbrain", dict(n_mels=80, n_fft=401, win_length=400), "voice"),
    ("hifigan to Nyquist", "hifigan", dict(fmax=0.0), "noise"),
    ("ast without normalisation", "ast", dict(normalize="none", n_mels=64), "voice"),
    ("librosa magnitudes", "librosa",
     dict(output="spectrogram", n_fft=512, hop=128, power=1.0), "voice"),
    ("librosa power spectrum", "librosa", dict(output="spectrogram", n_fft=512, hop=128), "voice"),
    ("torchaudio power spectrum", "torchaudio",
     dict(output="spectrogram", normalized="window"), "noise"),
]
# name, preset, options, signal, library
OTHER_VARIANTS = [
    ("lhotse", "kaldi", LHOTSE, "voice", "lhotse"),
    ("lhotse with its own mel scale, norm_filters", "kaldi",
     dict(LHOTSE, bin_hz="lhotse", norm="1"), "voice", "lhotse"),
    ("lhotse with energy", "kaldi", dict(LHOTSE, use_energy=True), "noise", "lhotse"),
    ("lhotse with energy", "kaldi", dict(LHOTSE, use_energy=True), "silence", "lhotse"),
    ("lhotse with energy, no floor", "kaldi",
     dict(LHOTSE, use_energy=True, energy_floor=0.0), "silence", "lhotse"),
    ("seamless", "kaldi",
     dict(n_mels=80, normalize="per_feature", norm_eps=1e-7, norm_eps_to="variance"), "voice",
     "seamless"),
    ("speech2text", "kaldi", dict(n_mels=80, normalize="per_feature", norm_eps=0.0, norm_ddof=0),
     "voice", "speech2text"),
    ("speech2text, mean only", "kaldi",
     dict(n_mels=40, normalize="per_feature", norm_eps=0.0, norm_variance=False), "noise",
     "speech2text"),
]
MFCC_VARIANTS = [
    ("librosa mfcc", "librosa", LOG_MEL, dict(MFCC, n_mfcc=20)),
    ("librosa mfcc, dct 3", "librosa", LOG_MEL, dict(MFCC, n_mfcc=20, dct_type=3)),
    ("librosa mfcc, lifter 22", "librosa", LOG_MEL, dict(MFCC, n_mfcc=20, lifter=22)),
    ("librosa mfcc, not orthogonal", "librosa", LOG_MEL, dict(MFCC, n_mfcc=20, ortho=False)),
    ("torchaudio mfcc", "torchaudio", LOG_MEL, dict(MFCC, n_mfcc=40)),
    ("torchaudio mfcc, not orthogonal", "torchaudio", LOG_MEL, dict(MFCC, ortho=False)),
    ("kaldi mfcc", "kaldi", dict(use_energy=True), KALDI_MFCC),
    ("kaldi mfcc without energy", "kaldi", {}, KALDI_MFCC),
    ("kaldi mfcc without lifter", "kaldi", {}, dict(KALDI_MFCC, lifter=0)),
    ("kaldi mfcc, htk_compat", "kaldi", dict(use_energy=True, htk_compat=True), KALDI_MFCC),
    ("kaldi mfcc without energy, htk_compat", "kaldi", dict(htk_compat=True), KALDI_MFCC),
    ("kaldi mfcc, 40 bands to 400 Hz below Nyquist", "kaldi", dict(n_mels=40, fmax=-400.0),
     dict(KALDI_MFCC, n_mfcc=40)),
]


def kaldi_frame(rate):
    win = int(rate * 0.025)
    return dict(n_fft=1 << (win - 1).bit_length(), win_length=win, hop=int(rate * 0.01))


def rows_of_variant(signal):
    return (1 / 3, 1) if signal == "voice" else (0, 1 / 3, 1)  # the other rows contain padding, too


def plan():
    """(name, preset, rate, options, signal, mfcc, rows) of every case, and its library if another."""
    own_rate = {name: preset["sample_rate"] for name, preset in definition.PRESETS.items()}
    for preset, rate in own_rate.items():
        for signal in signals.SIGNALS:
            if preset not in MUCH_AS_OTHERS or signal in ("voice", "noise"):
                rows = ROWS_OF_VOICE if signal == "voice" else ROWS
                yield f"{preset}, {signal}", preset, rate, {}, signal, None, rows
    for preset, rates in OTHER_RATES.items():
        for rate in rates:
            options = kaldi_frame(rate) if preset in ("kaldi", "kaldi_htk", "ast") else {}
            if preset in ("nemo", "hifigan"):
                options = dict(fmax=0.0)
            yield (f"{preset} at {rate} Hz", preset, rate, options, "voice", None,
                   rows_of_variant("voice"))
    for name, preset, options, signal in VARIANTS:
        yield (f"{name}, {signal}", preset, own_rate[preset], options, signal, None,
               rows_of_variant(signal))
    for name, preset, options, signal, library in OTHER_VARIANTS:
        yield (f"{name}, {signal}", preset, own_rate[preset], options, signal, None,
               rows_of_variant(signal), library)
    for name, preset, options, mfcc in MFCC_VARIANTS:
        yield (f"{name}, voice", preset, own_rate[preset], options, "voice", mfcc, ROWS)


def computed(preset, o, mfcc, samples, other=None):
    """Which library was asked, and its rows or the reason why there are none."""
    call, library, version, function = libraries.LIBRARIES[preset]
    if other:
        call, library, version, function = libraries.OTHERS[other]
    elif mfcc:
        mfcc_call, function = libraries.MFCCS[preset]
        call = functools.partial(mfcc_call, mfcc=mfcc)
    elif o["vtln_warp"] != 1:  # kaldi-native-fbank's computers always warp by 1
        call, library, version, function = (
            libraries.by_torchaudio_kaldi, "torchaudio", libraries.torchaudio.__version__,
            "torchaudio.compliance.kaldi.fbank")
    elif o["output"] == "spectrogram":
        function = dict(librosa="librosa.stft",
                        torchaudio="torchaudio.transforms.Spectrogram")[preset]
    head = dict(library=library, version=version, function=function)
    try:
        return head, call(o, x=samples), None
    except (AssertionError, RuntimeError, ValueError) as error:
        reason = str(error).splitlines()[0] if str(error) else "refused"
        return head, None, f"{type(error).__name__}: {reason}"


def noted_errors(got, exact, log):
    errors = np.abs(got - exact)
    limit = WORTH_NOTING * (1.0 if log else np.abs(exact))
    return np.where(errors > limit, errors, 0.0)


def row_text(t, values, errors):
    fields = dict(frame=int(t), values=golden_text.numbers(values, DIGITS).encode())
    if errors.any():
        fields["own_error"] = golden_text.numbers(errors, 2).encode()
    return golden_text.line(fields)


def report(name, o, got, exact):
    """The greatest difference of a case: large where its options do not describe the library."""
    log = o["log"] != "none"
    errors = np.abs(got - exact)
    if not log:
        errors = errors / np.maximum(np.abs(exact), 1e-6 * np.abs(exact).max(initial=1e-300))
    print(f"{name}: {got.shape[0]} x {got.shape[1]}, at most {errors.max(initial=0):.2g}"
          + ("" if log else " of the value"))


def case_text(name, preset, rate, options, signal, mfcc, parts, library=None):
    o = definition.resolve(preset, dict(options, sample_rate=rate))
    integers = signals.SIGNALS[signal](rate)
    samples = (integers / 32768.0).astype(np.float32)
    exact = definition.cepstra(o, mfcc, samples) if mfcc else definition.rows(o, samples)
    head, got, reason = computed(preset, o, mfcc, samples, library)
    fields = dict(name=name, preset=preset, **head, options=options)
    if mfcc:
        fields["mfcc"] = mfcc
    fields.update(sample_rate=rate, signal=signal, samples=len(integers))
    if got is None and len(exact):
        return "  " + golden_text.line(dict(fields, left_out=reason))
    if got is None:
        print(f"{name}: no frame, {reason}")
        fields.update(note=reason, frames=0, bands=exact.shape[1])
        return golden_text.block(fields, "rows", [], "  ")
    assert got.shape == exact.shape or not len(got) and not len(exact), (got.shape, exact.shape)
    report(name, o, got, exact)
    fields.update(frames=len(exact), bands=exact.shape[1])
    has_torchaudio = o["htk_mode"] is False and o["window"] != "sine"
    if head["function"] == "OnlineFbank" and has_torchaudio and len(samples) >= o["win_length"]:
        difference = np.abs(libraries.by_torchaudio_kaldi(o, samples) - got).max()
        difference /= got.max() if o["log"] == "none" else 1.0
        fields["torchaudio_difference"] = float(f"{difference:.2g}")
    errors = noted_errors(got, exact, o["log"] != "none" or mfcc)
    shown = sorted({round((len(got) - 1) * part) for part in parts}) if len(got) else []
    rows = [row_text(t, got[t], errors[t]) for t in shown]
    return golden_text.block(fields, "rows", rows, "  ")


def signal_lines():
    for rate in RATES:
        for name, make in signals.SIGNALS.items():
            if name == "voice" or rate in (16000, 22050):  # no case uses the others
                samples = make(rate)
                yield "  " + golden_text.line(dict(
                    signal=name, sample_rate=rate, samples=len(samples),
                    fnv1a=signals.checksum(samples)))


def main():
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    presets = ",\n".join(f'  "{name}": {golden_text.line(options)}'
                         for name, options in definition.PRESETS.items())
    tolerances = ",\n".join(f'  "{name}": {golden_text.line(fields)}'
                            for name, fields in TOLERANCES.items())
    cases = [case_text(*case) for case in plan()]
    golden_text.write("presets.json", dict(
        presets="{\n" + presets + "\n}", signals=list(signal_lines()),
        tolerances="{\n" + tolerances + "\n}", cases=cases, deltas=delta_cases.lines()))


if __name__ == "__main__":
    main()
