// melflow duplicates: planted copies, cuts and joins are found where they are, and what only
// resembles them is not.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tests/apps/process.h"
#include "tests/support/audio_files.h"
#include "tests/support/printing.h"

namespace melflow::test::duplicates_test {
namespace {

using Json = nlohmann::ordered_json;
using Samples = std::vector<float>;

constexpr int kRate = 8000;

// Tones that change every 80 to 240 ms, in their level and pitch, with harmonics: no two seeds have
// a stretch in common.
Samples sound(unsigned seed, double seconds, int rate = kRate) {
  std::mt19937 random(seed);
  const auto share = [&] { return static_cast<double>(random()) / 4294967296.0; };
  Samples out(static_cast<std::size_t>(seconds * rate));
  for (double begin = 0; begin < seconds;) {
    const double length = 0.08 + 0.16 * share(), hz = 80 + 200 * share(), level = share();
    std::vector<double> harmonics(20);
    for (double& h : harmonics) h = share() * share();
    const auto end = static_cast<std::size_t>(std::min(seconds, begin + length) * rate);
    for (auto i = static_cast<std::size_t>(begin * rate); i < end; ++i)
      for (std::size_t h = 0; h < harmonics.size(); ++h) {
        const double turn = 6.283185307179586 * hz * static_cast<double>(h + 1) / rate;
        if (turn < 3)
          out[i] += static_cast<float>(0.06 * level * harmonics[h] *
                                       std::sin(turn * static_cast<double>(i)));
      }
    begin += length;
  }
  return out;
}

Samples operator*(Samples samples, float gain) {
  for (float& x : samples) x *= gain;
  return samples;
}
Samples operator+(Samples a, const Samples& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}
Samples part(const Samples& of, double begin, double seconds) {
  const auto at = of.begin() + static_cast<std::ptrdiff_t>(begin * kRate);
  return {at, at + static_cast<std::ptrdiff_t>(seconds * kRate)};
}

void add(const TempFolder& folder, const std::string& name, const Samples& samples,
         const char* kind = "wav s16", int rate = kRate) {
  write_audio(folder.file(name), audio_kind(kind), rate, samples);
}

// Recordings in the splits train and test, six of which sound like one of the other split.
void make_corpus(const TempFolder& folder) {
  for (unsigned i = 0; i < 8; ++i) add(folder, fmt::format("c/train/{}.wav", i), sound(i, 10));
  for (unsigned i = 20; i < 26; ++i) add(folder, fmt::format("c/test/{}.wav", i), sound(i, 10));
  std::filesystem::copy(folder / "c/train/0.wav", folder.file("c/test/equal.wav"));
  add(folder, "c/test/quiet.flac", sound(1, 10) * 0.1F, "flac s16");
  add(folder, "c/test/ulaw.wav", sound(2, 10), "wav ulaw");
  add(folder, "c/test/cut.wav", part(sound(3, 10), 2.5, 5));
  add(folder, "c/test/joined.wav", sound(40, 7) + part(sound(4, 10), 1, 8) + sound(41, 3));
  add(folder, "c/test/rate.wav", sound(5, 10, 16000), "wav s16", 16000);
  for (const char* name : {"c/train/silence.wav", "c/test/silence.wav"})
    add(folder, name, Samples(10 * kRate));
  Samples beep(10 * kRate);
  for (std::size_t i = 0; i < beep.size(); ++i)
    beep[i] = 0.3F * std::sin(0.7F * static_cast<float>(i));
  add(folder, "c/train/beep.wav", beep);
  add(folder, "c/test/beep.wav", beep * 0.5F);
}

std::string pipeline(const std::string& files, const std::string& path,
                     const std::string& options = "") {
  return fmt::format(R"(version: 1
{}graph:
  files: {{stage: file_list, {}}}
  decode: {{stage: decode, from: files}}
  print: {{stage: fingerprint, from: decode}}
  write: {{stage: hdf5_write, from: print, path: {}, overwrite: true}}
)",
                     options, files, path);
}

void run(const TempFolder& folder, const std::string& text) {
  write_text(folder / "p.yaml", text);
  exits(0, melflow_in(folder, {"run", "p.yaml", "-q"}));
}

Json duplicates(const TempFolder& folder, std::vector<std::string> arguments, int code = 0) {
  arguments.insert(arguments.begin(), "duplicates");
  arguments.push_back("--json");
  return Json::parse(exits(code, melflow_in(folder, std::move(arguments))).out);
}

std::set<std::string> paths_of(const Json& pair) { return {pair["a"]["path"], pair["b"]["path"]}; }

const Json& pair_of(const Json& document, const std::string& one, const std::string& other) {
  for (const Json& p : document["pairs"])
    if (paths_of(p) == std::set{one, other}) return p;
  FAIL("no pair of ", one, " and ", other);
  throw std::logic_error("unreachable");
}

double distance(const Json& pair) {  // from the begin in train to the one in test
  const Json &a = pair["a"], &b = pair["b"];
  const double out = b["begin"].get<double>() - a["begin"].get<double>();
  return a["split"] == "train" ? out : -out;
}

TEST_CASE("duplicates: planted ones are found with their places, and nothing else is") {
  const TempFolder folder;
  make_corpus(folder);
  run(folder, pipeline("root: c, splits: top_dir", "prints.h5"));
  const Json found = duplicates(folder, {"prints.h5"});
  CHECK(found["recordings"] == 24);
  CHECK(found["pairs"].size() == 6);
  CHECK(found["groups"].size() == 6);
  CHECK(found["across"] == 12);
  CHECK(pair_of(found, "train/0.wav", "test/equal.wav")["kind"] == "same samples");
  for (const auto& [train, test, kind, places] :
       {std::tuple("train/1.wav", "test/quiet.flac", "copy", 0.0),
        {"train/2.wav", "test/ulaw.wav", "copy", 0.0},
        {"train/3.wav", "test/cut.wav", "cut", -2.5},
        {"train/4.wav", "test/joined.wav", "stretch", 6.0},
        {"train/5.wav", "test/rate.wav", "copy", 0.0}}) {
    CAPTURE(std::string(test));
    const Json& pair = pair_of(found, train, test);
    if (std::string(kind) == "stretch")
      CHECK(pair["seconds"].get<double>() == doctest::Approx(8.5).epsilon(0.06));
    else
      CHECK((pair["kind"] == kind || pair["kind"] == "same samples"));
    CHECK(pair["joined"] == true);
    CHECK(pair["across"] == true);
    CHECK(std::abs(distance(pair) - places) <= 0.05);
  }
}

std::string groups_of(const TempFolder& folder, const std::string& output,
                      std::vector<std::string> more = {}) {
  more.insert(more.begin(), {"duplicates", output, "--csv", output + ".csv", "-q"});
  exits(0, melflow_in(folder, std::move(more)));
  return read_text(folder / (output + ".csv"));
}

TEST_CASE("duplicates: the same for any workers, blocks and order of the list") {
  const TempFolder folder;
  make_corpus(folder);
  const std::string files = "root: c, splits: top_dir";
  run(folder, pipeline(files, "one.h5", "workers: 1\n"));
  const std::string expected = groups_of(folder, "one.h5");
  run(folder, pipeline(files, "three.h5", "workers: 3\n"));
  CHECK(groups_of(folder, "three.h5") == expected);
  std::string text = pipeline(files, "blocks.npy");
  text.replace(text.find("hdf5_write"), 10, "npy_write");
  text.replace(text.find("stage: decode"), 13, "stage: decode, block: 64KiB");
  run(folder, text);
  CHECK(groups_of(folder, "blocks.test.npy", {"blocks.train.npy", "--memory", "16"}) == expected);
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder / "c"))
    if (entry.is_regular_file())
      paths.push_back(std::filesystem::relative(entry.path(), folder / "c"));
  std::sort(paths.begin(), paths.end(), std::greater<>());
  std::string list = "path\n";
  for (const std::string& path : paths) list += path + "\n";
  write_text(folder / "list.csv", list);
  run(folder, pipeline("root: c, manifest: list.csv, splits: top_dir", "order.h5"));
  CHECK(groups_of(folder, "order.h5") == expected);
}

