// melflow check: measures the recordings of a corpus, or takes what an output has measured, and
// says what is wrong with which.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "apps/check/criteria.h"
#include "apps/check/document.h"
#include "apps/check/findings.h"
#include "apps/duplicates/document.h"
#include "apps/duplicates/groups.h"
#include "apps/exit_codes.h"
#include "apps/report/format.h"
#include "apps/report/printing.h"
#include "apps/report/report_json.h"
#include "apps/report/verdicts_text.h"
#include "apps/temporary_folder.h"
#include "apps/usage_errors.h"
#include "apps/verbs/argument_checks.h"
#include "apps/verbs/inspect_text.h"
#include "apps/verbs/output_corpus.h"
#include "apps/verbs/plan_arguments.h"
#include "apps/verbs/verbs.h"
#include "apps/verbs/watched_run.h"
#include "apps/verbs/written_file.h"
#include "config/expectations.h"
#include "pipeline/base/near_names.h"
#include "pipeline/base/problem.h"
#include "pipeline/base/text.h"
#include "pipeline/run/runner.h"
#include "stages/corpus/archive_names.h"
#include "stages/corpus/file_list_options.h"
#include "stages/corpus/guess/corpus_guess.h"
#include "stages/output/formats/feature_file.h"
#include "stages/output/formats/stored_json.h"
#include "stages/routing/amount.h"
#include "stages/run_task.h"

