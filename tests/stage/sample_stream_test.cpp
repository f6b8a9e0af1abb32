// Streams of a plan: any pieces give what one piece gives; what cannot be in a stream is named.
#include "stages/streaming/sample_stream.h"

#include <doctest/doctest.h>

#include <random>

#include "config/load.h"
#include "pipeline/base/problem.h"
#include "tests/support/audio_files.h"

namespace melflow::test::sample_stream_test {
namespace {

Plan plan(const std::string& mel, const std::string& after = "", const std::string& segment = "") {
  return load_plan_text(
      "version: 1\ngraph:\n"
      "  files: {stage: file_list, root: /}\n"
      "  read: {stage: disk_read, from: files}\n"
      "  decode: {stage: decode, from: read}\n"
      "  resample: {stage: resample, from: decode, rate: 16000}\n"
      "  segment: {stage: segment, from: resample" +
          segment + "}\n  mel: {stage: mel, from: segment, " + mel + "}\n" + after +
          "  rows: {stage: batches, from: " + (after.empty() ? "mel" : "after") + "}\n",
      "test.yaml", {});
}

RowVector pushed(const std::shared_ptr<const StreamFront>& front, const std::vector<float>& x,
                 std::int64_t most, std::mt19937& random) {
  SampleStream stream(front);
  RowVector rows;
  for (std::size_t at = 0, n = 0;; at += n) {
    n = std::min<std::size_t>(random() % static_cast<std::size_t>(most + 1), x.size() - at);
    SampleStream::Feed feed;
    feed.stream = &stream;
    feed.samples = {nullptr, reinterpret_cast<const std::byte*>(x.data() + at),
                    static_cast<std::int64_t>(n), SampleType::float32};
    feed.is_last = at + n == x.size();
    feed.rows = &rows;
    SampleStream::push({&feed, 1});
    CHECK(feed.error == "");
    if (feed.is_last) break;
  }
  return rows;
}

std::string refusal(const Plan& plan, bool finish_only = false) {
  try {
    const StreamFront front(plan, 44100, finish_only);
  } catch (const RunError& e) {
    return e.what();
  }
  return "";
}

}  // namespace

TEST_CASE("stream of a plan: resampled, with steps, in any pieces") {
  std::mt19937 random(3);
  const std::vector<float> x = test_signal(60000);
  const Plan made = plan("preset: kaldi", "  after: {stage: deltas, from: mel}\n");
  for (const int rate : {8000, 16000, 44100}) {
    const auto front = std::make_shared<const StreamFront>(made, rate, false);
    CHECK(front->columns() == 69);
    const RowVector whole = pushed(front, x, 1 << 20, random);
    CHECK(whole.size() / 69 == static_cast<std::size_t>((60000LL * 16000 / rate - 400) / 160 + 1));
    for (const std::int64_t most : {7, 900, 30000}) CHECK(pushed(front, x, most, random) == whole);
  }
}

TEST_CASE("stream of a plan: what needs a whole recording is named, with what can be instead") {
  CHECK(refusal(plan("preset: whisper"))
            .find("mel.top_db needs the whole recording; write top_db: "
                  "null") != std::string::npos);
  CHECK(refusal(plan("preset: whisper"), true) == "");
  CHECK(refusal(plan("preset: kaldi", "", ", length: 1s"))
            .find("segment.length: a row is a window") != std::string::npos);
  CHECK(refusal(plan("preset: kaldi", "", ", length: 1s"), true) != "");
}

}  // namespace melflow::test::sample_stream_test
