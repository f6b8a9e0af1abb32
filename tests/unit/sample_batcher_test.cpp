// The shuffle buffer of batches: which samples leave it, and when.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <vector>

#include "stages/training/sample_batcher.h"

using namespace melflow;

namespace {

struct Left {
  std::vector<std::int64_t> samples;  // in their order
  std::vector<std::int64_t> came;     // number of samples that had come when each batch left
};

// Passes windows of one value, which is their number.
Left run(std::int64_t samples, SampleBatcher::Settings settings) {
  settings.row_shapes = {{1}};
  Left out;
  std::int64_t came = 0;
  SampleBatcher batcher(settings, [&](const SampleBatch& batch) {
    for (std::size_t i = 0; i < batch.files.size(); ++i) {
      float value = 0;
      std::memcpy(&value, batch.inputs[0].data.data() + i * sizeof(value), sizeof(value));
      CHECK(static_cast<std::int64_t>(value) == batch.files[i]);
    }
    out.samples.insert(out.samples.end(), batch.files.begin(), batch.files.end());
    out.came.push_back(came);
    return true;
  });
  for (; came < samples;) {
    const auto value = static_cast<float>(came);
    SampleView view;
    view.inputs = {{reinterpret_cast<const std::byte*>(&value), 1}};
    view.file = came++;
    CHECK(batcher.add(view));
  }
  batcher.end();
  return out;
}

SampleBatcher::Settings settings(std::size_t size, std::size_t shuffle, std::uint64_t seed,
                                 std::uint64_t skip = 0) {
  SampleBatcher::Settings out;
  out.row_shapes = {{1}};
  out.size = size;
  out.shuffle = shuffle;
  out.seed = seed;
  out.skip = skip;
  return out;
}

}  // namespace

TEST_CASE("shuffle buffer: while it fills, one sample leaves for every four that come") {
  const Left one = run(8000, settings(10, 1500, 3));
  REQUIRE(one.came.size() == 800);
  // Full when 2000 have come, of which 500 have left; then one leaves for each that comes.
  for (std::int64_t i = 0; i < 800; ++i) {
    const std::int64_t left = 10 * (i + 1);
    const std::int64_t expected =
        left <= 500 ? 4 * left : std::min<std::int64_t>(8000, 1500 + left);
    CHECK(one.came[static_cast<std::size_t>(i)] == expected);
  }
  // The distance by which samples move grows with the buffer, which holds three samples for each
  // that left.
  const auto mean_distance = [&one](std::size_t begin, std::size_t end) {
    double sum = 0;
    for (std::size_t i = begin; i < end; ++i)
      sum += std::abs(static_cast<double>(one.samples[i]) - static_cast<double>(i));
    return sum / static_cast<double>(end - begin);
  };
  CHECK(mean_distance(0, 50) < mean_distance(50, 200));
  CHECK(mean_distance(50, 200) < mean_distance(200, 500));
  CHECK(mean_distance(200, 500) < mean_distance(2000, 6000));
  std::vector<std::int64_t> all = one.samples, wanted(8000);
  std::sort(all.begin(), all.end());
  std::iota(wanted.begin(), wanted.end(), 0);
  CHECK(all == wanted);
}

TEST_CASE(
    "shuffle buffer: a smaller one is full sooner, and one that never fills gives every sample") {
  for (const std::size_t shuffle : {1U, 2U, 3U, 5U, 64U, 99U, 100U, 101U, 5000U})
    for (const std::uint64_t skip : {0U, 17U}) {
      CAPTURE(shuffle);
      const Left whole = run(100, settings(7, shuffle, 5));
      const Left rest = run(100, settings(7, shuffle, 5, skip));
      REQUIRE(whole.samples.size() == 100);
      CHECK(rest.samples == std::vector(whole.samples.begin() + static_cast<std::ptrdiff_t>(skip),
                                        whole.samples.end()));
      // A sample leaves neither before a quarter of those up to it has come, nor before its turn.
      std::vector<std::int64_t> all = whole.samples;
      for (std::size_t i = 0; i < all.size(); ++i)
        CHECK(all[i] <= std::min<std::int64_t>(4 * static_cast<std::int64_t>(i) + 3,
                                               static_cast<std::int64_t>(i + shuffle)));
      std::sort(all.begin(), all.end());
      CHECK(std::adjacent_find(all.begin(), all.end()) == all.end());
      if (shuffle > 1) CHECK(whole.samples != run(100, settings(7, shuffle, 6)).samples);
    }
}

