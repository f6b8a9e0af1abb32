#include "apps/check/document.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "apps/check/clips.h"
#include "apps/csv_cell.h"
#include "apps/duplicates/document.h"
#include "apps/profile/figures.h"
#include "apps/report/format.h"
#include "apps/report/page.h"
#include "apps/report/report_json.h"
#include "apps/report/verdicts_text.h"
#include "config/yaml_text.h"
#include "pipeline/base/near_names.h"
#include "pipeline/base/problem.h"
#include "pipeline/base/text.h"
#include "pipeline/base/version.h"

namespace melflow {
namespace {

using Json = nlohmann::ordered_json;
using Status = FeatureData::Status;

constexpr std::size_t kMostGroups = 200, kBins = 32, kMostRemarks = 200;
constexpr std::size_t kMostSaid = 400;                  // [bytes] of a text
constexpr double kPlacedSeconds = 2, kClipSeconds = 4;  // of a clip
constexpr double kLowest = -120;                        // [dB] of a level that is 0

// In 6 digits; null where there is none.
Json number(double value) {
  if (!std::isfinite(value)) return nullptr;
  return std::stod(fmt::format("{:.6g}", value));
}

// As it is drawn: levels in dB, shares in percent.
double shown(MeasureUnit unit, double value) {
  if (unit == MeasureUnit::share) return 100 * value;
  if (unit != MeasureUnit::level) return value;
  return value > 0 ? std::max(kLowest, 20 * std::log10(value)) : kLowest;
}
const char* shown_unit(MeasureUnit unit) {
  return unit == MeasureUnit::share ? "%" : unit == MeasureUnit::level ? "dB" : to_text(unit);
}

bool is_place(const MeasureInfo& m) { return std::string_view(m.name).ends_with("_at"); }

std::vector<double> values_of(const FeatureData& output, Measure which) {
  std::vector<double> out;
  for (const FeatureData::Entry& e : output.files)
    if (e.status == Status::ok && e.measured != nullptr && !std::isnan((*e.measured)[which]))
      out.push_back((*e.measured)[which]);
  return out;
}

// The value below which `share` of them are.
double quantile(const std::vector<double>& sorted, double share) {
  return sorted[static_cast<std::size_t>(share * static_cast<double>(sorted.size() - 1) + 0.5)];
}

Json measures_json(const FeatureData& output) {
  Json out = Json::object();
  for (const MeasureInfo& m : measures()) {
    if (is_place(m)) continue;
    std::vector<double> values = values_of(output, measure_of(m));
    if (values.empty()) continue;
    for (double& v : values) v = shown(m.unit, v);
    std::sort(values.begin(), values.end());
    Json& one = out[m.name];
    one = {{"unit", shown_unit(m.unit)}, {"what", m.what}, {"recordings", values.size()}};
    for (const auto& [name, share] :
         {std::pair("least", 0.0), std::pair("p1", 0.01), std::pair("p10", 0.1),
          std::pair("median", 0.5), std::pair("p90", 0.9), std::pair("p99", 0.99),
          std::pair("greatest", 1.0)})
      one[name] = number(quantile(values, share));
    const double low = values.front(), high = values.back();
    if (!(high > low)) continue;
    std::vector<std::size_t> counts(kBins, 0);
    for (const double v : values)
      ++counts[std::min(kBins - 1, static_cast<std::size_t>((v - low) / (high - low) * kBins))];
    one["histogram"] = {{"from", number(low)}, {"to", number(high)}, {"counts", counts}};
  }
  return out;
}

// What the table says of recordings and what is there, as remarks tell.
Json remarks_json(const FeatureFile& output) {
  Json list = Json::array();
  for (const FeatureFile::Remark& r : output.remarks()) {
    if (list.size() == kMostRemarks) break;
    list.push_back({{"path", r.path},
                    {"status", to_text(r.status)},
                    {"stage", r.stage},
                    {"reason", r.reason}});
  }
  return list;
}

struct Group {
  std::size_t files = 0, ok = 0, faulty = 0;
  double seconds = 0, faulty_seconds = 0;
  std::vector<std::size_t> found;  // of each check
  std::vector<std::size_t> members;
};

Json groups_json(const FeatureData& output, const CheckedCorpus& checked, const std::string& by) {
  std::map<std::string, Group> groups;
  std::vector<Group*> of(output.files.size());
  for (std::size_t i = 0; i < output.files.size(); ++i) {
    const FeatureData::Entry& e = output.files[i];
    Group& g = *(of[i] = &groups[output.text_of(e, by)]);
    g.found.resize(checked.checks.size());
    ++g.files;
    if (e.status != Status::ok) continue;
    ++g.ok;
    g.seconds += e.duration;
    g.members.push_back(i);
    if (!checked.is_faulty[i]) continue;
    ++g.faulty;
    g.faulty_seconds += e.duration;
  }
  for (std::size_t c = 0; c < checked.checks.size(); ++c)
    for (const Finding& f : checked.checks[c].found) ++of[f.file]->found[c];
  std::vector<std::pair<std::string, const Group*>> sorted;
  for (const auto& [name, g] : groups) sorted.emplace_back(name, &g);
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return a.second->seconds > b.second->seconds;
  });
  Json list = Json::array();
  for (const auto& [name, g] : sorted) {
    if (list.size() == kMostGroups) break;
    Json one{{"name", name},
             {"files", g->files},
             {"ok", g->ok},
             {"seconds", number(g->seconds)},
             {"faulty", g->faulty},
             {"faulty_seconds", number(g->faulty_seconds)},
             {"found", Json::object()},
             {"median", Json::object()}};
    for (std::size_t c = 0; c < checked.checks.size(); ++c)
      if (g->found[c] > 0) one["found"][checked.checks[c].name] = g->found[c];
    for (const Measure m : {Measure::rms, Measure::snr, Measure::bandwidth, Measure::loudness}) {
      std::vector<double> values;
      for (const std::size_t i : g->members)
        if (const auto& had = output.files[i].measured; had && !std::isnan((*had)[m]))
          values.push_back(shown(info_of(m).unit, (*had)[m]));
      if (!values.empty()) one["median"][info_of(m).name] = number(median(std::move(values)));
    }
    list.push_back(std::move(one));
  }
  const std::size_t more = groups.size() - list.size();
  return {{"by", by}, {"groups", std::move(list)}, {"more", more}};
}

