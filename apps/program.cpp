// Runs a verb: parses the command line and turns errors into exit statuses.
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
#include <vector>

#include <fmt/format.h>

#include "apps/console.h"
#include "apps/exit_codes.h"
#include "apps/report/printing.h"
#include "apps/shipped.h"
#include "apps/start_python.h"
#include "apps/usage_errors.h"
#include "apps/verbs/verbs.h"
#include "config/document.h"
#include "config/plugins.h"
#include "pipeline/base/problem.h"
#include "pipeline/base/text.h"
#include "pipeline/base/version.h"
#include "pipeline/base/warned_config_error.h"
#include "stages/features/mel/real_fft.h"
#include "stages/files/own_file.h"
#include "stages/files/unique_fd.h"
#include "stages/python/python_functions.h"

namespace melflow {
namespace {

constexpr const char* kFooter = R"(Example:
  melflow init first.yaml                      a commented configuration to start from
  DATA=clips OUT=features.h5 melflow run first.yaml
  melflow inspect features.h5
  melflow show features.h5 --file some.wav -o mel.svg
  melflow --plugin ./own.so run own.yaml       with the stages of a plug-in; also MELFLOW_PLUGINS=./own.so
  melflow run --help                           the options of a verb; the same as melflow help run

Exit status: 0 done, 1 the run failed, 2 usage, 3 done but some files failed, 4 not as expected (expect, tests),
75 stopped by Ctrl-C or a time limit (130 by a second Ctrl-C), 78 the configuration is wrong.)";

class HelpFormatter final : public CLI::Formatter {
 public:
  HelpFormatter() {
    label("SUBCOMMAND", "VERB");
    label("REQUIRED", "(required)");
  }
  std::string make_option_name(const CLI::Option* option, bool is_positional) const override {
    std::string name = CLI::Formatter::make_option_name(option, is_positional);
    // Omits the value that CLI11 shows for a flag without '='.
    if (const std::size_t value = name.find("{-}"); value != std::string::npos)
      name.replace(value, 3, "[=FILE]");
    return name;
  }
  // Omits the type TEXT.
  std::string make_option_opts(const CLI::Option* option) const override {
    std::string text = CLI::Formatter::make_option_opts(option);
    if (text.starts_with(" TEXT")) text.erase(0, 5);
    return text;
  }
  std::string make_footer(const CLI::App* app) const override {
    return app->get_footer().empty() ? "" : "\n" + app->get_footer() + "\n";
  }
};

constexpr const char* kPlugin = "--plugin";

// Returns the program's arguments; `help run` becomes `run --help`, and options --plugin before the
// verb are moved behind it.
std::vector<std::string> arguments_of(int argc, char** argv) {
  std::vector<std::string> out(argv + std::min(argc, 1), argv + argc), options;
  while (!out.empty() && out.front().substr(0, out.front().find('=')) == kPlugin) {
    const auto end = out.begin() + (out.front() == kPlugin && out.size() > 1 ? 2 : 1);
    options.insert(options.end(), out.begin(), end);
    out.erase(out.begin(), end);
  }
  if (out.empty()) return out;
  if (out.front() == "help") {
    out.erase(out.begin());
    options.emplace_back("--help");
  }
  out.insert(out.begin() + (out.empty() ? 0 : 1), options.begin(), options.end());
  return out;
}

// Loads the plug-ins of the environment, then those of the command line. Throws ConfigError.
void load_plugins(const std::vector<std::string>& paths) {
  load_plugins_of_environment();
  for (const std::string& path : paths)
    if (const std::string wrong = load_plugin(path); !wrong.empty())
      throw ConfigError(wrong, {std::make_shared<const std::string>(kPlugin), 0, 0});
}

// Released when memory runs out, so that a run's results can still be completed and reported, which
// takes little. Larger requests then fail.
constexpr std::size_t kSpareMemory = 1 << 20;
std::atomic<void*> spare_memory{nullptr};

void give_spare_memory() {
  void* spare = spare_memory.exchange(nullptr);
  if (spare == nullptr) throw std::bad_alloc();
  std::free(spare);
}

int report_problems(const ConfigError& e) {
  put(stderr, e.problems().str() + "\n");
  for (const Problem& w : warnings_beside(e)) say(stderr, "warning: {}\n", w.str());
  const std::size_t n = e.problems().size();
  complain(
      fmt::format("{} problem{} in the configuration, nothing was started", n, n == 1 ? "" : "s"));
  return kConfiguration;
}

// Executes a verb. Throws what the verb throws.
int run_verb(const std::vector<std::string>& arguments) {
  CLI::App app{
      "Turns large audio corpora into mel-spectrogram features, through a pipeline written "
      "in YAML.",
      "melflow"};
  app.set_version_flag(
      "--version", fmt::format("melflow {}\ntransform: {}", kVersion, transform_name()),
      "prints the version, and what does Fourier transforms that the kernels have no steps for");
  app.set_help_flag("-h,--help", "prints this help");
  app.require_subcommand(1);
  app.footer(kFooter);
  app.formatter(std::make_shared<HelpFormatter>());
  std::map<std::string, Action> actions;
  std::vector<std::string> plugins;
  for (const Verb& verb : kVerbs) {
    CLI::App& of_verb = *app.add_subcommand(verb.name, verb.summary)->group(verb.heading);
    actions[verb.name] = verb.add(of_verb);
    of_verb
        .add_option(kPlugin, plugins, "loads the stages of a shared library first; may be repeated")
        ->type_name("FILE")
        ->allow_extra_args(false);
  }

  if (const std::string wrong = wrong_verb(app, arguments); !wrong.empty()) {
    complain(wrong);
    return kUsage;
  }
  try {
    app.parse(std::vector(arguments.rbegin(), arguments.rend()));  // CLI11 wants them reversed
  } catch (const CLI::Success& e) {
    std::ostringstream out;
    app.exit(e, out);
    put(stdout, out.str());
    return kDone;
  } catch (const CLI::ParseError& e) {
    put(stderr, usage_error(app, e));
    return kUsage;
  }
  load_plugins(plugins);
  return actions.at(app.get_subcommands().front()->get_name())();
}

int run_verb_and_report(const std::vector<std::string>& arguments) {
  std::free(spare_memory.exchange(std::malloc(kSpareMemory)));
  std::set_new_handler(give_spare_memory);
  try {
    return run_verb(arguments);
  } catch (const ConfigError& e) {
    return report_problems(e);
  } catch (const UsageError& e) {
    complain(e.what());
    return kUsage;
  } catch (const std::bad_alloc&) {
    complain("out of memory; lower memory.host or the number of workers");
    return kRunFailed;
  } catch (const std::exception& e) {
    complain(e.what());
    return kRunFailed;
  }
}

// Opens missing standard streams; a file opened later would get their numbers and be printed into.
void open_standard_files() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(fd, F_GETFD) == -1) (void)::open("/dev/null", O_RDWR);
}

