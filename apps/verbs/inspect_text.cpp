#include "apps/verbs/inspect_text.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "apps/report/format.h"
#include "apps/verbs/feature_settings.h"
#include "apps/verbs/output_check.h"
#include "pipeline/base/text.h"
#include "stages/output/formats/kaldi_ark.h"
#include "stages/output/formats/npy_reader.h"
#include "stages/output/formats/stored_json.h"

namespace melflow {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kShownLabels = 20;
constexpr std::size_t kLongestSettings = 200;  // [bytes]

struct Group {
  std::size_t files = 0;
  std::int64_t rows = 0;
  double seconds = 0;
};

// Returns "64 mel, 20 mfcc", columns by the node that made them; "" for columns of one kind.
std::string columns_of(const FeatureFile& f) {
  std::vector<std::string> out;
  try {
    for (const auto& group : parse_settings_or_null(f.text("column_groups")))
      out.push_back(fmt::format("{} {}", group.at("columns").get<int>(),
                                group.at("node").get<std::string>()));
  } catch (const StoredJson::exception&) {
    return {};  // the file is damaged
  }
  return fmt::format("{}", fmt::join(out, ", "));
}

// Counts by label or split. -1, for files without one, comes first and only if there are any. A
// file with several labels counts for each of them.
std::map<int, Group> group_by(
    const FeatureFile& f, const std::vector<std::string>& names,
    const std::function<std::vector<int>(const FeatureFile::Entry&)>& keys) {
  std::map<int, Group> out;
  for (int i = 0; i < static_cast<int>(names.size()); ++i) out[i];
  for (const FeatureFile::Entry& e : f.files()) {
    for (const int key : keys(e)) {
      Group& g = out[key];
      ++g.files;
      g.rows += e.count;
      g.seconds += e.duration;
    }
  }
  return out;
}

std::map<int, Group> by_label(const FeatureFile& f) {
  return group_by(f, f.labels(), [](const FeatureFile::Entry& e) {
    return e.labels.empty() ? std::vector<int>{e.label}
                            : std::vector<int>(e.labels.begin(), e.labels.end());
  });
}
std::map<int, Group> by_split(const FeatureFile& f) {
  return group_by(f, f.splits(),
                  [](const FeatureFile::Entry& e) { return std::vector<int>{e.split}; });
}

std::string path_text(const std::string& path) { return excerpt(path, kLongestPath); }

std::string name_of(const std::vector<std::string>& names, int index) {
  const auto i = static_cast<std::size_t>(index);
  return index >= 0 && i < names.size() ? names[i] : "(none)";
}

double total_seconds(const FeatureFile& f) {
  double seconds = 0;
  for (const FeatureFile::Entry& e : f.files()) seconds += e.duration;
  return seconds;
}

std::string sample_rates(const FeatureFile& f) {
  std::set<int> rates;
  for (const FeatureFile::Entry& e : f.files())
    if (e.sample_rate > 0) rates.insert(e.sample_rate);
  if (rates.size() > 6) return fmt::format("{} to {} Hz", *rates.begin(), *rates.rbegin());
  return rates.empty() ? "unknown" : fmt::format("{} Hz", fmt::join(rates, ", "));
}

std::string groups_text(const char* title, const std::map<int, Group>& groups,
                        const std::vector<std::string>& names) {
  std::string out;
  std::size_t shown = 0;
  for (const auto& [index, g] : groups) {
    if (shown == kShownLabels) {
      out += fmt::format("{:<14}… {} in all\n", "", groups.size());
      break;
    }
    out += fmt::format("{:<14}{:<16} {:>14} {:>18} {:>12}\n", shown++ == 0 ? title : "",
                       excerpt(name_of(names, index)), plural(g.files, "file"),
                       plural(static_cast<std::size_t>(g.rows), "row"), seconds_text(g.seconds));
  }
  return out;
}

// Returns one line for each stage of the feature settings.
std::string settings_text(const FeatureFile& f) {
  const Json features = parse_settings_or_null(f.text("feature_settings"));
  std::string out;
  if (!features.is_array()) return out;
  const char* title = "settings";
  for (const Json& options : features) {
    if (!options.is_object()) continue;
    std::string line;
    for (const auto& [key, value] : options.items())
      if (key != "stage" && !value.is_null())
        line += fmt::format(" {}={}", excerpt(key), excerpt(setting_text(value), kLongestSettings));
    const auto stage = options.find("stage");
    std::string name = stage == options.end() ? "" : excerpt(setting_text(*stage));
    // Settings of features name hdf5_write for every kind of file.
    if (name == "hdf5_write" && f.path().ends_with(kArkEnding)) name = "kaldi_write";
    if (name == "hdf5_write" && is_npy(f.path())) name = "npy_write";
    out += fmt::format("{:<14}{}:{}\n", title, name, line);
    title = "";
  }
  return out;
}

std::string files_text(const FeatureFile& f) {
  const auto split = [&](const std::string& text) {
    return f.splits().empty() ? "" : fmt::format("{:<8} ", text);
  };
  std::string out =
      fmt::format("\n{:>8} {:>12} {:>10} {:>9} {:>10}  {}{:<12} {}\n", "status", "first row",
                  "rows", "Hz", "seconds", split("split"), "label", "path");
  for (const FeatureFile::Entry& e : f.files())
    out += fmt::format("{:>8} {:>12} {:>10} {:>9} {:>10.3f}  {}{:<12} {}\n", to_text(e.status),
                       e.offset, e.count, e.sample_rate, e.duration,
                       split(excerpt(name_of(f.splits(), e.split))),
                       excerpt(name_of(f.labels(), e.label)), path_text(e.path));
  return out;
}

std::string warnings_text(const FeatureFile& f) {
  std::string out;
  for (std::size_t i = 0; i < std::min(kShownRemarks, f.warnings().size()); ++i)
    out += fmt::format("{:<14}{}\n", "warning", excerpt(f.warnings()[i], kLongestReason));
  if (f.warnings().size() > kShownRemarks)
    out += fmt::format("{:<14}… and {} more (all with --json)\n", "",
                       count_text(f.warnings().size() - kShownRemarks));
  return out;
}

// Returns the lowest and highest frequency; the energy column has none.
std::pair<double, double> frequency_range(const std::vector<double>& hz) {
  std::pair<double, double> range{std::numeric_limits<double>::max(), 0};
  for (const double f : hz) {
    if (std::isnan(f)) continue;
    range = {std::min(range.first, f), std::max(range.second, f)};
  }
  return range;
}

Json groups_json(const std::map<int, Group>& groups, const std::vector<std::string>& names) {
  Json out = Json::array();
  for (const auto& [index, g] : groups)
    out.push_back({{"name", index < 0 ? Json() : Json(name_of(names, index))},
                   {"files", g.files},
                   {"rows", g.rows},
                   {"seconds", g.seconds}});
  return out;
}

Json files_json(const FeatureFile& f) {
  Json out = Json::array();
  for (const FeatureFile::Entry& e : f.files()) {
    out.push_back({{"path", e.path},
                   {"offset", e.offset},
                   {"count", e.count},
                   {"label", e.label < 0 ? Json() : Json(name_of(f.labels(), e.label))},
                   {"split", e.split < 0 ? Json() : Json(name_of(f.splits(), e.split))},
                   {"sample_rate", e.sample_rate},
                   {"duration", e.duration},
                   {"status", to_text(e.status)}});
    for (const std::int32_t l : e.labels) out.back()["labels"].push_back(name_of(f.labels(), l));
    if (!e.targets.empty()) out.back()["targets"] = e.targets;  // null without targets
    for (std::size_t c = 0; c < e.texts.size(); ++c)
      out.back()["columns"][f.columns()[c]] = e.texts[c];
  }
  return out;
}

}  // namespace

