// A file list that has listed its files, for the tests of that stage.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "stages/facts.h"
#include "stages/manifest.h"
#include "stages/run_task.h"
#include "tests/stage/bench.h"
#include "tests/support/temp_folder.h"

namespace melflow::test {

class List {
 public:
  /// Throws RunError where the options, or the corpus, are wrong.
  explicit List(const std::string& options) : List(options, nullptr) {}
  /// As in an update of an output that has these files, by path, with their splits ("": none).
  List(const std::string& options, const std::map<std::string, std::string>& earlier)
      : List(options, &earlier) {}
  [[nodiscard]] Bench& bench() { return bench_; }
  [[nodiscard]] const Manifest& manifest() {
    return dynamic_cast<const ManifestSource&>(bench_.stage()).manifest();
  }
  [[nodiscard]] const std::vector<std::string>& warnings() { return bench_.run_warnings(); }

  [[nodiscard]] std::vector<std::string> paths() {
    std::vector<std::string> out;
    for (std::size_t i = 0; i < bench_.source().count(); ++i)
      out.push_back(bench_.source().name(i));
    return out;
  }
  /// Returns the name of a file's split; "-" for none.
  [[nodiscard]] std::string split_of(std::size_t file) {
    const int s = manifest().split(file);
    return s < 0 ? "-" : manifest().split_names().at(static_cast<std::size_t>(s));
  }
  [[nodiscard]] std::map<std::string, std::string> splits_by_path() {
    std::map<std::string, std::string> out;
    for (std::size_t i = 0; i < manifest().size(); ++i) out[manifest().relative(i)] = split_of(i);
    return out;
  }

 private:
  List(const std::string& options, const std::map<std::string, std::string>* earlier)
      : bench_("file_list", options) {
    if (earlier != nullptr) {
      RunTask& task = *set_task(bench_.run().services, {.update = Update::append});
      std::vector<EarlierFile>& files = task.earlier.emplace_back();
      for (const auto& [path, split] : *earlier)
        files.push_back({path, split == "-" ? std::string_view() : split});
    }
    const Planned planned = bench_.plan();
    if (!planned.errors.empty()) throw RunError("plan: " + planned.errors.front());
    bench_.stage().start(bench_.run());
  }

  Bench bench_;
};

/// Returns options for a list of the folder.
inline std::string root(const TempFolder& folder, const std::string& more = "") {
  return "{root: '" + folder.path() + "'" + (more.empty() ? "" : ", " + more) + "}";
}

/// Returns the message, with the folder's path replaced by @; "" if nothing is thrown.
template <class... Earlier>
std::string complaint(const TempFolder& folder, const std::string& options,
                      const Earlier&... earlier) {
  try {
    const List list(options, earlier...);
  } catch (const RunError& e) {
    std::string text = e.what();
    for (std::size_t at; (at = text.find(folder.path())) != text.npos;)
      text.replace(at, folder.path().size(), "@");
    return text;
  }
  return "";
}

}  // namespace melflow::test