// Returns whether all output was written. A closed pipe counts as written: its reader wanted no
// more.
bool is_printed() {
  std::FILE* const file = standard_output();
  if (std::fflush(file) == 0 && std::ferror(file) == 0 && close_error(fileno(file)) == 0)
    return true;
  pollfd out{fileno(file), POLLOUT, 0};
  return poll(&out, 1, 0) == 1 && (out.revents & POLLERR) != 0;
}

}  // namespace

int run_program(int argc, char** argv) {
  open_standard_files();
  // With SIGXFSZ ignored, exceeding a limit on file sizes becomes a write error, which is reported.
  std::signal(SIGXFSZ, SIG_IGN);
  // A closed pipe behind stderr or stdout must not end a run; put() ignores it, too.
  std::signal(SIGPIPE, SIG_IGN);
  const UniqueFd folder(::open(".", O_PATH | O_DIRECTORY | O_CLOEXEC));  // some verbs change it
  std::vector<std::string> arguments;
  int code = kRunFailed;
  try {
    arguments = arguments_of(argc, argv);
    code = run_verb_and_report(arguments);
  } catch (const NeedsPython& needed) {
    if (folder) (void)!fchdir(folder.get());
    complain(fmt::format("{}: {}", needed.call, start_in_python(argc, argv)));
  } catch (const std::bad_alloc&) {
    std::fputs("melflow: out of memory\n", stderr);
  }
  if (is_printed()) return code;
  std::fputs("melflow: stdout: could not write all of the output\n", stderr);
  const Verb* verb = arguments.empty() ? nullptr : find_verb(arguments.front());
  return verb == nullptr ? kRunFailed : verb->unprinted.value_or(static_cast<ExitCode>(code));
}

int run_program(const std::vector<std::string>& arguments, const std::string& input,
                Console& console) {
  const ConsoleScope scope(console);
  set_standard_input(input);
  return run_verb(arguments);
}

}  // namespace melflow
