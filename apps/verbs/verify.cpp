// melflow verify: whether the rows of an output are still what was written.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "apps/exit_codes.h"
#include "apps/report/format.h"
#include "apps/report/printing.h"
#include "apps/report/report_json.h"
#include "apps/verbs/verbs.h"
#include "pipeline/cpu.h"
#include "pipeline/problem.h"
#include "pipeline/threads.h"
#include "stages/output/formats/feature_file.h"
#include "stages/output/formats/row_hash.h"

namespace melflow {
namespace {

constexpr std::size_t kShown = 20;
constexpr std::uint64_t kBytesAtOnce = 4 << 20;

struct VerifyArguments {
  std::string file;
  bool json = false;
};

enum class State : char { no_rows, right, wrong, unknown };

struct Verified {
  std::vector<std::size_t> wrong;  ///< files
  std::size_t right = 0, unknown = 0;
};

NumberType stored_type(const FeatureFile& file) {
  for (const NumberType type :
       {NumberType::float32, NumberType::float16, NumberType::bfloat16, NumberType::int16})
    if (file.dtype() == to_text(type)) return type;
  throw RunError(fmt::format("{}: has rows of type {}, which melflow does not know", file.path(),
                             file.dtype()));
}

State state_of(const FeatureFile& file, const FeatureFile::Entry& entry, NumberType type) {
  if (entry.count == 0) return State::no_rows;
  if (entry.rows_hash == 0) return State::unknown;
  const std::uint64_t row_bytes = file.frames_per_row() * file.bands() * sizeof(float);
  const auto at_once =
      static_cast<std::int64_t>(std::max<std::uint64_t>(1, kBytesAtOnce / row_bytes));
  RowHash hash;
  for (std::int64_t row = 0; row < entry.count; row += at_once) {
    const std::vector<float> values =
        file.read_rows(static_cast<std::uint64_t>(entry.offset + row),
                       static_cast<std::uint64_t>(std::min(at_once, entry.count - row)));
    hash.add(values.data(), values.size(), NumberType::float32, type);
  }
  return hash.value() == entry.rows_hash ? State::right : State::wrong;
}

Verified verify(const FeatureFile& file) {
  const NumberType type = stored_type(file);
  std::vector<State> states(file.files().size(), State::no_rows);
  std::atomic<std::size_t> next{0};
  on_threads(available_cpus(), [&] {
    for (std::size_t i = 0; (i = next.fetch_add(1)) < states.size();) {
      try {
        states[i] = state_of(file, file.files()[i], type);
      } catch (const RunError&) {  // a chunk that is damaged cannot be unpacked
        states[i] = State::wrong;
      }
    }
  });
  Verified out;
  for (std::size_t i = 0; i < states.size(); ++i) {
    if (states[i] == State::wrong) out.wrong.push_back(i);
    out.right += states[i] == State::right ? 1 : 0;
    out.unknown += states[i] == State::unknown ? 1 : 0;
  }
  return out;
}

std::string text_of(const FeatureFile& file, const Verified& found) {
  std::string out = fmt::format("{}: the rows of {} are what was written", file.path(),
                                plural(found.right, "file"));
  if (found.unknown > 0) out += fmt::format("; of {} no hash is known", found.unknown);
  if (!found.wrong.empty()) {
    out += fmt::format("; those of {} are not:", plural(found.wrong.size(), "file"));
    for (std::size_t i = 0; i < std::min(found.wrong.size(), kShown); ++i)
      out += "\n  " + file.files()[found.wrong[i]].path;
    if (found.wrong.size() > kShown)
      out += fmt::format("\n  and {} more (--json lists them all)", found.wrong.size() - kShown);
    out += "\nIs the disk sound? Build the output anew (overwrite: true), or copy it again";
  }
  return out + "\n";
}

int run_verify(const VerifyArguments& arguments) {
  const FeatureFile file(arguments.file);
  const Verified found = verify(file);
  if (arguments.json) {
    nlohmann::ordered_json out{{"path", file.path()},
                               {"right", found.right},
                               {"unknown", found.unknown},
                               {"wrong", nlohmann::ordered_json::array()}};
    for (const std::size_t i : found.wrong) out["wrong"].push_back(file.files()[i].path);
    put(stdout, json_text(out));
  } else {
    put(stdout, text_of(file, found));
  }
  return found.wrong.empty() ? kDone : kRunFailed;
}

}  // namespace

Action add_verify(CLI::App& verb) {
  auto arguments = std::make_shared<VerifyArguments>();
  verb.add_option("FILE", arguments->file, "an output: .h5 or .npy")->required();
  verb.add_flag("--json", arguments->json, "prints a JSON document instead");
  verb.footer(
      "Every file's rows are read and compared with the hash in the index. Exit status: 0 all are "
      "what\n"
      "was written, 1 some are not.\n"
      "\n"
      "Example:\n"
      "  melflow verify features.h5");
  return [arguments] { return run_verify(*arguments); };
}

}  // namespace melflow
