#include "apps/testing/test_checks.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "apps/report/format.h"
#include "pipeline/base/problem.h"
#include "pipeline/base/text.h"
#include "stages/files/npy_array.h"
#include "stages/output/formats/feature_file.h"

namespace melflow {
namespace fs = std::filesystem;
namespace {

class Failures {
 public:
  template <class... Args>
  void add(fmt::format_string<Args...> text, Args&&... args) {
    all_.push_back(fmt::format(text, std::forward<Args>(args)...));
  }
  std::vector<std::string> take() { return std::move(all_); }

 private:
  std::vector<std::string> all_;
};

// Opens the row files in a folder: one, or one per split.
std::vector<std::unique_ptr<FeatureFile>> row_files(const fs::path& folder) {
  std::vector<fs::path> paths;
  for (const fs::directory_entry& e : fs::directory_iterator(folder)) {
    const std::string name = e.path().filename();
    if (name.ends_with(".h5") || (name.ends_with(".npy") && !name.ends_with(".index.npy")))
      paths.push_back(e.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<std::unique_ptr<FeatureFile>> out;
  out.reserve(paths.size());
  for (const fs::path& p : paths) out.push_back(std::make_unique<FeatureFile>(p.string()));
  return out;
}

// Lists all files in the folder of an output that has no rows.
std::vector<std::string> paths_below(const fs::path& folder) {
  std::vector<std::string> out;
  for (const fs::directory_entry& e : fs::recursive_directory_iterator(folder))
    if (e.is_regular_file()) out.push_back(e.path().lexically_relative(folder).string());
  std::sort(out.begin(), out.end());
  return out;
}

class OutputCheck {
 public:
  OutputCheck(const ExpectedOutput& expected, fs::path output, fs::path folder, Failures& failures)
      : expected_(expected),
        output_(std::move(output)),
        folder_(std::move(folder)),
        failures_(failures) {}

  void check() {
    files_ = row_files(output_);
    if (files_.empty()) return check_paths();
    check_shape();
    if (expected_.files) check_files();
    for (const ExpectedValues& v : expected_.values) check_values(v);
  }

 private:
  struct Place {
    const FeatureFile* file = nullptr;
    const FeatureFile::Entry* entry = nullptr;
  };

  void check_paths() {
    if (expected_.rows || !expected_.shape.empty() || expected_.dtype || !expected_.values.empty())
      failures_.add("{}: there is no output of rows; only files can be expected of it",
                    expected_.node);
    if (!expected_.files) return;
    std::map<std::string, std::int64_t> there;
    for (const std::string& path : paths_below(output_)) there[path] = 1;
    check_names(there);
  }

  void check_shape() {
    std::uint64_t rows = 0;
    for (const auto& f : files_) rows += f->rows();
    if (expected_.rows && *expected_.rows != static_cast<std::int64_t>(rows))
      failures_.add("{}: {}, expected {}", expected_.node, plural(rows, "row"), *expected_.rows);
    for (const auto& f : files_) {
      const std::vector<std::int64_t> shape(f->shape().begin(), f->shape().end());
      if (!expected_.shape.empty() && shape != expected_.shape)
        failures_.add("{}: the shape is [{}], expected [{}]", expected_.node,
                      fmt::join(shape, ", "), fmt::join(expected_.shape, ", "));
      if (expected_.dtype && *expected_.dtype != f->dtype())
        failures_.add("{}: dtype is {}, expected {}", expected_.node, f->dtype(), *expected_.dtype);
    }
  }

  void check_files() {
    std::map<std::string, std::int64_t> there;
    for (const auto& f : files_)
      for (const FeatureFile::Entry& e : f->files())
        if (e.count > 0) there[e.path] = e.count;
    check_names(there);
    for (const auto& [path, rows] : *expected_.files)
      if (const auto it = there.find(path); rows && it != there.end() && it->second != *rows)
        failures_.add("{}: {} has {}, expected {}", expected_.node, one_line(path),
                      plural(static_cast<std::size_t>(it->second), "row"), *rows);
  }

  void check_names(const std::map<std::string, std::int64_t>& there) {
    std::map<std::string, bool> wanted;
    for (const auto& [path, rows] : *expected_.files) {
      wanted[path] = rows != 0;
      if (rows != 0 && !there.contains(path))
        failures_.add("{}: has nothing of {}", expected_.node, one_line(path));
    }
    for (const auto& [path, rows] : there)
      if (const auto it = wanted.find(path); it == wanted.end() || !it->second)
        failures_.add("{}: has {}, which is not expected in it", expected_.node, one_line(path));
  }

  [[nodiscard]] std::optional<Place> find(const std::string& path) const {
    for (const auto& f : files_)
      for (const FeatureFile::Entry& e : f->files())
        if (e.path == path) return Place{f.get(), &e};
    return std::nullopt;
  }

  void check_values(const ExpectedValues& v) {
    const auto place = find(v.file);
    if (!place) return failures_.add("{}: has nothing of {}", expected_.node, one_line(v.file));
    const std::uint64_t width = place->file->has_samples()
                                    ? place->file->frames_per_row()
                                    : place->file->frames_per_row() * place->file->bands();
    std::vector<double> wanted = v.numbers;
    std::uint64_t columns = wanted.size(), rows = 1;
    if (!v.npy.empty()) {
      const fs::path path = folder_ / v.npy;
      NpyArray array = read_npy_array(path.string());
      wanted = std::move(array.values);
      rows = array.shape.size() < 2 ? 1 : array.shape.front();
      columns = rows == 0 ? 0 : wanted.size() / rows;
      if (static_cast<std::uint64_t>(place->entry->count) !=
          rows + static_cast<std::uint64_t>(v.row))
        failures_.add("{}: {} has {}, {} has {} from row {} on", expected_.node, one_line(v.file),
                      plural(static_cast<std::size_t>(place->entry->count), "row"), one_line(v.npy),
                      rows, v.row);
    }
    const auto first = static_cast<std::uint64_t>(v.column);
    if (static_cast<std::uint64_t>(v.row) + rows >
            static_cast<std::uint64_t>(place->entry->count) ||
        first + columns > width)
      return failures_.add(
          "{}: {} has rows 0 to {} of {} values; row {}, column {} with {} "
          "values is not among them",
          expected_.node, one_line(v.file), place->entry->count - 1, width,
          v.row + static_cast<std::int64_t>(rows) - 1, v.column, columns);
    const std::vector<double> got = place->file->read_rows<double>(
        static_cast<std::uint64_t>(place->entry->offset + v.row), rows);
    compare(v, wanted, got, columns, width);
  }

  // Reports the first value that differs, and how many do.
  void compare(const ExpectedValues& v, const std::vector<double>& wanted,
               const std::vector<double>& got, std::uint64_t columns, std::uint64_t width) {
    std::size_t wrong = 0, at = 0;
    double largest = 0;
    const auto value = [&](std::size_t i) {
      return got[i / columns * width + static_cast<std::uint64_t>(v.column) + i % columns];
    };
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const double difference = std::abs(value(i) - wanted[i]);
      if (difference <= v.within || value(i) == wanted[i] ||
          (std::isnan(value(i)) && std::isnan(wanted[i])))
        continue;
      if (wrong++ == 0) at = i;
      largest = std::max(largest, difference);
    }
    if (wrong == 0) return;
    failures_.add("{}: {}, row {}, column {}: {:.8g}, expected {:.8g} within {:g}{}",
                  expected_.node, one_line(v.file), v.row + static_cast<std::int64_t>(at / columns),
                  v.column + static_cast<std::int64_t>(at % columns), value(at), wanted[at],
                  v.within,
                  wrong == 1 ? ""
                             : fmt::format("; {} of {} values differ, by up to {:g}", wrong,
                                           wanted.size(), largest));
  }

  const ExpectedOutput& expected_;
  fs::path output_, folder_;
  Failures& failures_;
  std::vector<std::unique_ptr<FeatureFile>> files_;
};

void check_counts(const ExpectedRun& expected, const Ledger::Counts& counts, Failures& failures) {
  const auto check = [&](const char* what, const std::optional<std::int64_t>& wanted,
                         std::size_t got) {
    if (wanted && *wanted != static_cast<std::int64_t>(got))
      failures.add("{}: {}, expected {}", what, plural(got, "file"), *wanted);
  };
  check("ok", expected.ok, counts.ok);
  check("skipped", expected.skipped, counts.skipped);
  check("failed", expected.failed, counts.failed);
}

// Formats a remark as in a run's summary, without the path: "decode: failed: reason".
std::string text_of(const Remark& r) {
  return fmt::format("{}: {}: {}", r.entry.stage, to_text(r.entry.outcome), r.entry.reason);
}

void check_remarks(const ExpectedRun& expected, const std::vector<Remark>& remarks,
                   Failures& failures) {
  for (const auto& [path, text] : expected.remarks) {
    const auto is_of = [&, &path = path](const Remark& r) { return r.name == path; };
    const auto it = std::find_if(remarks.begin(), remarks.end(), is_of);
    if (it == remarks.end())
      failures.add("{}: there is no message about it, expected \"{}\"", one_line(path),
                   one_line(text));
    else if (text_of(*it).find(text) == std::string::npos)
      failures.add(R"({}: "{}", expected "{}")", one_line(path), one_line(text_of(*it)),
                   one_line(text));
  }
}

}  // namespace

std::vector<std::string> check_test(const ExpectedRun& expected, const TestedRun& run,
                                    const fs::path& folder) {
  Failures failures;
  const std::string& error = run.report.error;
  if (expected.error && error.find(*expected.error) == std::string::npos)
    failures.add("{}, expected the error \"{}\"",
                 error.empty() ? "the run did not fail" : fmt::format("the run failed: {}", error),
                 one_line(*expected.error));
  if (!expected.error && run.report.ending == Ending::failed)
    failures.add("the run failed: {}", error);
  check_counts(expected, run.report.counts, failures);
  check_remarks(expected, run.remarks, failures);
  for (const ExpectedOutput& output : expected.outputs)
    for (const auto& [node, path] : run.outputs)
      if (node == output.node) OutputCheck(output, path, folder, failures).check();
  return failures.take();
}

}  // namespace melflow
