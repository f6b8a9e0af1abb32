#include "apps/report/report_text.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "apps/profile/figures.h"
#include "apps/report/format.h"
#include "apps/report/limits_text.h"
#include "apps/report/report_json.h"
#include "pipeline/base/text.h"
#include "stages/corpus/folder_scan.h"

namespace melflow {
namespace {

constexpr double kWorthALimit = 2;  // no limit is named for shorter runs [s]
constexpr double kShownStay = 0.1;  // time of a file in one stage [s]; --json has shorter ones

// Returns "26,476 rows"; with several outputs, the rows in each or, where these differ, in all.
std::string rows_text(const RunReport& r, const Plan& plan) {
  std::vector<std::size_t> of_outputs;
  for (std::size_t i = 0; i < r.stages.size() && i < plan.nodes.size(); ++i)
    if (plan.nodes[i].info->traits.kind == StageKind::sink && r.stages[i].rows_in > 0)
      of_outputs.push_back(rows_made(r.stages[i]));
  if (of_outputs.empty()) return {};
  if (of_outputs.size() == 1) return plural(of_outputs.front(), "row");
  const bool are_equal = std::equal(of_outputs.begin() + 1, of_outputs.end(), of_outputs.begin());
  return fmt::format("{} in {}{} outputs",
                     plural(are_equal ? of_outputs.front() : rows_of_run(r, plan), "row"),
                     are_equal ? "each of " : "", of_outputs.size());
}

// Returns " (163.84 MB, 443 MB/s)" for a run that first loaded its audio.
std::string loaded_text(const RunReport& r) {
  for (const StageReport& s : r.stages)
    for (const auto& [name, value] : s.summary)
      if (name == "preloaded_bytes") {
        const double bytes = std::stod(value.text());
        return fmt::format(" ({}, {} MB/s)", bytes_text(bytes),
                           megabytes_text(bytes / r.filling_seconds));
      }
  return {};
}

std::string accounts(const RunReport& r, const Plan& plan) {
  const Ledger::Counts& c = r.counts;
  std::string out = fmt::format("{}: {} ok, {} skipped, {} failed", plural(c.found, "file"),
                                count_text(c.ok), count_text(c.skipped), count_text(c.failed));
  if (c.not_run > 0) out += fmt::format(", {} not run", count_text(c.not_run));
  if (c.warned > 0) out += fmt::format(" ({} of the ok ones with a warning)", count_text(c.warned));
  if (r.kept > 0) out += fmt::format(" ({} of the ok ones kept as they were)", count_text(r.kept));
  const std::string filling = r.filling_seconds > 0
                                  ? fmt::format(", {} of it for loading the audio{}",
                                                seconds_text(r.filling_seconds), loaded_text(r))
                                  : "";
  const std::string rows = rows_text(r, plan);
  const double rate = run_figures(r).files_per_second;
  return out +
         fmt::format("\n{} in {}{} ({} files/s{}), {}\n", rows.empty() ? "done" : rows,
                     seconds_text(r.wall_seconds), filling, rate_text(rate),
                     rate > 0 ? fmt::format(", {} ms a file", milliseconds_text(1 / rate)) : "",
                     plural(static_cast<std::size_t>(r.workers), "worker"));
}

// Lists splits, one per line, only the first of many: corpora with many speakers may have many.
std::string splits_text(const Value& splits) {
  constexpr std::size_t kShown = 20;
  std::string out;
  for (std::size_t i = 0; i < std::min(splits.items().size(), kShown); ++i) {
    const auto text = [&](const char* key) { return splits.items()[i].find(key)->text(); };
    const auto count = [&](const char* key) {
      return static_cast<std::size_t>(std::stoull(text(key)));
    };
    const bool has_name = !splits.items()[i].find("name")->is_null();
    out += fmt::format("  {:<14} {:>14} {:>18}", has_name ? text("name") : "(no split)",
                       plural(count("files"), "file"), plural(count("rows"), "row"));
    if (splits.items()[i].find("seconds") != nullptr)
      out += fmt::format("   {} ({} files/s), writing {}", seconds_text(std::stod(text("seconds"))),
                         rate_text(std::stod(text("files_per_second"))),
                         seconds_text(std::stod(text("write_seconds"))));
    out += "\n";
  }
  if (splits.items().size() > kShown) out += fmt::format("  … {} in all\n", splits.items().size());
  return out;
}

// Counts in a stage's summary that are printed as "12 files excluded".
struct Count {
  std::string_view name, noun, rest;
};
constexpr Count kCounts[] = {{"rows", "row", ""},
                             {"computed_rows", "row", " new"},
                             {"files", "file", ""},
                             {"kept_files", "file", " as before"},
                             {"dropped_files", "file", " gone"},
                             {"changed_files", "file", " changed"},
                             {"added_files", "file", " new"},
                             {"left_out_files", "file", " omitted"},
                             {"decoded_by_ffmpeg", "recording", " decoded by FFmpeg"},
                             {"clipped_samples", "sample", " clipped at full scale"},
                             {"preloaded_files", "recording", " loaded"},
                             {"from_cache", "recording", " from the cache"},
                             {"added", "recording", " added to the cache"},
                             {"trimmed_files", "recording", " trimmed"},
                             {"loaded_ahead", "file", " read ahead"},
                             {"dropped_tails", "recording", " with a tail that fills no window"}};

// Describes files that include does not name.
std::string not_taken_text(const Value& counts) {
  NotTaken not_taken;
  for (const Value::Entry& e : counts.entries())
    not_taken.add(e.key, static_cast<std::size_t>(std::stoull(e.value.text())));
  return "not named by include: " + not_taken.text();
}

// Returns " (a.wav, b.wav)" with the names of counted files.
std::string names_text(const Value& names, const Value& count) {
  std::vector<std::string> all;
  for (const Value& name : names.items()) all.push_back(name.text());
  return fmt::format(" ({})", first_names(all, std::stoull(count.text())));
}

// Returns an entry of a summary as it is printed.
std::string told(const std::string& name, const Value& value) {
  const std::string text = value.is_scalar() ? value.text() : to_json(value);
  double number = 0;
  const bool is_number = detail::parse_number(value, number).empty();
  if (name == "complete") return "not complete";
  if (name == "not_taken") return not_taken_text(value);
  if (name == "bytes" && is_number) return bytes_text(number);
  for (const auto& [key, rest] :
       {std::pair("preloaded_bytes", " in memory"),
        std::pair("expected_bytes", " expected by headers"),
        std::pair("from_cache_bytes", " mapped, 0 copied"), std::pair("added_bytes", " written")})
    if (name == key && is_number) return bytes_text(number) + rest;
  if (name == "overflow") return "not all of them: memory.host is full";
  if (name == "packing" && value.find("seconds") != nullptr)
    return fmt::format("compressed in {} s of processor time", value.find("seconds")->text());
  if (name == "sync_seconds") return text + " s until all was on disk";
  if (name == "trimmed_seconds") return text + " s of silence cut off";
  if (name == "dropped_seconds") return text + " s of tails in no row (tail: drop)";
  for (const Count& c : kCounts)
    if (c.name == name && is_number)
      return plural(static_cast<std::size_t>(number), std::string(c.noun)) + std::string(c.rest);
  return fmt::format("{} {}", name, text);
}

// Returns "features.h5: 12 rows, shape [12, 80], ..." from the stage's summary.
std::string output(const StageReport& s) {
  std::string path = s.name, splits;
  std::vector<std::string> all;
  const std::pair<std::string, Value>* before = nullptr;
  for (const auto& entry : s.summary) {
    const auto& [name, value] = entry;
    if (name == "lock" || name == "calls") continue;  // explain says what they mean
    if (name == "splits")
      splits = splits_text(value);
    else if (name == "path")
      path = value.text();
    else if (before != nullptr && before->first == name + "_files")
      all.back() += names_text(value, before->second);
    else if (name == "overflow" ? value.text() == "true"
                                : name != "complete" || value.text() != "true")
      all.push_back(told(name, value));
    before = &entry;
  }
  return fmt::format("{}: {}\n{}", one_line(path),
                     one_line(fmt::format("{}", fmt::join(all, ", "))), splits);
}

std::string percent(double part, double whole) {
  return whole <= 0 ? "" : fmt::format("{:.0f}%", 100 * part / whole);
}

using Row = std::vector<std::string>;

std::string stages_table(const RunReport& r) {
  std::vector<Row> rows{{"node", "stage", "at once", "items", "MB", "busy", "input", "output",
                         "core", "idle", "queue", "mean", "max"}};
  for (const StageReport& s : r.stages) {
    const StageTime& t = s.time;
    const double total = t.total();
    const bool gives = s.items_out > 0;
    Row row{s.name,
            s.stage,
            fmt::format("{}/{}", s.peak_concurrency, s.concurrency),
            count_text(gives ? s.items_out : s.items_in),
            megabytes_text(static_cast<double>(gives ? s.bytes_out : s.bytes_in)),
            percent(t.busy, total),
            percent(t.waiting_input, total),
            percent(t.blocked_output, total),
            percent(t.waiting_core, total),
            percent(t.idle_after_end, total)};
    const auto edge = std::find_if(r.edges.begin(), r.edges.end(),
                                   [&](const EdgeReport& e) { return e.to == s.name; });
    if (edge != r.edges.end()) {
      row.push_back(std::to_string(edge->capacity));
      row.push_back(fmt::format("{:.1f}", edge->mean_depth));
      row.push_back(std::to_string(edge->max_depth));
    }
    rows.push_back(std::move(row));
  }
  return aligned(rows, 2) +
         "  at once: most/allowed; busy to idle: where their time went (waiting for input,\n"
         "  for room in the output, for a core, idle after the end); queue: the places before the\n"
         "  node, how many were taken\n";
}

// Returns an empty text where a figure has no meaning.
std::string rate_or_nothing(double per_second) {
  return per_second > 0 ? rate_text(per_second) : "";
}
std::string megabytes_or_nothing(double per_second) {
  return per_second > 0 ? megabytes_text(per_second) : "";
}

std::string speed_table(const RunReport& r) {
  std::vector<Row> rows{{"node", "stage", "files/s", "MB/s in", "MB/s out", "rows/s", "used",
                         "CPU s", "p50 ms", "p90", "p99", "longest"}};
  for (const StageReport& s : r.stages) {
    const StageFigures f = stage_figures(s, r);
    Row row{s.name,
            s.stage,
            rate_or_nothing(f.files_per_second),
            megabytes_or_nothing(f.bytes_in_per_second),
            megabytes_or_nothing(f.bytes_out_per_second),
            rate_or_nothing(f.rows_per_second),
            fmt::format("{:.2f}", f.used),
            fmt::format("{:.2f}", s.cpu_seconds)};
    if (s.service.calls > 0)
      for (const double seconds : {s.service.p50, s.service.p90, s.service.p99, s.service.greatest})
        row.push_back(milliseconds_text(seconds));
    rows.push_back(std::move(row));
  }
  return aligned(rows, 2) +
         "  each per second of the time in which the stages worked; used: how many were at work "
         "on\n"
         "  average; CPU s: processor time; p50 to longest: how long a call took (half of them at\n"
         "  most p50; small files that travel together share their time)\n";
}

std::string machine(const RunReport& r) {
  const RunFigures f = run_figures(r);
  const ProcessUsage& u = r.usage;
  const auto n = [](std::int64_t count) {
    return count_text(static_cast<std::size_t>(std::max<std::int64_t>(count, 0)));
  };
  std::string out = fmt::format("time: {} to start, {} in the stages, {} to finish",
                                seconds_text(r.start_seconds), seconds_text(r.graph_seconds),
                                seconds_text(r.finish_seconds));
  if (r.first_row_seconds > 0)
    out += fmt::format("; first rows taken after {}", seconds_text(r.first_row_seconds));
  out += fmt::format(
      "\nprocessor: {:.1f} of {} used ({} in the program, {} in the system); threads waited {} "
      "times,\n  had to leave their core {} times; page faults: {} from the disk, {} others\n",
      f.cores_used, plural(static_cast<std::size_t>(r.cores), "core"), seconds_text(u.user_seconds),
      seconds_text(u.system_seconds), n(u.voluntary_switches), n(u.involuntary_switches),
      n(u.major_faults), n(u.minor_faults));
  if (r.bytes_read == 0 || !u.has_disk) return out;
  return out + fmt::format("read: {}, {:.0f}% of it from the page cache; from the disk {} MB/s\n",
                           bytes_text(static_cast<double>(r.bytes_read)), 100 * f.page_cache_share,
                           megabytes_text(f.disk_read_per_second));
}

std::string slowest(const RunReport& r, bool verbose) {
  if (r.slowest.empty() || (!verbose && r.slowest.front().visit.seconds < kShownStay)) return {};
  std::string out = "longest in one stage:\n";
  for (const SlowFile& f : r.slowest)
    out += fmt::format(
        "  {} in {}: {}{}\n", seconds_text(f.visit.seconds), f.stage,
        f.visit.files > 1 ? fmt::format("{} files together, from ", count_text(f.visit.files)) : "",
        excerpt(f.name, kLongestPath));
  return out;
}

std::string starts(const RunReport& r) {
  std::string out;
  for (const EdgeReport& e : r.edges)
    if (e.start_depth > 0)
      out += fmt::format("{} began with {} in its queue, {} after the first (start_at)\n", e.to,
                         e.start_depth, seconds_text(e.start_wait_seconds));
  return out;
}

std::string memory(const RunReport& r) {
  std::string out = fmt::format(
      "memory: reserved at most {} of {} (what the files under way can need; {} of it "
      "the list of files); resident at most {}",
      mebibytes_text(r.memory_peak), mebibytes_text(r.memory_budget),
      mebibytes_text(r.memory_index), mebibytes_text(r.resident_peak));
  if (r.memory_wait_seconds >= 0.05)
    out += fmt::format("; reading waited {} for memory", seconds_text(r.memory_wait_seconds));
  const auto holder =
      std::max_element(r.memory_holders.begin(), r.memory_holders.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  if (r.memory_wait_seconds >= 0.05 && holder != r.memory_holders.end())
    out += fmt::format(", {:.0f} % of which was held by files in {} or its queue",
                       100 * holder->second, holder->first);
  out += "\n";
  if (r.latency.calls > 0)
    out += fmt::format(
        "from its admission to its last row a file took {} (median), {} (99 %), {} at most\n",
        seconds_text(r.latency.p50), seconds_text(r.latency.p99), seconds_text(r.latency.greatest));
  return out;
}

}  // namespace

std::string accounts_text(const RunReport& report, const Plan& plan) {
  std::string out = accounts(report, plan);
  for (const StageReport& s : report.stages)
    if (!s.summary.empty()) out += output(s);
  return out;
}

std::string tables_text(const RunReport& report, bool verbose) {
  const bool is_computed =
      std::any_of(report.stages.begin(), report.stages.end(),
                  [](const StageReport& s) { return s.items_in > 0 || s.items_out > 0; });
  if (report.kept > 0 && !is_computed) return "no file is new or changed: nothing was computed\n";
  std::string out = stages_table(report) + "\n" + speed_table(report) + "\n" + starts(report) +
                    memory(report) + machine(report) + slowest(report, verbose);
  if (verbose || report.wall_seconds > kWorthALimit)
    out += "\n" + limits_text(find_limits(report), report);
  return out;
}

std::string warnings_text(const RunReport& report, const Plan& plan) {
  std::string out;
  for (std::size_t i = plan.warnings.size(); i < report.warnings.size(); ++i)
    out += "warning: " + excerpt(report.warnings[i], kLongestReason) + "\n";
  return out;
}

}  // namespace melflow
