// Compares FFmpeg's decoding in melflow with its own program on the same files.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <map>

#include "stages/audio/decoders/sound_decoder.h"
#include "tests/support/audio_files.h"
#include "tests/support/job.h"
#include "tests/support/skip.h"
#include "tests/support/temp_folder.h"

namespace melflow::test::ffmpeg_test {
namespace {

bool is_here() { return has_ffmpeg() && std::system("ffmpeg -version > /dev/null 2>&1") == 0; }

void ffmpeg(const std::string& arguments) {
  const std::string command = "ffmpeg -nostdin -v error -y " + arguments;
  REQUIRE_MESSAGE(std::system(command.c_str()) == 0, command);
}

// Runs a pipeline that writes the samples of the recordings in `clips`.
JobResult run(const TempFolder& folder, const std::string& decode = "") {
  return run_job(fmt::format(R"(version: 1
graph:
  files: {{stage: file_list, root: "${{DATA}}", include: "**"}}
  read: {{stage: disk_read, from: files}}
  decode: {{stage: decode, from: read{}}}
  cut: {{stage: segment, from: decode}}
  rows: {{stage: samples, from: cut}}
  write: {{stage: hdf5_write, from: rows, path: "${{OUT}}", overwrite: true}}
)",
                             decode),
                 in_out(folder / "clips", folder / "out.h5"));
}

std::vector<float> floats_of(const std::string& path) {
  const std::string bytes = read_bytes(path);
  std::vector<float> out(bytes.size() / sizeof(float));
  std::memcpy(out.data(), bytes.data(), out.size() * sizeof(float));
  return out;
}

}  // namespace

