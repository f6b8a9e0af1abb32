#include "stages/features/mel/mel_option_table.h"

#include <limits>

namespace melflow {
namespace {

using O = MelOptions;
using Needs = MelOptionRow::Needs;

constexpr double kLargest = 1e38;  // a float reaches 3.4e38
constexpr double kSmallest =
    std::numeric_limits<float>::min();  // normal: the fast logarithm needs one

bool has_bands(const O& o) { return o.output == O::Output::mel; }
bool has_triangles(const O& o) { return has_bands(o) && o.filters.numbers.empty(); }
bool is_normalized(const O& o) { return o.normalize != O::Normalize::none; }
bool is_fixed(const O& o) { return o.normalize == O::Normalize::fixed; }

bool has_other_bins(const O& o) {
  if (o.bin_hz == O::BinHz::exact) return false;
  return o.bin_hz == O::BinHz::lhotse || filter_rate(o) % 2 != 0 || o.n_fft % 2 != 0;
}

constexpr Needs kNothing{};
constexpr Needs kDither{"dither", [](const O& o) { return o.dither > 0; }};
constexpr Needs kPreemphasis{"preemphasis", [](const O& o) { return o.preemphasis > 0; }};
constexpr Needs kSignalPreemphasis{
    "preemphasis of the signal",
    [](const O& o) { return o.preemphasis > 0 && o.preemphasis_of == O::PreemphasisOf::signal; }};
constexpr Needs kShortWindow{"win_length below n_fft",
                             [](const O& o) { return o.win_length.value_or(o.n_fft) < o.n_fft; }};
constexpr Needs kSlopingWindow{
    "a window that is not boxcar or values",
    [](const O& o) { return o.window != O::Window::boxcar && o.window != O::Window::values; }};
constexpr Needs kValues{"window: values", [](const O& o) { return o.window == O::Window::values; }};
constexpr Needs kHamming{"window: hamming",
                         [](const O& o) { return o.window == O::Window::hamming; }};
constexpr Needs kBlackman{"window: blackman",
                          [](const O& o) { return o.window == O::Window::blackman; }};
constexpr Needs kTukey{"window: tukey", [](const O& o) { return o.window == O::Window::tukey; }};
constexpr Needs kKaiser{"window: kaiser", [](const O& o) { return o.window == O::Window::kaiser; }};
constexpr Needs kGauss{"window: gauss", [](const O& o) { return o.window == O::Window::gauss; }};
constexpr Needs kPadding{"padding (center, pad or snip_edges)", [](const O& o) {
                           const O all = resolve(o);
                           return all.snip_edges || *all.pad > 0;
                         }};
constexpr Needs kLastFrame{"drop_last: false", [](const O& o) { return !o.drop_last; }};
constexpr Needs kBands{"output: mel", has_bands};
constexpr Needs kTriangles{"output: mel without filters", has_triangles};
constexpr Needs kWarp{"vtln_warp",
                      [](const O& o) { return has_triangles(o) && o.vtln_warp != 1.0; }};
constexpr Needs kEnergy{"use_energy", [](const O& o) { return o.use_energy; }};
constexpr Needs kDecibels{"log: db", [](const O& o) { return o.log == O::Log::db; }};
constexpr Needs kLog{"log: ln, log10 or db", has_plain_log};
constexpr Needs kNormalize{"normalize", is_normalized};
constexpr Needs kFixed{"normalize: fixed", is_fixed};
constexpr Needs kOwnStatistics{"normalize: per_feature or all_features",
                               [](const O& o) { return is_normalized(o) && !is_fixed(o); }};
constexpr Needs kOwnDeviation{
    "normalize: per_feature or all_features, and norm_variance",
    [](const O& o) { return is_normalized(o) && !is_fixed(o) && o.norm_variance; }};

// name, member, what, unit, effect; range, needs; whether it is recorded
constexpr MelOptionRow kTable[] = {
    {"sample_rate", &O::sample_rate, "sample rate of the recordings", "Hz",
     "a file of another rate fails; not set: the rate of the waveforms if it is known (from "
     "resample or synthetic), else it is required",
     from_to(100, 10'000'000)},

    {"input_scale", &O::input_scale, "value of a sample at full scale", "",
     "1: as in librosa and torchaudio; 32768, the range of 16-bit integers: as in Kaldi",
     from_to(1e-6, 1e10)},
    {"dither", &O::dither, "standard deviation of noise that is added to every sample", "",
     "in the samples' unit after input_scale; keeps digital silence above 0 (Kaldi: 1)",
     from_to(0, 1e9)},
    {"dither_seed", &O::dither_seed, "seed of the noise that dither adds", "",
     "another seed gives other noise; the noise does not depend on the number of threads",
     kAnyNumber, kDither},
    {"preemphasis", &O::preemphasis,
     "factor k of the pre-emphasis x[t] - k x[t-1], which raises high frequencies", "",
     "0: none (Kaldi, NeMo: 0.97)", from_to(0, 1)},
    {"preemphasis_of", &O::preemphasis_of, "what pre-emphasis is applied to", "",
     "signal: the whole recording or segment; frame: each frame by itself (Kaldi)", kAnyNumber,
     kPreemphasis},
    {"preemphasis_first", &O::preemphasis_first,
     "first sample of a recording or segment after pre-emphasis", "",
     "keep: x[0]; reflect: x[0] - k x[1] (XTTS, ECAPA); drop: it is left out (PaSST); replicate: "
     "x[0] - k x[0]; librosa: 3 x[0] - x[1]",
     kAnyNumber, kSignalPreemphasis,
     [](const O& o) { return o.preemphasis_first != O::PreemphasisFirst::keep; }},
    {"remove_dc", &O::remove_dc, "subtracts from each frame the mean of its samples", "",
     "removes a constant offset of the recording (Kaldi)"},

    {"n_fft", &O::n_fft, "length of the Fourier transform", "samples",
     "longer: finer in frequency; the spectrum has n_fft / 2 + 1 bins", from_to(2, 1 << 20)},
    {"win_length", &O::win_length, "length of the analysis window, at most n_fft", "samples",
     "longer: finer in frequency, coarser in time; not set: n_fft", from_to(1, 1 << 20)},
    {"hop", &O::hop, "distance from the start of a frame to the start of the next", "samples",
     "shorter: finer in time; not set: win_length / 2", from_to(1, 1 << 24)},
    {"align", &O::align, "place of a window shorter than n_fft in the transform", "",
     "center: in the middle, and a frame takes n_fft samples; left: at the start, followed by "
     "zeros, and a frame takes win_length samples (Kaldi)",
     kAnyNumber, kShortWindow},
    {"window", &O::window, "shape of the analysis window", "",
     "povey: Kaldi's, hann to the power of 0.85; sine: Kaldi's; cosine, bartlett, nuttall, tukey: "
     "scipy's; boxcar: all samples have equal weight; values: those of window_values"},
    {"window_values", &O::window_values, "values of window: values", "",
     "a list of numbers, or the path of a .npy file with one dimension; as many as win_length",
     from_to(-1e6, 1e6), kValues},
    {"hamming_alpha", &O::hamming_alpha, "alpha of window: hamming, alpha - (1 - alpha) cos(x)", "",
     "0.5: hann", from_to(0, 1), kHamming,
     [](const O& o) { return o.hamming_alpha != kHammingAlpha; }},
    {"blackman_coeff", &O::blackman_coeff,
     "c of window: blackman, c - 0.5 cos(x) + (0.5 - c) cos(2x)", "", "Kaldi's blackman_coeff",
     from_to(0, 1), kBlackman, [](const O& o) { return o.blackman_coeff != kBlackmanCoeff; }},
    {"tukey_alpha", &O::tukey_alpha, "fraction of window: tukey that is tapered", "",
     "0: boxcar; 1: hann", from_to(0, 1), kTukey},
    {"periodic", &O::periodic, "symmetry of the analysis window", "",
     "true: periodic, for spectral analysis; false: symmetric, with equal ends (Kaldi, NeMo)",
     kAnyNumber, kSlopingWindow},
    {"kaiser_beta", &O::kaiser_beta, "shape parameter beta of window: kaiser", "",
     "larger: a wider main lobe and lower side lobes", from_to(0, 500), kKaiser},
    {"gauss_std", &O::gauss_std, "standard deviation of window: gauss", "samples",
     "larger: flatter; not set: win_length / 8", from_to(1e-3, 1e9), kGauss},
    {"center", &O::center, "centres frame t on sample t * hop", "",
     "true: the ends of the recording or segment are padded by half a frame (n_fft / 2; win_length "
     "/ 2 with align: left); false: the first starts at the first sample",
     kAnyNumber, kNothing, [](const O&) { return false; }},  // recorded as pad
    {"pad", &O::pad, "padding before the start and after the end of a recording or segment",
     "samples",
     "not set: half a frame with center: true, else 0; a value replaces the padding of center; 0: "
     "no padding",
     from_to(0, 1 << 20)},
    {"pad_mode", &O::pad_mode, "samples that padding adds at the ends of a recording or segment",
     "",
     "reflect: its mirror image without the end sample; symmetric: its mirror image (Kaldi); "
     "constant: zeros; edge: the end sample; linear_ramp: a straight line from that to 0",
     kAnyNumber, kPadding},
    {"pad_zeros", &O::pad_zeros,
     "zeros before the start and after the end of a recording or segment, before it is padded",
     "samples", "as pad in torchaudio's Spectrogram", from_to(0, 1 << 20), kNothing,
     [](const O& o) { return o.pad_zeros > 0; }},
    {"snip_edges", &O::snip_edges, "frames at the ends of a recording or segment, as in Kaldi", "",
     "true: only frames that fit as a whole; false: one for every hop, centred on the hop's "
     "middle; not set: center and pad decide"},
    {"drop_last", &O::drop_last, "drops the last frame of a recording or segment", "",
     "Whisper and NeMo do so"},
    {"drop_exact", &O::drop_exact,
     "drops the last frame of a recording or segment where it ends with the last sample", "",
     "padding counts: ceil(samples / hop) centred frames (TensorFlow's SAME); without padding a "
     "frame needs one sample more than it has (Gemma)",
     kAnyNumber, kLastFrame, [](const O& o) { return o.drop_exact; }},
    {"partial_frames", &O::partial_frames,
     "frames that reach past the end of a recording or segment and its padding, into zeros", "",
     "none; last: one if samples are left, at least one (python_speech_features); all: each that "
     "begins before the end (TensorFlow's pad_end)",
     kAnyNumber, kNothing, [](const O& o) { return o.partial_frames != O::PartialFrames::none; }},

    {"normalized", &O::normalized, "number by which the spectrum is divided", "",
     "none: 1; window: the square root of the window's sum of squares; frame_length: the square "
     "root of n_fft"},
    {"power", &O::power, "exponent of the magnitude of the spectrum", "", "2: power; 1: amplitude",
     above_to(0, 16)},
    {"power_offset", &O::power_offset, "number added to the squared magnitude of every bin", "",
     "keeps silence above 0 (HiFi-GAN: 1e-9)", from_to(0, kLargest)},
    {"power_floor", &O::power_floor, "lower limit of the squared magnitude of every bin", "",
     "after power_offset, before power (ESPnet's TTS: 1e-10)", from_to(0, kLargest), kNothing,
     [](const O& o) { return o.power_floor > 0; }},
    {"power_ceiling", &O::power_ceiling, "upper limit of the squared magnitude of every bin", "",
     "at least power_floor; not set: none", above_to(0, kLargest), kNothing,
     [](const O& o) { return o.power_ceiling.has_value(); }},
    {"output", &O::output, "meaning of the columns of a row", "",
     "mel: mel bands; spectrogram: the n_fft / 2 + 1 bins of the spectrum"},

    {"n_mels", &O::n_mels, "number of mel bands", "", "each band is a column of a row",
     from_to(1, 65536), kBands},
    {"filters", &O::filters, "weights of the bins in the mel bands, instead of triangles", "",
     "the path of a .npy file with n_mels rows of n_fft / 2 + 1 numbers, or with as many columns "
     "and rows; or a list of such rows",
     from_to(-1e6, 1e6), kBands, [](const O& o) { return !o.filters.numbers.empty(); }},
    {"filter_rate", &O::filter_rate, "sample rate that the mel bands are made for", "Hz",
     "fmin, fmax and the frequencies of the bins are as at this rate; not set: sample_rate "
     "(StyleTTS 2: 16000, with samples of 24000)",
     from_to(100, 10'000'000), kTriangles,
     [](const O& o) { return filter_rate(o) != o.sample_rate; }},
    {"fmin", &O::fmin, "lower edge of the lowest mel band", "Hz", "lower frequencies are ignored",
     from_to(0), kTriangles},
    {"fmax", &O::fmax, "upper edge of the highest mel band", "Hz",
     "0 or negative: that many Hz below sample_rate / 2; not set: sample_rate / 2 (with bin_hz: "
     "torchaudio, rounded down to whole Hz)",
     kAnyNumber, kTriangles},
    {"mel_scale", &O::mel_scale, "formula from frequency to mel that spaces the bands", "",
     "htk: 2595 log10(1 + f/700); kaldi: 1127 ln(1 + f/700); slaney: linear below 1 kHz, "
     "logarithmic above",
     kAnyNumber, kTriangles},
    {"norm", &O::mel_norm, "scaling of the triangles that weight the bins of a mel band", "",
     "none: peaks are 1; slaney: areas over Hz are 1; 1, 2, inf: that norm of a band's weights is "
     "1 (librosa)",
     kAnyNumber, kTriangles},
    {"triangles", &O::triangles, "shape of the triangles that weight the bins of a mel band", "",
     "hz: flanks straight over Hz; mel: flanks straight over mel (Kaldi); left_width: over Hz, the "
     "right flank as wide as the left one (SpeechBrain)",
     kAnyNumber, kTriangles},
    {"bin_hz", &O::bin_hz, "frequency of bin k where the triangles of the mel bands weight it", "",
     "exact: k sample_rate / n_fft; torchaudio, speechbrain: evenly up to sample_rate / 2 in whole "
     "Hz; lhotse: k sample_rate / (n_fft - 1)",
     kAnyNumber, kTriangles, has_other_bins},
    {"htk_mode", &O::htk_mode, "bins and floor of the mel bands as in HTK", "",
     "kaldi: without the first bin of the lowest band (fmin above 0), bands below 1 raised to 1; "
     "htk: bins by HTK's rule, floor 1 with a log; false: neither",
     kAnyNumber, kTriangles},
    {"vtln_warp", &O::vtln_warp, "factor of the vocal tract length normalisation (VTLN)", "",
     "divides the frequencies of the bands' edges; 1: no warping", from_to(0.1, 10), kTriangles},
    {"vtln_low", &O::vtln_low, "lower end of the frequencies that vtln_warp divides", "Hz",
     "below, the warping fades out towards fmin", kAnyNumber, kWarp},
    {"vtln_high", &O::vtln_high, "upper end of the frequencies that vtln_warp divides", "Hz",
     "above, the warping fades out towards fmax; 0 or negative: that many Hz below sample_rate / 2",
     kAnyNumber, kWarp},

    {"use_energy", &O::use_energy, "adds a column with the energy of the frame", "",
     "the natural logarithm of the sum of its squared samples; the first column, or with "
     "htk_compat the last. The stage mfcc puts it in place of a coefficient"},
    {"raw_energy", &O::raw_energy, "samples whose energy use_energy adds", "",
     "true: before pre-emphasis and window; false: after them", kAnyNumber, kEnergy},
    {"energy_eps", &O::energy_eps,
     "lower limit of the energy that use_energy adds, whatever energy_floor is", "",
     "applied to the sum of squares before the logarithm; 1.2e-7 in Kaldi (Lhotse: 1e-15)",
     from_to(kSmallest, kLargest), kEnergy,
     [](const O&) { return false; }},  // recorded as energy_floor
    {"energy_floor", &O::energy_floor, "floor of the energy that use_energy adds", "",
     "applied to the sum of squares before the logarithm; never below energy_eps",
     from_to(0, kLargest), kEnergy},
    {"htk_compat", &O::htk_compat, "column of the energy that use_energy adds", "",
     "true: the last one; false: the first one", kAnyNumber, kEnergy},

    {"log", &O::log, "logarithm of the bands or bins", "",
     "none: linear values; ln: natural; log10: base 10; db: decibels, 20/power times log10; "
     "piecewise: of torchaudio's RNN-T pipelines, x/e up to e, ln(x)/e up to e^e, then ln(x)"},
    {"amin", &O::amin, "floor of a band or bin before the logarithm", "",
     "in the unit that power gives: a power or an amplitude; keeps silence finite",
     from_to(kSmallest, kLargest), kLog},
    {"ref",
     &O::ref,
     "value of a band or bin that the logarithm maps to 0",
     "",
     "max: the largest of the segment, or of the recording where it is not cut",
     from_to(kSmallest, kLargest),
     kLog,
     nullptr,
     {[](const O& o) { return o.ref.is_max; }, "ref: a number"}},
    {"top_db",
     &O::top_db,
     "dynamic range kept below the largest value of the segment or recording",
     "dB",
     "lower values are raised to the largest minus top_db; in decibels of 20/power log10 whatever "
     "log is, or of db_factor; not set: none (Whisper: 80)",
     from_to(0, kLargest),
     kLog,
     nullptr,
     {[](const O& o) { return o.top_db.has_value(); },
      "top_db: null, and in amin a floor that does not depend on the recording, as models for "
      "streams have it (Voxtral Realtime: preset whisper_large_v3, amin: 3.1622776601683795e-7)"}},
    {"db_factor", &O::db_factor, "factor on log10 that makes decibels", "",
     "not set: 20/power; 10: as librosa.power_to_db and torchaudio's AmplitudeToDB('power'), "
     "whatever power is",
     above_to(0, 1000), kDecibels,
     [](const O& o) { return o.db_factor && *o.db_factor != 20.0 / o.power; }},
    {"log_offset", &O::log_offset, "number added to a band or bin before amin and the logarithm",
     "", "keeps silence finite: log(x + log_offset)", from_to(0, kLargest), kLog},

    {"normalize",
     &O::normalize,
     "shifts and scales finished values: (x - mean) / std",
     "",
     "none: neither; fixed: by norm_mean and norm_std; per_feature: by the mean and standard "
     "deviation of each column over the segment or recording; all_features: by those of all its "
     "values",
     kAnyNumber,
     kNothing,
     nullptr,
     {[](const O& o) { return is_normalized(o) && !is_fixed(o); },
      "normalize: fixed with norm_mean and norm_std of a corpus, or none and the stage "
      "sliding_cmvn after mel"}},
    {"norm_mean", &O::norm_mean, "mean that normalize: fixed subtracts", "",
     "one number, or one for each column; required with normalize: fixed",
     from_to(-kLargest, kLargest), kFixed},
    {"norm_std", &O::norm_std, "standard deviation that normalize: fixed divides by", "",
     "one number, or one for each column; not set: 1", from_to(1e-30, kLargest), kFixed},
    {"norm_variance", &O::norm_variance, "whether normalize divides by the standard deviation", "",
     "false: only the mean is subtracted", kAnyNumber, kNormalize,
     [](const O& o) { return !is_fixed(o); }},  // recorded as norm_std
    {"norm_eps", &O::norm_eps, "number added to the standard deviation that normalize finds", "",
     "for per_feature and all_features; keeps constant columns finite", from_to(0, kLargest),
     kOwnStatistics},
    {"norm_eps_to", &O::norm_eps_to, "what norm_eps is added to", "",
     "std: the standard deviation (NeMo); variance: its square, before the square root (Seamless)",
     kAnyNumber, kOwnDeviation,
     [](const O& o) { return o.norm_eps > 0 && o.norm_eps_to == O::NormEpsTo::variance; }},
    {"norm_ddof", &O::norm_ddof,
     "delta degrees of freedom of the standard deviation: the sum of squared deviations is divided "
     "by N - norm_ddof",
     "",
     "N: frames for per_feature, values for all_features; 1: unbiased (NeMo, Seamless); 0: of the "
     "population (Kaldi, ESPnet, Speech2Text)",
     from_to(0, 1), kOwnDeviation, [](const O& o) { return o.norm_ddof != 1; }},

    {"precision", &O::precision, "precision in which samples, transform and bands are computed", "",
     "float: single; double: double, on the CPU only; keeps bands accurate that are 60 dB or more "
     "below the peak of their frame. Rows are float32 with either",
     kAnyNumber, kNothing, [](const O& o) { return o.precision == O::Precision::float64; }},
};

}  // namespace

std::span<const MelOptionRow> mel_option_table() { return kTable; }

const MelOptionRow* needs_whole(const MelOptions& options) {
  for (const MelOptionRow& row : kTable)
    if (row.whole.is_needed != nullptr && row.whole.is_needed(options)) return &row;
  return nullptr;
}

}  // namespace melflow
