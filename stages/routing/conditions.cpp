#include "stages/routing/conditions.h"

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "pipeline/base/near_names.h"
#include "pipeline/base/sentences.h"
#include "pipeline/base/text.h"
#include "stages/manifest.h"
#include "stages/routing/amount.h"

namespace melflow {
namespace {

struct Known {
  const char* name;
  Fact fact;
  bool is_number;
};
constexpr Known kKnown[] = {{"path", Fact::path, false},        {"label", Fact::label, false},
                            {"split", Fact::split, false},      {"size", Fact::size, true},
                            {"duration", Fact::duration, true}, {"rate", Fact::sample_rate, true},
                            {"channels", Fact::channels, true}, {"peak", Fact::peak, true},
                            {"column.", Fact::column, false},   {"target.", Fact::target, true},
                            {"quality.", Fact::measure, true}};

std::vector<std::string> measure_names() {
  std::vector<std::string> out;
  for (const MeasureInfo& m : measures()) out.emplace_back(m.name);
  return out;
}

const Known* known(const std::string& key) {
  for (const Known& k : kKnown) {
    const std::string_view name = k.name;
    if (name.ends_with('.') ? key.starts_with(name) && key.size() > name.size() : key == name)
      return &k;
  }
  return nullptr;
}

// Returns the texts of a scalar or a list of them; nothing for anything else.
std::optional<std::vector<std::string>> texts_of(const Value& v) {
  if (v.is_scalar()) return std::vector<std::string>{v.text()};
  if (!v.is_list() || v.items().empty()) return std::nullopt;
  std::vector<std::string> out;
  for (const Value& item : v.items()) {
    if (!item.is_scalar()) return std::nullopt;
    out.push_back(item.text());
  }
  return out;
}

std::string example_range(Fact fact) {
  switch (fact) {
    case Fact::size:
      return "1KiB..2GiB";
    case Fact::duration:
      return "500ms..2min";
    case Fact::peak:
      return "-40dB..-1dB";
    case Fact::sample_rate:
      return "8kHz..16kHz";
    case Fact::share:
      return "0%..5%";
    case Fact::decibels:
      return "-60dB..-20dB";
    default:
      return "1..5";
  }
}

}  // namespace

std::string Conditions::parse(const Value& v, Conditions& out) {
  if (!v.is_map())
    return detail::is_not(v, "a map of conditions such as {duration: \"> 15s\", label: dog}");
  if (v.entries().empty())
    return "has no condition; write some, such as {duration: \"> 15s\", label: dog}";
  Conditions read;
  read.written_ = v;
  for (const Value::Entry& e : v.entries()) {
    const Known* what = known(e.key);
    if (what == nullptr)
      return fmt::format(
          "'{}' is not a property of a file{}; the properties are path, label, split, size, "
          "duration, rate, channels, peak, column.NAME, target.NAME and quality.NAME",
          excerpt(e.key),
          did_you_mean(e.key,
                       {"path", "label", "split", "size", "duration", "rate", "channels", "peak"}));
    Condition c;
    c.key = e.key;
    c.fact = what->fact;
    if (std::string_view(what->name).ends_with('.'))
      c.name = e.key.substr(std::string_view(what->name).size());
    c.amounts = c.fact;
    if (c.fact == Fact::measure) {
      const MeasureInfo* const measure = measure_named(c.name);
      if (measure == nullptr)
        return fmt::format("quality: '{}' {}", excerpt(c.name),
                           not_one_of(c.name, measure_names(), "docs/quality.md"));
      c.amounts = amounts_of(measure->unit);
    }
    const auto texts = texts_of(e.value);
    if (texts) c.wanted = fmt::format("{}", fmt::join(*texts, " or "));
    std::string why = what->is_number ? parse_number(e.value, c) : parse_text(e.value, c);
    if (!why.empty()) return excerpt(e.key) + ": " + why;
    read.list_.push_back(std::move(c));
  }
  out = std::move(read);
  return {};
}

std::string Conditions::parse_number(const Value& v, Condition& out) {
  constexpr double kNoLimit = std::numeric_limits<double>::infinity();
  const char* const example = out.amounts == Fact::duration      ? R"("> 15s", 500ms..2min)"
                              : out.amounts == Fact::size        ? R"("< 5MiB", 1KiB..2GiB)"
                              : out.amounts == Fact::sample_rate ? R"(16kHz, ">= 8000")"
                              : out.amounts == Fact::channels    ? R"(1, "> 2", 1..2)"
                              : out.amounts == Fact::peak  ? R"("< 0.999", "> -60dB", -40dB..-1dB)"
                              : out.amounts == Fact::share ? R"("< 1%", 0..0.5)"
                              : out.amounts == Fact::decibels ? R"("> 15dB", -60dB..-20dB)"
                                                              : R"("> 0.5", 1..5)";
  const auto bad = [&](const std::string& text, std::initializer_list<std::string_view> amounts) {
    const std::string meant = meant_range(out.amounts, text);
    if (meant.empty())
      for (const std::string_view one : amounts)
        if (std::string why = why_no_amount(out.key, out.amounts, one); !why.empty()) return why;
    if (out.fact == Fact::channels && (text == "stereo" || text == "mono"))
      return excerpt(text) + " is not a number of channels; write 2 for stereo, 1 for mono";
    return fmt::format(
        "'{}' is not a condition on a number such as {}; a condition is a number, a number after "
        "<, <=, > or >=, a range LOW..HIGH with both ends, or a list of these, of which one has to "
        "hold{}",
        excerpt(text), example, meant.empty() ? "" : did_you_mean(meant));
  };
  const auto no_unit = [&](const std::string& text, std::string_view from, std::string_view to) {
    const std::string meant = meant_range(out.amounts, fmt::format("{}-{}", from, to));
    return fmt::format("{} has a unit at one end only; write it at both, as in {}", excerpt(text),
                       !meant.empty() ? meant : example_range(out.amounts));
  };
  const auto texts = texts_of(v);
  if (!texts) return detail::is_not(v, fmt::format("a condition on a number such as {}", example));
  for (const std::string& text : *texts) {
    std::string_view rest = trimmed(text);
    if (rest == "unknown" && v.is_list() && texts->size() > 1) {
      out.or_unknown = true;
      continue;
    }
    Range range{-kNoLimit, kNoLimit};
    if (const std::size_t dots = rest.find(".."); dots != rest.npos) {
      if (rest.substr(dots).starts_with("...")) return bad(text, {});  // may mean ..15s or .15s
      const std::string_view from = trimmed(rest.substr(0, dots)),
                             to = trimmed(rest.substr(dots + 2));
      const auto low = amount(out.amounts, from), high = amount(out.amounts, to);
      if ((low && to.empty()) || (high && from.empty()))
        return fmt::format("{} has one end only; write \"{} {}\"", excerpt(text),
                           low ? ">=" : "<=", excerpt(low ? from : to));
      if (!low || !high) return bad(text, {from, to});
      if (lacks_a_unit(out.amounts, from, to)) return no_unit(text, from, to);
      if (*low > *high)
        return fmt::format("{} ends before it begins; write {}", excerpt(text),
                           range_text(excerpt(to), excerpt(from)));
      range = {*low, *high};
    } else {
      const bool is_below = rest.starts_with('<'), is_above = rest.starts_with('>');
      if (is_below || is_above) rest.remove_prefix(1);
      const bool with_it = rest.starts_with('=');
      if (with_it && (is_below || is_above)) rest.remove_prefix(1);
      const auto number = amount(out.amounts, trimmed(rest));
      if (!number) return bad(text, {trimmed(rest)});
      if (is_below) range.high = *number, range.with_high = with_it;
      if (is_above) range.low = *number, range.with_low = with_it;
      if (!is_below && !is_above) range = {*number, *number};
    }
    out.ranges.push_back(range);
  }
  // Ranges such as "> 1s" and "< 15s", of which every length satisfies one.
  double low = kNoLimit, high = -kNoLimit;
  for (const Range& r : out.ranges) {
    if (r.low == -kNoLimit) high = std::max(high, r.high);
    if (r.high == kNoLimit) low = std::min(low, r.low);
  }
  if (low < high)
    return fmt::format(
        "every {} meets this list, since one condition is enough; to require both write a range, "
        "such as {}",
        out.key, example_range(out.amounts));
  return {};
}

std::string Conditions::parse_text(const Value& v, Condition& out) {
  const auto texts = texts_of(v);
  if (!texts)
    return detail::is_not(v, "a string or a list of strings") + "; \"!dog\" means any but dog";
  for (const std::string& text : *texts) {
    Pattern pattern;
    std::string_view rest = text;
    if ((pattern.is_excluded = rest.starts_with('!'))) rest.remove_prefix(1);
    pattern.text = rest;
    if (rest.find_first_of("*?") != rest.npos) pattern.glob.emplace(rest);
    out.patterns.push_back(std::move(pattern));
  }
  const auto excludes = [](const Pattern& p) { return p.is_excluded; };
  if (std::any_of(out.patterns.begin(), out.patterns.end(), excludes) &&
      !std::all_of(out.patterns.begin(), out.patterns.end(), excludes))
    return "some texts have ! and some do not; list only what is wanted, or only what is not (with "
           "!)";
  return {};
}

std::string Conditions::failing(const KnownFacts& facts, Undecided undecided) const {
  for (const Condition& c : list_)
    if (std::string why = failing(c, facts, undecided); !why.empty()) return why;
  return {};
}

// Further blocks can only raise the peak.
std::string Conditions::failing_peak(const Condition& c, const KnownFacts& facts,
                                     Undecided undecided) {
  constexpr double kNoLimit = std::numeric_limits<double>::infinity();
  const double peak = facts.number(Fact::peak, "").value_or(0);
  const std::string text = amount_text(Fact::peak, peak);
  const bool will_hold = std::any_of(c.ranges.begin(), c.ranges.end(), [&](const Range& r) {
    return r.high == kNoLimit && r.has(peak);
  });
  if (will_hold) return {};
  if (std::all_of(c.ranges.begin(), c.ranges.end(),
                  [&](const Range& r) { return r.is_below(peak); }))
    return fmt::format("peak is {} or more, not {}", text, c.wanted);
  if (undecided == Undecided::holds) return {};
  return fmt::format(
      "peak is not known: it is {} in the first block, and the file has more (decode.block)", text);
}

std::string Conditions::failing(const Condition& c, const KnownFacts& facts, Undecided undecided) {
  if (c.fact == Fact::peak && !facts.is_peak_whole()) return failing_peak(c, facts, undecided);
  if (c.fact == Fact::measure && !facts.is_at_end() && undecided == Undecided::holds) return {};
  if (c.patterns.empty()) {
    const auto number = facts.number(c.fact, c.name);
    if (!number && c.or_unknown) return {};
    if (!number)
      return fmt::format("{} is not known{}", c.key,
                         facts.is_promised(c.fact)
                             ? ": the header does not say it; segment.min_length and max_length go "
                               "by what is there"
                             : "");
    const bool holds = std::any_of(c.ranges.begin(), c.ranges.end(),
                                   [&](const Range& r) { return r.has(*number); });
    return holds ? ""
                 : fmt::format("{} is {}{}, not {}", c.key, amount_text(c.amounts, *number),
                               facts.is_promised(c.fact) ? " by its header" : "", c.wanted);
  }
  const std::vector<std::string> texts = facts.texts(c.fact, c.name);
  const auto is_met = [&](const Pattern& p) {
    return std::any_of(texts.begin(), texts.end(), [&](const std::string& text) {
      return p.glob ? p.glob->matches(text) : text == p.text;
    });
  };
  const bool excludes = c.patterns.front().is_excluded;
  const bool is_any_met = std::any_of(c.patterns.begin(), c.patterns.end(), is_met);
  if (is_any_met != excludes) return {};
  if (c.fact == Fact::path) return fmt::format("path is not {}", c.wanted);
  return fmt::format("{} is {}, not {}", c.key,
                     texts.empty() ? "none" : fmt::format("{}", fmt::join(texts, ", ")), c.wanted);
}

std::string Conditions::remark() const {
  for (const Condition& c : list_) {
    const bool is_length = c.fact == Fact::duration || c.fact == Fact::size;
    const bool are_exact = std::all_of(c.ranges.begin(), c.ranges.end(),
                                       [](const Range& r) { return r.low == r.high; });
    if (!is_length || c.ranges.size() < 2 || !are_exact || c.or_unknown) continue;
    const std::vector<Value>& items = written_.find(c.key)->items();
    const auto [least, greatest] =
        std::minmax_element(c.ranges.begin(), c.ranges.end(),
                            [](const Range& a, const Range& b) { return a.low < b.low; });
    const auto text = [&](auto range) {
      return std::string(trimmed(items[static_cast<std::size_t>(range - c.ranges.begin())].text()));
    };
    std::string low = text(least), high = text(greatest);
    if (lacks_a_unit(c.fact, low, high))
      low = with_unit(c.fact, low), high = with_unit(c.fact, high);
    return fmt::format("{}: a list means these exact values; write {} for a range", c.key,
                       range_text(excerpt(low), excerpt(high)));
  }
  return {};
}

bool Conditions::are_of_content() const {
  return std::all_of(list_.begin(), list_.end(),
                     [](const Condition& c) { return RoutingFacts::is_of_content(c.fact); });
}

bool Conditions::needs_peak() const {
  return std::any_of(list_.begin(), list_.end(),
                     [](const Condition& c) { return c.fact == Fact::peak; });
}

std::string Conditions::needs_measure() const {
  for (const Condition& c : list_)
    if (c.fact == Fact::measure) return c.key;
  return {};
}

std::string Conditions::not_measured(const MeasureSet& measured) const {
  for (const Condition& c : list_) {
    if (c.fact != Fact::measure ||
        measured[static_cast<std::size_t>(measure_of(*measure_named(c.name)))])
      continue;
    if (measured.none())
      return fmt::format(
          "{}: nothing before this node measures recordings; put a node of the stage quality "
          "behind decode",
          c.key);
    return fmt::format("{0}: the quality node before does not measure it; add {1} to its measures",
                       c.key, c.name);
  }
  return {};
}

std::string Conditions::needs_utterances() const {
  for (const Condition& c : list_)
    if (c.fact != Fact::path && c.fact != Fact::size) return c.key;
  return {};
}

std::string Conditions::not_in(const ManifestFields& fields) const {
  const auto lacks = [](const Condition& c, const std::vector<std::string>& there,
                        const char* option) -> std::string {
    if (std::find(there.begin(), there.end(), c.name) != there.end()) return {};
    if (there.empty())
      return fmt::format("{0}: the source lists no {1}; write {1}: [{2}] in the file_list node",
                         c.key, option, c.name);
    const std::string near = did_you_mean(c.name, there);
    return fmt::format("{0}: the source has no '{2}' among its {1} ({3}){4}", c.key, option, c.name,
                       fmt::join(there, ", "),
                       near.empty() ? "; add it to them in the file_list node" : near);
  };
  for (const Condition& c : list_) {
    std::string out;
    if (c.fact == Fact::label && !fields.has_labels)
      out =
          "label: the files have no labels; write labels in the file_list node, such as labels: "
          "parent_dir";
    if (c.fact == Fact::split && !fields.has_splits)
      out =
          "split: the files have no splits; write splits in the file_list node, such as splits: "
          "top_dir";
    if (c.fact == Fact::column) out = lacks(c, fields.columns, "columns");
    if (c.fact == Fact::target) out = lacks(c, fields.targets, "targets");
    if (c.fact == Fact::measure && c.name == info_of(Measure::seconds_per_character).name &&
        fields.columns.empty())
      out = c.key + ": the source lists no texts; write columns: [text] in the file_list node";
    if (!out.empty()) return out;
  }
  return {};
}

std::string Conditions::needs_samples() const {
  for (const Condition& c : list_)
    if (RoutingFacts::needs_samples(c.fact)) return c.key;
  return {};
}

}  // namespace melflow
