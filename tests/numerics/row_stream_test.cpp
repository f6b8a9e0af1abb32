// Streams: the rows of samples that come in pieces are, bit for bit, those of the whole recording.
#include "stages/features/mel/row_stream.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "stages/features/mel/cepstrum.h"
#include "stages/features/mel/delta_step.h"
#include "stages/features/mel/fit_step.h"
#include "stages/features/mel/mel_option_table.h"
#include "stages/features/mel/mel_presets.h"
#include "stages/features/mel/pcen_step.h"
#include "stages/features/mel/sliding_step.h"
#include "stages/features/mel/stack_step.h"
#include "stages/features/mel/utterance_steps.h"

namespace melflow::row_stream_test {
namespace {

using O = MelOptions;
using Steps = std::vector<std::shared_ptr<const OrderedStep>>;

struct FrontEnd {
  std::string name;
  O options;
  Steps steps;
  std::int64_t least_frames = 1;  // with fewer a run skips the recording

  [[nodiscard]] std::shared_ptr<RowFront> front() const {
    auto front =
        std::make_shared<RowFront>(std::make_shared<MelKernel>(std::make_shared<MelPlan>(options)));
    for (const auto& step : steps) front->add(step);
    return front;
  }
};

std::shared_ptr<const OrderedStep> ordered(std::shared_ptr<const FinishStep> step) {
  auto out = std::dynamic_pointer_cast<const OrderedStep>(step);
  REQUIRE(out != nullptr);
  return out;
}

O preset(const char* name) { return find_preset(name)->options; }

// A front end for every kind of framing and every step.
std::vector<FrontEnd> front_ends() {
  std::vector<FrontEnd> out;
  for (const MelPreset& p : mel_presets()) {
    O o = p.options;
    o.top_db.reset();
    if (o.normalize != O::Normalize::fixed) o.normalize = O::Normalize::none;
    Steps steps;
    const UtteranceSteps finish = UtteranceSteps::of_mel(o);
    for (const auto& step : finish.steps()) steps.push_back(ordered(step));
    out.push_back({std::string(p.name), o, steps});
  }
  O power = preset("kaldi");
  power.log = O::Log::none;
  O dithered = preset("nemo");
  dithered.normalize = O::Normalize::none;
  dithered.dither = 1e-3;
  O ramp = preset("torchaudio");
  ramp.pad_mode = O::PadMode::linear_ramp;
  ramp.drop_exact = true;
  O snipped = preset("kaldi");
  snipped.snip_edges = false;
  O precise = preset("librosa");
  precise.precision = O::Precision::float64;
  PcenOptions pcen;
  pcen.b = 0.025;
  const auto mfcc = ordered(cepstrum_step({.n_mfcc = 13}, 23, -1));
  using Delta = DeltaOptions::Method;
  using Tail = StackOptions::Tail;
  const auto stack = [](StackOptions o) { return ordered(stack_step(o)); };
  out.push_back({"pcen", power, {ordered(pcen_step(pcen))}});
  out.push_back({"dither", dithered, {}});
  out.push_back({"ramp", ramp, {}});
  out.push_back({"snip_edges false", snipped, {}});
  out.push_back({"double", precise, {}});
  for (const Delta method : {Delta::regression, Delta::kaldi, Delta::librosa})
    out.push_back({"mfcc, deltas " + std::to_string(static_cast<int>(method)),
                   preset("kaldi"),
                   {mfcc, ordered(delta_step({.order = 2, .width = 5, .method = method}))},
                   method == Delta::librosa ? 5 : 1});
  for (const bool center : {false, true})
    out.push_back(
        {"mfcc, sliding",
         preset("kaldi"),
         {mfcc, ordered(sliding_step(
                    {.window = 30, .center = center, .min_window = 10, .variance = center}))}});
  for (const Tail tail : {Tail::drop, Tail::replicate, Tail::value})
    out.push_back({"stack",
                   preset("kaldi"),
                   {stack({.frames = 7, .hop = 6, .left = 3, .tail = tail, .value = 1})},
                   tail == Tail::drop ? 4 : 1});
  out.push_back({"skip", preset("hifigan"), {stack({.frames = 1, .hop = 3})}});
  out.push_back({"fit", preset("kaldi"), {ordered(fit_step({.rows = 20, .value = -1}))}});
  out.push_back({"fit, multiple",
                 preset("kaldi"),
                 {ordered(fit_step({.multiple = 4, .extra = 1, .rest = FitOptions::Rest::drop}))},
                 3});
  out.push_back({"all",
                 preset("kaldi"),
                 {mfcc, ordered(delta_step({})), ordered(sliding_step({.window = 12})),
                  stack({.frames = 2, .hop = 2, .tail = Tail::replicate}),
                  ordered(fit_step({.multiple = 3}))}});
  return out;
}

std::vector<float> noise(std::size_t count, std::mt19937& random) {
  std::vector<float> out(count);
  for (float& x : out)
    x = static_cast<float>(static_cast<int>(random() % 65536) - 32768) * kInt16Scale;
  return out;
}

// By the kernel at once, and the steps one after another on all rows.
std::vector<float> whole(const FrontEnd& f, const RowFront& front, const std::vector<float>& x) {
  const MelKernel& kernel = front.kernel();
  const auto length = static_cast<std::int64_t>(x.size());
  std::int64_t rows = kernel.plan().frames(length);
  int columns = kernel.plan().columns();
  if (rows < f.least_frames) return {};
  std::vector<float> values(static_cast<std::size_t>(rows * columns));
  auto scratch = kernel.make_scratch();
  kernel.frames(SignalView<float>{x.data(), 0, length, length, 7, 0}, 0, rows, values.data(),
                scratch);
  for (const auto& step : f.steps) {
    const std::int64_t rows_out = step->rows_out(rows);
    const int columns_out = step->values_out(columns);
    std::vector<float> made(static_cast<std::size_t>(rows_out * columns_out));
    const MemoryRows in(values.data(), rows, columns);
    MemoryRows out(made.data(), rows_out, columns_out);
    step->run(in, out);
    values = std::move(made);
    rows = rows_out;
    columns = columns_out;
  }
  return values;
}

void push(RowStream& stream, const float* x, std::int64_t count, bool is_int16, bool is_last,
          RowVector& rows, RowStream::Scratch& scratch) {
  std::vector<std::int16_t> narrow;
  for (std::int64_t i = 0; i < count && is_int16; ++i)
    narrow.push_back(static_cast<std::int16_t>(x[i] * 32768.0F));
  RowStream::Feed feed{&stream, x, count, is_int16, is_last, &rows};
  if (is_int16) feed.samples = narrow.data();
  RowStream::push({&feed, 1}, scratch);
}

bool equal(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

}  // namespace

TEST_CASE("stream: any pieces, of either type, give the bits of the whole recording") {
  std::mt19937 random(5);
  for (const FrontEnd& f : front_ends()) {
    CAPTURE(f.name);
    const auto front = f.front();
    RowStream::Scratch scratch(*front);
    RowStream stream(front, 7);
    for (int i = 0; i < 6; ++i) {
      const std::vector<float> x = noise(random() % 20000, random);
      CAPTURE(x.size());
      const int most = i == 0 ? 40 : i == 1 ? 20000 : 1 + static_cast<int>(random() % 3000);
      stream.reset();
      RowVector rows;
      std::int64_t promised = 0;
      for (std::size_t at = 0; at < x.size();) {
        const std::size_t n =
            std::min<std::size_t>(random() % most + (most == 40 ? 0 : 1), x.size() - at);
        push(stream, x.data() + at, static_cast<std::int64_t>(n), random() % 2 == 0, false, rows,
             scratch);
        at += n;
        promised = front->rows_ready(static_cast<std::int64_t>(at));
        CHECK(stream.rows() == promised);  // no row waits longer than it must
      }
      push(stream, nullptr, 0, false, true, rows, scratch);
      CHECK(equal(rows, whole(f, *front, x)));
    }
  }
}

TEST_CASE("stream: finished at every length from no sample to three windows") {
  std::mt19937 random(6);
  for (const FrontEnd& f : front_ends()) {
    CAPTURE(f.name);
    const auto front = f.front();
    RowStream::Scratch scratch(*front);
    RowStream stream(front, 7);
    const auto window = static_cast<std::size_t>(front->kernel().plan().frame_length());
    const std::size_t step = window > 1000 ? 61 : 13;  // lengths near the ends of frames, too
    const std::vector<float> x = noise(3 * window + 1, random);
    for (std::size_t n = 0; n <= 3 * window; n += random() % step + 1) {
      CAPTURE(n);
      stream.reset();
      RowVector rows;
      push(stream, x.data(), static_cast<std::int64_t>(n), false, true, rows, scratch);
      CHECK(equal(rows, whole(f, *front, {x.begin(), x.begin() + static_cast<std::ptrdiff_t>(n)})));
    }
  }
}

TEST_CASE("stream: several in one call, each with pieces of its own, give the bits of each alone") {
  std::mt19937 random(7);
  for (const FrontEnd& f : front_ends()) {
    CAPTURE(f.name);
    const auto front = f.front();
    RowStream::Scratch scratch(*front);
    constexpr std::size_t kStreams = 5;
    std::vector<std::unique_ptr<RowStream>> streams;
    std::vector<std::vector<float>> x;
    std::vector<RowVector> rows(kStreams);
    for (std::size_t i = 0; i < kStreams; ++i) {
      streams.push_back(std::make_unique<RowStream>(front, 7));
      x.push_back(noise(4000 + random() % 9000, random));
    }
    std::vector<std::size_t> at(kStreams, 0);
    for (std::size_t open = kStreams; open > 0;) {
      std::vector<RowStream::Feed> feeds;
      for (std::size_t i = 0; i < kStreams; ++i) {
        if (at[i] > x[i].size()) continue;
        const std::size_t n = std::min<std::size_t>(random() % 5000, x[i].size() - at[i]);
        const bool is_last = at[i] + n == x[i].size();
        feeds.push_back({streams[i].get(), x[i].data() + at[i], static_cast<std::int64_t>(n), false,
                         is_last, &rows[i]});
        at[i] += is_last ? n + 1 : n;
        if (is_last) --open;
      }
      RowStream::push(feeds, scratch);
    }
    for (std::size_t i = 0; i < kStreams; ++i) CHECK(equal(rows[i], whole(f, *front, x[i])));
  }
}

TEST_CASE("stream: what needs the whole recording gives all rows at its end") {
  std::mt19937 random(8);
  const O o = preset("whisper");
  auto front =
      std::make_shared<RowFront>(std::make_shared<MelKernel>(std::make_shared<MelPlan>(o)));
  const UtteranceSteps finish = UtteranceSteps::of_mel(o);
  for (const auto& step : finish.steps()) {
    auto in_order = std::dynamic_pointer_cast<const OrderedStep>(step);
    front->add(in_order ? in_order : at_the_end(step));
  }
  const std::vector<float> x = noise(10000, random);
  RowStream::Scratch scratch(*front);
  RowStream stream(front);
  RowVector rows;
  for (std::size_t i = 0; i < 10; ++i)
    push(stream, x.data() + 1000 * i, 1000, false, false, rows, scratch);
  CHECK(rows.empty());
  push(stream, nullptr, 0, false, true, rows, scratch);
  std::vector<float> expected = whole({"", o, {}}, *front, x);
  finish.apply(expected.data(), stream.rows(), 80);
  CHECK(equal(rows, expected));
}

TEST_CASE("options: exactly those that make steps for the whole recording say so") {
  for (const auto log : {O::Log::none, O::Log::db, O::Log::ln})
    for (const auto normalize : {O::Normalize::none, O::Normalize::fixed, O::Normalize::per_feature,
                                 O::Normalize::all_features})
      for (int bits = 0; bits < 4; ++bits) {
        O o;
        o.log = log;
        o.normalize = normalize;
        if (normalize == O::Normalize::fixed) o.norm_mean = {0};
        if (log != O::Log::none && (bits & 1) != 0) o.top_db = 80;
        o.ref.is_max = log != O::Log::none && (bits & 2) != 0;
        REQUIRE(check(o).empty());
        const MelOptionRow* row = needs_whole(o);
        CHECK((row != nullptr) == UtteranceSteps::of_mel(o).needs_utterance());
        if (row != nullptr) CHECK(!row->whole.instead.empty());
      }
}

}  // namespace melflow::row_stream_test
