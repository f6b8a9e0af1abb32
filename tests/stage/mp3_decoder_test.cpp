// Damaged MP3s give the same samples, however many are read at once.
#include <doctest/doctest.h>

#include <utility>
#include <vector>

#include "stages/audio/decoders/container_end.h"
#include "stages/audio/decoders/sample_reader.h"
#include "tests/support/audio_files.h"
#include "tests/support/temp_folder.h"

namespace melflow::test::mp3_decoder_test {

using namespace std::string_literals;

namespace {

std::string sound(const TempFolder& folder, const char* kind, int rate, std::int64_t frames) {
  const AudioKind& k = audio_kind(kind);
  write_audio(folder / "made.mp3", k, rate, test_signal(frames, k.channels));
  return read_bytes(folder / "made.mp3");
}

// Returns the offsets of the frames of an MP3.
std::vector<std::size_t> mp3_frames(const std::string& mp3) {
  constexpr int kbits[2][15] = {{0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160},
                                {0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320}};
  constexpr int rates[2][3] = {{22050, 24000, 16000}, {44100, 48000, 32000}};
  std::vector<std::size_t> out;
  for (std::size_t at = mp3.find('\xFF'); at + 4 <= mp3.size();) {
    const unsigned second = static_cast<unsigned char>(mp3[at + 1]),
                   third = static_cast<unsigned char>(mp3[at + 2]);
    REQUIRE((second & 0xF6U) == 0xF2U);  // MPEG 1 or 2, Layer III
    const unsigned version = second >> 3U & 1U;
    out.push_back(at);
    at += static_cast<std::size_t>((version == 1 ? 144'000 : 72'000) * kbits[version][third >> 4U] /
                                   rates[version][third >> 2U & 3U]) +
          (third >> 1U & 1U);
  }
  return out;
}

// Returns all samples, read `step` at a time.
std::vector<float> read(const std::string& file, std::int64_t step, std::string& fault) {
  SampleReader reader(SoundFile(SoundInput(std::as_bytes(std::span(file)))), {});
  std::vector<float> block(static_cast<std::size_t>(step)), out;
  while (const auto n = reader.read(reinterpret_cast<std::byte*>(block.data()), step))
    out.insert(out.end(), block.begin(), block.begin() + n);
  fault = reader.fault() ? reader.fault()->what : "";
  return out;
}

}  // namespace

TEST_CASE("MP3: frames of another kind among its own, however many samples are asked for") {
  const TempFolder folder;
  for (const auto& kinds : {std::pair("mp3 stereo", "mp3"), {"mp3", "mp3 stereo"}}) {
    const char* const kind = kinds.first;
    const char* const other_kind = kinds.second;
    CAPTURE(std::string(kind));
    const std::string good = sound(folder, kind, 44100, 44'100);
    const std::string other = sound(folder, other_kind, 16000, 70'000);
    // Inserts two pieces, each too short to count as another recording.
    const std::vector<std::size_t> at = mp3_frames(good), others = mp3_frames(other);
    REQUIRE(at.size() > 30);
    REQUIRE(others.size() > 100);
    const std::string piece = other.substr(others[50], others[62] - others[50]);
    const std::size_t one = at[at.size() / 3], two = at[at.size() / 3 * 2];
    const std::string mixed =
        good.substr(0, one) + piece + good.substr(one, two - one) + piece + good.substr(two);
    std::string none, fault, again;
    const std::vector<float> alone = read(good, 1 << 20, none), first = read(mixed, 1 << 20, fault);
    CHECK(none == "");
    CHECK(fault == "there are bytes that are not a frame");
    CHECK(first.size() > alone.size() - 8 * 1152);
    for (const std::int64_t step : {1, 7, 1000, 1152, 4096}) {
      CAPTURE(step);
      CHECK((read(mixed, step, again) == first));
      CHECK(again == fault);
    }
  }
}

TEST_CASE("MP3: from where on samples may not be at their time") {
  const TempFolder folder;
  const std::string good = sound(folder, "mp3", 44100, 3 * 44100);
  const std::vector<std::size_t> at = mp3_frames(good);
  const auto untimed = [](const std::string& file, std::int64_t step) {
    SampleReader reader(SoundFile(SoundInput(std::as_bytes(std::span(file)))), {});
    std::vector<float> block(static_cast<std::size_t>(step));
    while (reader.read(reinterpret_cast<std::byte*>(block.data()), step) > 0) {
    }
    return std::pair(reader.untimed_from(), reader.fault() ? reader.fault()->what : "");
  };
  const std::size_t k = at.size() / 2;
  std::string header = good;  // of one frame
  header[at[k]] = '\0';
  const std::string noise(700, '\x55'), tag = "TAG" + std::string(125, 'x');
  struct Row {
    const char* what;
    std::string file;
    bool is_moved;
  };
  const Row rows[] = {
      {"whole", good, false},
      {"a header is gone", header, true},
      {"other bytes between two frames", good.substr(0, at[k]) + noise + good.substr(at[k]), true},
      {"a tag there", good.substr(0, at[k]) + tag + good.substr(at[k]), false},
      {"half a tag there", good.substr(0, at[k]) + tag.substr(0, 90) + good.substr(at[k]), true},
      {"a piece is gone", good.substr(0, at[k]) + good.substr(at[k] + 1000), true},
      {"other bytes at the end", good + noise, false},
  };
  for (const Row& row : rows) {
    CAPTURE(std::string(row.what));
    const auto [from, fault] = untimed(row.file, 4096);
    CHECK((from != SoundDecoder::kAllTimed) == row.is_moved);
    CHECK(fault == (row.is_moved ? "there are bytes that are not a frame" : ""));
    if (row.is_moved) {
      const auto frames = static_cast<std::int64_t>(k) - 1;  // the first frame counts the others
      CHECK(from >= frames * 1152 - 2 * 1152);
      CHECK(from <= frames * 1152);
    }
    for (const std::int64_t step : {1, 1000, 1152, 1 << 20})
      CHECK(untimed(row.file, step) == std::pair(from, fault));
  }
}

TEST_CASE("MP3: what libsndfile decodes, with an error in it, however many samples are asked for") {
  const TempFolder folder;
  std::string file = sound(folder, "mp3", 44100, 44'100);
  const std::size_t middle = mp3_frames(file).at(20);
  file.insert(middle, 5000, '\0');  // more than libsndfile skips
  file.replace(4, 4, "ftyp");       // like an MP4, which libsndfile ignores
  std::string fault, again;
  const std::vector<float> first = read(file, 1 << 20, fault);
  CHECK(fault != "");
  CHECK(first.size() >= 15 * 1152);
  for (const std::int64_t step : {1, 7, 1000, 1152, 4096}) {
    CAPTURE(step);
    CHECK((read(file, step, again) == first));
    CHECK(again == fault);
  }
}

TEST_CASE("MP3: at a low rate a third frame that is missing is told, as at a high one") {
  const TempFolder folder;
  for (const int rate : {16000, 44100}) {
    CAPTURE(rate);
    const std::int64_t frame = rate < 32000 ? 576 : 1152;
    const std::string file = sound(folder, "mp3", rate, 70'000);
    const std::vector<std::size_t> frames = mp3_frames(file);
    std::int64_t missing = 0;
    for (std::size_t n = 0; missing <= 3 * frame; ++n) {
      const std::string cut = file.substr(0, n == 0 ? file.size() : frames[frames.size() - n]);
      const auto bytes = std::as_bytes(std::span(cut));
      SoundFile opened{SoundInput(bytes)};
      const SF_INFO info = opened.info();
      const bool is_known = opened.is_count_known();
      SampleReader reader(std::move(opened), {});
      std::vector<float> block(1 << 17);
      while (reader.read(reinterpret_cast<std::byte*>(block.data()), 1 << 17) > 0) {
      }
      missing = info.frames - reader.count();
      CAPTURE(missing);
      SoundInput input(bytes);
      CHECK(damage_of({info, is_known, true}, reader, input.reader(), cut.size())
                .remark.starts_with("short: ") == (missing > 2 * frame));
    }
  }
}

}  // namespace melflow::test::mp3_decoder_test
