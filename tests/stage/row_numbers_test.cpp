// stack, fit_rows and sliding_cmvn: their steps against plain formulas in double, written from the
// definitions of the libraries whose front ends need them, and whole jobs with them.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "pipeline/run/stage_runner.h"
#include "stages/facts.h"
#include "stages/features/mel/fit_step.h"
#include "stages/features/mel/sliding_step.h"
#include "stages/features/mel/stack_step.h"
#include "stages/features/row_stage.h"
#include "stages/training/recording_rows.h"
#include "tests/support/audio_files.h"
#include "tests/support/job.h"
#include "tests/support/problems.h"
#include "tests/support/temp_folder.h"

namespace melflow::test::row_numbers_test {
namespace {

using Rows = std::vector<std::vector<double>>;

// Rows that are read and written in pieces, as those of a recording in a temporary file.
class PiecewiseRows final : public UtteranceRows {
 public:
  PiecewiseRows(std::int64_t rows, int values, std::int64_t piece)
      : UtteranceRows(rows, values),
        data(static_cast<std::size_t>(rows * values), -1e30F),
        piece_(piece) {}
  [[nodiscard]] std::int64_t piece() const override { return piece_; }
  const float* get(std::int64_t first, std::int64_t count,
                   std::vector<float>& room) const override {
    REQUIRE(first >= 0);
    REQUIRE(first + count <= rows());
    room.assign(data.begin() + first * values(), data.begin() + (first + count) * values());
    return room.data();
  }
  float* place(std::int64_t, std::int64_t count, std::vector<float>& room) override {
    room.assign(static_cast<std::size_t>(count * values()), 0.0F);
    return room.data();
  }
  void put(std::int64_t first, std::int64_t count, const float* from) override {
    std::copy_n(from, count * values(), data.begin() + first * values());
  }

  std::vector<float> data;

