#include "apps/verbs/front_end_text.h"

#include <fmt/format.h>

#include "config/yaml_text.h"
#include "pipeline/base/text.h"

namespace melflow {
namespace {

constexpr int kComments = 35;  // the column of comments
constexpr std::size_t kLongestValue = 60;

std::string line(const std::string& name, const Value& value, const std::string& source) {
  const std::string text = "    " + name + ": " + yaml_flow(value);
  if (source.empty()) return text + "\n";
  return fmt::format("{:<{}} # {}\n", text, kComments, one_line(source));
}

std::string node_yaml(const ModelFrontEnd::Node& node, const std::string& from,
                      const std::string& comment) {
  std::string out = fmt::format("  {}:", node.stage);
  if (!comment.empty()) out = fmt::format("{:<{}} # {}", out, kComments, comment);
  out += fmt::format("\n    stage: {}\n    from: {}\n", node.stage, from);
  for (const ModelFrontEnd::Option& option : node.options) {
    // Long lists have no comment behind them.
    const bool is_long = yaml_flow(option.value).size() > kLongestValue;
    if (is_long && !option.source.empty())
      out += fmt::format("    # {}: {}\n", option.name, one_line(option.source));
    out += line(option.name, option.value, is_long ? std::string() : option.source);
  }
  return out;
}

}  // namespace

std::string model_nodes_yaml(const ModelFrontEnd& of, std::string from, bool has_segment) {
  std::string out;
  for (std::size_t i = 0; i <= of.nodes.size(); ++i) {
    if (i == of.window_at && !of.window.name.empty()) {
      ModelFrontEnd::Node window{has_segment ? "segment" : "fit_samples", {of.window}};
      if (has_segment) window.options.push_back({"tail", Value::scalar("pad"), ""});
      out += node_yaml(window, from,
                       has_segment ? "longer recordings: several windows, where the class cuts them"
                                   : "") +
             "\n";
      from = window.stage;
    }
    if (i == of.nodes.size()) break;
    ModelFrontEnd::Node node = of.nodes[i];
    const bool is_main = node.stage == of.main().stage;
    if (is_main)
      node.options.push_back(
          {"preset_of", Value::scalar(fmt::format("{}, {}", of.title, of.hash), {}, true), ""});
    out += node_yaml(node, from, is_main ? of.title : std::string()) + "\n";
    from = node.stage;
  }
  return out;
}

std::string last_node(const ModelFrontEnd& of) { return of.nodes.back().stage; }

std::string assumptions_yaml(const ModelFrontEnd& of) {
  std::string out;
  for (const std::string& text : of.said) out += "# Assumed: " + one_line(text) + "\n";
  return out;
}

}  // namespace melflow
