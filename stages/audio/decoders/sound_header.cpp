#include "stages/audio/decoders/sound_header.h"

#include <strings.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include <fmt/format.h>

namespace melflow {
namespace {

using Bytes = std::span<const std::byte>;

bool starts_with(Bytes bytes, std::string_view text, std::size_t at = 0) {
  return bytes.size() >= at + text.size() &&
         std::memcmp(bytes.data() + at, text.data(), text.size()) == 0;
}

unsigned number(Bytes bytes, std::size_t at) { return std::to_integer<unsigned>(bytes[at]); }

template <std::size_t N>
Bytes read_into(std::array<std::byte, N>& buffer, const ReadAt& read, std::uint64_t at = 0) {
  return Bytes(buffer).first(read(at, buffer));
}

// Whether the bytes can be the header of an MPEG audio frame (ISO 11172-3, 2.4.1.3).
bool is_mp3_frame(Bytes bytes) {
  if (bytes.size() < 3 || number(bytes, 0) != 0xFF) return false;
  const unsigned second = number(bytes, 1), third = number(bytes, 2);
  return (second & 0xE0U) == 0xE0U && (second & 0x18U) != 0x08U && (second & 0x06U) != 0 &&
         (third & 0xF0U) != 0xF0U && (third & 0x0CU) != 0x0CU;
}

std::uint32_t little_endian(Bytes bytes, std::size_t at, std::size_t count) {
  std::uint32_t out = 0;
  for (std::size_t i = 0; i < count; ++i) out |= number(bytes, at + i) << (8 * i);
  return out;
}

constexpr int kMostTags = 64;

// Returns the size of the ID3v2 tag that begins with `head`; 0 if there is none.
std::uint64_t id3_size(Bytes head) {
  if (!starts_with(head, "ID3") || head.size() < 10) return 0;
  // Four times seven bits; ten bytes of header and perhaps of footer (id3.org, ID3v2.4.0, 3.1).
  std::uint64_t out = (number(head, 5) & 0x10U) != 0 ? 20 : 10;
  for (std::size_t k = 0; k < 4; ++k)
    out += std::uint64_t{number(head, 6 + k) & 0x7FU} << (21 - 7 * k);
  return out;
}

// Returns the end of the tags that begin at `at`, of the kinds whose size `size_of` knows.
std::uint64_t behind_tags(const ReadAt& read, std::uint64_t at, std::uint64_t (*size_of)(Bytes)) {
  std::array<std::byte, 32> buffer;
  for (int i = 0; i < kMostTags; ++i) {
    const std::uint64_t size = size_of(read_into(buffer, read, at));
    if (size == 0) break;
    at += size;
  }
  return at;
}

// Returns the size of any tag that may follow frames. ID3v1 has 128 bytes; APE states a size
// without its header of 32 bytes, and flags for whether it has one (wiki.hydrogenaud.io, APE Tags
// Header).
std::uint64_t tag_size(Bytes head) {
  if (starts_with(head, "TAG")) return 128;
  if (!starts_with(head, "APETAGEX") || head.size() < 32) return id3_size(head);
  const bool is_header = (number(head, 23) & 0x20U) != 0;
  return is_header ? std::uint64_t{little_endian(head, 12, 4)} + 32 : 32;
}

// Parses RIFF, then chunks of a name, a size and that many bytes, padded to even (Microsoft and
// IBM, Multimedia Programming Interface and Data Specifications 1.0, 1991). Format 0xFFFE has a
// GUID that begins with the real format's number (Microsoft, Multiple channel audio data and WAVE
// files). `bytes(at, buffer)` reads as much of the file as there is.
template <class ReadBytes>
std::optional<PlainSamples> find_plain(const ReadBytes& bytes, std::uint64_t file_size) {
  std::array<std::byte, 12> riff;
  if (bytes(0, riff) < riff.size() || !starts_with(riff, "RIFF") || !starts_with(riff, "WAVE", 8))
    return std::nullopt;
  if (std::uint64_t{little_endian(riff, 4, 4)} + 8 != file_size) return std::nullopt;
  PlainSamples out;
  std::uint64_t at = riff.size();
  while (at + 8 <= file_size) {
    std::array<std::byte, 8> head;
    if (bytes(at, head) < head.size() || !is_chunk_name(head)) return std::nullopt;
    const std::uint64_t size = little_endian(head, 4, 4), body = at + 8;
    if (size > file_size - body) return std::nullopt;
    if (starts_with(head, "fmt ")) {
      if (size < 16 || out.sample_rate != 0) return std::nullopt;
      std::array<std::byte, 28> fmt;
      if (bytes(body, std::span(fmt).first(std::min<std::uint64_t>(size, fmt.size()))) <
          std::min<std::uint64_t>(size, fmt.size()))
        return std::nullopt;
      std::uint32_t format = little_endian(fmt, 0, 2);
      if (format == 0xFFFE && size >= 40 && little_endian(fmt, 18, 2) == 16)
        format = little_endian(fmt, 24, 4);
      const std::uint32_t channels = little_endian(fmt, 2, 2);
      const std::uint32_t rate = little_endian(fmt, 4, 4);
      const std::uint32_t step = little_endian(fmt, 12, 2);
      const std::uint32_t bits = little_endian(fmt, 14, 2);
      if (format != 1 || channels != 1 || step != 2 || bits != 16) return std::nullopt;
      if (rate == 0 || rate > 0x7FFFFFFFU) return std::nullopt;
      out.sample_rate = static_cast<int>(rate);
    } else if (starts_with(head, "data")) {
      if (out.sample_rate == 0 || out.count > 0 || size == 0 || size % 2 != 0) return std::nullopt;
      out.offset = body;
      out.count = static_cast<std::int64_t>(size / 2);
    }
    at = body + size + size % 2;
  }
  // The bytes after the samples are chunks, too, or the size of the samples is wrong.
  return out.count > 0 && at >= file_size ? std::optional(out) : std::nullopt;
}

// Returns the bytes of a frame of MPEG audio (ISO 11172-3, 2.4.3.1, and 13818-3); 0 if its bit rate
// is free. Its header must be valid.
std::uint64_t mp3_frame_size(Bytes head) {
  // [kbit/s] for MPEG 1, layers I to III, and for MPEG 2 and 2.5, layer I, then II and III.
  constexpr std::array<std::array<std::uint16_t, 15>, 5> kRates{
      {{0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448},
       {0, 32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384},
       {0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320},
       {0, 32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256},
       {0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160}}};
  constexpr std::array<unsigned, 3> kHertz{44100, 48000, 32000};
  const unsigned version = number(head, 1) >> 3 & 3U, layer = 4 - (number(head, 1) >> 1 & 3U);
  const bool is_first = version == 3;
  const unsigned hertz = kHertz[number(head, 2) >> 2 & 3U] >> (is_first ? 0 : version == 2 ? 1 : 2);
  const unsigned row = is_first ? layer - 1 : layer == 1 ? 3 : 4;
  const unsigned bits = 1000U * kRates[row][number(head, 2) >> 4],
                 padding = number(head, 2) >> 1 & 1U;
  if (bits == 0) return 0;
  if (layer == 1) return 4 * (12 * bits / hertz + padding);
  return (layer == 3 && !is_first ? 72 : 144) * bits / hertz + padding;
}

// Whether `count` MPEG audio frames, or all that are left, follow each other from `at` on.
bool are_mp3_frames(const ReadAt& read, std::uint64_t at, int count) {
  std::array<std::byte, 4> first{}, next{};
  for (int i = 0; i < count; ++i) {
    const Bytes head = read_into(next, read, at);
    if (head.empty() && i > 1) return true;
    if (head.size() < next.size() || !is_mp3_frame(head)) return false;
    if (i == 0) first = next;
    // Frames of one recording share version, layer and sample rate.
    const std::uint64_t size = mp3_frame_size(head);
    constexpr std::byte kVersionAndLayer{0xFE}, kRate{0x0C};
    if (((next[1] ^ first[1]) & kVersionAndLayer) != std::byte{} ||
        ((next[2] ^ first[2]) & kRate) != std::byte{} || size == 0)
      return false;
    at += size;
  }
  return true;
}

// Returns where MPEG audio frames begin, at or soon after `at`, enough in a row that they cannot be
// other bytes by chance; nullopt if there are none.
std::optional<std::uint64_t> first_mp3_frames(const ReadAt& read, std::uint64_t at) {
  constexpr std::uint64_t kSoon = 1 << 20;
  constexpr int kEnough = 4;
  std::array<std::byte, 4096> buffer;
  for (const std::uint64_t end = at + kSoon; at < end; at += buffer.size() - 3) {
    const Bytes piece = read_into(buffer, read, at);
    for (std::size_t i = 0; i + 3 < piece.size(); ++i)
      if (is_mp3_frame(piece.subspan(i)) && are_mp3_frames(read, at + i, kEnough)) return at + i;
    if (piece.size() < buffer.size()) break;
  }
  return std::nullopt;
}

}  // namespace

bool is_chunk_name(Bytes head) {
  return std::all_of(head.begin(), head.begin() + 4,
                     [](std::byte b) { return b >= std::byte{0x20} && b <= std::byte{0x7E}; });
}

bool has_plain_samples(std::string_view path) {
  const std::size_t dot = path.rfind('.');
  if (dot == path.npos) return false;
  const std::string_view ending = path.substr(dot + 1);
  constexpr std::array names{"wav", "aif", "aiff", "au", "snd", "w64", "rf64", "bw64", "raw"};
  return std::any_of(names.begin(), names.end(), [ending](const char* name) {
    return ending.size() == std::strlen(name) &&
           strncasecmp(ending.data(), name, ending.size()) == 0;
  });
}

std::optional<PlainSamples> plain_samples(std::span<const std::byte> file) {
  return find_plain(
      [file](std::uint64_t at, std::span<std::byte> out) {
        const auto n = std::min<std::uint64_t>(
            out.size(), file.size() - std::min<std::uint64_t>(at, file.size()));
        std::memcpy(out.data(), file.data() + (n > 0 ? at : 0), n);
        return n;
      },
      file.size());
}

std::optional<PlainSamples> plain_samples(const ReadAt& read, std::uint64_t size) {
  return find_plain(read, size);
}

SoundKind sound_kind(const ReadAt& read) {
  SoundKind out;
  out.begin = behind_tags(read, 0, id3_size);
  std::array<std::byte, 40> buffer;
  const Bytes head = read_into(buffer, read, out.begin);
  struct Magic {
    std::string_view bytes, name;
    std::size_t at = 0;
  };
  constexpr std::array magics{Magic{"RIFF", "WAV"},
                              Magic{"RIFX", "WAV"},
                              Magic{"RF64", "WAV"},
                              Magic{"BW64", "WAV"},
                              Magic{"FORM", "AIFF"},
                              Magic{"fLaC", "FLAC"},
                              Magic{"OggS", "Ogg"},
                              Magic{"caff", "CAF"},
                              Magic{".snd", "AU"},
                              Magic{"dns.", "AU"},
                              Magic{"riff", "W64"},
                              Magic{"NIST_1A", "NIST"},
                              Magic{"Creative Voice File\x1A", "VOC"},
                              Magic{"ftyp", "MP4", 4},
                              Magic{"\x1A\x45\xDF\xA3", "WebM"},
                              Magic{"\x30\x26\xB2\x75\x8E\x66\xCF\x11", "WMA"},
                              Magic{"#!AMR", "AMR"}};
  for (const Magic& m : magics)
    if (starts_with(head, m.bytes, m.at)) out.name = m.name;
  const bool is_nameless = out.name.empty();
  // A WAV may contain MP3 (format 0x55) or MP2 (0x50).
  const bool is_in_wav = out.name == "WAV" && starts_with(head, "fmt ", 12) && head.size() > 21 &&
                         (little_endian(head, 20, 2) == 0x55 || little_endian(head, 20, 2) == 0x50);
  if ((is_nameless && !are_mp3_frames(read, out.begin, 2)) || is_in_wav) {
    if (const auto frames = first_mp3_frames(read, out.begin)) {
      if (!is_in_wav)
        out.junk = *frames - std::min(*frames, behind_tags(read, out.begin, tag_size));
      out.begin = *frames;
      out.name = "MP3";
    }
  }
  if (is_nameless && (out.begin > 0 || starts_with(head, "ID3") || is_mp3_frame(head)))
    out.name = "MP3";
  out.is_bw64 = out.begin == 0 && starts_with(head, "BW64");
  constexpr std::size_t kFirst = 28;  // first content byte of a page with one segment
  out.is_ogg_flac = out.name == "Ogg" && starts_with(head, "\177FLAC", kFirst);
  out.is_opus = out.name == "Ogg" && starts_with(head, "OpusHead", kFirst);
  return out;
}

bool is_left_to_ffmpeg(std::string_view kind) {
  return kind == "MP4" || kind == "WebM" || kind == "WMA" || kind == "AMR";
}

std::string why_not_sound(const ReadAt& read, const std::string& reason) {
  const std::string_view kind = sound_kind(read).name;
  if (is_left_to_ffmpeg(kind) && reason.empty())
    return fmt::format(
        "is {}, which is decoded only by FFmpeg's libraries (Debian: libavformat59) and a melflow "
        "built with their headers; install them, or convert the file, for example to FLAC",
        kind == "MP4" ? "MP4 or M4A" : kind);
  if (kind.empty()) {
    std::array<std::byte, 40> buffer;
    const Bytes head = read_into(buffer, read, 0);
    const std::string_view begin(reinterpret_cast<const char*>(head.data()), head.size());
    const std::string_view line = begin.substr(0, begin.find_first_of("\r\n"));
    const bool is_text = line.size() >= 4 && std::all_of(begin.begin(), begin.end(), [](char c) {
                           return (c >= ' ' && c < 0x7F) || c == '\n' || c == '\r' || c == '\t';
                         });
    if (is_text) return fmt::format("is not an audio file (begins with '{}')", line);
    return "is not a sound file, or of a kind that cannot be decoded";
  }
  if (!reason.empty()) return fmt::format("begins like {} but cannot be decoded: {}", kind, reason);
  return fmt::format(
      "begins like {} but cannot be decoded: damaged, cut off, or of a variant that "
      "is not supported",
      kind);
}

bool are_tags(const ReadAt& read, std::uint64_t from, std::uint64_t to) {
  std::array<std::byte, 32> buffer;
  for (int i = 0; i < kMostTags && from < to; ++i) {
    const std::uint64_t size = tag_size(read_into(buffer, read, from));
    if (size == 0) return false;
    from += size;
  }
  return from == to;
}

bool is_mp3_without_count(const ReadAt& read, std::uint64_t begin) {
  std::array<std::byte, 2048> buffer;  // the longest first frame has 1441 bytes
  const Bytes head = read_into(buffer, read, begin);
  if (!is_mp3_frame(head)) return false;
  const std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
  for (const char* name : {"Xing", "Info"}) {
    const std::size_t at = text.find(name);
    if (at != text.npos && at + 8 <= text.size()) return (number(head, at + 7) & 1U) == 0;
  }
  return text.find("VBRI") == text.npos;
}

std::uint64_t mp3_frame_size(const ReadAt& read, std::uint64_t at) {
  std::array<std::byte, 4> buffer;
  const Bytes head = read_into(buffer, read, at);
  return head.size() == buffer.size() && is_mp3_frame(head) ? mp3_frame_size(head) : 0;
}

bool is_mp3_without_begin(const ReadAt& read, std::uint64_t begin) {
  std::array<std::byte, 8> buffer;
  const Bytes head = read_into(buffer, read, begin);
  const bool is_layer_3 =
      head.size() == buffer.size() && is_mp3_frame(head) && (number(head, 1) & 0x06U) == 0x02U;
  if (!is_layer_3) return false;
  const std::size_t side = (number(head, 1) & 1U) != 0 ? 4 : 6;  // a checksum may precede it
  const bool is_first_version = (number(head, 1) & 0x18U) == 0x18U;
  return number(head, side) != 0 || (is_first_version && (number(head, side + 1) & 0x80U) != 0);
}

}  // namespace melflow
