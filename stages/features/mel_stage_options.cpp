#include "stages/features/mel_stage_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <variant>

#include "pipeline/base/problem.h"
#include "pipeline/base/sentences.h"
#include "stages/features/mel/mel_filterbank.h"
#include "stages/features/mel/mel_option_table.h"
#include "stages/files/npy_array.h"
#include "stages/front_ends.h"
#include "stages/other_names.h"

namespace melflow {
namespace {

// Replaces thousands of numbers in the identity of an output by their hash.
std::string hash(const std::vector<double>& values) {
  const XXH128_hash_t h = XXH3_128bits(values.data(), values.size() * sizeof(double));
  return fmt::format("{} values, xxh3 {:016x}{:016x}", values.size(), h.high64, h.low64);
}

}  // namespace

std::string OptionType<MelOptions::Reference>::parse(const Value& v, MelOptions::Reference& out) {
  if (v.is_scalar() && v.text() == "max") {
    out = {1, true};
    return {};
  }
  out = {};
  const std::string why = detail::parse_number(v, out.value);
  return why.empty() ? why : why + ", or max";
}

std::string OptionType<MelOptions::WindowValues>::parse(const Value& v,
                                                        MelOptions::WindowValues& out) {
  out = {};
  if (double number = 0; !v.is_scalar() || detail::parse_number(v, number).empty())
    return OptionType<std::vector<double>>::parse(v, out.numbers);
  try {
    out = {read_npy_vector(v.text()), v.text()};
  } catch (const RunError& e) {
    return e.what();
  }
  return {};
}

std::string OptionType<MelOptions::Filters>::parse(const Value& v, MelOptions::Filters& out) {
  out = {};
  std::vector<std::uint64_t> shape;
  if (v.is_scalar() && !v.is_null()) {
    try {
      NpyArray array = read_npy_array(v.text());
      out = {std::move(array.values), 0, 0, v.text()};
      shape = std::move(array.shape);
    } catch (const RunError& e) {
      return e.what();
    }
    if (shape.size() != 2)
      return fmt::format("{}: has the shape ({}), not two dimensions", v.text(),
                         fmt::join(shape, ", "));
  } else {
    std::vector<std::vector<double>> rows;
    if (std::string why = OptionType<decltype(rows)>::parse(v, rows); !why.empty()) return why;
    if (rows.empty()) return {};
    shape = {rows.size(), rows.front().size()};
    for (const std::vector<double>& row : rows) {
      if (row.size() != rows.front().size())
        return fmt::format("rows of {} and of {} numbers; all have as many", rows.front().size(),
                           row.size());
      out.numbers.insert(out.numbers.end(), row.begin(), row.end());
    }
  }
  out.rows = static_cast<int>(shape[0]);
  out.columns = static_cast<int>(shape[1]);
  return {};
}

Value OptionType<MelOptions::Filters>::echo(const MelOptions::Filters& f) {
  if (!f.file.empty()) return Value::scalar(f.file, {}, true);
  std::vector<std::vector<double>> rows;
  for (auto at = f.numbers.begin(); at != f.numbers.end(); at += f.columns)
    rows.emplace_back(at, at + f.columns);
  return OptionType<decltype(rows)>::echo(rows);
}

std::vector<std::string> OptionType<PresetChoice>::choices() {
  std::vector<std::string> names{"none"};
  for (const MelPreset& preset : mel_presets()) names.emplace_back(preset.name);
  return names;
}

std::string OptionType<PresetChoice>::parse(const Value& v, PresetChoice& out) {
  if (v.is_null() || (v.is_scalar() && v.text() == "none")) {
    out.preset = nullptr;
    return {};
  }
  const MelPreset* found = v.is_scalar() ? find_preset(v.text()) : nullptr;
  if (found == nullptr)
    return fmt::format("{} is not one of {}, or the path of a model's file{}",
                       detail::describe_value(v), fmt::join(choices(), ", "),
                       v.is_scalar() ? did_you_mean(v.text(), choices()) : "");
  out.preset = found;
  return {};
}

void MelStageOptions::set(const MelOptions& options) {
  mel = options;
  sample_rate = mel.sample_rate;
  win_length = mel.win_length ? std::optional(Length(*mel.win_length)) : std::nullopt;
  hop = mel.hop ? std::optional(Length(*mel.hop)) : std::nullopt;
}

void MelStageOptions::take_preset() {
  if (preset.preset != nullptr) set(preset.preset->options);
}

void MelStageOptions::describe(Schema& s) {
  s.other_names(other_names::of_mel());
  s.other_values(other_names::values_of_mel());
  s.field("preset", preset,
          "front end of a known library or model: sets all options, and puts in its nodes before "
          "and after mel (docs/features.md), or a model's own file (docs/model-files.md); options "
          "beside it take precedence")
      .implies([this] { take_preset(); })
      .tuning();
  for (const MelOptionRow& row : mel_option_table()) {
    const auto field = [&](auto& target) -> Field& {
      return s.field(std::string(row.name), target, row.text());
    };
    const auto is = [&](auto m) { return row.member == MelOptions::Member(m); };
    Field& f = is(&MelOptions::sample_rate)  ? field(sample_rate)
               : is(&MelOptions::win_length) ? field(win_length)
               : is(&MelOptions::hop)
                   ? field(hop)
                   : std::visit([&](auto m) -> Field& { return field(mel.*m); }, row.member);
    if (const double lowest = row.range.lowest; std::isfinite(lowest))
      row.range.excludes_lowest ? f.greater_than(lowest) : f.at_least(lowest);
    if (std::isfinite(row.range.highest)) f.highest = row.range.highest;
    if (const auto& [what, are_met] = row.needs; are_met != nullptr)
      f.used_with(std::string(what), [this, met = are_met] { return met(resolved()); });
  }
  s.field("preset_of", preset_of, kPresetOfHelp).tuning();
}

MelOptions MelStageOptions::resolved() const {
  MelOptions o = mel;
  if (sample_rate) o.sample_rate = *sample_rate;
  const auto samples = [&](const std::optional<Length>& length) -> std::optional<int> {
    if (!length) return std::nullopt;
    constexpr std::int64_t kMost = std::numeric_limits<int>::max();
    return static_cast<int>(std::min(length->at(o.sample_rate), kMost));
  };
  o.win_length = samples(win_length);
  o.hop = samples(hop);
  // Removes a preset's statistics with its normalisation: `normalize: none` alone suffices.
  if (preset.preset != nullptr && o.normalize != MelOptions::Normalize::fixed) {
    const MelOptions& theirs = preset.preset->options;
    if (o.norm_mean == theirs.norm_mean) o.norm_mean.clear();
    if (o.norm_std == theirs.norm_std) o.norm_std.clear();
  }
  return o;
}

std::vector<MelOptionProblem> MelStageOptions::check_times(int rate) const {
  std::vector<MelOptionProblem> out;
  for (const auto& [name, length] :
       {std::pair("win_length", &win_length), std::pair("hop", &hop)}) {
    if (!*length || !(*length)->is_time()) continue;
    const double samples = (*length)->seconds * rate;
    const std::string time = number_text((*length)->seconds * 1000) + " ms";
    if (samples > 0 && samples < 1) {
      // Reads us written for ms: suggests ms if that is a valid length.
      const double meant = 1000 * samples;
      const bool passes = std::abs(meant - std::round(meant)) < 1e-6 * meant;
      out.push_back(
          {name,
           fmt::format("{} is {}, which is {:.4g} samples at {} Hz and so less "
                       "than one{}",
                       name, time, samples, rate,
                       passes ? did_you_mean(fmt::format("{:.6g}ms", 1e6 * (*length)->seconds))
                              : "; write a number of samples, or a longer time such as 10ms")});
      continue;
    }
    if (std::abs(samples - std::round(samples)) > 1e-6 * std::max(1.0, samples))
      out.push_back(
          {name, fmt::format("{} is {}, which is {:.7g} samples at {} Hz; libraries round that "
                             "differently: write {} or {} (samples)",
                             name, time, samples, rate, std::max(1.0, std::floor(samples)),
                             std::max(2.0, std::ceil(samples)))});
  }
  return out;
}

std::vector<MelOptionProblem> MelStageOptions::unit_remarks(int rate) const {
  constexpr double kLeastHop = 0.002, kLeastWindow = 0.005;  // [s]
  std::vector<MelOptionProblem> out;
  for (const auto& [name, length, least] :
       {std::tuple("win_length", &win_length, kLeastWindow), {"hop", &hop, kLeastHop}})
    if (const std::string remark = *length ? (*length)->unit_remark(rate, least, "ms") : "";
        !remark.empty())
      out.push_back({name, remark});
  const MelOptions as_read = resolved();
  const int window = as_read.win_length.value_or(as_read.n_fft);
  if (as_read.hop && *as_read.hop > window)
    out.push_back({"hop", fmt::format("{} samples are more than the window's {}: the samples "
                                      "between two windows are in no row",
                                      *as_read.hop, window)});
  return out;
}

std::string MelStageOptions::preset_text() const {
  if (preset.preset == nullptr || !preset_of.empty()) return preset_of;
  const auto settings = [](MelStageOptions options) {
    Schema s;
    options.describe(s);
    return s.echo();
  };
  MelStageOptions original;
  original.preset = preset;
  original.take_preset();
  MelStageOptions own = *this;  // equal lengths are the same in samples
  const MelOptions in_samples = resolved();
  if (own.win_length) own.win_length = Length(*in_samples.win_length);
  if (own.hop) own.hop = Length(*in_samples.hop);
  const Value theirs = settings(original), ours = settings(own);
  std::vector<std::string> changed;
  for (const Value::Entry& e : ours.entries())
    if (const Value* other = theirs.find(e.key);
        other == nullptr || to_json(*other) != to_json(e.value))
      changed.push_back(e.key);
  std::string text(preset.preset->name);
  for (std::size_t i = 0; i < changed.size(); ++i)
    text += (i == 0 ? ", with " : i + 1 == changed.size() ? " and " : ", ") + changed[i];
  return text + (changed.empty() ? "" : " changed");
}

std::string MelStageOptions::from_preset(const std::string& option) const {
  if (preset.preset == nullptr) return {};
  const auto value_of = [&option](MelStageOptions options) {
    Schema s;
    options.describe(s);
    const Value all = s.echo();
    const Value* value = all.find(option);
    return value == nullptr ? std::string("null") : to_json(*value);
  };
  MelStageOptions original;
  original.preset = preset;
  original.take_preset();
  const std::string theirs = value_of(original);
  if (theirs == "null" || theirs != value_of(*this)) return {};
  return fmt::format(" (preset {} sets it{})", preset.preset->name,
                     theirs == value_of({})
                         ? ""
                         : fmt::format("; write {0}: null to unset it, in Python "
                                       "node.options[\"{0}\"] = None",
                                       option));
}

std::string MelStageOptions::preset_remark() const {
  if (preset.preset == nullptr || !preset.preset->has_fixed_times || !preset_of.empty()) return {};
  const MelOptions &theirs = preset.preset->options, ours = resolved();
  if (ours.sample_rate == theirs.sample_rate || ours.hop != theirs.hop ||
      ours.win_length != theirs.win_length || ours.n_fft != theirs.n_fft)
    return {};
  return fmt::format(
      "{} has frames of {} samples every {} at {} Hz; at {} Hz they last {:.3g} times as long. Set "
      "n_fft, win_length and hop, or resample to {} Hz",
      preset.preset->name, theirs.win_length.value_or(theirs.n_fft), *theirs.hop,
      theirs.sample_rate, ours.sample_rate,
      static_cast<double>(theirs.sample_rate) / ours.sample_rate, theirs.sample_rate);
}

std::string MelStageOptions::window_remark(std::int64_t window) const {
  const bool is_known = preset.preset != nullptr && preset_of.empty();
  const int theirs = is_known ? preset.preset->window_seconds : 0;
  const int rate = resolved().sample_rate;
  if (theirs == 0 || window == std::int64_t{theirs} * rate) return {};
  return fmt::format(
      "{}'s model takes windows of {} s, and {}; put segment with length: {}s, tail: pad before "
      "this node",
      preset.preset->name, theirs,
      window == 0 ? "the recordings are not cut"
                  : fmt::format("a window here is {:.4g} s", static_cast<double>(window) / rate),
      theirs);
}

std::string MelStageOptions::range_remark() const {
  const bool is_librosa = preset.preset != nullptr && preset.preset->name == "librosa";
  if (!is_librosa || mel.log != MelOptions::Log::db || mel.top_db) return {};
  return "is not set: as power_to_db(..., top_db=None); without that argument librosa keeps 80 dB "
         "below the largest value, which is top_db: 80";
}

Value MelStageOptions::canonical(const MelOptions& options) {
  MelStageOptions stage;
  stage.set(melflow::canonical(options));
  Schema s;
  stage.describe(s);
  const Value all = s.echo();
  Value out = Value::map({});
  for (const MelOptionRow& row : mel_option_table())
    if (row.counts(stage.mel)) out.set(std::string(row.name), *all.find(std::string(row.name)));
  if (const auto& values = stage.mel.window_values.numbers; out.find("window_values") != nullptr)
    out.set("window_values", Value::scalar(hash(values), {}, true));
  if (out.find("filters") != nullptr)
    out.set("filters", Value::scalar(hash(filter_matrix(stage.mel)), {}, true));
  return out;
}

}  // namespace melflow
