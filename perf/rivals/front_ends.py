"""The front ends of melflow's pipelines as the Python libraries make them.

In:   a library and a job; a front end is made once, filterbank and window included.
Out:  front end: samples float32 [files, n], full scale 1 -> rows float32 [files, rows, columns].
      JOBS: sample rate, columns and rows of a recording of n samples.

Each takes the fastest way its library offers: recordings of one length go in together where that
is possible, and the two-stage job transforms its 159 distinct windows once, as melflow does.
"""
from dataclasses import dataclass
from typing import Callable


@dataclass
class Geometry:
    rate: int  # [Hz]
    columns: int
    rows: Callable[[int], int]  # number of rows for n samples
    batch: int = 1  # recordings per call


JOBS = {
    "leak": Geometry(4096, 32, lambda n: ((n - 1024) // 512 + 1) * 3, batch=4),
    "builder": Geometry(4096, 32, lambda n: n // 512, batch=4),
    "speech": Geometry(16000, 80, lambda n: 1 + n // 160),
    "kaldi": Geometry(16000, 80, lambda n: 1 + (n - 400) // 160),
    "whisper": Geometry(16000, 80, lambda n: n // 160, batch=4),
    "lhotse": Geometry(16000, 80, lambda n: (n + 80) // 160),
    "real": Geometry(8000, 80, lambda n: 1 + n // 80 if n > 0 else 0),
}


def torchaudio_mel(job):
    import torch
    import torchaudio

    torch.set_num_threads(1)  # the workers are processes
    options = {
        "leak": dict(n_fft=512, hop_length=256, center=False, n_mels=32),
        "builder": dict(n_fft=512, hop_length=512, center=False, n_mels=32),
        "speech": dict(n_fft=400, hop_length=160, n_mels=80, mel_scale="slaney", norm="slaney"),
        "real": dict(n_fft=512, win_length=200, hop_length=80, n_mels=80),
    }[job]
    mel = torchaudio.transforms.MelSpectrogram(sample_rate=JOBS[job].rate, **options)
    decibels = torchaudio.transforms.AmplitudeToDB(stype="power")
    # Short window j of long window i is distinct window 2 i + j.
    leak_rows = torch.tensor([2 * i + j for i in range(79) for j in range(3)])

    @torch.inference_mode()
    def front_end(samples):
        bands = mel(torch.from_numpy(samples))  # [files, bands, frames]
        levels = bands.clamp(min=1e-10).log() if job == "speech" else decibels(bands)
        levels = levels.transpose(1, 2)
        if job == "leak":
            levels = levels[:, leak_rows]
        return levels.contiguous().numpy()

    return front_end


def librosa_mel(job):
    import librosa
    import numpy

    assert job == "speech"
    # librosa.feature.melspectrogram recomputes its filters in every call.
    filters = librosa.filters.mel(sr=16000, n_fft=400, n_mels=80)

    def front_end(samples):
        spectrum = librosa.stft(
            samples[0], n_fft=400, hop_length=160, center=True, pad_mode="reflect"
        )
        bands = filters @ (spectrum.real**2 + spectrum.imag**2)
        return numpy.log(numpy.maximum(bands, 1e-10)).T[None]

    return front_end


def kaldi_native_fbank_mel(job):
    import kaldi_native_fbank
    import numpy

    assert job == "kaldi"
    options = kaldi_native_fbank.FbankOptions()
    options.frame_opts.dither = 0
    options.frame_opts.samp_freq = 16000
    options.mel_opts.num_bins = 80

    def front_end(samples):
        # Made for each recording: the library has no other way to start a new one.
        bank = kaldi_native_fbank.OnlineFbank(options)
        bank.accept_waveform(16000, samples[0] * 32768)
        bank.input_finished()
        rows = [bank.get_frame(i) for i in range(bank.num_frames_ready)]
        return numpy.stack(rows)[None]

    return front_end


def torchaudio_kaldi_mel(job):
    import torch
    import torchaudio

    assert job == "kaldi"
    torch.set_num_threads(1)

    @torch.inference_mode()
    def front_end(samples):
        wave = torch.from_numpy(samples) * 32768
        rows = torchaudio.compliance.kaldi.fbank(wave, num_mel_bins=80, sample_frequency=16000)
        return rows.numpy()[None]

    return front_end


def transformers_mel(job):
    import torch
    import transformers

    assert job == "whisper"
    torch.set_num_threads(1)
    extractor = transformers.WhisperFeatureExtractor(feature_size=80)

    def front_end(samples):
        # By default it pads and cuts everything to 30 s.
        found = extractor(
            list(samples), sampling_rate=16000, padding="longest", truncation=False, return_tensors="np"
        )
        return found["input_features"].transpose(0, 2, 1)

    return front_end


def lhotse_mel(job):
    import lhotse
    import torch

    assert job == "lhotse"
    torch.set_num_threads(1)
    extractor = lhotse.Fbank()

    @torch.inference_mode()
    def front_end(samples):
        return extractor.extract(samples[0], 16000)[None]

    return front_end


LIBRARIES = {
    "torchaudio": torchaudio_mel,
    "librosa": librosa_mel,
    "kaldi-native-fbank": kaldi_native_fbank_mel,
    "torchaudio-kaldi": torchaudio_kaldi_mel,
    "transformers": transformers_mel,
    "lhotse": lhotse_mel,
}
