// Counts the reasons why source items are not ok; reasons that differ only in numbers count as one.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "pipeline/stage/ledger.h"

namespace melflow {

class Reasons {
 public:
  struct Reason {
    Ledger::Entry first;
    std::size_t count = 0;
    bool is_example = false;  ///< others contain other numbers
    /// Names of the first items, at most kNames, as far as passed to add().
    std::vector<std::string> names;
  };
  static constexpr std::size_t kNames = 3;

  void add(const Ledger::Entry& entry, const std::string& name = "");
  /// Returns the reasons, the most frequent first.
  [[nodiscard]] std::vector<Reason> sorted() const;

 private:
  std::map<std::string, Reason> reasons_;
};

/// Describes a run in which no item is ok: the outcomes, the reasons, and what to do.
std::string nothing_ok_text(const Ledger& ledger, std::size_t items);

/// Describes all items with an outcome: "12 by segment: such as lasts 1.2 s; 3 by keep: is empty",
/// with the most frequent reasons and the number of the others. Has no number if there is only one
/// reason, and no "by" if no stage reported it.
std::string reasons_text(const Ledger& ledger, std::size_t items, Outcome outcome);

}  // namespace melflow