TEST_CASE("batches: each input has rows of its own type, whole recordings and windows alike") {
  for (const bool is_ragged : {false, true}) {
    CAPTURE(is_ragged);
    SampleBatcher::Settings s = settings(2, 0, 1);
    s.is_ragged = is_ragged;
    s.row_shapes = {{1}, {2}, {1}};
    s.types = {NumberType::float32, NumberType::int64, NumberType::uint8};
    std::vector<SampleBatch> made;
    SampleBatcher batcher(s, [&](SampleBatch batch) {
      made.push_back(std::move(batch));
      return true;
    });
    const float floats[] = {0.5F};
    const std::int64_t integers[] = {std::numeric_limits<std::int64_t>::min(), 7};
    const std::uint8_t bytes[] = {255};
    SampleView view;
    for (const void* data : {static_cast<const void*>(floats), static_cast<const void*>(integers),
                             static_cast<const void*>(bytes)})
      view.inputs.push_back({static_cast<const std::byte*>(data), 1});
    for (int i = 0; i < 2; ++i) CHECK(batcher.add(view));
    REQUIRE(made.size() == 1);
    const auto& inputs = made.front().inputs;
    REQUIRE(inputs.size() == 3);
    for (std::size_t k = 0; k < 3; ++k) CHECK(inputs[k].type == s.types[k]);
    for (std::size_t i = 0; i < 2; ++i) {
      CHECK(reinterpret_cast<const float*>(inputs[0].data.data())[i] == 0.5F);
      CHECK(reinterpret_cast<const std::int64_t*>(inputs[1].data.data())[2 * i] == integers[0]);
      CHECK(reinterpret_cast<const std::int64_t*>(inputs[1].data.data())[2 * i + 1] == 7);
      CHECK(reinterpret_cast<const std::uint8_t*>(inputs[2].data.data())[i] == 255);
    }
  }
}

TEST_CASE("shuffle buffer: of recordings as many are held as fit its bytes") {
  // Rows of 1 KiB; recordings of 1 to 40 rows, which take 4 to 40 KiB in memory.
  constexpr std::size_t kRow = 1024, kLimit = 500 * 1024;
  const auto rows_of = [](std::int64_t i) { return 1 + i * 7 % 40; };
  struct Case {
    std::size_t shuffle, bucket, most;  // [bytes]
  };
  for (const Case& c : {Case{1000, 0, kLimit}, Case{0, 1000, kLimit}, Case{1000, 1000, 2 * kLimit}})
    for (const std::int64_t longest : {0, 600}) {  // rows; a single one that exceeds the limit
      CAPTURE(c.shuffle);
      CAPTURE(c.bucket);
      SampleBatcher::Settings s = settings(4, c.shuffle, 3);
      s.bucket = c.bucket;
      s.is_ragged = true;
      s.held_bytes = kLimit;
      s.row_shapes = {{kRow / sizeof(float)}};
      s.pool = std::make_shared<BufferPool>(std::size_t{1} << 30);
      std::vector<std::int64_t> left;
      SampleBatcher batcher(s, [&](const SampleBatch& batch) {
        left.insert(left.end(), batch.files.begin(), batch.files.end());
        return true;
      });
      const std::vector<std::byte> bytes(600 * kRow);
      std::size_t most = 0;
      for (std::int64_t i = 0; i < 500; ++i) {
        SampleView view;
        view.inputs = {{bytes.data(), i == 250 && longest > 0 ? longest : rows_of(i)}};
        view.file = i;
        CHECK(batcher.add(view));
        most = std::max(most, batcher.held_bytes());
      }
      CHECK(most > c.most * 8 / 10);
      // A bucket may hold less than a batch in addition to a sample that does not fit.
      CHECK(most <= c.most + (c.bucket > 0 ? 4 * (longest > 0 ? 640 : 40) * kRow : 0));
      CHECK((batcher.most_shuffled() > 10) == (c.shuffle > 0));
      CHECK((batcher.most_in_bucket() > 10) == (c.bucket > 0));
      CHECK(batcher.most_shuffled() < 100);
      batcher.end();
      std::sort(left.begin(), left.end());
      REQUIRE(left.size() == 500);
      CHECK(std::adjacent_find(left.begin(), left.end()) == left.end());
    }
}
