#include "stages/audio/store/feed.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "pipeline/base/problem.h"
#include "stages/audio/store/cache_store.h"
#include "stages/audio/store/feed_choice.h"
#include "stages/manifest.h"

namespace melflow {

void FeedOptions::describe(Schema& s) {
  s.field("feed", feed,
          "where samples come from, with the same rows; stream: decoded when needed; preload: all "
          "decoded into memory first; cache: decoded once into a file in cache_path; auto: cache "
          "where one is there or uses is above 1, else stream")
      .tuning();
  s.field("cache_path", cache_path,
          "folder in which feed: cache and auto keep their files of decoded audio; required with "
          "feed: cache")
      .tuning()
      .used_with("feed: cache or auto",
                 [this] { return feed == FeedKind::cache || feed == FeedKind::automatic; });
  s.field("uses", uses,
          "how often the audio will be used, including this run; feed: auto makes a cache only if "
          "that is more than once")
      .range(1, 1e9)
      .tuning()
      .used_with("feed: auto", [this] { return feed == FeedKind::automatic; });
  s.field("preload_overflow", preload_overflow,
          "how feed: preload treats files that do not fit into memory.host; refuse: the run ends "
          "with an error; stream: the remaining files are decoded when they are needed")
      .tuning()
      .used_with("feed: preload", [this] { return feed == FeedKind::preload; });
  s.group("keep", keep,
          "node that stores decoded samples, placed after the last stage that gives waveforms")
      .used_with("feed: preload, cache or auto", [this] { return feed != FeedKind::stream; });
}

namespace {

// Returns the options as written; wrong ones are reported later.
FeedOptions written(const NodeSpec& source) {
  FeedOptions options;
  Schema schema;
  options.describe(schema);
  const std::vector<std::string> names = schema.names();
  Value known = Value::map({});
  for (const Value::Entry& e : source.options.entries())
    if (std::find(names.begin(), names.end(), e.key) != names.end()) known.entries().push_back(e);
  Problems ignored;
  schema.read(known, "", ignored);
  return options;
}

const std::string kNothingToChoose =
    "there is no cache_path, and loading everything before the work costs more than it saves";

// Whether the options leave no other choice than to stream.
bool only_streams(const FeedOptions& o) {
  return o.feed == FeedKind::stream || (o.feed == FeedKind::automatic && o.cache_path.empty());
}

const ManifestSource& files_of(const RunContext& run) { return *manifest_source(run); }

}  // namespace

std::optional<Insertion> Feed::insertion(const NodeSpec& source) {
  if (only_streams(written(source))) return std::nullopt;
  return Insertion{port_type<Waveform>(), grouped_node(source, "keep", "keep_audio")};
}

bool Feed::decodes_all() const { return only_streams(options_); }

void Feed::check(PlanCheck& check) const {
  if (options_.feed == FeedKind::cache && options_.cache_path.empty())
    check.error("feed", "cache needs a folder for its files: set cache_path");
}

void Feed::open(RunContext& run, const Value& settings) {
  if (run.budget == nullptr) return open_to_read(run, settings);
  if (options_.feed == FeedKind::preload) {
    store_ = std::make_unique<PreloadStore>(run, files_of(run), options_.preload_overflow,
                                            expected_audio(files_of(run).manifest(), settings));
    return;
  }
  const ManifestSource& files = files_of(run);
  const CachePlace place = cache_place(options_.cache_path, settings);
  const bool is_free_to_choose = options_.feed == FeedKind::automatic;
  if (is_free_to_choose) {
    const FeedChoice choice =
        choose_feed(look_at_corpus(files.manifest(), settings, place, options_.uses));
    why_ = choice.why;
    if (!choice.caches) return;
  }
  try {
    store_ = std::make_unique<CacheStore>(run, files, place, AudioCacheFile::Access::read_write);
  } catch (const RunError& e) {
    if (!is_free_to_choose) throw;
    why_ = e.what();
  }
}

void Feed::open_to_read(RunContext& run, const Value& settings) {
  if (options_.feed == FeedKind::preload) return;
  const CachePlace place = cache_place(options_.cache_path, settings);
  std::error_code ignored;
  if (std::filesystem::exists(place.path, ignored))
    store_ =
        std::make_unique<CacheStore>(run, files_of(run), place, AudioCacheFile::Access::read_only);
  else if (options_.feed == FeedKind::cache)
    run.warn(fmt::format(
        "{}: there is no cache of these recordings and settings yet, so they are decoded; "
        "an epoch of melflow.Loader fills it, and so does `melflow run`",
        options_.cache_path));
}

void Feed::finish(RunContext& run) {
  if (store_) store_->finish(run);
}

std::size_t Feed::index_bytes() const { return only_streams(options_) ? 0 : 64; }

std::vector<std::pair<std::string, Value>> Feed::summary() const {
  if (options_.feed == FeedKind::stream) return {};
  const FeedKind feed = options_.feed != FeedKind::automatic ? options_.feed
                        : store_                             ? FeedKind::cache
                                                             : FeedKind::stream;
  std::vector<std::pair<std::string, Value>> out{{"feed", OptionType<FeedKind>::echo(feed)}};
  if (options_.feed == FeedKind::automatic)
    out.emplace_back("why", Value::scalar(why_.empty() ? kNothingToChoose : why_, {}, true));
  if (!store_) return out;
  const auto more = store_->summary();
  out.insert(out.end(), more.begin(), more.end());
  return out;
}

}  // namespace melflow
