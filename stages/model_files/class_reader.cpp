#include "stages/model_files/class_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>

#include "pipeline/base/text.h"
#include "pipeline/options/option_type.h"
#include "pipeline/stage/registry.h"
#include "stages/front_ends.h"
#include "stages/model_files/class_keys.h"
#include "stages/model_files/expression.h"
#include "stages/model_files/front_end_class.h"

namespace melflow {
namespace {

// Splits "a: =max(1, 2), b: 3" into its options.
std::vector<std::string_view> options_of(std::string_view text) {
  std::vector<std::string_view> out;
  int depth = 0;
  bool is_in_text = false;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\'') is_in_text = !is_in_text;
    if (is_in_text) continue;
    depth += text[i] == '(' ? 1 : text[i] == ')' ? -1 : 0;
    if (depth > 0 || text[i] != ',') continue;
    out.push_back(text.substr(begin, i - begin));
    begin = i + 2;
  }
  if (begin < text.size()) out.push_back(text.substr(begin));
  return out;
}

Value value_of(const Term& term, const Mark& mark) {
  if (term.truth() != nullptr) return Value::scalar(*term.truth() ? "true" : "false", mark);
  if (term.text() != nullptr) return Value::scalar(*term.text(), mark);
  if (term.number() != nullptr) {
    if (!std::isfinite(*term.number())) throw ExpressionError("no number comes of it");
    return Value::scalar(number_text(*term.number()), mark);
  }
  std::vector<Value> items;
  for (const double v : *term.list()) items.push_back(Value::scalar(number_text(v), mark));
  return Value::list(std::move(items), mark);
}

class Reader {
 public:
  Reader(const ModelInstance& instance, const FrontEndClass& of,
         const ModelAssumptions& assumptions, Problems& problems)
      : instance_(instance),
        of_(of),
        assumptions_(assumptions),
        problems_(problems),
        rows_(rows_of(of)) {}

  ModelFrontEnd front_end() {
    const std::size_t before = problems_.size();
    read_keys();
    if (problems_.size() > before) return {};
    check_needs();
    if (problems_.size() > before) return {};
    ModelFrontEnd out;
    out.title = fmt::format("{} of {}", of_.name, instance_.family->source);
    for (std::string_view rest = of_.nodes; !rest.empty();) add_node(cut(rest, "\n"), out);
    for (std::string_view rest = of_.said; !rest.empty();) {
      std::string_view line = cut(rest, "\n");
      const std::string_view condition = cut(line, " | ");
      if (value(condition).holds()) out.said.emplace_back(line);
    }
    if (std::string_view rest = instance_.family->resampling; !rest.empty()) {
      const std::string_view length = cut(rest, " | ");
      out.resampling = {"length", Value::scalar(std::string(length)),
                        "as many samples as by " + std::string(rest)};
    }
    check_options(out);
    return out;
  }

