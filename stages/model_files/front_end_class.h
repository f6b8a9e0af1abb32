// The classes of other libraries that make features, as tables: which nodes follow from the keys of
// a file that such a class wrote.
//
// A new class is an entry in one of the files *_classes.cpp, and a file of it in
// tests/golden/model_file_cases.py. Texts:
//
//   keys     name:type=default, separated by spaces; with == in place of = any other value is an
//            error. Types: int, num, bool, text, list (of numbers), lists (also of such lists),
//            any (one value), each with ? where null is allowed; omitted, it is that of the
//            default. A key within a map is "map.key".
//   call     the same, of what no file has: arguments of the call.
//   ignored  names of keys that have no influence on values, also name:type.
//   needs    lines "EXPRESSION | KEY | what would be needed": an error where it does not hold.
//            After "as CLASS, " at the beginning those of that class count, too.
//   nodes    as in stages/front_ends.cpp; a value after '=' is an expression of keys, and an option
//            without a value (none) is omitted. "if EXPRESSION: " before a node. `window` is the
//            length of what the class takes: a segment in a pipeline that cuts, else fit_samples.
//            {as CLASS, ...}: the options of that node of another class of the family, whose
//            defaults hold for keys that this one lacks, and others, which take their place.
//   said     lines "EXPRESSION | what is assumed": a note where it holds.
//
// Expressions: stages/model_files/expression.h.
#pragma once

#include <span>
#include <string_view>

namespace melflow {

struct FrontEndClass {
  std::string_view name;
  std::string_view keys, call, ignored, needs, nodes, said;
};

/// The classes of one library, whose files have one form.
struct FrontEndFamily {
  std::string_view name;     ///< "transformers"
  std::string_view source;   ///< with its version: "transformers 5.24.0"
  std::string_view ignored;  ///< keys of every class that have no influence on values
  std::span<const FrontEndClass> classes;
  /// Classes that are known and give what melflow does not compute: name and why.
  std::span<const std::pair<std::string_view, std::string_view>> refused;
  /// "LENGTH | WHAT": the length of a resample by which the library's own reading of files gets as
  /// many samples, and what that is; "" where it reads none, or the user chooses.
  std::string_view resampling;
};

extern const FrontEndFamily kTransformers, kKaldi, kLhotse, kNemo, kSpeechBrain, kEspnet, kFunasr,
    kWenet, kTorchaudio, kLibrosa;

std::span<const FrontEndFamily* const> front_end_families();

}  // namespace melflow
