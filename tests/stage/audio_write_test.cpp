// Written sound files: samples and bytes, names, and the remains of files that fail.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "stages/output/formats/sound_writer.h"
#include "tests/support/audio_files.h"
#include "tests/support/complaint.h"
#include "tests/support/job.h"
#include "tests/support/small_disk.h"
#include "tests/support/temp_folder.h"

namespace melflow::test::audio_write_test {
namespace {

constexpr int kRate = 16'000;

struct Job {
  std::string write{};  // options of audio_write
  std::string files = "labels: none";
  std::string decode = "block: 64KiB";
  std::string behind{};  // further nodes
  std::string from = "decode";
  std::string out = "out";
  int workers = 2;
};

std::string pipeline(const Job& j) {
  return fmt::format(R"(version: 1
workers: {}
graph:
  files: {{stage: file_list, root: "${{DATA}}", {}}}
  read: {{stage: disk_read, from: files}}
  decode: {{stage: decode, from: read, {}}}
{}  write: {{stage: audio_write, from: {}, path: "${{OUT}}"{}{}}}
)",
                     j.workers, j.files, j.decode, j.behind, j.from, j.write.empty() ? "" : ", ",
                     j.write);
}

JobResult run(const TempFolder& folder, const Job& j, Update update = Update::none) {
  return run_job(pipeline(j), in_out(folder / "clips", folder / j.out), {}, update);
}

// Returns all files below a folder, with their relative paths.
Names files_in(const std::string& path) {
  Names out;
  if (!std::filesystem::exists(path)) return out;
  for (const auto& e : std::filesystem::recursive_directory_iterator(path))
    if (!e.is_directory()) out.insert(std::filesystem::relative(e.path(), path).string());
  return out;
}

std::string le(std::uint32_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i));
  return out;
}

// Makes a 16-bit WAV by its definition (RIFF, 44 bytes before the samples).
std::string plain_wav(const std::vector<std::int16_t>& samples, std::uint32_t rate) {
  const auto bytes = static_cast<std::uint32_t>(2 * samples.size());
  std::string out = "RIFF" + le(36 + bytes, 4) + "WAVEfmt " + le(16, 4) + le(1, 2) + le(1, 2) +
                    le(rate, 4) + le(2 * rate, 4) + le(2, 2) + le(16, 2) + "data" + le(bytes, 4);
  for (const std::int16_t s : samples) out += le(static_cast<std::uint16_t>(s), 2);
  return out;
}

melflow::Samples samples_of(const std::vector<float>& in) {
  return {nullptr, reinterpret_cast<const std::byte*>(in.data()),
          static_cast<std::int64_t>(in.size()), SampleType::float32};
}

}  // namespace

