// What `quality` measures, from the decoder to the columns of outputs and to filters. That the
// values are right is in tests/numerics/quality_test.cpp.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "stages/measures.h"
#include "tests/jobs/shared.h"
#include "tests/support/audio_files.h"
#include "tests/support/h5_reader.h"
#include "tests/support/hold.h"
#include "tests/support/job.h"
#include "tests/support/printing.h"
#include "tests/support/problems.h"
#include "tests/support/temp_folder.h"

namespace melflow::test::quality_test {
namespace {

constexpr int kRate = 8000;
constexpr std::int64_t kLong = 100'000;  // samples: several blocks of 64 KiB
using Column = std::map<std::string, float>;

std::vector<float> scaled(std::int64_t frames, float scale, int channels = 1, unsigned seed = 1) {
  std::vector<float> out = test_signal(frames, channels, seed);
  for (float& x : out) x *= scale;
  return out;
}

void add(const TempFolder& folder, const std::string& name, const std::vector<float>& samples,
         const char* kind = "wav s16") {
  write_audio(folder.file("clips/" + name), audio_kind(kind), kRate, samples);
}

void make_recordings(const TempFolder& folder) {
  add(folder, "fine.wav", scaled(20'000, 0.3F));
  auto clipped = scaled(kLong, 0.3F, 1, 2);
  for (std::int64_t i = kLong - 500; i < kLong - 495; ++i) clipped[static_cast<std::size_t>(i)] = 1;
  add(folder, "clipped.wav", clipped);
  auto stereo = scaled(kLong, 0.3F, 2, 3);
  for (std::size_t i = 0; i < stereo.size(); i += 2) stereo[i + 1] = -stereo[i];
  add(folder, "inverted.flac", stereo, "flac s16 stereo");
  auto gap = scaled(30'000, 0.3F, 1, 4);
  std::fill_n(gap.begin() + 16'000, 80, 0.0F);
  add(folder, "gap.wav", gap, "wav float");
  folder.write("clips/broken.wav", "no sound");
}

std::string pipeline(const std::string& measure = "", const std::string& nodes = "",
                     const std::string& from = "measure", const std::string& decode = "",
                     const std::string& files = "", const std::string& sink = "hdf5_write") {
  return fmt::format(R"(version: 1
graph:
  files: {{stage: file_list, root: "${{DATA}}"{}}}
  read: {{stage: disk_read, from: files}}
  decode: {{stage: decode, from: read{}}}
  measure: {{stage: quality, from: decode{}}}
{}  mel: {{stage: mel, from: {}, sample_rate: 8000, n_fft: 256, hop: 80, n_mels: 20}}
  write: {{stage: {}, from: mel, path: "${{OUT}}"}}
)",
                     files, decode, measure, nodes, from, sink);
}

Column column(const std::string& path, Measure which) {
  const H5File file(path);
  const std::vector<std::string> paths = file.strings("files/path");
  const std::vector<float> values = file.floats(fmt::format("files/{}", info_of(which).column));
  REQUIRE(values.size() == paths.size());
  Column out;
  for (std::size_t i = 0; i < paths.size(); ++i) out[paths[i]] = values[i];
  return out;
}

// Compares the columns of all measures that the outputs have, bit for bit; "" or the difference.
std::string difference(const std::string& a, const std::string& b) {
  const H5File one(a), other(b);
  for (const MeasureInfo& m : measures()) {
    const std::string name = fmt::format("files/{}", m.column);
    if (one.has(name) != other.has(name)) return name + " is in one only";
    if (!one.has(name)) continue;
    if (one.raw(name) != other.raw(name)) return name + " differs";
  }
  return one.strings("files/path") == other.strings("files/path") ? "" : "paths differ";
}

}  // namespace

TEST_CASE("speech_share: the share of a recording that is marked, as a column and a condition") {
  const TempFolder folder;
  auto half = scaled(kLong, 0.3F, 1, 5);
  std::fill(half.begin() + kLong / 2, half.end(), 0.0F);
  add(folder, "half.wav", half);
  add(folder, "all.wav", scaled(kLong, 0.3F, 1, 6));
  add(folder, "none.wav", std::vector<float>(kLong, 0.0F));
  // Nothing is kept around a stretch, so that half of the recording is marked but for one frame.
  const std::string mark =
      "  mark: {stage: mark_sound, from: measure, frame: 256, hop: 64, keep: 0s, silence: 100ms}\n"
      "  share: {stage: speech_share, from: mark}\n";
  const auto out = [&](const char* name) { return folder / name; };
  completed(run_job(pipeline("", mark, "share"), in_out(folder / "clips", out("a.h5"))));
  const Column share = column(out("a.h5"), Measure::speech_share);
  CHECK(share.at("half.wav") == doctest::Approx(0.5).epsilon(0.01));
  CHECK(share.at("all.wav") == doctest::Approx(1).epsilon(0.01));
  CHECK(share.at("none.wav") == 0);
  CHECK(std::isfinite(column(out("a.h5"), Measure::peak).at("half.wav")));
  completed(run_job(pipeline("",
                             mark + "  some: {stage: filter, from: share, where: "
                                    "{quality.speech_share: \"> 40%\"}}\n",
                             "some"),
                    in_out(folder / "clips", out("b.h5"))));
  const Column kept = column(out("b.h5"), Measure::speech_share);
  CHECK(std::isnan(kept.at("none.wav")));
  CHECK(kept.at("half.wav") == share.at("half.wav"));
  // Recordings are too short for a value of hum: excluded, unless the condition allows it.
  add(folder, "short.wav", scaled(4000, 0.3F, 1, 7));
  for (const auto& [hum, name] :
       {std::pair{"\"< 100dB\"", "d.h5"}, std::pair{"[\"< 100dB\", unknown]", "e.h5"}})
    completed(run_job(
        pipeline("",
                 fmt::format(
                     "  some: {{stage: filter, from: measure, where: {{quality.hum: {}}}}}\n", hum),
                 "some"),
        in_out(folder / "clips", out(name))));
  CHECK(std::isnan(column(out("d.h5"), Measure::peak).at("short.wav")));
  CHECK(std::isfinite(column(out("e.h5"), Measure::peak).at("short.wav")));
  const auto refused = [&](const std::string& text) {
    return problems_in([&] { return run_job(text, in_out(folder / "clips", out("c.h5"))); });
  };
  CHECK(refused(pipeline("", "  share: {stage: speech_share, from: measure}\n", "share"))
            .find("nothing is marked in what comes") != std::string::npos);
  CHECK(refused(pipeline(", measures: [speech_share]")).find("a stage of its own") !=
        std::string::npos);
}

TEST_CASE("no_rows: an output lists recordings with what is known of each") {
  const TempFolder folder;
  make_recordings(folder);
  const std::string text = R"(version: 1
graph:
  files: {stage: file_list, root: "${DATA}"}
  decode: {stage: decode, from: files}
  measure: {stage: quality, from: decode}
  list: {stage: no_rows, from: measure}
  write: {stage: hdf5_write, from: list, path: "${OUT}"}
)";
  completed(run_job(text, in_out(folder / "clips", folder / "a.h5")));
  completed(run_job(pipeline(), in_out(folder / "clips", folder / "b.h5")));
  CHECK(H5File(folder / "a.h5").strings("files/path").size() == 5);
  CHECK(difference(folder / "a.h5", folder / "b.h5") == "");
}

TEST_CASE("quality: the columns of an output have the values of whole recordings") {
  const TempFolder folder;
  make_recordings(folder);
  const auto out = [&](const std::string& name) { return folder / name; };
  const auto run = [&](const std::string& text, const std::string& name) {
    return completed(run_job(text, in_out(folder / "clips", out(name))));
  };
  run(pipeline(", measures: all"), "a.h5");
  const Column runs = column(out("a.h5"), Measure::clipped_runs);
  CHECK(runs.at("fine.wav") == 0);
  CHECK(runs.at("clipped.wav") == 1);
  CHECK(std::isnan(runs.at("broken.wav")));
  CHECK(column(out("a.h5"), Measure::clipped_at).at("clipped.wav") ==
        doctest::Approx((kLong - 500.0) / kRate));
  CHECK(column(out("a.h5"), Measure::inverted_channels).at("inverted.flac") == 1);
  CHECK(column(out("a.h5"), Measure::inverted_channels).at("fine.wav") == 0);
  CHECK(column(out("a.h5"), Measure::dropouts).at("gap.wav") == 1);
  CHECK(column(out("a.h5"), Measure::dropout_at).at("gap.wav") == doctest::Approx(2));
  const H5File file(out("a.h5"));
  CHECK(file.type("files/quality.peak") == "float32");
  // Of the measures that are chosen alone.
  run(pipeline(", measures: [peak, loudness]"), "b.h5");
  const H5File few(out("b.h5"));
  for (const MeasureInfo& m : measures())
    CHECK(few.has(fmt::format("files/{}", m.column)) ==
          (measure_of(m) == Measure::peak || measure_of(m) == Measure::loudness));
  CHECK(few.raw("files/quality.peak") == file.raw("files/quality.peak"));
  run(pipeline(), "default.h5");
  CHECK_FALSE(H5File(out("default.h5")).has("files/quality.loudness"));
  CHECK(H5File(out("default.h5")).has("files/quality.snr"));
}

TEST_CASE("quality: values are the same for any block, number of workers and stages between") {
  const TempFolder folder;
  make_recordings(folder);
  const auto run = [&](const std::string& text, const std::string& name) {
    completed(run_job(text, in_out(folder / "clips", folder / name)));
    return folder / name;
  };
  const std::string all = ", measures: all";
  const std::string a = run(pipeline(all), "a.h5");
  CHECK(difference(a, run(pipeline(all, "", "measure", ", block: 64KiB"), "b.h5")) == "");
  CHECK(difference(a, run(pipeline(all, "", "measure", ", block: 64KiB, downmix: left"), "c.h5")) ==
        "");
  CHECK(difference(
            a, run("workers: 1\n" + pipeline(all, "", "measure", ", block: 64KiB"), "d.h5")) == "");
  CHECK(difference(a, run("workers: 4\n" + pipeline(all), "e.h5")) == "");
  // The samples that are measured are those of the file; the mean of inverted channels is silent.
  CHECK(difference(a, run(pipeline(all,
                                   "  cut: {stage: trim_silence, from: measure, threshold: "
                                   "-30dB}\n",
                                   "cut", ", block: 64KiB, downmix: left"),
                          "f.h5")) == "");
  // Large files are read while they are decoded.
  std::string pieces = pipeline(all);
  pieces.replace(pieces.find("from: files"), 11, "from: files, whole: 64KiB");
  CHECK(difference(a, run(pieces, "g.h5")) == "");
}

TEST_CASE("quality: a filter excludes recordings by what is known at their end") {
  const TempFolder folder;
  make_recordings(folder);
  const std::string filter =
      "  good: {stage: filter, from: measure, where: {quality.clipped_share: 0, "
      "quality.dropouts: \"< 1\", quality.peak: \"< -1dB\"}}\n";
  for (const std::string block : {"", ", block: 64KiB"}) {
    CAPTURE(block);
    const JobResult job = completed(
        run_job(pipeline("", filter, "good", block), in_out(folder / "clips", folder / "out.h5")));
    const auto remarks = job.remarks_by_name();
    CHECK(remarks.at("clipped.wav") == "skipped: good: quality.clipped_share is 0.005 %, not 0");
    CHECK(remarks.at("gap.wav") == "skipped: good: quality.dropouts is 1, not < 1");
    CHECK(job.report.counts.ok == 2);
    const Output output = read_output(folder / "out.h5");
    CHECK(output.file("clipped.wav").count == 0);
    // The rows are those of a run without these recordings.
    const TempFolder other;
    add(other, "fine.wav", scaled(20'000, 0.3F));
    auto stereo = scaled(kLong, 0.3F, 2, 3);
    for (std::size_t i = 0; i < stereo.size(); i += 2) stereo[i + 1] = -stereo[i];
    add(other, "inverted.flac", stereo, "flac s16 stereo");
    completed(
        run_job(pipeline("", filter, "good", block), in_out(other / "clips", other / "out.h5")));
    CHECK(read_output(other / "out.h5").mel_bytes == output.mel_bytes);
    std::filesystem::remove(folder / "out.h5");
  }
  // A recording without a value is excluded, with the reason.
  const JobResult job = completed(run_job(
      pipeline(
          ", measures: [loudness]",
          "  good: {stage: filter, from: measure, where: {quality.loudness: \"> -60 LUFS\"}}\n",
          "good"),
      in_out(folder / "clips", folder / "loud.h5")));
  CHECK(job.report.counts.ok == 4);
}

TEST_CASE("quality: an update keeps the values, and a resumed run has them all") {
  const TempFolder folder;
  make_recordings(folder);
  const std::string text = pipeline(", measures: all");
  const LoadOptions places = in_out(folder / "clips", folder / "out.h5");
  completed(run_job(text, places));
  add(folder, "more.wav", scaled(12'000, 0.2F, 1, 8));
  completed(run_job(text, places, {}, Update::append));
  completed(run_job(text, in_out(folder / "clips", folder / "new.h5")));
  CHECK(difference(folder / "out.h5", folder / "new.h5") == "");
  completed(run_job(text, places, {}, Update::compact));
  CHECK(difference(folder / "out.h5", folder / "new.h5") == "");
  // Other measures are another output.
  const JobResult other = run_job(pipeline(", measures: [peak]"), places, {}, Update::append);
  CHECK(other.error.find("holds other features") != std::string::npos);

  const TempFolder many;
  for (unsigned i = 0; i < 40; ++i)
    write_wav(many.file(fmt::format("clips/{:02}.wav", i)), 8000 + 100 * i, kRate, i);
  const LoadOptions there = in_out(many / "clips", many / "out.h5");
  const JobResult stopped = run_and_stop(text, there, {.let_in = 24, .closed = 8});
  REQUIRE(stopped.report.ending == Ending::stopped);
  completed(run_job(with_held_files(text), there));
  completed(run_job(with_held_files(text), in_out(many / "clips", many / "new.h5")));
  CHECK(difference(many / "out.h5", many / "new.h5") == "");
}

TEST_CASE("quality: what cannot be measured, or not be asked for, is refused before the run") {
  const TempFolder folder;
  make_recordings(folder);
  folder.write("list.csv", "path,start,end\nfine.wav,0,1\n");
  struct Row {
    std::string text, problem;
  };
  const auto filter = [](const std::string& where) {
    return "  good: {stage: filter, from: measure, where: {" + where + "}}\n";
  };
  const Row rows[] = {
      {pipeline(", measures: [peek]"), "'peek' is not one of"},
      {pipeline(", measures: []"), "a measure or a list of measures"},
      {pipeline("", filter("quality.peek: 1"), "good"), "quality: 'peek' is not one of"},
      {pipeline(", measures: [rms]", filter("quality.peak: \"< 1\""), "good"),
       "the quality node before does not measure it; add peak to its measures"},
      {pipeline("",
                "  bad: {stage: filter, from: decode, where: {quality.peak: \"< 1\"}}\n"
                "  rest: {stage: discard, from: measure}\n",
                "bad"),
       "nothing before this node measures recordings"},
      {pipeline("",
                "  bad: {stage: filter, from: read, where: {quality.peak: \"< 1\"}}\n"
                "  rest: {stage: discard, from: bad}\n",
                "measure"),
       "is known once a file is decoded"},
      {pipeline("",
                "  way: {stage: route, from: measure, outputs: {loud: {quality.peak: \"> 0.5\"}}, "
                "else: rest}\n"
                "  rest: {stage: discard, from: way.rest}\n",
                "way.loud"),
       "quality.peak is known at the end of a recording only"},
      {pipeline("", "  again: {stage: quality, from: measure}\n", "again"),
       "another quality node follows"},
      {pipeline("", "", "measure", "", ", feed: preload"), "set feed: stream"},
      {pipeline("", "", "measure", "",
                ", manifest: \"" + folder / "list.csv" + "\", utterances: {}"),
       "remove `utterances` to measure the recordings"},
      {pipeline("", filter("quality.snr: \"> 10kHz\""), "good"), "is not a unit of quality.snr"},
      {pipeline("", filter("quality.clipped_share: \"> 1dB\""), "good"), "its units are %"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.problem);
    const std::string problems = problems_in(
        [&] { return run_job(row.text, in_out(folder / "clips", folder / "never.h5")); });
    CAPTURE(problems);
    CHECK(problems.find(row.problem) != std::string::npos);
  }
}

}  // namespace melflow::test::quality_test
