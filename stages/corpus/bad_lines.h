// Lines of a table that cannot be used: each fails its files alone.
#pragma once

#include <cstddef>
#include <string>

#include <fmt/format.h>

#include "pipeline/base/problem.h"
#include "stages/manifest.h"

namespace melflow {

class BadLines {
 public:
  /// Makes the file one that fails for this reason.
  void add(Manifest& manifest, std::size_t file, const std::string& why) {
    if (count_++ == 0) first_ = why;
    manifest.set_problem(file, why);
  }
  /// What a user should know of them; "" for none. `table`: its path; `lines`: how many were taken, bad
  /// ones or not. Throws RunError where all are bad, since then it is the table that is wrong.
  [[nodiscard]] std::string remark(const std::string& table, std::size_t lines) const {
    if (count_ == 0) return "";
    if (count_ == lines) throw RunError(first_);
    return fmt::format("{}: {} of {} lines cannot be used and {} alone; the first: {}", table,
                       count_, lines, count_ == 1 ? "fails" : "fail", first_);
  }

 private:
  std::size_t count_ = 0;
  std::string first_;
};

}  // namespace melflow
