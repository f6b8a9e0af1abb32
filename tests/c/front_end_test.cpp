// melflow.h as the library of the front end alone has it: pieces, memory, threads, wrong calls.
// That the values are those of the package is tested from there (tests/python/c_library_test.py).
// Its own program, as it counts every `new`.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>
#include <new>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "apps/c/melflow.hpp"
#include "stages/front_ends.h"
#include "tests/support/counted_new.h"

namespace {

// Allocations of this thread until one fails; below 0: none does.
thread_local long t_allocations = 0, t_fails_at = -1;
thread_local std::size_t t_bytes = 0;

}  // namespace

void* melflow::test::allocate(std::size_t size, std::size_t alignment) {
  t_bytes += size;
  if (t_allocations++ == t_fails_at) throw std::bad_alloc();
  return allocate_from_system(size, alignment);
}

namespace melflow::test::c_front_end_test {
namespace {

using c::Front;
using c::Stream;

// The presets that begin at mel.
std::vector<std::string> presets() {
  std::vector<std::string> out;
  for (const FrontEnd& of : front_ends()) {
    melflow_front* front = nullptr;
    const std::string name(of.name);
    const melflow_status status = melflow_front_from_preset(name.c_str(), 0, &front);
    CAPTURE(name);
    if (status == MELFLOW_UNSUPPORTED) {
      CHECK(std::string(melflow_error()).find("libmelflow.so") != std::string::npos);
      continue;
    }
    REQUIRE(status == MELFLOW_OK);
    melflow_front_destroy(front);
    out.push_back(name);
  }
  return out;
}

std::vector<std::int16_t> noise(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::int16_t> out(count);
  for (auto& x : out) x = static_cast<std::int16_t>(random() % 20000) - 10000;
  return out;
}
std::vector<float> floats(const std::vector<std::int16_t>& samples) {
  std::vector<float> out;
  for (const std::int16_t x : samples) out.push_back(static_cast<float>(x) / 32768.0F);
  return out;
}

bool needs_whole(const Front& front) {
  melflow_stream* stream = nullptr;
  const melflow_status status = melflow_stream_create(front.get(), 0, 0, &stream);
  melflow_stream_destroy(stream);
  CHECK((status == MELFLOW_OK || status == MELFLOW_NEEDS_WHOLE));
  return status != MELFLOW_OK;
}

bool equal(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

}  // namespace

TEST_CASE("c: every preset gives a whole recording and pieces of any size the same bits") {
  const std::vector<std::string> names = presets();
  CHECK(names.size() > 60);
  for (const std::string& name : names) {
    CAPTURE(name);
    const Front front(name);
    const unsigned flags = needs_whole(front) ? MELFLOW_FINISH_ONLY : 0;
    const auto rate = static_cast<std::size_t>(melflow_front_sample_rate(front.get()));
    const std::vector<std::int16_t> samples = noise(rate + 123, 1);
    const std::vector<float> own = floats(samples);
    const std::vector<float> whole = front.rows(own.data(), own.size());
    CHECK(std::ssize(whole) == front.columns() * melflow_front_rows(front.get(), std::ssize(own)));
    const std::size_t row = static_cast<std::size_t>(front.columns());
    std::mt19937 random(2);
    Stream stream(front, 4000, flags);
    for (int turn = 0; turn < 3; ++turn) {
      std::vector<float> rows;
      for (std::size_t at = 0; at < own.size();) {
        const std::size_t n = std::min<std::size_t>(random() % 4000, own.size() - at);
        const std::vector<float> some = stream.push(own.data() + at, n);
        rows.insert(rows.end(), some.begin(), some.end());
        at += n;
        // Rows are there when the delay is over.
        const double due =
            static_cast<double>(at) - static_cast<double>(melflow_front_delay(front.get()));
        const double hop = melflow_front_row_seconds(front.get()) * static_cast<double>(rate);
        if (flags == 0 && due >= 0)
          CHECK(static_cast<double>(rows.size() / row) >=
                std::min(std::floor(due / hop) + 1, static_cast<double>(whole.size() / row)));
      }
      const std::vector<float> rest = stream.finish();
      rows.insert(rows.end(), rest.begin(), rest.end());
      CHECK(equal(rows, whole));
      stream.reset();
    }
  }
}

TEST_CASE("c: int16 and float give the same rows, and rows can be pulled in parts") {
  const Front front("kaldi");
  const std::vector<std::int16_t> samples = noise(20000, 3);
  const std::vector<float> own = floats(samples);
  const std::vector<float> whole = front.rows(own.data(), own.size());
  std::vector<float> rows(whole.size());
  std::int64_t made = 0;
  const std::int64_t room = std::ssize(whole) / front.columns();
  REQUIRE(melflow_compute_int16(front.get(), samples.data(), 20000, rows.data(), room, &made) ==
          MELFLOW_OK);
  CHECK(equal(rows, whole));
  CHECK(melflow_compute_int16(front.get(), samples.data(), 20000, rows.data(), room - 1, &made) ==
        MELFLOW_NO_ROOM);
  CHECK(made == room);

  melflow_stream* stream = nullptr;
  REQUIRE(melflow_stream_create(front.get(), 100, 0, &stream) == MELFLOW_OK);
  std::vector<float> pulled;
  const auto pull = [&](std::int64_t most) {
    std::vector<float> some(static_cast<std::size_t>(most * front.columns()));
    REQUIRE(melflow_stream_pull(stream, some.data(), most, &made) == MELFLOW_OK);
    pulled.insert(pulled.end(), some.begin(), some.begin() + made * front.columns());
  };
  for (std::size_t at = 0; at < samples.size(); at += 1000) {
    REQUIRE(melflow_stream_push_int16(stream, samples.data() + at, 1000) == MELFLOW_OK);
    pull(2);
  }
  CHECK(melflow_stream_waiting(stream) > 20);
  REQUIRE(melflow_stream_finish(stream) == MELFLOW_OK);
  while (melflow_stream_waiting(stream) > 0) pull(7);
  CHECK(equal(pulled, whole));
  melflow_stream_destroy(stream);
}

TEST_CASE("c: a push of up to the stated number of samples takes no memory") {
  for (const std::string& name : presets()) {
    CAPTURE(name);
    const Front front(name);
    if (needs_whole(front)) continue;
    const std::vector<float> samples = floats(noise(48000, 4));
    for (const std::int64_t most : {1, 160, 1000, 9000}) {
      CAPTURE(most);
      melflow_stream* stream = nullptr;
      REQUIRE(melflow_stream_create(front.get(), most, 0, &stream) == MELFLOW_OK);
      std::vector<float> rows(static_cast<std::size_t>(20000 * front.columns()));
      std::mt19937 random(5);
      for (int turn = 0; turn < 2; ++turn) {
        std::int64_t made = 0;
        const long before = t_allocations;
        const std::int64_t end = std::min<std::int64_t>(std::ssize(samples), 3000 * most);
        for (std::int64_t at = 0; at < end;) {
          const std::int64_t n =
              std::min<std::int64_t>(static_cast<std::int64_t>(random()) % (most + 1), end - at);
          if (melflow_stream_push(stream, samples.data() + at, n) != MELFLOW_OK) FAIL("push");
          if (melflow_stream_pull(stream, rows.data(), 20000, &made) != MELFLOW_OK) FAIL("pull");
          at += n;
        }
        CHECK(t_allocations - before == 0);
        REQUIRE(melflow_stream_reset(stream) == MELFLOW_OK);
      }
      melflow_stream_destroy(stream);
    }
  }
}

TEST_CASE("c: where memory fails, a call says so and nothing is lost or leaked") {
  const std::vector<float> samples = floats(noise(9000, 6));
  const std::string json = R"({"stages": [{"stage": "mel", "n_fft": 400}, {"stage": "deltas"},
      {"stage": "stack", "frames": 3}, {"stage": "sliding_cmvn", "window": 10, "center": true}]})";
  int kinds = 0;
  const auto walk = [&](auto&& call) {
    ++kinds;
    for (long n = 0;; ++n) {
      t_allocations = 0;
      t_fails_at = n;
      const melflow_status status = call();
      t_fails_at = -1;
      if (status == MELFLOW_OK) {
        CHECK(n > 0);
        return;
      }
      if (status != MELFLOW_NO_MEMORY) FAIL(status, ": ", std::string(melflow_error()));
    }
  };
  for (const bool is_preset : {true, false}) {
    melflow_front* front = nullptr;
    walk([&] {
      return is_preset ? melflow_front_from_preset("kaldi_voxceleb", 0, &front)
                       : melflow_front_from_json(json.data(), json.size(), 0, &front);
    });
    std::int64_t made = 0;
    const std::int64_t room = melflow_front_rows(front, std::ssize(samples));
    std::vector<float> whole(static_cast<std::size_t>(room * melflow_front_columns(front)));
    std::vector<float> rows = whole;
    walk([&] {
      return melflow_compute(front, samples.data(), std::ssize(samples), whole.data(), room, &made);
    });
    melflow_stream* stream = nullptr;
    walk([&] { return melflow_stream_create(front, 100, 0, &stream); });
    // A stream that failed takes nothing before a reset.
    walk([&] {
      melflow_status status = melflow_stream_push(stream, samples.data(), std::ssize(samples));
      if (status == MELFLOW_NO_MEMORY) {
        t_fails_at = -1;
        CHECK(melflow_stream_push(stream, samples.data(), 1) == MELFLOW_ENDED);
        CHECK(melflow_stream_waiting(stream) == 0);
        CHECK(melflow_stream_reset(stream) == MELFLOW_OK);
      }
      return status;
    });
    REQUIRE(melflow_stream_finish(stream) == MELFLOW_OK);
    REQUIRE(melflow_stream_pull(stream, rows.data(), room, &made) == MELFLOW_OK);
    CHECK(made == room);
    CHECK(equal(rows, whole));
    walk([&] { return melflow_stream_reset(stream); });
    melflow_stream_destroy(stream);
    melflow_front_destroy(front);
  }
  CHECK(kinds == 10);
}

