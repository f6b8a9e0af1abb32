// melflow verify-parity: are our features the libraries' own?
#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>

#include <fmt/format.h>

#include "apps/exit_codes.h"
#include "apps/format.h"
#include "apps/parity_report.h"
#include "apps/parity_signals.h"
#include "apps/report_json.h"
#include "apps/shipped.h"
#include "apps/verbs.h"
#include "pipeline/problem.h"
#include "stages/mel_kernel.h"
#include "stages/version.h"

namespace melflow {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kDeltas = "deltas";

constexpr const char* kFooter =
    R"(A value passes when |ours - theirs| <= atol + rtol |theirs| + own_error: the tolerance of the
library's own tests (1e-4 where it tests no values), and how far its single precision is from its
definition. At least 1e-4 is allowed of a level, smaller own errors not being in the vectors, and of
any value what an error of 1e-6 of its frame's largest (before the logarithm, where there is one)
comes to. In the table 'max error' is that of the value nearest to its limit, less own_error.
Exit status: 0 all passed, 1 one failed. docs/parity.md has more.

Example:
  melflow verify-parity
  melflow verify-parity --preset whisper --preset kaldi --all)";

struct ParityArguments {
  std::vector<std::string> presets;
  std::string vectors;
  bool all = false, json = false;
};

ParityResult verify(const ParityCase& one, const ParityVectors& vectors) {
  ParityResult out;
  out.name = one.name;
  out.preset = one.preset;
  out.libraries = {one.source.text()};
  if (!one.left_out.empty()) {
    out.left_out = 1;
    out.reason = one.left_out;
    return out;
  }
  const std::vector<std::int16_t> samples = parity_signal(one.signal, one.options.sample_rate);
  if (static_cast<std::int64_t>(samples.size()) != one.samples) {
    out.fail(
        fmt::format("its signal has {} samples here, must have {}", samples.size(), one.samples));
    return out;
  }
  const ParityRows ours = parity_rows(one.options, one.cepstrum, samples);
  if (ours.frames != one.frames || ours.columns != one.columns) {
    out.fail(fmt::format("{} x {} values (frames x columns) here, {} x {} by {}", ours.frames,
                         ours.columns, one.frames, one.columns, one.source.text()));
    return out;
  }
  const ParityJudge judge(one.options, one.cepstrum.has_value(), ours,
                          vectors.tolerance(one.preset));
  for (const ParityRow& row : one.rows) out.take(judge.worst(row));
  out.frames = static_cast<std::int64_t>(one.rows.size());
  return out;
}

ParityResult verify(const ParityDelta& one, const ParityVectors& vectors) {
  ParityResult out;
  out.name = one.name;
  out.preset = kDeltas;
  out.libraries = {one.source.text()};
  out.take(worst_delta(one, vectors.tolerance(kDeltas)));
  out.frames = static_cast<std::int64_t>(one.output.size());
  return out;
}

void check_names(const std::vector<std::string>& wanted, const ParityVectors& vectors) {
  std::vector<std::string> names;
  for (const auto& [name, tolerance] : vectors.presets) names.push_back(name);
  for (const std::string& name : wanted)
    if (std::find(names.begin(), names.end(), name) == names.end())
      throw RunError(fmt::format("there are no vectors of '{}'{}; there are of {}", name,
                                 did_you_mean(name, names), fmt::join(names, ", ")));
}

int verify_vectors(const ParityArguments& arguments) {
  const std::string path =
      arguments.vectors.empty()
          ? shipped_file("parity/presets.json", "tests/golden/presets.json").string()
          : arguments.vectors;
  ParityVectors vectors = read_parity_vectors(path);
  vectors.presets.emplace_back(kDeltas, ParityTolerance{});
  check_names(arguments.presets, vectors);
  const auto wanted = [&](const std::string& preset) {
    const auto& names = arguments.presets;
    return names.empty() || std::find(names.begin(), names.end(), preset) != names.end();
  };
  std::vector<ParityResult> cases;
  for (const ParityCase& one : vectors.cases)
    if (wanted(one.preset)) cases.push_back(verify(one, vectors));
  for (const ParityDelta& one : vectors.deltas)
    if (wanted(kDeltas)) cases.push_back(verify(one, vectors));

  const std::vector<ParityResult> presets = by_preset(cases);
  const bool passed =
      std::all_of(cases.begin(), cases.end(), [](const auto& r) { return r.passed; });
  if (arguments.json) {
    const Json out{{"melflow_version", kVersion},
                   {"backend", "cpu"},
                   {"instruction_set", MelKernel::instruction_set()},
                   {"vectors", path},
                   {"passed", passed},
                   {"presets", parity_json(presets, vectors)},
                   {"cases", parity_json(cases, vectors)}};
    std::cout << json_text(out);
  } else {
    fmt::print("melflow {} (cpu, {}) against {}\n\n{}", kVersion, MelKernel::instruction_set(),
               path,
               arguments.all ? parity_text("case", cases, cases, vectors)
                             : parity_text("preset", presets, cases, vectors));
  }
  return passed ? kDone : kRunFailed;
}

}  // namespace

void add_verify_parity(CLI::App& app, Action& action) {
  CLI::App* verb = app.add_subcommand(
      "verify-parity", "Compares melflow's features with those of the libraries they come from.");
  auto arguments = std::make_shared<ParityArguments>();
  verb->add_option("--preset", arguments->presets, "only this one; may be given many times")
      ->type_name("NAME")
      ->allow_extra_args(false);
  verb->add_flag("--all", arguments->all, "a line for each case");
  verb->add_flag("--json", arguments->json, "prints one JSON document");
  verb->add_option("--vectors", arguments->vectors, "another file of golden vectors")
      ->type_name("PATH");
  verb->footer(kFooter);
  verb->callback(
      [arguments, &action] { action = [arguments] { return verify_vectors(*arguments); }; });
}

}  // namespace melflow
