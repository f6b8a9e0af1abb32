#include "stages/audio/decoders/container_end.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <string_view>

#include <fmt/format.h>

#include "stages/audio/decoders/ogg_pages.h"
#include "stages/audio/decoders/voc_blocks.h"

namespace melflow {
namespace {

constexpr std::uint32_t kOpen = 0xFFFFFFFF;  // a size that was not known
constexpr int kMostChunks = 4096;            // before the samples, and after them

// The first bytes from a position of the file on, as far as it has any.
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

struct Chunk {
  std::uint64_t at = 0, size = 0;  // of its content
};

std::optional<Chunk> au_samples(const Head& head) {
  const bool big = head.is(".snd");
  if ((!big && !head.is("dns.")) || head.count < 24) return std::nullopt;
  return Chunk{head.number(4, 4, big), head.number(8, 4, big)};
}

// Finds the samples of NIST SPHERE: lines with a name, a type and a value, "sample_count -i 16000",
// in a header of 1024 bytes (or as many as its second line says).
std::optional<Chunk> nist_samples(const ReadAt& read, const Head& head) {
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
  return Chunk{std::min(begin, kMost), samples * step};
}

// Returns the size of the file according to the header of RIFF or a related format.
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

// Returns the size of the file by ASF's file properties (Microsoft, Advanced Systems Format (ASF)
// Specification, 3.2), which FFmpeg disregards if the file is far from it; a broadcast has none.
std::optional<std::uint64_t> asf_promise(const ReadAt& read, const Head& head) {
  using namespace std::string_view_literals;
  if (!head.is("\x30\x26\xB2\x75\x8E\x66\xCF\x11"sv)) return std::nullopt;
  std::uint64_t at = 30;
  for (int i = 0; i < kMostChunks; ++i) {
    const Head object(read, at);
    const std::uint64_t size = object.number(16, 8, false);
    if (object.count < object.bytes.size() || size < 24 || size > kOpen) break;
    if (object.is("\xA1\xDC\xAB\x8C\x47\xA9\xCF\x11\x8E\xE4\x00\xC0\x0C\x20\x53\x65"sv)) {
      const Head flags(read, at + 88);
      const bool is_broadcast = flags.count < 4 || (flags.number(0, 1, false) & 1) != 0;
      const std::uint64_t promise = Head(read, at + 40).number(0, 8, false);
      return is_broadcast || promise == 0 ? std::nullopt : std::optional(promise);
    }
    at += size;
  }
  return std::nullopt;
}

// How a file of chunks is written, and which chunk has the samples.
struct Container {
  bool is_big = false;
  std::uint64_t first = 12;             // offset of the first chunk [bytes]
  std::size_t name = 4, width = 4;      // of a chunk's header: its name, its size [bytes]
  std::uint64_t counted = 0, step = 2;  // `counted`: bytes of the header that the size includes;
                                        // chunks begin at multiples of `step` [bytes]
  std::string_view samples = "data";