TEST_CASE("c: 16 threads share a front end, each with streams of its own") {
  const Front front("wenet");
  const std::vector<float> samples = floats(noise(16000, 7));
  const std::vector<float> whole = front.rows(samples.data(), samples.size());
  std::atomic<int> same{0};
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 16; ++i)
    threads.emplace_back([&, i] {
      std::vector<Stream> streams;
      for (int s = 0; s < 4; ++s) streams.emplace_back(front, 1000);
      std::vector<std::vector<float>> rows(streams.size());
      std::mt19937 random(i);
      for (std::size_t at = 0; at < samples.size();) {
        const std::size_t n = std::min<std::size_t>(random() % 1000, samples.size() - at);
        for (std::size_t s = 0; s < streams.size(); ++s) {
          const auto some = streams[s].push(samples.data() + at, n);
          rows[s].insert(rows[s].end(), some.begin(), some.end());
        }
        at += n;
      }
      for (std::size_t s = 0; s < streams.size(); ++s) {
        const auto some = streams[s].finish();
        rows[s].insert(rows[s].end(), some.begin(), some.end());
        same += equal(rows[s], whole) ? 1 : 0;
      }
      melflow_front* none = nullptr;  // errors are of the thread
      const std::string name = "none" + std::to_string(i);
      if (melflow_front_from_preset(name.c_str(), 0, &none) == MELFLOW_BAD_SETTINGS &&
          std::string(melflow_error()).find("'" + name + "'") != std::string::npos)
        ++same;
    });
  for (std::thread& t : threads) t.join();
  CHECK(same == 16 * 5);
}

