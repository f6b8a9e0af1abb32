#include "apps/usage_errors.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "pipeline/base/sentences.h"
#include "pipeline/base/text.h"
#include "pipeline/plan/plan.h"

namespace melflow {
namespace {

constexpr std::size_t kLongestUsage = 2000;  // of an argument in a parser message [bytes]

// Returns the option names of a verb, such as "--set" and "-q".
std::vector<std::string> option_names(const CLI::App& verb) {
  std::vector<std::string> out;
  for (const CLI::Option* option : verb.get_options()) {
    for (const std::string& name : option->get_lnames()) out.push_back("--" + name);
    for (const std::string& name : option->get_snames()) out.push_back("-" + name);
  }
  return out;
}

// Returns a verb's positional arguments: "FILE", "A and B"; "" where it takes options only.
std::string positionals(const CLI::App& verb) {
  std::vector<std::string> names;
  for (const CLI::Option* option : verb.get_options())
    if (option->get_positional()) names.push_back(option->get_name(true));
  return fmt::format("{}", fmt::join(names, " and "));
}

// Returns a reference to --help, for messages that do not say what is allowed.
std::string and_help(const CLI::App& verb) {
  return fmt::format("; `{} --help` shows what is allowed",
                     verb.get_parent() == nullptr ? "melflow" : "melflow " + verb.get_name());
}

// Advises on NAME=VALUE without --var or --set; returns "" where the verb takes neither.
std::string wrong_assignment(const CLI::App& verb, const std::string& argument) {
  const std::size_t equals = argument.find('=');
  const std::string name = argument.substr(0, equals);
  const char* option = name.find('.') == std::string::npos ? "--var" : "--set";
  const std::vector<std::string> options = option_names(verb);
  if (equals == std::string::npos ||
      std::find(options.begin(), options.end(), option) == options.end())
    return {};
  return fmt::format("write {} before {}", option, excerpt(argument));
}

// An option known from other programs, or from other verbs, and what to write instead.
struct OtherOption {
  std::string_view name, here, how;
  std::string_view verb = "";  // the only verb that it is meant for; "": all
};
constexpr const char* kToStandardOutput =
    "the chart goes to standard output: write > FILE.mmd at the end";
constexpr OtherOption kOtherOptions[] = {
    {"-o", "--set", kToStandardOutput, "graph"},
    {"--output", "--set", kToStandardOutput, "graph"},
    {"--out", "--set", kToStandardOutput, "graph"},
    {"-o", "--set", "set the output by --set write.path=FILE, where write is the node that writes"},
    {"--output", "--set",
     "set the output by --set write.path=FILE, where write is the node that writes"},
    {"--out", "--set",
     "set the output by --set write.path=FILE, where write is the node that writes"},
    {"--overwrite", "--set",
     "write --set write.overwrite=true, where write is the node that writes"},
    {"--force", "--set", "write --set write.overwrite=true, where write is the node that writes"},
    {"-f", "--set", "write --set write.overwrite=true, where write is the node that writes"},
    {"--threads", "--workers", "write --workers N"},
    {"--jobs", "--workers", "write --workers N"},
    {"--num-workers", "--workers", "write --workers N"},
    {"-j", "--workers", "write --workers N"},
};

std::string wrong_option(const CLI::App& app, const CLI::App& verb, const std::string& argument) {
  const bool is_short = argument.size() > 2 && argument.front() == '-' && argument[1] != '-';
  const std::string word =
      is_short ? argument.substr(0, 2) : argument.substr(0, argument.find('='));
  const std::vector<std::string> own = option_names(verb);
  for (const OtherOption& other : kOtherOptions)
    if (word == other.name && (other.verb.empty() || other.verb == verb.get_name()) &&
        std::find(own.begin(), own.end(), other.here) != own.end())
      return fmt::format("there is no option '{}'; {}", excerpt(word), other.how);
  std::string advice = word.size() > 2 ? did_you_mean(word, option_names(verb)) : std::string();
  for (const CLI::App* other : app.get_subcommands([](const CLI::App*) { return true; })) {
    const std::vector<std::string> theirs = option_names(*other);
    if (advice.empty() && std::find(theirs.begin(), theirs.end(), word) != theirs.end())
      advice = fmt::format("; `melflow {}` has one", other->get_name()) + and_help(verb);
  }
  return fmt::format("there is no option '{}'{}", excerpt(word),
                     advice.empty() ? and_help(verb) : advice);
}

// Describes unexpected arguments.
std::string wrong_arguments(const CLI::App& app, const CLI::App& verb) {
  const std::vector<std::string> all = verb.remaining();
  for (const std::string& argument : all)
    if (argument.size() > 1 && argument.front() == '-') return wrong_option(app, verb, argument);
  for (const std::string& argument : all)
    if (std::string text = wrong_assignment(verb, argument); !text.empty()) return text;
  const std::string takes = positionals(verb);
  for (const CLI::Option* option : verb.get_options())
    if (option->get_name(false, true).find("--json{-}") != std::string::npos &&
        all.front().ends_with(".json"))
      return fmt::format("write --json={0}, without a space before {0}", excerpt(all.front()));
  return fmt::format("'{}' is one argument too many; it takes {}", excerpt(all.front()),
                     takes.empty() ? "options only" : takes);
}

// Messages of our own checks say what is allowed; the parser's only name the option and the error.
std::string what_is_wrong(const CLI::App& app, const CLI::App& verb, const CLI::ParseError& error) {
  // Tells errors apart by exit code: an error's name may be that of the verb.
  const auto kind = static_cast<CLI::ExitCodes>(error.get_exit_code());
  if (kind == CLI::ExitCodes::ExtrasError) return wrong_arguments(app, verb);
  const std::string text = excerpt(error.what(), kLongestUsage);
  return kind == CLI::ExitCodes::ValidationError ? text : text + and_help(verb);
}

}  // namespace

const Verb* find_verb(std::string_view name) {
  for (const Verb& verb : kVerbs)
    if (verb.name == name) return &verb;
  return nullptr;
}

std::string wrong_verb(const CLI::App& app, const std::vector<std::string>& arguments) {
  std::vector<std::string> names;
  for (const Verb& verb : kVerbs) names.emplace_back(verb.name);
  if (arguments.empty())
    return fmt::format(
        "a command is missing; the commands are {}; `melflow --help` says what they do",
        fmt::join(names, ", "));
  const std::string& word = arguments.front();
  if (find_verb(word) != nullptr) return {};
  if (!word.starts_with('-'))
    return fmt::format("there is no command '{}'{}; the commands are {}", excerpt(word),
                       did_you_mean(word, names), fmt::join(names, ", "));
  const std::vector<std::string> options = option_names(app);
  if (std::find(options.begin(), options.end(), word) != options.end()) return {};
  const auto verb = std::find_if(arguments.begin(), arguments.end(),
                                 [](const std::string& a) { return find_verb(a) != nullptr; });
  if (verb != arguments.end())
    return fmt::format("the command comes first, then its options: melflow {} {} ...", *verb,
                       excerpt(word));
  return fmt::format("there is no option '{}' before the command{}; the commands are {}",
                     excerpt(word), did_you_mean(word, options), fmt::join(names, ", "));
}

std::string advice_on(const StageInfo& stage, const std::string& option, const Value& given) {
  const auto config = stage.configure();
  NodeOptions common;
  Schema of_all;
  common.describe(of_all);
  return advice_on(option, {&config->schema(), &of_all}, given);
}

std::string usage_error(const CLI::App& app, const CLI::ParseError& error) {
  const auto verbs = app.get_subcommands();
  const CLI::App& verb = verbs.empty() ? app : *verbs.front();
  const std::string command = verbs.empty() ? "melflow" : "melflow " + verb.get_name();
  return in_sentences(fmt::format("{}: {}\n", command, what_is_wrong(app, verb, error)));
}

}  // namespace melflow