TEST_CASE("duplicates: the same of merged parts of a job, and of an update") {
  const TempFolder folder;
  make_corpus(folder);
  run(folder, pipeline("root: c, splits: top_dir", "one.h5"));
  const std::string expected = groups_of(folder, "one.h5");
  write_text(folder / "p.yaml", pipeline("root: c, splits: top_dir", "merged.h5"));
  exits(0, melflow_in(folder, {"plan", "p.yaml", "--part", "500KiB", "-o", "job"}));
  CHECK(std::distance(std::filesystem::directory_iterator(folder / "job"), {}) > 2);
  exits(0, melflow_in(folder, {"work", "job", "-q"}));
  exits(0, melflow_in(folder, {"merge", "job", "-q"}));
  CHECK(groups_of(folder, "merged.h5") == expected);
  std::filesystem::rename(folder / "c/test", folder / "later");
  run(folder, pipeline("root: c, splits: top_dir", "updated.h5"));
  CHECK(groups_of(folder, "updated.h5") != expected);
  std::filesystem::rename(folder / "later", folder / "c/test");
  exits(0, melflow_in(folder, {"update", "p.yaml", "-q"}));
  CHECK(groups_of(folder, "updated.h5") == expected);
}

TEST_CASE("duplicates: with the column of groups splits are disjoint") {
  const TempFolder folder;
  make_corpus(folder);
  run(folder, pipeline("root: c, splits: top_dir", "prints.h5"));
  const Ended leaks = exits(4, melflow_in(folder, {"duplicates", "prints.h5", "--across-splits",
                                                   "<= 0", "--csv", "groups.csv"}));
  CHECK(leaks.out.find("expected recordings.across_splits <= 0: 12 files, NOT met") !=
        std::string::npos);
  const Json judged = duplicates(folder, {"prints.h5", "--across-splits", "< 50%"}, 4)["expected"];
  CHECK(judged[0]["met"] == false);
  CHECK(judged[0]["value"] == 0.5);
  run(folder,
      pipeline("root: c, manifest: groups.csv, columns: [across], splits: ratio, split_ratios: "
               "{train: 50, test: 50}, split_group: group",
               "again.h5"));
  exits(0, melflow_in(folder, {"duplicates", "again.h5", "--across-splits", "<= 0"}));
}