namespace melflow {
namespace {

namespace fs = std::filesystem;

constexpr const char* kText = "the pipeline of check";  // the name of its text in messages
constexpr std::size_t kClipBytes = std::size_t{16} << 20;

struct CheckArguments {
  std::string path, from;
  PlanOverrides overrides;
  std::optional<int> workers;
  std::string sample, measures = "default", output;
  std::string profile, faulty, across;
  bool duplicates = false;
  std::vector<std::string> where, by;
  std::string page, csv, json;
  std::size_t clips = 3;
  bool quiet = false;
};

bool is_output_name(const std::string& path) {
  const std::string ending = fs::path(path).extension();
  for (const char* known : {".h5", ".hdf5", ".npy", ".ark"})
    if (ending == known) return true;
  return false;
}

// What is expected of recordings: by `expect` of a configuration, null for none, then by the
// command line.
RecordingExpectations expected_of(const CheckArguments& arguments, const Value& expect) {
  RecordingExpectations out;
  Value written = Value::map({});
  if (const Value* known = expect.is_map() ? expect.find("recordings") : nullptr)
    if (known->is_map()) written = *known;
  Problems problems;
  Schema schema;
  out.describe(schema);
  schema.read(written, "expect.recordings.", problems);
  if (!problems.empty()) throw ConfigError(std::move(problems));
  if (!written.entries().empty() && !out.faulty && out.has_conditions()) out.faulty = none_faulty();
  if (!arguments.profile.empty()) out.profile = arguments.profile;
  if (out.profile.empty() && out.where.map.entries().empty()) out.profile = profiles()[0].name;
  for (const std::string& one : arguments.where) {
    const std::size_t at = one.find('=');
    const std::string wanted(trimmed(std::string_view(one).substr(at + 1)));
    out.where.map.set(one.substr(0, at), wanted.empty() ? Value{} : Value::scalar(wanted));
  }
  if (!arguments.faulty.empty()) out.faulty = count_bound("--faulty", arguments.faulty);
  if (!arguments.across.empty())
    out.across_splits = count_bound("--across-splits", arguments.across);
  return out;
}

// The nodes of a graph that list recordings, and the options of its first node of a stage.
struct Corpus {
  std::vector<std::pair<std::string, Value>> sources;
  Value decode = Value::map({}), quality = Value::map({}), expect;
};

Value without_from(const Value& node) {
  Value out = Value::map({});
  for (const Value::Entry& e : node.entries())
    if (e.key != "from" && e.key != "stage") out.set(e.key, e.value);
  return out;
}

Corpus corpus_of_pipeline(const CheckArguments& arguments) {
  std::set<std::string> asked;
  Value config;
  LoadOptions options;
  options.vars = arguments.overrides.load_options().vars;
  options.asked = &asked;
  options.filled_in = &config;
  load_plan(find_pipeline(arguments.from), options);
  arguments.overrides.check_used(asked);
  Corpus out;
  bool has_decode = false, has_quality = false;
  for (const Value::Entry& node : config.find("graph")->entries()) {
    const Value* named = node.value.find("stage");
    const std::string stage = named != nullptr ? named->text() : node.key;
    if (stage == "file_list") out.sources.emplace_back(node.key, without_from(node.value));
    if (stage == "decode" && !std::exchange(has_decode, true))
      out.decode = without_from(node.value);
    if (stage == "quality" && !std::exchange(has_quality, true))
      out.quality = without_from(node.value);
  }
  if (out.sources.empty())
    throw RunError(arguments.from + ": no node of it is a file_list, which lists recordings");
  if (const Value* expect = config.find("expect")) out.expect = *expect;
  return out;
}

// A folder, an archive, a list or one recording.
Corpus corpus_of_path(const std::string& path) {
  Corpus out;
  Value options = Value::map({});
  std::error_code error;
  const bool is_recording = fs::is_regular_file(path, error) && has_name_of_recording(path);
  if (const auto guess = is_recording ? std::nullopt : guess_corpus(path)) {
    for (const auto& [option, value] : guess->options) options.set(option, value);
    for (const std::string& remark : guess->remarks) say(stderr, "note: {}: {}\n", path, remark);
  } else if (is_recording) {
    const fs::path file(path);
    options.set("root", Value::scalar(file.has_parent_path() ? file.parent_path().string() : "."));
    options.set("include", Value::list({Value::scalar(file.filename())}));
  } else {
    options.set("root", Value::scalar(path));
  }
  out.sources.emplace_back("files", std::move(options));
  return out;
}

Value node(const char* stage, Value options, Value from) {
  Value out = Value::map({{"stage", Value::scalar(stage)}});
  if (!from.is_null()) out.set("from", std::move(from));
  for (const Value::Entry& e : options.entries()) out.set(e.key, e.value);
  return out;
}

// The measures that are chosen.
std::vector<std::string> chosen_measures(const CheckArguments& arguments) {
  std::vector<std::string> out, names{"default", "all"};
  for (const MeasureInfo& m : measures()) names.emplace_back(m.name);
  for (std::string_view rest = arguments.measures; !rest.empty();) {
    const std::size_t end = std::min(rest.find(','), rest.size());
    out.emplace_back(trimmed(rest.substr(0, end)));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (std::find(names.begin(), names.end(), out.back()) == names.end())
      throw UsageError(fmt::format("--measures: '{}' {}", excerpt(out.back()),
                                   not_one_of(out.back(), names, "docs/quality.md")));
  }
  return out;
}

constexpr const char* kSpeech = "speech_share";

// These and those that a condition is about.
std::vector<std::string> measures_of(const CheckArguments& arguments,
                                     const std::vector<Criterion>& wanted) {
  std::vector<std::string> out = chosen_measures(arguments);
  for (const Criterion& one : wanted)
    if (one.measure != nullptr && !one.measure->is_default) out.emplace_back(one.measure->name);
  return out;
}

// Of the last node before the sink.
constexpr const char *kList = "list", *kPrints = "fingerprint";

// Whether an output is one that check has written.
bool is_of_check(const FeatureFile& output) {
  if (output.rows() == 0) return true;
  const StoredJson config = parse_settings_or_null(output.text("config"));
  return config.is_object() &&
         config.value(StoredJson::json_pointer("/graph/list/stage"), "") == kPrints;
}

std::string pipeline_text(const CheckArguments& arguments, Corpus corpus,
                          const std::vector<Criterion>& wanted, bool has_prints,
                          const std::string& output) {
  Value graph = Value::map({});
  std::vector<Value> names;
  for (auto& [name, options] : corpus.sources) {
    if (!arguments.sample.empty()) options.set("sample", Value::scalar(arguments.sample));
    names.push_back(Value::scalar(name));
    graph.set(name, node("file_list", std::move(options), {}));
  }
  graph.set("decode", node("decode", std::move(corpus.decode), Value::list(std::move(names))));
  std::vector<std::string> measured = measures_of(arguments, wanted);
  const bool has_speech = std::erase(measured, kSpeech) > 0;
  if (corpus.quality.find("measures") == nullptr || arguments.measures != "default") {
    std::vector<Value> list;
    for (std::string& name : measured) list.push_back(Value::scalar(std::move(name)));
    corpus.quality.set("measures", Value::list(std::move(list)));
  }
  graph.set("measure", node("quality", std::move(corpus.quality), Value::scalar("decode")));
  if (has_speech) {  // vad takes 16 kHz
    graph.set("resample", node("resample", Value::map({{"rate", Value::scalar("16000")}}),
                               Value::scalar("measure")));
    graph.set("vad", node("vad", Value::map({}), Value::scalar("resample")));
    graph.set(kSpeech, node(kSpeech, Value::map({}), Value::scalar("vad")));
  }
  graph.set(kList, node(has_prints ? kPrints : "no_rows", Value::map({}),
                        Value::scalar(has_speech ? kSpeech : "measure")));
  graph.set(
      "write",
      node("hdf5_write",
           Value::map({{"path", Value::scalar(output)}, {"overwrite", Value::scalar("true")}}),
           Value::scalar(kList)));
  Value out = Value::map({{"version", Value::scalar("1")}, {"graph", std::move(graph)}});
  if (!corpus.expect.is_null()) out.set("expect", corpus.expect);
  return to_json(out);
}

// Measures the corpus. Returns the exit status where there is no output.
std::optional<int> measure(const CheckArguments& arguments, const std::string& text) {
  LoadOptions options = arguments.overrides.load_options();
  options.workers = arguments.workers;
  if (!arguments.from.empty()) options.vars.clear();  // they are filled in
  Plan plan = load_plan_text(text, kText, options);
  for (const Problem& w : plan.warnings) say(stderr, "warning: {}\n", w.str());
  plan.allow_failures();
  set_task(plan.services, {.resume = {Resume::When::automatic,
                                      [](const std::string& what) { say(stderr, "{}\n", what); }}});
  Runner runner(std::move(plan));
  Watch watch;
  if (arguments.quiet) watch.progress = ProgressDisplay::Mode::none, watch.quiet = true;
  const RunReport report = run_watched(runner, watch).report;
  if (report.ending == Ending::failed) throw RunError(report.error);
  if (report.ending != Ending::stopped) return std::nullopt;
  complain(fmt::format(
      "stopped before the end, {} not measured; {}", plural(report.counts.not_run, "file"),
      arguments.output.empty() ? "with --output, the same command would go on from there"
                               : "the same command goes on from there"));
  return kStopped;
}

class Documents {
 public:
  explicit Documents(const CheckArguments& arguments) : json_(arguments.json) {
    std::vector<std::string> inputs;
    if (!arguments.path.empty()) inputs.push_back(arguments.path);
    open(page_, arguments.page, "<title>melflow check", inputs);
    open(csv_, arguments.csv, "path,label,split,status,", inputs);
    if (json_ != "-") open(json_file_, json_, "\"melflow_version\"", inputs);
    if (!arguments.output.empty())
      for (auto* file : {&page_, &csv_, &json_file_})
        if (*file) (*file)->keep_off({arguments.output});
  }
  void write(const FeatureFile& output, const CheckedCorpus& checked,
             const std::vector<Criterion>& wanted, DocumentOptions options) {
    if (csv_) csv_->write(check_csv(output, checked, options.alike));
    if (json_file_ || !json_.empty()) {
      DocumentOptions plain = options;
      plain.clips = plain.pairs = 0;
      const std::string text = json_text(check_json(output, checked, wanted, plain));
      if (json_file_)
        json_file_->write(text);
      else
        put(stdout, text);
    }
    if (page_) page_->write(check_page(check_json(output, checked, wanted, options)));
  }

