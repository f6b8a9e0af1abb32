#include "stages/audio/decoders/voc_blocks.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

namespace melflow {
namespace {

constexpr int kMostBlocks = 1 << 20;
constexpr std::string_view kMagic = "Creative Voice File\x1A";

// Kinds of blocks (sox.sourceforge.net, AudioFormats, 11.5).
enum Kind : unsigned {
  kEnd = 0,
  kSound = 1,      // after 2 bytes of format
  kContinued = 2,  // more samples in the format of the block before
  kSilence = 3,
  kRepeat = 6,
  kExtended = 8,  // format of the kSound that follows
  kNewSound = 9,  // after 12 bytes of format
};

}  // namespace

std::optional<VocBlocks> voc_blocks(const ReadAt& read) {
  std::array<std::byte, 22> head;
  if (read(0, head) < head.size() || std::memcmp(head.data(), kMagic.data(), kMagic.size()) != 0)
    return std::nullopt;
  const auto number = [](const auto& bytes, std::size_t at, std::size_t size) {
    std::uint64_t out = 0;
    for (std::size_t i = 0; i < size; ++i)
      out |= std::to_integer<std::uint64_t>(bytes[at + i]) << 8 * i;
    return out;
  };
  VocBlocks out;
  std::array<std::byte, 12> first{}, format{};
  std::uint64_t channels = 1, samples = 0, width = 0;
  std::uint64_t at = number(head, 20, 2);
  for (int i = 0; i < kMostBlocks; ++i) {
    std::array<std::byte, 16> block{};
    const std::size_t there = read(at, block);
    const std::uint64_t kind = number(block, 0, 1), size = number(block, 1, 3);
    out.has_end = there > 0 && kind == kEnd;
    if (there < 4 || kind == kEnd) break;
    at += 4;
    if (kind == kExtended) channels = number(block, 4 + 3, 1) + 1;
    if (kind == kSilence || kind == kRepeat) {
      ++out.count;
      out.are_alike = false;
    }
    if (kind == kSound || kind == kNewSound || (kind == kContinued && out.count > 0)) {
      const std::uint64_t skip = kind == kSound ? 2 : kind == kNewSound ? 12 : 0;
      if (skip > 0) {
        format.fill(std::byte{});
        format[11] = static_cast<std::byte>(kind);
        std::copy_n(block.begin() + 4, std::min<std::size_t>(skip, 11), format.begin());
        const std::uint64_t codec =
            kind == kSound ? number(block, 4 + 1, 1) : number(block, 4 + 6, 2);
        if (kind == kNewSound) channels = number(block, 4 + 5, 1);
        // 8 bits, 16 bits, A-law and mu-law; others are compressed.
        width = codec == 0 || codec == 6 || codec == 7 ? 1 : codec == 4 ? 2 : 0;
        if (out.begin == 0) first = format;
      }
      out.are_alike = out.are_alike && format == first;
      if (out.begin == 0) out.begin = at + skip;
      out.end = at + std::max(size, skip);
      samples += size - std::min(size, skip);
      ++out.count;
    }
    at += size;
  }
  if (out.begin == 0) return std::nullopt;
  if (const std::uint64_t step = width * channels; step > 0)
    out.frames = static_cast<std::int64_t>(samples / step);
  return out;
}

}  // namespace melflow
