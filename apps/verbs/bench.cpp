// melflow bench: runs the pipelines of config/pipelines/bench on recordings that it makes, and
// computes from their reports what this machine can do at most.
//
// All measurements take turns, one time slice each, round by round. A temporary disturbance of the
// machine then spoils one figure of each measurement, but no median.
#include <fcntl.h>
#include <sndfile.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "apps/exit_codes.h"
#include "apps/profile/figures.h"
#include "apps/report/format.h"
#include "apps/report/printing.h"
#include "apps/report/report_json.h"
#include "apps/shipped.h"
#include "apps/signals.h"
#include "apps/temporary_folder.h"
#include "apps/usage_errors.h"
#include "apps/verbs/argument_checks.h"
#include "apps/verbs/plan_arguments.h"
#include "apps/verbs/verbs.h"
#include "apps/verbs/watched_run.h"
#include "apps/verbs/written_file.h"
#include "cuda/gpu.h"
#include "pipeline/base/cpu.h"
#include "pipeline/base/problem.h"
#include "pipeline/base/version.h"
#include "stages/features/mel_front.h"
#include "stages/files/unique_fd.h"

namespace melflow {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr double kLength = 10;       // of every recording
constexpr double kMostCached = 0.1;  // share of what a run has read from the disk

struct BenchArguments {
  double seconds = 1;
  int repeat = 5;
  std::string dir;   ///< "": the system's folder for temporary files
  std::string json;  ///< "": none, "-": stdout, else a file
  bool no_progress = false;
};

/// A figure is the quotient of the sums of both over the runs of a time slice.
struct Quotient {
  double amount = 0, by = 0;
};

struct Measurement {
  std::string what = {};  ///< "decode FLAC, 1 core"
  std::string unit = {};  ///< "MB/s"
  std::string pipeline = "mel";
  std::string data = "wav";  ///< the folder of recordings that it reads
  std::vector<std::string> sets = {};
  int workers = available_cpus();
  Quotient (*quotient)(const RunReport&) = nullptr;
  bool is_cold = false;      ///< its recordings are to come from the disk
  std::string why_not = {};  ///< why it cannot be measured here; "": it can