 private:
  // Adds problems of options with the keys that they are from, which the stage does not know.
  void check_options(const ModelFrontEnd& front) {
    std::vector<ModelFrontEnd::Node> nodes = front.nodes;
    if (!front.window.name.empty()) nodes.push_back({"fit_samples", {front.window}});
    for (const ModelFrontEnd::Node& node : nodes) {
      const StageInfo* stage = Registry::global().find(node.stage);
      if (stage == nullptr) continue;  // of a program without it
      Value options = Value::map({});
      for (const ModelFrontEnd::Option& option : node.options)
        options.set(option.name, option.value);
      Problems found;
      stage->configure()->schema().read(options, "", found);
      for (const Problem& p : found.sorted())
        problem_of_option(node, p.message.substr(0, p.message.find(':')),
                          p.message.substr(std::min(p.message.find(": ") + 2, p.message.size())));
      const double bands = number_in(front.main(), "n_mels");
      if (const double count = number_in(node, "n_mfcc"); bands > 0 && count > bands)
        problem_of_option(node, "n_mfcc",
                          fmt::format("{} coefficients of {} bands ({})", count, bands,
                                      source_of(front.main(), "n_mels")));
      if (node.stage != "mel" || !found.empty()) continue;
      const double rate = number_in(node, "sample_rate"), n_fft = number_in(node, "n_fft");
      if (const double fmax = number_in(node, "fmax"); rate > 0 && fmax > rate / 2)
        problem_of_option(node, "fmax",
                          fmt::format("{} Hz are more than half of the rate ({} Hz, {})", fmax,
                                      rate, source_of(node, "sample_rate")));
      // 0 or less counts down from half of the rate.
      const double top = number_in(node, "fmax"), end = top > 0 ? top : rate / 2 + top;
      if (const double fmin = number_in(node, "fmin"); rate > 0 && fmin >= end)
        problem_of_option(node, "fmax",
                          fmt::format("the bands end at {} Hz and begin at {} Hz ({})", end, fmin,
                                      source_of(node, "fmin")));
      if (const double window = number_in(node, "win_length"); n_fft > 0 && window > n_fft)
        problem_of_option(node, "win_length",
                          fmt::format("a window of {} is longer than the transform of {} ({})",
                                      window, n_fft, source_of(node, "n_fft")));
      // The filters of audio_utils.mel_filter_bank have other bins then.
      if (instance_.family == &kTransformers)
        for (const char* name : {"sample_rate", "n_fft"})
          if (std::fmod(number_in(node, name), 2) != 0)
            problem_of_option(node, name, "an odd number is not computed");
    }
  }

  static std::string source_of(const ModelFrontEnd::Node& node, std::string_view name) {
    for (const ModelFrontEnd::Option& option : node.options)
      if (option.name == name && !option.source.empty()) return option.source;
    return "of the class";
  }

  // The number of an option, also where its preset has it; 0 where neither has.
  static double number_in(const ModelFrontEnd::Node& node, std::string_view name) {
    double number = 0;
    const auto is_number = [&number](const Value& v) {
      return detail::parse_number(v, number).empty();
    };
    if (const Value* value = node.find(name)) return is_number(*value) ? number : 0;
    const Value* preset = node.find("preset");
    for (const FrontEnd* of = preset == nullptr ? nullptr : find_front_end(preset->text());
         of != nullptr;) {
      std::string_view base;
      for (const FrontEndNode& n : of->nodes()) {
        if (n.stage != node.stage) continue;
        if (const std::string_view text = n.find(name); !text.empty())
          return is_number(Value::scalar(std::string(text))) ? number : 0;
        base = n.find("preset");
      }
      of = base.empty() ? nullptr : find_front_end(base);
    }
    return 0;
  }

  void problem_of_option(const ModelFrontEnd::Node& node, const std::string& name,
                         const std::string& why) {
    const Value* value = node.find(name);
    problem(value != nullptr ? value->mark() : instance_.mark, source_of(node, name),
            fmt::format("{}.{}: {}", node.stage, name, why));
  }

  struct Key {
    Term value;
    Mark mark;
    std::string source;  // where it is written
    bool is_written = false;
  };

  [[nodiscard]] const KeyRow* row_named(std::string_view name) const {
    const auto at = std::find_if(rows_.begin(), rows_.end(),
                                 [name](const KeyRow& row) { return row.name == name; });
    return at == rows_.end() ? nullptr : &*at;
  }

  // The row of a key without influence, whose value still has a type; nothing where it has some.
  [[nodiscard]] std::optional<KeyRow> ignored_row(std::string_view name) const {
    const auto& out = assumptions_.left_out;
    if (std::find(out.begin(), out.end(), name) != out.end()) return ignored_key(name);
    for (const std::string_view text : {of_.ignored, instance_.family->ignored})
      for (const std::string_view word : words(text)) {
        const std::string_view of = word.substr(0, word.find(':'));
        if (of == name) return ignored_key(word);
      }
    return std::nullopt;
  }

  [[nodiscard]] bool is_map_of_keys(std::string_view name) const {
    return std::any_of(rows_.begin(), rows_.end(), [name](const KeyRow& row) {
      return row.name.starts_with(name) && row.name.substr(name.size()).starts_with('.');
    });
  }

