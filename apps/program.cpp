// The frame around the verbs: the command line, and errors as exit statuses.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

#include <fmt/format.h>

#include "apps/exit_codes.h"
#include "apps/verbs.h"
#include "pipeline/problem.h"
#include "stages/version.h"

namespace melflow {
namespace {

constexpr const char* kFooter = R"(Example:
  melflow init first.yaml                      a commented configuration to start from
  DATA=clips OUT=features.h5 melflow run first.yaml
  melflow inspect features.h5
  melflow show features.h5 --file some.wav -o mel.png

Exit status: 0 done, 3 done but some files failed, 1 the run failed, 75 stopped,
2 usage, 78 the configuration is wrong.)";

class HelpFormatter final : public CLI::Formatter {
 public:
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

// CLI11 only says that the argument "was not expected".
std::string wrong_verb(const CLI::App& app, int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') return {};
  const std::string word = argv[1];
  std::vector<std::string> names;
  for (const CLI::App* verb : app.get_subcommands({})) names.push_back(verb->get_name());
  for (const std::string& name : names)
    if (name == word) return {};
  return fmt::format("melflow: there is no verb '{}'{}; the verbs are {}", word,
                     did_you_mean(word, names), fmt::join(names, ", "));
}

int report_problems(const ConfigError& e) {
  fmt::print(stderr, "{}\n", e.problems().str());
  const std::size_t n = e.problems().size();
  fmt::print(stderr, "melflow: {} problem{} in the configuration, nothing was started\n", n,
             n == 1 ? "" : "s");
  return kConfiguration;
}

}  // namespace

int run_program(int argc, char** argv) {
  CLI::App app{
      "Turns large audio corpora into mel-spectrogram features, through a pipeline written "
      "in YAML.",
      "melflow"};
  app.set_version_flag("--version", std::string("melflow ") + kVersion);
  app.require_subcommand(1);
  app.footer(kFooter);
  app.formatter(std::make_shared<HelpFormatter>());
  Action action;
  for (const auto add : {add_run, add_update, add_validate, add_graph, add_stages, add_init,
                         add_inspect, add_compare, add_show, add_verify_parity})
    add(app, action);

  if (const std::string wrong = wrong_verb(app, argc, argv); !wrong.empty()) {
    fmt::print(stderr, "{}\n", wrong);
    return kUsage;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? kDone : kUsage;
  }
  try {
    return action();
  } catch (const ConfigError& e) {
    return report_problems(e);
  } catch (const std::exception& e) {
    fmt::print(stderr, "melflow: {}\n", e.what());
    return kRunFailed;
  }
}

}  // namespace melflow
