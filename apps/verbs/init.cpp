// melflow init: makes a configuration to start from, or a project with the user's own stage.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "apps/exit_codes.h"
#include "apps/report/printing.h"
#include "apps/shipped.h"
#include "apps/verbs/front_end_text.h"
#include "apps/verbs/plan_arguments.h"
#include "apps/verbs/verbs.h"
#include "apps/verbs/written_file.h"
#include "config/text_check.h"
#include "config/yaml_text.h"
#include "pipeline/base/input_file.h"
#include "pipeline/base/near_names.h"
#include "pipeline/base/problem.h"
#include "pipeline/base/text.h"
#include "pipeline/stage/registry.h"
#include "stages/corpus/archive_names.h"
#include "stages/corpus/guess/corpus_guess.h"
#include "stages/features/mel/mel_presets.h"
#include "stages/files/own_file.h"
#include "stages/front_ends.h"
#include "stages/model_files/model_file.h"

namespace melflow {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLongestName = 40;
constexpr std::size_t kLongestComment = 1000;  // [bytes]
constexpr const char* kExample = "loudness";   // the stage's name in the example files
constexpr const char* kFiles[] = {"loudness.cpp", "loudness_test.cpp", "loudness.yaml",
                                  "CMakeLists.txt"};

bool is_small(char c) { return c >= 'a' && c <= 'z'; }

// Converts peak_level to PeakLevel.
std::string class_name(const std::string& stage) {
  std::string out;
  bool begins = true;
  for (const char c : stage) {
    if (c != '_') out += begins && is_small(c) ? static_cast<char>(c - 'a' + 'A') : c;
    begins = c == '_';
  }
  return out;
}

void replace_all(std::string& text, const std::string& from, const std::string& to) {
  for (std::size_t at = text.find(from); at != std::string::npos;
       at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

std::string renamed(std::string text, const std::string& stage) {
  replace_all(text, kExample, stage);
  replace_all(text, class_name(kExample), class_name(stage));
  return text;
}

std::string example_text(const std::string& file) {
  const fs::path path = shipped_file("own_stage/" + file, "apps/own_stage/" + file);
  constexpr std::size_t kMostText = 1 << 20;  // [bytes]
  return InputFile(path).read_all(kMostText);
}

// Returns the error in the name of a new stage, and what is allowed; "" where it is valid.
std::string wrong_stage_name(const std::string& name) {
  const bool is_name = !name.empty() && is_small(name.front()) && name.size() <= kLongestName &&
                       std::all_of(name.begin(), name.end(), [](char c) {
                         return is_small(c) || c == '_' || (c >= '0' && c <= '9');
                       });
  if (!is_name)
    return fmt::format(
        "{} is not a name for a stage; allowed: small letters, digits and _, a letter first, "
        "at most {} characters, such as peak_level",
        name.empty() ? "an empty text" : name, kLongestName);
  if (Registry::global().find(name) != nullptr)
    return fmt::format("there is a stage {} already (melflow stages {}); give another name", name,
                       name);
  return "";
}

// Makes the folder with the stage `name`, its test, a pipeline and a CMakeLists.txt by renaming the
// example that comes with melflow. Throws RunError when `folder` exists already or cannot be made;
// then nothing is left.
void write_stage_project(const std::string& name, const std::string& folder) {
  if (has_name(folder))
    throw RunError(folder + ": this already exists; give the name of a new folder");
  std::vector<std::pair<std::string, std::string>> files;
  for (const char* file : kFiles)
    files.emplace_back(renamed(file, name), renamed(example_text(file), name));

  std::error_code error;
  if (!fs::create_directory(folder, error))
    throw RunError(fmt::format("{}: the folder cannot be made: {}", folder, error.message()));
  try {
    for (const auto& [file, text] : files)
      WrittenFile((fs::path(folder) / file).string(), kAnyFile).write(text);
  } catch (...) {
    fs::remove_all(folder, error);
    throw;
  }
}

// Returns the prefix in which CMake finds the package; "" where the program is not installed.
std::string installed_prefix() {
  const fs::path prefix = shipped_places("", "").front() / "../..";  // from PREFIX/share/melflow
  std::error_code error;  // packages of the program alone lack headers
  const bool has_headers = fs::is_directory(prefix / "include/melflow", error);
  return has_headers ? fs::canonical(prefix, error).string() : "";
}

// @rate@ (with further options), @segment@, @mel@ and @last@ depend on the preset.
constexpr std::string_view kTemplate =
    R"yaml(# A melflow pipeline: a folder of recordings becomes mel features in one HDF5 file.
#
#   melflow validate FILE                        checks it
#   DATA=clips OUT=clips.h5 melflow run FILE     runs it
#   melflow stages mel                           shows every option of a stage
version: 1

# All that the files under way may take at the same time.
memory: {host: 1GiB}

# End the run when more files than this fail: a count (10) or a share (1%). Without it a bad file
# never stops a run; it is listed at the end and in the output.
# max_failures: 1%

# Each node names its stage and the node whose output it takes. Every node but the first may also
# have `concurrency` (items at the same time) and `queue` (items that wait); omitted, they fit the
# machine. ${NAME} is a variable of the environment, or of --var NAME=value; after :- is what it is
# when nobody sets it.
graph:
  files:
    stage: file_list
    root: ${DATA:-data}
    # include: ["**/*.wav", "**/*.flac"]
    labels: parent_dir        # the label; one of none, parent_dir, top_dir, file, manifest
    # splits: ratio           # drawn, the same every time; or top_dir, manifest
    # split_ratios: {train: 80%, val: 10%, test: 10%}
    # split_group: parent_dir # keeps the files of a folder, such as a speaker's, in one split

  read:
    stage: disk_read
    from: files

  decode:                     # WAV, FLAC, OGG, MP3, AIFF, …; several channels become one
    stage: decode
    from: read

  resample:                   # recordings of any rate: all the same from here on
    stage: resample
    from: decode
    rate: @rate@

@segment@
@mel@
  write:
    stage: hdf5_write
    from: @last@
    path: ${OUT:-features.h5}
)yaml";

constexpr std::string_view kSegmentNode =
    R"yaml(  segment:                    # without a length: whole recordings, a row is a frame
    stage: segment
    from: resample
    # length: 1s              # with a length: a row is a window of that length
    # hop: 500ms
)yaml";
constexpr std::string_view kMelNode = R"yaml(  mel:
    stage: mel
    from: segment
    sample_rate: 16kHz        # must be what arrives
    n_fft: 512                # [samples]
    win_length: 25ms          # or in samples: 400
    hop: 10ms                 # or in samples: 160
    n_mels: 80
    log: db                   # one of none, ln, log10, db
)yaml";

