#include "stages/measures.h"

#include <algorithm>
#include <limits>

namespace melflow {
namespace {

using Unit = MeasureUnit;
using Kernel = MeasureKernel;
constexpr const char *kR128 = "EBU R 128, ITU-R BS.1770-5", *kOwn = "";

constexpr MeasureInfo kTable[] = {
    {"peak", Unit::level, Kernel::levels, true, "quality.peak",
     "largest magnitude of a sample of any channel; full scale is 1", kOwn},
    {"rms", Unit::level, Kernel::levels, true, "quality.rms",
     "root of the mean square of all samples of all channels", kOwn},
    {"dc", Unit::level, Kernel::levels, true, "quality.dc",
     "magnitude of the mean of the samples of the channel where that is largest", kOwn},
    {"clipped_share", Unit::share, Kernel::clipping, true, "quality.clipped_share",
     "samples in runs of 3 or more of one channel that are all at its highest or all at its lowest "
     "value, where that is 0.25 or more, as a share of all samples; all above 32766/32768 count as "
     "one value",
     kOwn},
    {"clipped_runs", Unit::count, Kernel::clipping, true, "quality.clipped_runs",
     "number of these runs", kOwn},
    {"clipped_at", Unit::seconds, Kernel::clipping, true, "quality.clipped_at",
     "begin of the first of them [s]", kOwn},
    {"quiet_share", Unit::share, Kernel::levels, true, "quality.quiet_share",
     "share of the frames of 10 ms whose mean square over all channels is below `quiet_floor`",
     kOwn},
    {"quiet_longest", Unit::seconds, Kernel::levels, true, "quality.quiet_longest",
     "longest stretch of such frames [s]", kOwn},
    {"silent_share", Unit::share, Kernel::levels, true, "quality.silent_share",
     "as `quiet_share`, below `silent_floor`: dead air, which no decay of a sound reaches", kOwn},
    {"silent_longest", Unit::seconds, Kernel::levels, true, "quality.silent_longest",
     "longest stretch of such frames [s]", kOwn},
    {"silent_at", Unit::seconds, Kernel::levels, true, "quality.silent_at", "begin of it [s]",
     kOwn},
    {"noise_floor", Unit::decibels, Kernel::levels, true, "quality.noise_floor",
     "level below which a tenth of the frames of 10 ms are [dB of full scale], in steps of 0.5",
     kOwn},
    {"dead_channels", Unit::count, Kernel::levels, true, "quality.dead_channels",
     "channels whose level is below `silent_floor`, where another one's is not", kOwn},
    {"equal_channels", Unit::count, Kernel::levels, true, "quality.equal_channels",
     "channels whose difference from an earlier channel is 50 dB below the two", kOwn},
    {"inverted_channels", Unit::count, Kernel::levels, true, "quality.inverted_channels",
     "channels whose correlation with an earlier channel is below -0.9", kOwn},
    {"dropouts", Unit::count, Kernel::dropouts, true, "quality.dropouts",
     "runs of 1 ms or more in which all channels are exactly 0, with an rms of 0.01 or more in the "
     "2 ms before and in those after",
     kOwn},
    {"dropout_at", Unit::seconds, Kernel::dropouts, true, "quality.dropout_at",
     "begin of the first of them [s]", kOwn},
    {"repeats", Unit::count, Kernel::repeats, true, "quality.repeats",
     "stretches of 5 ms to 500 ms of the first channel that equal, sample by sample, the stretch "
     "directly before, and range over more than 4 steps of 16 bits; not in periodic sounds, where "
     "that goes on for 8 periods",
     kOwn},
    {"repeat_at", Unit::seconds, Kernel::repeats, true, "quality.repeat_at",
     "begin of the first of them [s]", kOwn},
    {"clicks", Unit::count, Kernel::clicks, true, "quality.clicks",
     "stretches of 1 ms whose largest second difference of samples is 0.02 or more, 8 times the "
     "largest from 2 ms to 10 ms before and after, and from 3 samples to 1 ms beside it. So "
     "plosives and clicks of the tongue are none, nor is a "
     "click that a resampler or a codec has spread; the first and last 2 ms do not count",
     kOwn},
    {"click_at", Unit::seconds, Kernel::clicks, true, "quality.click_at",
     "begin of the first of them [s]", kOwn},
    {"snr", Unit::decibels, Kernel::snr, true, "quality.snr",
     "signal-to-noise ratio of speech by WADA-SNR, from -20 to 100 [dB]: amplitudes of speech are "
     "taken as gamma-distributed (0.4), noise as Gaussian; of the mean of the channels, without "
     "its "
     "offset; samples that are 0 do not count, and of rates from 16 kHz on only every second one "
     "or fewer, so that 8,000 a second or "
     "more are left",
     "Kim and Stern 2008, Robust signal-to-noise ratio estimation based on waveform amplitude "
     "distribution analysis"},
    {"bandwidth", Unit::hertz, Kernel::bandwidth, true, "quality.bandwidth",
     "highest frequency whose mean power, in the first 128 stretches of 2048 samples and then "
     "every second one, is at most 80 dB below the strongest one's, and 10 dB above that of the "
     "rounding to 16 bits [Hz]; none where all is below",
     kOwn},
    {"hum", Unit::decibels, Kernel::hum, true, "quality.hum",
     "how far at least two of the first five multiples of 50 or 60 Hz stand above the median of "
     "what is 4 to 12 Hz beside them, in the mean logarithmic power of seconds that overlap by "
     "half, where they are peaks of one frequency within 0.2 Hz and of the mains' within 0.5 % "
     "[dB]; none for less than 2 s",
     kOwn},
    {"hum_hz", Unit::hertz, Kernel::hum, true, "quality.hum_hz",
     "50 or 60, whichever stands out further; none where `hum` is 0", kOwn},
    {"lost_share", Unit::share, Kernel::facts, true, "quality.lost_share",
     "share of the recording that decoding found to be lost", kOwn},
    {"rate_ratio", Unit::number, Kernel::facts, true, "quality.rate_ratio",
     "sample rate of the file by that of its list, or else by the one in its path (`8k`, "
     "`44.1kHz`)",
     kOwn},
    {"length_ratio", Unit::number, Kernel::facts, true, "quality.length_ratio",
     "duration of the recording by that of its list", kOwn},
    {"seconds_per_character", Unit::seconds, Kernel::facts, true, "quality.seconds_per_character",
     "duration by the number of characters of the text in the column `text` [s]", kOwn},
    {"loudness", Unit::decibels, Kernel::loudness, false, "quality.loudness",
     "integrated loudness [LUFS], gated", kR128},
    {"loudness_range", Unit::decibels, Kernel::loudness, false, "quality.loudness_range",
     "loudness range [LU]", "EBU Tech 3342"},
    {"loudness_momentary", Unit::decibels, Kernel::loudness, false, "quality.loudness_momentary",
     "greatest momentary loudness (400 ms) [LUFS]", "EBU Tech 3341"},
    {"loudness_short_term", Unit::decibels, Kernel::loudness, false, "quality.loudness_short_term",
     "greatest short-term loudness (3 s) [LUFS]", "EBU Tech 3341"},
    {"true_peak", Unit::level, Kernel::true_peak, false, "quality.true_peak",
     "largest magnitude between samples, at 4 times the sample rate; full scale is 1",
     "ITU-R BS.1770-5, annex 2"},
    {"speech_share", Unit::share, Kernel::marks, false, "quality.speech_share",
     "share of the recording that is speech, by the stage `vad`; measured by the stage "
     "`speech_share` behind it",
     kOwn},
};
static_assert(std::size(kTable) == kMeasureCount);

}  // namespace

std::span<const MeasureInfo, kMeasureCount> measures() { return kTable; }

const MeasureInfo* measure_named(std::string_view name) {
  const auto it = std::find_if(std::begin(kTable), std::end(kTable),
                               [&](const auto& m) { return name == m.name; });
  return it == std::end(kTable) ? nullptr : it;
}

const char* to_text(MeasureUnit unit) {
  switch (unit) {
    case Unit::level:
      return "full scale";
    case Unit::share:
      return "share";
    case Unit::seconds:
      return "s";
    case Unit::hertz:
      return "Hz";
    case Unit::decibels:
      return "dB";
    case Unit::count:
    case Unit::number:
      break;
  }
  return "";
}

MeasureSet default_measures() {
  MeasureSet out;
  for (std::size_t i = 0; i < kMeasureCount; ++i) out.set(i, kTable[i].is_default);
  return out;
}

MeasureSet decoded_measures() {
  MeasureSet out;
  for (std::size_t i = 0; i < kMeasureCount; ++i) out.set(i, kTable[i].kernel != Kernel::marks);
  return out;
}

MeasureValues::MeasureValues() { of.fill(std::numeric_limits<float>::quiet_NaN()); }

}  // namespace melflow
