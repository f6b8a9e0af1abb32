#include "config/yaml_text.h"

#include <algorithm>
#include <cctype>
#include <string_view>

#include <fmt/format.h>

#include "config/document.h"
#include "config/top_level.h"
#include "pipeline/base/text.h"

namespace melflow {
namespace {

// Whether a text is a number, size or word, which may have to stay without quotes.
bool is_plain(const std::string& text) {
  const auto is_word = [](unsigned char c) { return std::isalnum(c) != 0; };
  const auto may_be = [&](std::string_view others, char c) {
    return is_word(static_cast<unsigned char>(c)) || others.find(c) != others.npos;
  };
  return !text.empty() && may_be("-+.", text.front()) && may_be("%", text.back()) &&
         std::all_of(text.begin(), text.end(), [&](char c) { return may_be("_.+-%", c); });
}

// Puts a text in quotes, in which every character is visible. Escapes are those of JSON and YAML.
std::string quoted(std::string_view text, std::string_view dollar) {
  std::string out = "\"";
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_length(text, at);
    const char c = text[at];
    if (length == 0)
      out += fmt::format("${{0x{:02X}}}", static_cast<unsigned char>(c));
    else if (c == '$')
      out += dollar;
    else if (c == '"' || c == '\\')
      out.append({'\\', c});
    else
      out += one_line(text.substr(at, length));
    at += std::max<std::size_t>(length, 1);
  }
  return out + '"';
}

// Variables are not filled in in keys.
std::string key_text(const std::string& key) {
  return is_plain(key) && !is_null_text(key) ? key : quoted(key, "$");
}

// Writes a value in one line; `dollar`: what is written for a `$`.
std::string flow(const Value& value, std::string_view dollar) {
  std::string out;
  switch (value.kind()) {
    case Value::Kind::null:
      return "null";
    case Value::Kind::scalar:
      return !value.quoted() && is_plain(value.text()) ? value.text()
                                                       : quoted(value.text(), dollar);
    case Value::Kind::list:
      for (const Value& item : value.items()) out += (out.empty() ? "" : ", ") + flow(item, dollar);
      return "[" + out + "]";
    case Value::Kind::map:
      for (const Value::Entry& e : value.entries())
        out += (out.empty() ? "" : ", ") + key_text(e.key) + ": " + flow(e.value, dollar);
      return "{" + out + "}";
  }
  return out;
}

// Returns the byte at which a line begins; lines count from 1.
std::size_t begin_of(const std::string& text, int line) {
  std::size_t at = 0;
  for (int l = 1; l < line && at < text.size(); ++l) {
    const std::size_t end = text.find('\n', at);
    at = end == text.npos ? text.size() : end + 1;
  }
  return at;
}

std::size_t offset_of(const std::string& text, const Mark& mark) {
  const std::size_t at = begin_of(text, mark.line) + static_cast<std::size_t>(mark.column - 1);
  return std::min(at, text.size());
}

void put_remark(std::string& text, int line, const std::string& remark) {
  const std::size_t begin = begin_of(text, line);
  const std::size_t indent = text.find_first_not_of(' ', begin) - begin;
  text.insert(begin, std::string(indent, ' ') + "# " + remark + "\n");
}

// Returns the line for a new entry of a map that has one line per entry.
int line_for_new(const std::vector<Value::Entry>& entries) {
  const Value::Entry& first = entries.front();
  const bool is_one_line =
      first.value.is_scalar() && first.value.mark().line == first.key_mark.line;
  return first.key_mark.line + (is_one_line ? 1 : 0);
}

void put(std::string& text, const Value& map, const std::string& key, const NewValue& wanted) {
  if (!map.is_map() || map.entries().empty()) return;
  if (const Value* old = map.find(key)) {
    if (!old->is_scalar() && !old->is_null()) return;
    const std::size_t at = offset_of(text, old->mark());
    if (old->text().empty() || text.compare(at, old->text().size(), old->text()) != 0) return;
    text.replace(at, old->text().size(), wanted.value);
    put_remark(text, old->mark().line, wanted.remark);
    return;
  }
  const std::size_t at = offset_of(text, map.mark());
  const std::string entry = key + ": " + wanted.value;
  if (text[at] == '{') {
    text.insert(at + 1, entry + ", ");
    put_remark(text, map.mark().line, wanted.remark);
    return;
  }
  const int line = line_for_new(map.entries());
  const std::size_t begin = begin_of(text, line);
  if (begin == text.size() && !text.ends_with('\n')) return;
  const std::string indent(static_cast<std::size_t>(map.entries().front().key_mark.column - 1),
                           ' ');
  text.insert(begin, indent + "# " + wanted.remark + "\n" + indent + entry + "\n");
}

}  // namespace

std::string yaml_quoted(const std::string& text) { return quoted(text, "$$"); }

std::string yaml_flow(const Value& value) { return flow(value, "$$"); }

std::string yaml_text(const Value& stored) {
  std::string out;
  for (const Value::Entry& e : stored.entries()) {
    if (e.key != kGraphKey || !e.value.is_map()) {
      out += e.key + ": " + flow(e.value, "$") + "\n";
      continue;
    }
    out += e.key + ":\n";
    for (const Value::Entry& node : e.value.entries())
      out += "  " + node.key + ": " + flow(node.value, "$") + "\n";
  }
  return out;
}

std::string edited_text(std::string text, const std::string& name,
                        const std::vector<NewValue>& values) {
  for (const NewValue& wanted : values) {
    const Document document = read_document(text, name);
    if (!document.complete) throw ConfigError(document.problems);
    const std::size_t point = wanted.option.find('.');
    if (point == wanted.option.npos) {
      put(text, document.root, wanted.option, wanted);
      continue;
    }
    const Value* graph = document.root.find(kGraphKey);
    const Value* node = graph == nullptr ? nullptr : graph->find(wanted.option.substr(0, point));
    if (node != nullptr) put(text, *node, wanted.option.substr(point + 1), wanted);
  }
  return text;
}

}  // namespace melflow
