// Shared helpers of tests with several files per task.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "tests/pipeline/test_graph.h"

namespace melflow::test {

using Texts = std::vector<std::string>;

inline Texts remarks(const Outcomes& outcomes) {
  Texts out;
  for (const Remark& r : outcomes.remarks)
    out.push_back(r.name + " " + to_text(r.entry.outcome) + " " + r.entry.stage + ": " +
                  r.entry.reason);
  return out;
}

// Returns the items that have a row in a sink.
inline std::vector<std::size_t> items(World& world, const std::string& sink = "out") {
  std::set<std::size_t> found;
  for (const test::Row& r : world.rows(sink)) found.insert(r.item);
  return {found.begin(), found.end()};
}

inline std::vector<std::size_t> all_but(std::size_t count, const std::set<std::size_t>& without) {
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < count; ++i)
    if (!without.contains(i)) out.push_back(i);
  return out;
}

inline Graph together(int items, const std::string& files_per_task, Graph::Options step = {}) {
  return Graph()
      .node("files", "numbers", "",
            {{"items", std::to_string(items)}, {"files_per_task", files_per_task}})
      .node("a", "step", "files", std::move(step))
      .node("out", "keep", "a");
}

// A hook that lets one item fail. The files of a task reach a stage one after the other on one
// thread.
inline World::Hook fails(std::size_t item, const ItemError& error) {
  return [item, error](const Number& n, ItemContext*) -> std::optional<ItemError> {
    if (n.item == item) return error;
    return {};
  };
}

}  // namespace melflow::test
