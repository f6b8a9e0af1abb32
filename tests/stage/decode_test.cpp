#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "stages/audio/decoders/sound_decoder.h"
#include "stages/facts.h"
#include "tests/stage/bench.h"
#include "tests/stage/failing_calls.h"
#include "tests/support/audio_files.h"
#include "tests/support/plain_flac.h"
#include "tests/support/printing.h"
#include "tests/support/temp_folder.h"

namespace melflow::test::decode_test {
namespace {

// Long enough for several blocks of the smallest size, for any type.
constexpr std::int64_t kFrames = 70'001;
constexpr int kRate = 16000;
constexpr const char* kSmallBlocks = "block: 64KiB";
constexpr const char* kSmallAndKept = "block: 64KiB, truncated: keep";
constexpr const char* kWindowed = "{whole: 4096, buffer: 4096}";

std::shared_ptr<const RawBytes> raw_bytes(const std::string& path, const std::string& read = "{}") {
  auto file = std::make_shared<FileRef>();
  file->path = path;
  file->size = read_bytes(path).size();
  Bench bench("disk_read", read);
  auto result = bench.single<RawBytes>(std::shared_ptr<const FileRef>(std::move(file)));
  REQUIRE_MESSAGE(result.ok(), result.entry.reason);
  return result.blocks.at(0);
}

struct Decoded {
  Streamed<Waveform> stream;
  SampleType type = SampleType::float32;
  std::vector<std::int16_t> int16;
  std::vector<float> float32;

