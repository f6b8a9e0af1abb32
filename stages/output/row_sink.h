// What sinks of rows have in common, whatever the format of the file: rows go to their place in
// manifest order as soon as that is known, and the file gets its name when the run is complete.
//
// In: MelBatch.
//
// A sink of a format says which RowPartFile takes the rows and how it is completed.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/plan.h"
#include "pipeline/stage_kinds.h"
#include "stages/items.h"
#include "stages/output/earlier_output.h"
#include "stages/output/formats/output_index.h"
#include "stages/output/formats/row_part_file.h"
#include "stages/output/output_sections.h"
#include "stages/output/row_sink_options.h"
#include "stages/output/row_writer.h"
#include "stages/output/sink_statistics.h"

namespace melflow {

class RowSink : public Sink<MelBatch>, public HoldsItems, public KeepsMemory {
 public:
  explicit RowSink(RowSinkOptions options) : target_(std::move(options)) {}

  [[nodiscard]] Requirements require(const Requirements& below) const override;
  Properties plan(const Properties& given, const Requirements& below, PlanCheck& check) override;
  [[nodiscard]] std::optional<Value> settings() const override;
  /// What its rows are, from plan() on.
  [[nodiscard]] const FeatureInfo& info() const { return *info_; }
  [[nodiscard]] StageResources resources() const override {
    return {.files_made = files_of(target_.path)};
  }
  [[nodiscard]] std::size_t kept_memory(const RunContext& run, int concurrency) const override;
  void start(RunContext& run) override;
  std::optional<ItemError> consume(std::shared_ptr<const MelBatch> in,
                                   ItemContext& context) override;
  void drop_waiting() override;
  void finish(RunContext& run, Ending ending) override;
  [[nodiscard]] std::vector<std::pair<std::string, Value>> summary() const override;

 protected:
  using Shape = std::vector<std::uint64_t>;  // of the rows: [rows, columns] or with frames between

  /// For messages.
  [[nodiscard]] virtual const char* stage_name() const = 0;
  /// All that belong to the rows of `path`.
  [[nodiscard]] virtual std::vector<std::string> files_of(const std::string& path) const {
    return {path};
  }
  /// Before the first row.
  [[nodiscard]] virtual std::unique_ptr<RowPartFile> make_row_file(const std::string& path,
                                                                   Existing existing) const = 0;
  /// Bytes that such files keep at most, when so many threads write to so many of them.
  [[nodiscard]] virtual std::size_t file_memory(int /*threads*/, std::size_t /*files*/) const {
    return 0;
  }
  /// The byte of the output that rows which are to be extended in place have to begin at; -1 where
  /// such an output cannot be extended.
  [[nodiscard]] virtual std::int64_t extensible_at() const { return -1; }
  /// After the last one: adds to the file that make_row_file() made what belongs around the rows.
  virtual void complete_file(RowPartFile& file, const Shape& shape, const OutputIndex& index) = 0;
  /// For the report; "" where there is only one.
  [[nodiscard]] virtual std::string layout_name() const { return ""; }

  [[nodiscard]] const RowSinkOptions& target() const { return target_; }
  [[nodiscard]] Shape shape_of(std::int64_t rows) const;

 private:
  void open_files(RunContext& run);
  void check_files(const RunContext& run) const;
  void complete(RunContext& run);
  [[nodiscard]] std::vector<Value> split_counts(const RunContext& run) const;

  RowSinkOptions target_;
  std::shared_ptr<const FeatureInfo> info_;
  mutable EarlierOutput earlier_{target_};  // the source asks for it before the run
  OutputSections sections_;
  std::vector<std::unique_ptr<RowPartFile>> files_;  // of each section
  std::unique_ptr<SinkStatistics> statistics_;
  std::unique_ptr<RowWriter> writer_;
  std::int64_t rows_ = 0;
  std::vector<Value> splits_;  // files and rows of each, for the report
  bool complete_ = false, written_ = false;
};

}  // namespace melflow
