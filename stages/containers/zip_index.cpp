#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "pipeline/base/problem.h"
#include "stages/containers/archive_index.h"

namespace melflow {
namespace {

constexpr std::uint32_t kLocal = 0x04034b50, kEntry = 0x02014b50, kEnd = 0x06054b50,
                        kEnd64 = 0x06064b50, kLocator64 = 0x07064b50;
constexpr std::size_t kLocalSize = 30, kEntrySize = 46, kEndSize = 22, kMostComment = 65535;
constexpr std::uint32_t kElsewhere = 0xffffffff;  // the number is in the Zip64 field

template <class Number>
Number read_number(const unsigned char* bytes) {
  std::uint64_t out = 0;
  for (std::size_t i = 0; i < sizeof(Number); ++i) out |= std::uint64_t{bytes[i]} << 8 * i;
  return static_cast<Number>(out);
}
std::uint16_t u16(std::span<const unsigned char> b, std::size_t at) {
  return read_number<std::uint16_t>(b.data() + at);
}
std::uint32_t u32(std::span<const unsigned char> b, std::size_t at) {
  return read_number<std::uint32_t>(b.data() + at);
}
std::uint64_t u64(std::span<const unsigned char> b, std::size_t at) {
  return read_number<std::uint64_t>(b.data() + at);
}

// Takes the numbers that are too large for their fields from the Zip64 field, in their order.
bool take_zip64(std::span<const unsigned char> extra,
                std::initializer_list<std::uint64_t*> numbers) {
  const bool is_needed = std::any_of(numbers.begin(), numbers.end(),
                                     [](const std::uint64_t* n) { return *n == kElsewhere; });
  if (!is_needed) return true;
  while (extra.size() >= 4) {
    const std::size_t size = u16(extra, 2);
    if (size > extra.size() - 4) return false;
    if (u16(extra, 0) == 1) {
      std::span<const unsigned char> field = extra.subspan(4, size);
      for (std::uint64_t* n : numbers) {
        if (*n != kElsewhere) continue;
        if (field.size() < 8) return false;
        *n = u64(field, 0);
        field = field.subspan(8);
      }
      return true;
    }
    extra = extra.subspan(4 + size);
  }
  return false;
}

// The path of a member: programs of MS-DOS and Windows may write '\\' between folders. `host`: the
// high byte of "version made by", or of "version needed" in a member's own header. In a name that
// is not marked as UTF-8, '\\' may be the second byte of a letter, as in Shift JIS.
std::string path_of(std::string_view name, std::uint8_t host, std::uint16_t flags) {
  constexpr std::uint8_t kMsDos = 0;
  constexpr std::uint16_t kIsUtf8 = 0x800;
  std::string out(name);
  if (host != kMsDos || name.find('/') != name.npos) return out;
  for (std::size_t i = 0; i < name.size(); ++i)
    if (name[i] == '\\' &&
        ((flags & kIsUtf8) != 0 || i == 0 || static_cast<unsigned char>(name[i - 1]) < 0x80))
      out[i] = '/';
  return out;
}

// Why the bytes of a member cannot be had; "" if they can.
std::string problem_of(std::uint16_t flags, std::uint16_t method, std::uint64_t stored,
                       std::uint64_t size, const std::string& archive) {
  if ((flags & 1) != 0) return "is encrypted";
  if (method != 0 && method != 8)
    return fmt::format(
        "is compressed by method {}; stored and deflated members (0 and 8) can be read", method);
  // Deflate makes at most 1032 bytes of one.
  if (method == 0 ? size != stored
                  : stored == 0 || size / 1032 > stored || stored > size + size / 1000 + 64)
    return damaged_header(archive);
  return "";
}

}  // namespace

std::optional<ZipIndex::Directory> ZipIndex::find_directory() {
  const std::uint64_t size = bytes_.size();
  const std::uint64_t tail = size - std::min<std::uint64_t>(size, kEndSize + kMostComment);
  const auto last = bytes_.at(tail, kEndSize + kMostComment);
  if (last.size() < kEndSize) return std::nullopt;
  std::size_t at = last.size() - kEndSize + 1;
  while (at > 0 &&
         (u32(last, at - 1) != kEnd || at - 1 + kEndSize + u16(last, at - 1 + 20) > last.size()))
    --at;
  if (at == 0) return std::nullopt;
  const std::uint64_t end = tail + --at;
  Directory out{u32(last, at + 16), u32(last, at + 12), 0};
  if (u16(last, at + 4) != u16(last, at + 6) && u16(last, at + 4) != 0xffff)
    throw RunError(archive_.path() +
                   ": is one part of a zip archive in several files; join them (zip -s 0)");
  std::uint64_t behind = end;
  if (end >= 20) {
    const auto locator = bytes_.at(end - 20, 20);
    if (locator.size() == 20 && u32(locator, 0) == kLocator64) {
      const std::uint64_t where = u64(locator, 8);
      const auto end64 = bytes_.at(where, 56);
      if (end64.size() == 56 && u32(end64, 0) == kEnd64) {
        out = {u64(end64, 48), u64(end64, 40), 0};
        behind = where;
      }
    }
  }
  // Bytes before the archive, as of a program that unpacks itself, shift all positions.
  if (out.size > behind || out.begin > behind - out.size) return std::nullopt;
  out.shift = behind - out.size - out.begin;
  return out;
}

bool ZipIndex::read_directory(const Directory& directory) {
  std::uint64_t at = directory.begin + directory.shift;
  const std::uint64_t end = at + directory.size;
  ArchiveBytes headers(bytes_);  // with a window of its own
  // Not by the number of entries, which many programs write modulo 65536.
  while (at < end) {
    constexpr std::size_t kLongest = kEntrySize + 2 * 65535;  // without its comment
    const auto entry = bytes_.at(at, kLongest);
    if (entry.size() < kEntrySize || u32(entry, 0) != kEntry) return false;
    const std::size_t name = u16(entry, 28), extra = u16(entry, 30), comment = u16(entry, 32);
    if (kEntrySize + name + extra > entry.size()) return false;
    std::uint64_t stored = u32(entry, 20), size = u32(entry, 24), header = u32(entry, 42);
    const bool is_whole =
        take_zip64(entry.subspan(kEntrySize + name, extra), {&size, &stored, &header});
    const std::uint16_t flags = u16(entry, 8), method = u16(entry, 10);
    std::string problem = is_whole ? problem_of(flags, method, stored, size, archive_.path())
                                   : damaged_header(archive_.path());
    if (problem.empty() && (header + directory.shift > bytes_.size() || stored > bytes_.size()))
      problem = "is cut off: the archive ends in it" + cure_of_archive(archive_.path());
    const std::string_view text(reinterpret_cast<const char*>(entry.data()) + kEntrySize, name);
    // Nothing but the second copy of a name shows that one of them is damaged.
    const std::uint64_t begin = header + directory.shift;
    const auto local =
        problem.empty() ? headers.at(begin, kLocalSize + name) : std::span<const unsigned char>();
    if (problem.empty() &&
        (local.size() < kLocalSize + name || u32(local, 0) != kLocal || u16(local, 26) != name ||
         std::memcmp(text.data(), local.data() + kLocalSize, name) != 0)) {
      archive_.add_damage(begin, begin + kLocalSize + name);
      problem = damaged_header(archive_.path());
    }
    const bool is_usable = problem.empty();
    if (const std::string path = path_of(text, entry[5], flags); !path.ends_with('/'))
      archive_.add(path,
                   {.begin = is_usable ? begin + kLocalSize + name + u16(local, 28) : begin,
                    .stored = stored,
                    .size = is_usable ? size : 0,
                    .crc = u32(entry, 16),
                    .is_deflated = method == 8 ? 1U : 0U},
                   std::move(problem));
    at += kEntrySize + name + extra + comment;
  }
  return at == end;
}

// Bytes that look like a header may claim any name, so that short stretches of an archive would
// give long names again and again.
constexpr std::size_t kLongestName = 4096;

// Without a directory, the headers in front of the members are all that is known.
void ZipIndex::search_headers() {
  constexpr std::size_t kStep = 1 << 19;
  bool is_found = false;
  std::uint64_t lost_from = 0;
  for (std::uint64_t at = 0; at < bytes_.size();) {
    const auto window = bytes_.at(at, kStep);
    if (window.empty()) break;  // it has become shorter
    std::size_t next = 0;
    while (next + 4 <= window.size() && u32(window, next) != kLocal) ++next;
    if (next + 4 > window.size()) {
      at += window.size() < kStep ? window.size() : kStep - 3;
      continue;
    }
    at += next;
    const auto header = bytes_.at(at, kLocalSize + 2 * 65535);
    if (header.size() < kLocalSize) break;
    const std::size_t name = u16(header, 26), extra = u16(header, 28);
    std::uint64_t stored = u32(header, 18), size = u32(header, 22);
    const bool is_whole =
        kLocalSize + name + extra <= header.size() && name > 0 && name <= kLongestName;
    if (!is_whole) {
      at += 4;
      continue;
    }
    if (at > lost_from) archive_.add_damage(lost_from, at);
    const std::uint16_t flags = u16(header, 6), method = u16(header, 8);
    std::string problem;
    if (!take_zip64(header.subspan(kLocalSize + name, extra), {&size, &stored}))
      problem = damaged_header(archive_.path());
    else if ((flags & 8) != 0 && stored == 0)
      problem = "its size was in the archive's directory, which is damaged" +
                cure_of_archive(archive_.path());
    else
      problem = problem_of(flags, method, stored, size, archive_.path());
    const std::uint64_t data = at + kLocalSize + name + extra;
    if (problem.empty() && (stored > bytes_.size() || data > bytes_.size() - stored))
      problem = "is cut off: the archive ends in it" + cure_of_archive(archive_.path());
    const std::string_view text(reinterpret_cast<const char*>(header.data()) + kLocalSize, name);
    const bool is_usable = problem.empty();
    if (const std::string path = path_of(text, header[5], flags); !path.ends_with('/'))
      archive_.add(path,
                   {.begin = data,
                    .stored = stored,
                    .size = is_usable ? size : 0,
                    .crc = u32(header, 14),
                    .is_deflated = method == 8 ? 1U : 0U},
                   std::move(problem));
    is_found = true;
    at = is_usable ? data + stored : at + kLocalSize + name;
    lost_from = at;
  }
  if (!is_found) bytes_.refuse("a zip archive");
  archive_.remarks_.push_back(
      archive_.path() +
      ": its directory is damaged; its members were searched for, and some may be missing" +
      cure_of_archive(archive_.path()));
}

void ZipIndex::read() {
  const std::optional<Directory> directory = find_directory();
  if (directory && read_directory(*directory)) return;
  archive_.members_.clear();
  archive_.names_.clear();
  search_headers();
}

}  // namespace melflow
