#include "config/edited_text.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "config/document.h"
#include "config/top_level.h"

namespace melflow {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    out.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

// The end of the scalar that begins at `at`; nothing where it does not end in this line.
std::optional<std::size_t> end_of_scalar(const std::string& line, std::size_t at, bool in_braces) {
  if (line[at] == '"' || line[at] == '\'') {
    const char quote = line[at];
    for (std::size_t i = at + 1; i < line.size(); ++i) {
      if (quote == '"' && line[i] == '\\')
        ++i;
      else if (line[i] == quote)
        return i + 1;
    }
    return std::nullopt;
  }
  if (std::string("|>&*[{").find(line[at]) != std::string::npos) return std::nullopt;
  std::size_t end = std::min(in_braces ? line.find_first_of(",}", at) : line.size(), line.size());
  end = std::min(end, line.find(" #", at));
  while (end > at && line[end - 1] == ' ') --end;
  return end;
}

// One line that takes the place of others, with what comes above it.
struct Edit {
  std::size_t line = 0, column = 0, length = 0;  // from 0; of what is replaced
  std::string text, comment;
  bool is_line = false;  // a line of its own, above that line
};

std::optional<Edit> edit_of(const Value& root, const std::vector<std::string>& lines,
                            const TextChange& change) {
  const std::size_t dot = change.name.find('.');
  std::string option = change.name.substr(dot == change.name.npos ? 0 : dot + 1);
  std::string value_text = change.value;
  const Value* node = &root;
  if (dot != change.name.npos) {
    const std::string owner = change.name.substr(0, dot);
    const Value* graph = root.find(kGraphKey);
    node = graph != nullptr ? graph->find(owner) : nullptr;
    if (node == nullptr) node = root.find(owner);
    if (node == nullptr) {
      node = &root;
      value_text = fmt::format("{{{}: {}}}", option, value_text);
      option = owner;
    }
  }
  if (!node->is_map() || node->entries().empty()) return std::nullopt;
  const auto place = [&](const Mark& mark) -> std::optional<Edit> {
    const auto line = static_cast<std::size_t>(mark.line - 1);
    const auto column = static_cast<std::size_t>(mark.column - 1);
    if (mark.line < 1 || line >= lines.size() || column >= lines[line].size()) return std::nullopt;
    return Edit{line, column, 0, "", change.comment};
  };
  auto braces = place(node->mark());
  const bool in_braces = braces && lines[braces->line][braces->column] == '{';
  if (const Value* value = node->find(option)) {
    auto edit = place(value->mark());
    if (!edit || !value->is_scalar()) return std::nullopt;
    const auto end = end_of_scalar(lines[edit->line], edit->column, in_braces);
    if (!end) return std::nullopt;
    edit->length = *end - edit->column;
    edit->text = value_text;
    return edit;
  }
  if (in_braces) {
    ++braces->column;
    braces->text = fmt::format("{}: {}, ", option, value_text);
    return braces;
  }
  auto first = place(node->entries().front().key_mark);
  if (!first) return std::nullopt;
  first->is_line = true;
  first->text = std::string(first->column, ' ') + option + ": " + value_text;
  return first;
}

}  // namespace

std::optional<std::string> edited_text(const std::string& text,
                                       const std::vector<TextChange>& changes) {
  std::vector<std::string> lines = lines_of(text);
  const Document document = read_document(text, "");
  if (!document.complete) return std::nullopt;
  std::vector<Edit> edits;
  for (const TextChange& change : changes) {
    auto edit = edit_of(document.root, lines, change);
    if (!edit) return std::nullopt;
    edits.push_back(std::move(*edit));
  }
  // From the end, so that the places before stay.
  std::stable_sort(edits.begin(), edits.end(), [](const Edit& a, const Edit& b) {
    return std::pair(a.line, a.column) > std::pair(b.line, b.column);
  });
  std::vector<std::vector<std::string>> above(lines.size());
  for (const Edit& e : edits) {
    const std::string indent(lines[e.line].find_first_not_of(' '), ' ');
    std::vector<std::string> added{indent + "# " + e.comment};
    if (e.is_line)
      added.push_back(e.text);
    else
      lines[e.line].replace(e.column, e.length, e.text);
    above[e.line].insert(above[e.line].begin(), added.begin(), added.end());
  }
  std::string out;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    for (const std::string& line : above[i]) out += line + '\n';
    out += lines[i] + '\n';
  }
  return out;
}

}  // namespace melflow