// Stretches of recordings, as far as the page has room for them.
class Clips {
 public:
  explicit Clips(const DocumentOptions& options) : options_(options), room_(options.clip_bytes) {}
  [[nodiscard]] bool has_room() const { return room_ > 0; }
  Json of(std::size_t file, double begin, double seconds) {
    const Clip clip = read_clip(options_.path_of(file), begin, seconds);
    if (clip.url.empty()) return {{"why", clip.why}};
    if (clip.url.size() > room_) return {{"why", "the page has no room for more"}};
    room_ -= clip.url.size();
    return {{"sample_rate", clip.sample_rate},
            {"channels", clip.channels},
            {"begin", number(clip.begin)},
            {"seconds", number(clip.seconds)},
            {"url", clip.url}};
  }
  // Around the place, or from the middle.
  Json of(const Finding& found, double seconds) {
    const bool is_placed = !std::isnan(found.at);
    const double length = std::min(seconds, is_placed ? kPlacedSeconds : kClipSeconds);
    const double middle = is_placed ? found.at + length / 4 : seconds / 2;
    return of(found.file, std::clamp(middle - length / 2, 0.0, std::max(0.0, seconds - length)),
              length);
  }

 private:
  const DocumentOptions& options_;
  std::size_t room_;
};

// What sounds alike, as `melflow duplicates` has it; in a page the worst pairs, which both are
// heard at the same place of the stretch, its middle.
Json alike_json(const FeatureFile& output, const DocumentOptions& options, Clips& clips) {
  const Duplicates& found = *options.alike;
  Json out = duplicates_json(found);
  out.erase("melflow_version");
  if (options.pairs == 0) return out;
  out["groups"] = found.groups;
  for (auto& [why, paths] : out["not_compared"].items()) paths = paths.size();
  out["pairs"] = Json::array();
  for (const LikePair* p : worst_pairs(found, options.pairs)) {
    Json one = pair_json(found, *p);
    const double length = std::min(kClipSeconds, p->seconds), skipped = (p->seconds - length) / 2;
    for (const auto& [side, recording, begin] :
         {std::tuple("a", p->a, p->begin_a), std::tuple("b", p->b, p->begin_b)})
      if (options.clips > 0 && clips.has_room())
        one[side]["clip"] = clips.of(
            static_cast<std::size_t>(found.recordings[recording].entry - output.files().data()),
            begin + skipped, length);
    out["pairs"].push_back(std::move(one));
  }
  out["more_pairs"] = found.pairs.size() - out["pairs"].size();
  return out;
}

