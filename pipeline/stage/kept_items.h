// Items that the sinks of an update already have. Items that all sinks have are closed before the
// run; every other item passes through the graph for the sinks that lack it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <vector>

namespace melflow {

class Stage;

/// One of the services of a run; filled before the run begins.
class KeptItems {
 public:
  using Set = std::vector<bool>;  // one flag for each item

  /// Notes that a sink has item `index` of `items` from an earlier run.
  void has(const Stage& sink, std::size_t index, std::size_t items) {
    add(of_[&sink].had, index, items);
  }
  /// Notes that a sink has nothing of the item and would not get it: its route leads elsewhere.
  void goes_elsewhere(const Stage& sink, std::size_t index, std::size_t items) {
    add(of_[&sink].not_for_it, index, items);
  }

  /// The items that a sink has.
  [[nodiscard]] const Set& had_by(const Stage& sink) const {
    static const Set kNothing;
    const auto it = of_.find(&sink);
    return it == of_.end() ? kNothing : it->second.had;
  }
  [[nodiscard]] static bool contains(const Set& set, std::size_t index) {
    return index < set.size() && set[index];
  }
  /// Whether none of the `sinks` sinks needs the item and at least one has it.
  [[nodiscard]] bool is_complete(std::size_t sinks, std::size_t index) const {
    const auto has_it = [index](const auto& s) { return contains(s.second.had, index); };
    return of_.size() == sinks && std::any_of(of_.begin(), of_.end(), has_it) &&
           std::all_of(of_.begin(), of_.end(), [&](const auto& s) {
             return has_it(s) || contains(s.second.not_for_it, index);
           });
  }

 private:
  struct OfSink {
    Set had, not_for_it;
  };
  static void add(Set& to, std::size_t index, std::size_t items) {
    to.resize(items);
    to[index] = true;
  }
  std::map<const Stage*, OfSink> of_;
};

}  // namespace melflow
