#include "apps/parity/check.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <span>

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

// Formats a table: left-aligned except for figures, two spaces between the columns.
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
  return out + fmt::format(
                   "frame {}, column {}: {} here in {}, {} by {}: differs by {:.3g}, at most "
                   "{:.3g} is allowed\n",
                   w.frame, w.column, static_cast<float>(w.ours), precision_text(w),
                   static_cast<float>(w.theirs), fmt::join(r.libraries, ", "),
                   std::abs(w.ours - w.theirs), w.limit + w.own_error);
}

constexpr std::array kPrecisions{MelOptions::Precision::float32, MelOptions::Precision::float64};

MelOptions in(MelOptions::Precision precision, MelOptions options) {
  options.precision = precision;
  return options;
}

std::string shapes(const ParityRows& ours, std::int64_t frames, int columns,
                   const std::string& library) {
  return fmt::format("{} x {} values (frames x columns) here, {} x {} by {}", ours.frames,
                     ours.columns, frames, columns, library);
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
  if (what != "preset") {  // one case per line
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
      one["worst"] = {{"case", r.worst_case},           {"frame", r.worst.frame},
                      {"column", r.worst.column},       {"precision", precision_text(r.worst)},
                      {"ours", r.worst.ours},           {"theirs", r.worst.theirs},
                      {"own_error", r.worst.own_error}, {"error", r.worst.error()},
                      {"limit", r.worst.limit},         {"share", r.worst.share()}};
    out.push_back(std::move(one));
  }
  return out;
}

ParityResult check_case(const ParityCase& one, const ParityTolerance& tolerance) {
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
  for (const auto precision : kPrecisions) {
    const MelOptions options = in(precision, one.options);
    const ParityRows ours = parity_rows(options, one.cepstrum, samples);
    if (ours.frames != one.frames || ours.columns != one.columns) {
      out.fail(shapes(ours, one.frames, one.columns, one.source.text()));
      return out;
    }
    const ParityJudge judge(options, one.cepstrum.has_value(), ours, tolerance,
                            {transforms_in_double(one.preset), true, false});
    for (const ParityRow& row : one.rows) out.take(judge.worst(row));
  }
  out.frames = static_cast<std::int64_t>(one.rows.size());
  return out;
}

ParityResult check_delta(const ParityDelta& one, const ParityTolerance& tolerance) {
  ParityResult out;
  out.name = one.name;
  out.preset = kDeltas;
  out.libraries = {one.source.text()};
  out.take(worst_delta(one, tolerance));
  out.frames = static_cast<std::int64_t>(one.output.size());
  return out;
}

ParityResult check_recording(const std::string& preset, const MelOptions& options,
                             const ParityTolerance& tolerance, const ParityRecording& recording,
                             const ParitySource& library, const ReferenceRows& theirs) {
  ParityResult out;
  out.name = recording.path;
  out.preset = preset;
  out.libraries = {library.text()};
  if (!recording.problem.empty()) {
    out.fail(recording.problem);
    return out;
  }
  // Some libraries refuse recordings shorter than their padding, or with one frame only.
  if (!theirs.refused.empty()) {
    out.left_out = 1;
    out.reason = theirs.refused;
    return out;
  }
  for (const auto precision : kPrecisions) {
    const MelOptions own = in(precision, options);
    const ParityRows ours =
        parity_rows(own, std::nullopt, std::span<const float>(recording.samples));
    if (ours.frames != theirs.frames || (ours.columns != theirs.columns && ours.frames > 0)) {
      out.fail(shapes(ours, theirs.frames, theirs.columns, library.text()));
      return out;
    }
    const ParityJudge judge(
        own, false, ours, tolerance,
        {.is_double = transforms_in_double(preset), .is_measured = !theirs.own_errors.empty()});
    for (std::int64_t t = 0; t < theirs.frames; ++t) {
      const auto row_at = [&](const std::vector<float>& all) {
        const float* values = all.data() + t * theirs.columns;
        return all.empty() ? std::vector<double>{}
                           : std::vector<double>(values, values + theirs.columns);
      };
      out.take(judge.worst({t, row_at(theirs.values), row_at(theirs.own_errors)}));
    }
  }
  out.frames = theirs.frames;
  return out;
}

}  // namespace melflow