  void problem(const Mark& mark, std::string_view key, const std::string& why) {
    problems_.add(mark, fmt::format("{}: {}", excerpt(key), why));
  }

  void take(const std::string& name, const Value& v, const Mark& mark, bool is_of_user) {
    if (v.is_map() && is_map_of_keys(name)) {
      for (const Value::Entry& e : v.entries())
        take(name + "." + e.key, e.value, e.key_mark, is_of_user);
      return;
    }
    const KeyRow* row = row_named(name);
    if (row == nullptr || (row->is_of_call && !is_of_user)) {
      const std::optional<KeyRow> ignored = ignored_row(name);
      if (!ignored) return unknown(name, mark);
      Term value;  // of another type it would make the class fail
      if (const std::string why = ignored->has_type ? read_key(*ignored, v, value) : "";
          !why.empty())
        problem(v.mark().line > 0 ? v.mark() : mark, name, why);
      return;
    }
    Key& key = keys_[row->name];
    if (key.is_written) return;  // what the user says comes first
    key.is_written = true;
    key.mark = v.mark().line > 0 ? v.mark() : mark;
    key.source = is_of_user      ? std::string("as written beside file")
                 : mark.line > 0 ? fmt::format("line {}", mark.line)
                                 : std::string();
    if (const std::string why = read_key(*row, v, key.value); !why.empty())
      problem(key.mark, name, why);
  }

  void unknown(const std::string& name, const Mark& mark) {
    std::vector<std::string> names;
    for (const KeyRow& row : rows_) names.emplace_back(row.name);
    for (const std::string_view text : {of_.ignored, instance_.family->ignored})
      for (const std::string_view word : words(text))
        names.emplace_back(word.substr(0, word.find(':')));
    const KeyRow* row = row_named(name);
    if (row != nullptr)
      return problem(mark, name,
                     fmt::format("is an argument of the call of {}, which the class does not read "
                                 "from a file; write it beside file: {{file: FILE, {}: ...}}",
                                 of_.name, name));
    problem(mark, name,
            fmt::format("{} is not known to have this key, so what it changes is not known{}; "
                        "where it changes nothing, write {{file: FILE, ignore: [{}]}}",
                        of_.name, did_you_mean(name, names), excerpt(name)));
  }

  void read_keys() {
    for (const Value::Entry& e : assumptions_.keys.entries())
      take(e.key, e.value, e.key_mark, true);
    for (const Value::Entry& e : instance_.keys.entries()) take(e.key, e.value, e.key_mark, false);
    for (const KeyRow& row : rows_) {
      Key& key = keys_[row.name];
      Term standard = evaluate(row.standard, [](std::string_view) { return Term(); });
      if (!key.is_written) {
        key.value = std::move(standard);
        key.mark = instance_.mark;
      } else if (row.is_fixed && !(key.value == standard)) {
        problem(key.mark, row.name,
                fmt::format("{} is computed with {} alone", of_.name, row.standard));
      }
    }
  }

  // Evaluates an expression; keys_of_value_ are those that it names.
  Term value(std::string_view expression) {
    used_.clear();
    return evaluate(expression, [this](std::string_view name) {
      const auto at = keys_.find(name);
      if (at == keys_.end() && base_ != nullptr)
        for (const KeyRow& row : rows_of(*base_))
          if (row.name == name)
            return evaluate(row.standard, [](std::string_view) { return Term(); });
      if (at == keys_.end())
        throw std::logic_error("no key " + std::string(name) + " of " + std::string(of_.name));
      if (std::find(used_.begin(), used_.end(), name) == used_.end()) used_.push_back(name);
      return at->second.value;
    });
  }

  void check_needs() {
    std::string_view rest = of_.needs;
    if (const FrontEndClass* base = base_in(rest)) check_needs(base->needs);
    check_needs(rest);
  }

