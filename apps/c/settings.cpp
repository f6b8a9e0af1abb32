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
  std::vector<std::string> nodes = s.before;
  if (nodes.empty())
    nodes = {R"({"stage": "decode", "downmix": "mean", "fit": null, "truncated": "tenth"})",
             R"({"stage": "resample", "rate": )" + std::to_string(s.mel.sample_rate) +
                 R"(, "quality": "high"})",
             R"({"stage": "segment"})"};
  nodes.push_back(node_text("mel", canonical(s.mel)));
  for (const auto& [stage, options] : s.steps)
    nodes.push_back(
        std::visit([&name = stage](const auto& o) { return node_text(name, o); }, options));
  nodes.insert(nodes.end(), s.after.begin(), s.after.end());
  if (s.after.empty()) nodes.emplace_back(R"({"stage": "hdf5_write", "dtype": "float32"})");
  std::string out;
  for (const std::string& node : nodes) out += (out.empty() ? "[" : ", ") + node;
  return out + "]";
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

bool reads_as_number(const std::string& text) {
  double number = 0;
  return text == "true" || text == "false" || text == "null" || read_option(text, number).empty();
}

// Collects {"stages": [{"stage": TEXT, OPTION: VALUE or [VALUE, ...], ...}, ...], ...}; anything
// beside `stages` is passed over.
class Reader final : public nlohmann::json_sax<nlohmann::json> {
 public:
  std::vector<SettingsNode> nodes;
  bool has_stages = false;

  bool null() override { return value("null", false); }
  bool boolean(bool v) override { return value(v ? "true" : "false", false); }
  bool number_integer(std::int64_t v) override { return value(std::to_string(v), false); }
  bool number_unsigned(std::uint64_t v) override { return value(std::to_string(v), false); }
  bool number_float(double, const std::string& text) override { return value(text, false); }
  bool string(std::string& v) override { return value(std::move(v), true); }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override {
    if (is_stages() || (is_in_stages() && depth_ != 2)) refuse(form());
    if (is_in_stages()) nodes.emplace_back();
    return ++depth_ > 0;
  }
  bool key(std::string& name) override {
    if (depth_ == 1) {
      if (name == "stages" && has_stages) refuse("`stages` is given twice");
      top_ = std::move(name);
    } else if (is_in_stages()) {
      if (name.size() > kMostText) refuse("an option has a long name");
      nodes.back().options.push_back({std::move(name), {}});
    }
    return true;
  }
  bool end_object() override { return end(); }
  bool start_array(std::size_t) override {
    if (is_stages()) has_stages = true;
    if (is_in_stages() && depth_ != 3) refuse(form());
    if (is_in_stages()) nodes.back().options.back().is_list = true;
    return ++depth_ > 0;
  }
  bool end_array() override { return end(); }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& e) override {
    refuse(std::string("no settings in JSON: ") + e.what());
  }

 private:
  static constexpr std::size_t kMostText = 200;

  // Whether the value of `stages` comes next, and whether it is open.
  [[nodiscard]] bool is_stages() const { return depth_ == 1 && top_ == "stages"; }
  [[nodiscard]] bool is_in_stages() const { return depth_ >= 2 && top_ == "stages"; }
  static std::string form() {
    return R"(`stages` is a list of {"stage": NAME, OPTION: VALUE or [VALUE, ...], ...})";
  }
  bool value(std::string text, bool is_quoted) {
    if (is_stages() || (is_in_stages() && depth_ < 3)) refuse(form());
    if (is_in_stages()) nodes.back().options.back().values.push_back({std::move(text), is_quoted});
    return true;
  }
  bool end() {
    --depth_;
    if (depth_ == 2 && top_ == "stages" && !nodes.empty()) close(nodes.back());
    return true;
  }
  // Takes the stage's name out of its options.
  static void close(SettingsNode& node) {
    for (auto o = node.options.begin(); o != node.options.end(); ++o)
      if (o->name == "stage" && o->values.size() == 1 && !o->is_list) {
        node.stage = o->values.front().text.substr(0, kMostText);
        node.options.erase(o);
        return;
      }
    refuse(form());
  }

  std::string top_;
  int depth_ = 0;
};

template <class Options>
void read(const SettingsNode& node, Options& options) {
  for (const auto& [name, values, is_list] : node.options) {
    const bool is_null = values.size() == 1 && values.front().text == "null";
    if ((name == "window_values" || name == "filters") && !is_null)
      lack(node.stage + "." + name + ": the JSON has the hash of its values only");
    std::vector<std::string_view> texts;
    for (const auto& [text, is_quoted] : values) {
      if (is_quoted && reads_as_number(text))
        refuse(node.stage + "." + name + ": '" + text + "' is a text because of its quotes");
      texts.push_back(text);
    }
    set(node.stage, options, name, texts);
  }
}

void check_names(const SettingsNode& node, std::initializer_list<std::string_view> known) {
  for (const auto& option : node.options)
    if (std::find(known.begin(), known.end(), option.name) == known.end() ||
        option.values.size() != 1)
      refuse(node.stage + "." + option.name.substr(0, 100) + " is no option of recorded settings");
}

std::string choice(const SettingsNode& node, std::string_view name, std::string otherwise,
                   std::initializer_list<std::string_view> all) {
  std::string out = node.text(name, std::move(otherwise));
  if (std::find(all.begin(), all.end(), out) != all.end()) return out;
  std::string allowed;
  for (const std::string_view one : all) allowed.append(allowed.empty() ? "" : ", ").append(one);
  refuse(node.stage + "." + std::string(name) + ": " + out.substr(0, 100) + " is none of " +
         allowed);
}

