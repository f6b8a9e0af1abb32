#include "stages/chunk_codec.h"

#include <libdeflate.h>

#include <algorithm>
#include <cstring>
#include <new>

namespace melflow {
namespace {

// All first bytes of the elements, then all second ones, ...
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
    element_bytes_ == 2 ? shuffle<2>(chunk.data(), count, s.shuffled_.data())
                        : shuffle<4>(chunk.data(), count, s.shuffled_.data());
    plain = s.shuffled_;
  }
  if (level_ == 0) return {plain, 0};
  if (s.compressor_ == nullptr) s.compressor_ = libdeflate_alloc_compressor(level_);
  if (s.compressor_ == nullptr) throw std::bad_alloc();
  s.packed_.resize(plain.size());
  const std::size_t n = libdeflate_zlib_compress(s.compressor_, plain.data(), plain.size(),
                                                 s.packed_.data(), s.packed_.size());
  if (n == 0) return {plain, deflate_bit()};  // does not get shorter
  return {std::span(s.packed_).first(n), 0};
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
  if (!shuffle_) {
    std::memcpy(chunk.data(), plain.data(), plain.size());
    return true;
  }
  const std::size_t count = chunk.size() / element_bytes_;
  element_bytes_ == 2 ? unshuffle<2>(plain.data(), count, chunk.data())
                      : unshuffle<4>(plain.data(), count, chunk.data());
  return true;
}

}  // namespace melflow
