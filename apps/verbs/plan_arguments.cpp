#include "apps/verbs/plan_arguments.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "apps/check/findings.h"
#include "apps/shipped.h"
#include "apps/verbs/argument_checks.h"
#include "config/document.h"
#include "pipeline/base/input_file.h"
#include "pipeline/base/sentences.h"
#include "pipeline/base/text.h"

namespace melflow {
namespace fs = std::filesystem;
namespace {

Assignment assignment(const std::string& text) {
  const std::size_t equals = text.find('=');
  return {text.substr(0, equals), text.substr(equals + 1)};
}

std::vector<Assignment> split_all(const std::vector<std::string>& texts) {
  std::vector<Assignment> out;
  out.reserve(texts.size());
  for (const std::string& t : texts) out.push_back(assignment(t));
  return out;
}

CLI::Validator is_assignment(const std::string& form) {
  return {[form](const std::string& text) {
            const std::size_t equals = text.find('=');
            if (equals != 0 && equals != std::string::npos) return std::string();
            return fmt::format("'{}' is not of the form {}{}", text, form,
                               equals == 0 ? "" : "; write = and the value behind it, no space");
          },
          ""};  // no name: help already shows the form as the option's type
}

std::vector<fs::path> find_shipped_pipelines() {
  std::vector<fs::path> out;
  for (const fs::path& folder : shipped_places("pipelines", "config/pipelines")) {
    std::error_code error;
    for (fs::directory_iterator e(folder, error), end; !error && e != end; e.increment(error))
      if (e->path().extension() == ".yaml") out.push_back(e->path().lexically_normal());
    if (!out.empty()) break;
  }
  std::sort(out.begin(), out.end());
  return out;
}

// Searched only once: the help of most verbs lists them.
const std::vector<fs::path>& shipped_pipelines() {
  static const std::vector<fs::path> found = find_shipped_pipelines();
  return found;
}

}  // namespace

std::string find_pipeline(const std::string& name) {
  if (name == kStandardInput) return name;
  std::error_code error;
  const bool is_there = fs::exists(name, error) && !error;
  if (is_there && !fs::is_directory(name, error)) return name;
  const fs::path wanted(name);
  const std::vector<std::string> names = shipped_pipeline_names();
  const bool is_bare = !wanted.has_parent_path();
  for (const fs::path& p : shipped_pipelines())
    if (is_bare && (p.stem() == wanted || p.filename() == wanted)) return p.string();
  if (is_there) return name;  // a folder; the reader reports that
  const Mark mark{std::make_shared<const std::string>(name), 0, 0};
  std::string message = "there is no such file";
  for (const char* ending : {".yaml", ".yml"}) {
    const fs::path other = fs::path(wanted).replace_extension(ending);
    if (other != wanted && fs::is_regular_file(other, error))
      throw ConfigError(message + did_you_mean(excerpt(other.string())), mark);
  }
  if (!is_bare || !wanted.extension().empty()) {
    const std::string text = no_such_file(name, {".yaml", ".yml"});
    const bool has_folder = fs::is_directory(wanted.parent_path(), error);
    if (text.ends_with('?') || has_folder) throw ConfigError(text, mark);
    if (!is_bare) throw ConfigError(text + "; name a YAML file in a folder that exists", mark);
  }
  if (!names.empty()) {
    const std::string near = did_you_mean(wanted.stem().string(), names);
    message += fmt::format("; the pipelines that come with melflow are {}{}",
                           fmt::join(names, ", "), near);
  } else if (is_bare) {
    // A copy of the program alone has no pipelines.
    std::vector<std::string> places;
    for (const fs::path& folder : shipped_places("pipelines", "config/pipelines"))
      places.push_back(folder.lexically_normal().string());
    message += fmt::format(
        ", and none of the pipelines that come with melflow: they were looked for in {}",
        fmt::join(places, ", "));
  }
  throw ConfigError(message, mark);
}

std::vector<std::string> shipped_pipeline_names() {
  std::vector<std::string> out;
  for (const fs::path& p : shipped_pipelines()) out.push_back(p.stem().string());
  return out;
}

bool is_pipeline_name(const std::string& argument) {
  const std::string ending = fs::path(argument).extension();
  if (ending == ".yaml" || ending == ".yml") return true;
  std::error_code error;
  return ending.empty() && (!fs::exists(argument, error) || fs::is_directory(argument, error));
}

void PlanArguments::add_to(CLI::App& verb) {
  verb.add_option("FILE", file,
                  fmt::format("the pipeline: a YAML file, - for the standard input, or the name of "
                              "one that comes with melflow ({})",
                              fmt::join(shipped_pipeline_names(), ", ")))
      ->required();
  overrides.add_to(verb);
  add_workers(verb, workers);
}

Plan PlanArguments::load() const {
  Plan out = overrides.load(file, workers);
  check_recording_expectations(out);
  return out;
}

std::vector<Assignment> PlanOverrides::assignments() const { return split_all(sets); }

namespace {

CLI::Option* add_vars(CLI::App& verb, std::vector<std::string>& vars, const char* what) {
  return verb.add_option("--var", vars, what)
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false)
      ->check(is_assignment("NAME=VALUE"));
}

}  // namespace