Json checks_json(const FeatureFile& output, const CheckedCorpus& checked,
                 const DocumentOptions& options, Clips& clips) {
  Json out = Json::array();
  for (const Check& check : checked.checks) {
    Json one{{"name", check.name},
             {"expected", check.wanted},
             {"judged", check.judged},
             {"found", check.found.size()},
             {"seconds", number(check.seconds)},
             {"what", check.measure != nullptr ? check.measure->what : ""},
             {"worst", Json::array()}};
    const std::size_t listed = std::min(options.worst, check.found.size());
    for (std::size_t i = 0; i < listed; ++i) {
      const Finding& f = check.found[i];
      const FeatureFile::Entry& e = output.files()[f.file];
      Json worst{
          {"path", e.path}, {"value", number(f.value)}, {"text", value_text(check, f.value)}};
      if (check.measure == &info_of(Measure::seconds_per_character))
        worst["said"] = excerpt(output.data().text_of(e, "text"), kMostSaid);
      if (!std::isnan(f.at)) worst["at"] = number(f.at);
      if (i < options.clips && clips.has_room()) worst["clip"] = clips.of(f, e.duration);
      one["worst"].push_back(std::move(worst));
    }
    out.push_back(std::move(one));
  }
  return out;
}

}  // namespace

std::vector<std::string> groupings(const FeatureFile& output, const std::vector<std::string>& by) {
  std::vector<std::string> out;
  if (output.labels().size() > 1) out.emplace_back("label");
  if (!output.splits().empty()) out.emplace_back("split");
  const std::vector<std::string>& columns = output.columns();
  if (std::find(columns.begin(), columns.end(), "speaker") != columns.end())
    out.emplace_back("speaker");
  for (const std::string& name : by) {
    if (std::find(out.begin(), out.end(), name) != out.end()) continue;
    if (std::find(columns.begin(), columns.end(), name) == columns.end())
      throw ConfigError(fmt::format(
          "--by {}: {}", excerpt(name),
          columns.empty() ? "the recordings have no columns of texts (file_list: columns)"
                          : not_one_of(name, columns)));
    out.push_back(name);
  }
  return out;
}

Json check_json(const FeatureFile& output, const CheckedCorpus& checked,
                const std::vector<Criterion>& wanted, const DocumentOptions& options) {
  std::size_t by_status[std::size(FeatureData::kStatusNames)] = {};
  for (const FeatureFile::Entry& e : output.files())
    ++by_status[static_cast<std::size_t>(e.status)];
  Json out{{"melflow_version", kVersion},
           {"root", output.root()},
           {"profile", options.profile},
           {"files", {{"found", output.files().size()}}},
           {"seconds", number(checked.seconds)},
           {"faulty", checked.faulty},
           {"faulty_seconds", number(checked.faulty_seconds)},
           {"filter", yaml_flow(filter_of(wanted))},
           {"expected", verdicts_json(options.expected)}};
  for (std::size_t s = 0; s < std::size(by_status); ++s)
    out["files"][FeatureData::kStatusNames[s]] = by_status[s];
  out["warnings"] = output.warnings();
  Clips clips(options);
  out["checks"] = checks_json(output, checked, options, clips);
  if (options.alike != nullptr) out["duplicates"] = alike_json(output, options, clips);
  out["groups"] = Json::array();
  for (const std::string& by : options.by)
    out["groups"].push_back(groups_json(output.data(), checked, by));
  out["measures"] = measures_json(output.data());
  out["remarks"] = remarks_json(output);
  out["more_remarks"] = output.remarks().size() - out["remarks"].size();
  return out;
}