  [[nodiscard]] bool ok() const { return stream.ok(); }
  [[nodiscard]] const std::string& reason() const { return stream.entry.reason; }
  [[nodiscard]] std::int64_t count() const {
    return static_cast<std::int64_t>(type == SampleType::int16 ? int16.size() : float32.size());
  }
};

Decoded decode(const std::string& path, const std::string& options = "",
               const std::string& read = "{}", const Requirements& required = {}) {
  Bench bench("decode", "{" + options + "}");
  REQUIRE(bench.plan({}, required).errors.empty());
  const auto raw = raw_bytes(path, read);
  Decoded out;
  out.stream = bench.stream<Waveform, RawBytes>({raw});
  const std::size_t bound = bench.stage().output_bound({path, raw->size}, raw->size);
  for (const auto& block : out.stream.blocks) {
    // The charged memory covers the held memory, unless that is the file's own bytes.
    if (block->samples.owner.get() != &raw->data)
      CHECK(buffer_of(block->samples).capacity() <= bound);
    CHECK(block->samples.bytes() <= buffer_of(block->samples).size());
    CHECK(block->sample_rate == block->file.sample_rate);
    CHECK(block->samples.type == out.stream.blocks[0]->samples.type);
  }
  if (!out.ok() || out.stream.blocks.empty()) return out;
  out.type = out.stream.blocks[0]->samples.type;
  if (out.type == SampleType::int16)
    out.int16 = joined<std::int16_t>(out.stream.blocks);
  else
    out.float32 = joined<float>(out.stream.blocks);
  return out;
}

std::vector<float> mean_of(const ReadAudio& audio) {
  std::vector<float> out(static_cast<std::size_t>(audio.frames()));
  const auto channels = static_cast<std::size_t>(audio.channels);
  for (std::size_t i = 0; i < out.size(); ++i) {
    float sum = 0;
    for (std::size_t c = 0; c < channels; ++c) sum += audio.interleaved[i * channels + c];
    out[i] = sum * (1.0F / static_cast<float>(channels));
  }
  return out;
}

std::string file_name(const AudioKind& kind) {
  std::string name = kind.name;
  for (char& c : name)
    if (c == ' ') c = '_';
  return name + "." + kind.ending;
}

// Returns a folder with one file of every kind, made once.
const TempFolder& corpus() {
  static const TempFolder folder;
  static const bool made = [] {
    for (const AudioKind& kind : audio_kinds())
      write_audio(folder.file(file_name(kind)), kind, kRate, test_signal(kFrames, kind.channels));
    return true;
  }();
  (void)made;
  return folder;
}

std::string path_of(const std::string& kind) { return corpus() / file_name(audio_kind(kind)); }

std::vector<float> head(std::vector<float> v, std::int64_t count) {
  v.resize(static_cast<std::size_t>(count));
  return v;
}

}  // namespace

TEST_CASE("decode: every format gives libsndfile's samples, whatever the block or the window") {
  for (const AudioKind& kind : audio_kinds()) {
    const std::string path = corpus() / file_name(kind);
    const ReadAudio expected = read_audio(path);
    for (const char* options : {"", kSmallBlocks, "block: 100000"}) {
      for (const char* read : {"{}", kWindowed, "{whole: 4096, buffer: 1MiB}"}) {
        CAPTURE(std::string(kind.name));
        CAPTURE(std::string(options));
        CAPTURE(std::string(read));
        const Decoded got = decode(path, options, read);
        REQUIRE_MESSAGE(got.ok(), got.reason());
        CHECK(got.reason() == "");
        CHECK((got.type == SampleType::int16) == kind.narrow);
        CHECK(got.stream.blocks[0]->sample_rate == expected.sample_rate);
        CHECK(got.count() == expected.frames());
        CHECK(got.stream.blocks.back()->file.frames == expected.frames());
        if (kind.lossless) CHECK(got.count() == kFrames);
        if (std::string(options) == kSmallBlocks) CHECK(got.stream.blocks.size() >= 3);
        const bool same = got.type == SampleType::int16 ? got.int16 == expected.int16
                                                        : got.float32 == mean_of(expected);
        CHECK(same);
      }
    }
  }
}

TEST_CASE("decode: int16 is kept only where it is the same as float") {
  for (const AudioKind& kind : audio_kinds()) {
    if (!kind.narrow) continue;
    CAPTURE(std::string(kind.name));
    const std::string path = corpus() / file_name(kind);
    const ReadAudio expected = read_audio(path);
    const Decoded got = decode(path);
    std::int64_t different = 0;
    for (std::size_t i = 0; i < got.int16.size(); ++i)
      if (static_cast<float>(got.int16[i]) / 32768.0F != expected.interleaved[i]) ++different;
    CHECK(different == 0);
  }
}

TEST_CASE("decode: plain 16-bit samples stay where they were read, if one block holds them") {
  const auto is_in_place = [](const std::string& path, const std::string& options) {
    Bench bench("decode", options);
    bench.plan();
    const auto raw = raw_bytes(path, "{}");
    const auto out = bench.single<Waveform>(raw);
    REQUIRE(out.ok());
    const Waveform& block = *out.blocks.at(0);
    CHECK((block.samples.owner.get() == &raw->data) ==
          (block.samples.data > raw->data.data() &&
           block.samples.data < raw->data.data() + raw->size));
    return block.samples.owner.get() == &raw->data;
  };
  CHECK(is_in_place(path_of("wav s16"), "{}"));
  CHECK_FALSE(is_in_place(path_of("wav s16"), "{block: 64KiB}"));
  CHECK(is_in_place(path_of("wav s16"), "{fit: 1000}"));
  CHECK_FALSE(is_in_place(path_of("wav s16"), "{fit: 100000}"));
  CHECK_FALSE(is_in_place(path_of("wav s24"), "{}"));
  CHECK_FALSE(is_in_place(path_of("flac s16"), "{}"));
}

TEST_CASE("decode: several channels become one") {
  for (const char* name : {"wav s16 stereo", "wav s24 5 channels", "flac s16 stereo"}) {
    CAPTURE(std::string(name));
    const std::string path = path_of(name);
    const ReadAudio audio = read_audio(path);
    const auto channels = static_cast<std::size_t>(audio.channels);
    for (const std::size_t pick : {0, 1}) {
      std::vector<float> expected(static_cast<std::size_t>(audio.frames()));
      for (std::size_t i = 0; i < expected.size(); ++i)
        expected[i] = audio.interleaved[i * channels + pick];
      CHECK(decode(path, pick == 0 ? "downmix: left" : "downmix: right").float32 == expected);
    }
    for (std::size_t pick = 0; pick < channels; ++pick) {
      std::vector<float> expected(static_cast<std::size_t>(audio.frames()));
      for (std::size_t i = 0; i < expected.size(); ++i)
        expected[i] = audio.interleaved[i * channels + pick];
      for (const char* block : {"2MiB", "64KiB"})
        CHECK(decode(path, fmt::format("downmix: {}, block: {}", pick + 1, block)).float32 ==
              expected);
    }
    const Decoded beyond = decode(path, fmt::format("downmix: {}", channels + 1));
    CHECK(beyond.stream.entry.outcome == Outcome::failed);
    CHECK(beyond.reason() ==
          fmt::format("has {} channels, and downmix asks for channel {}", channels, channels + 1));
    CHECK(decode(path, "downmix: mean").float32 == mean_of(audio));
  }
  const std::string mono = path_of("wav s16");
  CHECK(decode(mono, "downmix: left").int16 == read_audio(mono).int16);
  CHECK(decode(mono, "downmix: 1").int16 == read_audio(mono).int16);
  const Decoded right = decode(mono, "downmix: right");
  CHECK(right.stream.entry.outcome == Outcome::failed);
  CHECK(right.reason() == "has one channel, and downmix asks for channel 2");
}

TEST_CASE("decode: a channel has one name in the feature settings, and 0 is none") {
  const auto setting = [](const std::string& value) {
    Bench bench("decode", "{downmix: " + value + "}");
    REQUIRE(bench.plan().errors.empty());
    return bench.stage().settings()->find("downmix")->text();
  };
  CHECK(setting("1") == "left");
  CHECK(setting("left") == "left");
  CHECK(setting("2") == "right");
  CHECK(setting("3") == "3");
  CHECK(setting("mean") == "mean");
  for (const auto& [value, message] :
       {std::pair("0",
                  "downmix: 0 is not the number of a channel; channels are counted from 1, and a "
                  "file has at most 1024"),
        {"1025", "downmix: 1025 is not the number of a channel"},
        {"-1", "downmix: -1 is not the number of a channel"},
        {"mid", "is not mean, left, right, each or the number of a channel, counted from 1"},
        {"rihgt", "Did you mean 'right'?"},
        {"[1, 2]", "from 1 is expected; write one value, without the brackets"}}) {
    const std::string options = fmt::format("{{downmix: {}}}", value);
    const char* expected = message;
    CAPTURE(options);
    CHECK_THROWS_WITH_AS(Bench("decode", options), doctest::Contains(expected), ConfigError);
  }
}

TEST_CASE("decode: fit pads with silence or trims to the very sample, across blocks too") {
  struct Row {
    std::string fit;
    std::int64_t count;
  };
  const Row rows[] = {
      {"1", 1},          {"1000", 1000},    {"70000", 70'000}, {"70001", 70'001},
      {"70002", 70'002}, {"98304", 98'304},  // three whole blocks of int16, six of float
      {"1s", 16'000},    {"10s", 160'000},  {"0.5ms", 8}};
  for (const char* kind : {"wav s16", "wav s16 stereo", "flac s16", "ogg vorbis", "mp3"}) {
    const std::string path = path_of(kind);
    const Decoded whole = decode(path);
    for (const Row& row : rows) {
      for (const char* block : {"2MiB", "64KiB"}) {
        for (const double expected_rate : {0.0, 16000.0}) {
          CAPTURE(std::string(kind));
          CAPTURE(row.fit);
          CAPTURE(std::string(block));
          Requirements required;
          if (expected_rate > 0) required.set(requirement::kSampleRate, expected_rate);
          const Decoded got = decode(path, "fit: " + row.fit + ", block: " + block, "{}", required);
          REQUIRE_MESSAGE(got.ok(), got.reason());
          CHECK(got.count() == row.count);
          CHECK(got.type == whole.type);
          const bool same = got.type == SampleType::int16
                                ? got.int16 ==
                                      [&] {
                                        auto v = whole.int16;
                                        v.resize(got.int16.size());
                                        return v;
                                      }()
                                : got.float32 == head(whole.float32, row.count);
          CHECK(same);
          CHECK(got.stream.blocks.back()->file.frames == std::min(row.count, whole.count()));
        }
      }
    }
  }
}

TEST_CASE("decode: a recording that ends early is kept with a warning, or fails") {
  struct Row {
    const char* kind;
    double share;        ///< of the file's bytes
    const char* remark;  ///< its beginning; "" where nothing tells that the file is incomplete
  };
  const Row rows[] = {
      {"wav s16", 0.6, "short: the header promises 140046 bytes, the file has 84027"},
      {"wav s16 stereo", 0.6, "short: the header promises "},
      {"wav float", 0.3, "short: the header promises "},
      {"aiff s16", 0.6, "short: the header promises "},
      {"flac s16", 0.6, "short: the header promises 70001 samples (4.375 s), there are "},
      {"flac s24", 0.6, "short: the header promises 70001 samples (4.375 s), there are "},
      {"ogg vorbis", 0.6, "short: the stream ends without its last page"},
      {"ogg vorbis stereo", 0.98, "short: the stream ends without its last page"},
      {"ogg opus", 0.6, "short: the stream ends without its last page"},
      {"mp3", 0.6, "short: the header promises "},
      {"mp3", 0.2, "short: the header promises "},
      {"mp3 stereo", 0.9, "short: the header promises "},
      {"w64 s16", 0.6, "short: the header promises "},
      {"au s16", 0.5, "short: the header promises 140026 bytes, the file has 70013"},
      {"rf64 s16", 0.5, "short: the header promises "},
  };
  const TempFolder folder;
  for (const Row& row : rows) {
    for (const char* read : {"{}", kWindowed}) {
      CAPTURE(std::string(row.kind));
      CAPTURE(row.share);
      CAPTURE(std::string(read));
      const std::string path = path_of(row.kind);
      const std::string cut = folder / file_name(audio_kind(row.kind));
      const auto size = static_cast<double>(read_bytes(path).size());
      copy_truncated(path, cut, static_cast<std::int64_t>(size * row.share));
      const Decoded whole = decode(path), got = decode(cut, kSmallAndKept, read);
      REQUIRE_MESSAGE(got.ok(), got.reason());
      CAPTURE(got.reason());
      CHECK(got.reason().empty() == std::string(row.remark).empty());
      CHECK(got.reason().starts_with(row.remark));
      if (got.reason().find(" bytes, the file has ") != std::string::npos)
        CHECK(got.reason().ends_with(fmt::format("; {} samples ({:.3f} s) are there", got.count(),
                                                 static_cast<double>(got.count()) / 16000)));
      // The result equals what libsndfile reads, and the beginning of the whole file.
      const ReadAudio expected = read_audio(cut);
      CHECK(got.count() == expected.frames());
      CHECK(static_cast<double>(got.count()) > 0.6 * row.share * kFrames);
      CHECK(got.count() < kFrames);
      const std::int64_t sure = got.count() - 3000;  // the end of a lossy file may sound different
      if (got.type == SampleType::int16)
        CHECK(std::equal(got.int16.begin(), got.int16.begin() + sure, whole.int16.begin()));
      else
        CHECK(head(got.float32, sure) == head(whole.float32, sure));
      const Decoded strict = decode(cut, "truncated: fail", read);
      CHECK(strict.ok() == std::string(row.remark).empty());
      CHECK(strict.reason() == got.reason());
    }
  }
}

TEST_CASE("decode: sizes in a header are not trusted") {
  const std::string good = read_bytes(path_of("wav s16"));
  const Decoded whole = decode(path_of("wav s16"));
  const auto size = static_cast<std::uint32_t>(good.size());
  struct Row {
    const char* what;
    std::uint32_t riff, data;
    std::int64_t frames;
    std::string remark;
  };
  const Row rows[] = {
      {"right", size - 8, size - 44, kFrames, ""},
      {"2^31 - 1", 0x7FFFFFFF, 0x7FFFFFFF - 36, kFrames,
       "short: the header promises 2147483655 bytes, the file has 140046; 70001 samples (4.375 s) "
       "are there"},
      {"not known: 2^32 - 1", 0xFFFFFFFF, 0xFFFFFFFF, kFrames, ""},
      {"not known: only the header's own bytes", 8, 0, kFrames, ""},
      {"only the data size is far too large", size - 8, 0x7FFFFFFF, kFrames,
       "short: the header promises 2147483647 bytes of samples, the file has 140002; 70001 samples "
       "(4.375 s) are there"},
      {"too small", 36 + 20'000, 20'000, 10'000,
       "the header gives 20044 bytes, the 120002 after them are ignored"},
      {"odd", 36 + 20'001, 20'001, 10'000,
       "the header gives 20045 bytes, the 120001 after them are ignored"},
  };
  const TempFolder folder;
  for (const Row& row : rows) {
    for (const char* read : {"{}", kWindowed}) {
      CAPTURE(std::string(row.what));
      CAPTURE(std::string(read));
      std::string bytes = good;
      set_wav_sizes(bytes, row.riff, row.data);
      const Decoded got = decode(folder.write("a.wav", bytes), kSmallAndKept, read);
      REQUIRE_MESSAGE(got.ok(), got.reason());
      CHECK(got.count() == row.frames);
      CHECK(got.reason() == row.remark);
      CHECK(std::equal(got.int16.begin(), got.int16.end(), whole.int16.begin()));
    }
  }
}

TEST_CASE("decode: a FLAC may leave its count of samples open, or lie about it") {
  struct Row {
    std::uint64_t total;
    std::int64_t frames;
    std::string remark;
  };
  const Row rows[] = {
      {0, kFrames, ""},
      {kFrames + 1, kFrames,
       "short: the header promises 70002 samples (4.375 s), there are 70001 (4.375 s)"},
      {80'000'000'000, kFrames,
       "short: the header promises 11280523264 samples (705032.704 s), there are 70001 (4.375 s)"},
  };
  const TempFolder folder;
  for (const char* kind : {"flac s16", "flac s24"}) {
    const Decoded whole = decode(path_of(kind));
    for (const Row& row : rows) {
      for (const char* read : {"{}", kWindowed}) {
        CAPTURE(std::string(kind));
        CAPTURE(row.total);
        CAPTURE(std::string(read));
        std::string bytes = read_bytes(path_of(kind));
        set_flac_total(bytes, row.total);
        const Decoded got = decode(folder.write("a.flac", bytes), kSmallAndKept, read);
        REQUIRE_MESSAGE(got.ok(), got.reason());
        CHECK(got.count() == row.frames);
        CHECK(got.reason() == row.remark);
        CHECK(got.int16 == whole.int16);
        CHECK(got.float32 == whole.float32);
      }
    }
  }
}

TEST_CASE("decode: an MP3 that does not count its frames is read to its end") {
  // libsndfile estimates the length from the first bit rate and stops there: of a recording with a
  // loud beginning and a quiet rest it would return a fifth.
  const TempFolder folder;
  constexpr int kLong = 20 * 44100;
  for (const bool loud_first : {true, false}) {
    CAPTURE(loud_first);
    std::vector<float> samples = test_signal(kLong);
    for (int i = 0; i < kLong; ++i)
      if ((i < kLong / 4) != loud_first) samples[static_cast<std::size_t>(i)] = 0;
    write_vbr_mp3(folder / "whole.mp3", 44100, samples);
    const std::string bytes = read_bytes(folder / "whole.mp3");
    const std::string bare = without_xing_frame(bytes);
    REQUIRE(bare.size() < bytes.size());
    const Decoded whole = decode(folder / "whole.mp3");
    REQUIRE_MESSAGE(whole.ok(), whole.reason());
    CHECK(whole.count() == kLong);
    CHECK(whole.reason() == "");
    for (const char* read : {"{}", kWindowed}) {
      CAPTURE(std::string(read));
      const Decoded got = decode(folder.write("bare.mp3", bare), kSmallBlocks, read);
      REQUIRE_MESSAGE(got.ok(), got.reason());
      CHECK(got.reason() == "");
      // Encoder delay and padding are not removed without the header that states them.
      CHECK(got.count() >= kLong);
      CHECK(got.count() <= kLong + 3 * 1152);
      constexpr std::size_t kDelay = 1105;
      std::int64_t different = 0;
      for (std::size_t i = 4 * 1152; i < static_cast<std::size_t>(kLong); ++i)
        if (got.float32[i + kDelay] != whole.float32[i]) ++different;
      CHECK(different == 0);
    }
    // An ID3v1 tag at the end is not decoded.
    CHECK(decode(folder.write("tag.mp3", bare + "TAG" + std::string(125, 'x')), "", kWindowed)
              .count() <= kLong + 3 * 1152);
  }
}

TEST_CASE("decode: what is no sound file fails with a reason that helps") {
  const std::string wav = read_bytes(path_of("wav s16"));
  std::string noise(5000, '\0');
  for (std::size_t i = 0; i < noise.size(); ++i) noise[i] = static_cast<char>(i * i * 31 + i);
  using namespace std::string_literals;
  struct Row {
    const char* name;
    std::string bytes;
    std::string reason;
  };
  const auto damaged = [](const std::string& kind) {
    return "begins like " + kind +
           " but cannot be decoded: damaged, cut off, or of a variant that is not supported";
  };
  const auto no_frame = [](const std::string& kind) {
    return "begins like " + kind + " but cannot be decoded: no frame of it can be decoded";
  };
  const std::string none = "is not a sound file, or of a kind that cannot be decoded";
  const Row rows[] = {
      {"text.wav", "hello", "is not an audio file (begins with 'hello')"},
      {"one.wav", "R", none},
      {"noise.mp3", noise, none},
      {"zeros.flac", std::string(5000, '\0'), none},
      {"cut.wav", wav.substr(0, 20), damaged("WAV")},
      {"cut.flac", read_bytes(path_of("flac s16")).substr(0, 30), no_frame("FLAC")},
      // libFLAC reports a block of two bytes as lack of memory: that must not fail the run.
      {"block.flac", plain_flac(std::vector<std::int16_t>(5000), {.metadata = "xx"}).bytes,
       "begins like FLAC but cannot be decoded: libFLAC has no memory for it: damaged, or memory "
       "is short"},
      {"cut.ogg", read_bytes(path_of("ogg vorbis")).substr(0, 50), damaged("Ogg")},
      {"cut.aiff", read_bytes(path_of("aiff s16")).substr(0, 20), damaged("AIFF")},
      {"tag.mp3", "ID3\x03\0\0\0\0\0\x0F"s + std::string(100, 'x'), no_frame("MP3")},
      {"film.wav", "\0\0\0\x20"s + "ftypM4A " + noise,
       has_ffmpeg()
           ? "begins like MP4 but cannot be decoded: Invalid data found when processing input"
           : "is MP4 or M4A, which is decoded only by FFmpeg's libraries (Debian: libavformat59) "
             "and a melflow built with their headers; install them, or convert the file, for "
             "example to FLAC"},
      {"nodata.wav", wav.substr(0, 36), damaged("WAV")},
      {"cut.caf", read_bytes(path_of("caf s16")).substr(0, 50'000), damaged("CAF")},
  };
  const TempFolder folder;
  for (const Row& row : rows) {
    for (const char* read : {"{}", kWindowed}) {
      CAPTURE(std::string(row.name));
      const Decoded got = decode(folder.write(row.name, row.bytes), "", read);
      CHECK(got.stream.entry.outcome == Outcome::failed);
      CHECK(got.reason() == row.reason);
    }
  }
}

TEST_CASE("decode: a sound file without samples is skipped, unless samples were promised") {
  const TempFolder folder;
  write_audio(folder / "empty.wav", audio_kind("wav s16"), kRate, {});
  const Decoded empty = decode(folder / "empty.wav");
  CHECK(empty.stream.entry.outcome == Outcome::skipped);
  CHECK(empty.reason() == "holds no samples");
  CHECK(empty.stream.blocks.empty());
  const Decoded padded = decode(folder / "empty.wav", "fit: 1s");
  CHECK(padded.stream.entry.outcome == Outcome::skipped);
  CHECK(padded.reason() == "holds no samples");
  // A recorder that was switched off: libsndfile believes the sizes.
  std::string open = read_bytes(path_of("wav s16"));
  set_wav_sizes(open, 0, 0);
  const Decoded unfinished = decode(folder.write("open.wav", open));
  CHECK(unfinished.stream.entry.outcome == Outcome::failed);
  CHECK(unfinished.reason() ==
        "no sample can be read: the header was never completed, the sizes in it are 0");
  // All samples are cut off.
  copy_truncated(path_of("wav s16"), folder / "cut.wav", 44);
  const Decoded cut = decode(folder / "cut.wav");
  CHECK(cut.stream.entry.outcome == Outcome::failed);
  CHECK(cut.reason() ==
        "no sample can be read: short: the header promises 140046 bytes, the file has 44; 0 "
        "samples (0.000 s) are there");
}

TEST_CASE("decode: a sample that is no finite number fails the file and says which") {
  const float inf = std::numeric_limits<float>::infinity();
  const TempFolder folder;
  for (const char* kind : {"wav float", "wav double", "wav float stereo"}) {
    for (const float bad : {std::nanf(""), inf, -inf}) {
      for (const std::int64_t at : {0, 1, 16'383, 16'384, 16'385, 20'480, 69'999, 70'000}) {
        CAPTURE(std::string(kind));
        CAPTURE(bad);
        CAPTURE(at);
        const int channels = audio_kind(kind).channels;
        std::vector<float> samples = test_signal(kFrames, channels);
        samples[static_cast<std::size_t>(at * channels + channels - 1)] = bad;
        write_audio(folder / "a.wav", audio_kind(kind), kRate, samples);
        const Decoded got = decode(folder / "a.wav", kSmallBlocks);
        CHECK(got.stream.entry.outcome == Outcome::failed);
        CHECK(got.reason() == "sample " + std::to_string(at) + " is not a finite number");
        // After the end of the wanted part it does no harm.
        if (at > 0) CHECK(decode(folder / "a.wav", "fit: " + std::to_string(at)).ok());
      }
    }
  }
  // Large values are valid numbers.
  std::vector<float> loud = test_signal(100);
  loud[50] = 3e38F;
  write_audio(folder / "a.wav", audio_kind("wav float"), kRate, loud);
  CHECK(decode(folder / "a.wav").float32 == loud);
}

TEST_CASE("decode: blocks of slow files are shorter, so that the faster samples fit") {
  Requirements required;
  required.set(requirement::kLowestRate, 8000);
  const TempFolder folder;
  struct Row {
    int rate;
    std::int64_t longest;  ///< samples of a block of 64 KiB of int16; 0: refused
  };
  for (const Row& row :
       {Row{8000, 32'768}, Row{48000, 32'768}, Row{4000, 16'384}, Row{1000, 4096}, Row{999, 0}}) {
    CAPTURE(row.rate);
    write_wav(folder / "a.wav", kFrames, row.rate);
    const Decoded got = decode(folder / "a.wav", kSmallBlocks, "{}", required);
    if (row.longest == 0) {
      CHECK(got.reason() == "is sampled at 999 Hz: too low to be resampled, the least is 1000 Hz");
      continue;
    }
    REQUIRE_MESSAGE(got.ok(), got.reason());
    CHECK(got.stream.blocks[0]->samples.count == row.longest);
    CHECK(got.int16 == read_audio(folder / "a.wav").int16);
  }
}

TEST_CASE(
    "decode: blocks hold a whole number of what the stages after it cut, where it is asked for") {
  const TempFolder folder;
  write_wav(folder / "a.wav", kFrames, kRate);
  const std::vector<std::int16_t> samples = read_audio(folder / "a.wav").int16;
  struct Row {
    std::int64_t multiple, longest;  ///< samples; a block of 64 KiB of int16 holds 32,768
  };
  for (const Row& row : {Row{1000, 32'000}, Row{20'000, 20'000}, Row{32'768, 32'768},
                         Row{32'769, 32'768}, Row{1'000'000, 32'768}}) {
    CAPTURE(row.multiple);
    Requirements required;
    required.set(requirement::kBlockMultiple, row.multiple);
    const Decoded got = decode(folder / "a.wav", kSmallBlocks, "{}", required);
    REQUIRE_MESSAGE(got.ok(), got.reason());
    for (std::size_t i = 0; i + 1 < got.stream.blocks.size(); ++i)
      CHECK(got.stream.blocks[i]->samples.count == row.longest);
    CHECK(got.int16 == samples);
  }
}

TEST_CASE("decode: small files of plain samples are charged by their size, others by a block") {
  Bench bench("decode");
  bench.plan();
  const std::size_t block = 512 * 1024;
  CHECK(bench.stage().output_bound({"a.wav", 100'000}, 0) == BufferPool::rounded(200'000));
  CHECK(bench.stage().output_bound({"a.wav", 10}, 0) == 4096);
  CHECK(bench.stage().output_bound({"a.wav", block}, 0) == block);
  CHECK(bench.stage().output_bound({"a.flac", 100}, 0) == block);
  Bench fit("decode", "{fit: 10s}");
  CHECK(fit.plan().errors.empty());
  CHECK(fit.stage().output_bound({"a.wav", 100'000}, 0) == block);
  Requirements required;
  required.set(requirement::kSampleRate, 4096);
  fit.plan({}, required);
  CHECK(fit.stage().output_bound({"a.mp3", 100}, 0) == BufferPool::rounded(40'960 * 4));
}

TEST_CASE("decode: a fit of nothing is refused, and so are options out of range") {
  for (const char* fit : {"0", "0s", "0ms"}) {
    CAPTURE(std::string(fit));
    Bench bench("decode", std::string("{fit: ") + fit + "}");
    CHECK(bench.plan().errors ==
          std::vector<std::string>{
              "fit: nothing would be left of a recording; give a length or remove it"});
  }
  for (const char* options :
       {"{block: 4KiB}", "{downmix: sum}", "{truncated: ignore}", "{fit: -1}", "{timeout: -1}"}) {
    CAPTURE(std::string(options));
    CHECK_THROWS_AS(Bench("decode", options), ConfigError);
  }
}

TEST_CASE("decode: a large file that is written to while it is decoded fails with its last block") {
  const TempFolder folder;
  const std::string path = folder.file("a.wav");
  write_wav(path, 200'000, kRate);
  for (const bool is_written : {false, true}) {
    const auto raw = raw_bytes(path, kWindowed);
    Bench bench("decode", std::string("{") + kSmallBlocks + "}");
    REQUIRE(bench.plan().errors.empty());
    const AfterFstat after(path, [&] {
      const timespec times[] = {{0, UTIME_OMIT}, {2'000'000'000, 0}};
      if (is_written) CHECK(utimensat(AT_FDCWD, path.c_str(), times, 0) == 0);
    });
    const auto decoded = bench.stream<Waveform, RawBytes>({raw});
    CHECK(decoded.blocks.size() > 1);
    CHECK(decoded.ok() != is_written);
    if (is_written) CHECK(decoded.entry.reason.starts_with("changed while it was read"));
  }
}

}  // namespace melflow::test::decode_test
