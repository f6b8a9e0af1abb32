// melflow check and expect.recordings: what they find, say and refuse. That the values are right is
// in tests/numerics/quality_test.cpp.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numbers>
#include <set>
#include <string>
#include <vector>

#include "apps/check/clips.h"
#include "apps/check/criteria.h"
#include "apps/check/findings.h"
#include "tests/apps/pipelines.h"
#include "tests/apps/process.h"
#include "tests/support/audio_files.h"
#include "tests/support/printing.h"
#include "tests/support/source_path.h"

namespace melflow::test::check_test {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

constexpr int kRate = 8000;

std::vector<float> sound(unsigned seed, int channels = 1, std::int64_t frames = 2 * kRate) {
  std::vector<float> out = test_signal(frames, channels, seed);
  for (float& x : out) x *= 0.3F;
  return out;
}

void add(const TempFolder& folder, const std::string& name, const std::vector<float>& samples,
         const char* kind = "wav s16") {
  write_audio(folder.file(name), audio_kind(kind), kRate, samples);
}

// Ten recordings of two speakers: four with a fault that was put in, one that is no sound.
void make_corpus(const TempFolder& folder) {
  for (unsigned i = 0; i < 5; ++i) add(folder, fmt::format("c/ann/{}.wav", i), sound(i));
  std::vector<float> gap = sound(10, 1, 6 * kRate);
  std::fill_n(gap.begin() + kRate, 3 * kRate, 0.0F);
  add(folder, "c/bob/gap.wav", gap);
  std::vector<float> offset = sound(11);
  for (float& x : offset) x += 0.05F;
  add(folder, "c/bob/offset.wav", offset);
  std::vector<float> clipped = sound(12);
  for (int i = 0; i < 60; ++i) clipped[static_cast<std::size_t>(9000 + i)] = 0.9F;
  add(folder, "c/bob/clipped.wav", clipped);
  std::vector<float> stereo = sound(13, 2);
  for (std::size_t i = 0; i < stereo.size(); i += 2) stereo[i + 1] = -stereo[i];
  add(folder, "c/bob/inverted.flac", stereo, "flac s16 stereo");
  folder.write("c/bob/broken.wav", "no sound");
}

Json check(const TempFolder& folder, int code, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "check");
  arguments.push_back("--json");
  return Json::parse(exits(code, melflow_in(folder, std::move(arguments))).out);
}

const Json& named(const Json& list, const std::string& name, const char* key = "name") {
  const auto it =
      std::find_if(list.begin(), list.end(), [&](const Json& e) { return e[key] == name; });
  REQUIRE_MESSAGE(it != list.end(), name);
  return *it;
}

std::set<std::string> worst(const Json& document, const std::string& name) {
  std::set<std::string> out;
  for (const Json& w : named(document["checks"], name)["worst"]) out.insert(w["path"]);
  return out;
}

// The table of docs/quality.md.
std::string profiles_markdown() {
  std::vector<std::string> keys;
  for (const Profile& p : profiles())
    for (const auto& one : p.where)
      if (std::find(keys.begin(), keys.end(), one.first) == keys.end()) keys.push_back(one.first);
  std::string out = "| condition |", line = "|---|";
  for (const Profile& p : profiles()) out += fmt::format(" `{}` |", p.name), line += "---|";
  out += '\n' + line + '\n';
  for (const std::string& key : keys) {
    out += fmt::format("| `{}` |", key);
    for (const Profile& p : profiles()) {
      const auto at = std::find_if(p.where.begin(), p.where.end(),
                                   [&](const auto& one) { return one.first == key; });
      out += at == p.where.end() ? " |" : fmt::format(" `{}` |", at->second);
    }
    out += '\n';
  }
  return out;
}

using Names = std::set<std::string>;

}  // namespace

