// The decisions that the figures of a GPU check support, each with its rule:
//
//   path      fused where it is at least as fast as cuFFT
//   operands  16-bit operands stay where some kernel gains kGain by them; 16-bit rows where the
//             whole way gains as much
//   slots     the fewest that come within kNear of the best, in the geometry that needs most
//   graphs    on where recordings gain kGain, in large batches or small ones
//   auto      seconds = start + files * each for either backend, from the smallest and the largest
//             job; the device is chosen from where its line is lower
//   workers   where the processor alone catches up with the device; and how the graph scales

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <optional>
#include <stdexcept>

#include "bench.h"
#include "stages/device/slot_load.h"
#include "stages/features/mel/mel_plan.h"

namespace melflow::bench {
namespace {

constexpr double kGain = 0.05, kNear = 0.97;
constexpr double kWantedWindows = 0.95e9, kWantedFiles = 600e3;  // a second

using Lines = std::vector<Json>;

// A row of the table; without figures the question stays open.
struct Decision {
  std::string question, figures, answer;
};

Lines of_kind(const Lines& all, const char* kind) {
  Lines out;
  for (const Json& line : all)
    if (line.value("kind", "") == kind && !line.contains("error")) out.push_back(line);
  return out;
}

void add(std::string& list, const std::string& entry) {
  list += (list.empty() ? "" : "; ") + entry;
}

// Returns the name of the geometry: "two-stage" for "two-stage: 159 windows of ...".
std::string geometry_of(const Json& line) {
  const std::string name = line["geometry"];
  return name.substr(0, name.find(':'));
}

// Windows per second, by geometry and case.
using Rates = std::map<std::string, std::map<std::string, double>>;

Rates kernel_rates(const Lines& all) {
  Rates out;
  for (const Json& line : of_kind(all, "kernel"))
    out[geometry_of(line)][line["case"]] = line["windows_per_second"];
  return out;
}

Decision path(const Rates& rates) {
  Decision out{"fused or cuFFT", "", ""};
  std::string slower;
  for (const auto& [geometry, cases] : rates) {
    const auto fused = cases.find("fused, fp32"), cufft = cases.find("cuFFT");
    if (fused == cases.end() || cufft == cases.end()) continue;
    add(out.figures, fmt::format("{}: {:.2f} times", geometry, fused->second / cufft->second));
    if (fused->second < cufft->second) add(slower, geometry);
  }
  out.answer = slower.empty() ? "fused" : "cuFFT for " + slower;
  return out;
}

Decision operands(const Rates& rates) {
  Decision out{"operands of 16 bits", "", ""};
  double best = 0;
  for (const auto& [geometry, cases] : rates) {
    const auto usual = cases.find("fused, fp32");
    if (usual == cases.end()) continue;
    for (const char* name : {"fused, fp16", "fused, bf16"}) {
      const auto one = cases.find(name);
      if (one == cases.end()) continue;
      const double gain = one->second / usual->second - 1;
      add(out.figures, fmt::format("{}, {}: {:+.1f} %", geometry, name + 7, 100 * gain));
      best = std::max(best, gain);
    }
  }
  out.answer = best >= kGain ? "stay" : "go: no gain";
  return out;
}

double link_rate(const Json& slots) { return slots["link"]["files_per_second"]; }

// Compares `changed` with `usual` settings of slots, everything else being equal.
Decision slots_gain(const Lines& all, std::string question, const std::string& key,
                    const Json& changed, const Json& usual, std::string yes, std::string no) {
  Decision out{std::move(question), "", ""};
  double best = 0;
  const Lines slots = of_kind(all, "slots");
  for (const Json& a : slots) {
    if (a[key] != changed) continue;
    for (const Json& b : slots) {
      const bool is_pair =
          b[key] == usual &&
          std::ranges::all_of(
              std::vector<std::string>{"geometry", "slots", "small", "rows", "graphs"},
              [&](const std::string& k) { return k == key || a[k] == b[k]; });
      if (!is_pair) continue;
      const double gain = link_rate(a) / link_rate(b) - 1;
      add(out.figures, fmt::format("{}{}: {:+.1f} %", geometry_of(a),
                                   a["small"].get<bool>() ? ", small batches" : "", 100 * gain));
      best = std::max(best, gain);
    }
  }
  out.answer = best >= kGain ? std::move(yes) : std::move(no);
  return out;
}

Decision slots(const Lines& all) {
  Decision out{"slots", "", ""};
  std::map<std::string, std::map<int, double>> rates;
  for (const Json& line : of_kind(all, "slots"))
    if (!line["small"] && line["graphs"] && line["rows"] == "float32")
      rates[geometry_of(line)][line["slots"]] = link_rate(line);
  int most = 0;
  for (const auto& [geometry, by_slots] : rates) {
    double best = 0;
    for (const auto& [count, rate] : by_slots) best = std::max(best, rate);
    const auto enough = std::ranges::find_if(
        by_slots, [best](const auto& entry) { return entry.second >= kNear * best; });
    add(out.figures,
        fmt::format("{}: {} of {} files/s", geometry, enough->first, with_commas(best)));
    most = std::max(most, enough->first);
  }
  out.answer = std::to_string(most);
  return out;
}

// Seconds of the two-stage job by backend, then by number of files or workers.
using Seconds = std::map<std::string, std::map<int, double>>;

Seconds job_seconds(const Lines& all, const char* series, const char* by,
                    const char* which = "median_seconds") {
  Seconds out;
  for (const Json& line : of_kind(all, "job"))
    if (line["job"] == "two-stage" && line["series"] == series && line[which].is_number())
      out[line["backend"]][line[by]] = line[which];
  return out;
}

// The estimate that `auto` itself makes (stages/device/slot_load.h).
double seconds_of_rows(double files, int workers) {
  for (const Geometry& g : geometries())
    if (geometry_of({{"geometry", g.name}}) == "two-stage")
      return device_gain(MelPlan(g.options), {}, files, files * static_cast<double>(g.samples))
                 .rows /
             workers;
  return 0;
}

Decision automatic(const Lines& all) {
  Decision out{"backend: auto", "", ""};
  struct Line {
    double start, each;
    [[nodiscard]] double at(double files) const { return start + files * each; }
  };
  std::map<std::string, Line> fits;
  int workers = 1;
  for (const Json& line : of_kind(all, "job"))
    if (line["series"] == "files") workers = line["workers"];
  for (const auto& [backend, by_files] : job_seconds(all, "files", "files")) {
    if (by_files.size() < 2) continue;
    const auto [n, a] = *by_files.begin();
    const auto [m, b] = *by_files.rbegin();
    const double each = (b - a) / (m - n);
    fits[backend] = {a - n * each, each};
    add(out.figures,
        fmt::format("{}: {:.2f} s and {:.1f} µs a file", backend, a - n * each, 1e6 * each));
  }
  if (!fits.contains("cpu") || !fits.contains("cuda")) return {out.question, "", ""};
  const Line cpu = fits["cpu"], cuda = fits["cuda"];
  const double files = (cuda.start - cpu.start) / (cpu.each - cuda.each);
  if (cuda.each >= cpu.each)
    out.answer = cuda.start < cpu.start && files > 0
                     ? fmt::format("cuda up to {} files only", with_commas(files))
                     : "cpu: the device is no faster a file";
  else if (files <= 0)
    out.answer = "cuda for any job, auto_from: 0";
  else
    out.answer = fmt::format("cuda from {} files on, auto_from: {:.2g}", with_commas(files),
                             seconds_of_rows(files, workers));
  return out;
}

Decision workers(const Lines& all) {
  Decision out{"workers", "", ""};
  Seconds seconds = job_seconds(all, "workers", "workers");
  int ahead = 0;
  for (const auto& [count, cpu] : seconds["cpu"]) {
    if (!seconds["cuda"].contains(count)) continue;
    const double cuda = seconds["cuda"][count];
    add(out.figures, fmt::format("{}: cpu {:.2f} s, cuda {:.2f} s", count, cpu, cuda));
    if (cuda < cpu) ahead = count;
  }
  out.answer = ahead == 0 ? "the processor is ahead with any number"
                          : fmt::format("the device is ahead up to {}", ahead);
  return out;
}

// Returns the speed-up from one worker to the most, without the program's start and end.
Decision scaling(const Lines& all) {
  Decision out{"scaling", "", ""};
  for (const auto& [backend, by_workers] :
       job_seconds(all, "workers", "workers", "graph_seconds")) {
    if (!by_workers.contains(1)) continue;
    std::string seconds;
    for (const auto& [count, one] : by_workers)
      add(seconds, fmt::format("{}: {:.2f} s", count, one));
    add(out.figures, fmt::format("{} {}", backend, seconds));
    add(out.answer,
        fmt::format("{} {:.1f} times with {}", backend,
                    by_workers.at(1) / by_workers.rbegin()->second, by_workers.rbegin()->first));
  }
  return out;
}

Decision wanted(std::string question, double rate, double goal) {
  return {std::move(question), rate > 0 ? with_commas(rate) : "",
          rate >= goal ? "reached"
                       : fmt::format("{:.0f} % of {}", 100 * rate / goal, with_commas(goal))};
}

Lines read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error(path + ": cannot be read");
  Lines out;
  for (std::string line; std::getline(in, line);) {
    // Ignores a line that was cut off by an interruption.
    Json value = Json::parse(line, nullptr, false);
    if (value.is_object()) out.push_back(std::move(value));
  }
  return out;
}

}  // namespace

