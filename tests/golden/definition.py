"""The presets in melflow's option names, and what the options mean, in double precision.

In:  options (the program's defaults, a preset's instead, a case's instead of both) and samples in [-1, 1).
Out: rows, [frames, bands] float64; filters, [n_mels, n_fft / 2 + 1].

Not the source of the expected numbers, those are the libraries' own. It tells how far a library's
single precision is from the same definition in double precision, and checks while the numbers are
made that the options of a case do describe what the library was asked for.
"""

import math

import numpy as np
import scipy.fft
import scipy.signal

import option_table

EPSILON = 2.0**-23  # of single precision: Kaldi's floor for the logarithm

SLANEY = dict(mel_scale="slaney", norm="slaney")
KALDI = dict(
    sample_rate=16000, n_fft=512, win_length=400, hop=160, align="left", periodic=False,
    center=False, snip_edges=True, preemphasis=0.97, preemphasis_of="frame", n_mels=23, log="ln",
    mel_scale="kaldi", triangles="mel", amin=EPSILON)
WHISPER = dict(
    SLANEY, sample_rate=16000, n_fft=400, hop=160, drop_last=True, log="log10", amin=1e-10,
    top_db=80.0, normalize="fixed", norm_mean=-4.0, norm_std=4.0)

PRESETS = dict(
    librosa=dict(SLANEY, sample_rate=22050, n_fft=2048, hop=512, pad_mode="constant", n_mels=128),
    torchaudio=dict(sample_rate=16000, n_fft=400, hop=200, n_mels=128, bin_hz="torchaudio"),
    kaldi=dict(KALDI, input_scale=32768.0, remove_dc=True, window="povey", fmin=20.0),
    kaldi_htk=dict(KALDI, input_scale=32768.0, window="hamming", htk_mode="kaldi", use_energy=True,
                   htk_compat=True),
    whisper=dict(WHISPER, n_mels=80),
    whisper_large_v3=dict(WHISPER, n_mels=128),
    nemo=dict(SLANEY, sample_rate=16000, n_fft=512, win_length=400, hop=160, periodic=False,
              preemphasis=0.97, pad_mode="constant", drop_last=True, n_mels=80, fmax=8000.0,
              log="ln", amin=0.0, log_offset=2.0**-24, normalize="per_feature", norm_eps=1e-5),
    speechbrain=dict(sample_rate=16000, n_fft=400, hop=160, window="hamming", pad_mode="constant",
                     n_mels=40, triangles="left_width", bin_hz="speechbrain", log="db", top_db=80.0),
    hifigan=dict(SLANEY, sample_rate=22050, n_fft=1024, hop=256, center=False, pad=384, power=1.0,
                 power_offset=1e-9, n_mels=80, fmax=8000.0, log="ln", amin=1e-5),
    ast=dict(KALDI, remove_dc=True, window="hann", fmin=20.0, n_mels=128, normalize="fixed",
             norm_mean=-4.2677393, norm_std=2 * 4.5689974))


def resolve(preset, overrides):
    return option_table.resolve(dict(PRESETS[preset], **overrides))


def window_of(o):
    n = o["win_length"]
    if o["window"] == "povey":
        return scipy.signal.get_window("hann", n, o["periodic"]) ** 0.85
    if o["window"] == "values":
        return np.asarray(o["window_values"], dtype=float)
    if o["window"] == "sine":
        return np.sin(np.pi * np.arange(n) / (n if o["periodic"] else n - 1))
    if o["window"] == "blackman":
        c = o["blackman_coeff"]
        return scipy.signal.windows.general_cosine(n, [c, 0.5, 0.5 - c], sym=not o["periodic"])
    kind = dict(kaiser=("kaiser", o["kaiser_beta"]), gauss=("gaussian", o["gauss_std"]),
                tukey=("tukey", o["tukey_alpha"]), hamming=("general_hamming", o["hamming_alpha"]),
                blackman_harris="blackmanharris").get(o["window"], o["window"])
    return scipy.signal.get_window(kind, n, o["periodic"])


