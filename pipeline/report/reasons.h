// Counts the reasons why source items are not ok; reasons that differ only in their numbers count
// as one.
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
    bool is_example = false;  ///< others have other numbers
    /// Of the first items, kNames at most, as far as add() was told.
    std::vector<std::string> names;
  };
  static constexpr std::size_t kNames = 3;

  void add(const Ledger::Entry& entry, const std::string& name = "");
  /// The most frequent first.
  [[nodiscard]] std::vector<Reason> sorted() const;

 private:
  std::map<std::string, Reason> reasons_;
};

/// Of a run in which no item is ok: how they ended and why, and what to do.
std::string nothing_ok_text(const Ledger& ledger, std::size_t items);

/// Of all items that ended so, "12 by segment: such as lasts 1.2 s; 3 by keep: is empty": the most
/// frequent reasons and the number of the others; without a number where there is one reason, and
/// without "by" where no stage said it.
std::string reasons_text(const Ledger& ledger, std::size_t items, Outcome outcome);

}  // namespace melflow
