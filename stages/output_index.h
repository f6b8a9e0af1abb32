// What every output says beside its rows: which file has which of them, what became of each file,
// and the settings. How it is stored is the matter of hdf5_layout and npy_layout; the place to look
// when docs/output-format.md changes.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/stage.h"
#include "stages/row_order.h"

namespace melflow {

class Manifest;

struct OutputIndex {
  static constexpr int kFormat = 1;
  /// Stored as numbers, from 0 on.
  static constexpr const char* kStatusNames[] = {"ok", "skipped", "failed", "not_run"};

  RunContext& run;
  const RowOrder& order;
  const FeatureInfo& info;
  const Value& contract;  ///< the settings that decided the rows (AnyStage::contract)
  bool complete;
  const Manifest* manifest = manifest_of(run.source);  ///< null where the source lists no files

  [[nodiscard]] std::size_t files() const { return run.ledger.counts().found; }
  [[nodiscard]] std::string root() const;
  [[nodiscard]] std::string path(std::size_t file) const { return run.source.source_name(file); }
  /// -1 for none.
  [[nodiscard]] std::int32_t label(std::size_t file) const;
  [[nodiscard]] std::int8_t split(std::size_t file) const;
  [[nodiscard]] const std::vector<std::string>& label_names() const;
  [[nodiscard]] const std::vector<std::string>& split_names() const;
  [[nodiscard]] double duration(std::size_t file) const;  ///< [s]
  [[nodiscard]] std::int8_t status(std::size_t file) const;
  /// Files that were skipped, failed, or are ok with a remark, in order.
  [[nodiscard]] std::vector<std::size_t> remarked() const;
  /// The accounts and their names.
  [[nodiscard]] std::vector<std::pair<const char*, std::int64_t>> counts() const;
  /// Names of the axes of the rows: "row", with several frames in a row "frame", and what a column
  /// is.
  [[nodiscard]] std::vector<std::string> axes() const;

 private:
  static const Manifest* manifest_of(const AnyStage& source);
};

}  // namespace melflow