TEST_CASE("check: faults that were put into a folder are found, and no others") {
  const TempFolder folder;
  make_corpus(folder);
  const Json said = check(folder, 3, {"c", "--set", "files.labels=parent_dir"});
  CHECK(said["files"]["found"] == 10);
  CHECK(said["files"]["ok"] == 9);
  CHECK(said["files"]["failed"] == 1);
  CHECK(said["profile"] == "any");
  CHECK(worst(said, "quality.silent_longest") == Names{"bob/gap.wav"});
  CHECK(worst(said, "quality.dropouts") == Names{"bob/gap.wav"});
  CHECK(worst(said, "quality.dc") == Names{"bob/offset.wav"});
  CHECK(worst(said, "quality.clipped_share") == Names{"bob/clipped.wav"});
  CHECK(worst(said, "quality.inverted_channels") == Names{"bob/inverted.flac"});
  CHECK(said["faulty"] == 4);
  CHECK(said["seconds"].get<double>() == doctest::Approx(8 * 2 + 6));
  CHECK(said["faulty_seconds"].get<double>() == doctest::Approx(3 * 2 + 6));
  const Json& clipped = named(said["checks"], "quality.clipped_share")["worst"][0];
  CHECK(clipped["at"].get<double>() == doctest::Approx(9000.0 / kRate));
  CHECK(clipped["value"].get<double>() == doctest::Approx(60.0 / (2 * kRate)));
  const Json& labels = named(said["groups"], "label", "by")["groups"];
  CHECK(named(labels, "ann")["faulty"] == 0);
  CHECK(named(labels, "ann")["seconds"] == 10);
  CHECK(named(labels, "bob")["files"] == 5);
  CHECK(named(labels, "bob")["faulty"] == 4);
  CHECK(named(labels, "bob")["found"]["quality.dc"] == 1);
  CHECK(named(said["remarks"], "bob/broken.wav", "path")["status"] == "failed");
  const Json& peak = said["measures"]["peak"];
  CHECK(peak["recordings"] == 9);
  std::size_t counted = 0;
  for (const Json& n : peak["histogram"]["counts"]) counted += n.get<std::size_t>();
  CHECK(counted == 9);
}

TEST_CASE("check: what was measured once is judged again without the recordings") {
  const TempFolder folder;
  make_corpus(folder);
  exits(3, melflow_in(folder, {"check", "c", "--output", "q.h5", "-q"}));
  const Json before = check(folder, 3, {"c"});
  fs::rename(folder / "c", folder / "gone");
  CHECK(check(folder, 3, {"q.h5"}) == before);
  // Other conditions, and how many may not meet them.
  const Json judged = check(folder, 4, {"q.h5", "--faulty", "< 10%"});
  CHECK(judged["faulty"] == 4);
  CHECK(judged["expected"][0]["met"] == false);
  CHECK(judged["expected"][0]["value"].get<double>() == doctest::Approx(4.0 / 9));
  CHECK(check(folder, 3, {"q.h5", "--faulty", "<= 4"})["faulty"] == 4);
  CHECK(check(folder, 3, {"q.h5", "--where", "quality.dc="})["faulty"] == 3);
  const Json longer = check(folder, 4, {"q.h5", "--where", "duration=< 5s", "--faulty", "< 1"});
  CHECK(worst(longer, "duration") == Names{"bob/gap.wav"});
  CHECK(has(longer["filter"], "duration"));
}

TEST_CASE("check: an output with rows is not replaced") {
  const TempFolder folder;
  make_corpus(folder);
  folder.write("p.yaml", R"(version: 1
graph:
  files: {stage: file_list, root: c}
  decode: {stage: decode, from: files}
  mel: {stage: mel, from: decode, sample_rate: 8000, n_fft: 256, hop: 80, n_mels: 20}
  write: {stage: hdf5_write, from: mel, path: o.h5}
)");
  exits(3, melflow_in(folder, {"run", "p.yaml", "-q"}));
  const std::string before = read_text(folder / "o.h5");
  CHECK(has(exits(1, melflow_in(folder, {"check", "c", "--output", "o.h5"})).err,
            "o.h5: has rows, which would be gone"));
  CHECK(read_text(folder / "o.h5") == before);
  exits(3, melflow_in(folder, {"check", "c", "--output", "q.h5", "-q"}));
  exits(3, melflow_in(folder, {"check", "c", "--output", "q.h5", "-q"}));  // one of check is
}

TEST_CASE("check: the filter that it says keeps what has no fault") {
  const TempFolder folder;
  make_corpus(folder);
  const Json said =
      check(folder, 3, {"c", "--where", "quality.rate_ratio=", "--where", "quality.length_ratio="});
  folder.write("p.yaml", fmt::format(R"(version: 1
graph:
  files: {{stage: file_list, root: c}}
  decode: {{stage: decode, from: files}}
  measure: {{stage: quality, from: decode}}
  good: {{stage: filter, from: measure, where: {}}}
  mel: {{stage: mel, from: good, sample_rate: 8000, n_fft: 256, hop: 80, n_mels: 20}}
  write: {{stage: hdf5_write, from: mel, path: o.h5}}
)",
                                     said["filter"].get<std::string>()));
  exits(3, melflow_in(folder, {"run", "p.yaml", "-q"}));
  CHECK(check(folder, 3, {"o.h5"})["files"]["ok"] == 5);
}

TEST_CASE("check: a table has every recording with its faults") {
  const TempFolder folder;
  make_corpus(folder);
  exits(3, melflow_in(folder, {"check", "c", "--csv", "t.csv", "-q"}));
  const std::string table = read_text(folder / "t.csv");
  CHECK(std::count(table.begin(), table.end(), '\n') == 11);
  CHECK(table.starts_with("path,label,split,status,reason,duration,sample_rate,quality.peak,"));
  CHECK(has(table, "bob/offset.wav,bob,,ok,,2.000000,8000,"));
  CHECK(has(table, ",quality.dc\n"));
  CHECK(has(table, "bob/broken.wav,bob,,failed,"));
}

