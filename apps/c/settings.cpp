#include "apps/c/settings.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "apps/c/front.h"
#include "stages/features/mel/mel_option_table.h"
#include "stages/features/mel/mel_presets.h"
#include "stages/front_ends.h"

namespace melflow::c_interface {
namespace {

[[noreturn]] void refuse(std::string text) { throw Failure{MELFLOW_BAD_SETTINGS, std::move(text)}; }
[[noreturn]] void lack(std::string text) { throw Failure{MELFLOW_UNSUPPORTED, std::move(text)}; }

// ---- the settings as an output records them, whose text is hashed -------------------------------

template <class T>
std::string json_text(const T& value) {
  if constexpr (std::is_enum_v<T>) {
    const std::string name(name_of(value));
    const bool is_bare =
        name == "true" || name == "false" || name.find_first_not_of("0123456789") == name.npos;
    return is_bare ? name : '"' + name + '"';
  } else if constexpr (std::is_same_v<T, bool>) {
    return value ? "true" : "false";
  } else if constexpr (std::is_arithmetic_v<T>) {
    return shortest(value);
  } else if constexpr (std::is_same_v<T, MelOptions::Reference>) {
    return value.is_max ? "\"max\"" : shortest(value.value);
  } else if constexpr (std::is_same_v<T, std::vector<double>>) {
    std::string out = "[";
    for (const double one : value) out += (out.size() > 1 ? ", " : "") + shortest(one);
    return out + "]";
  } else if constexpr (requires { value.has_value(); }) {
    return value ? json_text(*value) : "null";
  } else {
    return "null";  // window_values and filters, which no front end here has
  }
}

template <class Options>
std::string node_text(std::string_view stage, const Options& options) {
  std::string out = "{\"stage\": \"" + std::string(stage) + '"';
  for (const OptionEntry<Options>& row : option_table<Options>())
    if (row.counts(options))
      std::visit(
          [&](auto member) {
            out += ", \"" + std::string(row.name) + "\": " + json_text(options.*member);
          },
          row.member);
  return out + "}";
}

std::string stages_text(const FrontSettings& s) {
  std::string out =
      "[{\"stage\": \"decode\", \"downmix\": \"mean\", \"fit\": null, \"truncated\": \"tenth\"}, "
      "{\"stage\": \"resample\", \"rate\": " +
      std::to_string(s.mel.sample_rate) + ", \"quality\": \"" + s.resampling +
      "\"}, {\"stage\": \"segment\"";
  if (s.window > 0)
    out += ", \"length\": " + std::to_string(s.window) + ", \"hop\": " + std::to_string(s.window) +
           ", \"tail\": \"pad\"";
  out += "}, " + node_text("mel", canonical(s.mel));
  for (const auto& [stage, options] : s.steps)
    out +=
        ", " + std::visit([&name = stage](const auto& o) { return node_text(name, o); }, options);
  return out + ", {\"stage\": \"hdf5_write\", \"dtype\": \"float32\"}]";
}

std::string hex(std::uint64_t value) {
  std::string out(16, '0');
  for (auto digit = out.rbegin(); value > 0; value >>= 4) *digit++ = "0123456789abcdef"[value & 15];
  return out;
}

// ---- reading ------------------------------------------------------------------------------------

void set(const std::string& stage, auto& options, std::string_view name,
         std::span<const std::string_view> values) {
  if (const std::string why = set_option(options, name, values); !why.empty())
    refuse(stage + "." + std::string(name) + " " + why);
}

// A stage of the JSON: the options with the texts of their values, as in YAML.
struct Node {
  std::string stage;
  std::vector<std::pair<std::string, std::vector<std::string>>> options;

  // The text of an option; `otherwise` if it is not set.
  [[nodiscard]] std::string text(std::string_view name, std::string otherwise = "") const {
    for (const auto& [option, values] : options)
      if (option == name && values.size() == 1 && values.front() != "null") return values.front();
    return otherwise;
  }
  [[nodiscard]] std::int64_t number(std::string_view name, std::int64_t otherwise) const {
    std::int64_t out = otherwise;
    const std::string why = read_option(text(name, std::to_string(otherwise)), out);
    if (!why.empty()) refuse(stage + "." + std::string(name) + " " + why);
    return out;
  }
};

// Collects {"stages": [{"stage": TEXT, OPTION: VALUE or [VALUE, ...], ...}, ...], ...}; anything
// beside `stages` is passed over.
class Reader final : public nlohmann::json_sax<nlohmann::json> {
 public:
  std::vector<Node> nodes;
  bool has_stages = false;

