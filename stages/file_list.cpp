// file_list: the files of a corpus, in the order their rows will have.
//
// Out: FileRef, one for every path that matches, also for those that turn out to be no readable
//      file: whoever reads them says so, and the ledger has a line for each.

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "pipeline/registry.h"
#include "stages/corpus_listing.h"
#include "stages/items.h"

namespace melflow {
namespace {

class FileList final : public Source<FileRef>, public ManifestSource {
 public:
  explicit FileList(FileListOptions options) : options_(std::move(options)) {}

  Facts plan(const Facts& given, const Facts&, PlanCheck& check) override {
    options_.check(check);
    return given;
  }

  void start(RunContext& run) override {
    manifest_ = list_corpus(options_, run.warn);
    stamps_.assign(manifest_.size(), {});
  }

  [[nodiscard]] std::size_t source_count() const override { return manifest_.size(); }
  [[nodiscard]] std::string source_name(std::size_t i) const override {
    return manifest_.relative(i);
  }
  // Beside the index itself, what ledger and writer keep for every file.
  [[nodiscard]] std::size_t source_index_bytes() const override {
    return manifest_.memory_bytes() + (40 + sizeof(FileStamp)) * manifest_.size();
  }
  [[nodiscard]] SourceItem source_item(std::size_t i) override {
    auto file = std::make_shared<FileRef>();
    file->path = manifest_.path(i);
    stamps_[i] = stamp_of(file->path);
    file->size = static_cast<std::uint64_t>(std::max<std::int64_t>(stamps_[i].size, 0));
    const SourceInfo info{file->path, file->size};
    return {std::move(file), info};
  }
  [[nodiscard]] const Manifest& manifest() const override { return manifest_; }
  [[nodiscard]] FileStamp stamp(std::size_t file) const override { return stamps_[file]; }
  void set_stamp(std::size_t file, const FileStamp& stamp) override { stamps_[file] = stamp; }

 private:
  FileListOptions options_;
  Manifest manifest_;
  std::vector<FileStamp> stamps_;
};

const RegisterStage<FileList, FileListOptions> registered{
    "file_list", "Lists the files of a corpus, with their labels and splits, in path order."};

}  // namespace
}  // namespace melflow
