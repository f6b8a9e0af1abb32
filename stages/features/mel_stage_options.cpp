#include "stages/features/mel_stage_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <xxhash.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <tuple>
#include <variant>

#include "pipeline/base/near_names.h"
#include "pipeline/base/problem.h"
#include "pipeline/base/sentences.h"
#include "stages/features/mel/mel_filterbank.h"
#include "stages/features/mel/mel_option_table.h"
#include "stages/files/npy_array.h"
#include "stages/other_names.h"

namespace melflow {
namespace {

// Replaces thousands of numbers in the identity of an output by their hash.
std::string hash(const std::vector<double>& values) {
  const XXH128_hash_t h = XXH3_128bits(values.data(), values.size() * sizeof(double));
  return fmt::format("{} values, xxh3 {:016x}{:016x}", values.size(), h.high64, h.low64);
}

// What a configuration keeps of a .npy file: {file, shape, numbers}, or the path alone where the
// text would not fit into one that can be read again (config/document.h).
Value kept(const std::string& file, const std::vector<double>& numbers,
           const std::vector<int>& shape) {
  constexpr std::size_t kMost = 2 << 20;  // [bytes]
  std::string text;
  for (const double number : numbers) {
    if (text.size() > kMost) return Value::scalar(file, {}, true);
    text.append(text.empty() ? "" : " ").append(number_text(number));
  }
  Value out = Value::map({});
  out.set("file", Value::scalar(file, {}, true));
  out.set("shape", OptionType<std::vector<int>>::echo(shape));
  out.set("numbers", Value::scalar(text, {}, true));
  return out;
}

bool is_kept(const Value& v) { return v.is_map() && v.find("numbers") != nullptr; }

// Reads what kept() made of a file. Returns "" or the problem.
std::string parse_kept(const Value& v, std::string& file, NpyArray& out) {
  const Value *path = v.find("file"), *shape = v.find("shape");
  if (path == nullptr || shape == nullptr) return "a map with numbers needs file and shape, too";
  file = path->text();
  if (std::string why = OptionType<decltype(out.shape)>::parse(*shape, out.shape); !why.empty())
    return "shape: " + why;
  const std::string& text = v.find("numbers")->text();
  for (const char *at = text.data(), *const end = at + text.size(); at != end;) {
    const auto [next, error] = std::from_chars(at, end, out.values.emplace_back());
    if (error != std::errc{}) return "numbers: are not numbers with spaces between them";
    at = next + (next != end && *next == ' ' ? 1 : 0);
  }
  std::uint64_t rest = out.values.size();
  for (const std::uint64_t axis : out.shape) rest = axis > 0 && rest % axis == 0 ? rest / axis : 0;
  if (rest != 1)
    return fmt::format("numbers: {} do not have the shape ({})", out.values.size(),
                       fmt::join(out.shape, ", "));
  return {};
}

// Reads the path of a .npy file of one or two axes, or what kept() made of one. Returns "" or the
// problem.
std::string parse_array(const Value& v, std::size_t axes, std::string& file, NpyArray& out) {
  if (is_kept(v)) {
    if (std::string why = parse_kept(v, file, out); !why.empty()) return why;
  } else {
    file = v.text();
    try {
      if (axes == 1)
        out.values = read_npy_vector(file), out.shape = {out.values.size()};
      else
        out = read_npy_array(file);
    } catch (const RunError& e) {
      return e.what();
    }
  }
  if (out.shape.size() == axes) return {};
  return fmt::format("{}: has the shape ({}), not {}", file, fmt::join(out.shape, ", "),
                     axes == 1 ? "one dimension" : "two dimensions");
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
  double number = 0;
  if (!is_kept(v) && (!v.is_scalar() || detail::parse_number(v, number).empty()))
    return OptionType<std::vector<double>>::parse(v, out.numbers);
  NpyArray array;
  std::string why = parse_array(v, 1, out.file, array);
  out.numbers = std::move(array.values);
  return why;
}

std::string OptionType<MelOptions::Filters>::parse(const Value& v, MelOptions::Filters& out) {
  out = {};
  std::vector<std::uint64_t> shape;
  if (is_kept(v) || (v.is_scalar() && !v.is_null())) {
    NpyArray array;
    if (std::string why = parse_array(v, 2, out.file, array); !why.empty()) return why;
    out.numbers = std::move(array.values);
    shape = std::move(array.shape);
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
    return fmt::format("{} {}", detail::describe_value(v),
                       not_one_of(v.text(), choices(), "`melflow stages --presets`"));
  out.preset = found;
  return {};
}

void MelStageOptions::keep_files(Value& settings) const {
  const auto& [bank, rows, columns_, file] = mel.filters;
  if (!file.empty()) settings.set("filters", kept(file, bank, {rows, columns_}));
  const auto& [window, of_window] = mel.window_values;
  if (!of_window.empty())
    settings.set("window_values", kept(of_window, window, {static_cast<int>(window.size())}));
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
          "and after mel (docs/features.md); options in the node take precedence; not set or none: "
          "the defaults in this list")
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
    set_range(f, row.range);
    if (const auto& [what, are_met] = row.needs; are_met != nullptr)
      f.used_with(std::string(what), [this, met = are_met] { return met(resolved()); });
  }
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
  if (preset.preset == nullptr) return {};
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
  if (preset.preset == nullptr || !preset.preset->has_fixed_times) return {};
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
  const int theirs = preset.preset == nullptr ? 0 : preset.preset->window_seconds;
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
  const MelOptions same = melflow::canonical(options);
  Value out = recorded(same);
  if (out.find("window_values") != nullptr)
    out.set("window_values", Value::scalar(hash(same.window_values.numbers), {}, true));
  if (out.find("filters") != nullptr)
    out.set("filters", Value::scalar(hash(filter_matrix(same)), {}, true));
  return out;
}

}  // namespace melflow
