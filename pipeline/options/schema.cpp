#include "pipeline/options/schema.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "pipeline/base/sentences.h"

namespace melflow {
namespace {

// The unit of a number, to append to a text: the one in brackets in the description, "sample rate
// [Hz]", or the type's; "" for none.
std::string unit_text(const Field& f) {
  for (const char* unit : {"samples", "frames", "Hz", "dB", "ms", "s"})
    if (f.doc.find(fmt::format("[{}]", unit)) != f.doc.npos) return fmt::format(" {}", unit);
  return f.type.starts_with("samples")       ? " samples"
         : f.type.starts_with("sample rate") ? " Hz"
                                             : "";
}

// What to write in place of a time with a unit, "2min", for a number of seconds; "" for other
// options and values.
std::string seconds_of(const Field& f, const Value& refused) {
  const bool is_whole = f.type == "integer";
  const auto read = detail::number_and_unit(refused);
  if (!read || (!is_whole && f.type != "number") || unit_text(f) != " s") return {};
  for (const auto& [unit, seconds] :
       {std::pair{"ms", 1e-3}, {"s", 1.0}, {"min", 60.0}, {"h", 3600.0}})
    if (const double value = read->first * seconds; read->second == unit)
      return is_whole && value != std::floor(value) ? "" : number_text(value);
  return {};
}

}  // namespace

std::string Field::allowed() const {
  if (!choices.empty()) return fmt::format("{}", fmt::join(choices, ", "));
  const auto text = [this](double v) {
    constexpr double kGigabyte = 1e9;  // 4GB is not a whole number of MiB
    if (type.starts_with("size") && v > 0 && std::fmod(v, kGigabyte) == 0)
      return fmt::format("{:.0f}GB", v / kGigabyte);
    if (type.starts_with("size")) return fmt::format("{}", Bytes{static_cast<std::uint64_t>(v)});
    const bool is_plain = v == std::floor(v) && std::abs(v) < 1e8;
    return is_plain ? std::to_string(static_cast<std::int64_t>(v)) : number_text(v);
  };
  const std::string unit = unit_text(*this);
  if (lowest && highest && lowest_exclusive)
    return fmt::format("more than {}, at most {}{}", text(*lowest), text(*highest), unit);
  if (lowest && highest) return fmt::format("{} to {}{}", text(*lowest), text(*highest), unit);
  if (lowest)
    return fmt::format("{} {}{}", lowest_exclusive ? "more than" : "at least", text(*lowest), unit);
  return {};
}

std::string Field::check_range(double value) const {
  const bool low = lowest && (lowest_exclusive ? value <= *lowest : value < *lowest);
  if (!low && !(highest && value > *highest) && !std::isnan(value)) return {};
  const std::string got = type.starts_with("size")
                              ? fmt::format("{}", Bytes{static_cast<std::uint64_t>(value)})
                              : number_text(value);
  const bool is_in_kilohertz = type.starts_with("sample rate") && low && value > 0 &&
                               1000 * value <= highest.value_or(INFINITY);
  const bool lacks_sign = highest && *highest <= 0 && value > 0 && -value >= lowest.value_or(0);
  std::string advice;
  if (is_in_kilohertz) advice = did_you_mean(got + "kHz");
  if (lacks_sign) {
    const std::string unit = unit_text(*this);
    advice = did_you_mean("-" + got + unit.substr(unit.empty() ? 0 : 1));
  }
  return fmt::format("{} is out of range{}; allowed: {}", got, advice, allowed());
}

std::string Field::also_allowed(const Value& refused) const {
  if (const std::string seconds = seconds_of(*this, refused); !seconds.empty())
    return fmt::format(" of seconds; write {}", seconds);
  const bool is_in_quotes = refused.quoted() && !refused.text().empty();
  return is_in_quotes || !choices.empty() || allowed().empty() ? std::string()
                                                               : "; allowed: " + allowed();
}

bool Field::is_default() const {
  const std::string text = to_json(echo_(true));
  return text == default_text || text == implied_;
}

namespace {

// Placeholder in an OtherValue's advice.
constexpr std::string_view kGivenValue = "VALUE";

// Returns advice for a text with typographic quotation marks.
std::string on_quotes(const Value& v) {
  if (!v.is_scalar()) return {};
  for (const char* quote : {"\u201c", "\u201d", "\u201e", "\u2018", "\u2019", "\u00ab", "\u00bb"})
    if (v.text().find(quote) != std::string::npos)
      return fmt::format("; {} is not a quotation mark in YAML: write \" or ', or remove it",
                         quote);
  return {};
}

bool is_meant(const OtherValue& other, const Value& v) {
  if (other.value == "[]") return v.is_list();
  if (other.value == "{}") return v.is_map();
  if (!v.is_scalar()) return false;
  const bool is_ending = other.value.starts_with('*');
  return is_ending ? v.text().ends_with(other.value.substr(1)) : v.text() == other.value;
}

// Corrects "16,000" and "10,5ms"; returns "" for anything but a number with a comma.
std::string without_comma(const std::string& text, bool is_integer) {
  const std::size_t comma = text.find(',');
  const auto is_digit = [&](std::size_t i) {
    return i < text.size() && std::isdigit(static_cast<unsigned char>(text[i])) != 0;
  };
  if (comma == text.npos || comma == 0 || !is_digit(comma - 1) || !is_digit(comma + 1) ||
      !is_digit(0) || text.find(',', comma + 1) != text.npos)
    return {};
  const bool is_thousand =
      is_digit(comma + 2) && is_digit(comma + 3) && !is_digit(comma + 4) && comma <= 3;
  if (is_integer && !is_thousand) return {};
  return text.substr(0, comma) + (is_thousand ? "" : ".") + text.substr(comma + 1);
}

// Returns advice for a list or map instead of one value, a number with a comma, a number for true.
std::string on_form(const Value& v, const std::string& type) {
  const bool takes_one =
      type != "group" && type.find("list") == type.npos && type.find("({") == type.npos;
  if (v.is_map() && type.starts_with("list of") && type.find("map") == type.npos)
    return "; write one value, or several as [A, B]";
  if (!takes_one) return {};
  if (v.is_list())
    return v.items().size() == 1 ? "; write it without the brackets"
                                 : "; write one value, without the brackets";
  if (v.is_map() && v.entries().size() == 1 && v.entries().front().value.is_null())
    return fmt::format(". Did you mean \"${{{}}}\"?", excerpt(v.entries().front().key));
  if (!v.is_scalar()) return {};
  if (type == "true or false" && (v.text() == "1" || v.text() == "0"))
    return did_you_mean(v.text() == "1" ? "true" : "false");
  const std::string meant =
      type.starts_with("choice") ? std::string() : without_comma(v.text(), type == "integer");
  return meant.empty() ? meant : did_you_mean(excerpt(meant));
}

// Replaces VALUE in an advice by the given value. A unit after it, as in "VALUEms", is added only
// to plain numbers. Nullopt if the advice does not apply to the given value.
std::optional<std::string> filled_in(std::string_view advice, const Value& given) {
  double number = 0;
  const bool is_number = given.is_scalar() && detail::parse_number(given, number).empty();
  const bool has_unit = given.is_scalar() && !is_number && detail::number_and_unit(given);
  const std::string text = given.is_scalar() ? excerpt(given.text()) : std::string();
  std::string out;
  int with_unit = 0, without = 0;
  for (std::size_t at; (at = advice.find(kGivenValue)) != advice.npos;) {
    out += fmt::format("{}{}", advice.substr(0, at), text);
    advice.remove_prefix(at + kGivenValue.size());
    const std::size_t unit = std::min(advice.find_first_not_of("ms"), advice.size());
    ++(unit > 0 ? with_unit : without);
    if (!is_number) advice.remove_prefix(unit);
  }
  if (!given.is_scalar() && with_unit + without > 0) return std::nullopt;
  if (with_unit > 0 && !is_number && (!has_unit || without > 0)) return std::nullopt;
  return out.append(advice);
}

// Adds why a value was refused, with advice if it is a known value of other programs.
void add_refused(const Problems& refused, const Value& v, std::span<const OtherValue> others,
                 const Field& field, Problems& problems) {
  const auto other = std::find_if(others.begin(), others.end(), [&](const OtherValue& o) {
    return o.option == field.name && is_meant(o, v);
  });
  for (const Problem& p : refused.sorted()) {
    const char* const own_advice = v.is_list() ? ";" : ". Did you mean";
    if (other == others.end()) {
      problems.add(p.mark, p.message + on_form(v, field.type) + on_quotes(v));
      continue;
    }
    problems.add(p.mark, p.message.substr(0, p.message.find(own_advice)) + "; " +
                             filled_in(other->advice, v).value_or(std::string(other->advice)));
  }
}

}  // namespace

void Schema::read(const Value& map, const std::string& path, Problems& problems) const {
  for (const bool implying : {true, false}) {
    for (const Value::Entry& e : map.entries()) {
      const Field* found = nullptr;
      for (const Field& f : fields_)
        if (f.name == e.key) found = &f;
      if (found == nullptr) {
        if (!implying) {
          std::string advice = advice_on(e.key, {this}, e.value);
          if (advice.empty())
            advice = fmt::format("; the options are {}", fmt::join(names(), ", "));
          problems.add(e.key_mark,
                       fmt::format("{}{}: unknown option{}", path, excerpt(e.key), advice));
        }
        continue;
      }
      if ((found->apply_ != nullptr) != implying) continue;
      Problems refused;
      found->read_(*found, e.value, path, refused);
      add_refused(refused, e.value, other_values_, *found, problems);
      if (!implying) continue;
      found->apply_();
      for (const Field& f : fields_) f.implied_ = to_json(f.echo_(true));
    }
  }
}

void Schema::add_older(Value& map, const std::vector<Field>& fields) {
  for (const Field& field : fields) {
    Value* value = map.find(field.name);
    if (value != nullptr && value->is_map())
      add_older(*value, field.children);
    else if (value == nullptr && field.older)
      map.set(field.name, Value::scalar(*field.older, map.mark()));
  }
}

void Schema::update_stored(Value& map) const {
  add_older(map, fields_);
  std::erase_if(map.entries(), [this](const Value::Entry& e) {
    return std::any_of(other_names_.begin(), other_names_.end(), [&](const OtherName& other) {
      return other.name == e.key && other.here.empty() && other.whose.starts_with("melflow ");
    });
  });
}

void Schema::find_unused(const Value& map, const std::string& path, Problems& remarks) const {
  for (const Value::Entry& e : map.entries())
    for (const Field& f : fields_)
      if (f.name == e.key && !f.is_used() && !f.is_default())
        remarks.add(e.key_mark,
                    fmt::format("{}{}: has no effect without {}; add that, or remove this", path,
                                e.key, f.setting_));
  // A preset from outside (--set has no line) does not change options that the node itself sets.
  for (const Field& preset : fields_) {
    const Value* given = preset.apply_ ? map.find(preset.name) : nullptr;
    if (given == nullptr || !given->mark().file || given->mark().line > 0 ||
        to_json(preset.echo_(true)) == preset.default_text)
      continue;
    std::vector<std::string> kept;
    for (const Value::Entry& e : map.entries())
      for (const Field& f : fields_)
        if (f.name == e.key && !f.apply_ && e.value.mark().line > 0)
          if (const std::string here = to_json(f.echo_(true)); here != f.implied_)
            kept.push_back(fmt::format("{} is {} and not {}", f.name, here, f.implied_));
    if (!kept.empty())
      remarks.add(given->mark(),
                  fmt::format("{0}{1}: {2} leaves what the node itself writes as it is: {3}; set "
                              "these, too, or remove them from the node",
                              path, preset.name, given->text(), fmt::join(kept, ", ")));
  }
}

Value Schema::echo(bool with_tuning) const {
  Value out = Value::map({});
  for (const Field& f : fields_)
    if (with_tuning || !f.is_tuning) out.set(f.name, f.echo_(with_tuning));
  return out;
}

std::vector<std::string> Schema::names() const {
  std::vector<std::string> out;
  for (const Field& f : fields_) out.push_back(f.name);
  return out;
}

namespace {

std::vector<std::span<const OtherName>>& settings_elsewhere() {
  static std::vector<std::span<const OtherName>> all;
  return all;
}

std::string advice_of(const OtherName& other, std::string_view here, const Value& given) {
  std::string out;
  if (!here.empty()) out = fmt::format("; use '{}' instead", here);
  if (const auto how = filled_in(other.how, given); how && !how->empty())
    out += fmt::format("{} {}", out.empty() ? ";" : ":", *how);
  if (!other.whose.empty()) out += fmt::format(" ({} is the name in {})", other.name, other.whose);
  return out;
}

}  // namespace

void add_settings_elsewhere(std::span<const OtherName> names) {
  settings_elsewhere().push_back(names);
}

std::string advice_on(std::string_view key, std::initializer_list<const Schema*> schemas,
                      const Value& given, const std::vector<std::string>& more) {
  std::vector<std::string> names;
  for (const Schema* schema : schemas) {
    for (const OtherName& other : schema->other_names()) {
      if (other.name != key) continue;
      // Some lists cover several stages, whose options differ.
      const std::string_view option = other.here.substr(other.here.find('.') + 1);
      const bool is_own = std::any_of(schema->fields().begin(), schema->fields().end(),
                                      [&](const Field& f) { return f.name == option; });
      return advice_of(other, is_own ? option : other.here, given);
    }
    for (const Field& f : schema->fields()) names.push_back(f.name);
  }
  names.insert(names.end(), more.begin(), more.end());
  for (const auto& elsewhere : settings_elsewhere())
    for (const OtherName& other : elsewhere)
      if (other.name == key) return advice_of(other, other.here, given);
  const std::string_view before = key.substr(0, key.find_first_of(" :="));
  if (before.size() < key.size() && std::find(names.begin(), names.end(), before) != names.end())
    return fmt::format("; write '{}: VALUE' with a space after the ':'", before);
  return did_you_mean(key, names);
}

}  // namespace melflow
