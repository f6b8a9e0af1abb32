// disk_read: reads the bytes of a file without changing its access time.
//
// In:  FileRef.
// Out: RawBytes; files up to `whole` in memory, larger ones open, to be read while decoding.

#include <algorithm>

#include <fmt/format.h>

#include "pipeline/stage/registry.h"
#include "stages/audio/reading/file_reader.h"
#include "stages/audio/reading/read_ahead.h"
#include "stages/audio/reading/uring_engine.h"
#include "stages/facts.h"
#include "stages/items.h"
#include "stages/other_names.h"

namespace melflow {

template <>
struct EnumNames<Advise> {
  static constexpr std::pair<const char*, Advise> values[] = {
      {"none", Advise::none}, {"sequential", Advise::sequential}, {"willneed", Advise::willneed}};
};

enum class ReadEngine { automatic, in_line, threads, uring };
template <>
struct EnumNames<ReadEngine> {
  static constexpr std::pair<const char*, ReadEngine> values[] = {{"auto", ReadEngine::automatic},
                                                                  {"inline", ReadEngine::in_line},
                                                                  {"threads", ReadEngine::threads},
                                                                  {"io_uring", ReadEngine::uring}};
};

namespace {

struct DiskReadOptions {
  Bytes buffer{128 * 1024};
  bool noatime = true;
  Advise advise = Advise::sequential;
  Bytes whole{4 * 1024 * 1024};
  ReadEngine engine = ReadEngine::automatic;
  int depth = 32;

  void describe(Schema& s) {
    s.other_values(other_names::values_of_disk_read());
    s.field("buffer", buffer,
            "largest number of bytes read in one call; a file larger than the option whole is read "
            "through a buffer of this size")
        .range(4096, 1 << 30)
        .tuning();
    s.field("noatime", noatime,
            "leaves access times unchanged (O_NOATIME) where the system allows it, which is for "
            "the user's own files")
        .tuning();
    s.field("advise", advise,
            "advice to the system (posix_fadvise) for a file larger than buffer; sequential: it "
            "is read in order; willneed: the whole file is needed soon; none: no advice")
        .tuning();
    s.field("whole", whole,
            "size up to which a file is read into memory as a whole; larger files are read piece "
            "by piece while they are decoded")
        .range(4096, 1 << 30)
        .tuning();
    s.field("engine", engine,
            "how files are read; auto: by the workers, with prefetching while they wait for the "
            "disk; inline: by the workers alone; threads: by threads of the node; io_uring: by the "
            "kernel, many at once (by threads where not allowed)")
        .tuning();
    s.field("depth", depth,
            "largest number of files that are read or loaded at once; with engine: threads or "
            "io_uring, `concurrency` takes precedence if set")
        .range(1, 1024)
        .tuning()
        .used_with("engine: auto, threads or io_uring",
                   [this] { return engine != ReadEngine::in_line; });
  }
};

class DiskRead final : public Transform<FileRef, RawBytes>, public HasEngine {
 public:
  static constexpr bool kIsPutIn = true;

  explicit DiskRead(DiskReadOptions options)
      : options_(options),
        reader_({options.buffer.count, options.whole.count, options.noatime, options.advise}) {}

  [[nodiscard]] StageResources resources() const override {
    const bool blocking =
        options_.engine == ReadEngine::threads || options_.engine == ReadEngine::uring;
    return {.blocking = blocking,
            .default_concurrency = blocking ? options_.depth : 0,
            .size_option = "whole"};
  }
  [[nodiscard]] std::unique_ptr<Engine> engine(int concurrency) override {
    return options_.engine == ReadEngine::uring && !is_given_
               ? make_uring_engine(reader_, concurrency)
               : nullptr;
  }

  Properties plan(const Properties& given, const Requirements&, PlanCheck& check) override {
    Properties out = given;
    is_given_ = given.get_or(property::kIsGiven, false);
    if (options_.engine != ReadEngine::uring) return out;
    if (const std::string why = uring_refusal(); !why.empty())
      check.warning("engine",
                    fmt::format("io_uring cannot be used here ({}); threads read instead", why));
    return out;
  }

  // A large file takes no more than a window. The plan is checked with the bound of the largest
  // file, which no file may exceed.
  [[nodiscard]] std::size_t output_bound(const SourceInfo& source, std::size_t) const override {
    return BufferPool::rounded(
        std::min<std::uint64_t>(source.bytes + source.held, options_.whole.count));
  }

  void start(RunContext& run) override {
    if (options_.engine != ReadEngine::automatic) return;
    if (const ManifestSource* files = manifest_source(run))
      ahead_ = std::make_unique<ReadAhead>(reader_, files->manifest(), run.ledger, options_.depth);
  }
  void finish(RunContext&, Ending) override {
    if (!ahead_) return;
    ahead_->stop();
    loaded_ = ahead_->loaded();
    ahead_.reset();
  }
  [[nodiscard]] std::vector<std::pair<std::string, Value>> summary() const override {
    if (loaded_ == 0) return {};
    return {{"loaded_ahead", Value::scalar(std::to_string(loaded_))}};
  }

  Result<std::shared_ptr<const RawBytes>> process(std::shared_ptr<const FileRef> file,
                                                  ItemContext& context) const override {
    if (auto unread = reader_.unread(file)) return std::move(*unread);
    BufferPool& pool = context.run().pool;
    if (!ahead_) return reader_.read(std::move(file), pool);
    const std::size_t index = context.origin().stream->index();
    const bool is_looked_at = ReadAhead::is_looked_at(index);
    const long waits = is_looked_at ? ReadAhead::waits() : 0;
    auto bytes = reader_.read(std::move(file), pool);
    ahead_->note_read(index, is_looked_at && ReadAhead::waits() != waits);
    return bytes;
  }

 private:
  DiskReadOptions options_;
  FileReader reader_;
  bool is_given_ = false;             // Python gives recordings
  std::unique_ptr<ReadAhead> ahead_;  // during the run, with engine: auto
  std::size_t loaded_ = 0;            // files loaded by it
};

const RegisterStage<DiskRead, DiskReadOptions> register_disk_read{
    "disk_read", "Reads files, leaving their access times alone."};

}  // namespace
}  // namespace melflow