// Options of mel that do the steps after the mel spectrogram in typical code for a library.
struct Decibels {
  std::string_view preset;
  std::string_view options;  // lines of YAML
};
constexpr Decibels kDecibels[] = {
    {"librosa",
     "    # log: db                 # librosa.power_to_db(S, ref=np.max): these three\n"
     "    # ref: max\n"
     "    # top_db: 80\n"},
    {"torchaudio",
     "    # log: db                 # torchaudio.transforms.AmplitudeToDB(top_db=80): these two\n"
     "    # top_db: 80\n"},
};

void fill(std::string& text, std::string_view mark, std::string_view with) {
  text.replace(text.find(mark), mark.size(), with);
}

std::string segment_node(const MelPreset* preset) {
  if (preset == nullptr || preset->window_seconds == 0) return std::string(kSegmentNode);
  return fmt::format(
      "  segment:                    # windows of the length that the model takes\n"
      "    stage: segment\n    from: resample\n    length: {}s\n"
      "    tail: pad                 # the last one is padded with silence\n",
      preset->window_seconds);
}

// The node of `stage` with the preset. What the preset puts before it takes whole recordings.
std::string preset_node(const FrontEnd& of, std::string_view stage, bool has_segment) {
  std::string out =
      fmt::format("  {0}:{1:<{2}}# {3}\n    stage: {0}\n    from: {4}\n    preset: {5}\n", stage,
                  "", std::max<std::size_t>(1, 27 - stage.size()), of.summary,
                  has_segment ? "segment" : "resample", of.name);
  for (const FrontEndNode& node : of.nodes())
    if (node.stage != stage && node.stage != "segment")
      out += fmt::format("    # includes {}\n", node.text);
  for (const Decibels& d : kDecibels)
    if (d.preset == of.name) out += d.options;
  if (stage == "mel")
    out += "    # n_mels: 64              # what stands here takes precedence over the preset\n";
  return out;
}

