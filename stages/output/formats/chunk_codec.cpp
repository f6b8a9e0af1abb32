#include "stages/output/formats/chunk_codec.h"

#include <libdeflate.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <new>
#include <type_traits>

namespace melflow {
namespace {

// Puts all first bytes of the elements first, then all second ones, ...
template <std::size_t size>
void shuffle(const std::byte* in, std::size_t count, std::byte* out) {
  for (std::size_t i = 0; i < count; ++i)
    for (std::size_t b = 0; b < size; ++b) out[b * count + i] = in[i * size + b];
}

template <std::size_t size>
void unshuffle(const std::byte* in, std::size_t count, std::byte* out) {
  for (std::size_t i = 0; i < count; ++i)
    for (std::size_t b = 0; b < size; ++b) out[i * size + b] = in[b * count + i];
}

// Writes stored blocks, none of them the last one of its stream (RFC 1951, 3.2.4).
std::byte* put_stored(std::span<const std::byte> bytes, std::byte* to) {
  constexpr std::size_t longest = 65535;
  while (!bytes.empty()) {
    const std::size_t n = std::min(bytes.size(), longest);
    const auto length = static_cast<std::uint32_t>(n);
    for (const std::uint32_t b : {0U, length, length >> 8U, ~length, ~length >> 8U})
      *to++ = static_cast<std::byte>(b & 0xffU);
    std::memcpy(to, bytes.data(), n);
    to += n;
    bytes = bytes.subspan(n);
  }
  return to;
}

// Calls `work` with an object whose value is the size of an element.
template <class F>
void with_size(std::size_t element_bytes, F&& work) {
  if (element_bytes == 8) return work(std::integral_constant<std::size_t, 8>());
  if (element_bytes == 4) return work(std::integral_constant<std::size_t, 4>());
  if (element_bytes == 2) return work(std::integral_constant<std::size_t, 2>());
  return work(std::integral_constant<std::size_t, 1>());
}

constexpr std::size_t kStoredHeader = 5;
constexpr std::size_t kZlibHeader = 2, kZlibTrailer = 4;

}  // namespace

ChunkCodec::Scratch::Scratch() = default;

ChunkCodec::Scratch::~Scratch() {
  libdeflate_free_compressor(compressor_);
  libdeflate_free_decompressor(decompressor_);
}

ChunkCodec::ChunkCodec(std::size_t element_bytes, bool shuffle, int level)
    : element_bytes_(element_bytes), shuffle_(shuffle), level_(level) {}

ChunkCodec::Packed ChunkCodec::pack(std::span<const std::byte> chunk, Scratch& s) const {
  std::span<const std::byte> plain = chunk;
  if (shuffle_) {
    s.shuffled_.resize(chunk.size());
    const std::size_t count = chunk.size() / element_bytes_;
    with_size(element_bytes_,
              [&](auto size) { shuffle<size()>(chunk.data(), count, s.shuffled_.data()); });
    plain = s.shuffled_;
  }
  if (level_ == 0) return {plain, 0};
  if (s.compressor_ == nullptr) s.compressor_ = libdeflate_alloc_compressor(level_);
  if (s.compressor_ == nullptr) throw std::bad_alloc();
  const std::size_t stored = shuffle_ ? noise_bytes(plain, s) : 0;
  const std::size_t overhead =
      kZlibHeader + kZlibTrailer + kStoredHeader * (stored / 65535 + 1) + stored;
  if (overhead >= plain.size()) return {plain, deflate_bit()};
  s.packed_.resize(plain.size());
  std::byte* to = s.packed_.data();
  *to++ = std::byte{0x78};  // deflate with a window of 32 KiB
  *to++ = std::byte{0x01};  // the fastest level, no dictionary, and the check bits
  to = put_stored(plain.first(stored), to);
  const std::size_t n = libdeflate_deflate_compress(
      s.compressor_, plain.data() + stored, plain.size() - stored, to, plain.size() - overhead);
  if (n == 0) return {plain, deflate_bit()};  // it would not get shorter
  to += n;
  const std::uint32_t sum = libdeflate_adler32(1, plain.data(), plain.size());
  for (const unsigned shift : {24U, 16U, 8U, 0U})
    *to++ = static_cast<std::byte>(sum >> shift & 0xffU);
  return {std::span(s.packed_).first(static_cast<std::size_t>(to - s.packed_.data())), 0};
}

// The number of bytes at the beginning that do not get shorter, by a sample of each byte's plane.
std::size_t ChunkCodec::noise_bytes(std::span<const std::byte> shuffled, Scratch& s) const {
  constexpr std::size_t sample = 4096;
  const std::size_t plane = shuffled.size() / element_bytes_;
  if (plane < 4 * sample) return 0;
  s.trial_.resize(2 * sample);
  std::size_t noise = 0;
  for (; noise + plane < shuffled.size(); noise += plane) {
    for (const std::size_t at : {plane / 4, plane / 4 * 3}) {
      const std::size_t n =
          libdeflate_deflate_compress(s.compressor_, shuffled.data() + noise + at - sample / 2,
                                      sample, s.trial_.data(), s.trial_.size());
      if (n < sample - sample / 64) return noise;
    }
  }
  return noise;
}

bool ChunkCodec::unpack(std::span<const std::byte> packed, std::uint32_t filter_mask,
                        std::span<std::byte> chunk, Scratch& s) const {
  std::span<const std::byte> plain = packed;
  if (level_ > 0 && (filter_mask & deflate_bit()) == 0) {
    if (s.decompressor_ == nullptr) s.decompressor_ = libdeflate_alloc_decompressor();
    if (s.decompressor_ == nullptr) throw std::bad_alloc();
    s.shuffled_.resize(chunk.size());
    if (libdeflate_zlib_decompress(s.decompressor_, packed.data(), packed.size(),
                                   s.shuffled_.data(), s.shuffled_.size(),
                                   nullptr) != LIBDEFLATE_SUCCESS)
      return false;
    plain = s.shuffled_;
  }
  if (plain.size() != chunk.size()) return false;
  if (!shuffle_ || (filter_mask & 1U) != 0) {
    std::memcpy(chunk.data(), plain.data(), plain.size());
    return true;
  }
  const std::size_t count = chunk.size() / element_bytes_;
  with_size(element_bytes_,
            [&](auto size) { unshuffle<size()>(plain.data(), count, chunk.data()); });
  return true;
}

}  // namespace melflow
