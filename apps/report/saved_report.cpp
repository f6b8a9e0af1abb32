#include "apps/report/saved_report.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "apps/report/format.h"
#include "pipeline/base/input_file.h"
#include "pipeline/base/problem.h"
#include "pipeline/base/text.h"
#include "stages/shallow_json.h"

namespace melflow {
namespace {

using PlainJson = nlohmann::json;

constexpr std::size_t kMostDocument = 256 << 20;  // [bytes]

PlainJson parsed(const std::string& path) {
  constexpr const char* kAdvice = "name the document of a run: `melflow run PIPELINE --json=FILE`";
  std::error_code error;
  if (!std::filesystem::exists(path, error) && !error)
    throw RunError(fmt::format("{}: {}; {}", path, no_such_file(path, {".json"}), kAdvice));
  if (std::filesystem::is_directory(path, error))
    throw RunError(fmt::format("{}: this is a folder; {}", path, kAdvice));
  const std::string text = InputFile(path, Pipes::by_descriptor).read_all(kMostDocument);
  PlainJson out = parse_shallow(without_escaped_bytes(text));
  if (!out.is_object() || !out.contains("melflow_version"))
    throw RunError(fmt::format(
        "{}: this is not a report of melflow; `melflow run PIPELINE --json=FILE` writes one",
        path));
  return out;
}

RunSpeed::Stage stage_of(const PlainJson& s, double files) {
  const PlainJson& calls = s.at("call_seconds");
  return {.name = s.at("name").get<std::string>(),
          .busy = s.at("seconds").at("busy").get<double>() / files,
          .cpu = s.at("cpu_seconds").get<double>() / files,
          .calls = calls.at("calls").get<double>(),
          .p50 = calls.at("p50").get<double>(),
          .p90 = calls.at("p90").get<double>(),
          .p99 = calls.at("p99").get<double>()};
}

// Returns "+12%", "-3%".
std::string change_text(double share) { return fmt::format("{:+.0f}%", 100 * share); }

std::string microseconds(double seconds) { return fmt::format("{:.1f}", 1e6 * seconds); }

std::string verdict_of(const Change& c) {
  if (!c.is_real()) return "noise";
  return c.after > c.before ? "slower" : "faster";
}

}  // namespace

RunSpeed read_saved_report(const std::string& path) try {
  const PlainJson json = parsed(path);
  if (!json.contains("limit") || json["limit"].is_null())
    throw RunError(fmt::format(
        "{}: has no figures of speed: its run processed no file, or an older melflow made it",
        path));
  RunSpeed out;
  const PlainJson& files = json.at("files");
  for (const char* what : {"ok", "skipped", "failed"}) out.files += files.at(what).get<double>();
  const PlainJson& limit = json["limit"];
  out.files_per_second = limit.at("files_per_second").get<double>();
  out.taken_by_others = limit.at("taken_by_others").get<double>();
  out.limit = limit.at("cause").get<std::string>();
  if (!limit.at("node").is_null()) out.limit += " of " + limit["node"].get<std::string>();
  for (const PlainJson& s : json.at("stages"))
    out.stages.push_back(stage_of(s, std::max(1.0, out.files)));
  return out;
} catch (const PlainJson::exception& e) {
  throw RunError(fmt::format("{}: this is not a complete report of melflow: {}", path, e.what()));
}

std::string comparison_text(const Comparison& c, const RunSpeed& before, const RunSpeed& after) {
  const Change& w = c.whole;
  std::string out = fmt::format("{} → {} files/s while the stages worked ({}): {}\n",
                                rate_text(w.before), rate_text(w.after), change_text(w.share()),
                                !w.is_real()         ? "no more than noise"
                                : w.after < w.before ? "slower"
                                                     : "faster");
  out += fmt::format("limited by: {} → {}\n\n", one_line(before.limit), one_line(after.limit));
  std::size_t width = 4;
  for (const Change& s : c.stages) width = std::max(width, s.name.size());
  constexpr const char* kRow = "{:<{}}  {:>9}  {:>9}  {:>7}  {:>10}  {:>9}  {}\n";
  out += fmt::format(kRow, "node", width, "us before", "us after", "change", "CPU before",
                     "CPU after", "");
  for (const Change& s : c.stages)
    out += fmt::format(kRow, one_line(s.name), width, microseconds(s.before), microseconds(s.after),
                       change_text(s.share()), microseconds(s.cpu_before),
                       microseconds(s.cpu_after), verdict_of(s));
  const auto list = [&](const char* where, const std::vector<std::string>& names) {
    if (!names.empty()) out += fmt::format("only in the {}: {}\n", where, fmt::join(names, ", "));
  };
  list("first", c.only_before);
  list("second", c.only_after);
  return out + fmt::format(
                   "  microseconds a file in the stage, and of a core there. Noise: up to {:.0f}% "
                   "(5%, by which runs\n  differ at rest, or what other programs took of the "
                   "cores), or three standard errors of the\n  mean of a stage's calls, where that "
                   "is more\n",
                   100 * w.noise);
}

}  // namespace melflow