TEST_CASE("c: settings that are wrong are named") {
  const auto of_json = [](const std::string& text) {
    melflow_front* front = nullptr;
    const melflow_status status = melflow_front_from_json(text.data(), text.size(), 0, &front);
    melflow_front_destroy(front);
    return std::pair(status, std::string(status == MELFLOW_OK ? "" : melflow_error()));
  };
  const auto mel = [&](const std::string& more) {
    return of_json(R"({"stages": [{"stage": "mel")" + more + "}]}");
  };
  CHECK(mel("").first == MELFLOW_OK);
  struct Case {
    std::string json;
    melflow_status status;
    std::string says;
  };
  const auto stages = [](const std::string& more) {
    return R"({"stages": [{"stage": "mel"})" + more + "]}";
  };
  const auto before = [](const std::string& stage) {
    return R"({"stages": [{"stage": ")" + stage + R"("}, {"stage": "mel"}]})";
  };
  const auto of_mel = [](const std::string& more) {
    return R"({"stages": [{"stage": "mel", )" + more + "}]}";
  };
  for (const auto& [json, status, says] : std::vector<Case>{
           {"", MELFLOW_BAD_SETTINGS, "no settings in JSON"},
           {"[1]", MELFLOW_BAD_SETTINGS, "no list `stages`"},
           {"{\"stages\": []}", MELFLOW_BAD_SETTINGS, "no stage mel"},
           {"{\"stages\": [{}]}", MELFLOW_BAD_SETTINGS, "stage"},
           {std::string(2 << 20, '['), MELFLOW_BAD_SETTINGS, "more than 1 MiB"},
           {std::string(500000, '['), MELFLOW_BAD_SETTINGS, "no settings in JSON"},
           {of_mel("\"nfft\": 400"), MELFLOW_BAD_SETTINGS, "mel.nfft is no option"},
           {of_mel("\"n_fft\": \"many\""), MELFLOW_BAD_SETTINGS, "mel.n_fft is no number: many"},
           {of_mel("\"n_fft\": {\"a\": 1}"), MELFLOW_BAD_SETTINGS, "is a list of {\"stage\": NAME"},
           {of_mel("\"n_fft\": [[400]]"), MELFLOW_BAD_SETTINGS, "is a list of {\"stage\": NAME"},
           {of_mel("\"n_fft\": []"), MELFLOW_BAD_SETTINGS, "mel.n_fft is one value"},
           {of_mel("\"n_fft\": \"400\""), MELFLOW_BAD_SETTINGS, "'400' is a text because of its"},
           {"{\"stages\": [[\"x\"]]}", MELFLOW_BAD_SETTINGS, "is a list of"},
           {"{\"stages\": [[null]]}", MELFLOW_BAD_SETTINGS, "is a list of"},
           {stages(", [1]"), MELFLOW_BAD_SETTINGS, "is a list of"},
           {stages(", 1"), MELFLOW_BAD_SETTINGS, "is a list of"},
           {"{\"stages\": {\"stage\": \"mel\"}}", MELFLOW_BAD_SETTINGS, "is a list of"},
           {"{\"stages\": [{\"mel\": {}}]}", MELFLOW_BAD_SETTINGS, "is a list of"},
           {"{\"stages\": [{\"stage\": [\"mel\"]}]}", MELFLOW_BAD_SETTINGS, "is a list of"},
           {"{\"stages\": [], \"stages\": [{\"stage\": \"mel\"}]}", MELFLOW_BAD_SETTINGS, "twice"},
           {before("resample\", \"quality\": \"nonsense"), MELFLOW_BAD_SETTINGS,
            "resample.quality: nonsense is none of quick, low"},
           {before("resample\", \"qualty\": \"x"), MELFLOW_BAD_SETTINGS,
            "resample.qualty is no option"},
           {before("resample\", \"rate\": 8000, \"quality\": \"high"), MELFLOW_BAD_SETTINGS,
            "resample.rate is 8000, and mel.sample_rate 16000"},
           {before("segment\", \"length\": -5, \"tail\": \"pad"), MELFLOW_BAD_SETTINGS,
            "segment.length: -5 is no whole number"},
           {before("segment\", \"length\": 4000000000000000000, \"tail\": \"pad"),
            MELFLOW_BAD_SETTINGS, "segment.length"},
           {before("segment\", \"length\": 16000, \"tail\": \"drop"), MELFLOW_UNSUPPORTED,
            "segment"},
           {stages(", {\"stage\": \"segment\"}"), MELFLOW_UNSUPPORTED, "segment after mel"},
           {of_mel("\"n_fft\": [400, 512]"), MELFLOW_BAD_SETTINGS, "mel.n_fft is one value"},
           {of_mel("\"n_fft\": 1"), MELFLOW_BAD_SETTINGS, "n_fft is 1 but must be"},
           {of_mel("\"window\": \"han\""), MELFLOW_BAD_SETTINGS,
            "mel.window is none of its values: han; allowed: hann, "},
           {of_mel("\"filters\": \"2 values, xxh3 12\""), MELFLOW_UNSUPPORTED, "hash"},
           {stages(", {\"stage\": \"mel\"}"), MELFLOW_UNSUPPORTED, "two stages mel"},
           {stages(", {\"stage\": \"concat\"}"), MELFLOW_UNSUPPORTED, "the stage concat"},
           {stages(", {\"stage\": \"deltas\", \"order\": 9}"), MELFLOW_BAD_SETTINGS,
            "deltas.order"},
           {stages(", {\"stage\": \"deltas\", \"width\": 4}"), MELFLOW_BAD_SETTINGS, "must be odd"},
           {stages(", {\"stage\": \"pcen\"}, {\"stage\": \"mfcc\", \"n_mfcc\": 400}"),
            MELFLOW_BAD_SETTINGS, "mfcc.n_mfcc is 400"},
           {stages(", {\"stage\": \"hdf5_write\", \"dtype\": \"float16\"}"), MELFLOW_UNSUPPORTED,
            "float32"},
           {"{\"stages\": [{\"stage\": \"normalize_samples\"}, {\"stage\": \"mel\"}]}",
            MELFLOW_UNSUPPORTED, "libmelflow.so"}}) {
    CAPTURE(json.substr(0, 200));
    const auto [got, text] = of_json(json);
    CAPTURE(text);
    CHECK(got == status);
    CHECK(text.find(says) != std::string::npos);
  }
}