std::string listed_text(const FeatureFile& f, const char* status) {
  std::string out;
  for (const FeatureFile::Remark& r : f.remarks())
    if (place_of(to_text(r.status)) == place_of(status))
      out += fmt::format("{}\t{}: {}\n", path_text(r.path), one_line(r.stage), one_line(r.reason));
  return out;
}

std::string stored_remarks_text(const FeatureFile& f, std::size_t most, const char* all) {
  if (f.remarks().empty()) return {};
  const std::size_t shown = std::min(most, f.remarks().size());
  std::vector<FeatureFile::Remark> remarks = f.remarks();
  std::stable_sort(remarks.begin(), remarks.end(), [](const auto& a, const auto& b) {
    return place_of(to_text(a.status)) < place_of(to_text(b.status));
  });
  std::string out = "\nfailed, ok with a warning, or skipped:\n";
  for (std::size_t i = 0; i < shown; ++i) {
    const FeatureFile::Remark& r = remarks[i];
    out += fmt::format("  {}: {}\n", path_text(r.path),
                       remark_text(r.stage, to_text(r.status), r.reason));
  }
  if (f.remarks().size() > shown)
    out +=
        fmt::format("  … and {} more (all with {})\n", count_text(f.remarks().size() - shown), all);
  return out;
}

std::string all_remarks_text(const FeatureFile& f) {
  std::string out;
  for (const FeatureFile::Remark& r : f.remarks())
    out += fmt::format("{}\t{}\t{}: {}\n", path_text(r.path), to_text(r.status), one_line(r.stage),
                       one_line(r.reason));
  return out;
}