 private:
  std::int64_t piece_;
};

Rows random_rows(std::int64_t rows, int columns, std::mt19937& random) {
  std::uniform_real_distribution<float> value(-20.0F, 4.0F);
  Rows out(static_cast<std::size_t>(rows));
  for (auto& row : out)
    for (int c = 0; c < columns; ++c) row.push_back(value(random));
  return out;
}

std::vector<float> floats(const Rows& rows) {
  std::vector<float> out;
  for (const auto& row : rows)
    for (const double x : row) out.push_back(static_cast<float>(x));
  return out;
}

// Runs a step on rows in memory, and in pieces of several sizes; all have to give the same bits.
std::vector<float> made(const FinishStep& step, const Rows& rows, int columns) {
  const auto count = static_cast<std::int64_t>(rows.size());
  const std::int64_t count_out = step.rows_out(count);
  const int columns_out = step.values_out(columns);
  std::vector<float> from = floats(rows);
  std::vector<float> out(static_cast<std::size_t>(count_out * columns_out));
  const bool is_in_place = count_out == count && columns_out == columns;
  MemoryRows in(from.data(), count, columns), to(out.data(), count_out, columns_out);
  step.run(in, to);
  if (is_in_place) {
    step.run(in, in);
    CHECK(from == out);
  }
  for (const std::int64_t piece : {1, 3, 64}) {
    PiecewiseRows pieces(count, columns, piece), joined(count_out, columns_out, piece + 1);
    pieces.data = floats(rows);
    if (is_in_place) {
      step.run(pieces, pieces);
      CHECK(pieces.data == out);
    } else {
      step.run(pieces, joined);
      CHECK(joined.data == out);
    }
  }
  return out;
}

// As the libraries write it: frames are added on the left, then rows are cut out, and what the last
// ones lack is added.
Rows stacked(const Rows& in, const StackOptions& o, int columns) {
  const std::vector<double> fill(static_cast<std::size_t>(columns),
                                 static_cast<double>(static_cast<float>(o.value)));
  Rows padded(static_cast<std::size_t>(o.left),
              o.head == StackOptions::Head::replicate ? in.front() : fill);
  padded.insert(padded.end(), in.begin(), in.end());
  const auto frames = static_cast<std::size_t>(o.frames);
  Rows out;
  for (std::size_t i = 0;; ++i) {
    const std::size_t begin = i * static_cast<std::size_t>(o.hop.value_or(o.frames));
    const bool is_row = o.tail == StackOptions::Tail::drop
                            ? begin + frames <= padded.size()
                            : i * static_cast<std::size_t>(o.hop.value_or(o.frames)) < in.size();
    if (!is_row) return out;
    Rows window;
    for (std::size_t f = begin; f < begin + frames; ++f)
      window.push_back(f < padded.size()                         ? padded[f]
                       : o.tail == StackOptions::Tail::replicate ? in.back()
                                                                 : fill);
    std::vector<double> row;
    if (o.order == StackOptions::Order::frame_major)
      for (const auto& frame : window) row.insert(row.end(), frame.begin(), frame.end());
    else
      for (int c = 0; c < columns; ++c)
        for (const auto& frame : window) row.push_back(frame[static_cast<std::size_t>(c)]);
    out.push_back(row);
  }
}

// The mean and the standard deviation over the rows that Kaldi's SlidingWindowCmn takes for each
// row, summed anew.
Rows slid(const Rows& in, const SlidingOptions& o) {
  const auto count = static_cast<std::int64_t>(in.size());
  Rows out = in;
  for (std::int64_t t = 0; t < count; ++t) {
    std::int64_t begin = o.center ? t - o.window / 2 : t - o.window;
    std::int64_t end = o.center ? begin + o.window : t + 1;
    if (begin < 0) {
      end -= begin;
      begin = 0;
    }
    if (!o.center) end = std::max<std::int64_t>(t + 1, o.min_window);
    if (end > count) {
      begin = std::max<std::int64_t>(0, begin - (end - count));
      end = count;
    }
    for (std::size_t c = 0; c < in.front().size(); ++c) {
      double sum = 0, squares = 0;
      for (std::int64_t s = begin; s < end; ++s) sum += in[static_cast<std::size_t>(s)][c];
      const double n = static_cast<double>(end - begin), mean = sum / n;
      for (std::int64_t s = begin; s < end; ++s)
        squares += std::pow(in[static_cast<std::size_t>(s)][c] - mean, 2);
      double& x = out[static_cast<std::size_t>(t)][c];
      x -= mean;
      if (o.variance) x = n == 1 ? 0.0 : x / std::sqrt(std::max(1e-10, squares / n));
    }
  }
  return out;
}

std::string pipeline(const std::string& last, const std::string& mel = "",
                     const std::string& segment = "", const std::string& decode = "") {
  return "version: 1\ngraph:\n"
         "  files: {stage: file_list, root: \"${DATA}\", labels: none}\n"
         "  read: {stage: disk_read, from: files}\n"
         "  decode: {stage: decode, from: read" +
         decode +
         "}\n"
         "  segment: {stage: segment, from: decode" +
         segment +
         "}\n"
         "  batch: {stage: batch, from: segment}\n"
         "  mel: {stage: mel, from: batch, sample_rate: 8000, n_fft: 256, hop: 128, n_mels: 8, "
         "log: ln" +
         mel + "}\n" + last + "  write: {stage: hdf5_write, from: last, path: \"${OUT}\"}\n";
}

std::string last(const std::string& stage) { return "  last: {stage: " + stage + ", from: mel}\n"; }

Output output(const TempFolder& folder, const std::string& yaml, const std::string& name) {
  (void)completed(run_job(yaml, in_out(folder / "clips", folder / name)));
  return read_output(folder / name);
}

// Runs a stage on the rows of one recording, in blocks of `block` rows; the steps that remain are
// done as a loader does them.
struct Ran {
  std::vector<float> values;
  std::int64_t rows = 0;
  std::string reason;  // why it was skipped; "" if it was not
};

class RowsRunner {
 public:
  RowsRunner(const std::string& stage, const OptionList& options, int columns, int frames = 0)
      : runner_(stage, options), pool_(std::size_t{1} << 26) {
    in_->name = "mel";
    in_->columns = columns;
    in_->frames = frames;
    in_->unit = "ln power";
    in_->sample_rate = 16000;
    in_->hop = 160;
    in_->frames_of = [](std::int64_t samples) { return samples / 160; };
    Properties given;
    given.set(property::kFeatures, std::shared_ptr<const FeatureInfo>(in_));
    given.set(property::kFullBatch, FullBatch{8, 1 << 20});
    planned = runner_.plan(given);
  }
  [[nodiscard]] std::shared_ptr<const FeatureInfo> out() const {
    return planned.properties.get_or(property::kFeatures, nullptr);
  }
  [[nodiscard]] std::optional<std::int64_t> length_of(std::int64_t rows) {
    const auto* lengths = dynamic_cast<const TellsLength*>(&runner_.stage());
    REQUIRE(lengths != nullptr);
    const auto length = lengths->length_of({16000, rows * 160, rows});
    return length ? std::optional(length->rows) : std::nullopt;
  }
  [[nodiscard]] std::size_t bound(std::size_t bytes) const {
    return dynamic_cast<const RowStage&>(const_cast<StageRunner&>(runner_).stage())
        .output_bound({}, bytes);
  }

