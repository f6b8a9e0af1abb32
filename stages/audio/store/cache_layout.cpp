#include "stages/audio/store/cache_layout.h"

#include <xxhash.h>

#include <bit>
#include <cstring>
#include <utility>

namespace melflow {
namespace {

struct Header {
  std::array<char, 8> magic{'m', 'e', 'l', 'f', 'l', 'o', 'w', 'A'};
  std::uint32_t version = 1;
  std::uint32_t byte_order = 0x01020304;
  CacheKey key;
  std::uint64_t checksum = 0;
};

static_assert(sizeof(CacheEntry) == 80 && sizeof(CacheCommit) == 56 && sizeof(Header) == 40);

// Returns the checksum of the members before `checksum`.
template <class T>
std::uint64_t checksum_of(const T& of) {
  return XXH3_64bits(&of, offsetof(T, checksum));
}

Header signed_header(const CacheKey& key) {
  Header out;
  out.key = key;
  out.checksum = checksum_of(out);
  return out;
}

}  // namespace

CacheKey cache_key(std::string_view text) {
  const XXH128_hash_t h = XXH3_128bits(text.data(), text.size());
  return {h.high64, h.low64};
}

bool CacheEntry::is_possible() const {
  constexpr std::int64_t kMost = std::int64_t{1} << 48;
  return count > 0 && count < kMost && file_frames >= 0 && sample_rate > 0 && file_rate > 0 &&
         extents > 0 && type <= static_cast<std::uint32_t>(SampleType::float32);
}

std::size_t cache_place_of(const CacheEntry* table, std::uint64_t capacity, const CacheKey& key) {
  const std::uint64_t mask = capacity - 1;
  std::uint64_t at = key.low & mask;
  for (std::uint64_t i = 0; i < mask && table[at].count != 0 && !(table[at].key == key); ++i)
    at = (at + 1) & mask;
  return at;
}

void CacheCommit::sign() { checksum = checksum_of(*this); }

bool CacheCommit::is_good(std::uint64_t file_size) const {
  return sequence != 0 && checksum == checksum_of(*this) && end <= file_size &&
         std::has_single_bit(capacity) && entries < capacity &&
         capacity <= end / sizeof(CacheEntry) && index_offset % kCachePage == 0 &&
         index_offset <= end - capacity * sizeof(CacheEntry);
}

CachePage cache_header(const CacheKey& key) {
  const Header header = signed_header(key);
  CachePage out{};
  std::memcpy(out.data(), &header, sizeof header);
  return out;
}

bool is_cache_header(const CachePage& page, const CacheKey& key) {
  const Header expected = signed_header(key);
  return std::memcmp(page.data(), &expected, sizeof expected) == 0;
}

std::array<CacheCommit, 2> cache_commits(const CachePage& page) {
  std::array<CacheCommit, 2> out;
  for (std::size_t i = 0; i < out.size(); ++i)
    std::memcpy(&out[i], page.data() + kCacheCommitPlace[i], sizeof(CacheCommit));
  if (out[0].sequence < out[1].sequence) std::swap(out[0], out[1]);
  return out;
}

}  // namespace melflow
