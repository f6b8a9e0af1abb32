// Decides how a source's audio gets to later stages: decoded when it is needed, or from a store of
// decoded audio. A run has one Feed, shared by the source, which takes stored audio from it, and by
// the node keep_audio after the last stage that yields waveforms, which fills the store.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/stage/registry.h"
#include "stages/audio/store/preload_store.h"
#include "stages/audio/store/stored_audio.h"
#include "stages/items.h"
#include "stages/node_group.h"

namespace melflow {

enum class FeedKind { stream, preload, cache, automatic };
template <>
struct EnumNames<FeedKind> {
  static constexpr std::pair<const char*, FeedKind> values[] = {{"stream", FeedKind::stream},
                                                                {"preload", FeedKind::preload},
                                                                {"cache", FeedKind::cache},
                                                                {"auto", FeedKind::automatic}};
};
template <>
struct EnumNames<PreloadOverflow> {
  static constexpr std::pair<const char*, PreloadOverflow> values[] = {
      {"refuse", PreloadOverflow::refuse}, {"stream", PreloadOverflow::stream}};
};

struct FeedOptions {
  FeedKind feed = FeedKind::stream;
  std::string cache_path;
  int uses = 1;
  PreloadOverflow preload_overflow = PreloadOverflow::refuse;
  std::optional<NodeGroup> keep;

  void describe(Schema& s);
};

class Feed {
 public:
  explicit Feed(FeedOptions options) : options_(std::move(options)) {}

  /// Returns the node keep_audio to insert for a source, by its options; nullopt if no store can be
  /// used.
  static std::optional<Insertion> insertion(const NodeSpec& source);

  void check(PlanCheck& check) const;
  /// Whether all samples come from the files themselves.
  [[nodiscard]] bool decodes_all() const;
  /// Whether samples may come from the store of an earlier run.
  [[nodiscard]] bool may_cache() const {
    return options_.feed == FeedKind::cache || options_.feed == FeedKind::automatic;
  }

  /// Opens the store, if one is to be used; called once the files are listed. `settings`: all
  /// settings that determine the stored samples. Without a memory budget, when recordings are
  /// requested one by one, a cache is read but nothing is stored.
  void open(RunContext& run, const Value& settings);
  /// The store; null if everything is streamed.
  [[nodiscard]] AudioStore* store() const { return store_.get(); }
  /// The stored audio of a listed file, or null.
  [[nodiscard]] std::shared_ptr<const StoredAudio> find(std::size_t index,
                                                        const FileStamp& stamp) const {
    return store_ ? store_->find(index, stamp) : nullptr;
  }
  void finish(RunContext& run);

  /// The memory that each file takes besides its samples [bytes].
  [[nodiscard]] std::size_t index_bytes() const;
  [[nodiscard]] std::vector<std::pair<std::string, Value>> summary() const;

 private:
  void open_to_read(RunContext& run, const Value& settings);

  FeedOptions options_;
  std::unique_ptr<AudioStore> store_;
  std::string why_;  // the reason for the choice, with feed: auto
};

}  // namespace melflow
