#include "stages/audio/decoders/container_end.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>

#include <fmt/format.h>

namespace melflow {
namespace {

constexpr std::uint32_t kOpen = 0xFFFFFFFF;  // a size that was not known
constexpr int kMostChunks = 4096;            // before the samples

// Bytes from a place of the file on, as far as there are any.
struct Head {
  Head(const ReadAt& read, std::uint64_t at) : count(read(at, bytes)) {}
  [[nodiscard]] bool is(std::string_view text, std::size_t at = 0) const {
    return count >= at + text.size() &&
           std::memcmp(bytes.data() + at, text.data(), text.size()) == 0;
  }
  [[nodiscard]] std::uint64_t number(std::size_t at, std::size_t size, bool big) const {
    std::uint64_t out = 0;
    for (std::size_t i = 0; i < size; ++i)
      out |= std::to_integer<std::uint64_t>(bytes[at + i]) << 8 * (big ? size - 1 - i : i);
    return out;
  }
  std::array<std::byte, 40> bytes{};
  std::size_t count;
};

std::optional<std::uint64_t> au_promise(const Head& head) {
  const bool big = head.is(".snd");
  if ((!big && !head.is("dns.")) || head.count < 24) return std::nullopt;
  const std::uint64_t begin = head.number(4, 4, big), samples = head.number(8, 4, big);
  if (samples == 0 || samples == kOpen) return std::nullopt;
  return begin + samples;
}

// NIST SPHERE: lines of a name, a type and a value, "sample_count -i 16000", in a head of 1024
// bytes (or as many as its second line says).
std::optional<std::uint64_t> nist_promise(const ReadAt& read, const Head& head) {
  if (!head.is("NIST_1A\n")) return std::nullopt;
  std::array<std::byte, 1024> buffer;
  const std::string_view text(reinterpret_cast<const char*>(buffer.data()), read(0, buffer));
  const auto value = [text](std::string_view name, std::uint64_t otherwise) {
    const std::size_t at = text.find(name);
    std::uint64_t out = otherwise;
    if (at != text.npos)
      std::from_chars(text.data() + at + name.size(), text.data() + text.size(), out);
    return out;
  };
  std::uint64_t begin = 1024;
  const std::size_t digits = text.find_first_not_of(' ', 8);
  if (digits != text.npos) std::from_chars(text.data() + digits, text.data() + text.size(), begin);
  constexpr std::uint64_t kMost = std::uint64_t{1} << 40;
  const std::uint64_t samples = std::min(value("sample_count -i ", 0), kMost);
  const std::uint64_t step = std::min<std::uint64_t>(value("sample_n_bytes -i ", 2), 8) *
                             std::min<std::uint64_t>(value("channel_count -i ", 1), 1024);
  if (samples == 0) return std::nullopt;
  return begin + samples * step;
}

// Bytes of the file by what RIFF and its relatives say.
std::optional<std::uint64_t> chunks_promise(const Head& head) {
  if (head.is("riff") && head.count >= 24) return head.number(16, 8, false);
  const bool big = head.is("FORM") || head.is("RIFX");
  std::uint64_t size = 0;
  if (head.is("RF64") || head.is("BW64")) {
    if (!head.is("ds64", 12) || head.count < 28) return std::nullopt;
    size = head.number(20, 8, false);
    if (size == ~std::uint64_t{0}) return std::nullopt;
  } else if (big || head.is("RIFF")) {
    if (head.count < 12) return std::nullopt;
    size = head.number(4, 4, big);
    if (size == kOpen) return std::nullopt;
  }
  if (size == 0 || size > ~std::uint64_t{0} - 8) return std::nullopt;
  return size + 8;
}

struct Chunk {
  std::uint64_t at = 0, size = 0;  // of its bytes
};

// The samples' chunk.
std::optional<Chunk> samples_chunk(const ReadAt& read, const Head& head) {
  const bool is_aiff = head.is("FORM"), is_long = head.is("RF64") || head.is("BW64");
  const bool big = is_aiff || head.is("RIFX");
  if (!big && !is_long && !head.is("RIFF")) return std::nullopt;
  std::uint64_t at = 12;
  for (int i = 0; i < kMostChunks; ++i) {
    const Head chunk(read, at);
    if (chunk.count < 8) break;
    std::uint64_t size = chunk.number(4, 4, big);
    if (chunk.is(is_aiff ? "SSND" : "data")) {
      if (is_long && size == kOpen) size = head.is("ds64", 12) ? head.number(28, 8, false) : 0;
      return Chunk{at + 8, size};
    }
    at += 8 + size + size % 2;
  }
  return std::nullopt;
}

// Chunks, one behind the other, to the end of the file.
bool are_chunks(const ReadAt& read, std::uint64_t at, std::uint64_t size, bool big) {
  for (int i = 0; i < kMostChunks && at < size; ++i) {
    const Head chunk(read, at);
    if (chunk.count < 8) return false;
    for (std::size_t k = 0; k < 4; ++k) {
      const auto letter = std::to_integer<unsigned>(chunk.bytes[k]);
      if (letter < 0x20 || letter > 0x7E) return false;
    }
    const std::uint64_t bytes = chunk.number(4, 4, big);
    at += 8 + bytes + bytes % 2;
  }
  return at == size || at == size + 1;
}

// Tags may stand behind any file, and so may zeros.
bool is_harmless(const ReadAt& read, std::uint64_t at) {
  const Head head(read, at);
  for (const char* tag : {"ID3", "TAG", "APETAGEX", "LYRICSBEGIN"})
    if (head.is(tag)) return true;
  return std::all_of(head.bytes.begin(), head.bytes.end(),
                     [](std::byte b) { return b == std::byte{}; });
}

}  // namespace

bool is_header_unfinished(const ReadAt& read, std::uint64_t size) {
  const Head head(read, 0);
  if (head.count < 12) return false;
  const bool big = head.is("FORM") || head.is("RIFX");
  if ((big || head.is("RIFF")) && head.number(4, 4, big) == 0) return true;
  const auto samples = samples_chunk(read, head);
  return samples && samples->size == 0 && !are_chunks(read, samples->at, size, big);
}

std::string cut_off_remark(const ReadAt& read, std::uint64_t size) {
  const Head head(read, 0);
  auto promise = au_promise(head);
  if (!promise) promise = nist_promise(read, head);
  if (!promise) promise = chunks_promise(head);
  // Some writers count a padding byte that they do not write.
  if (promise && *promise > size + 1)
    return fmt::format("short: the header promises {} bytes, the file has {}", *promise, size);
  const auto samples = samples_chunk(read, head);
  if (!samples || samples->size == 0 || samples->size == kOpen) return {};
  if (samples->at + samples->size > size + 1)
    return fmt::format("short: the header promises {} bytes of samples, the file has {}",
                       samples->size, size - std::min(size, samples->at));
  // A size of 32 bits in a longer file, for one.
  constexpr std::uint64_t kLittle = 4096;
  if (promise && samples->at + samples->size <= *promise + 1 && size > *promise + kLittle &&
      !is_harmless(read, *promise))
    return fmt::format("the header gives {} bytes, the {} after them are left out", *promise,
                       size - *promise);
  // A size that is too small: what follows the samples inside the container is chunks, or samples
  // that no decoder reads. Encoders add a few bytes of their own, so that some are allowed.
  constexpr std::uint64_t kStray = 64;
  const std::uint64_t end = samples->at + samples->size + samples->size % 2;
  const std::uint64_t inside = std::min(promise.value_or(size), size);
  if (inside > end + kStray && !is_harmless(read, end) &&
      !are_chunks(read, end, inside, head.is("FORM") || head.is("RIFX")))
    return fmt::format(
        "the header counts {} bytes of samples, the {} bytes after them are no chunks of the "
        "format and are left out",
        samples->size, inside - end);
  return {};
}

}  // namespace melflow