TEST_CASE("c: short recordings are filled up to a window, and an empty one gives no rows") {
  const Front front = Front::from_json(
      R"({"stages": [{"stage": "segment", "length": 20000, "hop": 20000, "tail": "pad"},
          {"stage": "mel", "snip_edges": true}]})");
  const std::vector<float> samples = floats(noise(7000, 9));
  std::vector<float> padded = samples;
  padded.resize(20000);
  const Front plain = Front::from_json(R"({"stages": [{"stage": "mel", "snip_edges": true}]})");
  const std::vector<float> rows = front.rows(samples.data(), samples.size());
  CHECK(equal(rows, plain.rows(padded.data(), padded.size())));
  CHECK(melflow_front_rows(front.get(), 7000) * front.columns() == std::ssize(rows));
  CHECK(front.rows(nullptr, 0).empty());
  CHECK(melflow_front_rows(front.get(), 0) == 0);
  CHECK_THROWS_AS(front.rows(std::vector<float>(20001).data(), 20001), c::Error);
  melflow_stream* stream = nullptr;
  CHECK(melflow_stream_create(front.get(), 1, 0, &stream) == MELFLOW_UNSUPPORTED);
  CHECK(melflow_front_rows(front.get(), std::numeric_limits<std::int64_t>::max()) == -1);
}

