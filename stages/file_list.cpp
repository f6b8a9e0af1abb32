// file_list: the files of a corpus, in the order their rows will have.
//
// Out: FileRef, one for every path that matches, also for those that turn out to be no readable
//      file: whoever reads them says so, and the ledger has a line for each.

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "pipeline/registry.h"
#include "stages/audio_store/feed.h"
#include "stages/items.h"
#include "stages/listing/corpus_listing.h"

namespace melflow {
namespace {

struct SourceOptions {
  FileListOptions corpus;
  FeedOptions feed;
  void describe(Schema& s) {
    corpus.describe(s);
    feed.describe(s);
  }
};

class FileList final : public Source<FileRef>, public ManifestSource {
 public:
  explicit FileList(SourceOptions options)
      : options_(std::move(options.corpus)),
        feed_(std::make_shared<Feed>(std::move(options.feed))) {}

  static std::optional<Insertion> insert(const NodeSpec& spec) { return Feed::insertion(spec); }

  Facts plan(const Facts& given, const Facts&, PlanCheck& check) override {
    options_.check(check);
    feed_->check(check);
    Facts out = given;
    out.set_object(Feed::kFact, std::make_shared<const FeedLink>(FeedLink{feed_}));
    return out;
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
    return manifest_.memory_bytes() + (40 + sizeof(FileStamp) + feed_->index_bytes()) * manifest_.size();
  }
  [[nodiscard]] SourceItem source_item(std::size_t i) override {
    auto file = std::make_shared<FileRef>();
    file->path = manifest_.path(i);
    stamps_[i] = stamp_of(file->path);
    file->size = static_cast<std::uint64_t>(std::max<std::int64_t>(stamps_[i].size, 0));
    file->stored = feed_->find(i, stamps_[i]);
    const SourceInfo info{file->path, file->size};
    return {std::move(file), info};
  }
  void finish(RunContext& run, Ending) override { feed_->finish(run); }
  [[nodiscard]] std::vector<std::pair<std::string, Value>> summary() const override {
    return feed_->summary();
  }
  [[nodiscard]] const Manifest& manifest() const override { return manifest_; }
  [[nodiscard]] FileStamp stamp(std::size_t file) const override { return stamps_[file]; }
  void set_stamp(std::size_t file, const FileStamp& stamp) override { stamps_[file] = stamp; }

 private:
  FileListOptions options_;
  std::shared_ptr<Feed> feed_;
  Manifest manifest_;
  std::vector<FileStamp> stamps_;
};

const RegisterStage<FileList, SourceOptions> registered{
    "file_list", "Lists the files of a corpus, with their labels and splits, in path order."};

}  // namespace
}  // namespace melflow