  // `rows`: frames, or with `frames` the frames of all windows.
  Ran run(const Rows& rows, std::int64_t block) {
    const std::vector<float> values = floats(rows);
    const std::int64_t each = std::max(1, in_->frames);
    const auto count = static_cast<std::int64_t>(rows.size()) / each;
    const auto width = static_cast<std::int64_t>(in_->values_per_row());
    std::vector<std::shared_ptr<const MelBatch>> blocks;
    for (std::int64_t first = 0; first < count; first += block) {
      auto part = std::make_shared<MelPart>();
      part->first_row = first;
      part->row_count = std::min(block, count - first);
      part->last = first + block >= count;
      auto buffer = std::make_shared<Buffer>(
          pool_.lease(static_cast<std::size_t>(part->row_count * width) * sizeof(float)));
      std::copy_n(values.begin() + first * width, part->row_count * width, buffer->as<float>());
      part->data = std::move(buffer);
      auto batch = std::make_shared<MelBatch>();
      batch->info = in_;
      batch->parts.push_back(std::move(part));
      blocks.push_back(std::move(batch));
    }
    const auto made = runner_.stream<MelBatch>(blocks);
    Ran out;
    if (!made.ok()) {
      out.reason = made.entry.reason;
      return out;
    }
    RecordingRows all(this->out(), NumberType::float32);
    bool is_complete = false;
    for (const auto& batch : made.blocks) {
      const auto part = batch->parts.at(0);
      REQUIRE(part != nullptr);
      is_complete = all.add(part, part->last ? part->first_row + part->row_count : -1);
    }
    REQUIRE(is_complete);
    const auto* from = reinterpret_cast<const float*>(all.data());
    out.rows = all.count();
    out.values.assign(
        from, from + all.count() * static_cast<std::int64_t>(this->out()->values_per_row()));
    return out;
  }

  Planned planned;

