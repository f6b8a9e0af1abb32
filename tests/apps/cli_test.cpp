// The command line: verbs, help, wrong usage, wrong configurations, and everything without a run.
#include <doctest/doctest.h>

#include <algorithm>
#include <iterator>
#include <new>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>

#include <fmt/format.h>

#include "apps/program.h"
#include "apps/verbs/verbs.h"
#include "pipeline/base/version.h"
#include "pipeline/stage/registry.h"
#include "stages/features/mel/real_fft.h"
#include "stages/output/formats/feature_file.h"
#include "tests/apps/copy_program.h"
#include "tests/apps/process.h"
#include "tests/apps/sound.h"
#include "tests/support/source_path.h"

namespace melflow::test::cli_test {

namespace fs = std::filesystem;

namespace {

const std::string kMelflow = MELFLOW_PROGRAM;
const std::string kToy = MELFLOW_TOY_PROGRAM;

constexpr const char* kToyYaml =
    "version: 1\n"
    "graph:\n"
    "  files: {stage: toy_count, count: 5}\n"
    "  work: {stage: toy_work, from: files, queue: 7, concurrency: 3}\n"
    "  end: {stage: toy_keep, from: work}\n";

long count_lines(const std::string& text) { return std::count(text.begin(), text.end(), '\n'); }

// Installs the program and its pipelines in a folder.
std::string install(const TempFolder& folder) {
  fs::create_directories(folder / "share/melflow");
  fs::copy(fs::path(test::source_path("config/pipelines")), folder / "share/melflow/pipelines",
           fs::copy_options::recursive);
  return test::copy_program(folder);
}

}  // namespace

TEST_CASE("cli: where memory ends there is some to spare, once, to end with") {
  std::string program = "melflow", flag = "--version";
  char* arguments[] = {program.data(), flag.data(), nullptr};
  CHECK(run_program(2, arguments) == 0);
  const std::new_handler handler = std::set_new_handler(nullptr);
  REQUIRE(static_cast<bool>(handler));
  handler();
  CHECK_THROWS_AS(handler(), std::bad_alloc);
}

TEST_CASE("cli: --version and --help end with 0, and every verb's help has an example") {
  const TempFolder folder;
  CHECK(exits(0, run(folder, {kMelflow, "--version"})).out ==
        fmt::format("melflow {}\ntransform: {}\n", kVersion, transform_name()));
  const Ended help = exits(0, run(folder, {kMelflow, "--help"}));
  for (const Verb& verb : kVerbs) {
    INFO(verb.name);
    CHECK(has(help.out, fmt::format("\n{}:\n", verb.heading)));
    CHECK(has(help.out, fmt::format("\n  {} ", verb.name)));
    CHECK(has(help.out, fmt::format(" {}\n", verb.summary)));
    const Ended of_verb = exits(0, run(folder, {kMelflow, verb.name, "--help"}));
    CHECK(of_verb.out.starts_with(verb.summary));
    CHECK(has(of_verb.out, "Example:\n  "));
    CHECK(has(of_verb.out, std::string("melflow ") + verb.name));
    CHECK(of_verb.out.ends_with("\n"));
  }
}

TEST_CASE("cli: `help` and `help VERB` print what --help prints") {
  const TempFolder folder;
  CHECK(run(folder, {kMelflow, "help"}).out == run(folder, {kMelflow, "--help"}).out);
  for (const Verb& verb : kVerbs) {
    CAPTURE(verb.name);
    const Ended help = exits(0, run(folder, {kMelflow, "help", verb.name}));
    CHECK(help.err.empty());
    CHECK(help.out == run(folder, {kMelflow, verb.name, "--help"}).out);
  }
}

TEST_CASE("cli: a wrong configuration ends with 78, one problem a line and their number") {
  const TempFolder folder;
  write_text(folder / "a.yaml",
             "version: 1\n"
             "graph:\n"
             "  files: {stage: toy_count, cuont: 5}\n"
             "  end: {stage: toy_keep, from: files, path: \"${NOT_SET_ANYWHERE}\"}\n");
  for (const char* verb : {"run", "validate", "graph"}) {
    const Ended e = exits(78, run(folder, {kToy, verb, "a.yaml"}));
    CHECK(e.out.empty());
    CHECK(count_lines(e.err) == 3);
    CHECK(e.err.starts_with(
        "a.yaml:3:29: files.cuont: unknown option of toy_count. Did you mean 'count'?\n"
        "a.yaml:4:45: the variable NOT_SET_ANYWHERE is not set"));
    CHECK(e.err.ends_with("melflow: 2 problems in the configuration, nothing was started\n"));
  }
}

TEST_CASE("cli: --var, --set and the environment reach the configuration") {
  const TempFolder folder;
  write_text(folder / "a.yaml",
             "version: 1\n"
             "graph:\n"
             "  files: {stage: toy_count}\n"
             "  end: {stage: toy_keep, from: files, path: \"${ONE}-${TWO}\"}\n");
  const Ended e = exits(0, run(folder,
                               {kToy, "validate", "a.yaml", "--json", "--var", "ONE=1", "--set",
                                "files.count=77", "--set", "end.queue=9", "--workers", "3"},
                               {{"ONE", "x"}, {"TWO", "2"}}));
  const auto json = nlohmann::json::parse(e.out);
  CHECK(json["ok"] == true);
  CHECK(json["workers"] == 3);
  CHECK(json["config"]["graph"]["end"]["path"] == "1-2");
  CHECK(json["config"]["graph"]["end"]["queue"] == 9);
  CHECK(json["config"]["graph"]["files"]["count"] == 77);
  const Ended wrong =
      exits(78, run(folder, {kToy, "validate", "a.yaml", "--json", "--var", "ONE=1"}));
  const auto problems = nlohmann::json::parse(wrong.out)["problems"];
  REQUIRE(problems.size() == 1);
  CHECK(problems[0]["line"] == 4);
  CHECK(problems[0]["column"] == 45);
  CHECK(problems[0]["file"] == "a.yaml");
}

TEST_CASE("cli: a pipeline that is not there is named, with those that come with the program") {
  const TempFolder folder;
  const std::string melflow = install(folder);
  const Ended e = exits(78, run(folder, {melflow, "run", "dmeo"}));
  CHECK(
      e.err.starts_with("dmeo: there is no such file; the pipelines that come with melflow are "
                        "dataset_builder, demo, kaldi_mfcc, language_id, leak_two_stage, "
                        "speech_16k_80mel, whisper. Did you mean 'demo'?\n"));
}

TEST_CASE("cli: a program that was copied away from its pipelines says where it looked") {
  const TempFolder folder;
  CHECK(has(exits(78, run(folder, {copy_program(folder), "validate", "demo"})).err,
            "demo: there is no such file, and none of the pipelines that come with melflow: they "
            "were looked for in " +
                (folder / "share/melflow/pipelines") + ", "));
}

TEST_CASE("cli: the pipelines that come with the program are valid and go by their names") {
  const TempFolder folder;
  const std::string melflow = install(folder);
  fs::create_directory(folder / "d");
  for (const std::string name : {"dataset_builder", "demo", "kaldi_mfcc", "language_id",
                                 "leak_two_stage", "speech_16k_80mel", "whisper"}) {
    for (const std::string& given : {name, name + ".yaml"}) {
      const Ended e =
          exits(0, run(folder, {melflow, "validate", given, "--var", "DATA=d", "--var", "OUT=o"}));
      INFO(given << ": " << e.err);
      CHECK_FALSE(has(e.out, "warning"));
    }
    // The names of the nodes are part of the interface: --set uses them.
    const Ended e =
        run(folder, {melflow, "validate", name, "--json"}, {{"DATA", "d"}, {"OUT", "o"}});
    const auto config = nlohmann::ordered_json::parse(e.out)["config"];
    write_text(folder / "stored.yaml", config.dump(2));
    const Ended again = run(folder, {melflow, "validate", "stored.yaml", "--json"});
    CHECK(nlohmann::ordered_json::parse(again.out)["warnings"] == nlohmann::ordered_json::array());
    const auto& graph = config["graph"];
    std::vector<std::string> nodes;
    for (const auto& [node, options] : graph.items())
      if (node != "resample" && node != "mfcc" && node != "deltas") nodes.push_back(node);
    CHECK(nodes ==
          std::vector<std::string>{"files", "read", "decode", "segment", "batch", "mel", "write"});
  }
}

TEST_CASE("cli: graph prints nodes and bounded edges for Mermaid") {
  const TempFolder folder;
  write_text(folder / "a.yaml", kToyYaml);
  const Ended e = exits(0, run(folder, {kToy, "graph", "a.yaml", "--set", "end.concurrency=1",
                                        "--set", "end.queue=2"}));
  CHECK(e.out ==
        "flowchart LR\n"
        "  n0[\"files<br/>toy_count × 1\"]\n"
        "  n1[\"work<br/>toy_work × 3\"]\n"
        "  n2[\"end<br/>toy_keep × 1\"]\n"
        "  n0 -->|\"toy, queue 7\"| n1\n"
        "  n1 -->|\"toy, queue 2\"| n2\n");
  const Ended by_itself = run(
      folder, {kToy, "graph", "a.yaml", "--set", "end.concurrency=5", "--set", "end.queue=auto"});
  CHECK(has(by_itself.out, "  n1 -->|\"toy, queue 10\"| n2\n"));
}

TEST_CASE("cli: the configuration that is told is one that can be run again, with auto in it") {
  const TempFolder folder;
  write_text(folder / "a.yaml", kToyYaml);
  const auto config = [&](const char* file) {
    const Ended e =
        exits(0, run(folder, {kToy, "validate", file, "--json", "--set", "end.start_at=0.25"}));
    return nlohmann::ordered_json::parse(e.out)["config"];
  };
  const auto first = config("a.yaml");
  CHECK(first["graph"]["work"]["queue"] == 7);
  CHECK(first["graph"]["end"]["queue"] == "auto");
  CHECK(first["graph"]["end"]["start_at"] == 0.25);
  write_text(folder / "b.yaml", first.dump(2));
  CHECK(config("b.yaml") == first);
}

TEST_CASE("cli: stages lists every stage and shows all options of one") {
  const TempFolder folder;
  const Ended list = exits(0, run(folder, {kMelflow, "stages"}));
  for (const char* name :
       {"file_list", "disk_read", "decode", "resample", "segment", "batch", "mel", "hdf5_write"}) {
    INFO(name);
    CHECK(has("\n" + list.out, std::string("\n") + name + " "));
  }
  const Ended one = exits(0, run(folder, {kToy, "stages", "toy_work"}));
  CHECK(one.out.starts_with("toy_work: Works, or fails when told to.\n\n  toy → toy\n"));
  CHECK(has(one.out,
            "  wait_ms  (integer, 0 to 60000 ms; default 0)\n      time an item takes [ms]\n"));
  CHECK(has(one.out, "  queue  (integer, 1 to 1048576)\n"));
  const Ended schema = run(folder, {kMelflow, "stages", "--json-schema"});
  CHECK(nlohmann::json::parse(schema.out)["$defs"].contains("hdf5_write"));
}

TEST_CASE("cli: docs/stages.md is what `melflow stages --markdown` prints now") {
  const TempFolder folder;
  const Ended e = exits(0, run(folder, {kMelflow, "stages", "--markdown"}));
  const bool is_current = e.out == read_text(fs::path(test::source_path("docs/stages.md")));
  CHECK_MESSAGE(is_current, "stale: melflow stages --markdown > docs/stages.md");
}

TEST_CASE("cli: init writes a pipeline that is valid, and never over one that is there") {
  const TempFolder folder;
  fs::create_directory(folder / "data");
  CHECK(run(folder, {kMelflow, "init"}).code == 0);
  CHECK(fs::exists(folder / "melflow.yaml"));
  CHECK_FALSE(has(exits(0, run(folder, {kMelflow, "validate", "melflow.yaml"})).out, "warning"));

  write_text(folder / "mine.yaml", "mine");
  const Ended again = exits(1, run(folder, {kMelflow, "init", "mine.yaml"}));
  CHECK(has(again.err, "mine.yaml: this already exists"));
  CHECK(read_text(folder / "mine.yaml") == "mine");
  CHECK(run(folder, {kMelflow, "init", "mine.yaml", "--force"}).code == 0);
  CHECK(read_text(folder / "mine.yaml") == read_text(folder / "melflow.yaml"));
}

TEST_CASE("cli: docs/features.md has what `melflow presets --markdown` prints now") {
  const TempFolder folder;
  const Ended e = run(folder, {kMelflow, "presets", "--markdown"});
  const bool is_current = has(read_text(fs::path(test::source_path("docs/features.md"))), e.out);
  CHECK_MESSAGE(is_current, "stale: the table of `melflow presets --markdown` in docs/features.md");
}

TEST_CASE("cli: docs/model-files.md has what `melflow presets --classes` prints now") {
  const TempFolder folder;
  const Ended e = run(folder, {kMelflow, "presets", "--classes"});
  const bool is_current = has(read_text(fs::path(test::source_path("docs/model-files.md"))), e.out);
  CHECK_MESSAGE(is_current,
                "stale: the tables of `melflow presets --classes` in docs/model-files.md");
}

TEST_CASE("cli: a model's own file is shown and written out with the source of each value") {
  const TempFolder folder;
  fs::create_directory(folder / "data");
  fs::create_directory(folder / "model");
  write_text(folder / "model/preprocessor_config.json",
             "{\n  \"feature_extractor_type\": \"SeamlessM4TFeatureExtractor\",\n"
             "  \"num_mel_bins\": 80,\n  \"sampling_rate\": 16000,\n  \"stride\": 2\n}\n");
  const std::string nodes = exits(0, run(folder, {kMelflow, "presets", "model"})).out;
  for (const char* line : {"# SeamlessM4TFeatureExtractor of transformers 5.24.0, 16000 Hz, xxh3 ",
                           "    n_mels: 80                      # num_mel_bins, line 3\n",
                           "    frames: 2                       # stride, line 5\n",
                           "    preset_of: \"SeamlessM4TFeatureExtractor of transformers"})
    CHECK_MESSAGE(has(nodes, line), nodes);
  exits(0, run(folder, {kMelflow, "init", "--from", "model", "p.yaml"}));
  CHECK(has(read_text(folder / "p.yaml"),
            "    n_mels: 80                      # num_mel_bins, line 3\n"));
  CHECK_FALSE(has(exits(0, run(folder, {kMelflow, "validate", "p.yaml"})).out, "warning"));
  CHECK(has(exits(0, run(folder, {kMelflow, "compare", "model", "seamless"})).out, "equal"));
  const Ended other = run(folder, {kMelflow, "compare", "model/preprocessor_config.json", "wenet"});
  CHECK(other.code == 1);
  CHECK(has(other.out, "stack: only in model/preprocessor_config.json"));
  CHECK(has(exits(0, run(folder, {kMelflow, "presets"})).out, "lhotse 1.33.0, Wav2LogFilterBank"));
  CHECK(has(run(folder, {kMelflow, "presets", "wisper"}).err, "Did you mean 'whisper'?"));

  write_text(
      folder / "model/preprocessor_config.json",
      "{\n  \"feature_extractor_type\": \"SeamlessM4TFeatureExtractor\",\n  \"strid\": 2\n}\n");
  for (const std::vector<std::string>& words : {std::vector<std::string>{"presets", "model"},
                                                {"init", "--force", "--from", "model", "p.yaml"},
                                                {"compare", "model", "seamless"}}) {
    std::vector<std::string> all{kMelflow};
    all.insert(all.end(), words.begin(), words.end());
    const Ended wrong = run(folder, all);
    CHECK(wrong.code == 78);
    CHECK_MESSAGE(has(wrong.err, "model/preprocessor_config.json:3:3: strid: "), wrong.err);
  }
}

TEST_CASE("cli: init starts from a pipeline that comes with melflow, or from a preset") {
  const TempFolder folder;
  fs::create_directory(folder / "data");
  const auto init = [&](const std::string& from) {
    return run(folder, {kMelflow, "init", "--force", "--from", from, "p.yaml"});
  };
  const auto fields = [&](std::initializer_list<const char*> wanted) {
    const std::string text = read_text(folder / "p.yaml");
    for (const char* field : wanted) {
      CAPTURE(std::string(field));
      CHECK(has(text, field));
    }
  };
  CHECK(init("whisper").code == 0);
  CHECK(read_text(folder / "p.yaml") ==
        std::regex_replace(read_text(fs::path(test::source_path("config/pipelines/whisper.yaml"))),
                           std::regex("melflow (run|test) whisper"), "melflow $1 p.yaml"));
  CHECK(init("whisper_large_v3").code == 0);
  fields({"\n    preset: whisper_large_v3\n", "\n    length: 30s\n", "\n    rate: 16000\n"});
  CHECK(init("hifigan").code == 0);
  fields({"\n    preset: hifigan\n", "\n    # length: 1s ", "\n    rate: 22050\n"});
  CHECK(init("seamless").code == 0);
  fields({"\n    preset: seamless\n    # includes stack: {frames: 2, tail: value}\n"});
  CHECK(init("wav2vec2").code == 0);
  fields({"\n    stage: samples\n    from: resample\n    preset: wav2vec2\n",
          "\n    from: samples\n    path:"});

  const Ended help = run(folder, {kMelflow, "init", "--help"});
  const std::size_t at = help.out.find("preset of mel or samples: ");
  REQUIRE(at != std::string::npos);
  std::istringstream names(help.out.substr(at + 26, help.out.find('\n', at) - at - 26));
  int count = 0;
  for (std::string name; std::getline(names >> std::ws, name, ',');) {
    CAPTURE(name);
    CHECK(init(name).code == 0);
    exits(0, run(folder,
                 {kMelflow, "validate", "p.yaml", "--var", "DATA=data", "--var", "OUT=out.h5"}));
    ++count;
  }
  CHECK(count >= 80);
}

TEST_CASE("cli: init looks at a folder, says what it takes it for, and writes its pipeline") {
  const TempFolder folder;
  fs::create_directories(folder / "lj/wavs");
  write_text(folder / "lj/metadata.csv", "a|b \"|c\n");
  write_text(folder / "lj/other.csv", "a,b\n1,2\n");
  const Ended made = exits(0, run(folder, {kMelflow, "init", "--from", "lj", "p.yaml"}));
  CHECK(has(made.out,
            "lj is taken for LJSpeech (metadata.csv with |, wavs/ID.wav). p.yaml is written."));
  CHECK(made.err == "note: lj: a table is not used: other.csv\n");
  const std::string text = read_text(folder / "p.yaml");
  CHECK(has(text,
            "  files:                      # LJSpeech (metadata.csv with |, wavs/ID.wav)\n"
            "    stage: file_list\n    root: \"lj\"\n    manifest: \"lj/metadata.csv\"\n"));
  CHECK(has(text, "\n  read:\n    stage: disk_read\n"));
  exits(0, run(folder, {kMelflow, "validate", "p.yaml"}));
  fs::create_directory(folder / "none");
  const Ended refused = exits(1, run(folder, {kMelflow, "init", "--from", "none", "q.yaml"}));
  CHECK(has(refused.err,
            "none: there is no sound file in it, and no list that is known (docs/corpora.md)"));
  write_text(folder / "list.csv", "a,b\n1,2\n");
  CHECK(
      has(exits(1, run(folder, {kMelflow, "init", "--from", "list.csv", "q.yaml"})).err,
          "list.csv: no column has paths of files that are there, from the folder of the table or "
          "the one above it; its columns are a, b. Write the pipeline by hand: "));
  CHECK_FALSE(fs::exists(folder / "q.yaml"));
  CHECK(has(run(folder, {kMelflow, "init", "--from", "nonee", "q.yaml"}).err,
            "there is no 'nonee'; allowed: "));
}

TEST_CASE("cli: names in a corpus are names in what init writes, whatever they are") {
  const std::string injected =
      "train\n    stage: file_list\n    call: \"os:system\"\n    arguments: {command: \"touch "
      "PWNED\"}\n"
      "  d: {stage: discard, from: more}\n  more: #";
  const std::string names[] = {injected, "train\nplugins: [\"corpus\\x2fevil.so\"]\nzz:\n  yy: #",
                               "train ${HOME} $", "train\xE2\x80\xA8 \"'{}[]: &a *b",
                               "train\xE9\x80"};
  for (const std::string& name : names) {
    CAPTURE(name);
    const TempFolder folder;
    const std::string root = "c" + name;
    write_clip(folder / (root + "/" + name + "/a.wav"), 16000, 0.3, 1);
    write_clip(folder / (root + "/test/b.wav"), 16000, 0.3, 2);
    const Ended made = exits(0, run(folder, {kMelflow, "init", "--from", root, "p.yaml"}));
    CHECK(has(made.out, " is taken for a folder of 2 sound files"));
    const std::string text = read_text(folder / "p.yaml"),
                      files = text.substr(text.find("  files:"));
    CHECK(has(files, "\n    stage: file_list\n    root: \""));
    CHECK_FALSE(has(text, "\nplugins"));
    exits(0, run(folder, {kMelflow, "validate", "p.yaml", "--var", "OUT=o.h5"}));
    exits(0, run(folder, {kMelflow, "run", "p.yaml", "-q", "--var", "OUT=o.h5"}));
    const FeatureFile output(folder / "o.h5");
    REQUIRE(output.files().size() == 2);
    CHECK(output.root() == root);
    for (const FeatureFile::Entry& e : output.files())
      CHECK((e.path == name + "/a.wav" || e.path == "test/b.wav"));
    CHECK_FALSE(fs::exists(folder / "PWNED"));
  }
}

// A comment in the file that init writes lists "one of a, b, c" for the option before it.
TEST_CASE("cli: every choice that init offers is accepted") {
  const TempFolder folder;
  REQUIRE(run(folder, {kMelflow, "init", "p.yaml"}).code == 0);
  std::istringstream lines(read_text(folder / "p.yaml"));
  const std::regex node("  (\\w+):.*"), offer(" +(\\w+): .*# .*one of ([\\w, ]+)"), word("\\w+");
  std::smatch found;
  std::string at;
  std::set<std::string> offered;
  for (std::string line; std::getline(lines, line);) {
    if (std::regex_match(line, found, node)) at = found[1];
    if (!std::regex_match(line, found, offer)) continue;
    const std::string option = at + "." + found[1].str(), choices = found[2];
    for (std::sregex_iterator c(choices.begin(), choices.end(), word), end; c != end; ++c) {
      const std::string choice = option + "=" + c->str();
      CAPTURE(choice);
      const Ended e = run(folder, {kMelflow, "validate", "p.yaml", "--set", choice});
      // Some choices also need another option, which gives another message.
      CHECK_FALSE(has(e.err + e.out, "is not one of"));
      CHECK_FALSE(has(e.err + e.out, "unknown option"));
      offered.insert(choice);
    }
  }
  CHECK(offered.contains("files.labels=file"));
  CHECK(offered.contains("mel.log=db"));
}

TEST_CASE("cli: the options that init leaves commented out can be put in") {
  const TempFolder folder;
  fs::create_directory(folder / "data");
  REQUIRE(run(folder, {kMelflow, "init", "p.yaml"}).code == 0);
  const std::string text = read_text(folder / "p.yaml");
  const std::regex commented("\n( *)# (\\w+: [^\\n]*)");
  const auto count = std::distance(std::sregex_iterator(text.begin(), text.end(), commented),
                                   std::sregex_iterator());
  CHECK(count == 7);  // max_failures, include, splits and two of their options, length, hop
  write_text(folder / "all.yaml", std::regex_replace(text, commented, "\n$1$2"));
  CHECK_FALSE(has(exits(0, run(folder, {kMelflow, "validate", "all.yaml"})).out, "warning"));
}

TEST_CASE("cli: every stage is shown with an example, and one option of it alone") {
  const TempFolder folder;
  for (const std::string& name : Registry::global().names()) {
    const Ended e = run(folder, {kMelflow, "stages", name});
    if (e.code == 2) continue;  // a verb that only this test program has
    INFO(name);
    CHECK(e.code == 0);
    CHECK(has(e.out, "\nExample:\n  " + name + ": {stage: " + name));
  }
  const Ended one = exits(0, run(folder, {kMelflow, "stages", "MEL.hop"}));
  CHECK(one.out.starts_with("  hop  (samples or time"));
}

}  // namespace melflow::test::cli_test
