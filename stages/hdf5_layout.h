// Everything in the output file but the rows: the index of files, labels, what went wrong, and the
// settings. The place to look when docs/output-format.md changes.
#pragma once

#include <hdf5.h>

#include "pipeline/stage.h"
#include "stages/row_order.h"

namespace melflow {

struct OutputIndex {
  RunContext& run;
  const RowOrder& order;
  const FeatureInfo& info;
  const Value& contract;  ///< the settings that decided the rows (AnyStage::contract)
  bool complete;
};

/// `rows` is the dataset /mel of `file`. Throws RunError.
void write_layout(hid_t file, hid_t rows, const OutputIndex& index);

}  // namespace melflow
