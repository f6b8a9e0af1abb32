#include "config/syntax_hint.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

#include <fmt/format.h>

namespace melflow {
namespace {

constexpr std::string_view kBlank = " \t";
constexpr std::string_view kBeforeText = " \t[{,:";  // behind these a quote begins a text

// A bracket, or a quote.
struct Bracket {
  char sign = 0;
  int line = 0, column = 0;  // from 1
};

class Lines {
 public:
  explicit Lines(std::string_view text) {
    while (!text.empty()) {
      const std::size_t end = text.find('\n');
      std::string_view line = text.substr(0, end);
      if (line.ends_with('\r')) line.remove_suffix(1);
      lines_.push_back(line);
      text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    }
  }
  [[nodiscard]] std::string_view at(int line) const {
    return line >= 0 && line < static_cast<int>(lines_.size())
               ? lines_[static_cast<std::size_t>(line)]
               : std::string_view();
  }
  // Spaces before the line's text.
  [[nodiscard]] int indent(int line) const {
    return static_cast<int>(std::min(at(line).find_first_not_of(' '), at(line).size()));
  }
  // The nearest line above with more than a comment on it; -1: none.
  [[nodiscard]] int above(int line) const {
    for (--line; line >= 0; --line) {
      const std::size_t first = at(line).find_first_not_of(kBlank);
      if (first != std::string_view::npos && at(line)[first] != '#') return line;
    }
    return -1;
  }
  // The same below; -1: none.
  [[nodiscard]] int below(int line) const {
    const auto count = static_cast<int>(lines_.size());
    for (++line; line < count; ++line) {
      const std::size_t first = at(line).find_first_not_of(kBlank);
      if (first != std::string_view::npos && at(line)[first] != '#') return line;
    }
    return -1;
  }

