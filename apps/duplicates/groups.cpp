#include "apps/duplicates/groups.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <numeric>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "apps/temporary_folder.h"
#include "pipeline/base/near_names.h"
#include "pipeline/base/problem.h"
#include "pipeline/base/text.h"
#include "stages/fingerprint/matches.h"
#include "stages/fingerprint/words.h"

namespace melflow {
namespace {

constexpr double kWhole = 0.9;  // share of a recording that counts as all of it
// Score from which on two form a group: copies through any codec have more (docs/duplicates.md),
// other sentences of one synthetic voice that share as much up to 0.45.
constexpr double kLeastJoined = 0.5;
constexpr std::int64_t kLeastEqual = 8;  // words with evidence of recordings that are equal
constexpr double kWordSeconds = 1.0 / fingerprint::kWordsASecond;
using fingerprint::kSpanSeconds;

void check_fingerprints(const FeatureFile& output) {
  if (!has_fingerprints(output))
    throw RunError(
        fmt::format("{}: has no fingerprints; write them by a node {{stage: fingerprint}} and a "
                    "sink of its own (docs/duplicates.md)",
                    output.path()));
  if (const std::string flaw = output.flaw(); !flaw.empty()) throw RunError(flaw);
}

// The words of the recordings that stand for themselves.
class Words final : public fingerprint::WordSource {
 public:
  Words(const std::vector<ListedRecording>& recordings, const std::vector<std::size_t>& first)
      : recordings_(recordings), first_(first) {}
  [[nodiscard]] std::size_t recordings() const override { return recordings_.size(); }
  void read(std::size_t r, std::vector<std::uint32_t>& words) const override {
    if (first_[r] != r) return;
    read_any(r, words);
    if (evidence_[r] < 0) evidence_[r] = fingerprint::evidence_of(words);
  }
  /// Of each recording that was read, how many of its words are evidence; of others -1.
  [[nodiscard]] const std::vector<std::int64_t>& evidence() const { return evidence_; }
  void read_any(std::size_t r, std::vector<std::uint32_t>& words) const {
    const FeatureFile::Entry& e = *recordings_[r].entry;
    const std::vector<std::byte> bytes = recordings_[r].output->read_stored(
        static_cast<std::uint64_t>(e.offset), static_cast<std::uint64_t>(e.count));
    words.resize(bytes.size() / sizeof(std::uint32_t));
    if (!bytes.empty()) std::memcpy(words.data(), bytes.data(), bytes.size());
  }

