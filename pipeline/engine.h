// What a stage gives for an item, and engines: stages whose items are under way in the hands of the
// system (a ring of requests, a device) instead of a thread's.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "pipeline/run_context.h"

namespace melflow {

/// What a call of a stage gives: a payload or nothing, and whether the same input has more to give.
struct Emission {
  std::shared_ptr<const void> payload;
  std::size_t bytes = 0;
  std::size_t rows = 0;
  bool more = false;
};

template <class T>
Emission emission(std::shared_ptr<const T> out, bool more = false) {
  Emission e;
  if (out) {
    e.bytes = out->bytes();
    e.rows = out->rows();
  }
  e.payload = std::move(out);
  e.more = more;
  return e;
}

/// Has many items under way. One thread of the graph calls begin() and collect().
class Engine {
 public:
  struct Done {
    void* tag = nullptr;
    Result<Emission> result;
  };
  Engine() = default;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  virtual ~Engine() = default;

  /// Takes an item without waiting for it. What `context` (which may be copied) refers to stays
  /// until the item is done. Throws as process() does; then there is no Done.
  virtual void begin(void* tag, const Item& item, const ItemContext& context) = 0;
  /// Appends what is done; waits until there is something, or until somebody calls wake(). Does not
  /// throw: an item is done with an error instead.
  virtual void collect(std::vector<Done>& done) = 0;
  /// From any thread; remembered until the next collect() returns.
  virtual void wake() = 0;
};

}  // namespace melflow