  bool null() override { return value("null"); }
  bool boolean(bool v) override { return value(v ? "true" : "false"); }
  bool number_integer(std::int64_t v) override { return value(std::to_string(v)); }
  bool number_unsigned(std::uint64_t v) override { return value(std::to_string(v)); }
  bool number_float(double, const std::string& text) override { return value(text); }
  bool string(std::string& v) override { return value(std::move(v)); }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override {
    if (is_in_stages() && depth_ == 2) nodes.emplace_back();
    if (is_in_stages() && depth_ > 2) refuse(place() + " is a value, not a map");
    return ++depth_ > 0;
  }
  bool key(std::string& name) override {
    if (depth_ == 1) {
      top_ = std::move(name);
    } else if (is_in_stages() && depth_ == 3) {
      if (name.size() > kMostText) refuse("an option has a long name");
      nodes.back().options.emplace_back(std::move(name), 0);
    }
    return true;
  }
  bool end_object() override { return --depth_ >= 0; }
  bool start_array(std::size_t) override {
    if (depth_ == 1 && top_ == "stages") has_stages = true;
    if (is_in_stages() && depth_ > 3) refuse(place() + " is a list of values, not of lists");
    return ++depth_ > 0;
  }
  bool end_array() override { return --depth_ >= 0; }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& e) override {
    refuse(std::string("no settings in JSON: ") + e.what());
  }

 private:
  static constexpr std::size_t kMostText = 200;

  [[nodiscard]] bool is_in_stages() const { return depth_ >= 2 && top_ == "stages"; }
  [[nodiscard]] std::string place() const {
    if (nodes.empty() || nodes.back().stage.empty() || nodes.back().options.empty())
      return R"(each of `stages` is {"stage": NAME, OPTION: VALUE, ...}: what follows NAME)";
    return nodes.back().stage + "." + nodes.back().options.back().first;
  }
  bool value(std::string text) {
    if (!is_in_stages()) return true;
    if (depth_ < 3) refuse("`stages` is a list of maps");
    Node& node = nodes.back();
    if (depth_ == 3 && node.options.back().first == "stage") {
      node.stage = text.substr(0, kMostText);
      node.options.pop_back();
    } else {
      node.options.back().second.push_back(std::move(text));
    }
    return true;
  }

  std::string top_;
  int depth_ = 0;
};

template <class Options>
void read(const Node& node, Options& options) {
  for (const auto& [name, texts] : node.options) {
    if ((name == "window_values" || name == "filters") && texts != std::vector<std::string>{"null"})
      lack(node.stage + "." + name + ": the JSON has the hash of its values only");
    const std::vector<std::string_view> values(texts.begin(), texts.end());
    set(node.stage, options, name, values);
  }
}

// Reads a stage around the front end; returns false where it is none of these.
bool read_around(const Node& node, FrontSettings& s) {
  if (node.stage == "decode") return true;  // is of files
  if (node.stage == "resample") {
    s.resampling = node.text("quality", s.resampling);
    return true;
  }
  if (node.stage == "segment") {
    s.window = node.number("length", 0);
    if (s.window != 0 && (node.text("tail") != "pad" || node.number("hop", s.window) != s.window))
      lack("segment: this library does not cut recordings; set length with tail: pad, or neither");
    return true;
  }
  const std::string type = node.text("dtype");
  if (type.empty()) return false;  // no sink
  if (type != "float32") lack(node.stage + ".dtype: " + type + ", and rows here are float32");
  return true;
}

std::vector<OptionProblem> check_all(const FrontSettings& s) {
  std::vector<OptionProblem> out = check(s.mel);
  if (s.window < 0) out.push_back({"length", "length is negative"});
  return out;
}

// Checks numbers against the ranges of the table; of mel check() does so.
template <class Options>
void check_ranges(const std::string& stage, const Options& options) {
  for (const OptionEntry<Options>& row : option_table<Options>()) {
    const auto require = [&](double value) {
      if (!row.range.has(value))
        refuse(stage + "." + std::string(row.name) + " is " + shortest(value) +
               ", which is out of its range");
    };
    std::visit(
        [&](auto member) {
          const auto& value = options.*member;
          using T = std::decay_t<decltype(value)>;
          if constexpr (std::is_same_v<T, int> || std::is_same_v<T, double>)
            require(value);
          else if constexpr (requires { value.has_value(); })
            if (value) require(*value);
        },
        row.member);
  }
}

}  // namespace