def to_mel(hz, scale):
    hz = np.asarray(hz, dtype=float)
    if scale == "htk":
        return 2595.0 * np.log10(1.0 + hz / 700.0)
    if scale == "kaldi":
        return 1127.0 * np.log(1.0 + hz / 700.0)
    above = 15.0 + 27.0 * np.log(np.maximum(hz, 1000.0) / 1000.0) / np.log(6.4)
    return np.where(hz < 1000.0, hz * 3.0 / 200.0, above)


def to_hz(mel, scale):
    mel = np.asarray(mel, dtype=float)
    if scale == "htk":
        return 700.0 * (10.0 ** (mel / 2595.0) - 1.0)
    if scale == "kaldi":
        return 700.0 * (np.exp(mel / 1127.0) - 1.0)
    above = 1000.0 * np.exp((np.maximum(mel, 15.0) - 15.0) * np.log(6.4) / 27.0)
    return np.where(mel < 15.0, mel * 200.0 / 3.0, above)


def vtln(o, hz):
    """Kaldi's piecewise linear warping of a frequency (mel-computations.cc, VtlnWarpFreq)."""
    low, high, warp = o["fmin"], o["fmax"], o["vtln_warp"]
    cut_low, cut_high = o["vtln_low"], o["vtln_high"]
    if hz < low or hz > high:
        return hz
    left, right = cut_low * max(1.0, warp), cut_high * min(1.0, warp)
    if hz < left:
        return low + (left / warp - low) / (left - low) * (hz - low)
    if hz < right:
        return hz / warp
    return high + (high - right / warp) / (high - right) * (hz - high)