void PlanOverrides::add_to(CLI::App& verb) {
  verb.add_option("--set", sets, "overrides an option: mel.n_mels=64, memory.host=2GiB")
      ->type_name("NODE.OPTION=VALUE")
      ->allow_extra_args(false)
      ->check(is_assignment("NODE.OPTION=VALUE"));
  add_vars(verb, vars, "sets a ${NAME} of the file; overrides the environment");
}

void StoredOverrides::add_to(CLI::App& verb, CLI::Option* needed) {
  for (CLI::Option* option :
       {add_vars(verb, vars,
                 "sets a ${NAME} of the stored configuration, such as a password that it does not "
                 "have"),
        verb.add_flag("--trust", is_trusted,
                      "allows the stored configuration what its author chose: functions, commands, "
                      "plug-ins, models, URLs, variables of the environment, and where a job's "
                      "output is written")})
    if (needed != nullptr) option->needs(needed);
}

LoadOptions StoredOverrides::load_options(std::optional<int> workers) const {
  LoadOptions options;
  options.vars = split_all(vars);
  options.workers = workers;
  options.trust = Trust::in_stored(is_trusted);
  return options;
}

LoadOptions PlanOverrides::load_options() const {
  LoadOptions options;
  options.sets = assignments();
  options.vars = split_all(vars);
  return options;
}

Plan PlanOverrides::load(const std::string& file, std::optional<int> workers) const {
  LoadOptions options = load_options();
  options.workers = workers;
  return load_plan(find_pipeline(file), options);
}

Plan PlanOverrides::load_with(const std::string& file, std::optional<int> workers,
                              const std::vector<std::string>& further_sets) const {
  PlanOverrides all = *this;
  all.sets.insert(all.sets.end(), further_sets.begin(), further_sets.end());
  std::set<std::string> asked;
  LoadOptions options = all.load_options();
  options.workers = workers;
  options.asked = &asked;
  return load_plan(find_pipeline(file), options);
}

Plan PlanOverrides::look_at(const std::string& file, std::set<std::string>& asked) const {
  LoadOptions options = load_options();
  options.asked = &asked;
  return load_plan(find_pipeline(file), options);
}

Plan PlanOverrides::look_at_text(const std::string& text, const std::string& name,
                                 std::set<std::string>& asked) const {
  LoadOptions options = load_options();
  options.asked = &asked;
  return load_plan_text(text, name, options);
}

void PlanOverrides::check_used(const std::set<std::string>& asked) const {
  Problems problems;
  check_unused(split_all(vars), asked, problems);
  if (!problems.empty()) throw ConfigError(std::move(problems));
}

}  // namespace melflow
