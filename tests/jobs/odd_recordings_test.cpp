// Recordings with wrong sizes, odd bytes between parts or an odd start: their samples are those
// that were written, or a warning tells what is dropped. long/odd_recordings.py tries thousands.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <ogg/ogg.h>
#include <sndfile.h>

#include <algorithm>
#include <cmath>

#include "tests/support/audio_files.h"
#include "tests/support/job.h"
#include "tests/support/plain_flac.h"
#include "tests/support/temp_folder.h"

namespace melflow::test::odd_recordings_test {

using namespace std::string_literals;

namespace {

struct Taken {
  Output out;
  std::map<std::string, std::string> remarks;

  [[nodiscard]] std::vector<float> samples(const std::string& name) const {
    return out.rows_of(name);
  }
  [[nodiscard]] std::string remark(const std::string& name) const {
    const auto found = remarks.find(name);
    return found == remarks.end() ? "" : found->second;
  }
};

// Returns all samples of the recordings in clips/, without the help of FFmpeg.
Taken take(const TempFolder& folder, const std::string& decode = "", const std::string& read = "") {
  const JobResult job = completed(run_job(
      fmt::format(R"(version: 1
workers: 2
graph:
  files: {{stage: file_list, root: "${{DATA}}", include: "**"}}
  read: {{stage: disk_read, from: files{}}}
  decode: {{stage: decode, from: read{}}}
  cut: {{stage: segment, from: decode}}
  rows: {{stage: samples, from: cut}}
  write: {{stage: hdf5_write, from: rows, path: "${{OUT}}", dtype: float32, overwrite: true}}
)",
                  read,
                  decode.find("truncated") == decode.npos ? decode + ", truncated: keep" : decode),
      in_out(folder / "clips", folder / "out.h5")));
  CHECK(job.stage("decode").summary.empty());
  return {read_output(folder / "out.h5"), job.remarks_by_name()};
}

std::string number(std::uint64_t value, std::size_t bytes, bool big) {
  std::string out;
  for (std::size_t i = 0; i < bytes; ++i)
    out += static_cast<char>(value >> 8 * (big ? bytes - 1 - i : i));
  return out;
}

// Where a file written by libsndfile states the size of its samples, and how.
struct SizeField {
  std::size_t at, bytes;
  bool is_big;
  std::uint64_t more;   // more than the samples that it counts
  std::size_t samples;  // offset of their first byte
};

SizeField size_field(const std::string& file) {
  const std::size_t data = file.find("data", 12), ssnd = file.find("SSND", 12);
  if (file.starts_with("RF64")) return {28, 8, false, 0, data + 8};
  if (file.starts_with("riff")) return {data + 16, 8, false, 24, data + 24};
  if (file.starts_with("FORM")) return {ssnd + 4, 4, true, 8, ssnd + 16};
  if (file.starts_with(".snd")) return {8, 4, true, 0, 24};
  if (file.starts_with("caff")) return {data + 4, 8, true, 4, data + 16};
  return {data + 4, 4, false, 0, data + 8};
}

bool is_uncompressed(const AudioKind& kind) {
  const int type = kind.format & SF_FORMAT_TYPEMASK, subtype = kind.format & SF_FORMAT_SUBMASK;
  return kind.lossless && type != SF_FORMAT_FLAC && subtype != SF_FORMAT_ALAC_16;
}

// Makes an Ogg file of packets that end at these samples; one page each.
std::string ogg(const std::vector<std::pair<std::string, std::int64_t>>& packets) {
  ogg_stream_state stream{};
  REQUIRE(ogg_stream_init(&stream, 7) == 0);
  std::string out;
  for (std::size_t i = 0; i < packets.size(); ++i) {
    std::string bytes = packets[i].first;
    ogg_packet packet{};
    packet.packet = reinterpret_cast<unsigned char*>(bytes.data());
    packet.bytes = static_cast<long>(bytes.size());
    packet.b_o_s = i == 0 ? 1 : 0;
    packet.e_o_s = i + 1 == packets.size() ? 1 : 0;
    packet.granulepos = packets[i].second;
    packet.packetno = static_cast<ogg_int64_t>(i);
    REQUIRE(ogg_stream_packetin(&stream, &packet) == 0);
    ogg_page page;
    while (ogg_stream_flush(&stream, &page) != 0) {
      out.append(reinterpret_cast<const char*>(page.header),
                 static_cast<std::size_t>(page.header_len));
      out.append(reinterpret_cast<const char*>(page.body), static_cast<std::size_t>(page.body_len));
    }
  }
  ogg_stream_clear(&stream);
  return out;
}

// Removes the first `count` pages of sound, like a recorder that starts in the middle of a stream;
// also returns the granule position at which they end.
std::pair<std::string, std::int64_t> without_pages(const std::string& file, std::size_t count) {
  ogg_sync_state sync{};
  ogg_sync_init(&sync);
  std::copy(file.begin(), file.end(), ogg_sync_buffer(&sync, static_cast<long>(file.size())));
  ogg_sync_wrote(&sync, static_cast<long>(file.size()));
  std::string out;
  std::int64_t begin = 0;
  ogg_page page;
  for (std::uint32_t kept = 0; ogg_sync_pageout(&sync, &page) == 1;) {
    if (ogg_page_granulepos(&page) > 0 && count > 0) {
      begin = ogg_page_granulepos(&page);
      --count;
      continue;
    }
    const std::string place = number(kept++, 4, false);
    std::copy(place.begin(), place.end(), page.header + 18);
    ogg_page_checksum_set(&page);
    out.append(reinterpret_cast<const char*>(page.header),
               static_cast<std::size_t>(page.header_len));
    out.append(reinterpret_cast<const char*>(page.body), static_cast<std::size_t>(page.body_len));
  }
  ogg_sync_clear(&sync);
  return {out, begin};
}

std::vector<std::int16_t> ramp(std::size_t count) {
  std::vector<std::int16_t> out(count);
  for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<std::int16_t>(i * 7919 % 65536);
  return out;
}

std::string ogg_flac(const PlainFlac& flac, int block) {
  std::vector<std::pair<std::string, std::int64_t>> packets{
      {"\177FLAC\1\0\0\0"s + flac.bytes.substr(0, flac.at[0]), 0}};
  for (std::size_t i = 0; i < flac.at.size(); ++i) {
    const std::size_t end = i + 1 < flac.at.size() ? flac.at[i + 1] : flac.bytes.size();
    packets.emplace_back(flac.bytes.substr(flac.at[i], end - flac.at[i]),
                         static_cast<std::int64_t>(i + 1) * block);
  }
  return ogg(packets);
}

std::string mp3(const TempFolder& folder, std::int64_t frames) {
  write_audio(folder / "made.mp3", audio_kind("mp3"), 16000, test_signal(frames));
  return read_bytes(folder / "made.mp3");
}

}  // namespace

