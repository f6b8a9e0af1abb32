// The sink of a run that makes a part of an output: the rows of consecutive files of a corpus.
// MergePlanner assembles the parts.
//
// A part is an output with other options: one HDF5 file of contiguous rows, whatever the sink of
// the pipeline writes; neither split into files nor normalised.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "stages/output/row_sink.h"

namespace melflow {

class PartSink final : public RowSink {
 public:
  struct Part {
    std::string path;
    bool with_statistics = true;  ///< where the sink of the pipeline has statistics
    /// The facts that must decide the bytes of rows, or the run ends; none: any may.
    RunJournal::Facts row_facts = {};
  };
  /// `planned`: the sink of a checked pipeline, for an output of any format.
  PartSink(const RowSink& planned, Part part);

  /// Puts it in place of the sink of rows of a checked plan, the node `name`. It lives as long as
  /// the plan.
  static PartSink& replace(Plan& plan, const std::string& name, Part part);

  /// Throws RunError where this program makes other rows than Part::row_facts.
  void announce(RunContext& run) override;

  // After the run:
  [[nodiscard]] std::int64_t rows() const {
    return finishing() != nullptr ? finishing()->rows() : 0;
  }
  /// Where the output has statistics: the sums of all rows.
  [[nodiscard]] std::optional<ColumnSums> sums() const { return statistics().sums(); }

 private:
  [[nodiscard]] const char* stage_name() const override { return "hdf5_write"; }
  [[nodiscard]] std::unique_ptr<RowPartFile> make_row_file(const std::string& path,
                                                           const Opening& opening) const override;
  void complete_file(RowPartFile& file, const Shape& shape, const OutputIndex& index) override;

  RunJournal::Facts row_facts_;
};

}  // namespace melflow
