// Writes FLAC files that libsndfile cannot write: any block sizes, varying ones, any numbers in the
// frames, any bits. Samples are stored uncompressed ("verbatim").
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace melflow::test {

struct PlainFlac {
  std::string bytes;
  std::vector<std::uint64_t> at;     ///< offsets of the frames
  std::vector<std::int64_t> sample;  ///< first sample of each frame, as in its header
};

struct PlainFlacOptions {
  int channels = 1;
  int bits = 16;     ///< 8, 12, 16, 20, 24, 32; 16-bit samples become the highest bits
  int rate = 16000;  ///< 8000, 16000, 48000
  std::vector<int> block_sizes = {4096};  ///< used in turn, repeatedly
  bool says_samples = false;              ///< the headers number samples, not frames
  std::int64_t first = 0;                 ///< number of the first frame or sample
  std::string metadata = {};              ///< bytes of a block of application data
};

namespace plain_flac_detail {

inline void put(std::string& out, std::uint64_t value, int bytes) {
  for (int i = bytes - 1; i >= 0; --i) out += i < 8 ? static_cast<char>(value >> (8 * i)) : '\0';
}

inline std::uint32_t crc(const std::string& bytes, std::size_t from, int bits, std::uint32_t poly) {
  std::uint32_t value = 0;
  for (std::size_t i = from; i < bytes.size(); ++i) {
    value ^= static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[i])) << (bits - 8);
    for (int bit = 0; bit < 8; ++bit)
      value = (value & (1U << (bits - 1))) != 0 ? (value << 1) ^ poly : value << 1;
  }
  return value & ((1U << bits) - 1);
}

// Codes a number like UTF-8.
inline void put_number(std::string& out, std::uint64_t value) {
  if (value < 0x80) return put(out, value, 1);
  int rest = 1;  // bytes after the first, six bits each
  while (value >> (6 * rest + (6 - rest)) != 0) ++rest;
  put(out, ((0xFF80U >> rest) & 0xFFU) | (value >> (6 * rest)), 1);
  for (int i = rest - 1; i >= 0; --i) put(out, 0x80U | ((value >> (6 * i)) & 0x3FU), 1);
}

}  // namespace plain_flac_detail

/// Returns a frame's header, which precedes the samples.
inline std::string flac_frame_header(const PlainFlacOptions& o, int block_size,
                                     std::uint64_t number) {
  using namespace plain_flac_detail;
  std::string out;
  put(out, o.says_samples ? 0xFFF9 : 0xFFF8, 2);
  put(out, 0x70 | (o.rate == 8000 ? 4 : o.rate == 16000 ? 5 : 10), 1);  // the block size follows
  const int bits = o.bits == 32 ? 7 : o.bits == 8 ? 1 : o.bits / 4 + (o.bits > 12 ? 0 : -1);
  put(out, static_cast<std::uint64_t>(o.channels - 1) << 4 | bits << 1, 1);
  put_number(out, number);
  put(out, static_cast<std::uint64_t>(block_size - 1), 2);
  put(out, crc(out, 0, 8, 0x07), 1);
  return out;
}

inline PlainFlac plain_flac(std::span<const std::int16_t> interleaved,
                            const PlainFlacOptions& o = {}) {
  using namespace plain_flac_detail;
  PlainFlac out;
  const auto channels = static_cast<std::size_t>(o.channels);
  const std::size_t frames = interleaved.size() / channels;
  const auto [least, most] = std::minmax_element(o.block_sizes.begin(), o.block_sizes.end());
  std::string& b = out.bytes;
  b = "fLaC";
  put(b, o.metadata.empty() ? 0x80000022 : 0x00000022, 4);
  put(b, static_cast<std::uint64_t>(*least), 2);
  put(b, static_cast<std::uint64_t>(*most), 2);
  put(b, 0, 6);
  put(b,
      (std::uint64_t(o.rate) << 44) | (std::uint64_t(channels - 1) << 41) |
          (std::uint64_t(o.bits - 1) << 36) | frames,
      8);
  put(b, 0, 16);
  if (!o.metadata.empty()) {
    put(b, 0x82000000 + o.metadata.size(), 4);
    b += o.metadata;
  }
  std::size_t done = 0;
  for (std::size_t i = 0; done < frames; ++i) {
    const auto size = static_cast<std::size_t>(o.block_sizes[i % o.block_sizes.size()]);
    const std::size_t n = std::min(size, frames - done);
    const std::size_t from = b.size();
    const auto number = static_cast<std::uint64_t>(o.first) + (o.says_samples ? done : i);
    out.at.push_back(from);
    out.sample.push_back(static_cast<std::int64_t>(
        o.says_samples ? number : number * static_cast<std::uint64_t>(o.block_sizes[0])));
    b += flac_frame_header(o, static_cast<int>(n), number);
    for (std::size_t c = 0; c < channels; ++c) {
      put(b, 0x02, 1);
      std::uint64_t bits = 0;
      int have = 0;
      for (std::size_t s = 0; s < n; ++s) {
        const std::int64_t value =
            interleaved[(done + s) * channels + c] * 65536LL >> (32 - o.bits);
        bits = bits << o.bits | (static_cast<std::uint64_t>(value) & ((1ULL << o.bits) - 1));
        for (have += o.bits; have >= 8; have -= 8) put(b, bits >> (have - 8), 1);
      }
      // A subframe may end at any bit, but these end at a byte: even counts.
    }
    put(b, crc(b, from, 16, 0x8005), 2);
    done += n;
  }
  return out;
}

}  // namespace melflow::test