  [[nodiscard]] std::size_t head() const { return name + width; }
};

std::optional<Container> container(const Head& head) {
  if (head.is("RIFF") || head.is("RF64") || head.is("BW64")) return Container{};
  if (head.is("RIFX")) return Container{.is_big = true};
  if (head.is("FORM"))
    return Container{.is_big = true, .samples = head.is("AIF", 8) ? "SSND" : "BODY"};
  if (head.is("riff"))
    return Container{.first = 40, .name = 16, .width = 8, .counted = 24, .step = 8};
  if (head.is("caff")) return Container{.is_big = true, .first = 8, .width = 8, .step = 1};
  return std::nullopt;
}

constexpr std::uint64_t kMost = std::uint64_t{1} << 62;  // of a size, so that sums do not overflow

std::uint64_t size_of(const Head& chunk, const Container& c) {
  const std::uint64_t size = chunk.number(c.name, c.width, c.is_big);
  return std::min(size - std::min(size, c.counted), kMost);
}

std::uint64_t behind(std::uint64_t end, const Container& c) {
  return (end + c.step - 1) / c.step * c.step;
}

std::optional<Chunk> find_chunk(const ReadAt& read, const Container& c, std::string_view name) {
  std::uint64_t at = c.first;
  for (int i = 0; i < kMostChunks && at < kMost; ++i) {
    const Head chunk(read, at);
    if (chunk.count < c.head()) break;
    const std::uint64_t size = size_of(chunk, c);
    if (chunk.is(name)) return Chunk{at + c.head(), size};
    at = behind(at + c.head() + size, c);
  }
  return std::nullopt;
}

// Finds the bytes of the samples by the header.
std::optional<Chunk> samples_of(const ReadAt& read, const Head& head) {
  if (auto samples = au_samples(head)) return samples;
  if (auto samples = nist_samples(read, head)) return samples;
  if (const auto voc = voc_blocks(read)) return Chunk{voc->begin, voc->end - voc->begin};
  const auto c = container(head);
  auto out = c ? find_chunk(read, *c, c->samples) : std::nullopt;
  const bool is_long = head.is("RF64") || head.is("BW64");
  if (out && is_long && out->size == kOpen)
    out->size = head.is("ds64", 12) ? head.number(28, 8, false) : 0;
  return out;
}

// Whether it is a size as SoX and others write to a pipe, where they never know it: the largest of
// 31 bits, or little less. A file of that size is there as a whole.
bool is_placeholder(std::uint64_t size) { return size > 0x7FFE0000 && size < 0x80001000; }

bool is_open(std::uint64_t size) { return size == 0 || size == kOpen || size >= kMost; }

// Whether the bytes are zeros that fill the last sector.
bool are_few_zeros(const ReadAt& read, std::uint64_t from, std::uint64_t to) {
  std::array<std::byte, 4096> bytes;
  if (to - from > bytes.size()) return false;
  const auto there = std::span(bytes).first(to - from);
  if (read(from, there) < there.size()) return false;
  return std::all_of(there.begin(), there.end(), [](std::byte b) { return b == std::byte{}; });
}

// Returns the first of the bytes [at, size) that does not belong to a chunk, or to tags or padding
// at the end; `size` if there is none. A second chunk of samples, or another file, is no chunk.
std::uint64_t unexplained(const ReadAt& read, std::uint64_t at, std::uint64_t size,
                          const std::optional<Container>& c) {
  for (int i = 0; at < size; ++i) {
    if (are_few_zeros(read, at, size) || are_tags(read, at, size)) break;
    if (!c || i == kMostChunks) return at;
    const Head chunk(read, at);
    if (chunk.count < c->head() || chunk.is(c->samples) || !is_chunk_name(chunk.bytes) ||
        container(chunk))
      return at;
    const std::uint64_t end = at + c->head() + size_of(chunk, *c);
    if (end > size) return at;
    at = behind(end, *c);
  }
  return size;
}

// Checks the bytes after the samples and their padding, which some writers omit.
std::uint64_t unexplained_behind(const ReadAt& read, const Chunk& samples, std::uint64_t size,
                                 const std::optional<Container>& c) {
  const std::uint64_t end = samples.at + samples.size;
  const std::uint64_t padded = c ? behind(end, *c) : end;
  return unexplained(read, are_few_zeros(read, end, padded) ? padded : end, size, c);
}

}  // namespace

bool is_header_unfinished(const ReadAt& read, std::uint64_t size) {
  const Head head(read, 0);
  if (head.count < 12) return false;
  const bool big = head.is("FORM") || head.is("RIFX");
  if ((big || head.is("RIFF")) && head.number(4, 4, big) == 0) return true;
  const auto samples = samples_of(read, head);
  return samples && samples->size == 0 &&
         unexplained_behind(read, *samples, size, container(head)) < size;
}

std::optional<std::uint64_t> stated_size(const ReadAt& read) {
  return chunks_promise(Head(read, 0));
}

std::optional<std::uint64_t> samples_size(const ReadAt& read) {
  const auto samples = samples_of(read, Head(read, 0));
  return samples && !is_open(samples->size) ? std::optional(samples->size) : std::nullopt;
}

// Format 0xFFFE has a GUID that begins with the real format's number.
FrameSize wrong_frame_size(const ReadAt& read) {
  const Head head(read, 0);
  const auto c = container(head);
  const bool is_wave = head.is("WAVE", 8) || head.is("wave", 24);
  const auto chunk = c && is_wave ? find_chunk(read, *c, "fmt ") : std::nullopt;
  if (!chunk || chunk->size < 16) return {};
  const Head format_chunk(read, chunk->at);
  if (format_chunk.count < 16) return {};
  const auto number = [&](std::size_t at) { return format_chunk.number(at, 2, c->is_big); };
  std::uint64_t format = number(0);
  if (format == 0xFFFE && chunk->size >= 40 && format_chunk.count >= 26) format = number(24);
  constexpr std::uint64_t kPcm = 1, kFloat = 3;
  const std::uint64_t channels = number(2), step = number(12), bits = number(14);
  const std::uint64_t expected = channels * ((bits + 7) / 8);
  if ((format != kPcm && format != kFloat) || expected == 0 || step == expected) return {};
  return {
      fmt::format("its header says {} bytes a frame (block align), and {} channel{} of {} bits, "
                  "which are {}",
                  step, channels, channels == 1 ? "" : "s", bits, expected),
      step == 0};
}

Damage cut_off(const ReadAt& read, std::uint64_t size) {
  const auto share = [](std::uint64_t lost, std::uint64_t all) {
    return all > 0 ? static_cast<double>(lost) / static_cast<double>(all) : 0.0;
  };
  const Head head(read, 0);
  const auto c = container(head);
  const auto samples = samples_of(read, head);
  auto promise = chunks_promise(head);
  if (!promise) promise = asf_promise(read, head);
  if (!c && samples && !is_open(samples->size)) promise = samples->at + samples->size;
  const bool is_counted = samples && !is_open(samples->size);
  const std::uint64_t there =
      samples ? std::min(samples->size, size - std::min(size, samples->at)) : 0;
  // Some writers count a padding byte that they do not write.
  if (promise && *promise > size + 1)
    return {fmt::format("short: the header promises {} bytes, the file has {}", *promise, size),
            is_placeholder(*promise) ? 0
            : is_counted             ? share(samples->size - there, samples->size)
                                     : share(*promise - size, *promise)};
  if (!is_counted) return {};
  if (there < samples->size)
    return {fmt::format("short: the header promises {} bytes of samples, the file has {}",
                        samples->size, there),
            is_placeholder(samples->size) ? 0 : share(samples->size - there, samples->size)};
  const std::uint64_t from = unexplained_behind(read, *samples, size, c);
  if (from == size) {
    const auto voc = voc_blocks(read);
    return voc && voc->count > 1 && !voc->has_end
               ? Damage{"short: ends without its last block, and nothing says how many there were"}
               : Damage{};
  }
  // What is not decoded counts as sound.
  const double lost = share(size - from, size - from + samples->size);
  if (c && Head(read, from).is(c->samples))
    return {"holds a second chunk of samples, and only one of the two is decoded", lost};
  // For example a size of 32 bits in a longer file.
  if (promise && from >= *promise)
    return {fmt::format("the header gives {} bytes, the {} after them are ignored", *promise,
                        size - from),
            lost};
  return {fmt::format("the header counts {} bytes of samples, {} bytes behind them are no chunks "
                      "of the format and are ignored",
                      samples->size, size - from),
          lost};
}

Damage damage_of(const EndedRecording& recording, const SampleReader& reader, const ReadAt& bytes,
                 std::uint64_t size) {
  const SF_INFO& info = recording.info;
  const auto seconds = [&info](std::int64_t frames) {
    return static_cast<double>(frames) / info.samplerate;
  };
  const std::int64_t decoded = reader.count();
  // MP3 encoders differ in whether they count the frame that holds the count. A frame of a low rate
  // is half as long.
  const bool is_mp3 = (info.format & SF_FORMAT_TYPEMASK) == SF_FORMAT_MPEG;
  const std::int64_t slack = !is_mp3 ? 0 : info.samplerate < 32000 ? 2 * 576 : 2 * 1152;
  const bool is_short =
      recording.is_over && recording.is_count_known && decoded + slack < info.frames;
  const auto fault = reader.fault();
  Damage out;
  if (fault) {
    out.remark = fmt::format("{} after {:.3f} s: {}", fault->is_change ? "changes" : "damaged",
                             seconds(fault->after), fault->what);
    if (is_short && !fault->is_change)
      out.remark +=
          fmt::format(", {} of {} samples are missing", info.frames - decoded, info.frames);
  } else if (recording.is_over) {
    out = ogg_damage(bytes, size, decoded, info.samplerate);
    if (out.remark.empty() && is_short)
      out.remark =
          fmt::format("short: the header promises {} samples ({:.3f} s), there are {} ({:.3f} s)",
                      info.frames, seconds(info.frames), decoded, seconds(decoded));
  }
  if (recording.is_over && out.lost == 0) {
    Damage cut = cut_off(bytes, size);
    // That remark counts in bytes; the message adds the duration.
    if (cut.remark.starts_with("short: "))
      cut.remark += fmt::format("; {} samples ({:.3f} s) are there", decoded, seconds(decoded));
    if (out.remark.empty()) out.remark = std::move(cut.remark);
    out.lost = cut.lost;
  }
  if (out.remark.empty()) out.remark = wrong_frame_size(bytes).remark;
  // MP3 that was joined from several has the count of its first part.
  if (out.remark.empty() && recording.is_over && recording.is_count_known && !is_mp3 &&
      decoded > info.frames)
    out.remark = fmt::format(
        "longer: the header counts {} samples ({:.3f} s), there are {} ({:.3f} s), and all are "
        "used",
        info.frames, seconds(info.frames), decoded, seconds(decoded));
  const auto good = static_cast<double>(decoded - (fault ? fault->silent : 0));
  double whole = static_cast<double>(decoded + (fault ? fault->missing : 0));
  if (is_short) whole = std::max(whole, static_cast<double>(info.frames));
  if (out.lost < 1) whole = std::max(whole, good / (1 - out.lost));
  whole = std::min(whole, static_cast<double>(recording.wanted));
  out.lost = whole > good ? 1 - good / whole : 0;
  return out;
}

}  // namespace melflow
