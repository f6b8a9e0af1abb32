// Steps that single libraries have: the first sample of pre-emphasis, limits of bins, the piecewise
// logarithm, filters of another rate or given as numbers, frames that reach past the end. What each
// is compared with is written here as the library has it.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <numbers>
#include <string>
#include <vector>

#include "stages/features/mel/mel_filterbank.h"
#include "stages/features/mel/mel_kernel.h"

namespace melflow::library_steps_test {
namespace {

using O = MelOptions;

std::vector<float> rows_of(const O& o, const std::vector<float>& samples,
                           std::string_view set = MelKernel::instruction_set()) {
  const MelKernel kernel(std::make_shared<const MelPlan>(o), set);
  const auto n = static_cast<std::int64_t>(samples.size());
  const std::int64_t frames = kernel.plan().frames(n);
  std::vector<float> rows(static_cast<std::size_t>(frames * kernel.plan().columns()));
  auto scratch = kernel.make_scratch();
  kernel.frames(SignalView<float>{samples.data(), 0, n, n}, 0, frames, rows.data(), scratch);
  return rows;
}

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  double out = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    out = std::max(out, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
  return out;
}

// A chord that has its full loudness from the first sample on, or begins after `silence` samples.
std::vector<float> chord(int n, int silence = 0) {
  std::vector<float> out(static_cast<std::size_t>(n), 0.0F);
  for (int i = silence; i < n; ++i)
    out[static_cast<std::size_t>(i)] = static_cast<float>(
        0.3 * std::cos(0.03 * i) + 0.2 * std::cos(0.11 * i) + 0.01 * std::cos(2.9 * i * i));
  return out;
}

// ECAPA of TaoRuijie and clova, also XTTS's speaker encoder: the signal is padded by reflection.
std::vector<float> emphasised(const std::vector<float>& x, double k, double first) {
  std::vector<float> out{static_cast<float>(first)};
  for (std::size_t i = 1; i < x.size(); ++i)
    out.push_back(static_cast<float>(x[i] - k * static_cast<double>(x[i - 1])));
  return out;
}

O log_mel() {
  O o;
  o.n_fft = 512;
  o.win_length = 400;
  o.hop = 160;
  o.window = O::Window::hamming;
  o.n_mels = 40;
  o.fmin = 20;
  o.log = O::Log::ln;
  o.amin = 1e-6;
  return o;
}

TEST_CASE("library steps: the first sample of pre-emphasis is the library's") {
  const double k = 0.97;
  for (const bool is_double : {false, true}) {
    const std::vector<float> x = chord(4000);
    const double x0 = x[0], x1 = x[1];
    O plain = log_mel(), own = log_mel();
    own.preemphasis = k;
    own.precision = is_double ? O::Precision::float64 : O::Precision::float32;
    struct Edge {
      O::PreemphasisFirst first;
      double value;
    };
    for (const auto& [first, value] :
         {Edge{O::PreemphasisFirst::keep, x0}, Edge{O::PreemphasisFirst::reflect, x0 - k * x1},
          Edge{O::PreemphasisFirst::replicate, x0 - k * x0},
          Edge{O::PreemphasisFirst::librosa, 3 * x0 - x1}}) {
      CAPTURE(name_of(first));
      own.preemphasis_first = first;
      CHECK(largest_difference(rows_of(own, x), rows_of(plain, emphasised(x, k, value))) < 2e-3);
    }
    own.preemphasis_first = O::PreemphasisFirst::drop;  // PaSST, EfficientAT
    std::vector<float> rest = emphasised(x, k, 0);
    rest.erase(rest.begin());
    CHECK(largest_difference(rows_of(own, x), rows_of(plain, rest)) < 2e-3);
  }
}

// A check by name on speech, which begins quietly, does not see which of them it is.
TEST_CASE("library steps: preemphasis alone is not ECAPA's, which music shows and silence hides") {
  O keep = log_mel();
  keep.preemphasis = 0.97;
  O ecapa = keep;
  ecapa.preemphasis_first = O::PreemphasisFirst::reflect;
  CHECK(largest_difference(rows_of(keep, chord(8000)), rows_of(ecapa, chord(8000))) > 1);
  const std::vector<float> quiet = chord(8001, 400);  // one less has as many frames
  CHECK(largest_difference(rows_of(keep, quiet), rows_of(ecapa, quiet)) == 0);
  O passt = keep;
  passt.preemphasis_first = O::PreemphasisFirst::drop;
  const std::vector<float> shifted = rows_of(passt, quiet);
  CHECK(shifted.size() == rows_of(keep, quiet).size());
  CHECK(largest_difference(rows_of(keep, quiet), shifted) > 0.1);
}

TEST_CASE("library steps: pre-emphasis of one and two samples") {
  O o;
  o.n_fft = 2;
  o.hop = 1;
  o.window = O::Window::boxcar;
  o.center = false;
  o.pad = 1;
  o.pad_mode = O::PadMode::constant;
  o.output = O::Output::spectrogram;
  o.power = 1;
  o.preemphasis = 0.5;
  const auto first = [&o](O::PreemphasisFirst edge, const std::vector<float>& x) {
    o.preemphasis_first = edge;
    const std::vector<float> rows = rows_of(o, x);
    return rows.empty() ? -1.0F : rows[0];  // |0 + y[0]|
  };
  using First = O::PreemphasisFirst;
  CHECK(first(First::keep, {4}) == 4);
  CHECK(first(First::reflect, {4}) == 2);
  CHECK(first(First::replicate, {4}) == 2);
  CHECK(first(First::librosa, {4}) == 8);
  CHECK(first(First::drop, {4}) == -1);  // no samples, no frames
  CHECK(first(First::reflect, {4, 2}) == 3);
  CHECK(first(First::librosa, {4, 2}) == 10);
  CHECK(first(First::drop, {4, 7}) == 5);
}

// _piecewise_linear_log of torchaudio.pipelines.rnnt_pipeline, in its precision: the second
// assignment sees what the first one made.
float piecewise_of_torchaudio(float x) {
  constexpr float e = std::numbers::e_v<float>;
  if (x > e) x = std::log(x);
  if (x <= e) x = x / e;
  return x;
}

TEST_CASE("library steps: torchaudio's piecewise logarithm has a second step at e^e") {
  O o;
  o.n_fft = 2;
  o.hop = 2;
  o.window = O::Window::boxcar;
  o.center = false;
  o.output = O::Output::spectrogram;
  o.log = O::Log::piecewise;
  std::vector<float> samples;
  for (double power = 1e-12; power < 1e12; power *= 1.37) {
    samples.push_back(static_cast<float>(std::sqrt(power)));
    samples.push_back(0.0F);
  }
  for (const bool is_double : {false, true}) {
    o.precision = is_double ? O::Precision::float64 : O::Precision::float32;
    for (const std::string_view set : MelKernel::instruction_sets()) {
      CAPTURE(set);
      const std::vector<float> rows = rows_of(o, samples, set);
      int of_the_second_step = 0;
      for (std::size_t i = 0; i < samples.size(); i += 2) {
        const float power = samples[i] * samples[i], theirs = piecewise_of_torchaudio(power);
        CHECK(rows[i] == doctest::Approx(theirs).epsilon(3e-7));
        if (power > 2.72F && power < 15.15F) {
          ++of_the_second_step;
          CHECK(std::abs(rows[i] - std::log(power)) > 0.5F);
        }
      }
      CHECK(of_the_second_step > 2);
      const std::vector<float> none{std::numeric_limits<float>::quiet_NaN(), 0.0F};
      CHECK(std::isnan(rows_of(o, none, set)[0]));
    }
  }
}

TEST_CASE("library steps: a floor of bins is not one of bands, in silence") {
  // LogMelFbank of ESPnet's TTS: log10(max(mel @ sqrt(max(|X|^2, 1e-10)), 1e-10)).
  O espnet = log_mel();
  espnet.power = 1;
  espnet.log = O::Log::log10;
  espnet.amin = 1e-10;
  O bands_alone = espnet;
  espnet.power_floor = 1e-10;
  const Filterbank bank = make_filterbank(resolve(espnet));
  for (const bool is_double : {false, true}) {
    espnet.precision = is_double ? O::Precision::float64 : O::Precision::float32;
    const std::vector<float> silence(800, 0.0F), rows = rows_of(espnet, silence);
    for (std::size_t m = 0; m < bank.bands.size(); ++m) {
      double sum = 0;
      for (int i = 0; i < bank.bands[m].count; ++i)
        sum += 1e-5 * bank.weights[static_cast<std::size_t>(bank.bands[m].offset + i)];
      CHECK(rows[m] == doctest::Approx(std::log10(std::max(sum, 1e-10))).epsilon(1e-6));
    }
    CHECK(rows_of(bands_alone, silence)[5] == doctest::Approx(-10));
    // ReDimNet: clip(1e-8, 1e8).
    O clipped = espnet;
    clipped.output = O::Output::spectrogram;
    clipped.log = O::Log::none;
    clipped.power = 2;
    clipped.power_floor = 1e-8;
    clipped.power_ceiling = 0.5;
    for (const std::string_view set : MelKernel::instruction_sets()) {
      const std::vector<float> bins = rows_of(clipped, chord(800), set);
      CHECK(*std::max_element(bins.begin(), bins.end()) == 0.5F);
      CHECK(rows_of(clipped, silence, set)[0] == 1e-8F);
      const std::vector<float> none(800, std::numeric_limits<float>::quiet_NaN());
      CHECK(std::isnan(rows_of(clipped, none, set)[0]));
    }
  }
}

TEST_CASE("library steps: StyleTTS 2's filters of 16 kHz on samples of 24 kHz") {
  O styletts = log_mel();
  styletts.sample_rate = 24000;
  styletts.filter_rate = 16000;
  O declared = log_mel();  // the samples called 16 kHz, which no file of 24 kHz can be
  O by_name = styletts;
  by_name.filter_rate.reset();
  const std::vector<float> x = chord(8000);
  CHECK(rows_of(styletts, x) == rows_of(declared, x));
  CHECK(largest_difference(rows_of(styletts, x), rows_of(by_name, x)) > 1);
  // A band is where its bins are: half as high again.
  CHECK(MelPlan(styletts).column_hz()[7] ==
        doctest::Approx(1.5 * MelPlan(declared).column_hz()[7]));
  CHECK(*resolve(styletts).fmax == 8000);
  CHECK(*resolve(by_name).fmax == 12000);
}

// Returns the bank as a matrix, [bins][bands] if transposed.
O::Filters written_out(const O& o, bool is_transposed) {
  const Filterbank bank = make_filterbank(resolve(o));
  const int bins = o.n_fft / 2 + 1;
  O::Filters out{{}, o.n_mels, bins, ""};
  if (is_transposed) std::swap(out.rows, out.columns);
  out.numbers.resize(static_cast<std::size_t>(o.n_mels) * static_cast<std::size_t>(bins));
  for (int m = 0; m < o.n_mels; ++m) {
    const MelBand& band = bank.bands[static_cast<std::size_t>(m)];
    for (int i = 0; i < band.count; ++i) {
      const int k = band.first_bin + i;
      const int at = is_transposed ? k * o.n_mels + m : m * bins + k;
      out.numbers[static_cast<std::size_t>(at)] =
          bank.weights[static_cast<std::size_t>(band.offset + i)];
    }
  }
  return out;
}

TEST_CASE("library steps: filters written out are the triangles, either axis first") {
  const std::vector<float> x = chord(4000);
  O triangles = log_mel();
  for (const bool is_double : {false, true}) {
    triangles.precision = is_double ? O::Precision::float64 : O::Precision::float32;
    for (const bool is_transposed : {false, true}) {
      O given = triangles;
      given.filters = written_out(triangles, is_transposed);
      given.fmin = 500;  // has no effect
      CHECK(rows_of(given, x) == rows_of(triangles, x));
    }
  }
  // fmin and fmax are of no use then, whatever they are.
  O given = triangles;
  given.filters = written_out(triangles, false);
  given.fmin = given.fmax.emplace(7);
  CHECK(check(given).empty());
}

TEST_CASE("library steps: python_speech_features' integer bins, power / n_fft and last frame") {
  // fbank() with winfunc=numpy.ones, preemph=0.97 of the signal.
  const int n_fft = 512, rate = 16000, length = 400, hop = 160, bands = 26;
  std::vector<int> corner;
  const double top = 2595 * std::log10(1 + rate / 2.0 / 700);
  for (int i = 0; i < bands + 2; ++i) {
    const double hz = 700 * (std::pow(10, top * i / (bands + 1) / 2595) - 1);
    corner.push_back(static_cast<int>(std::floor((n_fft + 1) * hz / rate)));
  }
  O o;
  o.n_fft = n_fft;
  o.win_length = length;
  o.hop = hop;
  o.align = O::Align::left;
  o.center = false;
  o.window = O::Window::boxcar;
  o.preemphasis = 0.97;
  o.normalized = O::Normalized::frame_length;
  o.n_mels = bands;
  o.partial_frames = O::PartialFrames::last;
  o.filters = {std::vector<double>(static_cast<std::size_t>(bands * (n_fft / 2 + 1))), bands,
               n_fft / 2 + 1, ""};
  const auto weight = [&o](int m, int k) -> double& {
    return o.filters.numbers[static_cast<std::size_t>(m * o.filters.columns + k)];
  };
  for (int m = 0; m < bands; ++m) {
    const auto at = static_cast<std::size_t>(m);
    const double left = corner[at], middle = corner[at + 1], right = corner[at + 2];
    for (int k = corner[at]; k < corner[at + 1]; ++k) weight(m, k) = (k - left) / (middle - left);
    for (int k = corner[at + 1]; k < corner[at + 2]; ++k)
      weight(m, k) = (right - k) / (right - middle);
  }
  for (const int n : {100, 400, 401, 1000}) {
    CAPTURE(n);
    const std::vector<float> x = chord(n), rows = rows_of(o, x);
    const int frames = n <= length ? 1 : 1 + (n - length + hop - 1) / hop;
    REQUIRE(rows.size() == static_cast<std::size_t>(frames * bands));
    for (int t = 0; t < frames; ++t) {
      std::vector<double> power, feat(static_cast<std::size_t>(bands), 0.0);
      for (int k = 0; k <= n_fft / 2; ++k) {
        double re = 0, im = 0;
        for (int i = 0; i < length && t * hop + i < n; ++i) {
          const auto at = static_cast<std::size_t>(t * hop + i);
          const double y = x[at] - (at > 0 ? 0.97 * static_cast<double>(x[at - 1]) : 0.0);
          re += y * std::cos(2 * std::numbers::pi * k * i / n_fft);
          im -= y * std::sin(2 * std::numbers::pi * k * i / n_fft);
        }
        power.push_back((re * re + im * im) / n_fft);
      }
      double peak = 0;
      for (int m = 0; m < bands; ++m) {
        double& band = feat[static_cast<std::size_t>(m)];
        for (int k = 0; k <= n_fft / 2; ++k)
          band += weight(m, k) * power[static_cast<std::size_t>(k)];
        peak = std::max(peak, band);
      }
      for (int m = 0; m < bands; ++m)
        CHECK(std::abs(rows[static_cast<std::size_t>(t * bands + m)] -
                       feat[static_cast<std::size_t>(m)]) < 1e-6 * peak);
    }
  }
}

TEST_CASE("library steps: partial frames are those of the samples with zeros behind them") {
  O o = log_mel();
  o.center = false;
  o.align = O::Align::left;
  o.amin = 1e-3;
  const int length = 400, hop = 160;
  for (const auto rule : {O::PartialFrames::last, O::PartialFrames::all}) {
    O partial = o;
    partial.partial_frames = rule;
    bool good = true;
    for (int n = 1; n < 1500; ++n) {
      // python_speech_features.sigproc.framesig, and tf.signal.frame with pad_end.
      const int frames = rule == O::PartialFrames::all ? (n + hop - 1) / hop
                         : n <= length                 ? 1
                                                       : 1 + (n - length + hop - 1) / hop;
      good = good && MelPlan(partial).frames(n) == frames;
      if (n % 97 != 0) continue;
      std::vector<float> x = chord(n);
      const std::vector<float> rows = rows_of(partial, x);
      x.resize(static_cast<std::size_t>((frames - 1) * hop + length), 0.0F);
      good = good && rows == rows_of(o, x);
    }
    CHECK(good);
    CHECK(MelPlan(partial).frames(0) == 0);
    CHECK(MelPlan(partial).frames_ready(399) == 0);
    CHECK(MelPlan(partial).frames_ready(400) == 1);
  }
  // Without them a recording shorter than a frame has no row.
  CHECK(MelPlan(o).frames(399) == 0);
}

}  // namespace
}  // namespace melflow::library_steps_test