// `of`: null for none.
std::string template_text(const FrontEnd* of) {
  const MelPreset* mel = of == nullptr ? nullptr : find_preset(of->name);
  const bool is_mel = of == nullptr || mel != nullptr;
  const bool has_segment =
      of == nullptr || of->nodes().front().stage == "segment" || of->nodes().front().stage == "mel";
  const int rate = of == nullptr ? 0
                   : is_mel      ? mel->options.sample_rate
                                 : of->sample_rate_of("samples");
  std::string out(kTemplate);
  fill(out, "@rate@", of == nullptr ? "16kHz" : std::to_string(rate));
  fill(out, "@segment@\n", has_segment ? segment_node(mel) + "\n" : "");
  const std::string_view stage = is_mel ? "mel" : "samples";
  fill(out, "@mel@", of == nullptr ? std::string(kMelNode) : preset_node(*of, stage, has_segment));
  fill(out, "@last@", stage);
  return out;
}

// The pipeline with a model's own front end, written out.
std::string model_text(const ModelFrontEnd& of) {
  std::string out(kTemplate);
  const bool is_mel = of.main().stage == "mel";
  const bool begins_with_rows =
      of.nodes.front().stage == "mel" || of.nodes.front().stage == "samples";
  const bool has_segment = of.window.name.empty() && begins_with_rows && is_mel;
  fill(out, "@rate@\n",
       fmt::format("{}\n{}", of.sample_rate(),
                   of.resampling.name.empty()
                       ? std::string()
                       : fmt::format("    length: {:<18}# {}\n", of.resampling.value.text(),
                                     of.resampling.source)));
  fill(out, "@segment@\n", has_segment ? std::string(kSegmentNode) + "\n" : "");
  fill(out, "@mel@\n", model_nodes_yaml(of, has_segment ? "segment" : "resample", true));
  fill(out, "@last@", last_node(of));
  fill(out, "version: 1\n",
       fmt::format("# Features of {}, {} ({}).\n{}version: 1\n", of.title,
                   one_line(excerpt(of.file, kLongestComment)), of.hash, assumptions_yaml(of)));
  return out;
}

// Returns the values of --from: pipelines that come with melflow, and presets.
std::vector<std::string> starting_points() {
  std::vector<std::string> out = shipped_pipeline_names();
  for (const FrontEnd& f : front_ends()) out.emplace_back(f.name);
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

// Whether the value of --from is a folder, an archive or a list, and no name of a starting point.
bool is_corpus(const std::string& from) {
  const std::vector<std::string> names = starting_points();
  std::error_code error;
  if (is_model_path(from)) return false;
  return std::find(names.begin(), names.end(), from) == names.end() &&
         (fs::is_directory(from, error) || fs::is_regular_file(from, error) ||
          names_archives(from));
}

// `file`: the file to be written.
std::string starting_text(const std::string& from, const std::string& file) {
  if (from.empty()) return template_text(nullptr);
  const std::vector<std::string> shipped = shipped_pipeline_names();
  if (std::find(shipped.begin(), shipped.end(), from) == shipped.end() &&
      find_front_end(from) == nullptr)
    return model_text(read_model_file(Value::scalar(from)));
  if (std::find(shipped.begin(), shipped.end(), from) == shipped.end())
    return template_text(find_front_end(from));
  const std::string path = find_pipeline(from);
  std::string text = InputFile(path).read_all(kMostText);
  // Comments in the text name the commands that run and test the pipeline: puts in the new name.
  for (const std::string verb : {"melflow run ", "melflow test "})
    for (std::size_t at = 0; (at = text.find(verb + from, at)) != std::string::npos;)
      text.replace(at + verb.size(), from.size(), one_line(file)), at += verb.size();
  return text;
}

// The pipeline for a corpus: the template with a node that reads the corpus.
std::string corpus_text(const CorpusGuess& corpus) {
  std::string text = template_text(nullptr),
              node = "  files:                      # " + excerpt(corpus.what, kLongestComment);
  node += "\n    stage: file_list\n";
  for (const auto& [option, value] : corpus.options)
    node += fmt::format("    {}: {}\n", option, yaml_flow(value));
  const std::size_t begin = text.find("  files:\n"), end = text.find("\n  read:\n");
  text.replace(begin, end - begin, node);
  fill(text, "#   DATA=clips OUT=clips.h5 melflow run FILE     runs it\n",
       "#   OUT=features.h5 melflow run FILE             runs it\n");
  fill(text, "a folder of recordings becomes", "a corpus becomes");
  return text;
}

int write_pipeline(const std::string& path, const std::string& from, bool force) {
  if (!force && has_name(path))
    throw RunError(path + ": this already exists; give another name, or --force to replace it");
  if (is_corpus(from)) {
    const std::optional<CorpusGuess> corpus = guess_corpus(from);
    if (!corpus)
      throw RunError(from +
                     (fs::is_directory(from)
                          ? ": there is no sound file in it, and no list that is known "
                          : ": this is no list whose columns or files are known, and no "
                            "archive with a sound file; write the pipeline by hand ") +
                     "(docs/corpora.md)");
    WrittenFile(path, kAnyFile, {from}).write(corpus_text(*corpus));
    say(stdout,
        "{0} is taken for {1}. {2} is written. Next:\n  melflow validate {2}\n"
        "  OUT=features.h5 melflow run {2}\n",
        from, corpus->what, path);
    for (const std::string& remark : corpus->remarks) say(stderr, "note: {}: {}\n", from, remark);
    return kDone;
  }
  std::error_code error;
  if (fs::is_directory(from, error) && !is_model_path(from))
    throw RunError(fmt::format(
        "{0}: is a folder, and the name of what melflow comes with; write ./{0} for the folder, or "
        "run this elsewhere",
        from));
  const std::vector<std::string> read =
      is_model_path(from) ? std::vector{from} : std::vector<std::string>();
  WrittenFile(path, kAnyFile, read).write(starting_text(from, path));
  say(stdout, "{0} is written. Next:\n  DATA=folder OUT=features.h5 melflow run {0}\n", path);
  return kDone;
}

int write_stage(const std::string& name, const std::string& folder) {
  write_stage_project(name, folder);
  const std::string prefix = installed_prefix();
  say(stdout,
      "{0} is written: the stage {1} ({1}.cpp), its test, a pipeline. Next:\n"
      "  cd {0}\n"
      "  cmake -S . -B build -G Ninja -DCMAKE_PREFIX_PATH={2}\n"
      "  cmake --build build\n"
      "  ctest --test-dir build\n"
      "  DATA=folder OUT=features.h5 build/melflow_{1} run {1}.yaml\n"
      "or, with the stage as a plug-in of melflow:\n"
      "  DATA=folder OUT=features.h5 melflow --plugin build/{1}.so run {1}.yaml\n",
      folder, name, prefix.empty() ? "PREFIX    # where melflow and its headers are" : prefix);
  return kDone;
}

}  // namespace

