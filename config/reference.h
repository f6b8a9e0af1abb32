// Writes the documentation of the registered stages and their options, for people and for editors,
// from the stages' own descriptions.
#pragma once

#include <string>
#include <vector>

#include "pipeline/stage/registry.h"

namespace melflow {

/// An option as a row of a table; the options of a group follow it as "long.length".
struct OptionRow {
  std::string name, type, default_text, allowed, doc;
  bool operator==(const OptionRow&) const = default;
};
std::vector<OptionRow> option_rows(const Schema& schema);

/// The inputs and outputs of a stage: "waveform → windows", "→ file" for a source, "rows →" for
/// a sink.
std::string ports_text(const StageTraits& traits);

/// docs/stages.md: a chapter and a table for each stage.
std::string stages_markdown(const Registry& registry = Registry::global());

/// A JSON Schema (draft 7) of the whole configuration, for editors that check and complete YAML.
std::string schema_json(const Registry& registry = Registry::global());

}  // namespace melflow
