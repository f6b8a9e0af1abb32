// melflow presets: the front ends of known libraries and models, and those of models' own files.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <string>

#include <fmt/format.h>

#include "apps/exit_codes.h"
#include "apps/report/printing.h"
#include "apps/verbs/front_end_text.h"
#include "apps/verbs/verbs.h"
#include "pipeline/base/problem.h"
#include "pipeline/base/text.h"
#include "stages/features/mel/mel_presets.h"
#include "stages/front_ends.h"
#include "stages/model_files/class_reader.h"
#include "stages/model_files/model_file.h"

namespace melflow {
namespace {

int rate_of_preset(const FrontEnd& f) {
  const MelPreset* of_mel = find_preset(f.name);
  return of_mel != nullptr ? of_mel->options.sample_rate : f.sample_rate_of("samples");
}

// The table of docs/features.md.
std::string presets_markdown() {
  std::string out = "| preset | gives | computed by | Hz | nodes |\n|---|---|---|---|---|\n";
  for (const FrontEnd& f : front_ends()) {
    std::string nodes(f.text);
    for (std::size_t at = 0; (at = nodes.find('\n', at)) != nodes.npos;)
      nodes.replace(at, 1, "`, `");
    out += fmt::format("| `{}` | {} | {} | {} | `{}` |\n", f.name, f.summary, f.source,
                       rate_of_preset(f), nodes);
  }
  return out;
}

int print_presets() {
  std::size_t name = 0, source = 0;
  for (const FrontEnd& f : front_ends()) {
    name = std::max(name, f.name.size());
    source = std::max(source, f.source.size());
  }
  for (const FrontEnd& f : front_ends())
    say(stdout, "{:<{}}  {:>6} Hz  {:<{}}  {}\n", f.name, name, rate_of_preset(f), f.source, source,
        f.summary);
  say(stdout,
      "\n`melflow presets NAME` shows the nodes of one, `melflow presets FILE` those of a model's "
      "own file.\n");
  return kDone;
}

int print_front_end(const std::string& name) {
  if (const FrontEnd* of = find_front_end(name)) {
    if (const std::string text = shadowed_folder(Value::scalar(name)); !text.empty())
      say(stderr, "warning: {}\n", text);
    say(stdout, "{}: {}\n  {}, {} Hz\n\n{}\n", of->name, of->summary, of->source,
        rate_of_preset(*of), of->text);
    return kDone;
  }
  const Value file = Value::scalar(name);
  if (!is_model_file(file)) {
    std::vector<std::string> names;
    for (const FrontEnd& f : front_ends()) names.emplace_back(f.name);
    complain(fmt::format("there is no preset or file '{}'{}; `melflow presets` lists the presets",
                         excerpt(name), did_you_mean(name, names)));
    return kUsage;
  }
  const ModelFrontEnd of = read_model_file(file);
  put(stdout, fmt::format("# {}, {} Hz, {}\n{}\n{}", of.title, of.sample_rate(), of.hash,
                          assumptions_yaml(of), model_nodes_yaml(of, "resample", false)));
  return kDone;
}

}  // namespace

Action add_presets(CLI::App& verb) {
  struct Arguments {
    std::string name;
    bool markdown = false, classes = false;
  };
  auto arguments = std::make_shared<Arguments>();
  verb.add_option("NAME", arguments->name,
                  "the preset to show, or a model's own file or folder; not given: lists all")
      ->type_name("NAME|PATH");
  CLI::Option* markdown = verb.add_flag("--markdown", arguments->markdown,
                                        "prints all presets as Markdown (docs/features.md)");
  verb.add_flag("--classes", arguments->classes,
                "prints the classes whose files are read, with their keys, as Markdown "
                "(docs/model-files.md)")
      ->excludes(markdown);
  verb.footer(
      "Example:\n  melflow presets\n  melflow presets seamless\n  melflow presets "
      "whisper-small/preprocessor_config.json");
  return [arguments]() -> int {
    if (!arguments->name.empty()) return print_front_end(arguments->name);
    if (!arguments->markdown && !arguments->classes) return print_presets();
    put(stdout, arguments->markdown ? presets_markdown() : classes_markdown());
    return kDone;
  };
}

}  // namespace melflow
