#include "stages/fingerprint/matches.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <bit>
#include <tuple>
#include <utility>

#include "stages/fingerprint/spill.h"

namespace melflow::fingerprint {
namespace {

constexpr std::size_t kCheckAfter = 32;  // words: 0.4 s
constexpr int kCheckBits = 8;            // that may differ there; by chance so few do in 0.4 %
constexpr std::size_t kPlaces = 8;       // of one word in one recording
constexpr int kWithin = 2;               // votes whose offsets are so near are for one
constexpr std::size_t kLeastVotes = 2, kOffsetsTried = 4;
constexpr int kAlike = 11;      // of 32 bits; unrelated recordings differ in 13.5 or more
constexpr int kUnlike = -2;     // at least: a pause, which codecs fill with noise, ends no stretch
constexpr double kMost = 0.30;  // share of bits that may differ in a stretch

struct Place {
  std::uint32_t word, check, recording, at;
};
struct Vote {
  std::uint32_t a, b;
  std::int32_t offset;  // place in b less place in a
  std::uint32_t at;     // in a
  auto key() const { return std::tie(a, b, offset, at); }
};

template <class Number>
std::uint64_t hash_of(const Number& number) {
  return XXH3_64bits(&number, sizeof number);
}

void add_places(const std::vector<std::uint32_t>& words, std::size_t recording,
                Spill<Place>& places) {
  for (std::size_t at = 0; at + kCheckAfter < words.size(); ++at) {
    const std::uint64_t h = hash_of(words[at]);
    if ((h >> 63) != 0 || !is_evidence(words, at) || (at > 0 && words[at] == words[at - 1]))
      continue;
    places.add((h >> 32) % Spill<Place>::kParts,
               {words[at], words[at + kCheckAfter], static_cast<std::uint32_t>(recording),
                static_cast<std::uint32_t>(at)});
  }
}

// Votes of the places of one word, which are sorted by recording.
void add_votes(const Place* begin, const Place* end, std::size_t common, std::size_t new_from,
               Spill<Vote>& votes) {
  std::size_t recordings = 0;
  std::vector<Place> kept;
  for (const Place* p = begin; p != end;) {
    const Place* next = p;
    while (next != end && next->recording == p->recording) ++next;
    kept.insert(kept.end(), p, std::min(next, p + kPlaces));
    p = next;
    if (++recordings > common) return;
  }
  if (recordings < 2) return;
  for (std::size_t j = 0; j < kept.size(); ++j) {
    const Place& b = kept[j];
    if (b.recording < new_from) continue;
    for (std::size_t i = 0; i < j && kept[i].recording != b.recording; ++i) {
      const Place& a = kept[i];
      if (std::popcount(a.check ^ b.check) > kCheckBits) continue;
      votes.add(hash_of(std::array{a.recording, b.recording}) % Spill<Vote>::kParts,
                {a.recording, b.recording,
                 static_cast<std::int32_t>(static_cast<std::int64_t>(b.at) - a.at), a.at});
    }
  }
}

// The offsets with the most votes, of the votes for two recordings.
std::vector<std::int64_t> offsets_of(const Vote* begin, const Vote* end) {
  std::vector<std::pair<std::size_t, std::int64_t>> counted;
  const Vote* last = begin;
  for (const Vote* first = begin; first != end; ++first) {
    while (last != end && last->offset <= first->offset + kWithin) ++last;
    const auto count = static_cast<std::size_t>(last - first);
    if (count >= kLeastVotes) counted.emplace_back(count, first->offset + kWithin / 2);
  }
  std::sort(counted.begin(), counted.end(), [](const auto& x, const auto& y) {
    return x.first != y.first ? x.first > y.first : x.second < y.second;
  });
  std::vector<std::int64_t> out;
  for (const auto& [count, offset] : counted) {
    if (out.size() == kOffsetsTried) break;
    const auto is_near = [at = offset](std::int64_t o) { return std::abs(o - at) <= 2 * kWithin; };
    if (std::none_of(out.begin(), out.end(), is_near)) out.push_back(offset);
  }
  return out;
}

}  // namespace

bool is_evidence(const std::vector<std::uint32_t>& words, std::size_t at) {
  if (words[at] == 0) return false;
  for (std::size_t i = 1; i < 4; ++i)
    if (at < i || words[at - i] != words[at]) return true;
  return false;
}

std::int64_t evidence_of(const std::vector<std::uint32_t>& words) {
  std::int64_t out = 0;
  for (std::size_t i = 0; i < words.size(); ++i) out += is_evidence(words, i) ? 1 : 0;
  return out;
}

Match best_stretch(const std::vector<std::uint32_t>& a, const std::vector<std::uint32_t>& b,
                   std::int64_t offset) {
  const std::int64_t from = std::max<std::int64_t>(0, -offset);
  const std::int64_t to =
      std::min(static_cast<std::int64_t>(a.size()), static_cast<std::int64_t>(b.size()) - offset);
  std::int64_t sum = 0, best = 0, begin = from, counted = 0, bits = 0;
  Match out;
  for (std::int64_t i = from; i < to; ++i) {
    const auto in_a = static_cast<std::size_t>(i), in_b = static_cast<std::size_t>(i + offset);
    if (is_evidence(a, in_a) && is_evidence(b, in_b)) {
      const int differ = std::popcount(a[in_a] ^ b[in_b]);
      sum += std::max(kAlike - differ, kUnlike);
      bits += differ;
      ++counted;
    }
    if (sum <= 0) {
      sum = bits = counted = 0;
      begin = i + 1;
    } else if (sum > best) {
      best = sum;
      out.begin_a = begin;
      out.begin_b = begin + offset;
      out.words = i + 1 - begin;
      out.evidence = counted;
      out.error = static_cast<double>(bits) / (32.0 * static_cast<double>(counted));
    }
  }
  return out;
}

std::vector<Match> find_matches(const WordSource& source, const MatchOptions& options) {
  const std::size_t common =
      options.common > 0 ? options.common : std::max<std::size_t>(100, source.recordings() / 1000);
  Spill<Vote> votes(options.folder + "/votes", options.memory / 4);
  {
    Spill<Place> places(options.folder + "/places", options.memory / 2);
    std::vector<std::uint32_t> words;
    for (std::size_t r = 0; r < source.recordings(); ++r) {
      words.clear();
      source.read(r, words);
      add_places(words, r, places);
    }
    for (std::size_t part = 0; part < Spill<Place>::kParts; ++part) {
      std::vector<Place> all = places.take(part);
      std::sort(all.begin(), all.end(), [](const Place& x, const Place& y) {
        return std::tie(x.word, x.recording, x.at) < std::tie(y.word, y.recording, y.at);
      });
      for (std::size_t i = 0; i < all.size();) {
        std::size_t end = i;
        while (end < all.size() && all[end].word == all[i].word) ++end;
        add_votes(all.data() + i, all.data() + end, common, options.new_from, votes);
        i = end;
      }
    }
  }
  std::vector<Match> out;
  std::vector<std::uint32_t> a, b;
  for (std::size_t part = 0; part < Spill<Vote>::kParts; ++part) {
    std::vector<Vote> all = votes.take(part);
    std::sort(all.begin(), all.end(),
              [](const Vote& x, const Vote& y) { return x.key() < y.key(); });
    std::size_t read = source.recordings();  // what `a` holds
    for (std::size_t i = 0; i < all.size();) {
      std::size_t end = i;
      while (end < all.size() && all[end].a == all[i].a && all[end].b == all[i].b) ++end;
      Match best;
      const std::vector<std::int64_t> offsets = offsets_of(all.data() + i, all.data() + end);
      if (!offsets.empty()) {
        if (read != all[i].a) a.clear(), source.read(read = all[i].a, a);
        b.clear();
        source.read(all[i].b, b);
      }
      for (const std::int64_t offset : offsets)
        for (int near = -kWithin; near <= kWithin; ++near) {
          const Match one = best_stretch(a, b, offset + near);
          if (one.evidence < options.least_words || one.error > kMost) continue;
          const auto score = [](const Match& m) {
            return (0.5 - m.error) * static_cast<double>(m.evidence);
          };
          if (best.words == 0 || score(one) > score(best)) best = one;
        }
      if (best.words > 0) {
        best.a = all[i].a;
        best.b = all[i].b;
        best.of_a = evidence_of(a);
        best.of_b = evidence_of(b);
        out.push_back(best);
      }
      i = end;
    }
  }
  std::sort(out.begin(), out.end(),
            [](const Match& x, const Match& y) { return std::tie(x.a, x.b) < std::tie(y.a, y.b); });
  return out;
}

}  // namespace melflow::fingerprint