std::string decisions(const std::string& path_of_lines) {
  const Lines all = read(path_of_lines);
  const Rates rates = kernel_rates(all);
  const std::string first = geometry_of({{"geometry", geometries().front().name}});
  double windows = 0, files = 0;
  for (const auto& [geometry, cases] : rates)
    if (geometry == first)
      if (const auto fused = cases.find("fused, fp32"); fused != cases.end())
        windows = fused->second;
  for (const Json& line : of_kind(all, "slots"))
    if (geometry_of(line) == first && line["rows"] == "float32")
      files = std::max(files, link_rate(line));
  const Decision table[] = {
      path(rates),
      operands(rates),
      slots_gain(all, "rows of 16 bits", "rows", "float16", "float32", "worth it",
                 "no gain on the way"),
      slots(all),
      slots_gain(all, "graphs", "graphs", true, false, "on", "no gain: off would do"),
      automatic(all),
      workers(all),
      scaling(all),
      wanted("fused kernel, windows of 512/s", windows, kWantedWindows),
      wanted("RAM to GPU to RAM, files/s", files, kWantedFiles),
  };
  std::string out = "| question | figures | answer |\n|---|---|---|\n";
  for (const Decision& d : table)
    out += fmt::format("| {} | {} | {} |\n", d.question, d.figures.empty() ? "none" : d.figures,
                       d.figures.empty() ? "open" : d.answer);
  return out;
}

}  // namespace melflow::bench