 private:
  static void open(std::optional<WrittenFile>& file, const std::string& path, const char* mark,
                   const std::vector<std::string>& inputs) {
    if (!path.empty()) file.emplace(path, mark, inputs);
  }
  std::string json_;
  std::optional<WrittenFile> page_, csv_, json_file_;
};

int tell(const CheckArguments& arguments, const FeatureFile& output,
         const RecordingExpectations& expected, const std::vector<std::string>& by,
         Documents& documents) {
  const std::vector<Criterion> wanted = criteria_of(expected);
  const CheckedCorpus checked = check_corpus(output.data(), wanted);
  std::optional<Duplicates> alike;
  if (arguments.duplicates || expected.across_splits || has_fingerprints(output))
    alike = find_duplicates({&output}, {}, {});
  std::vector<Verdict> judged;
  if (expected.faulty)
    judged.push_back(verdict_on_recordings(expected, checked.faulty, checked.ok));
  if (expected.across_splits)
    judged.push_back(verdict_on_duplicates(*expected.across_splits, *alike));
  documents.write(output, checked, wanted,
                  {.profile = expected.profile,
                   .by = by,
                   .clips = arguments.clips,
                   .alike = alike ? &*alike : nullptr,
                   .pairs = kShownPairs,
                   .expected = judged,
                   .clip_bytes = kClipBytes,
                   .path_of = [&](std::size_t file) {
                     return corpus_of({{&output, {file}}})->manifest.path(0);
                   }});
  std::FILE* const out = arguments.json == "-" ? stderr : stdout;
  if (!arguments.quiet)
    put(out, check_text(output, checked, alike ? &*alike : nullptr) +
                 stored_remarks_text(output, kShownRemarks, "--csv"));
  put(out, verdicts_text(judged));
  for (const Verdict& v : judged)
    if (!v.is_met) return kNotAsExpected;
  for (const FeatureFile::Entry& e : output.files())
    if (e.status == FeatureFile::Status::failed) return kSomeFailed;
  return kDone;
}

int check(const CheckArguments& arguments) {
  const bool is_output = is_output_name(arguments.path);
  if (arguments.path.empty() && arguments.from.empty())
    throw UsageError(
        "check: what is to be checked? Name a folder, an archive, a list or an output, or a "
        "pipeline by --from");
  if (!arguments.path.empty() && !arguments.from.empty() && !is_output)
    throw UsageError(
        "check: PATH and --from exclude each other, as the pipeline says where the recordings are; "
        "beside an output, --from says what is expected of them");
  if (is_output && !(arguments.sample + arguments.output).empty())
    throw UsageError(
        "check: --sample and --output are for recordings that are measured, and PATH is an output");
  chosen_measures(arguments);
  Share share;
  if (const std::string why =
          arguments.sample.empty()
              ? ""
              : OptionType<Share>::parse(Value::scalar(arguments.sample), share);
      !why.empty())
    throw UsageError("--sample: " + why);
  Documents documents(arguments);
  if (is_output) {
    const FeatureFile output(arguments.path);
    const Value expect = arguments.from.empty() ? Value{} : corpus_of_pipeline(arguments).expect;
    return tell(arguments, output, expected_of(arguments, expect), groupings(output, arguments.by),
                documents);
  }
  std::error_code error;
  if (!arguments.path.empty() && arguments.path.find("://") == std::string::npos &&
      !names_archives(arguments.path) && !fs::exists(arguments.path, error))
    throw RunError(arguments.path + ": there is no such file or folder");
  if (!arguments.output.empty() && fs::exists(arguments.output, error))
    if (const FeatureFile there(arguments.output); !is_of_check(there))
      throw RunError(arguments.output + ": has rows, which would be gone; name another file");
  Corpus corpus =
      arguments.from.empty() ? corpus_of_path(arguments.path) : corpus_of_pipeline(arguments);
  const RecordingExpectations expected = expected_of(arguments, corpus.expect);
  std::optional<TemporaryFolder> folder;
  if (arguments.output.empty()) folder.emplace();
  const std::string path = folder ? *folder / "check.h5" : arguments.output;
  const std::string text = pipeline_text(arguments, std::move(corpus), criteria_of(expected),
                                         arguments.duplicates || expected.across_splits, path);
  if (const auto status = measure(arguments, text)) return *status;
  const FeatureFile output(path);
  std::vector<std::string> by;
  try {
    by = groupings(output, arguments.by);
  } catch (const ConfigError& e) {  // what was measured is not lost for it
    say(stderr, "warning: {}\n", std::string(e.what()));
    by = groupings(output, {});
  }
  return tell(arguments, output, expected, by, documents);
}

}  // namespace

Action add_check(CLI::App& verb) {
  auto arguments = std::make_shared<CheckArguments>();
  verb.add_option("PATH", arguments->path,
                  "a folder of recordings, an archive, a list or a recording; or an output whose "
                  "recordings the stage quality has measured, which is not measured again");
  verb.add_option("--from", arguments->from,
                  "a pipeline: checks the recordings that its file_list nodes list, as its decode "
                  "and quality nodes have it, by its expect.recordings")
      ->type_name("FILE.yaml");
  verb.add_option("--sample", arguments->sample,
                  "checks about this share of the recordings (1%), for a first look: the same "
                  "ones every time")
      ->type_name("SHARE");
  std::vector<std::string> names;
  std::string uses;
  for (const Profile& p : profiles()) {
    names.emplace_back(p.name);
    uses += fmt::format("{}{}: {}", uses.empty() ? "" : "; ", p.name, p.use);
  }
  verb.add_option("--profile", arguments->profile,
                  "what recordings should be like, by their use (" + uses + "); default: any")
      ->check(is_one_of(names))
      ->type_name("NAME");
  verb.add_option("--where", arguments->where,
                  "a condition of its own, or another in place of the profile's, as those of "
                  "filter: quality.snr='> 20dB', duration=1s..20s; nothing after = takes one out")
      ->type_name("KEY=CONDITION")
      ->allow_extra_args(false)
      ->check(CLI::Validator(
          [](std::string& text) {
            return text.find('=') == std::string::npos || text.front() == '='
                       ? excerpt(text) + ": write KEY=CONDITION, such as quality.snr='> 20dB'"
                       : "";
          },
          ""));
  verb.add_option("--faulty", arguments->faulty,
                  "how many recordings may not meet a condition: '< 1%', '<= 10'; if more, the "
                  "exit status is 4")
      ->type_name("BOUND");
  verb.add_flag("--duplicates", arguments->duplicates,
                "also says which recordings sound alike, by fingerprints that the same pass makes "
                "(docs/duplicates.md); an output that has fingerprints needs no flag");
  verb.add_option("--across-splits", arguments->across,
                  "how many recordings may sound like one of another split: '<= 0', '< 0.1%'; if "
                  "more, the exit status is 4; does what --duplicates does, too")
      ->type_name("BOUND");
  verb.add_option("--measures", arguments->measures,
                  "what is measured: default, all, or names (docs/quality.md), with commas; what "
                  "a condition is about is always measured")
      ->capture_default_str();
  verb.add_option("--by", arguments->by,
                  "also groups the recordings by this column of their list; label, split and "
                  "speaker are used where they are there")
      ->type_name("COLUMN")
      ->allow_extra_args(false);
  verb.add_option("--output", arguments->output,
                  "keeps what was measured: stopped, the same command goes on from there, and "
                  "`melflow check FILE.h5` says it again")
      ->type_name("FILE.h5");
  verb.add_option("--report", arguments->page,
                  "writes a page for a browser: how many hours have which fault, by label, split "
                  "and speaker, and the worst recordings to see and hear")
      ->type_name("FILE.html");
  verb.add_option("--clips", arguments->clips,
                  "recordings of each fault that the page has a stretch of; 0: nothing to hear, "
                  "nor of what sounds alike")
      ->capture_default_str()
      ->check(is_integer(0, 100));
  verb.add_option("--csv", arguments->csv, "writes a table with a line for every recording")
      ->type_name("FILE.csv");
  verb.add_flag("--json{-}", arguments->json,
                "prints one JSON document on stdout and everything else on stderr; --json=FILE "
                "writes it to FILE");
  verb.add_flag("-q,--quiet", arguments->quiet,
                "prints only warnings, errors and what was expected");
  arguments->overrides.add_to(verb);
  add_workers(verb, arguments->workers);
  verb.footer(
      "Recordings are measured while they are decoded, by the stage quality; docs/quality.md has\n"
      "the measures, profiles and the report. --set changes the nodes files, decode and measure.\n"
      "Exit status: 0; 4 more recordings have a fault, or are alike across splits, than --faulty,\n"
      "--across-splits or expect.recordings allows; 3 some could not be decoded.\n"
      "\n"
      "Example:\n"
      "  melflow check clips/ --sample 1%\n"
      "  melflow check clips/ --profile asr --output check.h5 --report check.html\n"
      "  melflow check check.h5 --profile tts --where quality.snr='> 30dB' --faulty '< 1%'\n"
      "  melflow check clips/ --set files.splits=top_dir --across-splits '<= 0'\n"
      "  melflow check --from corpus.yaml --csv check.csv");
  return [arguments] { return check(*arguments); };
}

}  // namespace melflow