TEST_CASE("audio_write: 16-bit WAV has the recording's own samples behind a plain header") {
  const TempFolder folder;
  write_wav(folder.file("clips/a.wav"), 150'001, kRate, 1);
  write_wav(folder.file("clips/b/c.wav"), 10, 8000, 2);
  for (const char* block : {"64KiB", "4MiB"})
    for (const int workers : {1, 3}) {
      CAPTURE(std::string(block));
      const JobResult job = completed(run(folder, {.write = "overwrite: true",
                                                   .decode = std::string("block: ") + block,
                                                   .workers = workers}));
      CHECK(job.report.counts.ok == 2);
      CHECK(files_in(folder / "out") == Names{"a.wav", "b/c.wav"});
      CHECK(read_bytes(folder / "out/a.wav") ==
            plain_wav(read_audio(folder / "clips/a.wav").int16, kRate));
      CHECK(read_bytes(folder / "out/b/c.wav") ==
            plain_wav(read_audio(folder / "clips/b/c.wav").int16, 8000));
      CHECK(job.stage("write").summary[1].second.text() == "2");
    }
}

TEST_CASE("audio_write: every type has the nearest samples, whatever came") {
  const TempFolder folder;
  write_audio(folder.file("clips/short.wav"), audio_kind("wav s16"), kRate, test_signal(40'000));
  write_audio(folder.file("clips/float.wav"), audio_kind("wav float"), kRate, test_signal(40'000));
  for (const char* options :
       {"format: wav, dtype: int16", "format: wav, dtype: int24", "format: wav, dtype: float32",
        "format: flac, dtype: int16", "format: flac, dtype: int24"}) {
    CAPTURE(std::string(options));
    const std::string text = options;
    const bool is_flac = text.find("flac") != text.npos;
    const Job j{.write = text, .out = fmt::format("out {}", options + 8)};
    CHECK(completed(run(folder, j)).remarks.empty());
    for (const char* name : {"short", "float"}) {
      CAPTURE(std::string(name));
      const std::vector<float> in =
          read_audio(folder / fmt::format("clips/{}.wav", name)).interleaved;
      const ReadAudio out =
          read_audio(folder / fmt::format("{}/{}.{}", j.out, name, is_flac ? "flac" : "wav"));
      CHECK(out.sample_rate == kRate);
      CHECK(out.channels == 1);
      REQUIRE(out.interleaved.size() == in.size());
      const double full = text.find("int16") != text.npos ? 32768 : 8388608;
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < in.size(); ++i) {
        const double expected = text.find("float32") != text.npos
                                    ? static_cast<double>(in[i])
                                    : std::nearbyint(static_cast<double>(in[i]) * full) / full;
        wrong += static_cast<double>(out.interleaved[i]) != expected ? 1 : 0;
      }
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("audio_write: what is beyond full scale is clipped, and said") {
  const TempFolder folder;
  std::vector<float> loud = test_signal(30'000);
  loud[7] = 1.5F;
  loud[20'000] = -1.0001F;
  loud[20'001] = -1.0F;
  loud[20'002] = 1.0F;  // one more than the largest integer
  write_audio(folder.file("clips/a.wav"), audio_kind("wav float"), kRate, loud);
  CHECK(completed(run(folder, {})).remarks_by_name() ==
        std::map<std::string, std::string>{
            {"a.wav", "ok: write: 3 samples beyond full scale are clipped"}});
  const std::vector<std::int16_t> got = read_audio(folder / "out/a.wav").int16;
  CHECK(got[7] == 32767);
  CHECK(got[20'000] == -32768);
  CHECK(got[20'001] == -32768);
  CHECK(got[20'002] == 32767);
  CHECK(run(folder, {.write = "dtype: float32", .out = "float"}).remarks.empty());
  CHECK(read_audio(folder / "float/a.wav").interleaved == loud);
  // A PEAK chunk would contain the time of day.
  CHECK(read_bytes(folder / "float/a.wav").find("PEAK") == std::string::npos);
}

TEST_CASE("audio_write: windows are files of their own, with silence behind the last sample") {
  const TempFolder folder;
  write_wav(folder.file("clips/x/a.wav"), 70'500, kRate, 1);
  write_wav(folder.file("clips/b.wav"), 900, kRate, 2);
  for (const char* block : {"64KiB", "4MiB"}) {
    CAPTURE(std::string(block));
    completed(
        run(folder, {.write = "overwrite: true",
                     .decode = std::string("block: ") + block,
                     .behind = "  rate: {stage: resample, from: decode, rate: 16000}\n"
                               "  segment: {stage: segment, from: rate, length: 1000, hop: 700, "
                               "tail: pad}\n",
                     .from = "segment"}));
    std::vector<std::int16_t> in = read_audio(folder / "clips/x/a.wav").int16;
    Names expected{"b-00000.wav"};
    in.resize(in.size() + 1000);
    for (std::size_t w = 0; w * 700 < 70'500 && (w == 0 || (w - 1) * 700 + 1000 < 70'500); ++w) {
      const std::string name = fmt::format("x/a-{:05}.wav", w);
      expected.insert(name);
      const auto at = in.begin() + static_cast<std::ptrdiff_t>(w * 700);
      CHECK(read_bytes(folder / "out/" + name) == plain_wav({at, at + 1000}, kRate));
    }
    CHECK(files_in(folder / "out") == expected);
  }
  CHECK_THROWS_WITH_AS(
      run(folder, {.behind = "  segment: {stage: segment, from: decode}\n", .from = "segment"}),
      doctest::Contains("write.from: the input is not cut into windows"), ConfigError);
}

TEST_CASE("audio_write: names are those of the recordings, by split and label where it is asked") {
  const TempFolder folder;
  for (const char* name : {"train/dog/a.flac", "train/cat/b.wav", "val/dog/a.wav", "train/c.wav"})
    write_audio(folder.file(std::string("clips/") + name), audio_kind("wav s16"), 8000,
                test_signal(500));
  const auto names = [&](const std::string& write, const std::string& files) {
    std::filesystem::remove_all(folder / "out");
    const JobResult job = run(folder, {.write = write, .files = files});
    CHECK_MESSAGE(job.complete(), job.text());
    return files_in(folder / "out");
  };
  CHECK(names("", "labels: none") ==
        Names{"train/dog/a.wav", "train/cat/b.wav", "val/dog/a.wav", "train/c.wav"});
  CHECK(names("by: split", "splits: top_dir") == Names{"train/train/dog/a.wav",
                                                       "train/train/cat/b.wav", "val/val/dog/a.wav",
                                                       "train/train/c.wav"});
  CHECK(names("by: [label, split]", "splits: top_dir, labels: parent_dir") ==
        Names{"dog/train/train/dog/a.wav", "cat/train/train/cat/b.wav", "dog/val/val/dog/a.wav",
              "train/train/train/c.wav"});
  folder.write("list.csv", fmt::format("path,label\n{0}/clips/train/c.wav,x\n{0}/clips/../clips/"
                                       "val/dog/a.wav,\n",
                                       folder.path()));
  const std::string own = folder.path().substr(1) + "/clips/";
  CHECK(names("by: label", "manifest: \"" + folder / "list.csv" + "\", labels: manifest") ==
        Names{"x/" + own + "train/c.wav", "no_label/" + own + "val/dog/a.wav"});
}

TEST_CASE("audio_write: no name leads out of the folder, and none is too long") {
  const TempFolder folder;
  write_wav(folder.file("outside.wav"), 500);
  write_wav(folder.file("clips/a.wav"), 500);
  const std::string longest(232, 'n'), too_long(233, 'n');
  write_wav(folder.file("clips/" + longest + ".wav"), 500);
  write_wav(folder.file("clips/" + too_long + ".wav"), 500);
  folder.write("clips/list.csv", "path\na.wav\n../outside.wav\nx/../../outside.wav\nx/../" +
                                     longest + ".wav\n" + too_long + ".wav\n");
  folder.folder("clips/x");
  Job j{.files = "manifest: \"" + folder / "clips/list.csv" + "\""};
  const JobResult job = completed(run(folder, j));
  CHECK(job.report.counts.ok == 2);
  CHECK(job.report.counts.failed == 3);
  CHECK(files_in(folder / "out") == Names{"a.wav", longest + ".wav"});
  CHECK(job.remarks_by_name().at("../outside.wav") ==
        fmt::format("failed: write: its name leads out of the folder {}; list it by its whole path",
                    folder / "out"));
  CHECK(job.remarks_by_name().at(too_long + ".wav") ==
        "failed: write: its name is too long to be that of a written file");
  CHECK(names_in(folder.path()) == Names{"clips", "out", "outside.wav"});
}

TEST_CASE("audio_write: two recordings never share a file") {
  const TempFolder folder;
  write_wav(folder.file("clips/a.wav"), 500);
  write_audio(folder.file("clips/a.flac"), audio_kind("flac s16"), kRate, test_signal(400));
  write_wav(folder.file("clips/b.wav"), 500);
  CHECK(run(folder, {}).complete());
  CHECK(files_in(folder / "out") == Names{"a.flac.wav", "a.wav.wav", "b.wav"});
  folder.write("clips/list.csv", "path\na.wav\na.wav\n");
  const JobResult twice =
      run(folder, {.files = "manifest: \"" + folder / "clips/list.csv" + "\"", .out = "other"});
  CHECK(twice.error ==
        fmt::format("{}: both a.wav and a.wav would be written there; list each recording once",
                    folder / "other/a.wav.wav"));
}

TEST_CASE("audio_write: nothing begins where a file is there, or what is read would be replaced") {
  const TempFolder folder;
  write_wav(folder.file("clips/a.wav"), 500);
  write_wav(folder.file("clips/b.wav"), 500);
  folder.write("out/b.wav", "old");
  CHECK(run(folder, {}).error ==
        fmt::format("{}: exists already; remove it, write elsewhere, or set overwrite: true in the "
                    "audio_write node",
                    folder / "out/b.wav"));
  CHECK(files_in(folder / "out") == Names{"b.wav"});
  REQUIRE(run(folder, {.write = "overwrite: true"}).complete());
  CHECK(read_audio(folder / "out/b.wav").frames() == 500);
  // Refuses the corpus itself, also under another name.
  const std::string before = read_bytes(folder / "clips/a.wav");
  std::filesystem::create_symlink(folder / "clips", folder / "link");
  for (const char* out : {"clips", "link"}) {
    const JobResult job = run(folder, {.write = "overwrite: true, dtype: int24", .out = out});
    CHECK_MESSAGE(
        job.error.find("is what this run reads and would be replaced") != std::string::npos,
        job.error);
  }
  CHECK(read_bytes(folder / "clips/a.wav") == before);
  CHECK(run(folder, {.out = "none/out"}).error ==
        fmt::format("{}: there is no folder {}; make it first (mkdir -p) or write elsewhere "
                    "(option path of the audio_write node)",
                    folder / "none/out", folder / "none"));
  CHECK(run(folder, {.out = "clips/a.wav"}).error ==
        folder / "clips/a.wav" + ": this is not a folder; audio_write.path takes one");
  CHECK(run(folder, {.out = "new"}, Update::append).error ==
        "audio_write: cannot be updated; use melflow run, with overwrite: true where the files are "
        "there already");
}

TEST_CASE("audio_write: folders by label need one label, and one that is a name") {
  const TempFolder folder;
  write_wav(folder.file("clips/a.wav"), 500);
  const auto error = [&](const std::string& table, const std::string& more, const char* by) {
    folder.write("clips/list.csv", table);
    return run(folder, {.write = std::string("by: ") + by,
                        .files = "manifest: \"" + folder / "clips/list.csv" + "\"" + more})
        .error;
  };
  CHECK(error("path,label\na.wav,../x\n", ", labels: manifest", "label") ==
        "audio_write.by: the label '../x' is not a name for a folder");
  CHECK(error("path,label\na.wav,x|y\n", ", labels: manifest, label_separator: \"|\"", "label") ==
        "audio_write.by: a.wav has 2 labels, and goes into one folder");
  CHECK(error("path,label\na.wav,x\n", "", "[label]") ==
        "audio_write.by: no file has a label; see the options of file_list");
  CHECK(error("path,label\na.wav,x\n", "", "split") ==
        "audio_write.by: no file has a split; see the options of file_list");
  CHECK(files_in(folder / "out").empty());
}

TEST_CASE("audio_write: recordings that come to nothing leave nothing") {
  const TempFolder folder;
  write_wav(folder.file("clips/good.wav"), 5000);
  folder.write("clips/bad.wav", "no sound");
  write_wav(folder.file("clips/whole.wav"), 200'000);
  copy_truncated(folder / "clips/whole.wav", folder / "clips/cut.wav", 300'000);
  std::filesystem::remove(folder / "clips/whole.wav");
  const JobResult job = completed(run(folder, {.decode = "block: 64KiB, truncated: fail"}));
  CHECK(job.report.counts.ok == 1);
  CHECK(job.report.counts.failed == 2);
  CHECK(files_in(folder / "out") == Names{"good.wav"});
  // Files that another branch does not need are removed once that is known; windows, too.
  for (const char* from : {"decode", "pieces"}) {
    CAPTURE(std::string(from));
    const JobResult two = completed(run(
        folder,
        {.decode = "block: 64KiB, truncated: keep",
         .behind = "  rate: {stage: resample, from: decode, rate: 16000}\n"
                   "  pieces: {stage: segment, from: rate, length: 1000}\n"
                   "  long: {stage: segment, from: decode, min_length: 10000}\n"
                   "  end: {stage: discard, from: long}\n  all: {stage: discard, from: pieces}\n",
         .from = from,
         .out = std::string("out ") + from}));
    CHECK(two.report.counts.ok == 1);
    CHECK(two.report.counts.skipped == 1);
    const Names left = files_in(folder / (std::string("out ") + from));
    CHECK(left.size() == (std::string(from) == "decode" ? 1 : 149));
    for (const std::string& name : left) CHECK(name.starts_with("cut"));
  }
}

TEST_CASE("audio_write: a full disk ends the run, and leaves whole files only") {
  const TempFolder folder;
  for (int i = 0; i < 6; ++i)
    write_wav(folder.file(fmt::format("clips/{}.wav", i)), 150'000, kRate, 1);
  const SmallDisk disk(1 << 20);
  if (disk.ok()) {
    const JobResult job = run_job(pipeline({.workers = 1}), in_out(folder / "clips", disk / "out"));
    CHECK_MESSAGE(job.error.find("the disk is full") != std::string::npos, job.error);
    CHECK(job.error.find("(option path of the audio_write node)") != std::string::npos);
    for (const std::string& name : files_in(disk / "out"))
      CHECK(read_audio(disk / "out/" + name).frames() == 150'000);
    CHECK(files_in(disk / "out").size() == job.report.counts.ok);
  }
  const FileSizeLimit limit(100'000);
  const JobResult job = run(folder, {.workers = 1});
  CHECK_MESSAGE(job.error.find("No file may be larger here") != std::string::npos, job.error);
  CHECK(files_in(folder / "out").empty());
}

TEST_CASE(
    "audio_write: an unfinished file of an interrupted run makes way, that of another program "
    "not") {
  const TempFolder folder;
  write_wav(folder.file("clips/a.wav"), 500);
  folder.write("out/a.wav.part", "melflow part 1\nand samples");
  CHECK(run(folder, {}).complete());
  CHECK(files_in(folder / "out") == Names{"a.wav"});
  std::filesystem::remove(folder / "out/a.wav");
  folder.write("out/a.wav.part", "not melflow's");
  const JobResult job = run(folder, {});
  CHECK_MESSAGE(
      job.error.find("a.wav.part: this exists already and is not melflow's") != std::string::npos,
      job.error);
  CHECK(read_bytes(folder / "out/a.wav.part") == "not melflow's");
}

TEST_CASE("audio_write: until a file is complete it says so, and then has no trace of it") {
  const TempFolder folder;
  const std::vector<float> some = test_signal(5000);
  for (const SoundFormat format : {SoundFormat::wav, SoundFormat::flac}) {
    const std::string path = folder / (format == SoundFormat::wav ? "a.wav" : "a.flac");
    SoundWriter writer(path, "audio_write", Existing::refuse, {.format = format}, kRate);
    CHECK_FALSE(writer.add(samples_of(some)));
    CHECK(read_bytes(path + ".part").starts_with(PartFile::kMark));
    CHECK_FALSE(std::filesystem::exists(path));
    writer.publish(true);
    CHECK(read_audio(path).frames() == 5000);
    CHECK(names_in(folder.path()).count(std::filesystem::path(path).filename()) == 1);
  }
  CHECK(names_in(folder.path()) == Names{"a.wav", "a.flac"});
}

TEST_CASE("audio_write: a WAV of too many bytes is refused, and a FLAC of too high a rate") {
  const TempFolder folder;
  const std::vector<float> some = test_signal(600);
  const SoundEncoding small{.type = StoredSample::int24, .most_bytes = 3600};
  SoundWriter writer(folder / "a.wav", "audio_write", Existing::refuse, small, kRate);
  CHECK_FALSE(writer.add(samples_of(some)));
  CHECK_FALSE(writer.add(samples_of(some)));
  const auto error = writer.add_silence(1);
  REQUIRE(error);
  CHECK(error->reason ==
        "is longer than a WAV file may be: more than 3600 bytes of samples; write format: flac, or "
        "shorter pieces");
  const SoundEncoding none{.format = SoundFormat::flac, .type = StoredSample::float32};
  CHECK(complaint([&] {
          const SoundWriter refused(folder / "b.flac", "audio_write", Existing::refuse, none,
                                    kRate);
        }) == folder / "b.flac" + ": libsndfile does not write this kind of file");
  CHECK(names_in(folder.path()) == Names{"a.wav.part"});
  CHECK(SoundEncoding{}.refused(700'000) == "");
  const SoundEncoding flac{.format = SoundFormat::flac};
  CHECK(flac.refused(655'350) == "");
  CHECK(flac.refused(655'351) ==
        "is sampled at 655351 Hz, and a FLAC file at no more than 655350; write WAV, or put a "
        "resample stage before this node");
}

TEST_CASE("audio_write: the plan says what does not go together") {
  const TempFolder folder;
  write_wav(folder.file("clips/a.wav"), 500);
  CHECK_THROWS_WITH_AS(run(folder, {.write = "format: flac, dtype: float32"}),
                       doctest::Contains("write.dtype: FLAC has no float32"), ConfigError);
  CHECK_THROWS_WITH_AS(run(folder, {.from = "read"}),
                       doctest::Contains("audio_write takes waveforms or windows, but 'read'"),
                       ConfigError);
  CHECK_THROWS_WITH_AS(
      run(folder, {.behind = "  too: {stage: audio_write, from: decode, path: \"${OUT}\"}\n"}),
      doctest::Contains("is also written by"), ConfigError);
  std::string yaml = pipeline({});
  yaml.replace(yaml.find("\"${OUT}\""), 8, "\"\"");
  LoadOptions none;
  none.vars = {{"DATA", folder / "clips"}};
  CHECK_THROWS_WITH_AS(run_job(yaml, none),
                       doctest::Contains("write: 'path' is missing; write path: FOLDER"),
                       ConfigError);
}

}  // namespace melflow::test::audio_write_test
