#include "stages/training/sample_batch.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace melflow {

SampleBatch::Rows::Rows(BufferPool& pool, NumberType values, std::size_t samples,
                        const std::vector<std::size_t>& row, std::optional<std::size_t> longest)
    : type(values), shape{samples} {
  if (longest) shape.push_back(*longest);
  shape.insert(shape.end(), row.begin(), row.end());
  data = pool.lease(std::max<std::size_t>(
      1, std::accumulate(shape.begin(), shape.end(), size_of(type), std::multiplies<>())));
}

}  // namespace melflow
