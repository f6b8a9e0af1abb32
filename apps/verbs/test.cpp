// melflow test: runs the tests of pipelines, each in its own folder.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "apps/exit_codes.h"
#include "apps/report/format.h"
#include "apps/report/printing.h"
#include "apps/report/report_json.h"
#include "apps/temporary_folder.h"
#include "apps/testing/test_run.h"
#include "apps/usage_errors.h"
#include "apps/verbs/argument_checks.h"
#include "apps/verbs/plan_arguments.h"
#include "apps/verbs/verbs.h"
#include "pipeline/base/text.h"

namespace melflow {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

struct TestArguments {
  std::vector<std::string> files, names;
  PlanOverrides overrides;
  std::optional<int> workers;
  std::string keep;  ///< folder for the results; "": nothing is kept
  bool json = false;
};

struct Tested {
  std::string file, name;
  std::vector<std::string> failures;
  double seconds = 0;
};

bool is_wanted(const TestArguments& arguments, const std::string& name) {
  return arguments.names.empty() ||
         std::find(arguments.names.begin(), arguments.names.end(), name) != arguments.names.end();
}

// Turns the name of a test into a valid folder name.
std::string folder_name(std::size_t number, const std::string& name) {
  std::string out = fmt::format("{:02}-", number);
  for (const char c : name) out += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '-';
  return out;
}

Tested run_one(const PipelineTest& test, const TestOptions& options, const fs::path& scratch) {
  Tested out{options.pipeline, test.name, {}};
  fs::create_directories(scratch);
  const Clock::time_point begin = Clock::now();
  try {
    out.failures = run_test(test, options, scratch);
  } catch (const ConfigError& e) {
    for (const Problem& p : e.problems().sorted()) out.failures.push_back(p.str());
  } catch (const std::exception& e) {
    out.failures.emplace_back(e.what());
  }
  out.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  return out;
}

void print(const Tested& t) {
  say(stdout, "{}  {:>6.2f} s  {}: {}\n", t.failures.empty() ? "ok    " : "FAILED", t.seconds,
      one_line(t.file), one_line(t.name));
  for (const std::string& f : t.failures) say(stdout, "    {}\n", one_line(f));
}

Json json_of(const Tested& t) {
  return {{"file", t.file},
          {"name", t.name},
          {"passed", t.failures.empty()},
          {"seconds", t.seconds},
          {"failures", t.failures}};
}

void check_names(const TestArguments& arguments, const std::vector<std::string>& known) {
  for (const std::string& name : arguments.names)
    if (std::find(known.begin(), known.end(), name) == known.end())
      throw UsageError(fmt::format("--name: there is no test '{}'{}; there are {}", excerpt(name),
                                   did_you_mean(name, known), fmt::join(known, ", ")));
}

fs::path scratch_folder(const TestArguments& arguments, std::optional<TemporaryFolder>& own) {
  if (arguments.keep.empty()) return own.emplace() / "";
  std::error_code error;
  if (fs::exists(arguments.keep, error) && !fs::is_empty(arguments.keep, error))
    throw UsageError(fmt::format("--keep: {} is there and not empty; name a new folder",
                                 excerpt(arguments.keep)));
  return fs::absolute(arguments.keep);
}

int run_tests(const TestArguments& arguments) {
  const LoadOptions given = arguments.overrides.load_options();
  std::vector<std::pair<TestOptions, std::vector<PipelineTest>>> all;
  std::vector<std::string> known;
  for (const std::string& file : arguments.files) {
    const std::string path = find_pipeline(file);
    all.push_back({{path, given.sets, given.vars, arguments.workers}, load_tests(path)});
    for (const PipelineTest& t : all.back().second) known.push_back(t.name);
  }
  if (known.empty())
    throw UsageError(fmt::format(
        "{}: there are no tests in it; write them under the key tests, as docs/pipelines.md shows",
        fmt::join(arguments.files, ", ")));
  check_names(arguments, known);
  std::optional<TemporaryFolder> own;
  const fs::path scratch = scratch_folder(arguments, own);
  std::size_t passed = 0, failed = 0;
  Json listed = Json::array();
  for (const auto& [options, tests] : all)
    for (const PipelineTest& test : tests) {
      if (!is_wanted(arguments, test.name)) continue;
      const fs::path folder = scratch / folder_name(passed + failed, test.name);
      const Tested tested = run_one(test, options, folder);
      ++(tested.failures.empty() ? passed : failed);
      if (arguments.json)
        listed.push_back(json_of(tested));
      else
        print(tested);
      std::error_code ignored;
      if (own) fs::remove_all(folder, ignored);
    }
  if (arguments.json)
    put(stdout, json_text({{"tests", std::move(listed)}, {"passed", passed}, {"failed", failed}}));
  else
    say(stdout, "{}: {} passed, {} failed\n", plural(passed + failed, "test"), passed, failed);
  return failed == 0 ? kDone : kNotAsExpected;
}

}  // namespace

Action add_test(CLI::App& verb) {
  auto arguments = std::make_shared<TestArguments>();
  verb.add_option("FILE", arguments->files,
                  "pipelines with tests: YAML files, or names of those that come with melflow")
      ->required();
  verb.add_option("--name", arguments->names, "runs this test only; may be given several times")
      ->type_name("NAME")
      ->allow_extra_args(false);
  arguments->overrides.add_to(verb);
  verb.add_option("--workers", arguments->workers,
                  "threads that compute; 0: as many as there are cores")
      ->type_name("N")
      ->check(is_integer(0, 1024));
  verb.add_option("--keep", arguments->keep,
                  "keeps what the tests made, in this folder: a folder for each test, with one for "
                  "each output")
      ->type_name("FOLDER");
  verb.add_flag("--json", arguments->json, "prints a JSON document instead");
  verb.footer(
      "Each test runs its pipeline on an input of its own and writes into a folder of its own; no\n"
      "output of the pipeline is touched. docs/pipelines.md says how tests are written.\n"
      "Exit status: 0 all tests passed, 4 some failed, 2 usage, 78 the tests are written wrong.\n"
      "\n"
      "Example:\n"
      "  melflow test mine.yaml");
  return [arguments] { return run_tests(*arguments); };
}

}  // namespace melflow
