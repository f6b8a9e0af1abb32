#include "apps/verbs/fit.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "apps/verbs/row_check.h"
#include "pipeline/base/problem.h"
#include "stages/output/output_sections.h"

namespace melflow {
namespace {

// Present in the files of one run with a file for each split.
std::string run_of(const FeatureFile& file) { return file.text("run_hash"); }

void add_rows(const FeatureFile& file, std::vector<std::string>& out) {
  const std::vector<FeatureFile::Entry>& files = file.files();
  const auto has_rows = [](const FeatureFile::Entry& e) { return e.count > 0; };
  const auto first = std::find_if(files.begin(), files.end(), has_rows);
  if (first == files.end()) return;
  const auto last = std::find_if(files.rbegin(), files.rend(), has_rows);
  for (const FeatureFile::Entry& e : {*first, *last}) {
    if (are_rows_right(file, e)) continue;
    out.push_back(
        fmt::format("{}: the rows of {} are not those that its index describes; "
                    "`melflow verify` says of how many files that is so",
                    file.path(), e.path));
    return;
  }
}

void add_others(const FeatureFile& file, std::vector<std::string>& out) {
  for (const std::string& path : files_of_all(file)) {
    if (path == file.path()) continue;
    try {
      if (const FeatureFile other(path); run_of(other) == run_of(file)) continue;
    } catch (const RunError&) {
      // It may be anything.
    }
    out.push_back(fmt::format(
        "{}: this file is not of the same run as {}: labels, splits or features may be others. "
        "`melflow update` of its pipeline makes them of one run",
        path, file.path()));
  }
}

}  // namespace

std::string path_of_all(const FeatureFile& file) {
  if (run_of(file).empty()) return file.path();
  const std::filesystem::path path(file.path());
  const std::string stem = path.stem().string();
  for (const std::string& split : file.splits())
    if (stem.ends_with("." + split))
      return (path.parent_path() /
              (stem.substr(0, stem.size() - split.size() - 1) + path.extension().string()))
          .string();
  return file.path();
}

std::vector<std::string> files_of_all(const FeatureFile& file) {
  if (run_of(file).empty()) return {file.path()};
  const std::string all = path_of_all(file);
  std::vector<std::string> out;
  std::error_code unknown;
  for (const std::string& split : file.splits())
    if (std::string path = OutputSections::path_of(all, split);
        std::filesystem::exists(path, unknown))
      out.push_back(std::move(path));
  if (std::filesystem::exists(all, unknown)) out.push_back(all);
  return out;
}

std::vector<std::string> misfits(const FeatureFile& file) {
  std::vector<std::string> out;
  if (std::string flaw = file.flaw(); !flaw.empty()) out.push_back(std::move(flaw));
  add_rows(file, out);
  add_others(file, out);
  return out;
}

}  // namespace melflow
