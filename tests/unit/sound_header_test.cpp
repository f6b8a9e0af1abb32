#include "stages/audio/decoders/sound_header.h"

#include <doctest/doctest.h>

#include <cstring>

namespace melflow::sound_header_test {
namespace {

ReadAt reader(std::string_view bytes) {
  return [bytes](std::uint64_t at, std::span<std::byte> out) -> std::size_t {
    if (at >= bytes.size()) return 0;
    const std::size_t n = std::min(out.size(), bytes.size() - at);
    std::memcpy(out.data(), bytes.data() + at, n);
    return n;
  };
}

}  // namespace

TEST_CASE("sound header: which names belong to formats with plain samples") {
  for (const char* name : {"a.wav", "x/A.WAV", "a.b.aiff", "a.aif", "a.au", "a.w64", "a.rf64"}) {
    CAPTURE(name);
    CHECK(has_plain_samples(name));
  }
  for (const char* name :
       {"a.mp3", "a.flac", "a.ogg", "a.opus", "wav", "a.wavx", "a.wav/b", "", "a.", "a.caf"}) {
    CAPTURE(name);
    CHECK_FALSE(has_plain_samples(name));
  }
}

TEST_CASE("sound header: why a file was refused is told from its first bytes") {
  struct Row {
    std::string_view begin;
    std::string kind;  ///< "" for a file that is no sound
  };
  using namespace std::string_view_literals;
  const Row rows[] = {
      {"RIFF\x10\0\0\0WAVE"sv, "WAV"},
      {"RF64"sv, "WAV"},
      {"BW64"sv, "WAV"},
      {".snd"sv, "AU"},
      {"riff\x2E\x91\xCF\x11"sv, "W64"},
      {"NIST_1A\n"sv, "NIST"},
      {"ID3\x04\0\0\0\0\0\x04xxxxfLaC"sv, "FLAC"},
      {"ID3\x04\0\x10\0\0\0\x04xxxx3DI\x04\0\0\0\0\0\x04ID3\x04\0\0\0\0\0\0OggS"sv, "Ogg"},
      {"FORM"sv, "AIFF"},
      {"fLaC"sv, "FLAC"},
      {"OggS"sv, "Ogg"},
      {"ID3\x03"sv, "MP3"},
      {"\xFF\xFB\x90\x64"sv, "MP3"},
      {"caff"sv, "CAF"},
      {"\xFF\x1B\x90"sv, ""},
      {"\xFF\xF1\x50\x80"sv, ""},  // AAC
      {"\xFF\xFB\xF0\x64"sv, ""},
      {"\xFF\xFB\x9C\x64"sv, ""},
      {""sv, ""},
  };
  for (const Row& row : rows) {
    CAPTURE(row.kind);
    const std::string why = why_not_sound(reader(row.begin));
    if (row.kind.empty())
      CHECK(why == "is not a sound file, or of a kind that cannot be decoded");
    else
      CHECK(why == "begins like " + row.kind +
                       " but cannot be decoded: damaged, cut off, or of a variant that is not "
                       "supported");
  }
  CHECK(why_not_sound(reader("<html>\r\n<body>"sv)) ==
        "is not an audio file (begins with '<html>')");
  CHECK(why_not_sound(reader("hello, world"sv)) ==
        "is not an audio file (begins with 'hello, world')");
  CHECK(why_not_sound(reader("hello, \x01world"sv)) ==
        "is not a sound file, or of a kind that cannot be decoded");
  CHECK(why_not_sound(reader("fLaC"), "no frame") ==
        "begins like FLAC but cannot be decoded: no frame");
  CHECK(why_not_sound(reader("\0\0\0\x20"
                             "ftypM4A "sv)) ==
        "is MP4 or M4A, which is decoded only by FFmpeg's libraries (Debian: libavformat59) and a "
        "melflow built with their headers; install them, or convert the file, for example to FLAC");
}

TEST_CASE("sound header: whether an MP3 counts its frames") {
  using namespace std::string_literals;
  const std::string frame = "\xFF\xFB\x90\x64"s;
  const auto tag = [](std::size_t bytes) {
    std::string out = "ID3\x04\0\0"s;
    for (int shift = 21; shift >= 0; shift -= 7) out += static_cast<char>((bytes >> shift) & 0x7F);
    return out + std::string(bytes, 'x');
  };
  const std::string side(32, '\0'), rest(400, '\x55');
  struct Row {
    const char* what;
    std::string bytes;
    bool without_count;
  };
  const Row rows[] = {
      {"Xing with a count", frame + side + "Xing\0\0\0\x0F"s + rest, false},
      {"Info with a count", frame + side + "Info\0\0\0\x01"s + rest, false},
      {"Xing without a count", frame + side + "Xing\0\0\0\x0E"s + rest, true},
      {"VBRI", frame + side + "VBRI" + rest, false},
      {"nothing", frame + side + rest, true},
      {"behind a short tag", tag(100) + frame + side + "Xing\0\0\0\x0F"s + rest, false},
      {"behind a long tag", tag(100'000) + frame + side + "Xing\0\0\0\x0F"s + rest, false},
      {"nothing behind a long tag", tag(100'000) + frame + side + rest, true},
      {"a tag that holds the word", tag(100).replace(50, 8, "Xing\0\0\0\x0F"s) + frame + rest,
       true},
      {"nothing behind a tag", tag(100), false},
      {"no MP3", "RIFF" + rest, false},
      {"one byte", "\xFF", false},
      {"empty", "", false},
  };
  for (const Row& row : rows) {
    CAPTURE(std::string(row.what));
    const ReadAt read = reader(row.bytes);
    CHECK(is_mp3_without_count(read, sound_kind(read).begin) == row.without_count);
  }
}

namespace {

std::string little(std::uint32_t value, std::size_t bytes) {
  std::string out;
  for (std::size_t i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i));
  return out;
}

std::string chunk(std::string_view name, const std::string& body) {
  return std::string(name) + little(static_cast<std::uint32_t>(body.size()), 4) + body +
         std::string(body.size() % 2, '\0');
}

struct Format {
  std::uint32_t tag = 1, channels = 1, rate = 16000, step = 2, bits = 16;
  std::string more{};
};

std::string format(const Format& f) {
  return chunk("fmt ", little(f.tag, 2) + little(f.channels, 2) + little(f.rate, 4) +
                           little(f.rate * f.step, 4) + little(f.step, 2) + little(f.bits, 2) +
                           f.more);
}

std::string wav(const std::string& chunks) { return chunk("RIFF", "WAVE" + chunks); }

// Returns "rate, offset, count" or "none".
std::string plain(const std::string& file) {
  const auto out = plain_samples(std::as_bytes(std::span(file)));
  const auto by_reader = plain_samples(reader(file), file.size());
  REQUIRE(out.has_value() == by_reader.has_value());
  if (!out) return "none";
  CHECK(out->sample_rate == by_reader->sample_rate);
  CHECK(out->offset == by_reader->offset);
  CHECK(out->count == by_reader->count);
  return std::to_string(out->sample_rate) + ", " + std::to_string(out->offset) + ", " +
         std::to_string(out->count);
}

}  // namespace

TEST_CASE("sound header: plain samples are found where nothing speaks against them") {
  using namespace std::string_literals;
  const std::string data = chunk("data", std::string(600, 'x'));
  const std::string guid = "\x01\0\0\0\0\0\x10\0\x80\0\0\xAA\0\x38\x9B\x71"s;
  const std::string more = little(22, 2) + little(16, 2) + little(4, 4);
  struct Row {
    const char* what;
    std::string file;
    std::string expected;
  };
  const Row rows[] = {
      {"canonical", wav(format({}) + data), "16000, 44, 300"},
      {"another rate", wav(format({.rate = 8000}) + data), "8000, 44, 300"},
      {"format with a size of extension", wav(format({.more = little(0, 2)}) + data),
       "16000, 46, 300"},
      {"extensible", wav(format({.tag = 0xFFFE, .more = more + guid}) + data), "16000, 68, 300"},
      {"a list before", wav(format({}) + chunk("LIST", "INFO") + data), "16000, 56, 300"},
      {"of odd length", wav(format({}) + chunk("LIST", "INFOx") + data), "16000, 58, 300"},
      {"a list behind", wav(format({}) + data + chunk("LIST", "INFO")), "16000, 44, 300"},

      {"two lists behind",
       wav(format({}) + data + chunk("LIST", "INFOx") + chunk("bext", std::string(602, '\0'))),
       "16000, 44, 300"},

      {"samples behind those that are counted", wav(format({}) + data + std::string(600, '\1')),
       "none"},
      {"zeros behind them, then samples",
       wav(format({}) + data + std::string(40, '\0') + std::string(600, '\1')), "none"},
      {"samples behind them that look like a chunk", wav(format({}) + data + std::string(600, 'x')),
       "none"},
      {"more behind them than a chunk", wav(format({}) + data + chunk("LIST", "INFO") + "ab"),
       "none"},
      {"two chunks of samples", wav(format({}) + data + data), "none"},
      {"extensible float",
       wav(format({.tag = 0xFFFE, .more = more + "\x03" + guid.substr(1)}) + data), "none"},
      {"extensible with 12 bits that count",
       wav(format({.tag = 0xFFFE, .more = little(22, 2) + little(12, 2) + little(4, 4) + guid}) +
           data),
       "none"},
      {"extensible without its extension", wav(format({.tag = 0xFFFE}) + data), "none"},
      {"A-law", wav(format({.tag = 6}) + data), "none"},
      {"stereo", wav(format({.channels = 2, .step = 4}) + data), "none"},
      {"8 bits", wav(format({.step = 1, .bits = 8}) + data), "none"},
      {"24 bits in 4 bytes", wav(format({.step = 4, .bits = 24}) + data), "none"},
      {"16 bits in 4 bytes", wav(format({.step = 4}) + data), "none"},
      {"a rate of 0", wav(format({.rate = 0}) + data), "none"},
      {"a rate of 2^31", wav(format({.rate = 0x80000000U}) + data), "none"},
      {"no samples", wav(format({}) + chunk("data", "")), "none"},
      {"half a sample", wav(format({}) + chunk("data", "abc")), "none"},
      {"samples before the format", wav(data + format({})), "none"},
      {"no format", wav(data), "none"},
      {"two formats", wav(format({}) + format({.rate = 8000}) + data), "none"},
      {"no data", wav(format({})), "none"},
      {"more in the file than in the header", wav(format({}) + data) + "ab", "none"},
      {"data longer than the file",
       wav(format({}) + "data" + little(602, 4) + std::string(600, 'x')), "none"},
      {"a chunk longer than the file", wav(format({}) + "LIST" + little(0xFFFFFFF0U, 4) + data),
       "none"},
      {"big-endian", "RIFX" + wav(format({}) + data).substr(4), "none"},
      {"no WAVE", chunk("RIFF", "AVI " + format({}) + data), "none"},
      {"empty", "", "none"},
  };
  for (const Row& row : rows) {
    CAPTURE(std::string(row.what));
    CHECK(plain(row.file) == row.expected);
  }
  // A file truncated anywhere, with its original size or an adjusted one.
  const std::string whole = wav(format({}) + data);
  for (std::size_t n = 0; n < whole.size(); ++n) {
    CAPTURE(n);
    CHECK(plain(whole.substr(0, n)) == "none");
    if (n < 8) continue;
    CHECK(plain("RIFF" + little(static_cast<std::uint32_t>(n - 8), 4) + whole.substr(8, n - 8)) ==
          "none");
  }
}

}  // namespace melflow::sound_header_test
