// Reads what a table's columns and paths say about files: labels, numbers, texts and spans. A line
// that cannot be used fails only its own files.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "pipeline/base/problem.h"
#include "stages/corpus/file_list_options.h"
#include "stages/corpus/name_rule.h"
#include "stages/corpus/table_reader.h"
#include "stages/manifest.h"

namespace melflow {

struct PathColumn {
  std::string name;  ///< in warnings: "columns: speaker"
  NameRule rule;
  std::size_t files = 0, without = 0, first_without = 0;

  /// Returns the text of the file with that number; "" where the rule finds none. `beside`: the
  /// text in the file beside it, if the rule names one.
  std::string_view take(std::string_view path, std::string_view beside, std::size_t file);
  /// Returns a warning about files without a text, or "". Throws RunError where no file has one.
  [[nodiscard]] std::string remark(const Manifest& manifest) const;
};

class SpanColumns {
 public:
  /// Throws RunError when a column is missing.
  SpanColumns(const ColumnsAre& are, TableReader& table, const std::string& path);
  /// Returns the span of the table's present row. Throws BadLine for a cell that is no number, or a
  /// span that is no part of a recording.
  [[nodiscard]] Manifest::Span take(const TableReader& table) const;
  /// The numbers, from 0, of the columns that take() reads.
  [[nodiscard]] std::vector<int> columns() const { return {start_, end_}; }

 private:
  [[nodiscard]] double number(const TableReader& table, int column) const;

  int start_ = -1, end_ = -1;  // `end_`: the column of the end or the duration
  bool is_duration_ = false;
};

/// Reads which channel of its file a line means, if columns_are names a column for that.
class ChannelColumn {
 public:
  /// Throws RunError when the column is missing.
  ChannelColumn(const ColumnsAre& are, TableReader& table, const std::string& path);
  /// The path of the present row's recording; `path`: that of its file. Throws BadLine for a cell
  /// that is no channel.
  [[nodiscard]] std::string path_of(std::string_view path, const TableReader& table) const;
  [[nodiscard]] int column() const { return column_; }

 private:
  int column_ = -1, first_ = 1;  // -1: there is none
};

class LabelColumns {
 public:
  /// Returns what a label of the table is called in the output.
  using Renamed = std::function<std::string_view(std::string_view)>;
  /// `with_labels` false: reads targets and texts only. Throws RunError when a column is missing.
  LabelColumns(
      const FileListOptions& options, TableReader& table, std::string path, bool with_labels,
      Renamed renamed = [](std::string_view label) { return label; });
  /// Stores labels, targets and texts of the table's present row for the file. Throws BadLine for a
  /// target that is no number; RunError for a text that is not UTF-8.
  void take(const TableReader& table, Manifest& manifest, std::size_t file);
  /// The numbers, from 0, of the columns that take() reads.
  [[nodiscard]] std::vector<int> columns() const;
  /// A warning about columns that had no text in any row that was taken, or "".
  [[nodiscard]] std::string remark() const;

 private:
  void require_text(const TableReader& table, int column) const;
  void take_text(const TableReader& table, std::size_t text, Manifest& manifest, std::size_t file);
  void take_labels(const std::string& text, Manifest& manifest, std::size_t file);

  const FileListOptions& options_;
  std::string path_;
  Renamed renamed_;
  int label_ = -1;  // number of the label's column; -1: labels are not read
  std::vector<int> targets_;
  std::vector<int> texts_;      // for each of the options' columns; -1: not a column of a table
  std::vector<bool> has_text_;  // so far
  std::size_t rows_ = 0;
  std::vector<std::string_view> names_;
};

class BadLines {
 public:
  /// Marks the file as one that fails for this reason.
  void add(Manifest& manifest, std::size_t file, const std::string& why) {
    if (count_++ == 0) first_ = why;
    manifest.set_problem(file, why);
  }
  /// Returns a warning about the bad lines, or "". `table`: its path; `what`: what it calls a line;
  /// `lines`: how many were read, bad or not. Throws RunError where all are bad, since then the
  /// table itself is wrong.
  [[nodiscard]] std::string remark(const std::string& table, const char* what,
                                   std::size_t lines) const {
    if (count_ == 0) return "";
    if (count_ == lines) throw RunError(first_);
    return fmt::format("{}: {} of {} {}s cannot be used and {} alone; the first: {}", table, count_,
                       lines, what, count_ == 1 ? "fails" : "fail", first_);
  }

 private:
  std::size_t count_ = 0;
  std::string first_;
};

}  // namespace melflow
