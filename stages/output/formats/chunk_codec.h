// chunk_codec.h - packs a chunk of an HDF5 dataset as HDF5's shuffle and deflate filters would.
//
// In:  the bytes of a chunk, elements of one size.
// Out: zlib's format (RFC 1950) over shuffled bytes, which every HDF5 reader can read; made by
//      libdeflate in any thread, whereas HDF5's own filters run under its one lock.
//
// The low bytes of floats are noise, on which deflate spends most of its time and gains nothing.
// The shuffle puts them first. A sample of each byte of the elements is compressed; bytes whose
// sample does not shrink go into stored blocks, in front of the compressed ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

struct libdeflate_compressor;
struct libdeflate_decompressor;

namespace melflow {

class ChunkCodec {
 public:
  // Work space of one thread.
  class Scratch {
   public:
    Scratch();
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;
    ~Scratch();

   private:
    friend class ChunkCodec;
    libdeflate_compressor* compressor_ = nullptr;
    libdeflate_decompressor* decompressor_ = nullptr;
    std::vector<std::byte> shuffled_, packed_, trial_;
  };

  struct Packed {
    std::span<const std::byte> bytes;  // in the scratch, until its next use
    // Bit i: filter i of the dataset was omitted. Deflate is omitted where it would make the chunk
    // longer.
    std::uint32_t filter_mask = 0;
  };

  // level: 0 (no deflate) to 12.
  ChunkCodec(std::size_t element_bytes, bool shuffle, int level);

  [[nodiscard]] int level() const { return level_; }
  [[nodiscard]] ChunkCodec at_level(int level) const { return {element_bytes_, shuffle_, level}; }
  [[nodiscard]] Packed pack(std::span<const std::byte> chunk, Scratch& scratch) const;
  // Restores the bytes of the chunk; false when `packed` is no such chunk.
  [[nodiscard]] bool unpack(std::span<const std::byte> packed, std::uint32_t filter_mask,
                            std::span<std::byte> chunk, Scratch& scratch) const;

 private:
  [[nodiscard]] std::size_t noise_bytes(std::span<const std::byte> shuffled, Scratch& s) const;
  [[nodiscard]] std::uint32_t deflate_bit() const { return shuffle_ ? 2 : 1; }

  std::size_t element_bytes_;
  bool shuffle_;
  int level_;
};

}  // namespace melflow