TEST_CASE("duplicates: splits are kept, and one of them loses what is in another") {
  const TempFolder folder;
  make_corpus(folder);
  run(folder, pipeline("root: c, splits: top_dir", "prints.h5"));
  exits(0, melflow_in(folder, {"duplicates", "prints.h5", "--csv", "groups.csv"}));
  const auto without = [&](const char* across) {
    std::string text = pipeline("root: c, manifest: groups.csv, splits: manifest", "kept.h5");
    text.replace(text.find("  decode: {stage: decode, from: files}"), 38,
                 fmt::format("  keep: {{stage: filter, from: files, where: {{column.across: "
                             "'{}'}}}}\n  decode: {{stage: decode, from: keep}}",
                             across));
    text.replace(text.find("splits: manifest"), 16, "splits: manifest, columns: [across]");
    write_text(folder / "kept.yaml", text);
    const Ended checked = exits(0, melflow_in(folder, {"validate", "kept.yaml"}));
    CHECK((checked.out + checked.err).find("not used") == std::string::npos);
    run(folder, text);
    exits(0, melflow_in(folder, {"duplicates", "kept.h5", "--across-splits", "<= 0"}));
    return duplicates(folder, {"kept.h5"})["recordings"].get<int>();
  };
  CHECK(without("!train") == 24 - 6);
  CHECK(without("!test") == 24 - 6);
  CHECK(without("") == 24 - 12);
}

TEST_CASE("duplicates: says what was not compared, and a bound is not met without it") {
  const TempFolder folder;
  add(folder, "c/train/a.wav", sound(1, 10));
  add(folder, "c/test/b.wav", sound(2, 10));
  add(folder, "c/test/short.wav", sound(3, 1));
  add(folder, "c/train/silence.wav", Samples(10 * kRate));
  folder.write("c/test/bad.wav", "no sound");
  write_text(folder / "p.yaml", pipeline("root: c, splits: top_dir", "prints.h5"));
  exits(3, melflow_in(folder, {"run", "p.yaml", "-q"}));
  const Ended told = exits(0, melflow_in(folder, {"duplicates", "prints.h5"}));
  CHECK_MESSAGE(told.out.find("not compared: 1 failed in the run (test/bad.wav), 2 with too little "
                              "sound that changes (test/short.wav, ...)\n") != std::string::npos,
                told.out);
  CHECK(duplicates(folder, {"prints.h5"})["not_compared"] ==
        Json({{"failed", {"test/bad.wav"}},
              {"skipped", Json::array()},
              {"too_little_sound", {"test/short.wav", "train/silence.wav"}}}));
  const Ended unproved =
      exits(3, melflow_in(folder, {"duplicates", "prints.h5", "--across-splits", "<= 0"}));
  CHECK_MESSAGE(unproved.err.find("1 recording failed in the run that wrote fingerprints, such as "
                                  "test/bad.wav, and was not compared") != std::string::npos,
                unproved.err);
}

