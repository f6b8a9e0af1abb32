#include "stages/audio/decoders/ogg_pages.h"

#include <ogg/ogg.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <new>
#include <numeric>
#include <string_view>
#include <vector>

#include <fmt/format.h>

namespace melflow {
namespace {

// A sound stream in a file, and the range that its pages cover.
struct Link {
  int serial = 0;
  double rate = 0;        // of granules [Hz]; 0: not known
  std::int64_t skip = 0;  // granules that are not sound
  std::int64_t first = -1, last = -1;
  bool has_end = false;

  [[nodiscard]] double seconds() const {
    // A recording of a live stream may begin at any granule.
    const bool is_later = rate > 0 && static_cast<double>(first) > 60 * rate;
    const std::int64_t granules = last - (is_later ? first : skip);
    return rate > 0 ? std::max(0.0, static_cast<double>(granules) / rate) : 0;
  }
};

std::int64_t little(const unsigned char* bytes, std::size_t count) {
  std::int64_t out = 0;
  for (std::size_t i = 0; i < count; ++i) out |= std::int64_t{bytes[i]} << (8 * i);
  return out;
}

struct Sync {
  Sync() { ogg_sync_init(&state); }
  Sync(const Sync&) = delete;
  Sync& operator=(const Sync&) = delete;
  ~Sync() { ogg_sync_clear(&state); }
  ogg_sync_state state{};
};

class Pages {
 public:
  Pages(const ReadAt& read, std::uint64_t size) {
    Sync sync;
    constexpr long kPiece = 65536;
    std::uint64_t at = 0;
    while (at < size) {
      char* to = ogg_sync_buffer(&sync.state, kPiece);
      if (to == nullptr) throw std::bad_alloc();
      const std::size_t n = read(at, {reinterpret_cast<std::byte*>(to), kPiece});
      if (n == 0) break;
      at += n;
      ogg_sync_wrote(&sync.state, static_cast<long>(n));
      ogg_page page;
      while (const long step = ogg_sync_pageseek(&sync.state, &page)) {
        if (step > 0) {
          damaged_ = damaged_ || is_lost_;
          take(page);
        }
        is_lost_ = step < 0;  // counts if a page follows
      }
    }
  }

  [[nodiscard]] const std::vector<Link>& links() const { return links_; }
  [[nodiscard]] bool is_damaged() const { return damaged_; }
  // Whether the page that ends the last stream is present.
  [[nodiscard]] bool ends_whole() const { return !links_.empty() && links_.back().has_end; }

 private:
  void take(ogg_page& page) {
    const bool begins = ogg_page_bos(&page) != 0;
    if (begins && !in_heads_) is_found_ = false;  // another stream, after the previous one
    in_heads_ = begins;
    const int serial = ogg_page_serialno(&page);
    if (begins && !is_found_) {
      begin(page, serial);
      return;
    }
    if (links_.empty() || links_.back().serial != serial) return;
    Link& link = links_.back();
    const long number = ogg_page_pageno(&page);
    damaged_ = damaged_ || number > number_ + 1;
    number_ = number;
    const std::int64_t granule = ogg_page_granulepos(&page);
    if (granule > 0 && link.first < 0) link.first = granule;
    link.last = std::max(link.last, granule);
    link.has_end = ogg_page_eos(&page) != 0;
  }

  void begin(const ogg_page& page, int serial) {
    const std::string_view body(reinterpret_cast<const char*>(page.body),
                                static_cast<std::size_t>(page.body_len));
    Link link;
    link.serial = serial;
    if (body.starts_with("\x01vorbis") && body.size() >= 16) {
      link.rate = static_cast<double>(little(page.body + 12, 4));
    } else if (body.starts_with("OpusHead") && body.size() >= 12) {  // RFC 7845, 5.1
      link.rate = 48000;
      link.skip = little(page.body + 10, 2);
    } else if (body.starts_with("Speex   ") && body.size() >= 40) {
      link.rate = static_cast<double>(little(page.body + 36, 4));
    } else if (body.starts_with("\x7F"
                                "FLAC") &&
               body.size() >= 31) {
      link.rate = page.body[27] << 12 | page.body[28] << 4 | page.body[29] >> 4;
    } else {
      return;  // pictures, or data without a decoder
    }
    link.has_end = ogg_page_eos(&page) != 0;
    is_found_ = true;
    number_ = ogg_page_pageno(&page);
    links_.push_back(link);
  }

  std::vector<Link> links_;
  bool in_heads_ = false, is_found_ = false, is_lost_ = false, damaged_ = false;
  long number_ = 0;
};

}  // namespace

Damage ogg_damage(const ReadAt& read, std::uint64_t size, std::int64_t decoded, int rate) {
  std::array<std::byte, 4> begin;
  if (read(0, begin) < begin.size() || std::to_integer<char>(begin[0]) != 'O' ||
      std::to_integer<char>(begin[1]) != 'g' || std::to_integer<char>(begin[2]) != 'g')
    return {};
  const Pages pages(read, size);
  const auto samples = [rate](double seconds) { return std::llround(seconds * rate); };
  std::int64_t first = 0, others = 0;
  for (const Link& link : pages.links())
    (&link == &pages.links().front() ? first : others) += samples(link.seconds());
  const std::int64_t missing = std::max<std::int64_t>(0, first - decoded);
  const std::int64_t lost = missing + others, all = first + others;
  const double share = all > 0 ? static_cast<double>(lost) / static_cast<double>(all) : 0;
  if (pages.is_damaged())
    return {fmt::format("damaged: pages are missing or have a wrong check sum, {} of {} samples "
                        "are missing",
                        lost, all),
            share};
  if (pages.links().size() > 1)
    return {fmt::format("holds {} streams one after the other, of which only the first is "
                        "decoded: {} of {} samples are dropped",
                        pages.links().size(), lost, all),
            share};
  if (!pages.ends_whole())
    return {fmt::format("short: the stream ends without its last page, after {} samples ({:.3f} "
                        "s); nothing says how many there were",
                        decoded, static_cast<double>(decoded) / rate),
            share};
  return {};
}

void correct_check_sum(SoundInput& input, std::uint64_t at) {
  constexpr std::size_t kHead = 27, kSum = 22;
  std::array<unsigned char, kHead + 255 + 255 * 255> bytes;
  const std::size_t there = input.reader()(at, std::as_writable_bytes(std::span(bytes)));
  if (there < kHead || there < kHead + bytes[kHead - 1]) return;
  const auto* const segments = bytes.data() + kHead;
  const std::size_t head = kHead + bytes[kHead - 1];
  const std::size_t body = std::accumulate(segments, segments + bytes[kHead - 1], std::size_t{0});
  if (there < head + body) return;
  ogg_page page{bytes.data(), static_cast<long>(head), bytes.data() + head,
                static_cast<long>(body)};
  ogg_page_checksum_set(&page);
  for (std::size_t i = kSum; i < kSum + 4; ++i)
    input.replace(at + i, static_cast<std::byte>(bytes[i]));
}

}  // namespace melflow
