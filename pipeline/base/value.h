// A tree of settings as written: scalars, lists and maps, each with its position in the text.
// config/ makes it from YAML; the framework reads stage options from it and never sees YAML.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace melflow {

/// A position in a text. `line` and `column` count from 1; line 0 means "the whole file".
struct Mark {
  std::shared_ptr<const std::string> file;
  int line = 0;
  int column = 0;

  /// The position as text: "file.yaml:12:5", "file.yaml" without a line, "" without a file.
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
  /// Whether a value is null because none was written, as after `hop:`.
  [[nodiscard]] bool is_missing() const { return missing_ && is_null(); }
  [[nodiscard]] bool is_scalar() const { return kind_ == Kind::scalar; }
  [[nodiscard]] bool is_list() const { return kind_ == Kind::list; }
  [[nodiscard]] bool is_map() const { return kind_ == Kind::map; }
  [[nodiscard]] const Mark& mark() const { return mark_; }
  void set_mark(Mark mark) { mark_ = std::move(mark); }

  /// The text of a scalar, "" for anything else.
  [[nodiscard]] const std::string& text() const { return text_; }
  /// Whether the scalar was quoted, which makes "12" a text and not a number.
  [[nodiscard]] bool quoted() const { return quoted_; }
  [[nodiscard]] const std::vector<Value>& items() const { return items_; }
  [[nodiscard]] const std::vector<Entry>& entries() const { return entries_; }
  [[nodiscard]] std::vector<Value>& items() { return items_; }
  [[nodiscard]] std::vector<Entry>& entries() { return entries_; }

  /// The value of a map's entry; null if there is no such entry or this is not a map.
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

/// Writes the value as one line of JSON. Maps keep their order; scalars that read as numbers,
/// booleans or null are not quoted unless they were.
std::string to_json(const Value& value);

}  // namespace melflow