TEST_CASE("duplicates: a corpus against an earlier output, whose own pairs are not told again") {
  const TempFolder folder;
  make_corpus(folder);
  run(folder, pipeline("root: c/train", "old.h5"));
  run(folder, pipeline("root: c/test", "new.h5"));
  std::filesystem::remove_all(folder / "c");
  const Json found = duplicates(folder, {"new.h5", "--against", "old.h5"});
  CHECK(found["recordings"] == 14);
  CHECK(found["against"] == 10);
  CHECK(found["pairs"].size() == 6);
  CHECK(found["across"] == 6);
  duplicates(folder, {"new.h5", "--against", "old.h5", "--across-splits", "< 10%"}, 4);
}

Json check(const TempFolder& folder, std::vector<std::string> arguments, int code = 0) {
  arguments.insert(arguments.begin(), "check");
  arguments.push_back("--json");
  return Json::parse(exits(code, melflow_in(folder, std::move(arguments))).out);
}

// Recordings to be heard in the part of a page about what sounds alike.
std::size_t clips_in(const std::string& page) {
  std::size_t out = 0, at = page.find("\"duplicates\": {");
  REQUIRE(at != page.npos);
  while ((at = page.find("\"url\": \"data:audio/flac;base64,", at + 1)) != page.npos) ++out;
  return out;
}

TEST_CASE("check: says what sounds alike, by fingerprints of the same pass") {
  const TempFolder folder;
  make_corpus(folder);
  const std::vector<std::string> measured{
      "check",        "c",     "--set",      "files.splits=top_dir", "-q", "--output", "q.h5",
      "--duplicates", "--csv", "checks.csv", "--report=r.html"};
  exits(0, melflow_in(folder, measured));
  exits(0, melflow_in(folder, measured));  // in place of the first one's
  Json expected = duplicates(folder, {"q.h5"});
  for (const char* key : {"melflow_version", "expected"}) expected.erase(key);
  CHECK(expected["pairs"].size() == 6);
  CHECK(expected["across"] == 12);
  CHECK(check(folder, {"q.h5"})["duplicates"] == expected);
  const std::string table = read_text(folder / "checks.csv");
  CHECK(table.substr(0, table.find('\n')).ends_with(",group,recordings,across,faults"));
  CHECK(table.find(",test/equal.wav,2,train,") != std::string::npos);
  // A page has both recordings of each pair, while they are there.
  CHECK(clips_in(read_text(folder / "r.html")) == 12);
  const auto page = [&](const char* clips) {
    exits(0, melflow_in(folder, {"check", "q.h5", "-q", "--report", "r.html", "--clips", clips}));
    return read_text(folder / "r.html");
  };
  CHECK(clips_in(page("3")) == 12);
  CHECK(clips_in(page("0")) == 0);
  std::filesystem::rename(folder / "c", folder / "gone");
  CHECK(page("3").find("\"why\": \"No such file") != std::string::npos);
  CHECK(clips_in(page("3")) == 0);
  // What is expected.
  const Json judged = check(folder, {"q.h5", "--across-splits", "<= 0"}, 4);
  CHECK(judged["expected"][0]["what"] == "recordings.across_splits");
  CHECK(judged["expected"][0]["value"] == 12);
  check(folder, {"q.h5", "--across-splits", "< 60%"});
  CHECK(exits(2, melflow_in(folder, {"check", "q.h5", "--across-splits", "few"}))
            .err.find("--across-splits: 'few' is not a bound") != std::string::npos);
}

