#include "stages/audio/decoders/flac_frames.h"

#include <doctest/doctest.h>

#include <cstring>
#include <random>

#include "tests/support/plain_flac.h"

namespace flac_frames_test {

using namespace melflow;
using namespace melflow::test;

namespace {

ReadAt reader(const std::string& bytes) {
  return [&bytes](std::uint64_t at, std::span<std::byte> out) -> std::size_t {
    if (at >= bytes.size()) return 0;
    const std::size_t n = std::min<std::uint64_t>(out.size(), bytes.size() - at);
    std::memcpy(out.data(), bytes.data() + at, n);
    return n;
  };
}

std::vector<std::int16_t> noise(std::size_t count) {
  std::mt19937 random(3);
  std::vector<std::int16_t> out(count);
  for (auto& v : out) v = static_cast<std::int16_t>(random());
  return out;
}

std::optional<FlacFrames> frames_of(const std::string& bytes) {
  return FlacFrames::find(reader(bytes), bytes.size());
}

}  // namespace

TEST_CASE("flac frames: every cut is a frame, with its number, and not further than asked for") {
  const PlainFlacOptions kinds[] = {
      {},
      {.channels = 2, .block_sizes = {1152}},
      {.block_sizes = {16}},
      {.channels = 3, .block_sizes = {65535}},
      {.block_sizes = {333, 4608, 17, 1000}, .says_samples = true},
      {.metadata = std::string(70'000, '\xFF')},
  };
  for (const PlainFlacOptions& o : kinds) {
    CAPTURE(o.channels);
    CAPTURE(o.block_sizes[0]);
    const PlainFlac file = plain_flac(noise(600'000), o);
    auto frames = frames_of(file.bytes);
    REQUIRE(frames);
    CHECK(frames->first().at == file.at[0]);
    CHECK(frames->first().sample == 0);
    const std::int64_t largest = *std::max_element(o.block_sizes.begin(), o.block_sizes.end());
    const std::int64_t most = std::max<std::int64_t>(20'000, 2 * largest);
    FlacPlace place = frames->first();
    std::size_t i = 0, cuts = 0;
    while (const auto next = frames->after(place, most)) {
      CHECK(next->sample > place.sample);
      CHECK(next->sample <= place.sample + most);
      while (i < file.at.size() && file.at[i] < next->at) ++i;
      REQUIRE(i < file.at.size());
      CHECK(next->at == file.at[i]);
      CHECK(next->sample == file.sample[i]);
      place = *next;
      ++cuts;
    }
    CHECK(place.at == file.at.back());
    CHECK(cuts <= 4 + 2 * static_cast<std::size_t>(file.sample.back() / most));
    // Its frame has more samples than that.
    CHECK_FALSE(frames->after(frames->first(), std::min(15, o.block_sizes[0] - 1)));
  }
}

TEST_CASE("flac frames: the header with the frames from a cut on is a file of its own") {
  const PlainFlac file = plain_flac(noise(50'000), {.metadata = "what no decoder needs"});
  const auto frames = frames_of(file.bytes);
  REQUIRE(frames);
  PlainFlac bare = plain_flac(noise(50'000));
  bare.bytes[21] = static_cast<char>(bare.bytes[21] & 0xF0);  // as many samples as it has
  bare.bytes.replace(22, 4, 4, '\0');
  CHECK(std::memcmp(frames->head().data(), bare.bytes.data(), frames->head().size()) == 0);
  CHECK(frames->head().size() == bare.at[0]);
}

TEST_CASE("flac frames: a silent stretch of few bytes is found between loud ones") {
  // What stands there is no frame: 300,000 bytes in which nothing is found.
  PlainFlac file = plain_flac(noise(200'000));
  auto frames = frames_of(file.bytes);
  REQUIRE(frames);
  const FlacPlace early = *frames->after(frames->first(), 20'000);
  const PlainFlac other = plain_flac(noise(200'000));
  std::string holes = other.bytes.substr(0, other.at[10]) + std::string(300'000, '\0') +
                      other.bytes.substr(other.at[10]);
  auto with_hole = frames_of(holes);
  REQUIRE(with_hole);
  CHECK(with_hole->after(with_hole->first(), 20'000)->at == early.at);
  const auto across = with_hole->after({other.at[9], other.sample[9]}, 20'000);
  REQUIRE(across);
  CHECK(across->sample > other.sample[9]);
  CHECK(across->sample <= other.sample[9] + 20'000);
}

TEST_CASE("flac frames: complete is a file with its last frame, and no broken one behind it") {
  for (const PlainFlacOptions& o :
       {PlainFlacOptions{}, PlainFlacOptions{.block_sizes = {192}},
        PlainFlacOptions{.channels = 2, .block_sizes = {333, 4608}, .says_samples = true}}) {
    CAPTURE(o.block_sizes[0]);
    const std::string good = plain_flac(noise(600'000), o).bytes;
    const std::int64_t count = 600'000 / o.channels;
    const auto is_complete = [](const std::string& bytes, std::int64_t samples) {
      auto frames = frames_of(bytes);
      REQUIRE(frames);
      return frames->is_complete(samples);
    };
    CHECK(is_complete(good, count));
    CHECK_FALSE(is_complete(good, count - 1));
    CHECK_FALSE(is_complete(good, count + 1));
    CHECK_FALSE(is_complete(good.substr(0, good.size() - 1), count));
    CHECK_FALSE(is_complete(good.substr(0, good.size() / 2), count));
    CHECK_FALSE(is_complete(good + "x", count));
    std::string wrong = good;
    wrong[wrong.size() - 30] = static_cast<char>(~wrong[wrong.size() - 30]);
    CHECK_FALSE(is_complete(wrong, count));
  }
}

TEST_CASE("flac frames: what cannot be cut by its numbers") {
  const std::string good = plain_flac(noise(20'000)).bytes;
  struct Row {
    const char* what;
    std::string bytes;
  };
  const auto changed = [&](std::size_t at, char value) {
    std::string out = good;
    out[at] = value;
    return out;
  };
  const Row rows[] = {
      {"empty", ""},
      {"only the marker", "fLaC"},
      {"no frame", good.substr(0, 42)},
      {"a frame that ends within its header", good.substr(0, 50)},
      {"tags before it", "ID3" + good},
      {"another first block", changed(4, '\x81')},
      {"a block that leaves the file",
       changed(4, '\0').insert(42, std::string("\x01\xff\xff\xff", 4))},
      {"counts frames of no fixed size", changed(8, '\x01')},
      {"something before the first frame", std::string(good).insert(42, "x")},
      {"another count of channels", changed(20, '\x02')},
      {"a wrong check sum", changed(49, static_cast<char>(good[49] + 1))},
      {"begins in the middle", plain_flac(noise(20'000), {.first = 7}).bytes},
  };
  REQUIRE(frames_of(good));
  for (const Row& row : rows) {
    CAPTURE(row.what);
    CHECK_FALSE(frames_of(row.bytes));
  }
}

TEST_CASE(
    "flac frames: a file that repeats the header of its last frame is not read over and over") {
  // Each of them could be the end, and is followed by what could be the next: half a MiB of them.
  PlainFlac file = plain_flac(noise(200'000));
  const std::string header = flac_frame_header({}, 200'000 % 4096, 200'000 / 4096);
  for (int i = 0; i < 60'000; ++i) file.bytes += header;
  std::uint64_t bytes = 0;
  const ReadAt read = reader(file.bytes);
  auto frames = FlacFrames::find(
      [&](std::uint64_t at, std::span<std::byte> out) {
        const std::size_t n = read(at, out);
        bytes += n;
        return n;
      },
      file.bytes.size());
  REQUIRE(frames);
  CHECK_FALSE(frames->is_complete(200'000));
  CHECK(bytes < 1'000 * file.bytes.size());
  // Nor is one with frames that lead nowhere, however often a cut is asked for.
  bytes = 0;
  const FlacPlace first = frames->first();
  for (int i = 0; i < 50'000; ++i) CHECK_FALSE(frames->after(first, 4095));
  CHECK(bytes < 1'000 * file.bytes.size());
}

}  // namespace flac_frames_test