def bins_of(o):
    """Frequencies of the bins [n_fft / 2 + 1], as the library that bin_hz names has them."""
    count, rate = o["n_fft"] // 2 + 1, o["filter_rate"]
    if o["bin_hz"] == "lhotse":
        return np.linspace(0, rate, o["n_fft"])[:count]
    if o["bin_hz"] in ("torchaudio", "speechbrain"):
        return np.linspace(0, rate // 2, count)
    return np.arange(count) * rate / o["n_fft"]


def filters(o):
    """[n_mels, n_fft / 2 + 1]"""
    if len(o["filters"]):
        given = np.load(o["filters"]) if isinstance(o["filters"], str) else np.array(o["filters"])
        return given if given.shape == (o["n_mels"], o["n_fft"] // 2 + 1) else given.T
    hz = bins_of(o)
    low, high = to_mel([o["fmin"], o["fmax"]], o["mel_scale"])
    points = np.linspace(low, high, o["n_mels"] + 2)
    if o["vtln_warp"] != 1.0:
        warped = [vtln(o, float(f)) for f in to_hz(points, o["mel_scale"])]
        points = to_mel(warped, o["mel_scale"])
    axis = hz
    if o["triangles"] == "mel":
        axis = to_mel(hz, o["mel_scale"])
    else:
        points = to_hz(points, o["mel_scale"])
    left, middle, right = (points[i:i + o["n_mels"], None] for i in range(3))
    rise = (axis - left) / (middle - left)
    fall = (right - axis) / (right - middle)
    if o["triangles"] == "left_width":
        fall = 1.0 - (axis - middle) / (middle - left)
    weights = np.maximum(0.0, np.minimum(rise, fall))
    if o["htk_mode"] == "kaldi" and o["fmin"] != 0:  # the first band's first bin is omitted
        weights[0, np.argmax(weights[0] > 0)] = 0.0
    if o["htk_mode"] == "htk":  # HTK's cut-offs, as bins
        low, high = (np.floor(o[edge] / hz[1] + 0.5) for edge in ("fmin", "fmax"))
        bins = np.arange(len(hz))
        weights[:, (bins <= low) | (bins >= high)] = 0.0
    if o["norm"] == "slaney":
        weights *= 2.0 / (right - left)
    if o["norm"] in ("1", "2", "inf"):
        size = np.linalg.norm(weights, ord=float(o["norm"]), axis=1, keepdims=True)
        weights /= np.where(size > 0, size, 1.0)
    return weights


def frames_of(o, x):
    """[frames, win_length or n_fft]: the samples under each frame, before the window."""
    hop, win, n = o["hop"], o["win_length"], len(x)
    if o["snip_edges"] is not None:
        if o["snip_edges"]:
            count, start = (0 if n < win else 1 + (n - win) // hop), 0
        else:
            count, start = (n + hop // 2) // hop, hop // 2 - win // 2
        at = start + hop * np.arange(count)[:, None] + np.arange(win)
        if not len(at):
            return np.zeros((0, win))
        at %= 2 * n  # the signal and its mirror image, repeated
        return x[np.where(at < n, at, 2 * n - 1 - at)]
    if not n:
        return np.zeros((0, o["n_fft"] if o["align"] == "center" else win))
    padded = np.pad(np.pad(x, o["pad_zeros"]), o["pad"], mode=o["pad_mode"])
    size = o["n_fft"] if o["align"] == "center" else win
    count = 0 if len(padded) < size else 1 + (len(padded) - size) // hop
    if o["partial_frames"] == "last":  # python_speech_features.sigproc.framesig
        count = 1 + max(0, math.ceil((len(padded) - size) / hop))
    if o["partial_frames"] == "all":  # tf.signal.frame(pad_end=True)
        count = -(-len(padded) // hop)
    padded = np.pad(padded, (0, max(0, hop * (count - 1) + size - len(padded))))
    count -= 1 if count and (o["drop_last"] or o["drop_exact"] and (len(padded) - size) % hop == 0) else 0
    return padded[hop * np.arange(count)[:, None] + np.arange(size)]


def spectra(o, x):
    """|X|^power, [frames, n_fft / 2 + 1], and the energy of each frame."""
    x = np.asarray(x, dtype=float) * o["input_scale"]
    if o["preemphasis"] and o["preemphasis_of"] == "signal":
        k, second = o["preemphasis"], x[1:2] if len(x) > 1 else x[:1]
        first = dict(keep=x[:1], reflect=x[:1] - k * second, drop=x[:0], replicate=x[:1] * (1 - k),
                     librosa=3 * x[:1] - second)[o["preemphasis_first"]]
        x = np.concatenate([first, x[1:] - k * x[:-1]])
    frames = frames_of(o, x)
    if o["remove_dc"]:
        frames = frames - frames.mean(axis=1, keepdims=True)
    energy = (frames**2).sum(axis=1)
    if o["preemphasis"] and o["preemphasis_of"] == "frame":
        before = np.concatenate([frames[:, :1], frames[:, :-1]], axis=1)
        frames = frames - o["preemphasis"] * before
    window = window_of(o)
    scale = dict(none=1.0, window=1.0 / math.sqrt((window**2).sum()),
                 frame_length=1.0 / math.sqrt(o["n_fft"]))[o["normalized"]]
    if o["align"] == "center":
        left = (o["n_fft"] - o["win_length"]) // 2
        window = np.pad(window, (left, o["n_fft"] - o["win_length"] - left))
    frames = frames * window
    if not o["raw_energy"]:
        energy = (frames**2).sum(axis=1)
    x = np.fft.rfft(frames, o["n_fft"], axis=1) * scale
    squares = np.maximum(x.real**2 + x.imag**2 + o["power_offset"], o["power_floor"])
    if o["power_ceiling"] is not None:
        squares = np.minimum(squares, o["power_ceiling"])
    return squares ** (o["power"] / 2.0), energy


def logarithm(o, values):
    if o["log"] == "none":
        return values
    if o["log"] == "piecewise":  # torchaudio.pipelines.rnnt_pipeline._piecewise_linear_log
        out = np.array(values)
        out[out > math.e] = np.log(out[out > math.e])
        out[out <= math.e] = out[out <= math.e] / math.e
        return out
    per_ln = dict(ln=1.0, log10=1.0 / math.log(10.0), db=10.0 / math.log(10.0))[o["log"]]
    factor = (o["db_factor"] or 20.0 / o["power"]) / 10.0 if o["log"] == "db" else 1.0
    with np.errstate(divide="ignore"):
        out = factor * per_ln * (np.log(np.maximum(values + o["log_offset"], o["amin"]))
                                 - math.log(max(o["ref"], o["amin"]) if o["amin"] else o["ref"]))
    if o["top_db"] is not None and out.size:
        decades = o["top_db"] * o["power"] / 20.0  # 20 / power dB each
        out = np.maximum(out, out.max() - (o["top_db"] if o["log"] == "db" else
                                           decades * per_ln * math.log(10.0)))
    return out


def normalise(o, rows):
    if o["normalize"] == "none" or not rows.size:
        return rows
    if o["normalize"] == "fixed":
        return (rows - np.asarray(o["norm_mean"])) / np.asarray(o["norm_std"] or 1.0)
    axis = 0 if o["normalize"] == "per_feature" else None
    centred = rows - rows.mean(axis=axis, keepdims=True)
    count = rows.shape[0] if axis == 0 else rows.size
    free = count - o["norm_ddof"]
    variance = (centred**2).sum(axis=axis, keepdims=True) / free if free > 0 else 0.0
    if o["norm_eps_to"] == "variance":
        deviation = np.sqrt(variance + o["norm_eps"])
    else:
        deviation = np.sqrt(variance) + o["norm_eps"]
    return centred / np.where(deviation > 0, deviation, 1.0) if o["norm_variance"] else centred


def floor_of(o):
    """HTK's floor, which Kaldi puts under the bands whether logarithms follow or not."""
    has_floor = o["htk_mode"] == "kaldi" or o["htk_mode"] == "htk" and o["log"] != "none"
    return 1.0 if has_floor and o["output"] == "mel" and not len(o["filters"]) else 0.0


def rows(o, x):
    """[frames, bands] of resolved options."""
    power, energy = spectra(o, x)
    values = power if o["output"] == "spectrogram" else power @ filters(o).T
    values = np.maximum(values, floor_of(o))
    out = logarithm(o, values)
    if o["use_energy"]:
        log_energy = np.log(np.maximum(energy, o["energy_eps"]))
        if o["energy_floor"] > 0:
            log_energy = np.maximum(log_energy, math.log(o["energy_floor"]))
        pair = [out, log_energy[:, None]] if o["htk_compat"] else [log_energy[:, None], out]
        out = np.concatenate(pair, axis=1)
    return normalise(o, out)


def cepstra(o, mfcc, x):
    """[frames, n_mfcc]; mfcc: n_mfcc, dct_type, ortho, lifter, lifter_style."""
    energy = None
    rows_ = rows(o, x)
    if o["use_energy"]:
        at = rows_.shape[1] - 1 if o["htk_compat"] else 0
        energy, rows_ = rows_[:, at], np.delete(rows_, at, axis=1)
    out = scipy.fft.dct(rows_, type=mfcc["dct_type"], norm="ortho" if mfcc["ortho"] else None,
                        axis=1)[:, :mfcc["n_mfcc"]]
    if mfcc["lifter"]:
        shift = 1 if mfcc["lifter_style"] == "librosa" else 0
        at = np.arange(shift, mfcc["n_mfcc"] + shift)
        out = out * (1.0 + mfcc["lifter"] / 2.0 * np.sin(np.pi * at / mfcc["lifter"]))
    if energy is not None:
        out[:, 0] = energy
    if o["htk_compat"]:
        first = out[:, :1] * (1.0 if o["use_energy"] else math.sqrt(2.0))
        out = np.concatenate([out[:, 1:], first], axis=1)
    return out