int number(const SettingsNode& node, std::string_view name, int otherwise) {
  int out = otherwise;
  const std::string text = node.text(name, std::to_string(otherwise));
  if (const std::string why = read_option(text, out); !why.empty() || out < 0)
    refuse(node.stage + "." + std::string(name) + ": " + text.substr(0, 100) +
           " is no whole number from 0 to 2147483647");
  return out;
}

// Reads a stage before mel that changes no samples at its rate; returns false where it is none of
// these.
bool read_before(const SettingsNode& node, FrontSettings& s) {
  if (node.stage == "decode") {
    check_names(node, {"downmix", "fit", "truncated"});
  } else if (node.stage == "resample") {
    check_names(node, {"rate", "quality", "length"});
    s.resampling.quality =
        choice(node, "quality", "high", {"quick", "low", "medium", "high", "very_high"});
    s.resampling.length = choice(node, "length", "round", {"round", "ceil", "librosa"});
  } else if (node.stage == "segment") {
    check_names(node, {"length", "hop", "tail"});
    s.window = number(node, "length", 0);
    if (s.window != 0 && (node.text("tail") != "pad" || number(node, "hop", 0) != s.window))
      lack("segment: this library does not cut recordings; set length with tail: pad, or neither");
  } else {
    return false;
  }
  s.before.push_back(node.json());
  return true;
}

// Checks numbers against the ranges of the table; of mel check() does so.
template <class Options>
void check_ranges(const std::string& stage, const Options& options) {
  for (const OptionEntry<Options>& row : option_table<Options>()) {
    const auto require = [&](double value) {
      if (!row.range.has(value))
        refuse(stage + "." + std::string(row.name) + " is " + shortest(value) +
               "; allowed: " + allowed(row));
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
    refuse("'" + std::string(name.substr(0, 100)) + "' is no preset; `melflow presets` lists them");
  FrontSettings s;
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

std::string SettingsNode::text(std::string_view name, std::string otherwise) const {
  for (const Option& o : options)
    if (o.name == name && o.values.size() == 1 && o.values.front().text != "null")
      return o.values.front().text;
  return otherwise;
}

std::string SettingsNode::json() const {
  const auto quoted = [](const std::string& text) {
    if (text.find_first_of("\"\\\n") != text.npos) refuse("a text in the settings has quotes");
    return '"' + text + '"';
  };
  std::string out = R"({"stage": )" + quoted(stage);
  for (const Option& o : options) {
    std::string all;
    for (const Value& v : o.values)
      all.append(all.empty() ? "" : ", ").append(v.is_quoted ? quoted(v.text) : v.text);
    out.append(", ").append(quoted(o.name)).append(": ");
    out.append(o.is_list ? "[" + all + "]" : all);
  }
  return out + "}";
}

std::vector<SettingsNode> nodes_of_json(std::string_view text) {
  constexpr std::size_t kMost = 1 << 20;  // bytes: settings have a few thousand
  if (text.size() > kMost) refuse("the JSON has more than 1 MiB");
  Reader json;
  nlohmann::json::sax_parse(text, &json);
  if (!json.has_stages)
    refuse("there is no list `stages`, as in the JSON of melflow.Features.to_json()");
  return std::move(json.nodes);
}

FrontSettings settings_of_json(std::string_view text) {
  FrontSettings s;
  bool has_mel = false, has_end = false;
  int rate = 0;
  for (const SettingsNode& node : nodes_of_json(text)) {
    if (has_end) lack("the stage " + node.stage + " after the output is not in a front end here");
    if (node.stage == "mel") {
      if (has_mel) lack("there are two stages mel, and a front end here has one");
      has_mel = true;
      // Recorded settings have pad in the place of center, and neither where snip_edges decides.
      s.mel.center = node.text("snip_edges").empty();
      read(node, s.mel);
    } else if (std::optional<RowStepOptions> step = row_step_of(node.stage); step && has_mel) {
      std::visit([&](auto& options) { read(node, options); }, *step);
      s.steps.emplace_back(node.stage, *step);
    } else if (const std::string type = node.text("dtype"); !type.empty()) {
      if (type != "float32") lack(node.stage + ".dtype: " + type + ", and rows here are float32");
      has_end = true;
      s.after.push_back(node.json());
    } else if (has_mel) {
      lack("the stage " + node.stage + " after mel is not in a front end here");
    } else if (!read_before(node, s) && s.only_in_graph.empty()) {
      s.only_in_graph = node.stage;
    }
    if (node.stage == "resample") rate = number(node, "rate", 0);
  }
  if (!has_mel && s.only_in_graph.empty()) refuse("there is no stage mel among `stages`");
  if (has_mel && rate != 0 && rate != s.mel.sample_rate)
    refuse("resample.rate is " + std::to_string(rate) + ", and mel.sample_rate " +
           std::to_string(s.mel.sample_rate));
  return s;
}

MadeFront make_front(FrontSettings s) {
  for (const OptionProblem& p : check(s.mel)) refuse("mel." + p.option + ": " + p.message);
  auto plan = std::make_shared<const MelPlan>(s.mel);
  auto front = std::make_shared<RowFront>(std::make_shared<const MelKernel>(plan));
  MadeFront made;
  if (const MelOptionRow* row = needs_whole(s.mel)) {
    made.needs_whole = "mel." + std::string(row->name) + " needs the whole recording; write " +
                       std::string(row->whole.instead);
  }
  const UtteranceSteps finish = UtteranceSteps::of_mel(s.mel);
  for (const auto& step : finish.steps()) front->add(step);
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
          front->add(make_step(o, rows));
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
