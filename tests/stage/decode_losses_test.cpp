// Files that contain more than a decoder returns silently: everything is decoded, or a warning says
// how much is missing, whatever the block size and the way of reading.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sndfile.h>
#include <unistd.h>

#include <cstring>

#include "stages/audio/decoders/sound_file.h"
#include "stages/facts.h"
#include "stages/files/unique_fd.h"
#include "tests/stage/bench.h"
#include "tests/support/audio_files.h"
#include "tests/support/plain_flac.h"
#include "tests/support/temp_folder.h"

namespace melflow::test::decode_losses_test {

using namespace std::string_literals;

namespace {

struct Decoded {
  Outcome outcome = Outcome::failed;
  std::string reason;
  std::string bytes;  ///< of the samples
  SampleType type = SampleType::float32;
  int rate = 0;
  [[nodiscard]] std::int64_t count() const {
    return static_cast<std::int64_t>(bytes.size() / size_of(type));
  }
};

// What is lost must not hide what else differs, so all of it is kept where a test does not say.
std::string with_losses(const std::string& options) {
  if (options.find("truncated:") != options.npos) return options;
  return options.empty() ? "truncated: keep" : options + ", truncated: keep";
}

Decoded decode(const std::string& path, const std::string& options, const std::string& read = "{}",
               const Requirements& required = {}) {
  auto file = std::make_shared<FileRef>();
  file->path = path;
  file->size = read_bytes(path).size();
  Bench reader("disk_read", read), bench("decode", "{" + with_losses(options) + "}");
  const auto raw = reader.single<RawBytes>(std::shared_ptr<const FileRef>(std::move(file)));
  REQUIRE_MESSAGE(raw.ok(), raw.entry.reason);
  REQUIRE(bench.plan({}, required).errors.empty());
  const auto got = bench.stream<Waveform, RawBytes>({raw.blocks.at(0)});
  Decoded out{got.entry.outcome, got.entry.reason, {}};
  for (const auto& block : got.blocks) {
    out.bytes.append(reinterpret_cast<const char*>(block->samples.data), block->samples.bytes());
    out.type = block->samples.type;
    out.rate = block->sample_rate;
  }
  return out;
}

// Varies all settings that must not matter. With `truncated: fail` a warning becomes a failure.
Decoded decode_all_ways(const std::string& path, const std::string& options = "") {
  Decoded first = decode(path, options);
  const std::string more = options.empty() ? "" : options + ", ";
  for (const char* block : {"block: 64KiB", "block: 65540", "block: 100000", "block: 8MiB"}) {
    for (const char* read : {"{}", "{whole: 4096, buffer: 4096}", "{whole: 4096, buffer: 1MiB}"}) {
      CAPTURE(std::string(block));
      CAPTURE(std::string(read));
      const Decoded again = decode(path, more + block, read);
      CHECK(again.outcome == first.outcome);
      CHECK(again.reason == first.reason);
      CHECK(again.count() == first.count());
      CHECK((again.bytes == first.bytes));
    }
  }
  if (first.outcome == Outcome::ok && options.find("truncated:") == options.npos) {
    const Decoded strict = decode(path, more + "truncated: fail");
    CHECK((strict.outcome == Outcome::ok) == first.reason.empty());
    CHECK(strict.reason == first.reason);
  }
  return first;
}

// Returns the first number after `text` in a reason.
std::int64_t number_behind(const std::string& reason, const std::string& text) {
  const std::size_t at = reason.find(text);
  return at == reason.npos ? -1 : std::atoll(reason.c_str() + at + text.size());
}

std::vector<std::int16_t> ramp(std::size_t count, int step) {
  std::vector<std::int16_t> out(count);
  for (std::size_t i = 0; i < count; ++i)
    out[i] = static_cast<std::int16_t>(static_cast<int>(i) * step);
  return out;
}

std::string bytes_of(const std::vector<std::int16_t>& samples) {
  return {reinterpret_cast<const char*>(samples.data()), 2 * samples.size()};
}

std::string id3(std::size_t bytes) {
  std::string out = "ID3\x04\0\0"s;
  for (int shift = 21; shift >= 0; shift -= 7) out += static_cast<char>((bytes >> shift) & 0x7F);
  return out + std::string(bytes, '\0');
}

constexpr std::int64_t kFrames = 70'001;

std::string sound(const TempFolder& folder, const char* kind, int rate = 16000,
                  std::int64_t frames = kFrames) {
  const AudioKind& k = audio_kind(kind);
  const std::string path = folder / (std::string("made.") + k.ending);
  write_audio(path, k, rate, test_signal(frames, k.channels));
  return read_bytes(path);
}

// Returns what the process writes to stderr while `body` runs.
template <class F>
std::string stderr_of(const TempFolder& folder, F&& body) {
  const UniqueFd kept(::dup(STDERR_FILENO));
  {
    const UniqueFd file(
        ::open((folder / "stderr").c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    REQUIRE(::dup2(file.get(), STDERR_FILENO) >= 0);
  }
  body();
  REQUIRE(::dup2(kept.get(), STDERR_FILENO) >= 0);
  return read_bytes(folder / "stderr");
}

}  // namespace

TEST_CASE("decode losses: one wrong bit in an Ogg file, and how many samples that costs") {
  const TempFolder folder;
  for (const char* kind : {"ogg vorbis", "ogg vorbis stereo", "ogg opus"}) {
    const std::string good = sound(folder, kind);
    const Decoded whole = decode_all_ways(folder.write("a.ogg", good));
    CHECK(whole.reason == "");
    for (const double share : {0.3, 0.5, 0.7}) {
      CAPTURE(std::string(kind));
      CAPTURE(share);
      std::string bad = good;
      bad[static_cast<std::size_t>(share * static_cast<double>(bad.size()))] ^= 0x10;
      const Decoded got = decode_all_ways(folder.write("b.ogg", bad));
      CHECK(got.outcome == Outcome::ok);
      CHECK(got.reason.starts_with("damaged: pages are missing or have a wrong check sum, "));
      CHECK(got.count() < whole.count());
      CHECK(number_behind(got.reason, "check sum, ") == whole.count() - got.count());
    }
  }
}

TEST_CASE("decode losses: of streams in a row the first is decoded, and the others are counted") {
  const TempFolder folder;
  for (const char* kind : {"ogg vorbis", "ogg opus"}) {
    CAPTURE(std::string(kind));
    const std::string first = sound(folder, kind), second = sound(folder, kind, 8000, 40'000);
    const Decoded alone = decode(folder.write("a.ogg", first), "");
    const Decoded got = decode_all_ways(folder.write("b.ogg", first + second));
    CHECK((got.bytes == alone.bytes));
    CHECK(
        got.reason.starts_with("holds 2 streams one after the other, of which only the first is "
                               "decoded: "));
    CHECK(number_behind(got.reason, "decoded: ") == 80'000);
  }
}

TEST_CASE("decode losses: MP3 files in a row are decoded to the end") {
  const TempFolder folder;
  for (const char* kind : {"mp3", "mp3 stereo"}) {
    CAPTURE(std::string(kind));
    const std::string first = sound(folder, kind);
    const Decoded alone = decode(folder.write("a.mp3", first), "");
    for (const std::string& between : {""s, id3(30'000), "TAG" + std::string(125, ' ')}) {
      const Decoded got = decode_all_ways(folder.write("b.mp3", first + between + first));
      CAPTURE(got.reason);
      CHECK(got.outcome == Outcome::ok);
      CHECK(got.reason == "");
      CHECK(got.bytes.substr(0, 4 * 60'000) == alone.bytes.substr(0, 4 * 60'000));
      // Padding and delay of the second recording count as sound.
      CHECK(got.count() >= 2 * kFrames);
      CHECK(got.count() <= 2 * kFrames + 5 * 1152);
    }
    // Frames with another rate belong to another recording.
    const std::string other = sound(folder, kind, 44100, 2 * 44100);
    const Decoded got = decode_all_ways(folder.write("c.mp3", first + other));
    CAPTURE(got.reason);
    CHECK(got.reason.starts_with("changes after 4."));
    CHECK(got.reason.find("from there on it has 44100 Hz, ") != got.reason.npos);
    const std::int64_t left_out = number_behind(got.reason, "channels: ");
    CHECK(left_out >= 2 * 44100 - 1152);
    CHECK(left_out <= 2 * 44100 + 5 * 1152);
  }
}

TEST_CASE("decode losses: tags and garbage in an MP3, without a word of the library's own") {
  const TempFolder folder;
  const std::string bare = without_xing_frame([&] {
    write_vbr_mp3(folder / "vbr.mp3", 44100, test_signal(5 * 44100));
    return read_bytes(folder / "vbr.mp3");
  }());
  const std::string counted = read_bytes(folder / "vbr.mp3");
  const std::string other = sound(folder, "mp3");
  std::string ape = "APETAGEX" + std::string(24, '\x01') + std::string(3000, 'x') + "APETAGEX" +
                    std::string(24, '\x02') + "TAG" + std::string(125, 'y');
  std::string garbage;
  for (int i = 0; i < 5000; ++i) garbage += static_cast<char>(i * i * 31 % 127);
  CHECK(stderr_of(folder, [&] {
          for (const std::string& good : {bare, counted}) {
            const Decoded alone = decode_all_ways(folder.write("a.mp3", good));
            CHECK(alone.reason == "");
            CHECK(alone.count() >= 5 * 44100);
            for (const std::string& tagged : {id3(5000) + good, id3(10) + id3(100) + good,
                                              good + "TAG" + std::string(125, 'x'), good + ape}) {
              const Decoded got = decode_all_ways(folder.write("b.mp3", tagged));
              CHECK(got.outcome == Outcome::ok);
              CHECK(got.reason == "");
              CHECK(got.count() == alone.count());
              CHECK((got.bytes == alone.bytes));
            }
            // The length without decoding: stated or estimated.
            const SoundFile sound{SoundInput(std::as_bytes(std::span(good)))};
            REQUIRE(sound.ok());
            CHECK(sound.is_count_known() == (good == counted));
            CHECK(sound.info().frames > alone.count() / 4);
            CHECK(sound.info().frames < alone.count() * 4);
            // Truncated within a frame: detected by the count, if there is one, else by the frame.
            const std::string cut =
                decode_all_ways(folder.write("f.mp3", good.substr(0, good.size() / 2))).reason;
            CAPTURE(cut);
            CHECK(cut.starts_with(good == counted ? "short: the header promises 2"
                                                  : "damaged after 2."));
            if (good == bare)
              CHECK(cut.find(" s: the file ends in a frame, of which ") != cut.npos);
            // Garbage in the middle: what follows is decoded.
            const Decoded got = decode_all_ways(folder.write(
                "c.mp3", good.substr(0, good.size() / 2) + garbage + good.substr(good.size() / 2)));
            CHECK(got.outcome == Outcome::ok);
            CHECK(got.count() > alone.count() - 4 * 1152);
            // Resynchronises also where bytes look like a frame of another kind.
            const std::size_t half = good.find("\xFF\xFB"s, good.size() / 2);
            const std::string frame = other.substr(other.find("\xFF\xF3"s, other.size() / 2), 2000);
            const Decoded mixed = decode_all_ways(
                folder.write("e.mp3", good.substr(0, half) + frame + good.substr(half)));
            CHECK(mixed.reason.starts_with("damaged after 2."));
            CHECK(mixed.count() > alone.count() - 4 * 1152);
            // Changed bits that make frames lead anywhere.
            for (std::size_t at = 1000; at < good.size(); at += good.size() / 7) {
              std::string bad = good;
              for (std::size_t i = 0; i < 40 && at + i < bad.size(); ++i) bad[at + i] ^= 0x5A;
              decode_all_ways(folder.write("d.mp3", bad));
            }
          }
        }) == "");
}

TEST_CASE("decode losses: a FLAC whose header is not that of its frames") {
  const TempFolder folder;
  const auto samples = ramp(200'000, 7);
  const std::string good = plain_flac(samples).bytes;
  const std::string tagged = plain_flac(samples, {.metadata = std::string(46, 'x')}).bytes;
  const Decoded whole = decode_all_ways(folder.write("a.flac", good));
  CHECK(whole.reason == "");
  CHECK(decode_all_ways(folder.write("b.flac", tagged)).reason == "");
  std::string other = good;
  const std::size_t rate = 18, block = 42;  // offsets of the rate and of the second block
  other[rate] = other[rate + 1] = 0;
  std::string twice = tagged;
  twice[block] = '\x80';  // it is the last block, of the first one's kind
  const std::pair<std::string, const char*> rows[] = {
      {other,
       "damaged after 0.000 s: its header says 0 Hz, 1 channels, 16 bits, its frames 16000 Hz, 1 "
       "channels, 16 bits"},
      {twice, "damaged after 0.000 s: its header describes the stream more than once"}};
  for (const auto& [bytes, reason] : rows) {
    const Decoded got = decode_all_ways(folder.write("c.flac", bytes));
    CHECK(got.outcome == Outcome::ok);
    CHECK(got.reason == reason);
    CHECK((got.bytes == whole.bytes));
    CHECK(got.rate == 16000);
  }
}

TEST_CASE("decode losses: a FLAC frame that is wrong or missing is silence, and said to be") {
  const TempFolder folder;
  const PlainFlac good = plain_flac(ramp(50'000, 7), {.block_sizes = {1000}});
  std::string bad = good.bytes;
  bad[good.at[20] + 500] ^= 1;
  bad[good.at[30] + 500] ^= 1;
  const Decoded got = decode_all_ways(folder.write("a.flac", bad));
  CHECK(got.outcome == Outcome::ok);
  CHECK(got.count() == 50'000);
  CHECK(
      got.reason ==
      "damaged after 1.250 s: the check sum of a frame is wrong, 2000 samples are silence instead");
  CHECK(
      decode(folder / "a.flac", "fit: 25000").reason ==
      "damaged after 1.250 s: the check sum of a frame is wrong, 1000 samples are silence instead");
  CHECK(decode(folder / "a.flac", "fit: 20000").reason == "");
  // A missing frame.
  const Decoded gap = decode_all_ways(
      folder.write("b.flac", good.bytes.substr(0, good.at[20]) + good.bytes.substr(good.at[22])));
  CHECK(gap.count() == 50'000);
  CHECK(gap.reason ==
        "damaged after 1.250 s: frames are missing, 2000 samples are silence instead");
  std::string open = read_bytes(folder / "b.flac");
  set_flac_total(open, 0);
  CHECK(decode_all_ways(folder.write("c.flac", open)).reason == gap.reason);
  // Too many missing samples to be replaced by silence.
  const PlainFlac large = plain_flac(ramp(400'000, 7), {.block_sizes = {1000}});
  const Decoded hole = decode_all_ways(folder.write(
      "d.flac", large.bytes.substr(0, large.at[20]) + large.bytes.substr(large.at[320])));
  CHECK(hole.count() == 150'000);
  CHECK(hole.reason ==
        "damaged after 1.250 s: frames are missing, 50000 samples are silence instead, "
        "250000 of 400000 samples are missing");
}

TEST_CASE("decode losses: a FLAC that holds more than its header counts is decoded to its end") {
  const TempFolder folder;
  const auto samples = ramp(50'000, 7);
  for (const std::uint64_t total : {1, 1000, 30'000, 49'999}) {
    CAPTURE(total);
    std::string bytes = plain_flac(samples, {.block_sizes = {1000}}).bytes;
    set_flac_total(bytes, total);
    const Decoded got = decode_all_ways(folder.write("a.flac", bytes));
    CHECK(got.reason ==
          fmt::format("longer: the header counts {} samples ({:.3f} s), there are 50000 (3.125 s), "
                      "and all are used",
                      total, static_cast<double>(total) / 16000));
    CHECK((got.bytes == bytes_of(samples)));
    // Tags at the end are not part of the sound.
    CHECK(decode_all_ways(folder.write("b.flac", id3(700) + bytes + "TAG" + std::string(125, 'x')))
              .count() == 50'000);
  }
}

TEST_CASE("decode losses: a FLAC that becomes another on the way") {
  const TempFolder folder;
  const PlainFlac first = plain_flac(ramp(50'000, 7), {.block_sizes = {1000}});
  struct Row {
    PlainFlacOptions then;
    const char* what;
  };
  const Row rows[] = {
      {{.channels = 2, .block_sizes = {1000}, .first = 50}, "16000 Hz, 2 channels, 16 bits"},
      {{.rate = 48000, .block_sizes = {1000}, .first = 50}, "48000 Hz, 1 channels, 16 bits"},
      {{.bits = 24, .block_sizes = {1000}, .first = 50}, "16000 Hz, 1 channels, 24 bits"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.what);
    const auto more = ramp(20'000 * static_cast<std::size_t>(row.then.channels), 3);
    const PlainFlac second = plain_flac(more, row.then);
    std::string bytes = first.bytes + second.bytes.substr(second.at[0]);
    set_flac_total(bytes, 70'000);
    const Decoded got = decode_all_ways(folder.write("a.flac", bytes));
    CHECK((got.bytes == bytes_of(ramp(50'000, 7))));
    CHECK(got.reason ==
          fmt::format("changes after 3.125 s: from there on it has {} instead of 16000 "
                      "Hz, 1 channels, 16 bits: 20000 samples are dropped",
                      row.what));
  }
}

TEST_CASE("decode losses: FLAC of any bits, which libsndfile refuses") {
  const TempFolder folder;
  const auto samples = ramp(20'000, 11);
  for (const int bits : {8, 12, 16, 20, 24, 32}) {
    CAPTURE(bits);
    const PlainFlac file = plain_flac(samples, {.bits = bits, .block_sizes = {1000}});
    const Decoded got = decode_all_ways(folder.write("a.flac", file.bytes));
    REQUIRE_MESSAGE(got.outcome == Outcome::ok, got.reason);
    CHECK(got.reason == "");
    CHECK((got.type == SampleType::int16) == (bits <= 16));
    REQUIRE(got.count() == 20'000);
    std::int64_t wrong = 0;
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const int kept = bits < 16 ? samples[i] & ~((1 << (16 - bits)) - 1) : samples[i];
      if (got.type == SampleType::int16) {
        std::int16_t value = 0;
        std::memcpy(&value, got.bytes.data() + 2 * i, 2);
        wrong += value != kept ? 1 : 0;
      } else {
        float value = 0;
        std::memcpy(&value, got.bytes.data() + 4 * i, 4);
        wrong += value != static_cast<float>(kept) / 32768.0F ? 1 : 0;
      }
    }
    CHECK(wrong == 0);
  }
  // The header's description of the samples is not trusted.
  std::string lies = plain_flac(samples, {.block_sizes = {1000}}).bytes;
  lies[20] = static_cast<char>(lies[20] | 1);  // 24 bits
  lies[21] = static_cast<char>(0x70 | (lies[21] & 0x0F));
  CHECK((decode_all_ways(folder.write("a.flac", lies)).bytes == bytes_of(samples)));
}

TEST_CASE("decode losses: a WAV is the same file however it is read") {
  const TempFolder folder;
  const std::string good = sound(folder, "wav s16");
  const Decoded whole = decode(folder.write("a.wav", good), "");
  const auto with_chunks = [&](const std::string& chunks, const std::string& fmt) {
    std::string out = good;
    out.replace(12, 24, fmt + chunks);
    set_wav_sizes(out, static_cast<std::uint32_t>(out.size() - 8), 2 * kFrames);
    return out;
  };
  const std::string fmt = good.substr(12, 24);
  const std::string odd_guid = "fmt \x28\0\0\0\xFE\xFF"s + fmt.substr(10, 14) +
                               "\x16\0\x10\0\x04\0\0\0\x01\0\0\0"s + "any twelve..";
  std::string many;
  for (int i = 0; i < 20'000; ++i) many += "junk\x02\0\0\0ab"s;
  for (const std::string& file :
       {with_chunks("", fmt), with_chunks("", odd_guid), with_chunks(many, fmt)}) {
    const Decoded got = decode_all_ways(folder.write("b.wav", file));
    CHECK_MESSAGE(got.outcome == Outcome::ok, got.reason);
    CHECK(got.reason == "");
    CHECK((got.bytes == whole.bytes));
  }
}

TEST_CASE("decode losses: a WAV whose bytes a frame are not those of its channels and bits") {
  const TempFolder folder;
  const std::string good = sound(folder, "wav s16");
  const Decoded whole = decode(folder.write("a.wav", good), "");
  const auto with = [&](int channels, int step, int bits) {
    std::string out = good;  // offsets of the numbers in a header whose first chunk is fmt
    out[22] = static_cast<char>(channels);
    out[32] = static_cast<char>(step);
    out[34] = static_cast<char>(bits);
    return folder.write("b.wav", out);
  };
  struct Row {
    int channels, step, bits;
    const char* reason;  // "": as good as any
  };
  const Row rows[] = {
      {1, 2, 12, ""},  // 12 bits in two bytes
      {1, 2, 7, "2 bytes a frame (block align), and 1 channel of 7 bits, which are 1"},
      {1, 2, 8, "2 bytes a frame (block align), and 1 channel of 8 bits, which are 1"},
      {1, 3, 16, "3 bytes a frame (block align), and 1 channel of 16 bits, which are 2"},
      {1, 4, 16, "4 bytes a frame (block align), and 1 channel of 16 bits, which are 2"},
      {1, 4, 24, "4 bytes a frame (block align), and 1 channel of 24 bits, which are 3"},
      {2, 2, 16, "2 bytes a frame (block align), and 2 channels of 16 bits, which are 4"}};
  for (const Row& row : rows) {
    CAPTURE(std::string(row.reason));
    const Decoded got = decode_all_ways(with(row.channels, row.step, row.bits));
    if (*row.reason == '\0') {
      CHECK(got.outcome == Outcome::ok);
      CHECK(got.reason == "");
      CHECK((got.bytes == whole.bytes));
      continue;
    }
    CHECK(got.outcome == Outcome::failed);
    CHECK(got.reason.find(row.reason) != std::string::npos);
  }
  // Where there is no such number, the bits count.
  const Decoded open = decode_all_ways(with(1, 0, 16));
  CHECK(open.outcome == Outcome::ok);
  CHECK(open.reason ==
        "its header says 0 bytes a frame (block align), and 1 channel of 16 bits, which are 2");
  CHECK((open.bytes == whole.bytes));
}

TEST_CASE(
    "decode losses: of a WAV with another one behind it, whole or cut off, the first counts") {
  const TempFolder folder;
  const std::string good = sound(folder, "wav s16");
  const Decoded whole = decode(folder.write("a.wav", good), "");
  for (const std::string& more : {good, good.substr(0, 30), std::string("RIFF")}) {
    CAPTURE(more.size());
    const Decoded got = decode_all_ways(folder.write("b.wav", good + more));
    CHECK(got.outcome == Outcome::ok);
    CHECK(got.reason == fmt::format("the header gives {} bytes, the {} after them are ignored",
                                    good.size(), more.size()));
    CHECK((got.bytes == whole.bytes));
  }
}

TEST_CASE("decode losses: a WAV whose samples' size is 0, and BW64") {
  const TempFolder folder;
  std::string open = sound(folder, "wav s16");
  set_wav_sizes(open, static_cast<std::uint32_t>(open.size() - 8), 0);
  const Decoded none = decode_all_ways(folder.write("a.wav", open));
  CHECK(none.outcome == Outcome::failed);
  CHECK(none.reason ==
        "no sample can be read: the header was never completed, the sizes in it are 0");
  std::string rf64 = sound(folder, "rf64 s16");
  const Decoded expected = decode(folder.write("b.wav", rf64), "");
  const Decoded bw64 = decode_all_ways(folder.write("c.wav", rf64.replace(0, 2, "BW")));
  CHECK(bw64.outcome == Outcome::ok);
  CHECK((bw64.bytes == expected.bytes));
  CHECK(bw64.count() == kFrames);
}

TEST_CASE("decode losses: rates as far apart as headers can say, and a fit of no sample") {
  const TempFolder folder;
  Requirements required;
  required.set(requirement::kLowestRate, 8000);
  for (const int rate : {1, 60, 300'000'000, 2'147'483'647}) {
    CAPTURE(rate);
    write_wav(folder / "a.wav", 1000, rate);
    for (const char* read : {"{}", "{whole: 4096, buffer: 4096}"}) {
      for (const char* options : {"", "downmix: left"}) {
        const Decoded got = decode(folder / "a.wav", options, read, required);
        CHECK(got.reason == (rate < 1000 ? fmt::format("is sampled at {} Hz: too low to be "
                                                       "resampled, the least is 1000 Hz",
                                                       rate)
                                         : ""));
        if (rate >= 1000) CHECK(got.rate == rate);
      }
    }
    const Decoded fit = decode(folder / "a.wav", "fit: 5ms");
    CHECK((fit.outcome == Outcome::failed) == (rate <= 60));
    CHECK(fit.reason ==
          (rate <= 60 ? fmt::format("is sampled at {} Hz, where fit is less than one sample", rate)
                      : ""));
  }
}

TEST_CASE("decode losses: what costs more than a tenth fails unless it is to be kept") {
  const TempFolder folder;
  std::vector<std::int16_t> samples = ramp(100'000, 7);
  const std::string wav = sound(folder, "wav s16"), mp3 = sound(folder, "mp3", 16000, 500'000);
  const PlainFlac flac = plain_flac(samples, {.block_sizes = {1000}});
  const auto without = [&flac](std::size_t blocks) {
    return flac.bytes.substr(0, flac.at[20]) + flac.bytes.substr(flac.at[20 + blocks]);
  };
  const auto wrong = [&flac](std::size_t blocks) {
    std::string out = flac.bytes;
    for (std::size_t i = 0; i < blocks; ++i) out[flac.at[20 + i] + 500] ^= 1;
    return out;
  };
  const auto uncounted = [](std::string bytes) {
    set_flac_total(bytes, 0);
    return bytes;
  };
  const auto cut = [](const std::string& bytes, double share) {
    return bytes.substr(
        0, bytes.size() - static_cast<std::size_t>(share * static_cast<double>(bytes.size())));
  };
  const auto followed = [&wav](std::size_t bytes) { return wav + std::string(bytes, 'x'); };
  const std::string bare = without_xing_frame(mp3);
  const auto zeros_in_it = [&bare](std::size_t at, std::size_t bytes) {
    return std::string(bare).replace(at, bytes, bytes, '\0');
  };
  struct Row {
    const char* what;
    std::string less, more;  ///< of which less or more than a tenth is lost
    double least, most;      ///< the share [%] that is lost of `more`
  };
  std::vector<Row> rows{
      {"FLAC with a gap", without(9), without(11), 11, 11},
      {"FLAC with a gap and no count", uncounted(without(9)), uncounted(without(11)), 11, 11},
      {"FLAC with wrong frames", wrong(9), wrong(11), 11, 11},
      {"FLAC with wrong frames and no count", uncounted(wrong(9)), uncounted(wrong(11)), 11, 11},
      {"WAV with bytes behind it", followed(15'000), followed(16'000), 10.2, 10.3},
      {"MP3 without a count, zeros in it", zeros_in_it(bare.size() / 3, bare.size() / 20),
       zeros_in_it(bare.size() / 3, bare.size() / 4), 20, 35},
      {"MP3 without a count, zeros at its end",
       zeros_in_it(bare.size() - bare.size() / 14, bare.size() / 14),
       zeros_in_it(bare.size() / 2, bare.size() - bare.size() / 2), 45, 55},
      {"MP3 with bytes before it", std::string(bare.size() / 20, 'x') + bare,
       std::string(bare.size() / 5, 'x') + bare, 15, 18}};
  for (const char* kind : {"wav s16", "wav s16 stereo", "wav float", "aiff s16", "au s16",
                           "w64 s16", "rf64 s16", "flac s16", "mp3", "mp3 stereo"}) {
    const std::string whole = sound(folder, kind);
    rows.push_back({kind, cut(whole, 0.05), cut(whole, 0.15), 13, 20});
  }
  for (const Row& row : rows) {
    CAPTURE(std::string(row.what));
    for (const bool is_more : {false, true}) {
      const std::string path = folder.write("a.sound", is_more ? row.more : row.less);
      const Decoded kept = decode_all_ways(path, "truncated: keep");
      CHECK(kept.outcome == Outcome::ok);
      CHECK(kept.reason != "");
      CHECK(decode(path, "truncated: fail").outcome == Outcome::failed);
      const Decoded got =
          is_more ? decode(path, "truncated: tenth") : decode_all_ways(path, "truncated: tenth");
      CAPTURE(got.reason);
      if (!is_more) {
        CHECK(got.outcome == Outcome::ok);
        CHECK(got.reason == kept.reason);
        CHECK((got.bytes == kept.bytes));
        continue;
      }
      CHECK(got.outcome == Outcome::failed);
      CHECK(decode(path, "truncated: tenth, block: 64KiB", "{whole: 4096, buffer: 4096}").reason ==
            got.reason);
      CHECK(got.reason.starts_with(kept.reason + "; "));
      CHECK(got.reason.ends_with(
          "% of it is lost, more than a tenth (truncated: keep uses the rest)"));
      const double lost = std::atof(got.reason.c_str() + kept.reason.size() + 2);
      CHECK(lost >= row.least);
      CHECK(lost <= row.most);
    }
  }
  // Sizes as SoX writes them to a pipe, of a file that is whole.
  std::string piped = wav;
  set_wav_sizes(piped, 0x7FFFF024, 0x7FFFF000);
  const Decoded all = decode(folder.write("a.wav", piped), "truncated: tenth");
  CHECK(all.outcome == Outcome::ok);
  CHECK(all.count() == kFrames);
  CHECK(all.reason.starts_with("short: the header promises 2147479596 bytes, "));
  // Of what is wanted of a recording.
  const std::string half = folder.write("a.wav", cut(wav, 0.5));
  CHECK(decode(half, "truncated: tenth, fit: 34000").reason == "");
  CHECK(decode(half, "truncated: tenth, fit: 36000").reason.starts_with("short: "));
  CHECK(decode(half, "truncated: tenth, fit: 36000").outcome == Outcome::ok);
  CHECK(decode(half, "truncated: tenth, fit: 40000").outcome == Outcome::failed);
  // It is the default.
  Bench bench("decode", "{}");
  CHECK(bench.stage().settings()->find("truncated")->text() == "tenth");
}

TEST_CASE("decode losses: a thousand channels become one") {
  const TempFolder folder;
  const AudioKind kind{"wide", "wav", SF_FORMAT_WAV | SF_FORMAT_PCM_24, 1024, false, true};
  write_audio(folder / "a.wav", kind, 16000, test_signal(3000, 1024));
  const Decoded got = decode_all_ways(folder / "a.wav");
  CHECK(got.reason == "");
  CHECK(got.count() == 3000);
}

}  // namespace melflow::test::decode_losses_test
