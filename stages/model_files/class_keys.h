// The keys of a class by its table: their types, defaults and values.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/base/value.h"
#include "stages/model_files/expression.h"
#include "stages/model_files/front_end_class.h"

namespace melflow {

enum class KeyType { integer, number, truth, text, list, lists, any };

struct KeyRow {
  std::string_view name;
  KeyType type = KeyType::number;
  bool may_be_null = false, is_fixed = false, is_of_call = false, has_type = true;
  std::string_view standard;  ///< the class's default, an expression
};

/// The text up to a mark, which both are removed from `rest`.
std::string_view cut(std::string_view& rest, std::string_view mark);
/// The words of a text between spaces.
std::vector<std::string_view> words(std::string_view text);

/// The keys of a file and of the call.
std::vector<KeyRow> rows_of(const FrontEndClass& of);
/// The row of a key without influence, "name" or "name:type".
KeyRow ignored_key(std::string_view word);
/// Reads a value of the file. Returns "" or what is wrong.
std::string read_key(const KeyRow& row, const Value& v, Term& out);

}  // namespace melflow
