// A tree of settings as they were written: scalars, lists and maps, each with its place in the
// text. The framework reads stage options from it and never sees YAML; config/ makes it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace melflow {

/// A place in a text. `line` and `column` count from 1; line 0 means "the whole file".
struct Mark {
  std::shared_ptr<const std::string> file;
  int line = 0;
  int column = 0;

  /// The place as text: "file.yaml:12:5", "file.yaml" without a line, "" without a file.
  [[nodiscard]] std::string str() const;
};

class Value {
 public:
  enum class Kind { null, scalar, list, map };
  struct Entry;

  Value() = default;
  static Value scalar(std::string text, Mark mark = {}, bool quoted = false);
  static Value missing();
  static Value list(std::vector<Value> items, Mark mark = {});
  static Value map(std::vector<Entry> entries, Mark mark = {});

  [[nodiscard]] Kind kind() const { return kind_; }
  [[nodiscard]] bool is_null() const { return kind_ == Kind::null; }
  /// Whether nothing was written where a value belongs, as after `hop:`; such a value is null.
  [[nodiscard]] bool is_missing() const { return missing_ && is_null(); }
  [[nodiscard]] bool is_scalar() const { return kind_ == Kind::scalar; }
  [[nodiscard]] bool is_list() const { return kind_ == Kind::list; }
  [[nodiscard]] bool is_map() const { return kind_ == Kind::map; }
  [[nodiscard]] const Mark& mark() const { return mark_; }
  void set_mark(Mark mark) { mark_ = std::move(mark); }

  /// The text of a scalar, "" for anything else.
  [[nodiscard]] const std::string& text() const { return text_; }
  /// Whether the scalar was quoted, so that "12" is a text and not a number.
  [[nodiscard]] bool quoted() const { return quoted_; }
  [[nodiscard]] const std::vector<Value>& items() const { return items_; }
  [[nodiscard]] const std::vector<Entry>& entries() const { return entries_; }
  [[nodiscard]] std::vector<Value>& items() { return items_; }
  [[nodiscard]] std::vector<Entry>& entries() { return entries_; }

  /// The entry's value of a map, or null when there is none (or this is no map).
  [[nodiscard]] const Value* find(std::string_view key) const;
  Value* find(std::string_view key);
  /// Sets or replaces an entry; turns a null into a map.
  Value& set(std::string key, Value value);

 private:
  Kind kind_ = Kind::null;
  bool quoted_ = false, missing_ = false;
  std::string text_;
  std::vector<Value> items_;
  std::vector<Entry> entries_;
  Mark mark_;
};

struct Value::Entry {
  std::string key;
  Value value;
  Mark key_mark;
};

/// The value as one line of JSON: maps keep their order; scalars that read as numbers, booleans or
/// null have no quotes unless they were quoted.
std::string to_json(const Value& value);

}  // namespace melflow