TEST_CASE("check: a page shows the worst, and loads nothing") {
  const TempFolder folder;
  make_corpus(folder);
  folder.write("c/<script>alert(1)<!--/x.wav", read_text(folder / "c/bob/offset.wav"));
  exits(3, melflow_in(folder, {"check", "c", "--report", "r.html", "--clips", "1", "-q"}));
  const std::string page = read_text(folder / "r.html");
  CHECK(page.starts_with("<!doctype html>"));
  CHECK_FALSE(has(page, "<script>alert"));
  CHECK_FALSE(has(page, "http://www.w3.org/1999/xhtml/"));
  std::size_t clips = 0;
  for (std::size_t at = 0; (at = page.find("\"url\": \"data:audio/flac;base64,", at)) != page.npos;
       ++at)
    ++clips;
  CHECK(clips == 5);  // the gap is a dropout, too
  // A page of another kind is not replaced.
  folder.write("mine.html", "<html>mine</html>");
  const Ended refused = exits(1, melflow_in(folder, {"check", "c", "--report", "mine.html"}));
  CHECK(has(refused.err, "mine.html"));
  CHECK(read_text(folder / "mine.html") == "<html>mine</html>");
}

TEST_CASE("check: a clip is a stretch of the samples, with all channels") {
  const TempFolder folder;
  const std::vector<float> stereo = sound(5, 2, 4 * kRate);
  add(folder, "a.wav", stereo, "wav s16 stereo");
  const Clip clip = read_clip(folder / "a.wav", 1, 0.5);
  CHECK(clip.channels == 2);
  CHECK(clip.sample_rate == kRate);
  CHECK(clip.begin == doctest::Approx(1));
  CHECK(clip.seconds == doctest::Approx(0.5));
  CHECK(clip.url.starts_with("data:audio/flac;base64,ZkxhQ"));  // "fLaC"
  CHECK(read_clip(folder / "a.wav", 3.9, 1).seconds == doctest::Approx(0.1));
  CHECK(read_clip(folder / "a.wav", 9, 1).why == "it is shorter now");
  folder.write("b.wav", "no sound");
  CHECK(read_clip(folder / "b.wav", 0, 1).url.empty());
  CHECK_FALSE(read_clip(folder / "none.wav", 0, 1).why.empty());
}

TEST_CASE("check: a list, an archive, one recording, a pipeline and a share of them") {
  const TempFolder folder;
  make_corpus(folder);
  // Text and duration of a list, in which one text is far too long for its recording.
  std::string lines;
  for (int i = 0; i < 40; ++i) {
    const std::string path = fmt::format("l/{}.wav", i);
    add(folder, path, sound(static_cast<unsigned>(i), 1, kRate + 100 * i));
    lines += Json{{"audio_filepath", path},
                  {"text", std::string(i == 7 ? 500 : 10 + i % 3, 'x')},
                  {"duration", i == 9 ? 3.0 : 1 + i / 80.0},
                  {"speaker", fmt::format("s{}", i % 2)}}
                 .dump() +
             '\n';
  }
  folder.write("list.jsonl", lines);
  const Json listed = check(folder, 0,
                            {"list.jsonl", "--profile", "asr", "--where", "quality.snr=", "--where",
                             "quality.bandwidth="});
  CHECK(worst(listed, kTextLength) == Names{"l/7.wav"});
  CHECK(worst(listed, "quality.seconds_per_character") == Names{"l/7.wav"});
  CHECK(worst(listed, "quality.length_ratio") == Names{"l/9.wav"});
  CHECK(named(listed["groups"], "speaker", "by")["groups"].size() == 2);

  exits(0, test::run(folder, {"/bin/sh", "-c", "tar -cf a.tar -C c ."}));
  CHECK(check(folder, 3, {"a.tar"})["faulty"] == 4);
  CHECK(check(folder, 0, {"c/bob/offset.wav"})["files"]["found"] == 1);

  folder.write("p.yaml", R"(version: 1
expect: {recordings: {where: {quality.dc: "< 0.01"}}}
graph:
  some: {stage: file_list, root: "${DATA}", exclude: ["**/broken.wav"]}
  decode: {stage: decode, from: some}
  mel: {stage: mel, from: decode, sample_rate: 8000}
  write: {stage: hdf5_write, from: mel, path: "${OUT}"}
)");
  const Json by_pipeline = check(folder, 4, {"--from", "p.yaml", "--var", "DATA=c"});
  CHECK(by_pipeline["files"]["found"] == 9);
  CHECK(worst(by_pipeline, "quality.dc") == Names{"bob/offset.wav"});
  CHECK(by_pipeline["checks"].size() == 1);

  const Json some = check(folder, 0, {"l", "--sample", "50%"}),
             fewer = check(folder, 0, {"l", "--sample", "25%"});
  CHECK(some["files"]["found"].get<int>() < 40);
  CHECK(fewer["files"]["found"].get<int>() < some["files"]["found"].get<int>());
  CHECK(fewer["files"]["found"].get<int>() > 0);
  const Ended none = exits(1, melflow_in(folder, {"check", "c", "--sample", "0.0001%"}));
  CHECK(has(none.err, "sample takes none of its 10 files"));
}

