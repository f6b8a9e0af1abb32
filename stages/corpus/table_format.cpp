#include "stages/corpus/table_format.h"

#include <algorithm>

#include <fmt/format.h>

#include "pipeline/base/text.h"

namespace melflow {
namespace {

// Reads a column's name or a template. Returns the problem with it, or "".
std::string read_source(const std::string& text, ColumnsAre::Source& out) {
  if (text.find_first_of("{}") == text.npos) return out = {"", text, ""}, "";
  out.clear();
  for (std::size_t at = 0;;) {
    const std::size_t open = std::min(text.find('{', at), text.size());
    out.push_back(text.substr(at, open - at));
    if (out.back().find('}') != std::string::npos) return "has a } without its {";
    if (open == text.size()) return "";
    const std::size_t close = text.find('}', open);
    if (close == text.npos) return "has a { without its }";
    out.push_back(text.substr(open + 1, close - open - 1));
    if (out.back().empty()) return "has a { } without the name of a column";
    at = close + 1;
  }
}

}  // namespace

const ColumnsAre::Column* ColumnsAre::find(std::string_view name) const {
  const auto it =
      std::find_if(list.begin(), list.end(), [&](const Column& c) { return c.name == name; });
  return it == list.end() ? nullptr : &*it;
}

std::vector<std::string> ColumnsAre::sources(std::string_view name) const {
  const Column* const column = find(name);
  if (column == nullptr) return {std::string(name)};
  std::vector<std::string> out;
  for (std::size_t i = 1; i < column->source.size(); i += 2)
    if (column->source[i] != kFolder) out.push_back(column->source[i]);
  return out;
}

std::vector<std::string> ColumnsAre::sources() const {
  std::vector<std::string> out;
  for (const Column& column : list)
    for (std::string& name : sources(column.name)) out.push_back(std::move(name));
  return out;
}

std::string OptionType<ColumnsAre>::parse(const Value& v, ColumnsAre& out) {
  if (!v.is_map()) return detail::is_not(v, "a map, such as {path: file, label: category}");
  ColumnsAre read;
  for (const Value::Entry& e : v.entries()) {
    ColumnsAre::Column column{.name = e.key, .text = {}, .source = {}};
    std::string why = OptionType<std::string>::parse(e.value, column.text);
    if (why.empty() && column.text.empty()) why = "is empty; name a column";
    if (why.empty()) {
      why = read_source(column.text, column.source);
      if (!why.empty())
        why = fmt::format("'{}' {}; a template is written as in wavs/{{id}}.wav",
                          excerpt(column.text), why);
    }
    if (!why.empty()) return excerpt(e.key) + ": " + why;
    read.list.push_back(std::move(column));
  }
  out = std::move(read);
  return {};
}

Value OptionType<ColumnsAre>::echo(const ColumnsAre& v) {
  Value out = Value::map({});
  for (const ColumnsAre::Column& column : v.list)
    out.set(column.name, OptionType<std::string>::echo(column.text));
  return out;
}

void TableFormat::describe(Schema& s, const std::function<bool()>& has_cells) {
  const std::string cells = "a table with delimiters (.csv, .tsv)";
  s.field("delimiter", delimiter,
          "what separates the cells of a table (manifest or label_file), such as '|' or ', '; a "
          "blank: any number of blanks and tabs, the last column has the rest; not set: commas in "
          "a .csv, tabs in a .tsv")
      .used_with(cells, has_cells);
  s.field(
       "header", header,
       "names of the columns of a table without a first line for them; three dots behind the last "
       "give it the rest of each line; with header or delimiter, a manifest of any name is a table")
      .used_with(cells, has_cells);
  s.field("comment", comment,
          "how lines begin that are no rows of a table, such as '#'; not set: every line is one")
      .used_with(cells, has_cells);
  s.field("quoting", quoting,
          "whether cells of a table may be in quotes; none: a quote is an ordinary character; csv: "
          "as in RFC 4180, also with line breaks in quotes; auto: csv where the delimiter begins "
          "with a comma or semicolon, else none")
      .used_with(cells, has_cells);
  s.field("columns_are", columns_are,
          "columns of a table that have other names there: {path: file, label: category, start: "
          "from}, also split, end, duration, channel and names that columns, targets or "
          "split_group read; a value is a column, or a template (wavs/{id}.wav) (docs/corpora.md)");
}

}  // namespace melflow