 private:
  const std::vector<ListedRecording>& recordings_;
  const std::vector<std::size_t>& first_;
  mutable std::vector<std::int64_t> evidence_ = std::vector<std::int64_t>(recordings_.size(), -1);
};

// Of each recording, the first one with equal words.
std::vector<std::size_t> first_equal(const std::vector<ListedRecording>& recordings) {
  std::vector<std::size_t> out(recordings.size());
  std::iota(out.begin(), out.end(), std::size_t{0});
  std::map<std::pair<std::uint64_t, std::int64_t>, std::size_t> known;
  const Words all(recordings, out);
  std::vector<std::uint32_t> words;
  for (std::size_t r = 0; r < recordings.size(); ++r) {
    const FeatureFile::Entry& e = *recordings[r].entry;
    if (e.rows_hash == 0 || e.count < kLeastEqual) continue;
    const auto [at, is_new] = known.emplace(std::pair(e.rows_hash, e.count), r);
    if (is_new) continue;
    all.read_any(r, words);
    if (fingerprint::evidence_of(words) >= kLeastEqual) out[r] = at->second;
  }
  return out;
}

class Union {
 public:
  explicit Union(std::size_t size) : parent_(size) {
    std::iota(parent_.begin(), parent_.end(), std::size_t{0});
  }
  std::size_t root(std::size_t i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  void join(std::size_t a, std::size_t b) {
    a = root(a), b = root(b);
    parent_[std::max(a, b)] = std::min(a, b);
  }

 private:
  std::vector<std::size_t> parent_;
};

void list(const std::vector<const FeatureFile*>& outputs, bool is_old, Duplicates& found) {
  std::vector<ListedRecording>& out = found.recordings;
  const std::size_t from = out.size();
  for (const FeatureFile* output : outputs) {
    check_fingerprints(*output);
    for (const FeatureFile::Entry& e : output->files())
      if (e.status == FeatureFile::Status::ok)
        out.push_back({output, &e, is_old, 0, 1});
      else
        (e.status == FeatureFile::Status::skipped ? found.skipped : found.failed).push_back(&e);
  }
  std::stable_sort(out.begin() + static_cast<std::ptrdiff_t>(from), out.end(),
                   [](const ListedRecording& x, const ListedRecording& y) {
                     return x.entry->path < y.entry->path;
                   });
}

bool is_across(const ListedRecording& a, const ListedRecording& b) {
  if (a.is_old || b.is_old) return true;
  return a.entry->split >= 0 && b.entry->split >= 0 && a.split() != b.split();
}

bool same_bytes(const FeatureFile::Entry& a, const FeatureFile::Entry& b) {
  return a.content != 0 && a.content == b.content;
}

LikePair equal_pair(const std::vector<ListedRecording>& recordings, std::size_t a, std::size_t b) {
  const FeatureFile::Entry &x = *recordings[a].entry, &y = *recordings[b].entry;
  return {a, b,    same_bytes(x, y) ? Likeness::same_bytes : Likeness::same_words,
          0, 0,    std::min(x.duration, y.duration),
          1, true, is_across(recordings[a], recordings[b])};
}

LikePair like_pair(const std::vector<ListedRecording>& recordings, const fingerprint::Match& match,
                   double share) {
  const double x = recordings[match.a].entry->duration, y = recordings[match.b].entry->duration;
  LikePair out{match.a, match.b};
  out.begin_a = static_cast<double>(match.begin_a) * kWordSeconds;
  out.begin_b = static_cast<double>(match.begin_b) * kWordSeconds;
  out.seconds =
      std::min({static_cast<double>(match.words - 1) * kWordSeconds + kSpanSeconds, x, y});
  out.score = 1 - 2 * match.error;
  // Pauses of one may be noise in the other: what counts is the sound that they have in common.
  const auto evidence = static_cast<double>(match.evidence);
  const auto [least, most] = std::minmax(match.of_a, match.of_b);
  const double shorter =
      std::max(out.seconds / std::min(x, y), evidence / static_cast<double>(least));
  const double longer =
      std::max(out.seconds / std::max(x, y), evidence / static_cast<double>(most));
  out.likeness = longer >= kWhole    ? Likeness::copy
                 : shorter >= kWhole ? Likeness::cut
                                     : Likeness::stretch;
  out.is_joined = shorter >= share && out.score >= kLeastJoined;
  out.is_across = is_across(recordings[match.a], recordings[match.b]);
  return out;
}

// Joins recordings that have one text in a column.
void join_texts(const std::vector<ListedRecording>& recordings, const std::string& column,
                Union& groups) {
  std::map<std::string, std::size_t> first;
  for (std::size_t r = 0; r < recordings.size(); ++r) {
    const std::vector<std::string>& names = recordings[r].output->columns();
    const auto at = std::find(names.begin(), names.end(), column);
    if (at == names.end())
      throw ConfigError(
          fmt::format("--with {}: {}: {}", excerpt(column), recordings[r].output->path(),
                      names.empty() ? "the recordings have no columns of texts (file_list: columns)"
                                    : not_one_of(column, names)));
    const std::string& text =
        recordings[r].entry->texts[static_cast<std::size_t>(at - names.begin())];
    if (text.empty()) continue;
    groups.join(first.emplace(text, r).first->second, r);
  }
}

void count(Duplicates& found) {
  std::unordered_map<std::size_t, std::size_t> sizes;
  for (const ListedRecording& r : found.recordings) ++sizes[r.group];
  for (const auto& [group, size] : sizes)
    if (size > 1) ++found.groups, found.grouped += size;
  for (ListedRecording& r : found.recordings) r.in_group = sizes[r.group];
  for (const LikePair& p : found.pairs)
    if (p.is_across && p.is_joined)
      found.recordings[p.a].is_across = found.recordings[p.b].is_across = true;
  // Groups of recordings that sound alike, without those joined by a column.
  Union alike(found.recordings.size());
  for (const LikePair& p : found.pairs)
    if (p.is_joined) alike.join(p.a, p.b);
  std::unordered_map<std::size_t, std::set<std::string>> splits;
  std::set<std::size_t> with_old;
  for (std::size_t r = 0; r < found.recordings.size(); ++r) {
    const ListedRecording& one = found.recordings[r];
    if (one.is_old)
      with_old.insert(alike.root(r));
    else if (one.entry->split >= 0)
      splits[alike.root(r)].insert(one.split());
  }
  for (std::size_t r = 0; r < found.recordings.size(); ++r) {
    const ListedRecording& one = found.recordings[r];
    if (one.is_old) continue;
    ++found.compared;
    if (with_old.contains(alike.root(r)) ||
        (one.entry->split >= 0 && splits[alike.root(r)].size() > 1))
      ++found.across;
  }
}

}  // namespace

const char* to_text(Likeness likeness) {
  switch (likeness) {
    case Likeness::same_bytes:
      return "same bytes";
    case Likeness::same_words:
      return "same samples";
    case Likeness::copy:
      return "copy";
    case Likeness::cut:
      return "cut";
    case Likeness::stretch:
      return "stretch";
  }
  return "";
}

bool has_fingerprints(const std::string& feature_settings) {
  return feature_settings.find("\"fingerprint\"") != std::string::npos;
}

bool has_fingerprints(const FeatureFile& output) {
  return has_fingerprints(output.text("feature_settings")) && output.type() == NumberType::int32 &&
         output.data().values_per_row() == 1;
}

Duplicates find_duplicates(const std::vector<const FeatureFile*>& outputs,
                           const std::vector<const FeatureFile*>& against,
                           const DuplicateOptions& options) {
  Duplicates out;
  list(against, true, out);
  const std::size_t old = out.recordings.size();
  list(outputs, false, out);
  Union groups(out.recordings.size());
  if (!options.with.empty()) join_texts(out.recordings, options.with, groups);
  const std::vector<std::size_t> first = first_equal(out.recordings);
  for (std::size_t r = old; r < first.size(); ++r)
    if (first[r] != r) out.pairs.push_back(equal_pair(out.recordings, first[r], r));
  fingerprint::MatchOptions matching;
  matching.least_words = std::max<std::int64_t>(
      kLeastEqual, std::llround((options.least - kSpanSeconds) / kWordSeconds) + 1);
  matching.common = options.common;
  matching.memory = options.memory;
  matching.new_from = old;
  const TemporaryFolder folder;
  matching.folder = folder / "";
  const Words words(out.recordings, first);
  for (const fingerprint::Match& match : fingerprint::find_matches(words, matching))
    out.pairs.push_back(like_pair(out.recordings, match, options.share));
  for (std::size_t r = 0; r < first.size(); ++r)
    if (const std::int64_t evidence = words.evidence()[r];
        evidence >= 0 && evidence < matching.least_words)
      out.silent.push_back(out.recordings[r].entry);
  std::sort(out.pairs.begin(), out.pairs.end(), [](const LikePair& x, const LikePair& y) {
    return std::pair(x.a, x.b) < std::pair(y.a, y.b);
  });
  for (const LikePair& p : out.pairs)
    if (p.is_joined) groups.join(p.a, p.b);
  for (std::size_t r = 0; r < out.recordings.size(); ++r) out.recordings[r].group = groups.root(r);
  count(out);
  return out;
}

}  // namespace melflow