TEST_CASE("c: a stream takes memory for what it holds, not for rows that come at the end") {
  const Front front = Front::from_json(
      R"({"stages": [{"stage": "mel"}, {"stage": "fit_rows", "rows": 1048576},
          {"stage": "stack", "frames": 100, "hop": 1}]})");
  t_bytes = 0;
  Stream stream(front, 160);
  CHECK(t_bytes < 8 << 20);
}

TEST_CASE("c: wrong calls are statuses, and leave what they would have set alone") {
  const Front own("kaldi");
  const melflow_front* front = own.get();
  melflow_front* made_front = nullptr;
  melflow_stream* stream = nullptr;
  std::vector<float> samples(1000, 0.1F), rows(100000);
  std::int64_t made = -7;
  constexpr melflow_status kBad = MELFLOW_BAD_ARGUMENT;
  CHECK(melflow_front_from_preset(nullptr, 0, &made_front) == kBad);
  CHECK(melflow_front_from_preset("kaldi", 0, nullptr) == kBad);
  CHECK(melflow_front_from_preset("kaldi", -1, &made_front) == kBad);
  CHECK(melflow_front_from_preset("kaldi", 99, &made_front) == kBad);
  CHECK(melflow_front_from_json(nullptr, 3, 0, &made_front) == kBad);
  CHECK(melflow_front_from_yaml("{}", 2, 0, &made_front) == MELFLOW_UNSUPPORTED);
  CHECK(melflow_front_from_preset("kaldi", 44100, &made_front) == MELFLOW_UNSUPPORTED);
  CHECK(std::string(melflow_error()).find("44100 Hz") != std::string::npos);
  CHECK(melflow_compute(nullptr, samples.data(), 10, rows.data(), 10, &made) == kBad);
  CHECK(melflow_compute(front, nullptr, 10, rows.data(), 10, &made) == kBad);
  CHECK(melflow_compute(front, samples.data(), -1, rows.data(), 10, &made) == kBad);
  CHECK(melflow_compute(front, samples.data(), 1000, nullptr, 10, &made) == kBad);
  CHECK(melflow_compute(front, samples.data(), 1000, rows.data(), -1, &made) == kBad);
  CHECK(melflow_compute(front, samples.data(), 1000, rows.data(), 10, nullptr) == kBad);
  CHECK(melflow_compute_file(front, nullptr, 3, 0, rows.data(), 10, &made) == kBad);
  CHECK(melflow_compute_file(front, "RIFF", 4, -1, rows.data(), 10, &made) == kBad);
  CHECK(melflow_compute_file(front, "RIFF", 4, 0, rows.data(), 10, &made) == MELFLOW_UNSUPPORTED);
  CHECK(melflow_stream_create(nullptr, 10, 0, &stream) == kBad);
  CHECK(melflow_stream_create(front, -1, 0, &stream) == kBad);
  CHECK(melflow_stream_create(front, std::int64_t{1} << 40, 0, &stream) == kBad);
  CHECK(melflow_stream_create(front, 10, 2, &stream) == kBad);
  CHECK(melflow_stream_create(front, 10, 0, nullptr) == kBad);
  CHECK(melflow_stream_push(nullptr, samples.data(), 1) == kBad);
  CHECK(melflow_stream_finish(nullptr) == kBad);
  CHECK(melflow_stream_reset(nullptr) == kBad);
  CHECK(melflow_stream_pull(nullptr, rows.data(), 1, &made) == kBad);
  CHECK(made_front == nullptr);
  CHECK(stream == nullptr);
  CHECK(made == -7);
  CHECK(melflow_front_columns(nullptr) == 0);
  CHECK(melflow_front_rows(front, -1) == 0);
  CHECK(std::string(melflow_front_fingerprint(nullptr)).empty());
  melflow_front_destroy(nullptr);
  melflow_stream_destroy(nullptr);

  REQUIRE(melflow_stream_create(front, 10, 0, &stream) == MELFLOW_OK);
  CHECK(melflow_stream_push(stream, nullptr, 1) == kBad);
  CHECK(melflow_stream_push(stream, samples.data(), -1) == kBad);
  CHECK(melflow_stream_push(stream, nullptr, 0) == MELFLOW_OK);
  CHECK(melflow_stream_finish(stream) == MELFLOW_OK);
  CHECK(melflow_stream_waiting(stream) == 0);
  CHECK(melflow_stream_push(stream, samples.data(), 1) == MELFLOW_ENDED);
  CHECK(melflow_stream_finish(stream) == MELFLOW_ENDED);
  REQUIRE(melflow_stream_reset(stream) == MELFLOW_OK);
  samples[500] = std::numeric_limits<float>::infinity();
  CHECK(melflow_stream_push(stream, samples.data(), 1000) == MELFLOW_BAD_AUDIO);
  CHECK(std::string(melflow_error()).find("is not finite") != std::string::npos);
  CHECK(melflow_stream_push(stream, samples.data(), 1) == MELFLOW_ENDED);
  CHECK(melflow_compute(front, samples.data(), 1000, rows.data(), 100, &made) == MELFLOW_BAD_AUDIO);
  melflow_stream_destroy(stream);
}

TEST_CASE("c: a stream outlives its front end") {
  auto front = std::make_unique<Front>("kaldi");
  Stream stream(*front, 100);
  front.reset();
  const std::vector<float> samples = floats(noise(4000, 8));
  CHECK_FALSE(stream.push(samples.data(), samples.size()).empty());
}

}  // namespace melflow::test::c_front_end_test