TEST_CASE("odd recordings: a size of the samples that is too small is told, in every container") {
  constexpr std::int64_t kFrames = 6000, kCounted = kFrames / 10;
  const TempFolder folder;
  const std::pair<const char*, std::string> seams[] = {{"none", ""},
                                                       {"zeros", std::string(40, '\0')},
                                                       {"id3", "ID3\4\0\0\0\0\0\1"s},
                                                       {"ape", "APETAGEX"},
                                                       {"letters", "abcdefgh"},
                                                       {"tag", "TAG"},
                                                       {"noise", "\1\2\3\4\5\6\7\10"}};
  std::vector<std::string> names;
  for (const AudioKind& kind : audio_kinds()) {
    if (!is_uncompressed(kind)) continue;
    std::string name = kind.name;
    std::replace(name.begin(), name.end(), ' ', '_');
    write_audio(folder.file(fmt::format("clips/{}-whole.{}", name, kind.ending)), kind, 16000,
                test_signal(kFrames, kind.channels));
    names.push_back(fmt::format("{}-whole.{}", name, kind.ending));
    for (const auto& [seam, bytes] : seams) {
      std::string file = read_bytes(folder / ("clips/" + names.back()));
      const SizeField size = size_field(file);
      const std::uint64_t counted = kCounted * (file.size() - size.samples) / kFrames;
      file.replace(size.at, size.bytes, number(counted + size.more, size.bytes, size.is_big));
      file.replace(size.samples + counted, bytes.size(), bytes);
      folder.write(fmt::format("clips/{}-{}.{}", name, seam, kind.ending), file);
    }
  }
  CHECK(names.size() >= 18);
  for (const char* read : {"", ", whole: 4096, buffer: 4096"}) {
    const Taken got = take(folder, "", read);
    for (const std::string& name : names) {
      const std::vector<float> whole = got.samples(name);
      CHECK_MESSAGE(got.remark(name) == "", name);
      CHECK(whole.size() == kFrames);
      for (const auto& [seam, bytes] : seams) {
        std::string other = name;
        other.replace(other.find("whole"), 5, seam);
        CAPTURE(other);
        CAPTURE(got.remark(other));
        CHECK(got.remark(other).starts_with("ok: decode: the header "));
        CHECK(got.remark(other).ends_with(" ignored"));
        CHECK((got.samples(other) == std::vector<float>(whole.begin(), whole.begin() + kCounted)));
      }
    }
  }
  CHECK(take(folder, ", truncated: fail").remark("wav_s16-none.wav") ==
        "failed: decode: the header counts 1200 bytes of samples, 10800 bytes behind them are no "
        "chunks of the format and are ignored");
}

