// Files whose decoded samples are stored: disk_read opens nothing, decode returns the samples.
#include "stages/audio/store/stored_audio.h"

#include <doctest/doctest.h>

#include "stages/audio/reading/uring_engine.h"
#include "tests/stage/bench.h"
#include "tests/support/audio_files.h"
#include "tests/support/temp_folder.h"

namespace melflow::test::stored_audio_test {
namespace {

// Samples in pieces that are not contiguous.
class Pieces final : public StoredAudio {
 public:
  Pieces(std::vector<std::vector<std::int16_t>> pieces, bool is_good = true)
      : StoredAudio({SampleType::int16, 8000, count(pieces), {44100, 123456}}),
        pieces_(std::move(pieces)),
        is_good_(is_good) {}
  [[nodiscard]] bool verify() const override { return is_good_; }
  [[nodiscard]] Samples at(std::int64_t start, std::int64_t most) const override {
    auto piece = pieces_.begin();
    for (; start >= std::ssize(*piece); ++piece) start -= std::ssize(*piece);
    return {nullptr, reinterpret_cast<const std::byte*>(piece->data() + start),
            std::min(most, std::ssize(*piece) - start), SampleType::int16};
  }

 private:
  static std::int64_t count(const std::vector<std::vector<std::int16_t>>& pieces) {
    std::int64_t n = 0;
    for (const auto& p : pieces) n += std::ssize(p);
    return n;
  }
  std::vector<std::vector<std::int16_t>> pieces_;
  bool is_good_;
};

std::vector<std::int16_t> numbers(std::size_t count, int first) {
  std::vector<std::int16_t> out(count);
  for (std::size_t i = 0; i < count; ++i)
    out[i] = static_cast<std::int16_t>(first + static_cast<int>(i % 1000));
  return out;
}

std::vector<std::string> engines() {
  std::vector<std::string> out{"{}", "{engine: threads}"};
  if (uring_refusal().empty()) out.emplace_back("{engine: io_uring}");
  return out;
}

std::shared_ptr<const FileRef> file_with(const std::string& path, std::uint64_t size,
                                         std::shared_ptr<const StoredAudio> audio) {
  auto file = std::make_shared<FileRef>();
  file->path = path;
  file->size = size;
  file->stored = std::move(audio);
  return file;
}

std::shared_ptr<const RawBytes> through_read(const std::shared_ptr<const FileRef>& file,
                                             const std::string& engine) {
  Bench bench("disk_read", engine);
  const auto read = bench.single<RawBytes>(file);
  REQUIRE_MESSAGE(read.ok(), read.entry.reason);
  return read.blocks.at(0);
}

}  // namespace

TEST_CASE(
    "stored audio: nothing is opened, blocks are the stored samples and no longer than decode's") {
  std::vector<std::vector<std::int16_t>> pieces{numbers(100'000, 1), numbers(1, 7),
                                                numbers(60'000, -500)};
  std::vector<std::int16_t> all;
  for (const auto& p : pieces) all.insert(all.end(), p.begin(), p.end());
  for (const std::string& engine : engines()) {
    CAPTURE(engine);
    const auto file = file_with("/no/such/file.flac", 500'000, std::make_shared<Pieces>(pieces));
    const auto raw = through_read(file, engine);
    CHECK(raw->bytes() == 0);
    CHECK_FALSE(bool(raw->fd));
    CHECK_FALSE(bool(raw->data));
    Bench bench("decode", "{block: 64KiB}");
    bench.plan();
    const auto out = bench.single<Waveform>(raw);
    REQUIRE_MESSAGE(out.ok(), out.entry.reason);
    CHECK(joined<std::int16_t>(out.blocks) == all);
    CHECK(out.blocks.size() == 4 + 1 + 2);
    for (const auto& block : out.blocks) {
      CHECK(block->stored);
      CHECK(block->samples.bytes() <= bench.stage().output_bound({file->path, file->size}, 0));
      CHECK(block->sample_rate == 8000);
      CHECK(block->file.sample_rate == 44100);
      CHECK(block->file.frames == 123456);
    }
    // Samples that have this rate already are neither resampled nor copied.
    Bench resample("resample", "{rate: 8000}");
    resample.plan();
    const auto same = resample.stream<Waveform>(out.blocks);
    REQUIRE(same.ok());
    CHECK(same.blocks == out.blocks);
  }
}

TEST_CASE("stored audio: what is damaged is decoded from the file") {
  const TempFolder folder;
  const std::string path = folder / "a.wav";
  write_wav(path, 90'000);
  const ReadAudio expected = read_audio(path);
  for (const std::string& engine : engines()) {
    CAPTURE(engine);
    const auto damaged =
        std::make_shared<Pieces>(std::vector<std::vector<std::int16_t>>{numbers(5000, 1)}, false);
    const auto raw =
        through_read(file_with(path, std::filesystem::file_size(path), damaged), engine);
    Bench bench("decode", "{block: 64KiB}");
    bench.plan();
    const auto out = bench.single<Waveform>(raw);
    REQUIRE_MESSAGE(out.ok(), out.entry.reason);
    CHECK(joined<std::int16_t>(out.blocks) == expected.int16);
    for (const auto& block : out.blocks) CHECK_FALSE(block->stored);
  }
}

TEST_CASE("stored audio: a damaged store of a file that is gone says so") {
  const auto damaged =
      std::make_shared<Pieces>(std::vector<std::vector<std::int16_t>>{numbers(5000, 1)}, false);
  const auto raw = through_read(file_with("/no/such/file.wav", 10'000, damaged), "{}");
  Bench bench("decode");
  bench.plan();
  const auto out = bench.single<Waveform>(raw);
  CHECK(out.entry.outcome == Outcome::failed);
  CHECK(out.entry.reason == "does not exist (any more)");
}

}  // namespace melflow::test::stored_audio_test