  void check_needs(std::string_view rest) {
    while (!rest.empty()) {
      std::string_view line = cut(rest, "\n");
      const std::string_view condition = cut(line, " | "), name = cut(line, " | ");
      const Key& key = keys_.find(name)->second;
      try {
        if (value(condition).holds()) continue;
      } catch (const ExpressionError& error) {
        problem(key.mark, name, error.what());
        continue;
      }
      std::string others;
      for (const std::string_view used : used_)
        if (used != name) others += fmt::format("{}{}", others.empty() ? " with " : ", ", used);
      problem(key.mark, name,
              fmt::format("{} needs {}, which is not there",
                          others.empty() ? "this" : "this" + others, line));
    }
  }

  // The mark and the source of a value made of the keys that were used last.
  std::pair<Mark, std::string> origin() const {
    Mark mark = instance_.mark;
    std::string source;
    for (const std::string_view name : used_) {
      const Key& key = keys_.find(name)->second;
      if (key.is_written && mark.line == instance_.mark.line) mark = key.mark;
      source += fmt::format("{}{}{}", source.empty() ? "" : "; ", name,
                            key.is_written ? (key.source.empty() ? "" : ", " + key.source)
                                           : std::string(" of the class"));
    }
    return {mark, source};
  }

  // Of the key that was used last, at which the expression ended.
  void problem_of_used(std::string_view expression, const ExpressionError& error) {
    if (used_.empty()) return problem(instance_.mark, expression, error.what());
    problem(keys_.find(used_.back())->second.mark, used_.back(), error.what());
  }

  void add_node(std::string_view line, ModelFrontEnd& out) {
    if (line.starts_with("if ")) {
      line.remove_prefix(3);
      const std::string_view condition = line.substr(0, line.find(": "));
      line.remove_prefix(condition.size() + 2);
      if (!holds(condition)) return;
    }
    ModelFrontEnd::Node node;
    node.stage = cut(line, ": {");
    line.remove_suffix(1);
    const FrontEndClass* base = base_in(line);
    if (base != nullptr) add_options(options_of(node_in(*base, node.stage)), base, line, node);
    add_options(options_of(line), nullptr, "", node);
    if (node.stage == "window") {
      out.window = std::move(node.options.front());
      out.window_at = out.nodes.size();
    } else {
      out.nodes.push_back(std::move(node));
    }
  }

  // The class of "as CLASS" at the beginning of a text, which is removed; null if there is none.
  const FrontEndClass* base_in(std::string_view& text) const {
    if (!text.starts_with("as ")) return nullptr;
    text.remove_prefix(3);
    const std::string_view name = cut(text, ", ");
    for (const FrontEndClass& of : instance_.family->classes)
      if (of.name == name) return &of;
    throw std::logic_error("no class " + std::string(name));
  }

  // The options of a class's node.
  static std::string_view node_in(const FrontEndClass& of, const std::string& stage) {
    for (std::string_view rest = of.nodes; !rest.empty();) {
      std::string_view line = cut(rest, "\n");
      if (cut(line, ": {") == stage) return line.substr(0, line.size() - 1);
    }
    throw std::logic_error("no node " + stage + " of " + std::string(of.name));
  }

  // Adds options of a node. `base`: the class that they are from, whose defaults hold where this
  // one lacks its keys. `others`: the text of options that take their place.
  void add_options(const std::vector<std::string_view>& options, const FrontEndClass* base,
                   std::string_view others, ModelFrontEnd::Node& node) {
    std::set<std::string_view> replaced;
    for (std::string_view option : options_of(others)) replaced.insert(cut(option, ": "));
    base_ = base;
    for (std::string_view option : options) {
      const std::string_view name = cut(option, ": ");
      if (replaced.contains(name)) continue;
      used_.clear();
      try {
        const Term term =
            option.starts_with('=') ? value(option.substr(1)) : Term(std::string(option));
        if (term.is_none()) continue;
        auto [mark, source] = origin();
        node.options.push_back({std::string(name), value_of(term, mark), std::move(source)});
      } catch (const ExpressionError& error) {
        problem_of_used(name, error);
      }
    }
    base_ = nullptr;
  }

  bool holds(std::string_view condition) {
    try {
      return value(condition).holds();
    } catch (const ExpressionError& error) {
      problem_of_used(condition, error);
      return false;
    }
  }

