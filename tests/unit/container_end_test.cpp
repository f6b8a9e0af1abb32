#include "stages/audio/decoders/container_end.h"

#include <doctest/doctest.h>

#include <cstring>

#include "tests/support/read_at.h"

namespace melflow::container_end_test {

using test::reader;

namespace {

std::string number(std::uint64_t value, std::size_t bytes, bool big = false) {
  std::string out;
  for (std::size_t i = 0; i < bytes; ++i)
    out += static_cast<char>(value >> 8 * (big ? bytes - 1 - i : i));
  return out;
}

std::string with_size(std::string_view kind, std::uint32_t size, std::size_t bytes) {
  std::string out(bytes, 'x');
  out.replace(0, 4, kind);
  out.replace(4, 4, number(size, 4, kind == "FORM"));
  return out;
}

std::string remark(const std::string& bytes) { return cut_off(reader(bytes), bytes.size()).remark; }

std::string short_of(std::uint64_t promised, std::uint64_t has) {
  return "short: the header promises " + std::to_string(promised) + " bytes, the file has " +
         std::to_string(has);
}

}  // namespace

TEST_CASE("container end: a file shorter than its header promises is remarked") {
  struct Row {
    const char* kind;
    std::uint32_t promised;
    std::size_t bytes;
    std::string remark;
  };
  const Row rows[] = {
      {"RIFF", 992, 1000, ""},
      {"RIFF", 993, 1000, ""},  // a padding byte that is counted but not written
      {"RIFF", 994, 1000, short_of(1002, 1000)},
      {"RIFX", 994, 1000, ""},  // big-endian: read as 3.8e9, see below
      {"FORM", 994, 1000, short_of(1002, 1000)},
      {"FORM", 992, 1000, ""},
      {"RIFF", 100, 1000, ""},  // a small excess is tags, or bytes that programs forget to count
      {"RIFF", 0x7FFFFFFF, 50, short_of(2147483655, 50)},
      {"RIFF", 0, 1000, ""},  // the size was unknown when it was written
      {"RIFF", 0xFFFFFFFF, 1000, ""},
      {"RIFF", 0xFFFFFFFE, 1000, short_of(4294967302, 1000)},
      {"fLaC", 5000, 1000, ""},
      {"RIFF", 5000, 12, short_of(5008, 12)},
      {"RIFF", 5000, 11, ""},  // incomplete header
      {"RIFF", 5000, 8, ""},
  };
  for (const Row& row : rows) {
    CAPTURE(row.kind);
    CAPTURE(row.promised);
    CAPTURE(row.bytes);
    if (std::string(row.kind) == "RIFX")
      CHECK(remark("RIFX" + number(994, 4, true) + std::string(992, 'x')) == short_of(1002, 1000));
    else
      CHECK(remark(with_size(row.kind, row.promised, row.bytes)) == row.remark);
  }
  // Bytes after the end are samples where a size wrapped around; tags and a few zeros may come
  // after any file, if nothing follows them.
  const std::string wav =
      "RIFF" + number(112, 4) + "WAVEdata" + number(100, 4) + std::string(100, 'x');
  const auto left_out = [](std::size_t bytes) {
    return "the header gives 120 bytes, the " + std::to_string(bytes) + " after them are ignored";
  };
  CHECK(remark(wav + std::string(4096, '\1')) == left_out(4096));
  CHECK(remark(wav + "\1") == left_out(1));
  const std::string id3 = std::string("ID3\4\0\0\0\0\1\0", 10) + std::string(128, 'y');
  for (const std::string& harmless :
       {"TAG" + std::string(125, 'y'), id3, id3 + "TAG" + std::string(125, 'y'),
        std::string(4096, '\0'), "LIST" + number(4, 4) + "INFO"}) {
    CHECK(remark(wav + harmless) == "");
    CHECK(remark(wav + harmless + std::string(9000, '\1')) != "");
  }
  CHECK(remark(wav + std::string(4097, '\0')) == left_out(4097));
}

TEST_CASE("container end: samples behind those that the header counts are remarked") {
  const auto file = [](std::uint32_t samples, const std::string& behind, bool big = false) {
    return (big ? "FORM" : "RIFF") + number(12 + samples + behind.size(), 4, big) +
           (big ? "AIFFSSND" : "WAVEdata") + number(samples, 4, big) + std::string(samples, 'x') +
           behind;
  };
  const std::string info = "LIST" + number(300, 4) + std::string(300, 'y');
  const auto left_out = [](std::uint64_t samples, std::uint64_t bytes) {
    return "the header counts " + std::to_string(samples) + " bytes of samples, " +
           std::to_string(bytes) + " bytes behind them are no chunks of the format and are ignored";
  };
  for (const bool big : {false, true}) {
    CHECK(remark(file(100, std::string(312'400, '\1'), big)) == left_out(100, 312'400));
    CHECK(remark(file(100, std::string(64, '\1'), big)) == left_out(100, 64));
    CHECK(remark(file(100, std::string(2, '\1'), big)) == left_out(100, 2));
    CHECK(remark(file(100, std::string(4000, '\0'), big)) == "");
    // Zeros are padding if nothing follows them.
    CHECK(remark(file(100, std::string(40, '\0') + std::string(312'400, '\1'), big)) ==
          left_out(100, 312'440));
    CHECK(remark(file(100, (big ? "SSND" : "data") + number(300, 4, big) + std::string(300, 'y'),
                      big)) ==
          "holds a second chunk of samples, and only one of the two is decoded");
    // A padding byte is 0.
    CHECK(remark(file(99, std::string(1, '\0'), big)) == "");
    CHECK(remark(file(99, std::string(1, '\1'), big)) == left_out(99, 1));
  }
  CHECK(remark(file(100, info)) == "");
  CHECK(remark(file(101, number(0, 1) + info)) == "");
  CHECK(remark(file(101, info)) == "");  // without the padding byte
  CHECK(remark(file(100, info + std::string(500, '\1'))) == left_out(100, 500));
}

TEST_CASE("container end: sizes of 64 bits, other headers and the size of the samples") {
  const std::string guid = "riff\x2E\x91\xCF\x11\xA5\xD6\x28\xDB\x04\xC1" + number(0, 2);
  const auto rf64 = [](std::uint64_t riff, std::uint64_t data) {
    return "RF64" + number(0xFFFFFFFF, 4) + "WAVEds64" + number(28, 4) + number(riff, 8) +
           number(data, 8) + number(0, 8) + number(0, 4) + "data" + number(0xFFFFFFFF, 4);
  };
  const std::string nist =
      "NIST_1A\n   1024\nchannel_count -i 2\nsample_count -i 1000\nsample_n_bytes -i 2\n";
  const auto wav = [](std::uint32_t data) {
    return "RIFF" + number(0xFFFFFFFF, 4) + "WAVEabcd" + number(3, 4) + "xxx" + number(0, 1) +
           "data" + number(data, 4);
  };
  // A block of text, then one of samples.
  const std::string voc = "Creative Voice File\x1A" + number(26, 2) + number(0x010A, 2) +
                          number(0x1129, 2) + "\5" + number(3, 3) + "abc" + "\x9" +
                          number(12 + 951, 3) + std::string(12, 'x');
  struct Row {
    const char* what;
    std::string head;
    std::size_t bytes;
    std::string remark;
  };
  const Row rows[] = {
      {"RF64", rf64(5'000'000'000, 4'999'999'000), 1000, short_of(5'000'000'008, 1000)},
      {"RF64, whole", rf64(992, 944), 1000, ""},
      {"RF64 of no size, the samples' size", rf64(0, 1944), 1000,
       "short: the header promises 1944 bytes of samples, the file has 944"},
      {"RF64 of no size", rf64(~std::uint64_t{0}, 944), 1000, ""},
      {"BW64", "BW" + rf64(1992, 1944).substr(2), 1000, short_of(2000, 1000)},
      {"W64", guid + number(2000, 8), 1000, short_of(2000, 1000)},
      {"W64, whole", guid + number(1000, 8), 1000, ""},
      {"AU", ".snd" + number(24, 4, true) + number(1976, 4, true) + std::string(12, 'x'), 1000,
       short_of(2000, 1000)},
      {"AU, little-endian", "dns." + number(24, 4) + number(1976, 4) + std::string(12, 'x'), 1000,
       short_of(2000, 1000)},
      {"AU of unknown length",
       ".snd" + number(24, 4, true) + number(0xFFFFFFFF, 4) + std::string(12, 'x'), 1000, ""},
      {"NIST", nist, 3000, short_of(5024, 3000)},
      {"NIST, whole", nist, 5024, ""},
      {"VOC, whole", voc, 1000, ""},
      {"VOC, cut off", voc, 990, short_of(1000, 990)},
      {"VOC with more behind its samples", voc, 1010,
       "the header gives 1000 bytes, the 10 after them are ignored"},
      {"data beyond the file", wav(2000), 1000,
       "short: the header promises 2000 bytes of samples, the file has 968"},
      {"data of unknown length", wav(0xFFFFFFFF), 1000, ""},
      {"data to the end", wav(968), 1000, ""},
      {"data beyond it by a byte", wav(969), 1000,
       "short: the header promises 969 bytes of samples, the file has 968"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.what);
    CHECK(remark(row.head + std::string(row.bytes - row.head.size(), 'x')) == row.remark);
  }
}

TEST_CASE("container end: a header that was never completed is known by a size of 0") {
  const auto is_unfinished = [](const std::string& bytes) {
    return is_header_unfinished(reader(bytes), bytes.size());
  };
  CHECK(is_unfinished(with_size("RIFF", 0, 100)));
  CHECK(is_unfinished(with_size("FORM", 0, 100)));
  CHECK_FALSE(is_unfinished(with_size("RIFF", 36, 44)));
  CHECK_FALSE(is_unfinished(with_size("fLaC", 0, 100)));
  CHECK_FALSE(is_unfinished(""));
  // The stated size of the samples is 0, which is true only if nothing but valid chunks follows.
  const auto wav = [](const std::string& behind) {
    return "RIFF" + number(4 + 8 + behind.size(), 4) + "WAVEdata" + number(0, 4) + behind;
  };
  CHECK(is_unfinished(wav(std::string(100, '\x12'))));
  CHECK(is_unfinished(wav("LIST" + number(200, 4) + std::string(100, 'x'))));
  CHECK_FALSE(is_unfinished(wav("")));
  CHECK_FALSE(is_unfinished(wav("LIST" + number(4, 4) + "INFO" + "fact" + number(0, 4))));
}

TEST_CASE("container end: how much is lost is known by the samples that the header counts") {
  const auto wav = [](std::uint32_t riff, std::uint32_t data, const std::string& rest) {
    return "RIFF" + number(riff, 4) + "WAVEdata" + number(data, 4) + rest;
  };
  const auto second = "data" + number(500, 4) + std::string(500, 'x');
  const auto asf = [](std::uint64_t size, std::uint32_t flags) {
    using namespace std::string_literals;
    return "\x30\x26\xB2\x75\x8E\x66\xCF\x11\xA6\xD9\x00\xAA\x00\x62\xCE\x6C"s +
           std::string(14, 'x') + std::string(16, 'y') + number(40, 8) + std::string(16, 'y') +
           "\xA1\xDC\xAB\x8C\x47\xA9\xCF\x11\x8E\xE4\x00\xC0\x0C\x20\x53\x65"s + number(104, 8) +
           std::string(16, 'z') + number(size, 8) + std::string(40, 'z') + number(flags, 4) +
           std::string(12, 'z') + std::string(826, 's');
  };
  struct Row {
    const char* what;
    std::string bytes;
    double lost;
  };
  const Row rows[] = {
      {"whole", wav(1020 - 8, 1000, std::string(1000, 'x')), 0},
      {"a quarter", wav(1020 - 8, 1000, std::string(750, 'x')), 0.25},
      {"a tag behind the samples", wav(5000, 1000, std::string(1000, 'x')), 0},
      {"a size of RIFF alone", wav(2012, 0xFFFFFFFF, std::string(1000, 'x')), 0.5},
      {"bytes behind the samples", wav(1020 - 8, 1000, std::string(2000, 'x')), 0.5},
      {"a second chunk", wav(1528 - 8, 1000, std::string(1000, 'x') + second), 508.0 / 1508},
      {"as SoX writes to a pipe", wav(0x7FFFF024, 0x7FFFF000, std::string(1000, 'x')), 0},
      {"ASF", asf(1000, 2), 0},
      {"ASF, cut off", asf(2000, 2), 0.5},
      {"ASF of a broadcast", asf(2000, 3), 0},
      {"ASF of no size", asf(0, 2), 0},
  };
  for (const Row& row : rows) {
    CAPTURE(row.what);
    const Damage got = cut_off(reader(row.bytes), row.bytes.size());
    CAPTURE(got.remark);
    CHECK(got.lost == doctest::Approx(row.lost).epsilon(0.01));
  }
}

}  // namespace melflow::container_end_test