 private:
  StageRunner runner_;
  BufferPool pool_;
  std::shared_ptr<FeatureInfo> in_ = std::make_shared<FeatureInfo>();
};

// The rows of a recording in a pipeline without the stage.
Rows plain(const Output& all, const std::string& path) {
  const std::vector<float> values = all.rows_of(path);
  const std::size_t columns = all.values_per_row();
  Rows out;
  for (std::size_t i = 0; i < values.size(); i += columns)
    out.emplace_back(values.begin() + static_cast<std::ptrdiff_t>(i),
                     values.begin() + static_cast<std::ptrdiff_t>(i + columns));
  return out;
}

// Recordings of 1 to 38 frames, and one of many blocks.
void write_clips(const TempFolder& folder) {
  for (const int samples : {100, 300, 700, 1600, 4800})
    write_wav(folder.file(fmt::format("clips/{:05}.wav", samples)), samples, 8000);
  write_wav(folder.file("clips/99999.wav"), 150000, 8000);
}

constexpr const char* kSmallBlocks = ", block: 64KiB";

}  // namespace

TEST_CASE("stack: rows are those of the libraries' padding and slicing, in pieces of any size") {
  std::mt19937 random(7);
  const auto up_to = [&](int most) { return static_cast<int>(random() % (most + 1)); };
  for (int i = 0; i < 600; ++i) {
    StackOptions o;
    o.frames = 1 + up_to(12);
    o.hop = 1 + up_to(i % 3 == 0 ? 12 : o.frames - 1);
    o.left = up_to(o.frames - 1);
    o.head = up_to(1) == 0 ? StackOptions::Head::replicate : StackOptions::Head::value;
    o.tail = std::vector{StackOptions::Tail::drop, StackOptions::Tail::replicate,
                         StackOptions::Tail::value}[static_cast<std::size_t>(up_to(2))];
    o.order = up_to(1) == 0 ? StackOptions::Order::frame_major : StackOptions::Order::band_major;
    o.value = up_to(1) - 0.1;
    if (o.frames == 1 && o.hop == 1) o.hop = 2;
    const int columns = 1 + up_to(4);
    const Rows in = random_rows(1 + up_to(i % 2 == 0 ? 5 : 40), columns, random);
    const Rows expected = stacked(in, o, columns);
    CAPTURE(i);
    REQUIRE(stacked_rows(o, static_cast<std::int64_t>(in.size())) ==
            static_cast<std::int64_t>(expected.size()));
    if (!expected.empty()) CHECK(made(*stack_step(o), in, columns) == floats(expected));
  }
}

TEST_CASE("stack: LFR 7/6 of FunASR, a pair filled up, a pair dropped, a context of 5 + 5") {
  Rows in;
  for (int t = 0; t < 14; ++t) in.push_back({1.0 * t, 100.0 + t});
  const auto first_column = [&](const StackOptions& o) {
    const std::vector<float> all = made(*stack_step(o), in, 2);
    std::vector<int> out;
    for (std::size_t i = 0; i < all.size(); i += 2) out.push_back(static_cast<int>(all[i]));
    return out;
  };
  using enum StackOptions::Tail;
  CHECK(first_column({.frames = 7, .hop = 6, .left = 3, .tail = replicate}) ==
        std::vector{0, 0, 0, 0, 1, 2, 3, 3, 4, 5, 6, 7, 8, 9, 9, 10, 11, 12, 13, 13, 13});
  in.resize(3);
  CHECK(first_column({.tail = value, .value = 1.0}) == std::vector{0, 1, 2, 1});
  CHECK(first_column({.tail = drop}) == std::vector{0, 1});
  const std::vector<float> context = made(*stack_step({.frames = 11,
                                                       .hop = 1,
                                                       .left = 5,
                                                       .head = StackOptions::Head::value,
                                                       .tail = value,
                                                       .order = StackOptions::Order::band_major}),
                                          in, 2);
  REQUIRE(context.size() == 66);
  CHECK(std::vector<float>(context.begin() + 22, context.begin() + 44) ==
        std::vector<float>{0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 100, 101, 102, 0, 0, 0, 0});
}

TEST_CASE("fit_rows: exact numbers, multiples, rows that are always added") {
  std::mt19937 random(11);
  for (int i = 0; i < 300; ++i) {
    FitOptions o;
    if (i % 3 == 0) o.rows = 1 + random() % 20;
    if (i % 3 != 0) o.multiple = 1 + random() % 7, o.extra = static_cast<int>(random() % 3);
    if (i % 6 == 1) o.rest = FitOptions::Rest::drop;
    o.value = 0.467;
    const Rows in = random_rows(1 + random() % 30, 3, random);
    Rows expected = in;
    const std::vector<double> fill(3, static_cast<double>(0.467F));
    if (o.rows) {
      expected.resize(static_cast<std::size_t>(*o.rows), fill);
    } else {
      for (int k = 0; k < o.extra; ++k) expected.push_back(fill);
      while (expected.size() % static_cast<std::size_t>(o.multiple.value_or(1)) != 0)
        o.rest == FitOptions::Rest::fill ? expected.push_back(fill) : expected.pop_back();
    }
    CAPTURE(i);
    REQUIRE(fitted_rows(o, static_cast<std::int64_t>(in.size())) ==
            static_cast<std::int64_t>(expected.size()));
    if (!expected.empty()) CHECK(made(*fit_step(o), in, 3) == floats(expected));
  }
}

TEST_CASE("sliding_cmvn: mean and deviation over Kaldi's windows, in pieces of any size") {
  std::mt19937 random(13);
  for (int i = 0; i < 300; ++i) {
    SlidingOptions o;
    o.window = 1 + static_cast<int>(random() % 30);
    o.center = i % 2 == 0;
    o.min_window = 1 + static_cast<int>(random()) % o.window;
    o.min_window = std::clamp(o.min_window, 1, o.window);
    o.variance = i % 4 < 2;
    Rows in = random_rows(1 + static_cast<std::int64_t>(random() % 90), 3, random);
    for (auto& row : in) row[2] = 3.25;  // never changes
    const std::vector<float> out = made(*sliding_step(o), in, 3);
    const Rows expected = slid(in, o);
    double worst = 0;
    for (std::size_t r = 0; r < in.size(); ++r)
      for (std::size_t c = 0; c < 3; ++c)
        worst = std::max(worst, std::abs(static_cast<double>(out[r * 3 + c]) - expected[r][c]) /
                                    (1.0 + std::abs(expected[r][c])));
    CAPTURE(i);
    CHECK(worst < 2e-7);
  }
}

TEST_CASE("stack, fit_rows, sliding_cmvn: as stages, of recordings in blocks and of windows") {
  std::mt19937 random(19);
  struct Case {
    std::string stage;
    OptionList options;
    std::int64_t least;  // rows for one row
    std::function<Rows(const Rows&)> expected;
  };
  const StackOptions lfr{.frames = 7, .hop = 6, .left = 3, .tail = StackOptions::Tail::replicate};
  const Case cases[] = {
      {"stack",
       {{"frames", 7}, {"hop", 6}, {"left", 3}, {"tail", "replicate"}},
       1,
       [&](const Rows& in) { return stacked(in, lfr, 2); }},
      {"stack",
       {{"frames", 4}},
       4,
       [](const Rows& in) { return stacked(in, {.frames = 4, .hop = 4}, 2); }},
      {"fit_rows",
       {{"rows", 12}, {"value", 0.5}},
       1,
       [](Rows in) {
         in.resize(12, {0.5, 0.5});
         return in;
       }},
      {"fit_rows",
       {{"multiple", 16}, {"extra", 1}},
       1,
       [](Rows in) {
         in.resize((in.size() + 16) / 16 * 16, {0.0, 0.0});
         return in;
       }},
      {"fit_rows",
       {{"multiple", 3}, {"rest", "drop"}},
       3,
       [](Rows in) {
         in.resize(in.size() / 3 * 3);
         return in;
       }},
      {"sliding_cmvn",
       {{"window", 5}, {"center", true}},
       1,
       [](const Rows& in) { return slid(in, {.window = 5, .center = true}); }},
  };
  for (const Case& c : cases) {
    CAPTURE(c.stage);
    RowsRunner stage(c.stage, c.options, 2);
    REQUIRE(stage.planned.errors.empty());
    const bool is_exact = c.stage != "sliding_cmvn";
    for (const std::int64_t count : {1, 2, 3, 4, 6, 7, 12, 31, 32}) {
      CAPTURE(count);
      const Rows in = random_rows(count, 2, random);
      const Ran whole = stage.run(in, count);
      for (const std::int64_t block : {1, 2, 5, 17}) {
        const Ran blocks = stage.run(in, block);
        CHECK(blocks.values == whole.values);
        CHECK(blocks.reason == whole.reason);
      }
      if (count < c.least) {
        CHECK(whole.reason == fmt::format("has {} frames, {} are needed", count, c.least));
        CHECK(stage.length_of(count) == std::nullopt);
        continue;
      }
      CHECK(whole.reason == "");
      const Rows expected = c.expected(in);
      CHECK(stage.length_of(count) == whole.rows);
      CHECK(stage.out()->frames_of(count * 160) == whole.rows);
      CHECK(stage.bound(static_cast<std::size_t>(count) * 8) >= whole.values.size() * 4);
      REQUIRE(whole.rows == static_cast<std::int64_t>(expected.size()));
      const std::vector<float> values = floats(expected);
      double worst = 0;
      for (std::size_t i = 0; i < values.size(); ++i)
        worst = std::max<double>(worst, std::abs(whole.values[i] - values[i]));
      CHECK(worst <= (is_exact ? 0.0 : 2e-6));
    }
    // Windows of 8 frames, each by itself.
    RowsRunner windows(c.stage, c.options, 2, 8);
    REQUIRE(windows.planned.errors.empty());
    const Rows in = random_rows(24, 2, random);
    std::vector<float> expected;
    for (std::ptrdiff_t w = 0; w < 3; ++w) {
      const std::vector<float> one =
          floats(c.expected({in.begin() + w * 8, in.begin() + w * 8 + 8}));
      expected.insert(expected.end(), one.begin(), one.end());
    }
    const Ran made = windows.run(in, 2);
    CHECK(made.rows == 3);
    REQUIRE(made.values.size() == expected.size());
    double worst = 0;
    for (std::size_t i = 0; i < expected.size(); ++i)
      worst = std::max<double>(worst, std::abs(made.values[i] - expected[i]));
    CHECK(worst <= (is_exact ? 0.0 : 2e-6));
  }
  const RowsRunner stack("stack", {{"frames", 7}, {"hop", 6}, {"left", 3}}, 80);
  CHECK(stack.out()->columns == 560);
  CHECK(stack.out()->hop == 960);
  CHECK(stack.out()->axis == "feature");
  CHECK(stack.out()->unit == "ln power");
  CHECK(RowsRunner("fit_rows", {{"rows", 1024}}, 128).out()->axis == "band");
}

TEST_CASE("stack, fit_rows, sliding_cmvn: the same rows in one block and in many, and in windows") {
  const TempFolder folder;
  write_clips(folder);
  const Output rows = output(folder, pipeline(last("deltas, order: 1, width: 3")), "plain.h5");
  REQUIRE(rows.values_per_row() == 16);
  const std::string deltas = "  first: {stage: deltas, order: 1, width: 3, from: mel}\n";
  struct Case {
    const char* stage;
    std::function<Rows(const Rows&)> expected;
  };
  const StackOptions lfr{.frames = 7, .hop = 6, .left = 3, .tail = StackOptions::Tail::replicate};
  const SlidingOptions slide{.window = 30, .center = true};
  const Case cases[] = {
      {"stack, frames: 7, hop: 6, left: 3, tail: replicate",
       [&](const Rows& in) { return stacked(in, lfr, 16); }},
      {"fit_rows, rows: 40, value: 0.5",
       [](Rows in) {
         in.resize(40, std::vector<double>(16, 0.5));
         return in;
       }},
      {"fit_rows, multiple: 16, extra: 1",
       [](Rows in) {
         in.resize((in.size() + 1 + 15) / 16 * 16, std::vector<double>(16, 0.0));
         return in;
       }},
      {"sliding_cmvn, window: 30, center: true", [&](const Rows& in) { return slid(in, slide); }},
  };
  int n = 0;
  for (const Case& c : cases) {
    CAPTURE(c.stage);
    const std::string nodes = deltas + "  last: {stage: " + c.stage + ", from: first}\n";
    const Output whole = output(folder, pipeline(nodes), fmt::format("{}.h5", ++n));
    const Output blocks =
        output(folder, pipeline(nodes, "", "", kSmallBlocks), fmt::format("{}b.h5", n));
    CHECK(whole.difference(blocks) == "");
    for (const Output::File& file : rows.files) {
      CAPTURE(file.path);
      const std::vector<float> expected = floats(c.expected(plain(rows, file.path)));
      const std::vector<float> have = whole.rows_of(file.path);
      REQUIRE(have.size() == expected.size());
      double worst = 0;
      for (std::size_t i = 0; i < have.size(); ++i)
        worst = std::max<double>(worst, std::abs(have[i] - expected[i]));
      CHECK(worst <= (std::string(c.stage).starts_with("sliding") ? 2e-6 : 0.0));
    }
  }
}

TEST_CASE("stack, fit_rows: a loader finishes the rows of a recording of several blocks") {
  std::mt19937 random(17);
  BufferPool pool(std::size_t{1} << 24);
  auto steps = std::make_shared<UtteranceSteps>();
  steps->add(stack_step({.frames = 3, .hop = 2, .left = 1, .tail = StackOptions::Tail::replicate}));
  steps->add(fit_step({.multiple = 4, .value = 0.5}));
  auto info = std::make_shared<FeatureInfo>();
  info->columns = 6;
  RecordingRows rows(info, NumberType::float32);
  for (const std::int64_t count : {1, 2, 7, 40}) {
    CAPTURE(count);
    const Rows in = random_rows(count, 2, random);
    Rows expected =
        stacked(in, {.frames = 3, .hop = 2, .left = 1, .tail = StackOptions::Tail::replicate}, 2);
    while (expected.size() % 4 != 0) expected.push_back(std::vector<double>(6, 0.5));
    rows.clear();
    for (std::int64_t first = 0; first < count; first += 3) {
      const std::int64_t n = std::min<std::int64_t>(3, count - first);
      auto part = std::make_shared<MelPart>();
      auto buffer =
          std::make_shared<Buffer>(pool.lease(static_cast<std::size_t>(n) * 2 * sizeof(float)));
      const std::vector<float> values = floats({in.begin() + first, in.begin() + first + n});
      std::copy(values.begin(), values.end(), buffer->as<float>());
      part->data = std::move(buffer);
      part->first_row = first;
      part->row_count = n;
      part->last = first + n == count;
      part->pending = steps;
      part->pending_columns = 2;
      CHECK(rows.add(part, part->last ? count : -1) == part->last);
    }
    REQUIRE(rows.count() == static_cast<std::int64_t>(expected.size()));
    const auto* made = reinterpret_cast<const float*>(rows.data());
    CHECK(std::vector<float>(made, made + rows.count() * 6) == floats(expected));
  }
}

TEST_CASE("stack, fit_rows: rows that are normalised over the recording are filled up after that") {
  const TempFolder folder;
  write_clips(folder);
  const std::string mel = ", normalize: per_feature";
  const std::string nodes =
      "  pair: {stage: stack, tail: value, value: 1, from: mel}\n"
      "  last: {stage: fit_rows, multiple: 4, value: -2, from: pair}\n";
  const Output rows = output(folder, pipeline(last("fit_rows, extra: 1"), mel), "plain.h5");
  const Output whole = output(folder, pipeline(nodes, mel), "whole.h5");
  const Output blocks = output(folder, pipeline(nodes, mel, "", kSmallBlocks), "blocks.h5");
  CHECK(whole.difference(blocks) == "");
  for (const Output::File& file : rows.files) {
    CAPTURE(file.path);
    Rows in = plain(rows, file.path);
    in.pop_back();  // the extra one
    Rows expected = stacked(in, {.tail = StackOptions::Tail::value, .value = 1.0}, 8);
    while (expected.size() % 4 != 0) expected.push_back(std::vector<double>(16, -2.0));
    CHECK(whole.rows_of(file.path) == floats(expected));
  }
}

TEST_CASE("stack, fit_rows, sliding_cmvn: each window of segment is a recording of its own") {
  const TempFolder folder;
  write_clips(folder);
  const std::string cut = ", length: 1280, hop: 640, tail: pad";  // 11 frames
  const Output rows = output(folder, pipeline(last("fit_rows, rows: 11"), "", cut), "plain.h5");
  REQUIRE(rows.shape == std::vector<std::uint64_t>{rows.rows(), 11, 8});
  struct Case {
    const char* stage;
    std::uint64_t frames, columns;
  };
  for (const auto& [stage, frames, columns] :
       {Case{"stack, frames: 3, hop: 2, left: 1, tail: value, value: 0.25, head: value", 6, 24},
        {"fit_rows, rows: 13, value: 0.5", 13, 8},
        {"fit_rows, multiple: 4, rest: drop", 8, 8},
        {"sliding_cmvn, window: 4, center: true", 11, 8}}) {
    CAPTURE(stage);
    const std::string name = fmt::format("{}{}.h5", frames, columns);
    const Output out = output(folder, pipeline(last(stage), "", cut), name);
    REQUIRE(out.shape == std::vector<std::uint64_t>{rows.rows(), frames, columns});
    std::vector<float> expected;
    for (std::size_t w = 0; w < rows.rows(); ++w) {
      Rows in;
      for (std::size_t f = 0; f < 11; ++f) {
        const auto at = rows.mel.begin() + static_cast<std::ptrdiff_t>((w * 11 + f) * 8);
        in.emplace_back(at, at + 8);
      }
      if (frames == 6)
        in = stacked(in,
                     {.frames = 3,
                      .hop = 2,
                      .left = 1,
                      .head = StackOptions::Head::value,
                      .tail = StackOptions::Tail::value,
                      .value = 0.25},
                     8);
      else if (frames == 11)
        in = slid(in, {.window = 4, .center = true});
      else
        in.resize(frames, std::vector<double>(8, 0.5));
      const std::vector<float> values = floats(in);
      expected.insert(expected.end(), values.begin(), values.end());
    }
    REQUIRE(out.mel.size() == expected.size());
    double worst = 0;
    for (std::size_t i = 0; i < expected.size(); ++i)
      worst = std::max<double>(worst, std::abs(out.mel[i] - expected[i]));
    CHECK(worst <= (frames == 11 ? 2e-6 : 0.0));
  }
}

TEST_CASE("stack, fit_rows: recordings that make no row are skipped, whatever the blocks") {
  const TempFolder folder;
  write_clips(folder);
  int n = 0;
  for (const std::string& decode : {std::string(), std::string(kSmallBlocks)}) {
    const auto remarks = [&](const std::string& nodes) {
      const JobResult job = run_job(pipeline(nodes, ", normalize: per_feature", "", decode),
                                    in_out(folder / "clips", folder / fmt::format("{}.h5", ++n)));
      REQUIRE(job.complete());
      return job.remarks_by_name();
    };
    const auto stack = remarks(last("stack, frames: 4, left: 1, hop: 2"));
    CHECK(stack.at("00100.wav") == "skipped: last: has 1 frames, 3 are needed");
    CHECK(stack.count("00300.wav") == 0);
    // The stage before makes 2 rows of 4 frames or more.
    const auto fit = remarks(
        "  pair: {stage: stack, from: mel}\n"
        "  last: {stage: fit_rows, multiple: 4, rest: drop, from: pair}\n");
    CHECK(fit.at("00700.wav") == "skipped: last: has 3 frames, 4 are needed");
    CHECK(fit.count("01600.wav") == 0);
  }
}

TEST_CASE("stack, fit_rows, sliding_cmvn: what cannot be is refused, with what can") {
  const TempFolder folder;
  write_wav(folder.file("clips/a.wav"), 4000, 8000);
  struct Row {
    std::string nodes, message;
  };
  const Row rows[] = {
      {last("stack, frames: 1"), "last.frames: is 1, which with hop: 1 changes nothing"},
      {last("stack, frames: 3, left: 3"), "last.left: is 3 but must be less than frames (3)"},
      {last("stack, tail: zeros"), "write value, which is 0 where the option value is not written"},
      {last("stack, lfr_m: 7"), "use 'frames' instead"},
      {last("fit_rows"), "last: needs rows, multiple above 1 or extra: how many rows"},
      {last("fit_rows, pad_to: 16"), "use 'multiple' instead"},
      {last("sliding_cmvn, window: 50"), "last.min_window: is 100 but must be at most window (50)"},
      {last("sliding_cmvn, cmn_window: 300"), "use 'window' instead"},
      {"  two: {stage: stack, from: mel}\n  three: {stage: stack, from: mel}\n"
       "  last: {stage: concat, from: [two, three]}\n",
       "two gives rows that stack made, which are not the frames of a recording; put concat before "
       "it"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.message);
    const std::string error = problems_in(
        [&] { return run_job(pipeline(row.nodes), in_out(folder / "clips", folder / "out.h5")); });
    CAPTURE(error);
    CHECK(error.find(row.message) != std::string::npos);
  }
}

TEST_CASE("stack: the length of the hop, the axis and the columns are those of the new rows") {
  const TempFolder folder;
  write_wav(folder.file("clips/a.wav"), 4000, 8000);
  const Output out =
      output(folder, pipeline(last("stack, frames: 7, hop: 6, left: 3, tail: replicate")), "a.h5");
  CHECK(out.shape == std::vector<std::uint64_t>{6, 56});  // of 32 frames
  CHECK(out.unit == "ln power");
  CHECK(out.band_hz.empty());
}

}  // namespace melflow::test::row_numbers_test
