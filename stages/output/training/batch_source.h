// What a program that trains has to know of the stage which gives it batches.
#pragma once

#include <cstddef>
#include <memory>

#include "stages/items.h"

namespace melflow {

class BatchSource {
 public:
  /// The description of the rows; available after plan().
  [[nodiscard]] virtual std::shared_ptr<const FeatureInfo> rows() const = 0;
  /// Of the values in a batch.
  [[nodiscard]] virtual NumberType type() const = 0;
  /// How many batches may wait.
  [[nodiscard]] virtual std::size_t prefetch() const = 0;

 protected:
  ~BatchSource() = default;
};

}  // namespace melflow