  std::vector<double> figures = {};  ///< one per round
};

struct Bench {
  std::string dir;
  std::vector<Measurement> all;
  bool is_stopped = false;
};

const StageReport& stage_of(const RunReport& report, const std::string& node) {
  return *std::find_if(report.stages.begin(), report.stages.end(),
                       [&node](const StageReport& s) { return s.name == node; });
}

Quotient bytes_read(const RunReport& r) {
  return {static_cast<double>(r.bytes_read) / 1e6, r.graph_seconds};
}
Quotient decoded(const RunReport& r) {
  return {kLength * static_cast<double>(r.counts.ok), stage_of(r, "decode").time.busy};
}
// The cores that the run's threads had, out of those that they were ready to use.
Quotient free_cores(const RunReport& r) {
  return {r.workers * r.graph_cpu_seconds, r.graph_cpu_seconds + r.core_wait_seconds};
}
Quotient frames(const RunReport& r) {
  const StageReport& mel = stage_of(r, "mel");
  return {static_cast<double>(mel.rows_out) * r.workers, mel.time.busy};
}
// The time from the first row to a complete file under its name; nothing waits for the disk, as in
// any run without `sync`.
Quotient written(const RunReport& r) {
  const StageReport& out = stage_of(r, "out");
  return {static_cast<double>(out.bytes_in) / 1e6, out.time.busy + r.finish_seconds};
}
Quotient visits(const RunReport& r) {
  return {1e9 * r.graph_seconds, static_cast<double>(r.counts.ok * r.stages.size())};
}

struct Format {
  const char* name;
  const char* ending;
  int code;  ///< of libsndfile
};
// MP3 is one of libsndfile's since 1.1; older versions refuse the number.
constexpr Format kFormats[] = {{"WAV", "wav", SF_FORMAT_WAV | SF_FORMAT_PCM_16},
                               {"FLAC", "flac", SF_FORMAT_FLAC | SF_FORMAT_PCM_16},
                               {"Ogg Vorbis", "ogg", SF_FORMAT_OGG | SF_FORMAT_VORBIS},
                               {"MP3", "mp3", 0x230000 | 0x0082}};

std::vector<Measurement> measurements() {
  const std::string on_all = plural(static_cast<std::size_t>(available_cpus()), "core");
  std::vector<Measurement> out{{.what = "read files in the page cache, " + on_all,
                                .unit = "MB/s",
                                .pipeline = "read",
                                .quotient = bytes_read},
                               {.what = "read files from the disk, 32 at once",
                                .unit = "MB/s",
                                .pipeline = "read",
                                .sets = {"read.engine=threads", "read.depth=32"},
                                .quotient = bytes_read,
                                .is_cold = true}};
  for (const Format& f : kFormats)
    out.push_back({.what = fmt::format("decode {}, 1 core", f.name),
                   .unit = "x real time",
                   .data = f.ending,
                   .workers = 1,
                   .quotient = decoded});
  out.push_back({.what = fmt::format("cores that are free, of {}", available_cpus()),
                 .unit = "cores",
                 .quotient = free_cores});
  out.push_back({.what = "mel, 1 core", .unit = "frames/s", .workers = 1, .quotient = frames});
  if (available_cpus() > 1)
    out.push_back({.what = "mel, " + on_all, .unit = "frames/s", .quotient = frames});
  for (const auto& [name, path, stage] :
       {std::array{"HDF5", "${OUT}.h5", "hdf5_write"}, {".npy", "${OUT}.npy", "npy_write"}})
    out.push_back({.what = fmt::format("write rows into {}", name),
                   .unit = "MB/s",
                   .sets = {fmt::format("out.stage={}", stage), fmt::format("out.path={}", path),
                            "out.overwrite=true"},
                   .workers = 1,
                   .quotient = written});
  out.push_back({.what = "the graph, " + on_all,
                 .unit = "ns an item and node",
                 .pipeline = "graph",
                 .quotient = visits});
  return out;
}

/// Runs the pipelines in a folder that is removed in any case, even after a second Ctrl-C.
class Runs {
 public:
  explicit Runs(const std::string& parent) : folder_(parent) {
    for (const Format& f : kFormats) fs::create_directory(at(f.ending));
  }

  /// Makes the recordings. A format that cannot be written has none.
  void record() {
    run({.pipeline = "graph",
         .sets = {"signals.kind=sweep", "signals.count=64",
                  fmt::format("signals.duration={}s", kLength), "out.stage=audio_write",
                  "out.path=${DATA}"}});
    for (const Format& f : kFormats)
      if (f.ending != std::string("wav") && !is_stopped) encode(f);
  }

  /// Adds a figure, unless the run gives none or was stopped.
  void measure(Measurement& m, double seconds) {
    if (fs::is_empty(at(m.data))) m.why_not = "libsndfile here cannot encode it";
    if (!m.why_not.empty()) return;
    Quotient sum;
    const auto began = std::chrono::steady_clock::now();
    do {
      if (m.is_cold) drop(at(m.data));
      const RunReport report = run(m);
      if (is_stopped) return;
      if (m.is_cold &&
          (!report.usage.has_disk || run_figures(report).page_cache_share > kMostCached))
        continue;
      const Quotient one = m.quotient(report);
      sum = {sum.amount + one.amount, sum.by + one.by};
    } while (std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count() <
             seconds);
    if (sum.by > 0)
      m.figures.push_back(sum.amount / sum.by);
    else if (m.is_cold)
      m.why_not = "this file system keeps files in memory; --dir takes a folder on a disk";
  }

  std::atomic<bool> is_stopped{false};

 private:
  [[nodiscard]] std::string at(const std::string& name) const {
    return fs::absolute(folder_ / name).string();
  }