std::string check_text(const FeatureFile& output, const CheckedCorpus& checked,
                       const Duplicates* alike) {
  const double share =
      checked.ok > 0 ? 100.0 * static_cast<double>(checked.faulty) / static_cast<double>(checked.ok)
                     : 0;
  std::string out =
      fmt::format("{} of {}, {} of {}: {:.3g} % of the recordings have a fault\n",
                  count_text(checked.faulty), plural(checked.ok, "recording"),
                  seconds_text(checked.faulty_seconds), seconds_text(checked.seconds), share);
  std::vector<std::vector<std::string>> rows{{"check", "expected", "found", "judged", "worst"}};
  for (const Check& c : checked.checks)
    rows.push_back({c.name, c.wanted, c.judged > 0 ? count_text(c.found.size()) : "",
                    c.judged > 0 ? count_text(c.judged) : "none",
                    c.found.empty() ? "" : value_text(c, c.found.front().value)});
  const std::string table = aligned(rows, 2);
  std::size_t begin = 0;
  for (std::size_t line = 0; line < rows.size(); ++line) {
    const std::size_t end = table.find('\n', begin);
    out += '\n' + table.substr(begin, end - begin);
    begin = end + 1;
    if (line == 0 || checked.checks[line - 1].found.empty()) continue;
    out += "  " + one_line(excerpt(output.files()[checked.checks[line - 1].found.front().file].path,
                                   kLongestPath));
  }
  out += '\n';
  if (alike != nullptr) out += '\n' + duplicates_text(*alike);
  return out;
}

std::string check_csv(const FeatureFile& output, const CheckedCorpus& checked,
                      const Duplicates* alike) {
  std::vector<std::string> faults(output.files().size()), reasons(output.files().size());
  for (const Check& check : checked.checks)
    for (const Finding& f : check.found)
      faults[f.file] += (faults[f.file].empty() ? "" : " ") + check.name;
  for (const FeatureFile::Remark& r : output.remarks())
    reasons.at(static_cast<std::size_t>(r.file)) = r.stage + ": " + r.reason;
  std::vector<const MeasureInfo*> measured;
  for (const MeasureInfo& m : measures())
    if (!values_of(output.data(), measure_of(m)).empty()) measured.push_back(&m);
  std::string out = "path,label,split,status,reason,duration,sample_rate";
  for (const std::string& name : output.columns()) out += ',' + csv_cell(name);
  for (const MeasureInfo* m : measured) out += fmt::format(",{}", m->column);
  std::vector<const ListedRecording*> in_group(output.files().size(), nullptr);
  if (alike != nullptr) {
    out += ",group,recordings,across";
    for (const ListedRecording& r : alike->recordings)
      in_group[static_cast<std::size_t>(r.entry - output.files().data())] = &r;
  }
  out += ",faults\n";
  for (std::size_t i = 0; i < output.files().size(); ++i) {
    const FeatureFile::Entry& e = output.files()[i];
    out += fmt::format("{},{},{},{},{},{:.6f},{}", csv_cell(e.path),
                       csv_cell(output.data().text_of(e, "label")),
                       csv_cell(output.data().text_of(e, "split")), to_text(e.status),
                       csv_cell(reasons[i]), e.duration, e.sample_rate);
    for (const std::string& text : e.texts) out += ',' + csv_cell(text);
    for (const MeasureInfo* m : measured) {
      const float value = e.measured != nullptr ? (*e.measured)[measure_of(*m)] : std::nanf("");
      out += std::isnan(value) ? "," : fmt::format(",{:.6g}", value);
    }
    if (const ListedRecording* r = in_group[i]; r != nullptr)
      out += fmt::format(",{},{},{}", csv_cell(alike->recordings[r->group].entry->path),
                         r->in_group, csv_cell(across_text(*r)));
    else if (alike != nullptr)
      out += ",,,";
    out += ',' + faults[i] + '\n';
  }
  return out;
}

std::string check_page(const Json& document) {
  constexpr std::string_view kScript =
#include "check_js.inc"
      ;
  return page(fmt::format("melflow check: {} of {} with a fault",
                          count_text(document["faulty"].get<std::size_t>()),
                          plural(document["files"]["ok"].get<std::size_t>(), "recording")),
              document, kScript);
}

}  // namespace melflow
