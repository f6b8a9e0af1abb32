// What an output says of itself as a whole. Each attribute is said once, in root_attributes.cpp.
// The writers and readers of both formats go by that, and a test compares docs/output-format.md
// with it.
//
// In HDF5 it is an attribute of the root group, in .npy an entry on the document's top level, where
// a flag is true or false, and JSON a part of the document.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "pipeline/problem.h"
#include "pipeline/value.h"
#include "stages/output/formats/feature_data.h"
#include "stages/output/formats/output_index.h"

namespace melflow {

/// A flag, a number, a text, JSON.
using RootValue = std::variant<bool, std::int32_t, std::int64_t, std::string, Value>;

struct RootAttribute {
  enum class Type { flag, int32, int64, text, json };  ///< in the order of RootValue

  const char* name;
  Type type;
  const char* what;  ///< for the documentation
  std::function<RootValue(const OutputIndex&)> value;
  const char* in_format_1 = name;  ///< what it was called there; "" where there was none
  /// For the documentation: where it is written at all; "" for everywhere.
  const char* only = "";
  bool (*is_wanted)(const OutputIndex&) = nullptr;  ///< that, in an output

  [[nodiscard]] bool is_text() const { return type == Type::text || type == Type::json; }
  [[nodiscard]] bool is_in(const OutputIndex& index) const {
    return is_wanted == nullptr || is_wanted(index);
  }
  /// What outputs of this format call it; "" where they have none.
  [[nodiscard]] const char* name_in(std::int64_t format) const {
    return format == 1 ? in_format_1 : name;
  }
  /// An output of this format is damaged without it. Programs that wrote format 1 differed.
  [[nodiscard]] bool is_needed(std::int64_t format) const {
    return format > 1 && is_wanted == nullptr;
  }
};

const std::vector<RootAttribute>& root_attributes();

/// Fills FeatureData's `integers` and `texts` out of an output of FeatureData::format(). `source`
/// has() an attribute of a name, and gives its text() or integer(). Throws RunError where one that
/// is needed is not there.
template <class Source>
void read_root_attributes(const Source& source, FeatureData& to) {
  const std::int64_t format = to.format();
  for (const RootAttribute& a : root_attributes()) {
    const std::string name = a.name_in(format);
    if (name.empty()) continue;
    if (!source.has(name)) {
      if (a.is_needed(format)) throw RunError("there is no attribute '" + name + "'");
    } else if (a.is_text()) {
      to.texts[a.name] = source.text(name);
    } else {
      to.integers[a.name] = source.integer(name);
    }
  }
}

}  // namespace melflow
