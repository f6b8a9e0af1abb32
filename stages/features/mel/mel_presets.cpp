#include "stages/features/mel/mel_presets.h"

#include <algorithm>
#include <charconv>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <variant>

#include "stages/features/mel/mel_option_table.h"
#include "stages/front_ends.h"

namespace melflow {
namespace {

// Sets an option to a value of the table. Returns what is wrong with it, or "".
template <class T>
std::string read(std::string_view text, T& out) {
  if constexpr (std::is_enum_v<T>) {
    const auto all = names(T{});
    const auto at = std::find(all.begin(), all.end(), text);
    if (at == all.end()) return "is not one of its values";
    out = static_cast<T>(at - all.begin());
    return {};
  } else if constexpr (std::is_same_v<T, bool>) {
    out = text == "true";
    return out || text == "false" ? "" : "is not true or false";
  } else if constexpr (std::is_arithmetic_v<T>) {
    const auto read = std::from_chars(text.data(), text.data() + text.size(), out);
    return read.ec == std::errc() && read.ptr == text.data() + text.size() ? "" : "is no number";
  } else if constexpr (std::is_same_v<T, MelOptions::Reference>) {
    out = {1, text == "max"};
    return out.is_max ? "" : read(text, out.value);
  } else if constexpr (std::is_same_v<T, std::vector<double>>) {
    out.assign(1, 0);
    return read(text, out.front());
  } else if constexpr (requires { out.emplace(); }) {
    out.reset();
    if (text == "none" || text == "null") return {};
    return read(text, out.emplace());
  } else {
    return "is a list";
  }
}

void set(MelOptions& options, std::string_view name, std::string_view text) {
  const auto table = mel_option_table();
  const auto row = std::find_if(table.begin(), table.end(),
                                [name](const MelOptionRow& r) { return r.name == name; });
  const std::string why =
      row == table.end()
          ? "is no option of mel"
          : std::visit([&](auto member) { return read(text, options.*member); }, row->member);
  if (!why.empty())
    throw std::logic_error("front ends: " + std::string(name) + ": " + std::string(text) + " " +
                           why);
}

std::vector<MelPreset> of_table() {
  std::vector<MelPreset> out;
  for (const FrontEnd& of : front_ends()) {
    const std::vector<FrontEndNode> nodes = of.nodes();
    const auto mel = std::find_if(nodes.begin(), nodes.end(),
                                  [](const FrontEndNode& n) { return n.stage == "mel"; });
    if (mel == nodes.end()) continue;
    MelPreset preset{of.name, of.summary, {}, of.has_fixed_times, 0};
    for (const auto& [name, value] : mel->options) {
      if (name != "preset") {
        set(preset.options, name, value);
        continue;
      }
      const auto base = std::find_if(out.begin(), out.end(),
                                     [&value](const MelPreset& p) { return p.name == value; });
      preset.options = base->options;
    }
    for (auto node = nodes.begin(); node != mel; ++node)
      if (node->stage == "segment")
        preset.window_seconds = std::stoi(std::string(node->find("length")));
    out.push_back(std::move(preset));
  }
  return out;
}

// Constructed on first use: stages register themselves before main() runs.
const std::vector<MelPreset>& presets() {
  static const std::vector<MelPreset> all = of_table();
  return all;
}

}  // namespace

std::span<const MelPreset> mel_presets() { return presets(); }

const MelPreset* find_preset(std::string_view name) {
  for (const MelPreset& preset : presets())
    if (preset.name == name) return &preset;
  return nullptr;
}

}  // namespace melflow
