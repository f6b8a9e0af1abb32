#!/usr/bin/env python3
"""Checks by running what README.md says that the rivals do beside decoding and computing.

In:   a Python with the rivals (requirements.txt).
Out:  a line for each claim; exit status 1 where one is not so any more.
"""
import pathlib
import sys
import tempfile

import mel_files  # noqa: F401  first: it limits the threads
import kaldi_native_fbank
import lhotse
import librosa
import numpy
import soundfile
import torch
import torchaudio
import transformers
from lhotse.features.kaldi.layers import Wav2LogFilterBank
from torchcodec.decoders import AudioDecoder

RATE = 16_000
NOISE = numpy.random.default_rng(1).standard_normal(40 * RATE).astype("float32") / 10


class Counting(lhotse.Fbank):
    """Counts the recordings that it is called with."""

    calls = 0

    def extract(self, *arguments, **options):
        Counting.calls += 1
        return super().extract(*arguments, **options)

    def extract_batch(self, samples, *arguments, **options):
        Counting.calls += len(samples)
        return super().extract_batch(samples, *arguments, **options)


def kaldi_rows(pieces):
    options = kaldi_native_fbank.FbankOptions()
    options.frame_opts.dither = 0
    bank = kaldi_native_fbank.OnlineFbank(options)
    for piece in pieces:
        bank.accept_waveform(RATE, piece * 32768)
    bank.input_finished()
    return numpy.stack([bank.get_frame(i) for i in range(bank.num_frames_ready)])


def lhotse_rows(pieces):
    front_end, context, rows = Wav2LogFilterBank(), None, []
    for piece in pieces:
        found, context = front_end.online_inference(torch.from_numpy(piece)[None], context)
        rows.append(found[0])
    return torch.cat(rows).numpy()


def whisper_rows(**options):
    extractor = transformers.WhisperFeatureExtractor()
    found = extractor(NOISE, sampling_rate=RATE, return_tensors="np", **options)
    return found["input_features"].shape[2]


def calls_of(function):
    Counting.calls = 0
    function()
    return Counting.calls


def gradient(front_end):
    samples = torch.from_numpy(NOISE)[None].requires_grad_()
    front_end(samples).mean().backward()
    return bool(samples.grad.abs().sum() > 0)


def claims(folder):
    pieces = numpy.array_split(NOISE, 777)
    yield "kaldi-native-fbank: pieces give the rows of the whole", numpy.array_equal(kaldi_rows(pieces), kaldi_rows([NOISE]))
    whole = Wav2LogFilterBank()(torch.from_numpy(NOISE)[None])[0].numpy()
    online = lhotse_rows(numpy.array_split(NOISE, 40))
    yield "Lhotse: online_inference gives the rows of the whole, without the last", numpy.array_equal(online, whole[:-1])
    yield "torchaudio: gradients come through MelSpectrogram", gradient(torchaudio.transforms.MelSpectrogram(RATE, n_mels=40))
    yield "Lhotse: gradients come through Wav2LogFilterBank", gradient(Wav2LogFilterBank())
    yield "transformers: 40 s are cut to 30 s by default", whisper_rows() == 3000
    yield "transformers: 40 s are whole with truncation=False", whisper_rows(truncation=False, padding="longest") == 4000
    path = folder / "noise.flac"
    soundfile.write(path, NOISE, RATE)
    samples = soundfile.read(path, dtype="float32")[0]
    decoder = AudioDecoder(str(path))
    seconds = [decoder.get_samples_played_in_range(i, i + 1).data[0].numpy() for i in range(40)]
    yield "torchcodec: ranges give the samples of the whole", numpy.array_equal(numpy.concatenate(seconds), samples)
    blocks = librosa.stream(path, sr=None, block_length=100, frame_length=400, hop_length=160)
    rows = [librosa.stft(b, n_fft=400, hop_length=160, center=False) for b in blocks]
    near = librosa.stft(samples, n_fft=400, hop_length=160, center=False)
    found = numpy.concatenate(rows, axis=1)[:, : near.shape[1]]
    yield "librosa: blocks of stream give the frames of the whole, uncentred", numpy.allclose(found, near, atol=1e-4)
    paths = [folder / f"{i}.flac" for i in range(4)]
    for other in paths:
        other.write_bytes(path.read_bytes())
    cuts = lhotse.CutSet.from_manifests(
        recordings=lhotse.RecordingSet.from_recordings(map(lhotse.Recording.from_file, paths))
    )

    def batches(part):
        part.compute_and_store_features_batch(Counting(), folder / "a", folder / "cuts.jsonl.gz", num_workers=0)

    def plain():
        cuts.compute_and_store_features(Counting(), folder / "b", progress_bar=False)

    first, second = calls_of(lambda: batches(cuts.subset(first=1))), calls_of(lambda: batches(cuts))
    yield "Lhotse: compute_and_store_features_batch goes on where its manifest ends", (first, second) == (1, 3)
    first, second = calls_of(plain), calls_of(plain)
    yield "Lhotse: compute_and_store_features computes all anew", (first, second) == (4, 4)


def main():
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for claim, holds in claims(pathlib.Path(folder)):
            print(f"{'yes' if holds else 'NO '}  {claim}", flush=True)
            wrong += not holds
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