TEST_CASE("FFmpeg: every kind gives the samples that FFmpeg's program gives") {
  if (!is_here()) return skip("FFmpeg is not here, or the program was built without it");
  const TempFolder folder;
  write_audio(folder.file("mono.wav"), audio_kind("wav s16"), 16000, test_signal(100'000));
  write_audio(folder.file("stereo.wav"), audio_kind("wav s16 stereo"), 44100,
              test_signal(90'000, 2));
  write_audio(folder.file("phone.wav"), audio_kind("wav s16"), 8000, test_signal(40'000));
  struct Row {
    const char* name;
    const char* source;
    const char* codec;
  };
  const Row rows[] = {{"a.m4a", "mono", "aac"},        {"b.m4a", "stereo", "aac"},
                      {"c.m4a", "stereo", "alac"},     {"d.webm", "stereo", "libopus"},
                      {"e.webm", "mono", "libvorbis"}, {"f.wma", "stereo", "wmav2"},
                      {"g.aac", "mono", "aac"},        {"h.oga", "mono", "flac"},
                      {"i.mka", "mono", "pcm_s16le"},  {"j.wv", "stereo", "wavpack"},
                      {"k.mp4", "mono", "aac"},        {"l.mov", "stereo", "pcm_s16le"},
                      {"m.mkv", "mono", "flac"},       {"n.3gp", "mono", "aac"},
                      {"o.tta", "stereo", "tta"},      {"p.voc", "mono", "pcm_s16le"},
                      {"q.voc", "stereo", "pcm_s16le"}};
  const auto is_video = [](std::string_view name) {
    return name.ends_with(".mp4") || name.ends_with(".mov") || name.ends_with(".mkv");
  };
  constexpr const char* kPicture = "-f lavfi -i color=s=16x16:r=5:d=1 -c:v mpeg4";
  std::size_t made = 0;
  for (const Row& row : rows) {
    const std::string path = folder.file(std::string("clips/") + row.name);
    if (std::system(fmt::format("ffmpeg -nostdin -v quiet -y -i '{}' {} -c:a {} '{}'",
                                folder / (row.source + std::string(".wav")),
                                is_video(row.name) ? kPicture : "", row.codec, path)
                        .c_str()) != 0) {
      MESSAGE("not made here: " << row.name);  // this FFmpeg has no such encoder
      std::remove(path.c_str());
      continue;
    }
    ++made;
    ffmpeg(fmt::format("-i '{}' -f f32le '{}'", path, folder / (row.name + std::string(".raw"))));
  }
  REQUIRE(made >= 5);
  for (const char* options : {"", ", block: 64KiB, downmix: left", ", downmix: mean"}) {
    const JobResult job = completed(run(folder, options));
    CHECK(job.report.counts.ok == made);
    CHECK(job.remarks_by_name().empty());
    for (const auto& [name, text] : job.remarks_by_name()) MESSAGE(name << ": " << text);
    CHECK(job.stage("decode").summary.size() == 1);
    const Output out = read_output(folder / "out.h5");
    for (const Row& row : rows) {
      CAPTURE(std::string(row.name));
      const std::string raw = folder / (row.name + std::string(".raw"));
      if (std::system(("test -f '" + raw + "'").c_str()) != 0) continue;
      const std::vector<float> all = floats_of(raw), got = out.rows_of(row.name);
      const std::size_t channels = row.source == std::string("stereo") ? 2 : 1;
      REQUIRE(got.size() == all.size() / channels);
      const bool is_first = std::strstr(options, "left") != nullptr;
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < got.size(); ++i) {
        float expected = all[i * channels];
        if (channels == 2 && !is_first) expected = (expected + all[2 * i + 1]) * 0.5F;
        if (got[i] != expected) ++wrong;
      }
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("FFmpeg: a file that is cut off is ok with a warning, or fails; none is silently short") {
  if (!is_here()) return skip("FFmpeg is not here, or the program was built without it");
  const TempFolder folder;
  write_audio(folder.file("mono.wav"), audio_kind("wav s16"), 16000, test_signal(200'000));
  for (const char* arguments : {"-c:a aac -movflags +faststart '{}'", "-c:a libopus '{}'"}) {
    const std::string name = std::strstr(arguments, "aac") != nullptr ? "a.m4a" : "b.webm";
    const std::string whole = folder.file("whole/" + name);
    ffmpeg(fmt::format("-i '{}' ", folder / "mono.wav") +
           fmt::format(fmt::runtime(arguments), whole));
    copy_truncated(whole, folder.file("clips/" + name), -8000);
  }
  copy_truncated(folder / "whole/a.m4a", folder.file("clips/c.m4a"), 40);
  folder.write("clips/list.m3u8", "#EXTM3U\n#EXTINF:1,\n" + (folder / "whole/a.m4a") + "\n");
  const JobResult job = completed(run(folder));
  const auto remarks = job.remarks_by_name();
  CHECK(remarks.size() == 4);
  CHECK(remarks.at("a.m4a").starts_with("ok: decode: damaged after 11.5"));
  CHECK(remarks.at("b.webm").starts_with("ok: decode: damaged after 11.5"));
  CHECK(remarks.at("b.webm").ends_with("s: ends, and its header promises 12.508 s"));
  CHECK(remarks.at("c.m4a") ==
        "failed: decode: begins like MP4 but cannot be decoded: there is no sound in it");
  // A list that names other files is not a recording.
  CHECK(remarks.at("list.m3u8") == "failed: decode: is not an audio file (begins with '#EXTM3U')");
}

TEST_CASE("FFmpeg: every place to cut an MP4 is noticed, also between two packets") {
  if (!is_here()) return skip("FFmpeg is not here, or the program was built without it");
  const TempFolder folder;
  write_audio(folder.file("mono.wav"), audio_kind("wav s16"), 16000, test_signal(50'000));
  const std::string whole = folder.file("whole.m4a");
  ffmpeg(fmt::format("-i '{}' -c:a aac -movflags +faststart '{}'", folder / "mono.wav", whole));
  constexpr std::size_t kCuts = 600;  // more than the bytes of a packet
  for (std::size_t i = 0; i < kCuts; ++i)
    copy_truncated(whole, folder.file(fmt::format("clips/{:03}.m4a", i)),
                   -2000 - static_cast<std::int64_t>(i));
  const JobResult job = completed(run(folder));
  const auto remarks = job.remarks_by_name();
  CHECK(remarks.size() == kCuts);
  std::size_t between = 0;
  for (const auto& [name, text] : remarks)
    if (text.find(": ends after ") != text.npos) ++between;
  CHECK(between > 0);
  CHECK(between < kCuts / 50);
}

TEST_CASE("FFmpeg: a recording of which more than a tenth is lost fails") {
  if (!is_here()) return skip("FFmpeg is not here, or the program was built without it");
  const TempFolder folder;
  write_audio(folder.file("mono.wav"), audio_kind("wav s16"), 16000, test_signal(200'000));
  struct Row {
    std::string name, arguments;
    double begin, end;  ///< share of the bytes that are cut out, or zeros
    bool is_cut;
    bool is_kept;
  };
  const std::string wma = "-ar 44100 -c:a wmav2", aac = "-c:a aac",
                    m4a = "-c:a aac -movflags +faststart";
  const std::vector<Row> rows{{"a.wma", wma, 0.8, 1, true, false},
                              {"b.wma", wma, 0.93, 1, true, true},
                              {"c.wma", wma, 0.4, 0.7, true, false},
                              {"d.wma", wma, 0.4, 0.6, false, false},
                              {"e.webm", "-c:a libvorbis", 0.8, 1, true, false},
                              {"f.m4a", m4a, 0.8, 1, true, false},
                              {"g.m4a", m4a, 0.95, 1, true, true},
                              {"h.m4a", m4a, 0.5, 0.7, false, false},
                              {"i.m4a", m4a, 0.5, 0.53, false, true},
                              {"j.aac", aac, 0.4, 0.7, false, false},
                              {"k.aac", aac, 0.4, 0.43, false, true},
                              {"l.aac", aac, 0.5, 1, false, false},
                              {"m.tta", "-c:a tta", 0.5, 0.8, false, false},
                              {"n.voc", "-c:a pcm_s16le", 0.5, 0.7, false, false}};
  std::size_t made = 0;
  for (const Row& row : rows) {
    const std::string whole = folder.file("whole/" + row.name);
    if (std::system(fmt::format("ffmpeg -nostdin -v quiet -y -i '{}' {} '{}'", folder / "mono.wav",
                                row.arguments, whole)
                        .c_str()) != 0) {
      MESSAGE("not made here: " << row.name);
      continue;
    }
    ++made;
    std::string bytes = read_bytes(whole);
    const auto at = [&bytes](double share) {
      return static_cast<std::size_t>(share * static_cast<double>(bytes.size()));
    };
    const std::size_t begin = at(row.begin), count = at(row.end) - begin;
    folder.write("clips/" + row.name,
                 row.is_cut ? bytes.erase(begin, count) : bytes.replace(begin, count, count, '\0'));
  }
  REQUIRE(made >= 5);
  const auto remarks = completed(run(folder)).remarks_by_name();
  CHECK(remarks.size() == made);
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const auto remark = remarks.find(row.name);
    if (remark == remarks.end()) continue;
    CAPTURE(remark->second);
    CHECK(remark->second.starts_with(row.is_kept ? "ok: decode: " : "failed: decode: "));
    CHECK(remark->second.ends_with(
              "% of it is lost, more than a tenth (truncated: keep uses the rest)") ==
          !row.is_kept);
  }
  for (const auto& [name, remark] : completed(run(folder, ", truncated: keep")).remarks_by_name())
    CHECK_MESSAGE(remark.starts_with("ok: decode: "), name << ": " << remark);
}

TEST_CASE("FFmpeg: of a VOC every block comes, or it fails") {
  const TempFolder folder;
  const auto block = [](char kind, const std::string& content) {
    return std::string(1, kind) + static_cast<char>(content.size()) +
           static_cast<char>(content.size() >> 8) + static_cast<char>(content.size() >> 16) +
           content;
  };
  using namespace std::string_literals;
  const std::string head = "Creative Voice File\x1A\x1A\0\x14\x01\x1F\x11"s;
  const std::string format = "\x80\x3E\0\0\x10\x01\x04\0\0\0\0\0"s;  // 16 kHz, 16 bits, mono
  const std::string other = "\x40\x1F\0\0\x10\x01\x04\0\0\0\0\0"s;   // 8 kHz
  std::string samples(2000, '\0');
  for (std::size_t i = 0; i < samples.size(); ++i) samples[i] = static_cast<char>(i * 37);
  const std::string first = block(9, format + samples), more = block(2, samples);
  folder.write("clips/one.voc", head + first + '\0');
  folder.write("clips/three.voc", head + block(5, "text") + first + more + more + '\0');
  folder.write("clips/again.voc", head + first + block(9, format + samples) + '\0');
  folder.write("clips/open.voc", head + first + more);
  folder.write("clips/other.voc", head + first + block(9, other + samples) + '\0');
  folder.write("clips/silence.voc", head + first + block(3, "\x10\x27\x40"s) + more + '\0');
  const JobResult job = completed(run(folder));
  std::map<std::string, std::string> remarks = job.remarks_by_name();
  const Output out = read_output(folder / "out.h5");
  CHECK(out.rows_of("one.voc").size() == 1000);
  const auto takes_ffmpeg = [&](const std::string& name, std::size_t count) {
    if (has_ffmpeg())
      CHECK(out.rows_of(name).size() == count);
    else
      CHECK(remarks[name].find("only by FFmpeg's libraries") != std::string::npos);
  };
  takes_ffmpeg("three.voc", 3000);
  takes_ffmpeg("again.voc", 2000);
  takes_ffmpeg("open.voc", 2000);
  if (has_ffmpeg()) {
    CHECK(remarks.size() == 3);
    CHECK(remarks["open.voc"] ==
          "ok: decode: short: ends without its last block, and nothing says how many there were; "
          "2000 samples (0.125 s) are there");
  }
  for (const char* name : {"other.voc", "silence.voc"})
    CHECK(remarks[name].starts_with(
        "failed: decode: begins like VOC but cannot be decoded: its sound is in "));
}

}  // namespace melflow::test::ffmpeg_test
