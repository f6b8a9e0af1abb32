#include "stages/features/mel/mel_presets.h"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "stages/features/mel/mel_option_table.h"
#include "stages/front_ends.h"

namespace melflow {
namespace {

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
        const std::string why = set_option(preset.options, name, {&value, 1});
        if (!why.empty()) throw std::logic_error("front ends: " + std::string(name) + " " + why);
        continue;
      }
      const auto base =
          std::find_if(out.begin(), out.end(),
                       [&base_name = value](const MelPreset& p) { return p.name == base_name; });
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
