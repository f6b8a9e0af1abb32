// The stages of a pipeline one after the other, for one recording at a time: what they give is what
// the pipeline writes for it.
#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/load.h"
#include "pipeline/run/stage_runner.h"
#include "stages/items.h"
#include "stages/length.h"
#include "stages/manifest.h"
#include "stages/output/training/batch_source.h"

namespace melflow {

class StageChain {
 public:
  /// What goes in: files, or samples, for which the stages up to the decoder are omitted.
  enum class Input { files, samples };
  /// Takes over the stages of `plan`, which has one way from its source to one node of the stage
  /// `batches`, and is called `name` in messages. Throws RunError.
  StageChain(Plan plan, const std::string& name, Input input);
  StageChain(const StageChain&) = delete;
  StageChain& operator=(const StageChain&) = delete;

  /// Of a recording, or an utterance.
  struct Rows {
    /// ok, perhaps with a warning, or skipped or failed with the reason.
    Ledger::Entry entry;
    std::vector<std::byte> values;  ///< [count, frames, columns] of type()
    std::int64_t count = 0;
    std::int64_t first = 0;  ///< which row the first of these is
    bool is_whole = true;    ///< all rows are there
    [[nodiscard]] bool has(std::int64_t begin, std::int64_t rows) const {
      return begin >= first && begin + rows <= first + count;
    }
  };
  /// Of a file: one, or one of each utterance that is cut out of it.
  using Recording = std::vector<Rows>;
  /// From any thread. Of the entries [first, first + count) of `list`, which are a file, or the
  /// utterances that are cut out of it in one go.
  [[nodiscard]] Recording recording(std::shared_ptr<const FileRef> file, const Manifest& list,
                                    std::size_t first, std::size_t count) const;
  /// Of a file that is not cut into utterances. `expected`: how many rows it has, -1 where that is
  /// not known. It need not give other rows than [begin, end).
  static constexpr std::int64_t kAll = std::numeric_limits<std::int64_t>::max();
  [[nodiscard]] Rows rows(std::shared_ptr<const FileRef> file, std::int64_t expected,
                          std::int64_t begin = 0, std::int64_t end = kAll) const;
  [[nodiscard]] bool cuts() const { return cutter_.has_value(); }
  /// Whether the number of a file's rows follows from its length alone.
  [[nodiscard]] bool tells_counts() const { return header_ != nullptr; }
  /// That number, by the header of the file; nothing where it takes the file's samples to know it.
  [[nodiscard]] std::optional<std::int64_t> count_by_header(const FileRef& file) const;
  /// Of samples of one channel, as of a file or an utterance. Throws RunError where a stage refuses
  /// them.
  [[nodiscard]] Rows rows(const Samples& samples, int sample_rate) const;

  /// The source, which is no part of the chain.
  [[nodiscard]] StageRunner& source() { return *source_; }
  /// Lists what the source gives, and opens a cache of decoded audio, if it is to use one.
  void start_source();
  [[nodiscard]] const FeatureInfo& info() const { return *info_; }
  /// What a batch calls the rows.
  [[nodiscard]] const std::string& row_name() const { return row_name_; }
  [[nodiscard]] NumberType type() const { return type_; }
  /// [frames, columns], as far as a row has them.
  [[nodiscard]] std::vector<std::size_t> row_shape() const { return melflow::row_shape(*info_); }
  /// Of the plan.
  [[nodiscard]] const std::vector<std::string>& warnings() const { return warnings_; }
  /// Of what is written from such rows.
  [[nodiscard]] const std::string& fingerprint() const { return fingerprint_; }

 private:
  struct Step {
    std::string name;
    std::unique_ptr<StageRunner> stage;  ///< none: it collects recordings for the next
  };
  using Blocks = std::vector<std::shared_ptr<const void>>;
  void add(PlanNode&& node, const std::string& name);
  void find_lengths();
  using Take = std::function<bool(std::shared_ptr<const void>)>;
  static Ledger::Entry pass(const std::vector<Step>& steps, const Blocks& in, const Take& take);
  [[nodiscard]] Rows rows(const Blocks& blocks, std::int64_t expected, std::int64_t begin,
                          std::int64_t end) const;
  [[nodiscard]] std::optional<ItemError> unstorable_in(const MelPart& part) const;

  std::unique_ptr<StageRunner> source_, keep_;  // that opens a store of decoded audio
  std::vector<Step> before_;                    // the stage that cuts utterances, if there is one
  std::optional<Step> cutter_;
  std::vector<Step> steps_;
  const ReadsLength* header_ = nullptr;
  std::vector<const TellsLength*> lengths_;  // of the stages behind it
  std::shared_ptr<const FeatureInfo> info_;
  NumberType type_ = NumberType::float32;
  std::string row_name_, fingerprint_;
  std::vector<std::string> warnings_;
};

}  // namespace melflow
