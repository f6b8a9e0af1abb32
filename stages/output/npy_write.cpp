// npy_write: writes rows to one .npy file that numpy can map into memory, in manifest order, with
// an index beside it. docs/output-format.md describes them.
//
// In: MelBatch.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/stage/registry.h"
#include "stages/output/formats/npy_file.h"
#include "stages/output/row_sink.h"

namespace melflow {
namespace {

struct NpyWriteOptions : RowSinkOptions {
  NpyWriteOptions() { split_files = true; }

  void describe(Schema& s) {
    describe_rows(s,
                  "path of the .npy file; features.npy has its index in features.index.npy and "
                  "features.index.json; each is called <path>.part until all are complete");
    describe_ending(s);
  }
};

class NpyWrite final : public RowSink {
 public:
  // Equal values are equal features, whatever file they are in.
  static constexpr const char* kFeatureStage = "hdf5_write";

  explicit NpyWrite(const NpyWriteOptions& options) : RowSink(options) {}

 private:
  [[nodiscard]] const char* stage_name() const override { return "npy_write"; }
  [[nodiscard]] const char* ending() const override { return kNpyEnding; }
  [[nodiscard]] std::vector<std::string> files_of(const std::string& path) const override {
    if (!path.ends_with(kNpyEnding)) return {};
    return {path, npy_index_path(path), npy_document_path(path)};
  }

  [[nodiscard]] std::unique_ptr<RowPartFile> make_row_file(const std::string& path,
                                                           const Opening& opening) const override {
    if (!path.ends_with(kNpyEnding))  // rows to be added to those of an output
      return std::make_unique<RowPartFile>(path, stage_name(), target().dtype,
                                           info().values_per_row(), NpyFile::kDataOffset, opening,
                                           Recognizer{});
    return std::make_unique<NpyFile>(path, target().dtype, info().values_per_row(), opening);
  }

  [[nodiscard]] std::int64_t extensible_at() const override {
    return static_cast<std::int64_t>(NpyFile::kDataOffset);
  }

  void complete_file(RowPartFile& file, const Shape& shape, const OutputIndex& index) override {
    static_cast<NpyFile&>(file).make_npy(shape, index);
  }
};

const RegisterStage<NpyWrite, NpyWriteOptions> register_npy_write{
    "npy_write",
    "Writes rows to one .npy file, in the order of the file list (by path, or as in its manifest).",
    true};

}  // namespace
}  // namespace melflow
