// The result of a stage for an item; and engines, which pass items to the system (an I/O ring, a
// device) so that no thread has to wait for each of them.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "pipeline/stage/run_context.h"

namespace melflow {

/// Describes the payload of a stage that cuts streams into parts (StageTraits::cuts).
struct PartOf {
  std::shared_ptr<Stream> stream;  ///< the part that the payload is a piece of
  bool first = true, last = true;  ///< whether the payload is the first or last piece of that part
  /// With `more`: the bytes of the next payload, and the record of the part that it belongs to.
  std::size_t next_bytes = 0, next_record = 0;
};

/// The result of one call of a stage: a payload or none, and whether the same input yields more.
struct Emission {
  std::shared_ptr<const void> payload;
  std::size_t bytes = 0;
  std::size_t rows = 0;
  bool more = false;
  int output = -1;  ///< which output takes it, for a stage with named outputs
  PartOf part = {};
  /// For a stage that divides: whether the payload ends its sub-item, and the sub-item's span.
  bool ends = true;
  std::optional<Span> span = std::nullopt;
  std::shared_ptr<const Origins> origins = nullptr;  ///< set where they differ from the item's
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

/// Works on many items at once.
/// Threads: begin() and collect() from one thread of the graph; wake() from any.
/// Lifetime: destroyed after the last item is done, and before its stage.
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

  /// Begins an item without waiting for it. `context` may be copied; it stays valid until the item
  /// is done. Throws as process() does, and then adds no Done for the item.
  virtual void begin(void* tag, const Item& item, const ItemContext& context) = 0;
  /// Appends the items that are done. Waits until there is one or wake() is called. Does not throw:
  /// an item that fails is done with an error.
  virtual void collect(std::vector<Done>& done) = 0;
  /// Makes collect() return, also when it is called later. May be called from any thread.
  virtual void wake() = 0;
};

}  // namespace melflow
