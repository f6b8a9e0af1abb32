// melflow bench: measures this machine's ceilings for everything that a run needs.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "apps/bench/measurements.h"
#include "apps/exit_codes.h"
#include "apps/profile/figures.h"
#include "apps/report/format.h"
#include "apps/report/printing.h"
#include "apps/report/report_json.h"
#include "apps/signals.h"
#include "apps/usage_errors.h"
#include "apps/verbs/argument_checks.h"
#include "apps/verbs/verbs.h"
#include "apps/verbs/written_file.h"
#include "cuda/gpu.h"
#include "pipeline/base/cpu.h"
#include "pipeline/base/problem.h"
#include "pipeline/base/version.h"
#include "stages/features/mel/mel_kernel.h"

namespace melflow {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

struct BenchArguments {
  double seconds = 1;
  int repeat = 5;
  std::string dir;   ///< "": the system's folder for temporary files
  std::string json;  ///< "": none, "-": stdout, else a file
  bool no_progress = false;
};

/// The measurements and the machine on which they were made.
struct Bench {
  std::string dir;
  Disk disk;
  std::vector<Measurement> all;
  bool is_stopped = false;
};

// Returns the folder for measured files as the user wrote it.
std::string parent_of(const BenchArguments& arguments) {
  std::error_code error;
  std::string dir = arguments.dir;
  if (dir.empty()) {
    dir = fs::temp_directory_path(error);
    if (error)
      throw UsageError(
          fmt::format("TMPDIR: {}; name a folder for files by --dir", error.message()));
  }
  if (!fs::is_directory(dir, error))
    throw UsageError(fmt::format("--dir {}: {}; name a folder with room for files of some MB",
                                 excerpt(dir), error ? error.message() : "this is not a folder"));
  return dir;
}

// Removes all its files in any case, even after a second Ctrl-C.
Bench run_bench(const BenchArguments& arguments) {
  Bench out;
  out.dir = parent_of(arguments);
  out.disk = disk_of(out.dir);
  std::optional<TemporaryFolder> folder;
  try {
    folder.emplace(out.dir);
  } catch (const RunError& e) {
    throw RunError(fmt::format("--dir {}", e.what()));
  }
  std::atomic<bool> is_stopped{false};
  const StopOnSignal signals([&] { is_stopped = true; },
                             [path = *folder / ""] {
                               std::error_code ignored;
                               fs::remove_all(path, ignored);
                             });
  for (auto&& kind : {reading(*folder), decoding(*folder), computing(), writing(*folder), graph()})
    out.all.insert(out.all.end(), kind.begin(), kind.end());
  const bool is_told =
      !arguments.no_progress && arguments.json != "-" && isatty(STDERR_FILENO) != 0;
  measure(out.all, arguments.seconds, arguments.repeat, is_stopped, [&](int round) {
    if (is_told)
      say(stderr, "round {} of {}: {}, {:g} s each\n", round, arguments.repeat,
          plural(out.all.size(), "measurement"), arguments.seconds);
  });
  out.is_stopped = is_stopped;
  return out;
}

std::string why_not(const Measurement& m) {
  return m.why_not.empty() ? "there was no time for it" : m.why_not;
}

std::string disk_text(const Disk& disk) {
  if (disk.file_system.empty()) return "a disk that the system does not name";
  return disk.device == disk.file_system ? disk.file_system
                                         : disk.file_system + " on " + disk.device;
}

std::string gpu_text() {
  const cuda::Gpus& gpus = cuda::gpus();
  std::string names;
  if (gpus.may_have_some())
    for (const cuda::GpuInfo& gpu : gpus.list()) names += (names.empty() ? "" : ", ") + gpu.name;
  if (names.empty()) return "none: " + gpus.why_none();
  return names + "; `bash perf/gpu.sh` measures it";
}

std::string table_text(const Bench& bench) {
  std::size_t widest = 0, widest_median = 6, widest_unit = 0;
  for (const Measurement& m : bench.all) {
    widest = std::max(widest, m.what.size());
    widest_unit = std::max(widest_unit, m.unit.size());
    if (!m.figures.empty())
      widest_median = std::max(widest_median, rate_text(median(m.figures)).size());
  }
  std::string out =
      fmt::format("melflow {}, {}, {}\nfiles: {}, {}\n\n{:{}}  {:>{}}  {:{}}  spread\n", kVersion,
                  cores_text(available_cpus()), MelKernel::instruction_set(), one_line(bench.dir),
                  one_line(disk_text(bench.disk)), "what", widest, "median", widest_median, "unit",
                  widest_unit);
  for (const Measurement& m : bench.all) {
    if (m.figures.empty()) {
      out += fmt::format("{:{}}  {:>{}}  {}\n", m.what, widest, "-", widest_median, why_not(m));
      continue;
    }
    const auto [least, greatest] = std::minmax_element(m.figures.begin(), m.figures.end());
    out += fmt::format("{:{}}  {:>{}}  {:{}}  {} to {}\n", m.what, widest,
                       rate_text(median(m.figures)), widest_median, m.unit, widest_unit,
                       rate_text(*least), rate_text(*greatest));
  }
  return out + "\nGPU: " + one_line(gpu_text()) + "\n";
}

Json bench_json(const Bench& bench, const BenchArguments& arguments) {
  Json out{{"melflow_version", kVersion},
           {"cores", available_cpus()},
           {"instruction_set", MelKernel::instruction_set()},
           {"dir", bench.dir},
           {"file_system", bench.disk.file_system},
           {"device", bench.disk.device},
           {"seconds", arguments.seconds},
           {"repeat", arguments.repeat},
           {"stopped", bench.is_stopped},
           {"measured", Json::array()},
           {"not_measured", Json::array()},
           {"gpu", gpu_text()}};
  for (const Measurement& m : bench.all) {
    if (m.figures.empty()) {
      out["not_measured"].push_back({{"what", m.what}, {"why", why_not(m)}});
      continue;
    }
    const auto [least, greatest] = std::minmax_element(m.figures.begin(), m.figures.end());
    out["measured"].push_back({{"what", m.what},
                               {"unit", m.unit},
                               {"median", median(m.figures)},
                               {"least", *least},
                               {"greatest", *greatest},
                               {"figures", m.figures}});
  }
  return out;
}

int bench(const BenchArguments& arguments) {
  std::optional<WrittenFile> file;
  if (!arguments.json.empty() && arguments.json != "-") {
    try {
      file.emplace(arguments.json);
    } catch (const RunError& e) {
      throw RunError(fmt::format("--json: {}", e.what()));
    }
  }
  const Bench done = run_bench(arguments);
  if (file) file->write(json_text(bench_json(done, arguments)));
  put(stdout, arguments.json == "-" ? json_text(bench_json(done, arguments)) : table_text(done));
  if (!done.is_stopped) return kDone;
  complain("stopped; the figures are of the rounds so far, and the files are removed");
  return kStopped;
}

}  // namespace

Action add_bench(CLI::App& verb) {
  auto arguments = std::make_shared<BenchArguments>();
  add_time(verb, "--seconds", arguments->seconds,
           "how long each is measured at a time, in turn (default 1s)");
  verb.add_option("--repeat", arguments->repeat, "how often each is measured; the median is shown")
      ->type_name("N")
      ->check(is_integer(1, 1000))
      ->capture_default_str();
  verb.add_option("--dir", arguments->dir,
                  "a folder on the disk to measure; files of some MB are made in it and removed "
                  "(default: the folder for temporary files)")
      ->type_name("DIR");
  verb.add_flag("--json{-}", arguments->json,
                "prints a JSON document instead; --json=FILE writes it to FILE beside the table");
  verb.add_flag("--no-progress", arguments->no_progress, "prints no progress");
  verb.footer(
      "Reads, decodes, computes, copies and writes, each alone, with melflow's own parts: "
      "ceilings\nfor a pipeline; `melflow explain` says what limits one. Run it while nothing else "
      "runs.\n"
      "\n"
      "Example:\n"
      "  melflow bench --dir /data --json=ceilings.json");
  return [arguments] { return bench(*arguments); };
}

}  // namespace melflow
