#include "stages/corpus/joined_table.h"

#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "pipeline/base/problem.h"
#include "pipeline/base/text.h"
#include "stages/corpus/table_reader.h"
#include "stages/corpus/text_lines.h"

namespace melflow {
namespace {

std::string without_blanks(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r";
  const std::size_t begin = std::min(text.find_first_not_of(kBlanks), text.size());
  return std::string(text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin));
}

}  // namespace

void TableJoin::describe(Schema& s) {
  s.field("table", table, "path of the table");
  s.field("on", on,
          "the entry of columns whose texts are looked up in the table, such as speaker; label: "
          "the labels are looked up, as where a table names classes");
  s.field("key", key, "the column of the table with these texts; not set: its first");
  s.field("columns", columns,
          "columns of the table that are stored for every file: [gender], or {gender: Gender}");
  s.field("label", label,
          "the column of the table with the label; with on: label it takes the place of the label");
  s.field("split", split, "the column of the table with the split");
  s.field("delimiter", format.delimiter, "as of manifest");
  s.field("header", format.header, "as of manifest");
  s.field("comment", format.comment, "as of manifest");
}

std::string OptionType<TableJoin>::parse(const Value& v, TableJoin& out) {
  if (!v.is_map())
    return detail::is_not(v, "a map, such as {table: speakers.csv, on: speaker, columns: [sex]}");
  TableJoin read;
  Schema schema;
  read.describe(schema);
  Problems problems;
  schema.read(v, "", problems);
  if (!problems.empty()) return problems.sorted().front().message;
  if (read.table.empty()) return "'table' is missing; write table: FILE";
  if (read.on.empty()) return "'on' is missing; write on: NAME, an entry of columns, or on: label";
  if (read.columns.list.empty() && read.label.empty() && read.split.empty())
    return "nothing is taken from the table; write columns, label or split";
  if (read.renames_labels() && (!read.columns.list.empty() || !read.split.empty()))
    return "on: label gives labels alone; remove columns and split";
  out = std::move(read);
  return {};
}

Value OptionType<TableJoin>::echo(const TableJoin& v) {
  TableJoin copy = v;
  Schema schema;
  copy.describe(schema);
  return schema.echo();
}

JoinedTable::JoinedTable(const TableJoin& join, const std::function<void(std::string)>& warn)
    : join_(join) {
  const std::string& path = join.table;
  const std::unique_ptr<TableReader> table = open_table(path, {}, join.format);
  if (join.key.empty() && table->columns().empty())
    throw RunError(path + ": the columns of this table have no order; name that of join.key");
  key_ = join.key.empty() ? table->columns().front() : join.key;
  const int key = require_column(*table, path, key_, "join.key");
  const auto optional = [&](const std::string& name, const char* option) {
    return name.empty() ? -1 : require_column(*table, path, name, option);
  };
  const int label = optional(join.label, "join.label"), split = optional(join.split, "join.split");
  std::vector<int> texts;
  for (const auto& [name, column] : join.columns.list)
    texts.push_back(require_column(*table, path, column, "join.columns"));

  const auto cell = [&](int column) {
    std::string text = column < 0 ? "" : without_blanks(table->cell(column));
    const auto [file, line] = table->place(column);
    require_utf8(text, std::string(file), line);
    return text;
  };
  std::size_t bad = 0, doubles = 0;
  std::string first_bad, first_double;
  for (;;) {
    try {
      if (!table->next()) break;
      const std::string name = cell(key);
      if (name.empty()) continue;
      Row row{{}, cell(label), cell(split)};
      for (const int text : texts) row.texts.push_back(cell(text));
      if (!rows_.insert_or_assign(name, std::move(row)).second && doubles++ == 0)
        first_double = name;
    } catch (const BadLine& e) {
      if (bad++ == 0) first_bad = e.what();
    }
  }
  if (rows_.empty())
    throw RunError(bad > 0 ? first_bad
                           : fmt::format("{}: there is no line with a {}", path, excerpt(key_)));
  if (bad > 0)
    warn(fmt::format("{}: {} {} cannot be used and {} left out; the first: {}", path, bad,
                     bad == 1 ? "line" : "lines", bad == 1 ? "is" : "are", first_bad));
  if (doubles > 0)
    warn(fmt::format("{}: {} {} a {} that was listed before, such as {}; the last one counts", path,
                     doubles, doubles == 1 ? "line has" : "lines have", excerpt(key_),
                     excerpt(first_double)));
}

const JoinedTable::Row* JoinedTable::find(std::string_view key) {
  if (key.empty()) return nullptr;
  const auto it = rows_.find(std::string(key));
  if (it != rows_.end()) {
    ++found_;
    return &it->second;
  }
  if (files_lacking_++ == 0) first_ = key;
  ++lacking_[std::string(key)];
  return nullptr;
}

std::string JoinedTable::remark() const {
  if (files_lacking_ == 0) return {};
  if (found_ == 0)
    throw RunError(fmt::format(
        "{}: its column {} has none of the values of {} in this corpus, such as {}; correct "
        "join.on or join.key{}",
        join_.table, excerpt(key_), excerpt(join_.on), excerpt(first_),
        join_.renames_labels() ? ", or set label_separator if a cell has several labels"
                               : ", or where that comes from (columns, root)"));
  return fmt::format(
      "{}: its column {} lacks {} of the values of {} in this corpus, such as {}; they "
      "occur {} times, and {}",
      join_.table, excerpt(key_), lacking_.size(), excerpt(join_.on), excerpt(first_),
      files_lacking_,
      join_.renames_labels() ? "stay as they are" : "what the table would give is empty there");
}

}  // namespace melflow
