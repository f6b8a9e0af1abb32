// What sinks of rows have in common, whatever the format of the file: rows go to their place in
// manifest order as soon as that is known, and the file gets its name when the run is complete.
//
// In: MelBatch.
//
// A sink of a format says which RowPartFile takes the rows and how it is completed.
#pragma once

#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/plan.h"
#include "pipeline/schema.h"
#include "pipeline/stage.h"
#include "stages/items.h"
#include "stages/listing/earlier_files.h"
#include "stages/output/output_index.h"
#include "stages/output/row_order.h"
#include "stages/output/row_part_file.h"
#include "stages/output/row_statistics.h"
#include "stages/sink/row_reuse.h"

namespace melflow {

template <>
struct EnumNames<NumberType> {
  static constexpr std::pair<const char*, NumberType> values[] = {
      {"float32", NumberType::float32},
      {"float16", NumberType::float16},
      {"bfloat16", NumberType::bfloat16}};
};

enum class StatisticsOf { none, train, all };
template <>
struct EnumNames<StatisticsOf> {
  static constexpr std::pair<const char*, StatisticsOf> values[] = {
      {"none", StatisticsOf::none}, {"train", StatisticsOf::train}, {"all", StatisticsOf::all}};
};

struct RowSinkOptions {
  std::string path;
  NumberType dtype = NumberType::float32;
  StatisticsOf statistics = StatisticsOf::none;
  bool normalize = false;
  bool split_files = false;
  bool overwrite = false;
  CountOrShare max_dropped{{}, 0.1};
  bool sync = false;

  void describe_rows(Schema& s, const std::string& what);
  void describe_ending(Schema& s);
};

class Manifest;

class RowSink : public Sink<MelBatch> {
 public:
  explicit RowSink(RowSinkOptions options) : target_(std::move(options)) {}

  [[nodiscard]] Facts demand(const Facts& below) const override;
  Facts plan(const Facts& given, const Facts& below, PlanCheck& check) override;
  [[nodiscard]] std::optional<Value> settings() const override;
  /// What its rows are, from plan() on.
  [[nodiscard]] const FeatureInfo& info() const { return *info_; }
  [[nodiscard]] std::vector<std::string> files_made() const override {
    return files_of(target_.path);
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
  void closed(std::size_t index);
  [[nodiscard]] bool counts(std::size_t file) const;
  void refuse_unstorable(const MelBatch& batch, const ItemContext& context) const;
  void note(const MelBatch& batch, const ItemContext& context);
  void sum(std::size_t file, std::int64_t row, std::int64_t rows, const void* values,
           NumberType type, bool is_last);
  void close_statistics(const std::vector<PlacedPart>& ready);
  void settle_statistics(RunContext& run);
  void normalize_rows(const RunContext& run, std::size_t section);
  [[nodiscard]] std::int64_t rows_at_once() const;
  bool admit(std::vector<PlacedPart>& ready);
  void roll_back();
  bool queue(std::vector<PlacedPart>& ready);
  void write(std::vector<PlacedPart>& ready, bool is_writer);
  void finish_values(const std::vector<PlacedPart>& ready);
  [[nodiscard]] const Manifest* split_manifest(const RunContext& run) const;
  void list_sections(RunContext& run);
  void open_files(RunContext& run);
  void check_files(RunContext& run) const;
  [[nodiscard]] std::string section_path(const std::string& split) const;
  void visit_earlier(const std::vector<std::string>& splits,
                     const EarlierFiles::Visit& visit) const;
  using Earlier = std::vector<std::unique_ptr<RowReuse>>;  // of each section, or none
  [[nodiscard]] std::unique_ptr<RowReuse> match_earlier(RunContext& run, std::size_t section);
  void check_dropped(RunContext& run, const Earlier& earlier);
  void check_gives_rows(const RunContext& run) const;
  void use_earlier(RunContext& run, std::size_t section, std::unique_ptr<RowReuse> old);
  void forget_opened(const RunContext& run);
  [[nodiscard]] std::vector<Value> split_counts(const RunContext& run) const;
  void take_over_rest();
  std::size_t take_over(const std::vector<PlacedPart>& ready, std::size_t from);
  void close_gaps(RunContext& run, std::size_t section);
  void complete(RunContext& run);
  [[nodiscard]] std::size_t end_of(std::size_t section, std::size_t files) const {
    return section + 1 < first_files_.size() ? first_files_[section + 1] : files;
  }

  RowSinkOptions target_;
  std::shared_ptr<const FeatureInfo> info_;
  // One, or one for each split, which are sections of the order of rows.
  std::vector<std::unique_ptr<RowPartFile>> files_;
  std::vector<std::size_t> first_files_;  // of the source, in each of them
  // Earlier outputs that the source asked for (EarlierFiles), by path, until start() has looked at
  // them; null for one that is not there.
  mutable std::map<std::string, std::unique_ptr<RowReuse>> opened_;
  DroppedRows dropped_;                               // of the earlier output
  std::vector<std::unique_ptr<const RowReuse>> old_;  // whose rows are taken over, or none
  std::map<std::size_t, std::int64_t> old_rows_;      // where each file's begin there
  std::mutex mutex_;
  std::unique_ptr<RowStatistics> statistics_;
  std::size_t counted_ = 0;        // files before this one are in the statistics
  bool statistics_stale_ = false;  // they have rows that are not in the output, or lack some
  int stage_ = -1;                 // as streams have it
  std::optional<ColumnStatistics> measured_;
  std::unique_ptr<RowOrder> order_;
  bool writing_ = false;            // somebody is, where only one can
  std::vector<PlacedPart> queued_;  // for that one
  std::exception_ptr error_;
  std::vector<std::string> paths_;
  std::int64_t rows_ = 0;
  std::size_t kept_files_ = 0;
  std::vector<Value> splits_;  // files and rows of each, for the report
  bool complete_ = false, written_ = false;
  bool updates_ = false;  // there is an earlier output
  bool is_over_ = false;  // nothing more comes
};

}  // namespace melflow