TEST_CASE("check: what cannot be checked is refused by name") {
  const TempFolder folder;
  make_corpus(folder);
  struct Row {
    std::vector<std::string> arguments;
    int code;
    const char* said;
  };
  for (const Row& row :
       {Row{{}, 2, "what is to be checked?"},
        {{"none"}, 1, "none: there is no such file or folder"},
        {{"c", "--from", "p.yaml"}, 2, "exclude each other"},
        {{"c", "--profile", "film"}, 2, "any, asr, tts, speaker, music"},
        {{"c", "--where", "quality.snrr=1"}, 78, "Did you mean 'snr'?"},
        {{"c", "--where", "quality.snr=1x"}, 78, "'x' is not a unit"},
        {{"c", "--where", "snr"}, 2, "write KEY=CONDITION"},
        {{"c", "--where", "channels=1"}, 78, "channels: recordings are not judged by this"},
        {{"c", "--where", "duration="}, 78, "takes a condition of the profile out"},
        {{"c", "--faulty", "1"}, 2, "--faulty: '1' is not a bound"},
        {{"c", "--measures", "foo"}, 2, "--measures: 'foo' is not one of"},
        {{"c", "--sample", "5"}, 2, "--sample: '5' is not a share"}}) {
    std::vector<std::string> arguments = row.arguments;
    arguments.insert(arguments.begin(), "check");
    const Ended ended = exits(row.code, melflow_in(folder, arguments));
    CHECK(has(ended.err, row.said));
  }
  // A column that is not there costs only the groups by it.
  const Ended by =
      exits(3, melflow_in(folder, {"check", "c", "--by", "speaker", "--output", "q.h5"}));
  CHECK(has(by.err, "--by speaker: the recordings have no columns"));
  exits(78, melflow_in(folder, {"check", "q.h5", "--by", "speaker"}));
  exits(2, melflow_in(folder, {"check", "q.h5", "--sample", "1%"}));
}

TEST_CASE("check: a run is judged by what its pipeline expects of recordings") {
  const TempFolder folder;
  make_corpus(folder);
  const auto pipeline = [&](const std::string& expected, const char* measure = "quality") {
    folder.write("p.yaml", fmt::format(R"(version: 1
expect: {{recordings: {}}}
graph:
  files: {{stage: file_list, root: c}}
  decode: {{stage: decode, from: files}}
  measure: {{stage: {}, from: decode}}
  mel: {{stage: mel, from: measure, sample_rate: 8000, n_fft: 256, hop: 80, n_mels: 20}}
  write: {{stage: hdf5_write, from: mel, path: o.h5, overwrite: true}}
)",
                                       expected, measure));
    return melflow_in(folder, {"run", "p.yaml", "-q"});
  };
  const Ended none = exits(4, pipeline("{profile: any}"));
  CHECK(has(none.err, "expected recordings.faulty <= 0: 4 files, NOT met"));
  exits(3, pipeline("{profile: any, faulty: \"< 50%\"}"));
  exits(4, pipeline("{where: {quality.dc: \"< 0.01\"}, faulty: \"< 1\"}"));
  exits(3, pipeline("{where: {quality.dc: \"< 0.1\"}, faulty: \"< 1\"}"));
  CHECK(has(exits(78, pipeline("{profile: film}")).err, "'film' is not one of any, asr"));
  CHECK(has(exits(78, pipeline("{profile: any}", "trim_silence, threshold: -60dB")).err,
            "no output of this pipeline says how recordings are"));
}

TEST_CASE("check: every profile can be read, and the docs have it") {
  std::size_t conditions = 0;
  for (const Profile& profile : profiles()) {
    RecordingExpectations expected;
    expected.profile = profile.name;
    conditions += criteria_of(expected).size();
  }
  CHECK(conditions > 50);
  CAPTURE(profiles_markdown());
  CHECK(has(read_text(test::source_path("docs/quality.md")), profiles_markdown()));
}

}  // namespace melflow::test::check_test