TEST_CASE("odd recordings: FLAC in Ogg is decoded without FFmpeg, and checked") {
  constexpr int kBlock = 1000;
  const TempFolder folder;
  const auto samples = ramp(50'000);
  const PlainFlac flac = plain_flac(samples, {.block_sizes = {kBlock}});
  PlainFlac less = flac;
  set_flac_total(less.bytes, 20'000);
  std::string damaged = ogg_flac(flac, kBlock);
  damaged[damaged.size() / 2] ^= 1;
  folder.write("clips/a.oga", ogg_flac(flac, kBlock));
  folder.write("clips/less.oga", ogg_flac(less, kBlock));
  folder.write("clips/damaged.oga", damaged);
  folder.write("clips/later.oga", without_pages(ogg_flac(flac, kBlock), 10).first);
  const auto stereo = ramp(40'000);
  folder.write(
      "clips/b.oga",
      ogg_flac(plain_flac(stereo, {.channels = 2, .bits = 24, .block_sizes = {kBlock}}), kBlock));
  for (const char* read : {"", ", whole: 4096, buffer: 4096"}) {
    const Taken got = take(folder, ", downmix: 1", read);
    for (const char* name : {"a.oga", "less.oga"}) {
      CHECK(got.remark(name) ==
            (name == std::string_view("a.oga")
                 ? ""
                 : "ok: decode: longer: the header counts 20000 samples (1.250 s), there are 50000 "
                   "(3.125 s), and all are used"));
      const std::vector<float> all = got.samples(name);
      REQUIRE(all.size() == samples.size());
      for (std::size_t i = 0; i < all.size(); ++i)
        if (all[i] != static_cast<float>(samples[i]) / 32768) FAIL_CHECK("sample " << i);
    }
    CHECK(got.samples("b.oga").size() == 20'000);
    CHECK(got.samples("b.oga").at(7) == static_cast<float>(stereo[14]) / 32768);
    CHECK(got.remark("damaged.oga").starts_with("ok: decode: damaged after "));
    CHECK(got.remark("later.oga") != "");
    CHECK(got.samples("later.oga").size() == 40'000);
  }
}

TEST_CASE("odd recordings: Opus that was cut out of a stream is in time and whole") {
  const TempFolder folder;
  for (const int rate : {48000, 16000, 8000}) {
    write_audio(folder.file("clips/whole.opus"), audio_kind("ogg opus"), rate,
                test_signal(6 * rate));
    const std::string file = read_bytes(folder / "clips/whole.opus");
    std::map<std::string, std::int64_t> begins;  // at 48 kHz
    for (const std::size_t pages : {1, 2}) {
      const auto [later, begin] = without_pages(file, pages);
      begins[folder.write(fmt::format("clips/{}.opus", pages), later)] = begin;
    }
    const Taken got = take(folder);
    const std::vector<float> whole = got.samples("whole.opus");
    CHECK(whole.size() == static_cast<std::size_t>(6 * rate));
    for (const auto& [path, begin] : begins) {
      const std::string name = path.substr(path.rfind('/') + 1);
      CAPTURE(rate);
      CAPTURE(name);
      CHECK(got.remark(name) == "");
      const std::vector<float> end = got.samples(name);
      const auto less = static_cast<std::size_t>(begin * rate / 48000);
      REQUIRE(end.size() == whole.size() - less);
      float most = 0;  // once the decoder has settled after its start
      for (std::size_t i = static_cast<std::size_t>(rate) / 2; i < end.size(); ++i)
        most = std::max(most, std::abs(end[i] - whole[less + i]));
      CHECK(most < 1e-2F);
    }
  }
}

TEST_CASE("odd recordings: an MP3 that begins with something else") {
  const TempFolder folder;
  const std::string good = mp3(folder, 40'000);
  const std::string ape = "APETAGEX"s + number(2000, 4, false) + number(100, 4, false) +
                          number(1, 4, false) + number(0xA0000000, 4, false) +
                          std::string(8, '\0') + std::string(100, 'x');
  folder.write("clips/whole.mp3", good);
  struct Row {
    const char* name;
    std::string before, remark;
  };
  const auto junk = [](std::size_t bytes) {
    return fmt::format(
        "ok: decode: damaged after 0.000 s: its first {} bytes are neither a frame nor a tag",
        bytes);
  };
  const Row rows[] = {{"zeros.mp3", std::string(5000, '\0'), junk(5000)},
                      {"many.mp3", std::string(300'000, '\0'), junk(300'000)},
                      {"ape.mp3", ape, ""},
                      {"id3.mp3", "ID3\4\0\0\0\0\0\12"s + std::string(10, 'x'), ""},
                      {"frame.mp3", good.substr(good.size() / 2, 100), junk(100)}};
  for (const Row& row : rows) folder.write("clips/"s + row.name, row.before + good);
  folder.write("clips/rest.mp3", good.substr(good.size() / 2));
  const Taken got = take(folder), by_window = take(folder, "", ", whole: 4096, buffer: 4096");
  for (const Row& row : rows) {
    CAPTURE(std::string(row.name));
    CHECK(got.remark(row.name) == row.remark);
    CHECK(by_window.remark(row.name) == row.remark);
    CHECK((got.samples(row.name) == got.samples("whole.mp3")));
    CHECK((by_window.samples(row.name) == got.samples("whole.mp3")));
  }
  CHECK(got.remark("rest.mp3").starts_with("ok: decode: damaged after 0.000 s: its first "));
  CHECK(got.samples("rest.mp3").size() > 18'000);
}

TEST_CASE(
    "odd recordings: MP3 in a WAV has the samples of the MP3, and no warning where it is whole") {
  const TempFolder folder;
  std::string frames = without_xing_frame(mp3(folder, 40'000));
  folder.write("clips/a.mp3", frames);
  const std::string head = "WAVEfmt "s + number(30, 4, false) + number(0x55, 2, false) +
                           number(1, 2, false) + number(16000, 4, false) + number(8000, 4, false) +
                           number(1, 2, false) + number(0, 2, false) + number(12, 2, false) +
                           number(1, 2, false) + number(2, 4, false) + number(288, 2, false) +
                           number(1, 2, false) + number(1393, 2, false) + "fact" +
                           number(4, 4, false) + number(50'000, 4, false) + "data";
  frames += std::string(frames.size() % 2, '\0');
  const auto wav = [&](std::size_t counted) {
    const std::string inside = head + number(counted, 4, false) + frames;
    return "RIFF" + number(inside.size(), 4, false) + inside;
  };
  folder.write("clips/a.wav", wav(frames.size()));
  folder.write("clips/less.wav", wav(1000));
  folder.write("clips/cut.wav", wav(frames.size()).substr(0, 5000));
  const Taken got = take(folder);
  CHECK(got.remark("a.wav") == "");
  CHECK(got.samples("a.mp3").size() > 40'000);
  CHECK((got.samples("a.wav") == got.samples("a.mp3")));
  CHECK(got.remark("less.wav") != "");
  CHECK(got.remark("cut.wav") != "");
}

TEST_CASE("odd recordings: channels that cancel each other are told") {
  const TempFolder folder;
  const std::vector<float> mono = test_signal(50'000);
  const auto stereo = [&](float second) {
    std::vector<float> out;
    for (const float v : mono) out.insert(out.end(), {v, second * v});
    return out;
  };
  for (const char* kind : {"wav s16 stereo", "wav float stereo", "flac s16 stereo", "mp3 stereo"}) {
    const AudioKind& k = audio_kind(kind);
    std::string name = kind;
    std::replace(name.begin(), name.end(), ' ', '_');
    write_audio(folder.file("clips/" + name + "-opposite"), k, 16000, stereo(-1));
    write_audio(folder.file("clips/" + name + "-same"), k, 16000, stereo(1));
    write_audio(folder.file("clips/" + name + "-other"), k, 16000, stereo(-0.9F));
  }
  // Long enough to be decoded by several cores.
  std::vector<std::int16_t> opposite = ramp(600'000);
  for (std::size_t i = 0; i < opposite.size(); i += 2) {
    opposite[i] = static_cast<std::int16_t>(opposite[i] / 2);
    opposite[i + 1] = static_cast<std::int16_t>(-opposite[i]);
  }
  folder.write("clips/long-opposite", plain_flac(opposite, {.channels = 2}).bytes);
  write_audio(folder.file("clips/silence-same"), audio_kind("wav s16 stereo"), 16000,
              std::vector<float>(20'000));
  for (const char* options : {"", ", block: 64KiB", ", truncated: fail", ", fit: 20000"}) {
    const Taken got = take(folder, options, ", whole: 4096, buffer: 4096");
    CHECK(got.remarks.size() == 5);
    for (const auto& [name, remark] : got.remarks) {
      CHECK(name.ends_with("-opposite"));
      CHECK(remark ==
            "ok: decode: its channels cancel each other, almost nothing is left in their mean; "
            "downmix: left takes the first one");
    }
  }
  CHECK(take(folder, ", downmix: left").remarks.empty());
}

}  // namespace melflow::test::odd_recordings_test
