// The frame around the verbs: the command line, and errors as exit statuses.
#include "apps/program.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <new>
#include <sstream>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "apps/exit_codes.h"
#include "apps/report/printing.h"
#include "apps/verbs/verbs.h"
#include "pipeline/problem.h"
#include "pipeline/text.h"
#include "stages/files/own_file.h"
#include "stages/version.h"

namespace melflow {
namespace {

constexpr std::size_t kLongestUsage = 2000;  // of what CLI11 says of an argument [bytes]

constexpr const char* kFooter = R"(Example:
  melflow init first.yaml                      a commented configuration to start from
  DATA=clips OUT=features.h5 melflow run first.yaml
  melflow inspect features.h5
  melflow show features.h5 --file some.wav -o mel.png
  melflow run --help                           what a verb takes; so does melflow help run

Exit status: 0 done, 3 done but some files failed, 1 the run failed, 75 stopped (130 at once),
2 usage, 78 the configuration is wrong.)";

class HelpFormatter final : public CLI::Formatter {
 public:
  HelpFormatter() {
    label("SUBCOMMAND", "VERB");
    label("REQUIRED", "(required)");
  }
  std::string make_option_name(const CLI::Option* option, bool is_positional) const override {
    std::string name = CLI::Formatter::make_option_name(option, is_positional);
    // The value a flag has without '=' is no news to whoever reads help.
    if (const std::size_t value = name.find("{-}"); value != std::string::npos)
      name.replace(value, 3, "[=FILE]");
    return name;
  }
  std::string make_footer(const CLI::App* app) const override {
    return app->get_footer().empty() ? "" : "\n" + app->get_footer() + "\n";
  }
};

const Verb* find_verb(std::string_view name) {
  for (const Verb& verb : kVerbs)
    if (verb.name == name) return &verb;
  return nullptr;
}

// What was typed behind the program's name; `help run` is `run --help`.
std::vector<std::string> arguments_of(int argc, char** argv) {
  std::vector<std::string> out(argv + std::min(argc, 1), argv + argc);
  if (out.empty() || out.front() != "help") return out;
  out.erase(out.begin());
  out.insert(out.begin() + (out.empty() ? 0 : 1), "--help");
  return out;
}

// CLI11 only says that the argument "was not expected".
std::string wrong_verb(const std::vector<std::string>& arguments) {
  std::vector<std::string> names;
  for (const Verb& verb : kVerbs) names.emplace_back(verb.name);
  if (arguments.empty())
    return fmt::format("a verb is missing; the verbs are {}; `melflow --help` says what they do",
                       fmt::join(names, ", "));
  const std::string& word = arguments.front();
  if (word.starts_with('-') || find_verb(word) != nullptr) return {};
  return fmt::format("there is no verb '{}'{}; the verbs are {}", excerpt(word),
                     did_you_mean(word, names), fmt::join(names, ", "));
}

// "--set" and "-q" of what a verb takes.
std::vector<std::string> option_names(const CLI::App& verb) {
  std::vector<std::string> out;
  for (const CLI::Option* option : verb.get_options()) {
    for (const std::string& name : option->get_lnames()) out.push_back("--" + name);
    for (const std::string& name : option->get_snames()) out.push_back("-" + name);
  }
  return out;
}

// NAME=VALUE without what says which of the two it is; "" where the verb takes neither.
std::string wrong_assignment(const CLI::App& verb, const std::string& argument) {
  const std::size_t equals = argument.find('=');
  const std::string name = argument.substr(0, equals);
  const char* option = name.find('.') == std::string::npos ? "--var" : "--set";
  const std::vector<std::string> options = option_names(verb);
  if (equals == std::string::npos ||
      std::find(options.begin(), options.end(), option) == options.end())
    return {};
  return fmt::format(
      "melflow {0}: write {1} before {2}; `melflow {0} --help` shows what is allowed\n",
      verb.get_name(), option, excerpt(argument));
}

// Of an argument that CLI11 did not expect; "" where there is nothing to add to that.
std::string wrong_argument(const CLI::App& app, const CLI::App& verb) {
  for (const std::string& argument : verb.remaining()) {
    if (argument.size() < 2) continue;
    if (argument.front() != '-') {
      if (std::string text = wrong_assignment(verb, argument); !text.empty()) return text;
      continue;
    }
    const std::string word = argument.substr(0, argument.find('='));
    std::string advice = word.size() > 2 ? did_you_mean(word, option_names(verb)) : std::string();
    for (const CLI::App* other : app.get_subcommands([](const CLI::App*) { return true; })) {
      const std::vector<std::string> theirs = option_names(*other);
      if (advice.empty() && std::find(theirs.begin(), theirs.end(), word) != theirs.end())
        advice = fmt::format(", which `melflow {}` has", other->get_name());
    }
    return fmt::format(
        "melflow {0}: there is no option '{1}'{2}; `melflow {0} --help` shows what "
        "is allowed\n",
        verb.get_name(), excerpt(word), advice);
  }
  return {};
}

// Given back when there is no memory left, so that what a run has done can still be completed and
// told, which takes little. Whoever asks for much then gets the error.
constexpr std::size_t kSpareMemory = 1 << 20;
std::atomic<void*> spare_memory{nullptr};

void give_spare_memory() {
  void* spare = spare_memory.exchange(nullptr);
  if (spare == nullptr) throw std::bad_alloc();
  std::free(spare);
}

int report_problems(const ConfigError& e) {
  put(stderr, e.problems().str() + "\n");
  const std::size_t n = e.problems().size();
  complain(
      fmt::format("{} problem{} in the configuration, nothing was started", n, n == 1 ? "" : "s"));
  return kConfiguration;
}

int run_verb(int argc, char** argv) {
  std::free(spare_memory.exchange(std::malloc(kSpareMemory)));
  std::set_new_handler(give_spare_memory);
  CLI::App app{
      "Turns large audio corpora into mel-spectrogram features, through a pipeline written "
      "in YAML.",
      "melflow"};
  app.set_version_flag("--version", std::string("melflow ") + kVersion, "prints the version");
  app.set_help_flag("-h,--help", "prints this help");
  app.require_subcommand(1);
  app.footer(kFooter);
  app.formatter(std::make_shared<HelpFormatter>());
  // What CLI11 quotes of the command line is anybody's text.
  app.failure_message([](const CLI::App* its, const CLI::Error& e) {
    std::string command = its->get_name();
    for (const CLI::App* verb : its->get_subcommands()) command += " " + verb->get_name();
    return fmt::format("{0}: {1}; `{0} --help` shows what is allowed\n", command,
                       excerpt(e.what(), kLongestUsage));
  });
  std::map<std::string, Action> actions;
  for (const Verb& verb : kVerbs)
    actions[verb.name] =
        verb.add(*app.add_subcommand(verb.name, verb.summary)->group(verb.heading));

  std::vector<std::string> arguments = arguments_of(argc, argv);
  if (const std::string wrong = wrong_verb(arguments); !wrong.empty()) {
    complain(wrong);
    return kUsage;
  }
  try {
    std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants them
    app.parse(std::move(arguments));
  } catch (const CLI::ParseError& e) {
    std::ostringstream out, err;
    const int code = app.exit(e, out, err);
    const auto verbs = app.get_subcommands();
    const std::string wrong = verbs.empty() ? "" : wrong_argument(app, *verbs.front());
    if (code != 0 && !wrong.empty()) err.str(wrong);
    put(stdout, out.str());
    put(stderr, err.str());
    return code == 0 ? kDone : kUsage;
  }
  try {
    return actions.at(app.get_subcommands().front()->get_name())();
  } catch (const ConfigError& e) {
    return report_problems(e);
  } catch (const std::bad_alloc&) {
    complain("out of memory; lower memory.host or the number of workers");
    return kRunFailed;
  } catch (const std::exception& e) {
    complain(e.what());
    return kRunFailed;
  }
}

// What is opened later would be taken for one of these, and printed into.
void open_standard_files() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(fd, F_GETFD) == -1) (void)::open("/dev/null", O_RDWR);
}

// All that was printed is where it should be. Who has closed the other end of a pipe wanted no more.
bool is_printed() {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0 && close_error(STDOUT_FILENO) == 0)
    return true;
  pollfd out{STDOUT_FILENO, POLLOUT, 0};
  return poll(&out, 1, 0) == 1 && (out.revents & POLLERR) != 0;
}

}  // namespace

int run_program(int argc, char** argv) {
  open_standard_files();
  // A limit on the size of files is then the error of a write, which is told.
  std::signal(SIGXFSZ, SIG_IGN);
  const int code = run_verb(argc, argv);
  if (is_printed()) return code;
  std::fputs("melflow: stdout: not all that was printed could be written there\n", stderr);
  const Verb* verb = argc > 1 ? find_verb(argv[1]) : nullptr;
  return verb == nullptr ? kRunFailed : verb->unprinted.value_or(static_cast<ExitCode>(code));
}

}  // namespace melflow