  const ModelInstance& instance_;
  const FrontEndClass& of_;
  const ModelAssumptions& assumptions_;
  Problems& problems_;
  std::vector<KeyRow> rows_;
  std::map<std::string_view, Key> keys_;
  std::vector<std::string_view> used_;
  const FrontEndClass* base_ = nullptr;  // whose options are evaluated
};

}  // namespace

const Value* ModelFrontEnd::Node::find(std::string_view option) const {
  const auto at = std::find_if(options.begin(), options.end(),
                               [option](const Option& o) { return o.name == option; });
  return at == options.end() ? nullptr : &at->value;
}

const ModelFrontEnd::Node& ModelFrontEnd::main() const {
  const auto at = std::find_if(nodes.begin(), nodes.end(), [](const Node& n) {
    return n.stage == "mel" || n.stage == "samples";
  });
  if (at == nodes.end()) throw std::logic_error("a front end without mel or samples");
  return *at;
}

int ModelFrontEnd::sample_rate() const {
  const Node& node = main();
  if (const Value* rate = node.find("sample_rate")) {
    double number = 0;
    constexpr double kMost = 1e9;
    return detail::parse_number(*rate, number).empty() && std::abs(number) < kMost
               ? static_cast<int>(number)
               : 0;
  }
  const Value* preset = node.find("preset");
  for (const FrontEnd* of = preset == nullptr ? nullptr : find_front_end(preset->text());
       of != nullptr;) {
    if (const int rate = of->sample_rate_of(node.stage); rate > 0) return rate;
    const FrontEnd* base = nullptr;
    for (const FrontEndNode& n : of->nodes())
      if (n.stage == node.stage) base = find_front_end(n.find("preset"));
    of = base;
  }
  return 0;
}

ModelFrontEnd read_class(const ModelInstance& instance, const ModelAssumptions& assumptions,
                         Problems& problems) {
  const FrontEndFamily& family = *instance.family;
  for (const FrontEndClass& of : family.classes)
    if (of.name == instance.class_name)
      return Reader(instance, of, assumptions, problems).front_end();
  for (const auto& [name, why] : family.refused)
    if (name == instance.class_name) {
      problems.add(instance.mark, fmt::format("{} is not computed: {}", name, why));
      return {};
    }
  std::vector<std::string> names;
  for (const FrontEndClass& of : family.classes) names.emplace_back(of.name);
  problems.add(instance.mark,
               fmt::format("{} is no class of {} that is known here{}; known are {}",
                           excerpt(instance.class_name), family.source,
                           did_you_mean(instance.class_name, names), fmt::join(names, ", ")));
  return {};
}

std::string classes_markdown() {
  std::string out;
  for (const FrontEndFamily* family : front_end_families()) {
    out += fmt::format(
        "\n### {}\n\n| class | keys | of the call | must be | no influence |\n"
        "|---|---|---|---|---|\n",
        family->source);
    for (const FrontEndClass& of : family->classes) {
      std::string keys, call, fixed, ignored;
      const auto add = [](std::string& to, std::string_view name) {
        to += fmt::format("{}`{}`", to.empty() ? "" : ", ", name);
      };
      for (const KeyRow& row : rows_of(of)) {
        if (row.is_fixed)
          add(fixed, fmt::format("{}: {}", row.name, row.standard));
        else
          add(row.is_of_call ? call : keys, row.name);
      }
      for (const std::string_view word : words(of.ignored)) add(ignored, ignored_key(word).name);
      out += fmt::format("| `{}` | {} | {} | {} | {} |\n", of.name, keys, call, fixed, ignored);
    }
    for (const auto& [name, why] : family->refused)
      out += fmt::format("| `{}` | refused: {} | | | |\n", name, why);
    std::string common;
    for (const std::string_view name : words(family->ignored))
      common += fmt::format("{}`{}`", common.empty() ? "" : ", ", name);
    if (!common.empty()) out += fmt::format("\nNo influence in every class: {}.\n", common);
  }
  return out;
}

}  // namespace melflow
