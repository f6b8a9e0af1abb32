#include "apps/verbs/output_check.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <filesystem>

#include <fmt/format.h>

#include "apps/console.h"
#include "pipeline/base/cpu.h"
#include "pipeline/base/problem.h"
#include "pipeline/base/threads.h"
#include "stages/output/output_sections.h"
#include "stages/output/rows/row_hash.h"

namespace melflow {
namespace {

// Equal in all files of a run that writes one file per split; "" in other outputs.
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
                    "`melflow verify` says how many files have wrong rows",
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
      // The other file may be anything.
    }
    out.push_back(fmt::format(
        "{}: this file is not of the same run as {}: labels, splits or features may be others. "
        "`melflow update` of its pipeline makes them of one run",
        path, file.path()));
  }
}

constexpr std::uint64_t kBytesAtOnce = 4 << 20;

enum class State : char { no_rows, right, wrong, unknown };

State state_of(const FeatureFile& file, const FeatureFile::Entry& entry) {
  if (entry.count == 0) return State::no_rows;
  if (entry.rows_hash == 0) return State::unknown;
  const std::uint64_t row_bytes = file.data().values_per_row() * size_of(file.type());
  const auto at_once =
      static_cast<std::int64_t>(std::max<std::uint64_t>(1, kBytesAtOnce / row_bytes));
  RowHash hash;
  for (std::int64_t row = 0; row < entry.count; row += at_once) {
    const std::vector<std::byte> rows =
        file.read_stored(static_cast<std::uint64_t>(entry.offset + row),
                         static_cast<std::uint64_t>(std::min(at_once, entry.count - row)));
    hash.add(rows.data(), rows.size());
  }
  return hash.value() == entry.rows_hash ? State::right : State::wrong;
}

State checked(const FeatureFile& file, const FeatureFile::Entry& entry) {
  try {
    return state_of(file, entry);
  } catch (const RunError&) {  // a damaged chunk cannot be unpacked
    return State::wrong;
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

std::vector<std::string> misfits(const FeatureFile& file, bool with_rows) {
  std::vector<std::string> out;
  if (std::string flaw = file.flaw(); !flaw.empty()) out.push_back(std::move(flaw));
  if (with_rows) add_rows(file, out);
  add_others(file, out);
  return out;
}

bool are_rows_right(const FeatureFile& file, const FeatureFile::Entry& entry) {
  (void)file.type();  // throws where melflow does not know it
  return entry.rows_hash == 0 || checked(file, entry) != State::wrong;
}

CheckedRows check_rows(const FeatureFile& file) {
  (void)file.type();  // throws where melflow does not know it
  std::vector<State> states(file.files().size(), State::no_rows);
  std::atomic<std::size_t> next{0};
  on_threads(available_cpus(), [&] {
    for (std::size_t i = 0; (i = next.fetch_add(1)) < states.size() && !is_asked_to_stop();)
      states[i] = checked(file, file.files()[i]);
  });
  if (is_asked_to_stop()) throw RunError("stopped before all rows were read");
  CheckedRows out;
  for (std::size_t i = 0; i < states.size(); ++i) {
    if (states[i] == State::wrong) out.wrong.push_back(i);
    out.right += states[i] == State::right ? 1 : 0;
    out.unknown += states[i] == State::unknown ? 1 : 0;
  }
  return out;
}

}  // namespace melflow