 private:
  std::vector<std::string_view> lines_;
};

// Past a quoted text that begins at `i`; npos where it does not end in this line.
std::size_t past_quotes(std::string_view line, std::size_t i) {
  const char quote = line[i];
  for (++i; i < line.size(); ++i) {
    if (quote == '"' && line[i] == '\\')
      ++i;
    else if (line[i] == quote)
      return i + 1;
  }
  return std::string_view::npos;
}

// { and [ before the place that nothing has closed there, the innermost one last.
std::vector<Bracket> open_brackets(const Lines& lines, int to_line, int to_column) {
  std::vector<Bracket> open;
  for (int l = 0; l <= to_line; ++l) {
    std::string_view line = lines.at(l);
    if (l == to_line) line = line.substr(0, static_cast<std::size_t>(to_column));
    for (std::size_t i = 0; i < line.size();) {
      const char c = line[i];
      const bool begins = i == 0 || kBeforeText.find(line[i - 1]) != kBeforeText.npos;
      if (c == '#' && begins) break;
      if ((c == '"' || c == '\'') && begins) {
        i = past_quotes(line, i);
        continue;
      }
      if (c == '{' || c == '[') open.push_back({c, l + 1, static_cast<int>(i) + 1});
      if ((c == '}' || c == ']') && !open.empty()) open.pop_back();
      ++i;
    }
  }
  return open;
}

std::string name_of(const Bracket& b) {
  return fmt::format("the {} at line {}, column {}", b.sign, b.line, b.column);
}

// "speaker:", which a quoted text follows without a space between { and the place; "" for none.
std::string key_without_space(std::string_view line, const Bracket& open) {
  for (auto i = static_cast<std::size_t>(open.column); i + 1 < line.size(); ++i) {
    if (line[i] != ':' || (line[i + 1] != '\'' && line[i + 1] != '"')) continue;
    const std::size_t before = line.find_last_of(" {,", i);
    const std::size_t start = before == line.npos ? 0 : before + 1;
    if (i > start) return std::string(line.substr(start, i + 1 - start));
  }
  return {};
}

// The last quote, up to that line, that nothing closes in its own.
std::optional<Bracket> open_quote(const Lines& lines, int line) {
  for (; line >= 0; --line) {
    const std::string_view text = lines.at(line);
    for (std::size_t i = 0; i < text.size();) {
      const bool begins = i == 0 || kBeforeText.find(text[i - 1]) != kBeforeText.npos;
      if (text[i] == '#' && begins) break;
      if ((text[i] != '"' && text[i] != '\'') || !begins) {
        ++i;
        continue;
      }
      const std::size_t behind = past_quotes(text, i);
      if (behind == text.npos) return Bracket{text[i], line + 1, static_cast<int>(i) + 1};
      i = behind;
    }
  }
  return std::nullopt;
}

char closing(char sign) { return sign == '{' ? '}' : ']'; }

// A ${NAME} that no quotes are around, behind a { or [ of the same line.
bool has_bare_variable(std::string_view line) {
  bool is_inside = false;
  for (std::size_t i = 0; i < line.size();) {
    if (line[i] == '"' || line[i] == '\'') {
      i = past_quotes(line, i);
      continue;
    }
    if (is_inside && line.substr(i).starts_with("${")) return true;
    is_inside = is_inside || line[i] == '{' || line[i] == '[';
    ++i;
  }
  return false;
}

// "- files:", which is an entry of a list.
bool is_item(std::string_view line) {
  const std::size_t first = line.find_first_not_of(' ');
  return first != line.npos && line.substr(first).starts_with("- ");
}

// A key in block style: text with ':' behind it.
bool has_key(std::string_view line) {
  const std::size_t colon = line.find(':');
  return colon != line.npos && (colon + 1 == line.size() || line[colon + 1] == ' ');
}

std::string of_indents(const Lines& lines, int line) {
  const int above = lines.above(line);
  if (is_item(lines.at(line)) || is_item(lines.at(above)))
    return "nodes and options are not a list: remove the '- ' before the name";
  return fmt::format(
      "this line is indented by {}, line {} by {}: keys of one map start in the same column, and "
      "keys of a map inside it further right",
      lines.indent(line), above + 1, lines.indent(above));
}

// "log: db", which nothing further right can follow.
bool has_scalar(std::string_view line) {
  const std::size_t colon = line.find(": ");
  if (colon == line.npos) return false;
  const std::size_t value = line.find_first_not_of(' ', colon + 1);
  return value != line.npos && std::string_view("{[#&*|>").find(line[value]) == line.npos;
}

// A key that ends the map it is meant to be in, so that the next one is the first to be out of place.
bool is_too_far_left(const Lines& lines, int here, int next) {
  const int before = lines.above(here), after = lines.below(next);
  const bool comes_back = after >= 0 && lines.indent(after) == lines.indent(here);
  return before >= 0 && has_key(lines.at(here)) && !is_item(lines.at(here)) &&
         !is_item(lines.at(next)) && lines.indent(here) < lines.indent(next) &&
         lines.indent(before) >= lines.indent(next) && (has_scalar(lines.at(here)) || !comes_back);
}

// Of a mistake in the line where the parser gave up.
std::string hint_here(const Lines& lines, int line, int column, std::string_view message) {
  const std::string_view here = lines.at(line);
  const auto says = [&](std::string_view what) { return message.find(what) != message.npos; };
  const std::size_t first = std::min(here.find_first_not_of(kBlank), here.size());
  if (here.substr(0, first).find('\t') != here.npos)
    return "this line begins with a tab: indent with spaces";
  if (says("unknown escape character") &&
      here.substr(0, static_cast<std::size_t>(column)).find('"') != here.npos)
    return "between double quotes \\ begins an escape such as \\n: write \\\\ for a backslash, or "
           "use "
           "single quotes";
  if (says("anchor is not defined")) return "a text that begins with * must be in quotes";
  if (has_bare_variable(here))
    return "inside { } and [ ] a variable must be in quotes: \"${NAME}\"";
  const std::vector<Bracket> open = open_brackets(lines, line, column);
  if (says("flow not found") && !open.empty() && open.back().line == line + 1)
    if (const std::string key = key_without_space(here, open.back()); !key.empty())
      return fmt::format("write a space after '{}'", key);
  if (says("flow not found") && !open.empty())
    return fmt::format(
        "{} is not closed before this place: add the {}, or the comma that is missing between "
        "two of its entries",
        name_of(open.back()), closing(open.back().sign));
  if (says("flow end"))
    return open.empty()
               ? fmt::format("no bracket is open that this {} could close; remove it",
                             here.substr(static_cast<std::size_t>(column), 1))
               : fmt::format("{} is still open, and {} does not close it", name_of(open.back()),
                             here.substr(static_cast<std::size_t>(column), 1));
  const int above = lines.above(line);
  if (here.substr(static_cast<std::size_t>(column)).starts_with(','))
    return "remove this comma: keys on lines of their own have none between them";
  // The end of a text that is not closed is another's beginning, or none.
  const bool is_behind_text =
      says("EOF in scalar") ||
      (says("end of map not found") && above >= 0 && lines.indent(line) == lines.indent(above));
  if (const auto quote = open_quote(lines, line); is_behind_text && quote)
    return fmt::format("{} is not closed: add the {} at the end of the text", name_of(*quote),
                       quote->sign);
  if (says("end of map not found") && above >= 0) return of_indents(lines, line);
  if (!says("illegal map value")) return {};
  if (above >= 0 && open.empty() && here.find(':') == static_cast<std::size_t>(column) &&
      lines.indent(line) > lines.indent(above))
    return of_indents(lines, line);
  if (const std::size_t colon = here.find(": ("); colon != here.npos && open.empty())
    return fmt::format("a map is written in {{ }}, not in ( ): {}: {{a: 1, b: 2}}",
                       here.substr(first, colon - first));
  return "write one 'key: value' on a line, or a map in braces: key: {a: 1, b: 2}";
}

}  // namespace

SyntaxHint syntax_hint(std::string_view text, int line, int column, std::string_view message) {
  const Lines lines(text);
  // Of a text that ends in the middle of an escape the parser says a place behind its end.
  column = std::clamp(column, 0, static_cast<int>(lines.at(line).size()));
  const int above = lines.above(line);
  const bool is_of_indents = message.find("end of map not found") != message.npos ||
                             message.find("illegal map value") != message.npos;
  if (is_of_indents && open_brackets(lines, line, column).empty() &&
      is_too_far_left(lines, above, line))
    return {above, lines.indent(above),
            fmt::format("this line is indented by {}, line {} by {}: keys of one map start in the "
                        "same column",
                        lines.indent(above), line + 1, lines.indent(line))};
  // A line that is no key is taken for the beginning of a text, which goes on in the next line.
  const bool continues = message.find("illegal map value") != message.npos && above >= 0 &&
                         open_brackets(lines, line, column).empty() && !has_key(lines.at(above)) &&
                         lines.at(line).find('\t') == std::string_view::npos;
  if (!continues) return {line, column, hint_here(lines, line, column, message)};
  return {above, lines.indent(above),
          lines.at(above).find(':') == std::string_view::npos
              ? "this line has no ':' after its key"
              : "this line has no space after its ':'"};
}

}  // namespace melflow