  RunReport run(const Measurement& m) {
    const std::string name = fmt::format("pipelines/bench/{}.yaml", m.pipeline);
    PlanOverrides overrides{m.sets, {"DATA=" + at(m.data), "OUT=" + at("rows")}};
    overrides.sets.emplace_back("max_failures=0");
    Runner runner(overrides.load_with(shipped_file(name, "config/" + name), m.workers, {}));
    Watch watch = kQuietly;
    watch.interrupted = &is_stopped;
    watch.leave = [this] {
      std::error_code ignored;
      fs::remove_all(folder_ / "", ignored);
    };
    RunReport report = run_watched(runner, watch).report;
    if (report.ending == Ending::failed) throw RunError(report.error);
    return report;
  }

  // No stage writes Ogg or MP3.
  void encode(const Format& format) const {
    SF_INFO info{};
    using Sound = std::unique_ptr<SNDFILE, int (*)(SNDFILE*)>;
    const std::string from = at("wav/sweep/000000.wav");
    const std::string to = at(fmt::format("{0}/sound.{0}", format.ending));
    const Sound in(sf_open(from.c_str(), SFM_READ, &info), sf_close);
    info.format = format.code;
    if (!in || sf_format_check(&info) == 0) return;
    Sound out(sf_open(to.c_str(), SFM_WRITE, &info), sf_close);
    bool is_well = out != nullptr;
    // libsndfile before 1.1 cannot take more at once for Vorbis.
    std::array<short, 4096> samples{};
    while (is_well) {
      const sf_count_t n = sf_readf_short(in.get(), samples.data(), samples.size());
      if (n == 0) break;
      is_well = sf_writef_short(out.get(), samples.data(), n) == n;
    }
    if (!is_well || sf_close(out.release()) != 0)
      throw RunError(fmt::format("{}: cannot be written: {}", to, sf_strerror(out.get())));
  }

  // Drops recordings from the page cache, where the file system allows it.
  static void drop(const std::string& folder) {
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      const UniqueFd fd(::open(entry.path().c_str(), O_RDONLY | O_CLOEXEC));
      if (fd && fdatasync(fd.get()) == 0) posix_fadvise(fd.get(), 0, 0, POSIX_FADV_DONTNEED);
    }
  }

  const HeldSignals held_;  // between the runs, too
  const TemporaryFolder folder_;
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

Bench run_bench(const BenchArguments& arguments) {
  Bench out{parent_of(arguments), measurements()};
  std::optional<Runs> runs;
  try {
    runs.emplace(out.dir);
  } catch (const RunError& e) {
    throw RunError(fmt::format("--dir {}", e.what()));
  }
  runs->record();
  const bool is_told =
      !arguments.no_progress && arguments.json != "-" && isatty(STDERR_FILENO) != 0;
  for (int round = 1; round <= arguments.repeat && !runs->is_stopped; ++round) {
    if (is_told)
      say(stderr, "round {} of {}: {}, {:g} s each\n", round, arguments.repeat,
          plural(out.all.size(), "measurement"), arguments.seconds);
    for (Measurement& m : out.all)
      if (!runs->is_stopped) runs->measure(m, arguments.seconds);
  }
  out.is_stopped = runs->is_stopped;
  return out;
}

std::string why_not(const Measurement& m) {
  return m.why_not.empty() ? "there was no time for it" : m.why_not;
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
  std::string out = fmt::format(
      "melflow {}, {}, {}\nfiles: {}\n\n{:{}}  {:>{}}  {:{}}  spread\n", kVersion,
      plural(static_cast<std::size_t>(available_cpus()), "core"), chosen_instruction_set(),
      one_line(bench.dir), "what", widest, "median", widest_median, "unit", widest_unit);
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
           {"instruction_set", chosen_instruction_set()},
           {"dir", bench.dir},
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
      file.emplace(arguments.json, "\"not_measured\"");
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
      "Runs pipelines that come with melflow (pipelines/bench), and takes from their reports how "
      "fast\nthe parts of one are: ceilings for a pipeline; `melflow explain` says what limits "
      "one. "
      "Run it\nwhile nothing else runs.\n"
      "\n"
      "Example:\n"
      "  melflow bench --dir /data --json=ceilings.json");
  return [arguments] { return bench(*arguments); };
}

}  // namespace melflow