FrontSettings settings_of_preset(std::string_view name) {
  const FrontEnd* of = find_front_end(name);
  if (of == nullptr)
    refuse("'" + std::string(name.substr(0, 100)) +
           "' is no preset; `melflow stages --presets` lists them");
  FrontSettings s;
  s.name = "preset " + std::string(name);
  if (const MelPreset* preset = find_preset(name)) {
    s.mel = preset->options;
    s.has_fixed_times = preset->has_fixed_times;
  }
  for (const FrontEndNode& node : of->nodes()) {
    const std::string stage(node.stage);
    if (stage == "mel" || stage == "segment") continue;
    std::optional<RowStepOptions> step = row_step_of(stage);
    if (!step) {
      if (s.only_in_graph.empty()) s.only_in_graph = stage;
      continue;
    }
    for (const auto& [option, value] : node.options)
      std::visit(
          [&, o = option, v = value](auto& options) {
            set(stage, options, o, {&v, 1});
          },
          *step);
    s.steps.emplace_back(stage, *step);
  }
  return s;
}

FrontSettings settings_of_json(std::string_view text) {
  constexpr std::size_t kMost = 1 << 20;  // bytes: settings have a few thousand
  if (text.size() > kMost) refuse("the JSON has more than 1 MiB");
  FrontSettings s;
  s.name = "the JSON";
  Reader json;
  nlohmann::json::sax_parse(text, &json);
  if (!json.has_stages)
    refuse("there is no list `stages`, as in the JSON of melflow.Features.to_json()");
  bool has_mel = false;
  for (const Node& node : json.nodes) {
    if (node.stage.empty()) refuse("one of `stages` has no name `stage`");
    if (node.stage == "mel") {
      if (has_mel) lack("there are two stages mel, and a front end here has one");
      has_mel = true;
      // Recorded settings have pad in the place of center, and neither where snip_edges decides.
      s.mel.center = node.text("snip_edges").empty();
      read(node, s.mel);
    } else if (std::optional<RowStepOptions> step = row_step_of(node.stage); step && has_mel) {
      std::visit([&](auto& options) { read(node, options); }, *step);
      s.steps.emplace_back(node.stage, *step);
    } else if (!read_around(node, s)) {
      if (has_mel) lack("the stage " + node.stage + " is not in a front end here");
      if (s.only_in_graph.empty()) s.only_in_graph = node.stage;
    }
  }
  if (!has_mel && s.only_in_graph.empty()) refuse("there is no stage mel among `stages`");
  return s;
}

MadeFront make_front(FrontSettings s) {
  for (const OptionProblem& p : check_all(s)) refuse("mel." + p.option + ": " + p.message);
  auto plan = std::make_shared<const MelPlan>(s.mel);
  auto front = std::make_shared<RowFront>(std::make_shared<const MelKernel>(plan));
  MadeFront made;
  if (const MelOptionRow* row = needs_whole(s.mel)) {
    made.whole_option = "mel." + std::string(row->name);
    made.whole = row->whole.instead.data();
  }
  const UtteranceSteps finish = UtteranceSteps::of_mel(s.mel);
  for (const auto& step : finish.steps()) {
    auto ordered = std::dynamic_pointer_cast<const OrderedStep>(step);
    front->add(ordered != nullptr ? std::move(ordered) : at_the_end(step));
  }
  RowShape rows{plan->columns(), plan->energy_column(),
                s.mel.output == MelOptions::Output::mel ? "band" : "bin", unit_of(s.mel),
                static_cast<double>(s.mel.sample_rate) / plan->hop()};
  for (auto& [stage, options] : s.steps)
    std::visit(
        [&, &name = stage](auto& o) {
          check_ranges(name, o);
          for (const OptionProblem& p : check(o, rows))
            refuse(name + (p.option.empty() ? " " : "." + p.option + " ") + p.without_name());
          o = canonical(o, rows);
          const auto step = make_step(o, rows);
          auto ordered = std::dynamic_pointer_cast<const OrderedStep>(step);
          front->add(ordered != nullptr ? std::move(ordered) : at_the_end(step));
        },
        options);
  const std::string text = stages_text(s);
  const XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
  made.fingerprint = hex(hash.high64) + hex(hash.low64);
  if (s.mel.dither != 0) made.noise_key = XXH3_64bits("", 0);
  made.row_seconds = 1 / rows.per_second;
  made.rows = std::move(front);
  return made;
}

}  // namespace melflow::c_interface
