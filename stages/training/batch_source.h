// The interface between a training program and the stage that provides its batches.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "stages/items.h"

namespace melflow {

/// Rows that a batch has for every sample, from one input of the stage.
struct BatchInput {
  std::string name;  ///< in a batch
  std::shared_ptr<const FeatureInfo> rows;
  NumberType type = NumberType::float32;  ///< of the values in a batch
};

/// Returns [frames, columns], without the axes that a row does not have.
inline std::vector<std::size_t> row_shape(const FeatureInfo& rows) {
  std::vector<std::size_t> shape;
  if (rows.frames > 0) shape.push_back(static_cast<std::size_t>(rows.frames));
  if (!rows.is_samples()) shape.push_back(static_cast<std::size_t>(rows.columns));
  return shape;
}

class BatchSource {
 public:
  /// One input, or several with the same samples; available after plan().
  [[nodiscard]] virtual const std::vector<BatchInput>& inputs() const = 0;
  /// The number of batches that may wait.
  [[nodiscard]] virtual std::size_t prefetch() const = 0;
  /// Whether the order of samples depends on how large batches are.
  [[nodiscard]] virtual bool has_buckets() const = 0;

 protected:
  ~BatchSource() = default;
};

}  // namespace melflow