TEST_CASE("check: fingerprints of another pipeline are not replaced, and needed where asked for") {
  const TempFolder folder;
  make_corpus(folder);
  run(folder, pipeline("root: c", "prints.h5"));
  CHECK(exits(1, melflow_in(folder, {"check", "c", "--output", "prints.h5", "--duplicates"}))
            .err.find("prints.h5: has rows, which would be gone") != std::string::npos);
  exits(0, melflow_in(folder, {"check", "c", "--output", "q.h5", "-q"}));
  CHECK_FALSE(check(folder, {"q.h5"}).contains("duplicates"));
  CHECK(exits(1, melflow_in(folder, {"check", "q.h5", "--duplicates"}))
            .err.find("q.h5: has no fingerprints; write") != std::string::npos);
}

TEST_CASE("duplicates: a run is judged by what its pipeline expects across splits") {
  const TempFolder folder;
  make_corpus(folder);
  const auto ended = [&](const std::string& expected, const char* verb = "run",
                         const char* file = "p.yaml", const char* stage = "fingerprint") {
    std::string text = pipeline("root: c, splits: top_dir", "prints.h5",
                                fmt::format("expect: {{recordings: {}}}\n", expected));
    text.replace(text.find("fingerprint"), 11, stage);
    write_text(folder / "p.yaml", text);
    std::vector<std::string> words{verb, "-q"};
    if (std::string(verb) == "check") words.emplace_back("--from");
    words.emplace_back(file);
    return melflow_in(folder, words);
  };
  CHECK(exits(4, ended("{across_splits: <= 0}"))
            .err.find("expected recordings.across_splits <= 0: 12 files, NOT met") !=
        std::string::npos);
  exits(0, ended("{across_splits: <= 50%}"));
  CHECK(exits(4, ended("{across_splits: <= 0}", "check"))
            .out.find("expected recordings.across_splits <= 0: 12 files, NOT met") !=
        std::string::npos);
  CHECK(exits(78, ended("{across_splits: <= 0}", "run", "p.yaml", "mel, sample_rate: 8000"))
            .err.find("expect.recordings.across_splits: no output of this pipeline says what "
                      "sounds alike") != std::string::npos);
  CHECK(exits(78, ended("{across_splits: <= 0, profile: any}"))
            .err.find("no output of this pipeline says how recordings are") != std::string::npos);
}

TEST_CASE("duplicates: a table of the recordings of such a table has no column twice") {
  const TempFolder folder;
  make_corpus(folder);
  run(folder, pipeline("root: c, splits: top_dir", "prints.h5"));
  const std::string first = groups_of(folder, "prints.h5");
  write_text(folder / "groups.csv", first);
  run(folder, pipeline("root: c, manifest: groups.csv, columns: [group, across], splits: top_dir",
                       "again.h5"));
  CHECK(groups_of(folder, "again.h5") == first);
}

TEST_CASE("duplicates: what it refuses") {
  const TempFolder folder;
  add(folder, "c/a.wav", sound(1, 2));
  write_text(folder / "mel.yaml", R"(version: 1
graph:
  files: {stage: file_list, root: c}
  mel: {stage: mel, from: files, sample_rate: 8000}
  write: {stage: hdf5_write, from: mel, path: mel.h5}
)");
  exits(0, melflow_in(folder, {"run", "mel.yaml", "-q"}));
  CHECK(exits(1, melflow_in(folder, {"duplicates", "mel.h5"}))
            .err.find("mel.h5: has no fingerprints; write") != std::string::npos);
  run(folder, pipeline("root: c", "prints.h5"));
  CHECK(exits(78, melflow_in(folder, {"duplicates", "prints.h5", "--with", "speaker"}))
            .err.find("--with speaker: prints.h5: the recordings have no columns") !=
        std::string::npos);
  CHECK(exits(2, melflow_in(folder, {"duplicates", "prints.h5", "--across-splits", "few"}))
            .err.find("--across-splits") != std::string::npos);
  CHECK(exits(2, melflow_in(folder, {"duplicates", "prints.h5", "--against", "./prints.h5"}))
            .err.find("--against ./prints.h5: is compared with itself") != std::string::npos);
}

}  // namespace
}  // namespace melflow::test::duplicates_test
