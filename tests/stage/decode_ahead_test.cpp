// Decoding ahead changes nothing but the time: what decode gives of a long FLAC file is compared
// with what it gives without (`ahead: 0`), for good files and for every way in which they can be
// broken.
#include <doctest/doctest.h>
#include <sndfile.h>
#include <tbb/global_control.h>
#include <tbb/task_arena.h>

#include <cstring>
#include <random>
#include <thread>

#include "pipeline/reach.h"
#include "tests/stage/bench.h"
#include "tests/support/audio_files.h"
#include "tests/support/plain_flac.h"
#include "tests/support/temp_folder.h"
#include "tests/support/watchdog.h"

namespace decode_ahead_test {

using namespace melflow;
using namespace melflow::test;

namespace {

constexpr int kWorkers = 4;
constexpr const char* kBlock = "block: 64KiB";

// Workers to help, however few cores there are.
template <class F>
void with_workers(F&& body) {
  const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, kWorkers);
  tbb::task_arena arena(kWorkers);
  arena.execute(body);
}

std::shared_ptr<const RawBytes> large_file(const std::string& path) {
  auto file = std::make_shared<FileRef>();
  file->path = path;
  file->size = read_bytes(path).size();
  Bench bench("disk_read", "{whole: 4096, buffer: 8192}");
  auto result = bench.single<RawBytes>(std::shared_ptr<const FileRef>(std::move(file)));
  REQUIRE_MESSAGE(result.ok(), result.entry.reason);
  return result.blocks.at(0);
}

struct Decoded {
  Ledger::Entry entry;
  std::string samples;  ///< their bytes
  SampleType type = SampleType::float32;
  std::int64_t count = 0, first_block = 0;
  std::int64_t frames = 0, first_frames = 0;  ///< of the file, when the block was made
};

Decoded decoded(const std::string& path, const std::string& options,
                MemoryBudget* budget = nullptr) {
  Bench bench("decode", "{" + options + "}");
  REQUIRE(bench.plan().errors.empty());
  bench.run().workers = kWorkers;
  bench.run().budget = budget;
  Streamed<Waveform> stream;
  with_workers([&] { stream = bench.single<Waveform>(large_file(path)); });
  Decoded out;
  out.entry = stream.entry;
  for (const auto& block : stream.blocks) {
    CHECK(block->start == out.count);
    CHECK(block->first == (out.count == 0));
    CHECK(block->last == (block == stream.blocks.back() && stream.ok()));
    CHECK(buffer_of(block->samples).capacity() <= 64 * 1024);
    out.samples.append(reinterpret_cast<const char*>(block->samples.data), block->samples.bytes());
    out.type = block->samples.type;
    out.count += block->samples.count;
    out.frames = block->file.frames;
  }
  if (!stream.blocks.empty()) {
    out.first_block = stream.blocks[0]->samples.count;
    out.first_frames = stream.blocks[0]->file.frames;
  }
  return out;
}

// The same, whether decoded ahead or not; returns how it was with it.
Decoded same_as_alone(const std::string& path, const std::string& more = "") {
  const std::string options = std::string(kBlock) + (more.empty() ? "" : ", " + more);
  const Decoded alone = decoded(path, options + ", ahead: 0");
  Decoded got = decoded(path, options);
  CHECK(got.entry.outcome == alone.entry.outcome);
  CHECK(got.entry.reason == alone.entry.reason);
  if (got.entry.outcome != Outcome::ok) return got;
  CHECK(got.type == alone.type);
  CHECK(got.count == alone.count);
  CHECK((got.samples == alone.samples));
  CHECK(got.frames == alone.frames);
  return got;
}

// Hands the blocks to `on_block` one after the other, no more than `most` of them.
template <class F>
void block_by_block(const std::string& path, MemoryBudget& budget, int most, F&& on_block) {
  Bench bench("decode", "{block: 64KiB, ahead: 5}");
  bench.plan();
  bench.run().workers = kWorkers;
  bench.run().budget = &budget;
  with_workers([&] {
    Ledger ledger;
    ledger.open(1, {"bench"});
    static const Reach reach = Reach::plain(0, 1);
    auto stream = std::make_shared<Stream>(ledger, Stream::Records{0}, 0, reach);
    Item item;
    item.origins = std::make_shared<const Origins>(Origins{{nullptr, stream, true, true}});
    item.payload = large_file(path);
    std::unique_ptr<StageState> cursor;
    bool more = true;
    for (int i = 0; i < most && more; ++i) {
      ItemContext context(bench.run(), item, 0);
      const auto emission = bench.items().run(item, cursor, context);
      REQUIRE(emission);
      more = emission->more;
      if (emission->payload) on_block(*static_cast<const Waveform*>(emission->payload.get()));
    }
  });
}

// Alone it would have looked behind its first block, whether anything is there.
bool was_cut(const Decoded& d) {
  return d.first_block < d.count && d.first_frames == d.first_block;
}

std::vector<std::int16_t> noise(std::size_t count, unsigned seed = 5) {
  std::mt19937 random(seed);
  std::vector<std::int16_t> out(count);
  for (auto& v : out) v = static_cast<std::int16_t>(random() % 20'000);
  return out;
}

}  // namespace

TEST_CASE("decode ahead: the samples that libsndfile reads, of every kind of FLAC") {
  const TempFolder folder;
  for (const AudioKind kind :
       {audio_kind("flac s16"), audio_kind("flac s16 stereo"), audio_kind("flac s24"),
        AudioKind{"flac s24 stereo", "flac", SF_FORMAT_FLAC | SF_FORMAT_PCM_24, 2, false, true}}) {
    CAPTURE(std::string(kind.name));
    const std::string path = folder / "a.flac";
    write_audio(path, kind, 16000, test_signal(400'003, kind.channels));
    const Decoded got = same_as_alone(path);
    REQUIRE(got.entry.outcome == Outcome::ok);
    CHECK(got.entry.reason == "");
    CHECK(was_cut(got));
    const ReadAudio expected = read_audio(path);
    CHECK(got.count == expected.frames());
    if (got.type == SampleType::int16)
      CHECK(std::memcmp(got.samples.data(), expected.int16.data(), got.samples.size()) == 0);
    if (kind.channels == 2) {
      CHECK(was_cut(same_as_alone(path, "downmix: left")));
      CHECK(was_cut(same_as_alone(path, "downmix: right")));
    } else if (got.type == SampleType::float32) {
      CHECK(std::memcmp(got.samples.data(), expected.interleaved.data(), got.samples.size()) == 0);
    }
  }
}

TEST_CASE("decode ahead: any block size, and sizes that vary") {
  const TempFolder folder;
  const auto samples = noise(400'000);
  const PlainFlacOptions kinds[] = {
      {},
      {.block_sizes = {333}},
      {.channels = 2, .block_sizes = {1151}},
      {.block_sizes = {333, 4608, 17, 1000}, .says_samples = true},
      {.channels = 2, .block_sizes = {4608, 100}, .says_samples = true},
      {.metadata = std::string(20'000, '\xFF')},
  };
  for (const PlainFlacOptions& o : kinds) {
    CAPTURE(o.block_sizes[0]);
    const Decoded got = same_as_alone(folder.write("a.flac", plain_flac(samples, o).bytes));
    REQUIRE_MESSAGE(got.entry.outcome == Outcome::ok, got.entry.reason);
    CHECK(got.entry.reason == "");
    CHECK(was_cut(got));
    if (o.channels == 1)
      CHECK(std::memcmp(got.samples.data(), samples.data(), 2 * samples.size()) == 0);
  }
  // One frame is longer than a block: not to be cut.
  const Decoded whole =
      same_as_alone(folder.write("b.flac", plain_flac(samples, {.block_sizes = {40'000}}).bytes));
  CHECK_FALSE(was_cut(whole));
  CHECK(whole.count == 400'000);
}

TEST_CASE("decode ahead: fit pads and trims as without it") {
  const TempFolder folder;
  const std::string path = folder / "a.flac";
  for (const char* kind : {"flac s16", "flac s16 stereo"}) {
    CAPTURE(std::string(kind));
    write_audio(path, audio_kind(kind), 16000, test_signal(300'000, audio_kind(kind).channels));
    for (const int fit :
         {1, 131'071, 131'072, 200'000, 262'144, 299'999, 300'000, 300'001, 500'000}) {
      CAPTURE(fit);
      const Decoded got = same_as_alone(path, "fit: " + std::to_string(fit));
      CHECK(got.count == fit);
      CHECK(got.frames == std::min(fit, 300'000));
    }
  }
}

TEST_CASE("decode ahead: a file that is cut off anywhere, and the same remark") {
  const TempFolder folder;
  std::mt19937 random(11);
  for (const char* kind : {"flac s16", "flac s16 stereo", "flac s24"}) {
    CAPTURE(std::string(kind));
    write_audio(folder / "a.flac", audio_kind(kind), 16000,
                test_signal(250'000, audio_kind(kind).channels));
    const auto size = static_cast<std::int64_t>(read_bytes(folder / "a.flac").size());
    for (int i = 0; i < 20; ++i) {
      const std::int64_t bytes =
          i == 0 ? size - 1 : 5000 + static_cast<std::int64_t>(random()) % (size - 5000);
      CAPTURE(bytes);
      copy_truncated(folder / "a.flac", folder / "b.flac", bytes);
      const Decoded got = same_as_alone(folder / "b.flac");
      CHECK(got.entry.reason != "");
      same_as_alone(folder / "b.flac", "fit: 200000");
      same_as_alone(folder / "b.flac", "truncated: fail");
    }
  }
}

TEST_CASE("decode ahead: a file that is cut off exactly where a frame ends") {
  const TempFolder folder;
  for (const int block : {333, 4096}) {
    for (const int channels : {1, 2}) {
      const PlainFlac whole =
          plain_flac(noise(std::size_t{300'000} * static_cast<std::size_t>(channels)),
                     {.channels = channels, .block_sizes = {block}});
      for (std::size_t i = 1; i < whole.at.size(); i += whole.at.size() / 40 + 1) {
        CAPTURE(whole.sample[i]);
        // With something behind it that is no frame, libsndfile may say so, or not.
        for (const char* garbage : {"", "x", "TAG and whatever stands in one, and more of it"})
          same_as_alone(folder.write("a.flac", whole.bytes.substr(0, whole.at[i]) + garbage));
      }
    }
  }
}

TEST_CASE("decode ahead: bytes that are wrong, missing or too many, and the same rows and remark") {
  const TempFolder folder;
  std::mt19937 random(17);
  for (const char* kind : {"flac s16", "flac s16 stereo", "by hand"}) {
    CAPTURE(std::string(kind));
    std::string good;
    if (std::string(kind) == "by hand") {
      good = plain_flac(noise(250'000), {.block_sizes = {500, 3000}, .says_samples = true}).bytes;
    } else {
      write_audio(folder / "good.flac", audio_kind(kind), 16000,
                  test_signal(250'000, audio_kind(kind).channels));
      good = read_bytes(folder / "good.flac");
    }
    for (int i = 0; i < 40; ++i) {
      std::string bad = good;
      const std::size_t at = 200 + random() % (good.size() - 5000);
      const std::size_t length = i % 2 == 0 ? 1 : random() % 3000;
      switch (i % 4) {
        case 0:
          bad[at] = static_cast<char>(~bad[at]);
          break;
        case 1:
          bad.erase(at, length);
          break;
        case 2:
          bad.insert(at, 1, 'x');
          break;
        default:
          bad.replace(at, length, length, '\0');
          break;
      }
      CAPTURE(i);
      CAPTURE(at);
      same_as_alone(folder.write("bad.flac", bad));
      if (i % 8 == 0) same_as_alone(folder.write("bad.flac", bad), "fit: 240000");
    }
  }
}

TEST_CASE("decode ahead: numbers in frames are not believed") {
  const TempFolder folder;
  const PlainFlac file = plain_flac(noise(400'000));
  const auto part = [&](std::size_t from, std::size_t to) {
    return file.bytes.substr(file.at[from], file.at[to] - file.at[from]);
  };
  const std::string head = file.bytes.substr(0, file.at[0]);
  const std::size_t end = file.at.size() - 1;
  struct Row {
    const char* what;
    std::string bytes;
  };
  // Samples that look like the header of a later frame.
  std::vector<std::int16_t> tricky = noise(400'000);
  for (std::size_t frame = 0; frame < 97; ++frame) {
    const std::string header = flac_frame_header({}, 4096, frame + 3);
    for (std::size_t at = frame * 4096 + 50; at < (frame + 1) * 4096 - 50; at += 500)
      for (std::size_t i = 0; i + 1 < header.size(); i += 2)
        tricky[at + i / 2] = static_cast<std::int16_t>(static_cast<unsigned char>(header[i]) << 8 |
                                                       static_cast<unsigned char>(header[i + 1]));
  }
  const Row rows[] = {
      {"frames are missing", head + part(0, 20) + part(30, end)},
      {"frames come twice", head + part(0, 40) + part(20, end)},
      {"two recordings, one behind the other", file.bytes + part(0, end)},
      {"the order is wrong", head + part(0, 20) + part(40, 60) + part(20, 40) + part(60, end)},
      {"begins in the middle", head + part(7, end)},
      {"samples that look like frames", plain_flac(tricky).bytes},
  };
  for (const Row& row : rows) {
    CAPTURE(row.what);
    CHECK(same_as_alone(folder.write("a.flac", row.bytes)).count > 0);
  }
  // Bytes between two frames, wherever pieces may end.
  for (std::size_t i = 4; i < 18; ++i) {
    for (const char* garbage : {"x", "\xFF\xF8\x75\x08", "bytes that belong to no frame"}) {
      CAPTURE(i);
      same_as_alone(folder.write("a.flac", head + part(0, i) + garbage + part(i, end)));
    }
  }
}

TEST_CASE("decode ahead: only where the header's count is right") {
  const TempFolder folder;
  write_audio(folder / "a.flac", audio_kind("flac s16"), 16000, test_signal(300'000));
  for (const std::uint64_t total : {0ULL, 1ULL, 140'000ULL, 131'072ULL, 299'999ULL, 300'000ULL,
                                    300'001ULL, 800'000ULL, 30'000'000'000ULL}) {
    CAPTURE(total);
    std::string bytes = read_bytes(folder / "a.flac");
    set_flac_total(bytes, total);
    const Decoded got = same_as_alone(folder.write("b.flac", bytes));
    // 131,072 samples are 32 frames; what follows them is not read either way.
    CHECK(was_cut(got) == (total == 300'000 || total == 131'072));
    same_as_alone(folder / "b.flac", "fit: 250000");
  }
}

TEST_CASE("decode ahead: blocks decoded early are charged, and given up with the recording") {
  const Watchdog watchdog("blocks decoded early");
  const TempFolder folder;
  const std::string path = folder / "a.flac";
  write_audio(path, audio_kind("flac s16 stereo"), 16000, test_signal(600'000, 2));
  const Decoded expected = decoded(path, "block: 64KiB, ahead: 0");
  const std::size_t piece = 64 * 1024 + large_file(path)->window;
  for (const std::size_t pieces : {0, 1, 2, 100}) {
    CAPTURE(pieces);
    // A few times, since it is a matter of luck who takes a place while it becomes free.
    for (int attempt = 0; attempt < 10; ++attempt) {
      MemoryBudget budget(pieces * piece + 100, 0);
      std::string samples;
      block_by_block(path, budget, 100, [&](const Waveform& block) {
        samples.append(reinterpret_cast<const char*>(block.samples.data), block.samples.bytes());
        // Somebody helps in the end, however busy the machine is.
        while (pieces > 0 && budget.peak() == 0) std::this_thread::yield();
      });
      CHECK((samples == expected.samples));
      CHECK(budget.used() == 0);
      const std::size_t peak = budget.peak();
      CHECK(peak <= std::min<std::size_t>(pieces, 5) * piece);
      CHECK(peak % piece == 0);
      if (pieces == 0) break;
    }
  }
  // Dropped on the way, as when a run is stopped.
  for (int blocks = 0; blocks < 12; ++blocks) {
    MemoryBudget budget(1 << 30, 0);
    block_by_block(path, budget, blocks, [](const Waveform&) {});
    CHECK(budget.used() == 0);
  }
}

}  // namespace decode_ahead_test