std::string output_text(const FeatureFile& f, bool with_files) {
  const auto number = [&](const char* name) { return f.integer(name).value_or(0); };
  const auto count = [&](const char* name) {
    return count_text(static_cast<std::size_t>(number(name)));
  };
  std::string out = fmt::format("{:<14}{}, {}{}\n", "file", path_text(f.path()),
                                bytes_text(static_cast<double>(f.file_bytes())),
                                f.complete() ? ", complete" : ", NOT COMPLETE");
  out += fmt::format("{:<14}[{}] {}, {}\n", excerpt(f.rows_name()), fmt::join(f.shape(), ", "),
                     f.dtype(), excerpt(f.unit()));
  if (const std::string columns = columns_of(f); !columns.empty()) {
    out += fmt::format("{:<14}{}\n", "columns", excerpt(columns, 4096));
  } else if (!f.band_hz().empty()) {
    const auto [low, high] = frequency_range(f.band_hz());
    out += fmt::format("{:<14}{}, centres {:.0f} to {:.0f} Hz\n", "bands", f.bands(), low, high);
  }
  if (!f.text("preset").empty())
    out += fmt::format("{:<14}{}\n", "preset", excerpt(f.text("preset")));
  if (!f.has_samples())
    out += fmt::format("{:<14}{} Hz, n_fft {}, hop {}\n", "frames", number("sample_rate"),
                       number("n_fft"), number("hop_length"));
  else if (number("sample_rate") > 0)
    out += fmt::format("{:<14}{} Hz\n", "samples", number("sample_rate"));
  out += fmt::format("{:<14}{} found: {} ok, {} skipped, {} failed", "files", count("found"),
                     count("ok"), count("skipped"), count("failed"));
  if (number("not_run") > 0) out += ", " + count("not_run") + " not run";
  const auto warned = std::count_if(
      f.remarks().begin(), f.remarks().end(),
      [](const FeatureFile::Remark& r) { return place_of(to_text(r.status)) == place_of("ok"); });
  if (warned > 0)
    out += fmt::format(" ({} of the ok ones with a warning)",
                       count_text(static_cast<std::size_t>(warned)));
  out += "\n";
  out += fmt::format("{:<14}{}, at {}\n", "audio", seconds_text(total_seconds(f)), sample_rates(f));
  if (!f.labels().empty()) out += groups_text("labels", by_label(f), f.labels());
  if (!f.splits().empty()) out += groups_text("splits", by_split(f), f.splits());
  if (!f.targets().empty())
    out += fmt::format("{:<14}{}\n", "targets",
                       excerpt(fmt::format("{}", fmt::join(f.targets(), ", ")), kLongestReason));
  if (!f.columns().empty())
    out += fmt::format("{:<14}{}\n", "columns",
                       excerpt(fmt::format("{}", fmt::join(f.columns(), ", ")), kLongestReason));
  out +=
      fmt::format("{:<14}melflow {} ({}, {})\n", "written by", excerpt(f.text("melflow_version")),
                  excerpt(f.text("backend")), excerpt(f.text("instruction_set")));
  out += fmt::format("{:<14}{}\n", "fingerprint", excerpt(f.text("feature_fingerprint")));
  out += settings_text(f);
  out += warnings_text(f);
  for (const std::string& misfit : misfits(f))
    out += fmt::format("{:<14}{}\n", "DOES NOT FIT", excerpt(misfit, kLongestReason));
  out += stored_remarks_text(f, with_files ? f.remarks().size() : kShownRemarks, "--remarks");
  if (with_files) out += files_text(f);
  return out;
}

Json output_json(const FeatureFile& f, bool with_files) {
  Json out{{"path", f.path()},         {"bytes", f.file_bytes()}, {"complete", f.complete()},
           {"dataset", f.rows_name()}, {"rows", f.rows()},        {"shape", f.shape()},
           {"dtype", f.dtype()},       {"unit", f.unit()},        {"band_hz", f.band_hz()}};
  for (const char* name : {"sample_rate", "n_fft", "hop_length", "format"})
    out[name] = f.integer(name) ? Json(*f.integer(name)) : Json();
  for (const char* name : {"found", "ok", "skipped", "failed", "not_run"})
    out["counts"][name] = f.integer(name).value_or(0);
  out["seconds"] = total_seconds(f);
  out["root"] = f.root();
  for (const CorpusSource& s : f.sources())
    out["sources"].push_back({{"name", s.name}, {"root", s.root}});
  out["labels"] = groups_json(by_label(f), f.labels());
  out["splits"] = groups_json(by_split(f), f.splits());
  out["targets"] = f.targets();
  out["columns"] = f.columns();
  for (const char* name : {"melflow_version", "backend", "instruction_set", "transform",
                           "feature_fingerprint", "preset"})
    out[name] = f.text(name);
  for (const char* name : {"feature_settings", "config"})
    out[name] = parse_settings_or_null(f.text(name));
  out["warnings"] = f.warnings();
  out["misfits"] = misfits(f);
  out["remarks"] = Json::array();
  for (const FeatureFile::Remark& r : f.remarks())
    out["remarks"].push_back({{"index", r.file},
                              {"path", r.path},
                              {"status", to_text(r.status)},
                              {"stage", r.stage},
                              {"reason", r.reason}});
  if (with_files) out["files"] = files_json(f);
  return out;
}

}  // namespace melflow
