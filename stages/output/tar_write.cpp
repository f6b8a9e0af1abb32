// tar_write: writes rows to shards of WebDataset, in manifest order, and an index beside them.
// docs/corpora.md describes them.
//
// In: MelBatch.

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

namespace melflow {
namespace {

struct TarWriteOptions : RowSinkOptions {
  TarWriteOptions() { split_files = true; }

  void describe(Schema& s) {
    describe_rows(s,
                  "path of the archive, features.tar, or of several that share the recordings out "
                  "evenly, features-{000000..000127}.tar; features.index.npy and "
                  "features.index.json are the index; each is called <path>.part until all are "
                  "complete");
    describe_ending(s);
  }
};

class TarWrite final : public RowSink {
 public:
  static constexpr const char* kFeatureStage = "hdf5_write";

  explicit TarWrite(const TarWriteOptions& options) : RowSink(options) {}

  Properties plan(const Properties& given, const Requirements& below, PlanCheck& check) override {
    if (!target().path.empty() && !target().path.ends_with(kTarEnding))
      check.error("path", "'" + target().path + "' does not end in .tar");
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

  void look(RunContext& run) override {
    if (task_of(run).update != Update::none)
      throw RunError(fmt::format(
          "{}: archives cannot be updated, since their members lie one behind the other; run the "
          "pipeline with overwrite: true, or update an output of hdf5_write and export that",
          target().path));
    RowSink::look(run);
  }

  void start(RunContext& run) override {
    std::vector<std::string> paths;
    for (std::size_t i = 0; i < run.source.count(); ++i) paths.push_back(run.source.name(i));
    names_ = std::make_shared<const std::vector<std::string>>(recording_names(paths));
    RowSink::start(run);
  }

 private:
  [[nodiscard]] const char* stage_name() const override { return "tar_write"; }
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

  std::shared_ptr<const std::vector<std::string>> names_;
};

const RegisterStage<TarWrite, TarWriteOptions> register_tar_write{
    "tar_write",
    "Writes rows to archives (tar) of WebDataset, in the order of the file list (by path, or as in "
    "its manifest).",
    true};

}  // namespace
}  // namespace melflow
