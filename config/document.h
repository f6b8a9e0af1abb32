// Reads YAML text into a Value, with the line and column of everything in it.
//
// Uses yaml-cpp's events instead of its node tree, which silently drops duplicate keys and the
// positions of keys. The rest is done here: duplicate keys, a second document and an unclosed quote
// are problems; anchors, aliases and merge keys (`<<: *base`, the entry's own keys win) are
// resolved. Values from an alias keep the mark of the original text.
//
// A text beyond the limits (too long, too deep, too many values) or not in UTF-8 is refused, with
// the position where that begins, before it takes time, memory or stack.
#pragma once

#include <string>

#include "config/text_check.h"
#include "pipeline/base/problem.h"
#include "pipeline/base/value.h"

namespace melflow {

constexpr std::size_t kMostDepth = 64;  ///< deepest nesting of maps and lists

/// What a text is, which decides its limits and what becomes of tags.
struct DocumentKind {
  const char* name = "configuration";
  std::size_t most_text = kMostText;  ///< [bytes]
  std::size_t most_values = 20'000;   ///< aliases of aliases double with every line
  /// A value with a tag, of which nothing is executed, is read as a map from the tag to the value:
  /// {"!ref": "<rate>"}. False: a tag is a problem.
  bool keeps_tags = false;
};
/// Limit of all texts and keys together, after variables and aliases are replaced [bytes].
constexpr std::size_t kMostExpanded = std::size_t{4} << 20;

struct Document {
  Value root;
  /// False if the text could not be read to its end; checks of `root` would then only report false
  /// problems.
  bool complete = true;
  Problems problems;
};

/// The name under which a configuration is read from the standard input.
inline constexpr const char* kStandardInput = "-";
/// Replaces the standard input by a text.
void set_standard_input(std::string text);
/// What has been read from the standard input; null: nothing.
const std::string* given_standard_input();

/// Reads a file, or the standard input. Throws ConfigError.
std::string read_configuration(const std::string& path);

/// Reads the text `given`. `name`: the file's path as the user wrote it, for marks.
Document read_document(const std::string& given, const std::string& name,
                       const DocumentKind& kind = {});

/// Whether a plain (not quoted) text means "no value": null, Null, NULL or ~.
bool is_null_text(const std::string& text);

}  // namespace melflow
