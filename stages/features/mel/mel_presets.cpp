// Sources: the defaults of librosa.feature.melspectrogram, torchaudio.transforms.MelSpectrogram and
// Kaldi's compute-fbank-feats; Whisper's log_mel_spectrogram; NeMo's
// AudioToMelSpectrogramPreprocessor as its speech models configure it, in evaluation; SpeechBrain's
// Fbank; HiFi-GAN's mel_spectrogram (22.05 kHz); AST's fbank with AudioSet's statistics.
// tests/golden compares each preset with its library.

#include "stages/features/mel/mel_presets.h"

#include <array>

namespace melflow {
namespace {

using Align = MelOptions::Align;
using Log = MelOptions::Log;
using MelNorm = MelOptions::MelNorm;
using MelScale = MelOptions::MelScale;
using Normalize = MelOptions::Normalize;
using PadMode = MelOptions::PadMode;
using PreemphasisOf = MelOptions::PreemphasisOf;
using Triangles = MelOptions::Triangles;
using Window = MelOptions::Window;

void slaney(MelOptions& o) {
  o.mel_scale = MelScale::slaney;
  o.mel_norm = MelNorm::slaney;
}

MelOptions librosa() {
  MelOptions o;
  o.sample_rate = 22050;
  o.n_fft = 2048;
  o.hop = 512;
  o.pad_mode = PadMode::constant;
  slaney(o);
  return o;
}

MelOptions torchaudio() {
  MelOptions o;
  o.sample_rate = 16000;
  o.n_fft = 400;
  o.hop = 200;
  o.bin_hz = MelOptions::BinHz::torchaudio;
  return o;
}

// 25 ms every 10 ms, samples in the range of int16. Kaldi itself adds dither of 1; without it,
// features can be compared.
MelOptions kaldi() {
  MelOptions o;
  o.sample_rate = 16000;
  o.input_scale = 32768.0;
  o.preemphasis = 0.97;
  o.preemphasis_of = PreemphasisOf::frame;
  o.remove_dc = true;
  o.n_fft = 512;
  o.win_length = 400;
  o.hop = 160;
  o.align = Align::left;
  o.window = Window::povey;
  o.periodic = false;
  o.center = false;
  o.snip_edges = true;
  o.pad_mode = PadMode::symmetric;
  o.n_mels = 23;
  o.fmin = 20.0;
  o.fmax = 0.0;
  o.mel_scale = MelScale::kaldi;
  o.triangles = Triangles::mel;
  o.log = Log::ln;
  o.amin = kEnergyEpsilon;
  return o;
}

MelOptions kaldi_htk() {
  MelOptions o = kaldi();
  o.window = Window::hamming;
  o.remove_dc = false;
  o.fmin = 0.0;
  o.htk_mode = MelOptions::HtkMode::kaldi;
  o.use_energy = true;
  o.htk_compat = true;
  return o;
}

// For audio of any length; Whisper pads or cuts to 30 s (segment: {length: 30s, tail: pad}).
MelOptions whisper(int n_mels) {
  MelOptions o;
  o.sample_rate = 16000;
  o.n_fft = 400;
  o.hop = 160;
  o.drop_last = true;
  o.n_mels = n_mels;
  slaney(o);
  o.log = Log::log10;
  o.top_db = 80.0;
  o.normalize = Normalize::fixed;  // (x + 4) / 4
  o.norm_mean = {-4.0};
  o.norm_std = {4.0};
  return o;
}

MelOptions nemo() {
  MelOptions o;
  o.sample_rate = 16000;
  o.preemphasis = 0.97;
  o.preemphasis_of = PreemphasisOf::signal;
  o.n_fft = 512;
  o.win_length = 400;
  o.hop = 160;
  o.periodic = false;
  o.pad_mode = PadMode::constant;
  o.drop_last = true;
  o.n_mels = 80;
  slaney(o);
  o.log = Log::ln;
  o.amin = 1e-30;
  o.log_offset = 0x1p-24;
  o.normalize = Normalize::per_feature;
  o.norm_eps = 1e-5;
  return o;
}

MelOptions speechbrain() {
  MelOptions o;
  o.sample_rate = 16000;
  o.n_fft = 400;
  o.hop = 160;
  o.window = Window::hamming;
  o.pad_mode = PadMode::constant;
  o.n_mels = 40;
  o.triangles = Triangles::left_width;
  o.bin_hz = MelOptions::BinHz::speechbrain;
  o.log = Log::db;
  o.top_db = 80.0;
  return o;
}

MelOptions hifigan() {
  MelOptions o;
  o.sample_rate = 22050;
  o.n_fft = 1024;
  o.hop = 256;
  o.center = false;
  o.pad = (1024 - 256) / 2;
  o.power = 1.0;
  o.power_offset = 1e-9;
  o.n_mels = 80;
  o.fmax = 8000.0;
  slaney(o);
  o.log = Log::ln;
  o.amin = 1e-5;
  return o;
}

MelOptions ast() {
  MelOptions o = kaldi();
  o.input_scale = 1.0;
  o.window = Window::hann;
  o.n_mels = 128;
  o.normalize = Normalize::fixed;
  o.norm_mean = {-4.2677393};
  o.norm_std = {2 * 4.5689974};
  return o;
}

// Constructed on first use: stages register themselves before main() runs.
const auto& presets() {
  static const std::array all{
      MelPreset{"librosa", "librosa.feature.melspectrogram: power", librosa(), false},
      MelPreset{"torchaudio", "torchaudio.transforms.MelSpectrogram: power", torchaudio(), false},
      MelPreset{"kaldi", "Kaldi's compute-fbank-feats without dither, also kaldi-native-fbank",
                kaldi()},
      MelPreset{"kaldi_htk", "Kaldi's features as HTK makes them: Hamming window, energy last",
                kaldi_htk()},
      MelPreset{"whisper", "Whisper's log_mel_spectrogram, 80 bands", whisper(80), true, 30},
      MelPreset{"whisper_large_v3", "Whisper's log_mel_spectrogram, 128 bands", whisper(128), true,
                30},
      MelPreset{"nemo", "NeMo's AudioToMelSpectrogramPreprocessor in evaluation, 80 features",
                nemo()},
      MelPreset{"speechbrain", "speechbrain.lobes.features.Fbank", speechbrain()},
      MelPreset{"hifigan", "HiFi-GAN's mel_spectrogram for 22.05 kHz", hifigan()},
      MelPreset{"ast", "Audio Spectrogram Transformer, normalised by AudioSet's statistics", ast()},
  };
  return all;
}

}  // namespace

std::span<const MelPreset> mel_presets() { return presets(); }

const MelPreset* find_preset(std::string_view name) {
  for (const MelPreset& preset : presets())
    if (preset.name == name) return &preset;
  return nullptr;
}

}  // namespace melflow
