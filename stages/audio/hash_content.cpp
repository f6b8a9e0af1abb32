// hash_content: notes a hash of every file's bytes for the source.
//
// In, out: RawBytes, passed on unchanged. A large file is read once more for the hash.

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "pipeline/stage/registry.h"
#include "stages/facts.h"
#include "stages/files/content_hash.h"
#include "stages/items.h"
#include "stages/manifest.h"
#include "stages/node_group.h"
#include "stages/run_task.h"

namespace melflow {
namespace {

class HashContent final : public Transform<RawBytes, RawBytes> {
 public:
  explicit HashContent(NoOptions) { traits_.order = BlockOrder::any; }

  Properties plan(const Properties& given, const Requirements&, PlanCheck& check) override {
    hashes_ = given.get_or(property::kContents, nullptr);
    if (!hashes_) check.error("", "is put there by a source with update_by: content; remove it");
    Properties out = given;
    out.erase(property::kContents);  // noted once
    return out;
  }
  [[nodiscard]] StageResources resources() const override { return {.passes_on = true}; }
  void start(RunContext& run) override { is_update_ = update_of(run) != Update::none; }

  Result<std::shared_ptr<const RawBytes>> process(std::shared_ptr<const RawBytes> in,
                                                  ItemContext& context) const override {
    const Stream::Records& records = context.origin().stream->records();
    if (in->file->stored || (hashes_->of[records.first] != 0 && !is_update_))
      return in;  // noted by a filling pass
    const std::uint64_t hash = hash_of(*in);
    if (hash == 0)
      return ItemError::failed(fmt::format("cannot be read: {}", std::strerror(errno)));
    // In an update the file may already have the hash of the content from which an output's rows
    // were made. If the content differs now, no hash is right for the rows of all outputs.
    for (std::size_t r = records.first; r < records.first + records.count; ++r)
      hashes_->of[r] = hashes_->of[r] == 0 || hashes_->of[r] == hash ? hash : 0;
    return in;
  }

 private:
  static std::uint64_t hash_of(const RawBytes& bytes) {
    if (bytes.fd) return content_hash(bytes.fd.get(), bytes.begin, bytes.size);
    return content_hash({bytes.data.data(), static_cast<std::size_t>(bytes.size)});
  }

  std::shared_ptr<ContentHashes> hashes_;
  bool is_update_ = false;
};

const RegisterStage<HashContent, NoOptions> register_hash_content{
    "hash_content",
    "Computes a hash of every file; a source with update_by: content inserts this stage."};

}  // namespace
}  // namespace melflow
