#include "stages/reading/sound_header.h"

#include <doctest/doctest.h>

#include <array>
#include <cstring>

using namespace melflow;

namespace {

ReadAt reader(std::string_view bytes) {
  return [bytes](std::uint64_t at, std::span<std::byte> out) -> std::size_t {
    if (at >= bytes.size()) return 0;
    const std::size_t n = std::min(out.size(), bytes.size() - at);
    std::memcpy(out.data(), bytes.data() + at, n);
    return n;
  };
}

std::string with_size(std::string_view kind, std::uint32_t size, std::size_t bytes) {
  std::string out(bytes, 'x');
  out.replace(0, 4, kind);
  for (std::size_t i = 0; i < 4; ++i)
    out[4 + i] = static_cast<char>(size >> (kind == "RIFF" ? 8 * i : 24 - 8 * i));
  return out;
}

std::string remark(const std::string& bytes) { return cut_off_remark(reader(bytes), bytes.size()); }

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
    std::string kind;  ///< "" for no sound file
  };
  using namespace std::string_view_literals;
  const Row rows[] = {
      {"RIFF\x10\0\0\0WAVE"sv, "WAV"},
      {"RF64"sv, "WAV"},
      {"FORM"sv, "AIFF"},
      {"fLaC"sv, "FLAC"},
      {"OggS"sv, "Ogg"},
      {"ID3\x03"sv, "MP3"},
      {"\xFF\xFB\x90\x64"sv, "MP3"},
      {"caff"sv, "CAF"},
      {"\xFF\x1B"sv, ""},
      {"hello, world"sv, ""},
      {""sv, ""},
  };
  for (const Row& row : rows) {
    CAPTURE(row.kind);
    const std::string why = why_not_sound(reader(row.begin));
    if (row.kind.empty())
      CHECK(why == "is no sound file, or of a kind that cannot be decoded");
    else
      CHECK(why == "begins like " + row.kind +
                       " but cannot be decoded: damaged, cut off, or of a variant that is not "
                       "supported");
  }
  CHECK(why_not_sound(reader("\0\0\0\x20"
                             "ftypM4A "sv)) ==
        "is MP4 or M4A, which cannot be decoded; convert it, to FLAC for example");
}

TEST_CASE("sound header: a file shorter than its header promises is remarked") {
  struct Row {
    const char* kind;
    std::uint32_t promised;
    std::size_t bytes;
    std::string remark;
  };
  const Row rows[] = {
      {"RIFF", 992, 1000, ""},
      {"RIFF", 993, 1000, ""},  // a padding byte that is counted but not written
      {"RIFF", 994, 1000, "short: the header promises 1002 bytes, the file has 1000"},
      {"FORM", 994, 1000, "short: the header promises 1002 bytes, the file has 1000"},
      {"FORM", 992, 1000, ""},
      {"RIFF", 100, 1000, ""},  // longer is another matter
      {"RIFF", 0x7FFFFFFF, 50, "short: the header promises 2147483655 bytes, the file has 50"},
      {"RIFF", 0, 1000, ""},  // not known when it was written
      {"RIFF", 0xFFFFFFFF, 1000, ""},
      {"RIFF", 0xFFFFFFFE, 1000, "short: the header promises 4294967302 bytes, the file has 1000"},
      {"fLaC", 5000, 1000, ""},
      {"RIFF", 5000, 12, "short: the header promises 5008 bytes, the file has 12"},
      {"RIFF", 5000, 11, ""},  // no whole header
      {"RIFF", 5000, 8, ""},
  };
  for (const Row& row : rows) {
    CAPTURE(row.kind);
    CAPTURE(row.promised);
    CAPTURE(row.bytes);
    CHECK(remark(with_size(row.kind, row.promised, row.bytes)) == row.remark);
  }
}

TEST_CASE("sound header: a header that was never completed is known by its size of 0") {
  CHECK(is_header_unfinished(reader(with_size("RIFF", 0, 100))));
  CHECK(is_header_unfinished(reader(with_size("FORM", 0, 100))));
  CHECK_FALSE(is_header_unfinished(reader(with_size("RIFF", 36, 44))));
  CHECK_FALSE(is_header_unfinished(reader(with_size("fLaC", 0, 100))));
  CHECK_FALSE(is_header_unfinished(reader("")));
}

TEST_CASE("sound header: an Ogg file that ends without its last page is remarked") {
  const auto page = [](bool is_last, std::size_t bytes) {
    std::string out = "OggS" + std::string(23, '\0');
    out[5] = is_last ? 4 : 0;
    out[26] = static_cast<char>(bytes / 255 + 1);
    out += std::string(bytes / 255, '\xFF') + static_cast<char>(bytes % 255);
    return out + std::string(bytes, 'x');
  };
  const std::string cut = "short: the stream ends without its last page";
  struct Row {
    const char* what;
    std::string bytes;
    std::string remark;
  };
  const std::string whole = page(false, 3000) + page(false, 60'000) + page(true, 500);
  const Row rows[] = {
      {"whole", whole, ""},
      {"only one page", page(true, 10), ""},
      {"the longest last page", page(false, 3000) + page(true, 255 * 255 - 1), ""},
      {"without the last page", page(false, 3000) + page(false, 60'000), cut},
      {"cut in the last page", whole.substr(0, whole.size() - 1), cut},
      {"cut in the last page's header", whole.substr(0, whole.size() - 510), cut},
      {"cut in a page", whole.substr(0, 30'000), cut},
      {"cut in the first header", whole.substr(0, 10), cut},
      {"two streams in a row", whole + whole, ""},
      {"something behind", whole + "trailer", ""},
  };
  for (const Row& row : rows) {
    CAPTURE(std::string(row.what));
    CHECK(remark(row.bytes) == row.remark);
  }
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
    CHECK(is_mp3_without_count(reader(row.bytes)) == row.without_count);
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

// "rate, offset, count" or "none".
std::string plain(const std::string& file) {
  const auto out = plain_samples(std::as_bytes(std::span(file)));
  if (!out) return "none";
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
  // However a file is cut off, with the size as it was or made to fit.
  const std::string whole = wav(format({}) + data);
  for (std::size_t n = 0; n < whole.size(); ++n) {
    CAPTURE(n);
    CHECK(plain(whole.substr(0, n)) == "none");
    if (n < 8) continue;
    CHECK(plain("RIFF" + little(static_cast<std::uint32_t>(n - 8), 4) + whole.substr(8, n - 8)) ==
          "none");
  }
}
