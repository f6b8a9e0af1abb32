#include "stages/audio/decoders/flac_frames.h"

#include <algorithm>
#include <array>

namespace melflow {
namespace {

constexpr std::size_t kMarker = 4, kBlockHeader = 4, kStreamInfo = 34;
constexpr std::size_t kLongestHeader = 16;  // of a frame
constexpr int kMostTries = 32;
constexpr std::size_t kMostEnds = 8;
constexpr std::uint64_t kLongestFrame = 1 << 20;  // [bytes] that is looked for at the end

std::uint32_t at(std::span<const std::byte> b, std::size_t i) {
  return std::to_integer<std::uint32_t>(b[i]);
}

// Polynomial x^8 + x^2 + x + 1: of a frame's header.
std::uint32_t crc8(std::span<const std::byte> bytes) {
  static constexpr auto table = [] {
    std::array<std::uint8_t, 256> out{};
    for (unsigned i = 0; i < 256; ++i) {
      unsigned v = i;
      for (int bit = 0; bit < 8; ++bit) v = (v << 1) ^ ((v & 0x80U) != 0 ? 0x107U : 0U);
      out[i] = static_cast<std::uint8_t>(v);
    }
    return out;
  }();
  std::uint8_t crc = 0;
  for (const std::byte b : bytes) crc = table[crc ^ std::to_integer<std::uint8_t>(b)];
  return crc;
}

// Polynomial x^16 + x^15 + x^2 + 1: of a whole frame; 0 with the two bytes that follow it.
std::uint32_t crc16(std::uint32_t crc, std::span<const std::byte> bytes) {
  static constexpr auto table = [] {
    std::array<std::uint16_t, 256> out{};
    for (unsigned i = 0; i < 256; ++i) {
      unsigned v = i << 8;
      for (int bit = 0; bit < 8; ++bit) v = (v << 1) ^ ((v & 0x8000U) != 0 ? 0x18005U : 0U);
      out[i] = static_cast<std::uint16_t>(v);
    }
    return out;
  }();
  for (const std::byte b : bytes)
    crc = (crc << 8 & 0xFFFFU) ^ table[crc >> 8 ^ std::to_integer<std::uint32_t>(b)];
  return crc;
}

struct Coded {
  std::uint64_t value = 0;
  std::size_t bytes = 0;  // 0: not a number
};

// As UTF-8 codes a character, up to seven bytes for 36 bits.
Coded coded_number(std::span<const std::byte> b) {
  const std::uint32_t first = at(b, 0);
  if (first < 0x80) return {first, 1};
  std::size_t bytes = 0;
  while (bytes < 8 && (first & (0x80U >> bytes)) != 0) ++bytes;
  if (bytes < 2 || bytes > 7) return {};
  std::uint64_t value = first & (0x7FU >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((at(b, i) & 0xC0U) != 0x80U) return {};
    value = value << 6 | (at(b, i) & 0x3FU);
  }
  return {value, bytes};
}

}  // namespace

std::optional<FlacFrames> FlacFrames::find(ReadAt read, std::uint64_t size) {
  FlacFrames out(std::move(read), size);
  return out.read_header() ? std::optional(std::move(out)) : std::nullopt;
}

bool FlacFrames::read_header() {
  std::array<std::byte, kMarker + kBlockHeader + kStreamInfo> head{};
  constexpr std::uint32_t kLast = 0x80;
  if (read_(0, head) < head.size()) return false;
  const bool is_flac = at(head, 0) == 'f' && at(head, 1) == 'L' && at(head, 2) == 'a' &&
                       at(head, 3) == 'C' && (at(head, 4) & ~kLast) == 0 && at(head, 5) == 0 &&
                       at(head, 6) == 0 && at(head, 7) == kStreamInfo;
  if (!is_flac) return false;
  bool is_last = (at(head, 4) & kLast) != 0;
  head[4] = std::byte{kLast};
  head_.assign(head.begin(), head.end());
  constexpr std::size_t kCount = 21;  // four bits of it are in this byte
  head_[kCount] &= std::byte{0xF0};
  std::fill_n(head_.begin() + kCount + 1, 4, std::byte{0});
  const std::int64_t smallest = at(head, 8) << 8 | at(head, 9);
  const std::int64_t largest = at(head, 10) << 8 | at(head, 11);
  channels_ = static_cast<int>((at(head, 20) >> 1) & 7U) + 1;
  block_size_ = smallest == largest ? smallest : 0;

  first_.at = head.size();
  while (!is_last) {  // pictures, comments, a table of places
    std::array<std::byte, kBlockHeader> block{};
    if (read_(first_.at, block) < block.size()) return false;
    is_last = (at(block, 0) & kLast) != 0;
    first_.at += block.size() + (at(block, 1) << 16 | at(block, 2) << 8 | at(block, 3));
  }
  std::array<std::byte, kLongestHeader> frame{};
  const std::size_t got = read_(first_.at, frame);
  if (got < frame.size()) return false;
  is_fixed_ = (at(frame, 1) & 1U) == 0;
  if (is_fixed_ && block_size_ == 0) return false;
  const auto begins = place(first_.at, frame);
  return begins && begins->sample == 0;
}

// The frame whose header these bytes begin with.
std::optional<FlacPlace> FlacFrames::place(std::uint64_t where,
                                           std::span<const std::byte> b) const {
  const std::uint32_t sync = is_fixed_ ? 0xF8 : 0xF9;
  if (b.size() < kLongestHeader || at(b, 0) != 0xFF || at(b, 1) != sync) return std::nullopt;
  const std::uint32_t size_code = at(b, 2) >> 4, rate_code = at(b, 2) & 15U;
  const std::uint32_t channel_code = at(b, 3) >> 4;
  if (size_code == 0 || rate_code == 15 || channel_code > 10 || (at(b, 3) & 1U) != 0)
    return std::nullopt;
  // Above 7 they are ways to store two channels.
  if ((channel_code > 7 ? 2 : static_cast<int>(channel_code) + 1) != channels_) return std::nullopt;
  const Coded number = coded_number(b.subspan(4));
  if (number.bytes == 0) return std::nullopt;
  std::size_t length = 4 + number.bytes;
  length += size_code == 6 ? 1U : size_code == 7 ? 2U : 0U;
  length += rate_code == 12 ? 1U : rate_code == 13 || rate_code == 14 ? 2U : 0U;
  if (crc8(b.first(length)) != at(b, length)) return std::nullopt;
  const std::size_t size_at = 4 + number.bytes;
  std::int64_t samples = 0;
  switch (size_code) {
    case 1:
      samples = 192;
      break;
    case 2:
    case 3:
    case 4:
    case 5:
      samples = 576 << (size_code - 2);
      break;
    case 6:
      samples = at(b, size_at) + 1;
      break;
    case 7:
      samples = (at(b, size_at) << 8 | at(b, size_at + 1)) + 1;
      break;
    default:
      samples = 256 << (size_code - 8);
  }
  const auto value = static_cast<std::int64_t>(number.value);
  return FlacPlace{where, is_fixed_ ? value * block_size_ : value, samples};
}

// The first frame that begins in [from, end).
std::optional<FlacPlace> FlacFrames::next(std::uint64_t from, std::uint64_t end) {
  std::array<std::byte, 8192> bytes;
  while (from < end && left_ > 0) {
    const std::size_t got = read_(from, bytes);
    left_ -= std::min<std::uint64_t>(left_, got);
    if (got < kLongestHeader) return std::nullopt;
    const std::size_t last = got - kLongestHeader;
    for (std::size_t i = 0; i <= last && from + i < end; ++i) {
      const auto* hit =
          std::find(bytes.data() + i, bytes.data() + last + 1, static_cast<std::byte>(0xFF));
      i = static_cast<std::size_t>(hit - bytes.data());
      if (i > last || from + i >= end) break;
      if (const auto found = place(from + i, std::span(bytes).subspan(i, kLongestHeader)))
        return found;
    }
    from += last + 1;
  }
  return std::nullopt;
}

// From the nearest frame to the end that could be the one. Others would have to be within its
// bytes, so that few are looked at.
bool FlacFrames::is_complete(std::int64_t count) {
  std::uint64_t from = std::max(first_.at, size_ - std::min(size_, kLongestFrame));
  std::array<std::uint64_t, kMostEnds> ends{};  // the last that were found
  std::size_t found = 0;
  while (const auto frame = next(from, size_)) {
    from = frame->at + 1;
    if (frame->sample + frame->samples == count) ends[found++ % ends.size()] = frame->at;
  }
  for (std::size_t i = 0; i < std::min(found, ends.size()); ++i) {
    std::uint64_t done = ends[(found - 1 - i) % ends.size()];
    std::array<std::byte, 8192> bytes;
    std::uint32_t crc = 0;
    while (const std::size_t got = read_(done, bytes)) {
      crc = crc16(crc, std::span(bytes).first(got));
      done += got;
    }
    if (crc == 0 && done == size_) return true;
  }
  return false;
}

// Looks where the frame should be if all samples took as many bytes; then between the nearest two
// places that are known to be too early and too late.
std::optional<FlacPlace> FlacFrames::after(const FlacPlace& from, std::int64_t most) {
  std::optional<FlacPlace> best;
  std::uint64_t low = from.at + 1, high = size_;
  double step = 0.95 * static_cast<double>(most) * bytes_per_sample_;
  for (int tries = 0; tries < kMostTries && low < high; ++tries) {
    std::uint64_t guess = from.at + static_cast<std::uint64_t>(std::max(step, 1.0));
    if (guess < low || guess >= high) guess = low + (high - low) / 2;
    const auto found = next(guess, high);
    if (!found || found->sample <= from.sample || found->sample - from.sample > most) {
      high = guess;
    } else {
      best = found;
      low = found->at + 1;
      const auto samples = static_cast<double>(found->sample - from.sample);
      bytes_per_sample_ = static_cast<double>(found->at - from.at) / samples;
      if (samples >= 0.75 * static_cast<double>(most)) break;
    }
    step = 0.95 * static_cast<double>(most) * bytes_per_sample_;
    if (!best) step = static_cast<double>(high - from.at) / 2;
  }
  return best;
}

}  // namespace melflow
