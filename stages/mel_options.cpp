#include "stages/mel_options.h"

namespace melflow {

void MelStageOptions::describe(Schema& s) {
  s.field("sample_rate", sample_rate,
          "of the recordings [Hz]; files of another rate fail; not set: that of the resample stage "
          "before")
      .range(1, 10'000'000);
  s.field("n_fft", mel.n_fft, "length of the Fourier transform [samples]").range(2, 1 << 20);
  s.field("win_length", mel.win_length,
          "length of the analysis window, in the middle of n_fft [samples]; not set: n_fft")
      .range(1, 1 << 20);
  s.field("hop", mel.hop, "from frame to frame [samples]; not set: win_length / 2")
      .range(1, 1 << 24);
  s.field("window", mel.window, "shape of the analysis window");
  s.field("periodic", mel.periodic, "window for spectral analysis (true) or symmetric (false)");
  s.field("center", mel.center, "frames are centred on their time: n_fft / 2 samples are padded at "
                                "both ends");
  s.field("pad_mode", mel.pad_mode, "what is padded");
  s.field("power", mel.power, "exponent of the magnitude: 2 for power, 1 for amplitude")
      .greater_than(0);
  s.field("normalized", mel.normalized,
          "divides the spectrum: by the window's root energy, or by the root of the frame length");
  s.field("n_mels", mel.n_mels, "number of mel bands").range(1, 4096);
  s.field("fmin", mel.fmin, "lower edge of the lowest band [Hz]").at_least(0);
  s.field("fmax", mel.fmax, "upper edge of the highest band [Hz]; not set: sample_rate / 2")
      .greater_than(0);
  s.field("mel_scale", mel.mel_scale, "htk: 2595 log10(1 + f/700); slaney: linear below 1 kHz");
  s.field("norm", mel.mel_norm, "slaney: every triangle has area 1; none: peak 1");
  s.field("log", mel.log, "none, natural, base 10, or decibels");
  s.field("amin", mel.amin, "floor before the logarithm").greater_than(0);
  s.field("log_offset", mel.log_offset, "added before the floor: log(x + log_offset)").at_least(0);
  s.field("ref", ref, "value that the logarithm maps to 0; max: the largest of the segment, or "
                      "without segments of the file");
  s.field("top_db", mel.top_db,
          "floor below the largest value of the segment or file, in the unit of the log [dB]")
      .at_least(0);
}

MelOptions MelStageOptions::resolved() const {
  MelOptions o = mel;
  if (sample_rate) o.sample_rate = *sample_rate;
  o.ref = ref.value;
  o.ref_max = ref.is_max;
  return o;
}

}  // namespace melflow
