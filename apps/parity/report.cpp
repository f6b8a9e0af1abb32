#include "apps/parity/report.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include <fmt/format.h>

#include "apps/report/format.h"

namespace melflow {
namespace {

using Json = nlohmann::ordered_json;
using Cells = std::vector<std::string>;

std::string_view precision_text(const ParityValue& value) { return name_of(value.precision); }

std::string tolerance_text(const ParityTolerance& t) {
  if (t.rtol == 0) return fmt::format("{:.0e}", t.atol);
  return fmt::format("{:.0e} + {:.0e} |x|", t.atol, t.rtol);
}

std::string verdict(const ParityResult& r) {
  if (!r.passed) return "FAILED";
  if (r.left_out < r.cases) return "ok";
  return "omitted: " + r.reason;
}

// Left-aligned but for the figures, two spaces between the columns.
std::string table(const std::vector<Cells>& rows, const std::vector<bool>& is_figure) {
  std::vector<std::size_t> widths(is_figure.size(), 0);
  for (const Cells& row : rows)
    for (std::size_t c = 0; c + 1 < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
  std::string out;
  for (const Cells& row : rows) {
    for (std::size_t c = 0; c < row.size(); ++c) {
      const std::size_t fill = widths[c] > row[c].size() ? widths[c] - row[c].size() : 0;
      const std::string space(fill, ' ');
      const bool is_last = c + 1 == row.size();
      out += is_figure[c] ? space + row[c] : is_last ? row[c] : row[c] + space;
      out += is_last ? "\n" : "  ";
    }
  }
  return out;
}

Cells cells(const ParityResult& r, const ParityTolerance& tolerance) {
  const bool is_compared = r.worst.frame >= 0;
  const auto figure = [&](const std::string& text) { return is_compared ? text : "-"; };
  return {r.name,
          fmt::format("{}", fmt::join(r.libraries, ", ")),
          count_text(r.cases - r.left_out),
          count_text(static_cast<std::size_t>(r.frames)),
          figure(fmt::format("{:.1e}", r.largest)),
          figure(fmt::format("{:.1e}", r.worst.error())),
          figure(fmt::format("{:.1e}", r.worst.limit)),
          figure(fmt::format("{:.0f} %", 100 * r.worst.share())),
          tolerance_text(tolerance),
          verdict(r)};
}

std::string failure_text(const ParityResult& r) {
  std::string out = r.name + ": ";
  if (!r.reason.empty()) return out + r.reason + "\n";
  const ParityValue& w = r.worst;
  if (r.is_of_rows) out += fmt::format("frame {}, ", w.frame);
  return out + fmt::format(
                   "column {}: {} here in {}, {} by {}: differs by {:.3g}, at most "
                   "{:.3g} is allowed\n",
                   w.column, static_cast<float>(w.ours), precision_text(w),
                   static_cast<float>(w.theirs), fmt::join(r.libraries, ", "),
                   std::abs(w.ours - w.theirs), w.limit + w.own_error);
}

}  // namespace

void ParityResult::fail(const std::string& why) {
  passed = false;
  reason = why;
}

void ParityResult::take(const ParityValue& value) {
  largest = std::max({largest, value.largest, std::abs(value.ours - value.theirs)});
  if (worst.frame < 0 || value.share() > worst.share()) {
    worst = value;
    worst_case = name;
  }
  passed = passed && value.passes();
}

std::vector<ParityResult> by_preset(const std::vector<ParityResult>& cases) {
  std::vector<ParityResult> out;
  for (const ParityResult& one : cases) {
    auto at = std::find_if(out.begin(), out.end(),
                           [&](const ParityResult& r) { return r.name == one.preset; });
    if (at == out.end()) {
      at = out.insert(out.end(), ParityResult{});
      at->name = at->preset = one.preset;
      at->cases = 0;
    }
    for (const std::string& library : one.libraries)
      if (std::find(at->libraries.begin(), at->libraries.end(), library) == at->libraries.end())
        at->libraries.push_back(library);
    at->cases += one.cases;
    at->left_out += one.left_out;
    at->frames += one.frames;
    at->largest = std::max(at->largest, one.largest);
    if (at->worst.frame < 0 || one.worst.share() > at->worst.share()) {
      at->worst = one.worst;
      at->worst_case = one.name;
    }
    at->passed = at->passed && one.passed;
  }
  return out;
}

std::string parity_text(const std::string& what, const std::vector<ParityResult>& lines,
                        const std::vector<ParityResult>& cases, const ParityVectors& vectors) {
  std::vector<Cells> rows{{what, "library", "cases", "frames", "largest", "nearest", "limit",
                           "of it", "tolerance", "verdict"}};
  for (const ParityResult& r : lines) rows.push_back(cells(r, vectors.tolerance(r.preset)));
  std::vector<bool> is_figure{false, false, true, true, true, true, true, true, false, false};
  if (what != "preset") {  // one case a line
    is_figure.erase(is_figure.begin() + 2);
    for (Cells& row : rows) row.erase(row.begin() + 2);
  }
  std::string out = table(rows, is_figure);
  const auto failed = [](const ParityResult& r) { return !r.passed; };
  const auto n = static_cast<std::size_t>(std::count_if(cases.begin(), cases.end(), failed));
  if (n > 0) out += "\nfailed:\n";
  for (const ParityResult& r : cases)
    if (failed(r)) out += "  " + failure_text(r);
  return out;
}

Json parity_json(const std::vector<ParityResult>& results, const ParityVectors& vectors) {
  Json out = Json::array();
  for (const ParityResult& r : results) {
    const ParityTolerance& t = vectors.tolerance(r.preset);
    Json one{{"name", r.name},
             {"preset", r.preset},
             {"libraries", r.libraries},
             {"cases", r.cases},
             {"left_out", r.left_out},
             {"frames", r.frames},
             {"largest_difference", r.worst.frame >= 0 ? Json(r.largest) : Json()},
             {"worst", nullptr},
             {"tolerance", {{"atol", t.atol}, {"rtol", t.rtol}, {"source", t.source}}},
             {"passed", r.passed},
             {"reason", r.reason.empty() ? Json() : Json(r.reason)}};
    if (r.worst.frame >= 0)
      one["worst"] = {
          {"case", r.worst_case},           {"frame", r.is_of_rows ? Json(r.worst.frame) : Json()},
          {"column", r.worst.column},       {"precision", precision_text(r.worst)},
          {"ours", r.worst.ours},           {"theirs", r.worst.theirs},
          {"own_error", r.worst.own_error}, {"error", r.worst.error()},
          {"limit", r.worst.limit},         {"share", r.worst.share()}};
    out.push_back(std::move(one));
  }
  return out;
}

}  // namespace melflow