Action add_init(CLI::App& verb) {
  struct Arguments {
    std::string path = "melflow.yaml", from, stage;
    bool force = false;
  };
  auto given = std::make_shared<Arguments>();
  CLI::Option* path = verb.add_option("FILE", given->path,
                                      "the file to write; with --stage a new folder, by default "
                                      "the stage's name")
                          ->capture_default_str();
  CLI::Option* force = verb.add_flag("--force", given->force, "replaces FILE if it exists");
  CLI::Option* from =
      verb.add_option(
              "--from", given->from,
              fmt::format(
                  "starts from a corpus (a folder, an archive or a list, whose kind it finds out), "
                  "from a model's own file or folder (docs/model-files.md), from a pipeline that "
                  "comes with melflow, or from a preset of mel or samples: {}",
                  fmt::join(starting_points(), ", ")))
          ->type_name("NAME|PATH")
          ->check(CLI::Validator(
              [](std::string& name) {
                const std::vector<std::string> all = starting_points();
                if (std::find(all.begin(), all.end(), name) != all.end() || is_model_path(name) ||
                    is_corpus(name))
                  return std::string();
                return fmt::format(
                    "there is no '{}'; allowed: {}, or a model's own file or folder, or a folder, "
                    "an archive or a list{}",
                    excerpt(name), names_text(name, all, "`melflow init --help`"),
                    did_you_mean(name, all));
              },
              ""));
  CLI::Option* stage =
      verb.add_option("--stage", given->stage,
                      "writes a project with a stage of that name instead: C++, its test, a "
                      "pipeline, CMakeLists.txt for a program and a plug-in")
          ->type_name("NAME")
          ->check(CLI::Validator([](std::string& name) { return wrong_stage_name(name); }, ""))
          ->excludes(force)
          ->excludes(from);
  verb.footer(
      "Example:\n  melflow init mine.yaml\n  melflow init --from whisper mine.yaml\n  melflow init "
      "--from whisper-small/preprocessor_config.json mine.yaml\n  melflow init "
      "--from LJSpeech-1.1 lj.yaml\n  melflow init --from train.csv\n  melflow init --stage "
      "loudness");
  return [given, path, stage] {
    if (stage->empty()) return write_pipeline(given->path, given->from, given->force);
    return write_stage(given->stage, path->empty() ? given->stage : given->path);
  };
}

}  // namespace melflow
