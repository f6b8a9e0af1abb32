#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "stages/facts.h"
#include "tests/stage/bench.h"
#include "tests/support/printing.h"

namespace melflow::test::segment_test {
namespace {

// Computes the windows of a recording directly from the options.
struct Reference {
  std::int64_t length = 0, hop = 0;              // of the long windows, or of the only ones
  std::int64_t short_length = 0, short_hop = 0;  // 0: there are no short windows
  bool pad = false;
  std::int64_t min_length = 0;

  [[nodiscard]] std::vector<std::int64_t> starts(std::int64_t n) const {
    std::vector<std::int64_t> longs;
    if (n < min_length) return longs;
    std::int64_t covered = 0;
    for (std::int64_t at = 0; at + length <= n; at += hop) {
      longs.push_back(at);
      covered = at + length;
    }
    // One more, if samples are left that are in no window, and it would have enough of them.
    const std::int64_t next = longs.empty() ? 0 : longs.back() + hop;
    if (pad && covered < n && n - next >= std::max<std::int64_t>(1, min_length))
      longs.push_back(next);
    if (short_length == 0) return longs;
    std::vector<std::int64_t> out;
    for (const std::int64_t at : longs)
      for (std::int64_t s = 0; s + short_length <= length; s += short_hop) out.push_back(at + s);
    return out;
  }
  [[nodiscard]] std::string options() const {
    std::string text =
        short_length == 0
            ? fmt::format("length: {}, hop: {}", length, hop)
            : fmt::format("long: {{length: {}, hop: {}}}, short: {{length: {}, hop: {}}}", length,
                          hop, short_length, short_hop);
    if (pad) text += ", tail: pad";
    if (min_length > 0) text += fmt::format(", min_length: {}", min_length);
    return "{" + text + "}";
  }
};

std::vector<std::int16_t> counting(std::int64_t n) {
  std::vector<std::int16_t> out(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<std::int16_t>(i + 1);
  return out;
}

Properties at_rate(double rate) {
  Properties properties;
  properties.set(property::kSampleRate, rate);
  return properties;
}
Requirements for_rate(double rate) {
  Requirements required;
  required.set(requirement::kSampleRate, rate);
  return required;
}

// Returns the starts of all rows in the blocks; every row's samples must be in its block.
std::vector<std::int64_t> starts_of(const std::vector<std::shared_ptr<const Windows>>& blocks,
                                    const std::vector<std::int16_t>& samples) {
  std::vector<std::int64_t> out;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const Windows& w = *blocks[i];
    REQUIRE(w.grid);
    REQUIRE(w.first_row == static_cast<std::int64_t>(out.size()));
    REQUIRE(w.last == (i + 1 == blocks.size()));
    REQUIRE(w.begin >= 0);
    REQUIRE(w.end() <= static_cast<std::int64_t>(samples.size()));
    REQUIRE(std::memcmp(w.samples.data, samples.data() + w.begin, w.samples.bytes()) == 0);
    for (std::int64_t r = w.first_row; r < w.first_row + w.row_count; ++r) {
      const std::int64_t at = w.grid->start(r);
      out.push_back(at);
      REQUIRE(at >= w.begin);
      // Only the last block may leave anything to be padded.
      if (!w.last) REQUIRE(at + w.grid->length <= w.end());
      if (w.last)
        REQUIRE(std::min(at + w.grid->length, static_cast<std::int64_t>(samples.size())) <=
                std::max(at, w.end()));
    }
  }
  return out;
}

// Formats the length of a skipped recording as in its message.
std::string at_1000_hz(std::int64_t seen, std::int64_t bound) {
  return fmt::format("{0} samples of {1} ({2:.3f} s of {3:g} s)", seen, bound,
                     static_cast<double>(seen) * 1e-3, static_cast<double>(bound) / 1000);
}

}  // namespace

TEST_CASE("segment: windows are those of the definition, whole or in blocks of any size") {
  std::mt19937 random(3);
  const auto between = [&random](int lowest, int highest) {
    return lowest + static_cast<int>(random() % static_cast<unsigned>(highest - lowest + 1));
  };
  int with_rows = 0, skipped = 0;
  for (int round = 0; round < 3000; ++round) {
    Reference ref;
    ref.length = between(1, 60);
    ref.hop = between(1, 90);
    if (between(0, 1) == 1) {
      ref.short_length = between(1, static_cast<int>(ref.length));
      ref.short_hop = between(1, 30);
    }
    ref.pad = between(0, 1) == 1;
    if (between(0, 2) == 0) ref.min_length = between(1, 80);
    const std::int64_t n = between(1, 400);
    CAPTURE(n);
    CAPTURE(ref.options());
    const std::vector<std::int64_t> expected = ref.starts(n);
    const auto samples = counting(n);
    for (const std::int64_t block : {std::int64_t{0}, std::int64_t{between(1, 100)}}) {
      CAPTURE(block);
      Bench bench("segment", ref.options());
      const Planned planned = bench.plan(at_rate(1000));
      REQUIRE(planned.errors.empty());
      CHECK(planned.properties.get(property::kWindow) ==
            static_cast<double>(ref.short_length > 0 ? ref.short_length : ref.length));
      const auto got = bench.stream<Windows>(waveform(samples, 1000, block));
      if (expected.empty()) {
        CHECK(got.entry.outcome == Outcome::skipped);
        CHECK(got.entry.reason ==
              (n < ref.min_length
                   ? fmt::format("shorter than min_length: {}", at_1000_hz(n, ref.min_length))
                   : fmt::format("shorter than one window: {}", at_1000_hz(n, ref.length))));
        ++skipped;
        continue;
      }
      REQUIRE_MESSAGE(got.ok(), got.entry.reason);
      CHECK(starts_of(got.blocks, samples) == expected);
      ++with_rows;
      // The memory for what is held and emitted stays within the charged amount.
      const std::size_t in_block = 2 * static_cast<std::size_t>(block > 0 ? block : n);
      for (const auto& w : got.blocks) {
        CHECK(buffer_of(w->samples).capacity() <= bench.stage().output_bound({}, in_block));
        CHECK(static_cast<double>(w->row_count) <=
              static_cast<double>(in_block) / 2 *
                      *planned.properties.get(property::kRowsPerSample) +
                  *planned.properties.get(property::kRowsExtra));
      }
    }
  }
  CHECK(with_rows > 2000);
  CHECK(skipped > 200);
}

TEST_CASE("segment: the two-stage job of the seeds has 237 rows a file") {
  const Reference leak{.length = 1024, .hop = 512, .short_length = 512, .short_hop = 256};
  Bench bench("segment", leak.options());
  REQUIRE(bench.plan(at_rate(4096)).errors.empty());
  const auto samples = counting(40'960);
  const auto in = waveform(samples, 4096);
  const auto got = bench.stream<Windows>(in);
  REQUIRE(got.blocks.size() == 1);
  CHECK(got.blocks[0]->row_count == 237);
  CHECK(starts_of(got.blocks, samples) == leak.starts(40'960));
  // A recording of one block is passed on without a copy.
  CHECK(got.blocks[0]->samples.owner == in[0]->samples.owner);
}

TEST_CASE("segment: lengths in time follow the rate") {
  Bench bench("segment", "{length: 25ms, hop: 10ms, min_length: 50ms}");
  const Planned planned = bench.plan({}, for_rate(16000));  // the rate that mel asks for
  REQUIRE(planned.errors.empty());
  CHECK(planned.properties.get(property::kWindow) == 400);
  CHECK(planned.properties.get(property::kRowsPerSample) == 1.0 / 160);
  const auto samples = counting(16000);
  const auto got = bench.stream<Windows>(waveform(samples, 16000));
  CHECK(starts_of(got.blocks, samples) == Reference{.length = 400, .hop = 160}.starts(16000));
  CHECK(bench.stream<Windows>(waveform(counting(799), 16000)).entry.reason ==
        "shorter than min_length: 799 samples of 800 (0.050 s of 0.05 s)");
  const auto other = bench.stream<Windows>(waveform(samples, 8000));
  CHECK(other.entry.outcome == Outcome::failed);
  CHECK(other.entry.reason ==
        "is sampled at 8000 Hz, where a window has 200 samples instead of 400; put a resample "
        "stage before this node");
}

TEST_CASE("segment: asks for blocks that need not be joined, and passes these on as they are") {
  const auto multiple = [](const std::string& options, const Requirements& below) {
    return Bench("segment", options).stage().require(below).get_or(requirement::kBlockMultiple, 0);
  };
  CHECK(multiple("{length: 400}", {}) == 400);
  CHECK(multiple("{length: 400, hop: 500}", {}) == 500);
  CHECK(multiple("{length: 25ms}", for_rate(16000)) == 400);
  CHECK(multiple("{length: 25ms}", {}) == 0);
  CHECK(multiple("{length: 400, hop: 399}", {}) == 0);
  CHECK(multiple("{}", for_rate(16000)) == 0);
  CHECK(multiple("{long: {length: 400, hop: 400}, short: {length: 100}}", {}) == 0);
  CHECK(multiple("{length: 400, long: {length: 800}}", {}) == 0);  // plan() refuses this

  Bench bench("segment", "{length: 400}");
  REQUIRE(bench.plan({}, for_rate(16000)).errors.empty());
  const auto samples = counting(4000);
  const auto blocks = waveform(samples, 16000, 1200);
  const auto got = bench.stream<Windows>(blocks);
  REQUIRE(got.blocks.size() == blocks.size());
  for (std::size_t i = 0; i < blocks.size(); ++i)
    CHECK(got.blocks[i]->samples.data == blocks[i]->samples.data);
  CHECK(starts_of(got.blocks, samples) == Reference{.length = 400, .hop = 400}.starts(4000));
}

TEST_CASE("segment: at another rate a time is no length, no hop or the whole file") {
  struct Row {
    const char* options;
    double plan;
    int rate;
    const char* what;
  };
  const Row rows[] = {
      {"{length: 512, hop: 5ms}", 4096, 60, "hop has 0 samples instead of 20"},
      {"{length: 512, hop: 5ms}", 4096, 1, "hop has 0 samples instead of 20"},
      {"{length: 5ms, hop: 20}", 4096, 60, "window has 0 samples instead of 20"},
      {"{long: {length: 1s, hop: 512}, short: {length: 512}}", 4096, 60,
       "long window has 60 samples instead of 4096"},
      {"{long: {length: 1s, hop: 512}, short: {length: 512}}", 4096, 2'147'483'647,
       "long window has 2147483647 samples instead of 4096"},
      {"{long: {length: 4096, hop: 1s}, short: {length: 512}}", 4096, 8000,
       "hop has 8000 samples instead of 4096"},
      {"{long: {length: 4096}, short: {length: 512, hop: 1ms}}", 4096, 60,
       "short hop has 0 samples instead of 4"},
  };
  for (const Row& row : rows) {
    for (const std::int64_t block : {0, 1000}) {
      CAPTURE(row.options);
      CAPTURE(row.rate);
      Bench bench("segment", row.options);
      REQUIRE(bench.plan({}, for_rate(row.plan)).errors.empty());
      const auto got = bench.stream<Windows>(waveform(counting(5000), row.rate, block));
      CHECK(got.entry.outcome == Outcome::failed);
      CHECK(got.blocks.empty());
      CHECK(got.entry.reason == fmt::format("is sampled at {} Hz, where a {}; put a resample stage "
                                            "before this node",
                                            row.rate, row.what));
    }
  }
}

TEST_CASE("segment: without a length, blocks carry what the frames across the seam need") {
  const auto samples = counting(1000);
  for (const std::int64_t context : {0, 1, 100, 350, 5000}) {
    for (const std::int64_t block : {0, 1, 7, 100, 300, 999, 1000}) {
      CAPTURE(context);
      CAPTURE(block);
      Requirements required;
      required.set(requirement::kContext, context);
      Bench bench("segment");
      REQUIRE(bench.plan({}, required).errors.empty());
      const auto in = waveform(samples, 8000, block);
      const auto got = bench.stream<Windows>(in);
      REQUIRE(got.ok());
      REQUIRE(got.blocks.size() == in.size());
      for (std::size_t i = 0; i < in.size(); ++i) {
        const Windows& w = *got.blocks[i];
        CHECK_FALSE(w.grid);
        CHECK(w.first == (i == 0));
        CHECK(w.last == (i + 1 == in.size()));
        CHECK(w.sample_rate == 8000);
        CHECK(w.fresh == in[i]->start);
        CHECK(w.end() == in[i]->start + in[i]->samples.count);
        CHECK(w.begin == std::max<std::int64_t>(0, w.fresh - context));
        CHECK(std::memcmp(w.samples.data, samples.data() + w.begin, w.samples.bytes()) == 0);
        CHECK(w.file.frames == in[i]->file.frames);
        const std::size_t bound =
            bench.stage().output_bound({}, 2 * static_cast<std::size_t>(block > 0 ? block : 1000));
        CHECK(buffer_of(w.samples).capacity() <= bound);
      }
    }
  }
  Bench bench("segment", "{min_length: 1001}");
  CHECK(bench.plan().errors.empty());
  CHECK(bench.stream<Windows>(waveform(samples, 8000)).entry.reason ==
        "shorter than min_length: 1000 samples of 1001 (0.125 s of 0.125125 s)");
}

TEST_CASE("segment: recordings are chosen by their length, both ends included") {
  for (const char* options : {"{min_length: 100, max_length: 1000}",
                              "{length: 80, hop: 40, min_length: 100, max_length: 1000}"})
    for (const int block : {0, 64, 300}) {
      CAPTURE(options);
      CAPTURE(block);
      Bench bench("segment", options);
      CHECK(bench.plan({}, for_rate(8000)).errors.empty());
      const auto entry = [&](std::int64_t n) {
        return bench.stream<Windows>(waveform(counting(n), 8000, block)).entry;
      };
      for (const std::int64_t n : {100, 999, 1000}) CHECK(entry(n).outcome == Outcome::ok);
      CHECK(entry(99).reason == "shorter than min_length: 99 samples of 100 (0.012 s of 0.0125 s)");
      CHECK(entry(1001).outcome == Outcome::skipped);
      CHECK(entry(1001).reason ==
            "longer than max_length: 1001 samples, 1000 are allowed (0.125 s, not 0.125 s)");
      if (block > 0) {
        const std::int64_t seen = (1000 / block + 1) * block;
        CHECK(entry(5000).reason == fmt::format("longer than max_length: at least {} samples, 1000 "
                                                "are allowed ({:.3f} s, not 0.125 s)",
                                                seen, static_cast<double>(seen) / 8000));
      }
    }
  Bench in_time("segment", "{max_length: 0.1s}");
  in_time.plan({}, for_rate(8000));
  CHECK(in_time.stream<Windows>(waveform(counting(800), 8000)).ok());
  CHECK_FALSE(in_time.stream<Windows>(waveform(counting(801), 8000)).ok());
}

TEST_CASE("segment: a plan that makes no sense is refused, each with its key") {
  struct Row {
    std::string options;
    std::vector<std::string> errors;
  };
  const std::string window =
      "0 samples are no window; write a time such as 1s, or a number of samples";
  const std::string hop =
      "0 samples are no hop; write a time such as 500ms, or a number of samples";
  const Row rows[] = {
      {"{}", {}},
      {"{length: 512}", {}},
      {"{long: {length: 1024}, short: {length: 512}}", {}},
      {"{length: 512, long: {length: 1024}, short: {length: 512}}",
       {"long: cannot be set together with length or hop"}},
      {"{hop: 5, long: {length: 1024}, short: {length: 512}}",
       {"long: cannot be set together with length or hop"}},
      {"{long: {length: 1024}}", {"short: has no length; set it"}},
      {"{max_length: 0}", {"max_length: no recording is that short; give a length or remove it"}},
      {"{min_length: 10, max_length: 9}",
       {"max_length: 9 is less than min_length (10), so that every recording is skipped; exchange "
        "the two"}},
      {"{min_length: 10, max_length: 10}", {}},
      {"{short: {length: 512}}", {"long: has no length; set it"}},
      {"{long: {hop: 512}, short: {hop: 1}}",
       {"long: has no length; set it", "short: has no length; set it"}},
      {"{length: 1us, hop: 10ms}", {"length: " + window}},
      {"{long: {length: 512}, short: {length: 1024}}",
       {"short: 1024 samples do not fit into a long window of 512"}},
      {"{long: {length: 512}, short: {length: 256, hop: 0}}", {"short: " + hop}},
      {"{long: {length: 512, hop: 0}, short: {length: 256}}", {"long: " + hop}},
      {"{long: {length: 0, hop: 1}, short: {length: 0, hop: 1}}",
       {"long: " + window, "short: " + window}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.options);
    CHECK(Bench("segment", row.options).plan(at_rate(16000)).errors == row.errors);
  }
  const std::string ways =
      "; set the sample_rate of the stage that makes rows (mel, samples), or add a node of the "
      "stage resample";
  const std::string unknown = "the sample rate is not known";
  const std::string differ =
      ", and windows of as many samples last longer or shorter in files of others";
  const std::tuple<const char*, const char*, std::string> without_rate[] = {
      {"{length: 25ms}", "length: ", unknown + ways},
      {"{length: 512}", "length: ", unknown + differ + ways},
      {"{long: {length: 512}, short: {length: 25ms}}", "long: ", unknown + differ + ways},
  };
  for (const auto& [options, place, text] : without_rate) {
    CAPTURE(options);
    CHECK(Bench("segment", options).plan().errors == std::vector<std::string>{place + text});
  }
}

}  // namespace melflow::test::segment_test
