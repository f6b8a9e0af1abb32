// tar_write: writes rows to shards of WebDataset, in manifest order, and an index beside them.
// docs/corpora.md describes them.
//
// In: MelBatch.

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "pipeline/base/problem.h"
#include "pipeline/stage/registry.h"
#include "stages/output/formats/feature_fingerprint.h"
#include "stages/output/formats/tar_shards.h"
#include "stages/output/recording_names.h"
#include "stages/output/row_sink.h"
#include "stages/recording_groups.h"

namespace melflow {
namespace {

struct TarWriteOptions : RowSinkOptions {
  TarWriteOptions() { split_files = true; }
  std::string utterance;

  void describe(Schema& s) {
    describe_rows(s,
                  "path of the archive, features.tar, or of several that share the recordings out "
                  "evenly, features-{000000..000127}.tar; features.index.npy and "
                  "features.index.json are the index; each is called <path>.part until all are "
                  "complete");
    s.field("utterance", utterance,
            "column of the list that names the utterances; not set: their paths without the ending")
        .tuning();
    describe_ending(s);
  }
};

class TarWrite final : public RowSink, public RefusesUpdate {
 public:
  static constexpr const char* kFeatureStage = "hdf5_write";

  explicit TarWrite(const TarWriteOptions& options)
      : RowSink(options), utterance_(options.utterance) {}

  Properties plan(const Properties& given, const Requirements& below, PlanCheck& check) override {
    try {
      (void)shard_paths(target().path);
    } catch (const RunError& e) {
      check.error("path", e.what());
    }
    if (target().dtype == NumberType::bfloat16)
      check.error("dtype",
                  "arrays of NumPy, which the archive holds, have no bfloat16; write "
                  "float16 or float32");
    return RowSink::plan(given, below, check);
  }

  [[nodiscard]] std::string why_no_update() const override {
    return fmt::format(
        "{}: archives cannot be updated, since their members lie one behind the other; run the "
        "pipeline with overwrite: true, or update an output of hdf5_write and export that",
        target().path);
  }
  void look(RunContext& run) override {
    check_update(run);
    RowSink::look(run);
  }

  void start(RunContext& run) override {
    auto names = std::make_shared<std::vector<std::string>>();
    if (utterance_.empty()) {
      *names = recording_names(run);
    } else {
      for (const std::string_view text : listed_texts(run, utterance_, "tar_write.utterance"))
        names->push_back(as_recording_name(text));
      check_names(run, *names, "tar_write.utterance", [](const std::string&) { return true; });
    }
    names_ = std::move(names);
    RowSink::start(run);
    check_shards(run);
  }

 private:
  [[nodiscard]] const char* stage_name() const override { return "tar_write"; }
  [[nodiscard]] const char* ending() const override { return kTarEnding; }
  [[nodiscard]] std::string layout_facts() const override { return utterance_; }
  // Refuses empty shards: readers give each to a process of its own, which ends without samples.
  void check_shards(const RunContext& run) const {
    const std::size_t shards = shard_paths(target().path).size();
    const auto check = [&](std::size_t recordings, const std::string& of) {
      if (shards > 1 && recordings < shards)
        throw RunError(fmt::format(
            "{}: there are {} shards for {} recordings{}, and none may be empty; name at most {} "
            "in the braces",
            target().path, shards, recordings, of, std::max<std::size_t>(recordings, 1)));
    };
    const Manifest* splits = target().split_files ? manifest_with_splits(run) : nullptr;
    if (splits == nullptr) return check(run.source.count(), "");
    for (const Manifest::SplitRange& range : splits->split_ranges())
      check(range.last - range.first,
            range.split < 0 ? " in no split" : " of the split " + splits->split_name(range.split));
  }
  [[nodiscard]] std::vector<std::string> files_of(const std::string& path) const override {
    if (!path.ends_with(kTarEnding)) return {path};
    try {
      return TarShards::files_of(path);
    } catch (const RunError&) {
      return {path};  // plan() says so
    }
  }
  [[nodiscard]] std::unique_ptr<RowPartFile> make_row_file(const std::string& path,
                                                           const Opening& opening) const override {
    return std::make_unique<TarShards>(path, target().dtype, info().values_per_row(), opening,
                                       names_, feature_fingerprint(feature_settings()));
  }
  void complete_file(RowPartFile& file, const Shape& shape, const OutputIndex& index) override {
    static_cast<TarShards&>(file).make_shards(shape, index);
  }

  std::string utterance_;
  std::shared_ptr<const std::vector<std::string>> names_;
};

const RegisterStage<TarWrite, TarWriteOptions> register_tar_write{
    "tar_write",
    "Writes rows to archives (tar) of WebDataset, in the order of the file list (by path, or as in "
    "its manifest).",
    true};

}  // namespace
}  // namespace melflow
