#include "stages/audio/decoders/ogg_pages.h"

#include <doctest/doctest.h>

#include <cstring>

#include "tests/support/read_at.h"

namespace melflow::ogg_pages_test {

using test::reader;

namespace {

std::string number(std::uint64_t value, std::size_t bytes) {
  std::string out;
  for (std::size_t i = 0; i < bytes; ++i) out += static_cast<char>(value >> 8 * i);
  return out;
}

// RFC 3533, section 6: the checksum's polynomial is 0x04c11db7, and its own four bytes count as 0.
std::string page(int flags, std::uint64_t granule, std::uint32_t serial, std::uint32_t index,
                 const std::string& body) {
  std::string out = "OggS" + number(0, 1) + number(static_cast<std::uint64_t>(flags), 1) +
                    number(granule, 8) + number(serial, 4) + number(index, 4) + number(0, 4) +
                    number(body.size() / 255 + 1, 1) + std::string(body.size() / 255, '\xFF') +
                    number(body.size() % 255, 1) + body;
  std::uint32_t crc = 0;
  for (const char c : out) {
    crc ^= static_cast<std::uint32_t>(static_cast<unsigned char>(c)) << 24;
    for (int bit = 0; bit < 8; ++bit)
      crc = (crc & 0x80000000U) != 0 ? crc << 1 ^ 0x04c11db7U : crc << 1;
  }
  return out.replace(22, 4, number(crc, 4));
}

constexpr int kBegin = 2, kEnd = 4;

std::string vorbis_head(std::uint32_t serial, std::uint32_t rate = 16000) {
  return page(kBegin, 0, serial, 0,
              "\x01vorbis" + number(0, 4) + number(1, 1) + number(rate, 4) + std::string(14, 'x'));
}

std::string remark(const std::string& bytes, std::int64_t decoded) {
  return ogg_damage(reader(bytes), bytes.size(), decoded, 16000).remark;
}

}  // namespace

TEST_CASE("ogg pages: what of a file is not decoded") {
  const std::string head = vorbis_head(7), second = page(0, 20'000, 7, 1, std::string(3000, 'x')),
                    third = page(0, 50'000, 7, 2, std::string(60'000, 'x')),
                    last = page(kEnd, 64'000, 7, 3, std::string(500, 'x')),
                    whole = head + second + third + last;
  const auto cut = [](const std::string& samples, const std::string& seconds) {
    return "short: the stream ends without its last page, after " + samples + " samples (" +
           seconds + " s); nothing says how many there were";
  };
  const auto damaged = [](int missing, int of) {
    return "damaged: pages are missing or have a wrong check sum, " + std::to_string(missing) +
           " of " + std::to_string(of) + " samples are missing";
  };
  std::string flipped = whole;
  flipped[head.size() + second.size() + 3000] ^= 1;
  const std::string next =
      vorbis_head(8, 8000) + page(kEnd, 16'000, 8, 1, std::string(900, 'x'));  // two seconds
  const std::string opus =
      page(kBegin, 0, 7, 0, "OpusHead\x01\x01" + number(312, 2) + std::string(7, 'x')) +
      page(kEnd, 48'312, 7, 1, std::string(900, 'x'));
  struct Row {
    const char* what;
    std::string bytes;
    std::int64_t decoded;
    std::string remark;
  };
  const Row rows[] = {
      {"whole", whole, 64'000, ""},
      {"the longest last page", head + page(kEnd, 9, 7, 1, std::string(255 * 255 - 1, 'x')), 9, ""},
      {"without the last page", head + second + third, 50'000, cut("50000", "3.125")},
      {"cut in the last page", whole.substr(0, whole.size() - 1), 50'000, cut("50000", "3.125")},
      {"cut in the last page's header", whole.substr(0, whole.size() - 510), 50'000,
       cut("50000", "3.125")},
      {"cut in a page", whole.substr(0, 30'000), 20'000, cut("20000", "1.250")},
      {"cut in the first header", whole.substr(0, 10), 0, cut("0", "0.000")},
      {"something behind", whole + "trailer", 64'000, ""},
      {"no Ogg", "RIFF" + whole, 0, ""},
      {"a bit is wrong", flipped, 20'000, damaged(44'000, 64'000)},
      {"a page is missing", head + second + last, 34'000, damaged(30'000, 64'000)},
      {"something between pages", head + second + "x" + third + last, 64'000, damaged(0, 64'000)},
      {"another stream behind", whole + next, 64'000,
       "holds 2 streams one after the other, of which only the first is decoded: 32000 of 96000 "
       "samples are dropped"},
      {"pictures beside it", page(kBegin, 0, 3, 0, "\x80theora") + whole, 64'000, ""},
      {"pictures begin behind it",
       head + page(kBegin, 0, 3, 0, "\x80theora") + second + third + last, 64'000, ""},
      {"the recording of a stream that ran for an hour",
       head + page(0, 57'600'000, 7, 1, "x") + page(0, 57'616'000, 7, 2, "x") + "x" +
           page(kEnd, 57'632'000, 7, 3, "x"),
       24'000, damaged(8'000, 32'000)},
      {"Opus, in steps of 48 kHz, without what comes before the sound", opus + "x" + opus, 16'000,
       damaged(16'000, 32'000)},
  };
  for (const Row& row : rows) {
    CAPTURE(row.what);
    CHECK(remark(row.bytes, row.decoded) == row.remark);
  }
}

}  // namespace melflow::ogg_pages_test
