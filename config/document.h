// YAML text → Value, with the line and column of everything in it.
//
// Made from yaml-cpp's events and not from its node tree, which drops duplicate keys without a word
// and forgets where keys stood. What the events leave open is settled here: a key given twice, a
// second document and a quote that is never closed are problems; anchors, aliases and merge keys
// (`<<: *base`, the entry's own keys win) are put in place. Values from an alias keep the mark of
// the text they stand for.
//
// A text that nobody would write (too long, too deep, too many values, no UTF-8) is refused with the
// place where that begins, before it costs time, memory or stack.
#pragma once

#include <string>

#include "pipeline/problem.h"
#include "pipeline/value.h"

namespace melflow {

constexpr std::size_t kMostDepth = 64;  ///< maps and lists inside each other

struct Document {
  Value root;
  /// False when the text could not be read to its end: then `root` is not worth checking, that
  /// would only invent further problems.
  bool complete = true;
  Problems problems;
};

/// `name` goes into the marks: the file's path as the user wrote it.
Document read_document(const std::string& given, const std::string& name);

/// True for the plain (not quoted) texts that mean "no value": null, Null, NULL, ~.
bool is_null_text(const std::string& text);

}  // namespace melflow
