// The attributes of an output as a whole. Each is defined once, in root_attributes.cpp; the writers
// and readers of both formats use that table, and a test compares docs/output-format.md with it.
//
// In HDF5 they are attributes of the root group, in .npy entries on the document's top level, where
// a flag is true or false, and JSON is part of the document.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "pipeline/base/problem.h"
#include "pipeline/base/value.h"
#include "stages/output/formats/feature_data.h"
#include "stages/output/formats/output_index.h"

namespace melflow {

inline constexpr const char* kSources = "sources";

/// The value of an attribute: a flag, a number, a text or JSON.
using RootValue = std::variant<bool, std::int32_t, std::int64_t, std::string, Value>;

struct RootAttribute {
  enum class Type { flag, int32, int64, text, json };  ///< in the order of RootValue

  const char* name;
  Type type;
  const char* what;  ///< for the documentation
  std::function<RootValue(const OutputIndex&)> value;
  /// For the documentation: which outputs have it; "" for all.
  const char* only = "";
  bool (*is_wanted)(const OutputIndex&) = nullptr;  ///< whether this output has it; null: all do
  bool is_in_all = true;  ///< false: outputs of this format may lack it, such as earlier ones

  [[nodiscard]] bool is_text() const { return type == Type::text || type == Type::json; }
  [[nodiscard]] bool is_in(const OutputIndex& index) const {
    return is_wanted == nullptr || is_wanted(index);
  }
  /// Whether an output is damaged without it.
  [[nodiscard]] bool is_needed() const { return is_wanted == nullptr && is_in_all; }
};

const std::vector<RootAttribute>& root_attributes();

/// Fills `integers` and `texts` of `to` from an output: source.has(name) tells whether it has an
/// attribute, source.text(name) and source.integer(name) return its value. Throws RunError when an
/// attribute that is needed is missing.
template <class Source>
void read_root_attributes(const Source& source, FeatureData& to) {
  for (const RootAttribute& a : root_attributes()) {
    const std::string name = a.name;
    if (!source.has(name)) {
      if (a.is_needed()) throw RunError("there is no attribute '" + name + "'");
    } else if (a.is_text()) {
      to.texts[name] = source.text(name);
    } else {
      to.integers[name] = source.integer(name);
    }
  }
}

}  // namespace melflow
