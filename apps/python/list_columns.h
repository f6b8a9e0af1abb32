// Entries of a batch for Python: rows, and columns of the file list.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "apps/python/arrays.h"
#include "apps/python/process.h"
#include "stages/manifest.h"
#include "stages/training/batch_queue.h"
#include "stages/training/sample_batch.h"

namespace melflow {

/// Adds rows as `name`, and as `length` how many each recording has.
void add_rows(SampleBatch::Rows rows, const std::string& name, const std::string& length,
              nb::dict& out);

/// Takes a batch from what makes batches, as a pass over a corpus; None behind the last one, False
/// where none came in time.
template <class Batch, class Source, class Show>
nb::object next_batch(Source& source, double seconds, const Show& show) {
  Batch batch;
  TakeResult taken{};
  {
    const WithoutLock free;
    taken = source.take(batch, seconds);
  }
  if (taken == TakeResult::ended) return nb::none();
  return taken == TakeResult::batch ? show(std::move(batch)) : nb::object(nb::bool_(false));
}

/// Adds "path" and, where the list has them, "label" or "labels", "split", "target" and texts under
/// their names, with one entry for each of `files`.
void describe(const Manifest& list, const std::vector<std::int64_t>& files, nb::dict& out);

}  // namespace melflow
