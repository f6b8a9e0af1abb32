#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "pipeline/base/problem.h"
#include "stages/containers/archive_index.h"
#include "stages/files/mapped_range.h"
#include "stages/files/packing.h"

namespace melflow {
namespace {

constexpr std::size_t kBlock = 512;
constexpr std::uint64_t kLongestText = 1 << 16;  // of a name or of the records of a pax header
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 62;

std::string_view field(std::span<const unsigned char> header, std::size_t at, std::size_t size) {
  const std::string_view whole(reinterpret_cast<const char*>(header.data()) + at, size);
  return whole.substr(0, whole.find('\0'));
}

// A number in octal digits, or (GNU) in bytes behind a byte of 0x80.
std::optional<std::uint64_t> number(std::span<const unsigned char> header, std::size_t at,
                                    std::size_t size) {
  std::uint64_t out = 0;
  if (header[at] == 0x80) {
    for (std::size_t i = at + 1; i < at + size; ++i) {
      if (out >= kMostBytes >> 8) return std::nullopt;
      out = out << 8 | header[i];
    }
    return out;
  }
  std::size_t i = at;
  while (i < at + size && header[i] == ' ') ++i;
  for (; i < at + size && header[i] >= '0' && header[i] <= '7'; ++i)
    out = out * 8 + header[i] - '0';
  const bool is_end = i == at + size || header[i] == ' ' || header[i] == '\0';
  return is_end ? std::optional(out) : std::nullopt;
}

// Whether the block is a header, by its checksum; early programs summed signed bytes.
bool is_header(std::span<const unsigned char> block) {
  if (block.size() < kBlock) return false;
  const auto wanted = number(block, 148, 8);
  if (!wanted) return false;
  std::uint64_t sum = 0;
  std::int64_t with_signs = 0;
  for (std::size_t i = 0; i < kBlock; ++i) {
    const unsigned char byte = i >= 148 && i < 156 ? ' ' : block[i];
    sum += byte;
    with_signs += static_cast<signed char>(byte);
  }
  return sum == *wanted || with_signs == static_cast<std::int64_t>(*wanted);
}

bool is_zero(std::span<const unsigned char> block) {
  return std::all_of(block.begin(), block.end(), [](unsigned char c) { return c == 0; });
}

std::uint64_t padded(std::uint64_t size) { return (size + kBlock - 1) / kBlock * kBlock; }

// The member that a symbolic link in `name`'s folder leads to.
std::string beside(std::string_view name, std::string_view to) {
  std::vector<std::string_view> parts;
  const auto add = [&parts](std::string_view path) {
    while (!path.empty()) {
      const std::string_view part = path.substr(0, path.find('/'));
      path.remove_prefix(std::min(path.size(), part.size() + 1));
      if (part == ".." && !parts.empty())
        parts.pop_back();
      else if (!part.empty() && part != ".")
        parts.push_back(part);
    }
  };
  add(name);
  if (!parts.empty()) parts.pop_back();
  add(to);
  std::string out;
  for (const std::string_view part : parts) out.append(out.empty() ? "" : "/").append(part);
  return out;
}

}  // namespace

std::span<const unsigned char> ArchiveBytes::at(std::uint64_t at, std::size_t count) {
  if (at >= size_) return {};
  count = std::min<std::uint64_t>(count, size_ - at);
  if (at < begin_ || at + count > begin_ + have_) {
    begin_ = at;
    have_ = 0;
    // Between headers that are far apart nothing needs to be read, unless a disk has to be waited
    // for: it gives a window as fast as a header.
    constexpr std::uint64_t kNear = 8 << 10, kHeaders = 4 << 10;
    const std::uint64_t gap = at >= last_ ? at - last_ : size_;
    const bool is_window =
        gap < kNear || (gap < window_.size() && is_in_page_cache(fd_, at) == PageCache::lacks);
    const auto want = static_cast<std::size_t>(std::min<std::uint64_t>(
        is_window ? window_.size() : std::max<std::uint64_t>(count, kHeaders), size_ - at));
    last_ = at + count;
    constexpr off_t kAhead = 16 << 20;  // of the disk
    if (is_window) posix_fadvise(fd_, static_cast<off_t>(at + want), kAhead, POSIX_FADV_WILLNEED);
    while (have_ < want) {
      const ssize_t n =
          ::pread(fd_, window_.data() + have_, want - have_, static_cast<off_t>(begin_ + have_));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) throw RunError(fmt::format("{}: cannot be read: {}", path_, std::strerror(errno)));
      if (n == 0) break;  // it has become shorter
      have_ += static_cast<std::size_t>(n);
    }
    count = std::min(count, have_);
  }
  return {window_.data() + (at - begin_), count};
}

void ArchiveBytes::refuse(const char* expected) {
  if (size_ == 0) throw RunError(path_ + ": is empty (0 bytes)");
  const auto bytes = at(0, kBlock);
  const Packing* packing = packing_of({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  const std::string what = is_header(bytes)     ? "a tar archive"
                           : packing != nullptr ? packing->what
                                                : "";
  if (what.empty() || what == expected)
    throw RunError(fmt::format("{}: is not {}, or all of it is damaged", path_, expected));
  throw RunError(fmt::format("{}: is not {} but {}; {}", path_, expected, what,
                             is_header(bytes) ? "name it x.tar" : advice_on(*packing, path_)));
}

std::string TarIndex::text_at(std::uint64_t data, std::uint64_t size) {
  const auto bytes = bytes_.at(data, std::min(size, kLongestText));
  extra_.is_damaged = extra_.is_damaged || bytes.size() < size;
  return {bytes.begin(), bytes.end()};
}

void TarIndex::take_pax(std::string_view records) {
  while (!records.empty()) {
    std::size_t length = 0;
    const auto [end, error] = std::from_chars(records.begin(), records.end(), length);
    const auto digits = static_cast<std::size_t>(end - records.begin());
    if (error != std::errc() || length <= digits + 1 || length > records.size() ||
        records[length - 1] != '\n') {
      extra_.is_damaged = true;
      return;
    }
    const std::string_view record = records.substr(digits + 1, length - digits - 2);
    records.remove_prefix(length);
    const std::size_t equals = std::min(record.find('='), record.size());
    const std::string_view key = record.substr(0, equals),
                           value = record.substr(std::min(equals + 1, record.size()));
    if (key == "path") extra_.name = value;
    if (key == "linkpath") extra_.link = value;
    if (key.starts_with("GNU.sparse.")) extra_.is_sparse = true;
    if (key != "size") continue;
    std::uint64_t size = 0;
    const auto parsed = std::from_chars(value.begin(), value.end(), size);
    if (parsed.ec == std::errc() && size < kMostBytes)
      extra_.size = size;
    else
      extra_.is_damaged = true;
  }
}

// Adds what a header describes, or notes what it says about the next one.
void TarIndex::take(std::span<const unsigned char> header, std::uint64_t data, std::uint64_t size) {
  const char type = static_cast<char>(header[156]);
  if (type == 'L' || type == 'K') {
    std::string text = text_at(data, size);
    text.resize(std::min(text.find('\0'), text.size()));
    (type == 'L' ? extra_.name : extra_.link) = std::move(text);
    return;
  }
  if (type == 'x') return take_pax(text_at(data, size));
  if (type == 'g' || type == 'V' || type == 'M') return;  // about the archive as a whole
  std::string name = extra_.name;
  if (name.empty()) {
    const bool has_prefix = field(header, 257, 6) == "ustar" && header[263] == '0';
    name = has_prefix ? field(header, 345, 155) : std::string_view();
    if (!name.empty()) name += '/';
    name += field(header, 0, 100);
  }
  std::string problem;
  if (extra_.is_damaged)
    problem = damaged_header(archive_.path());
  else if (type == 'S' || extra_.is_sparse)
    problem =
        "is stored with holes (a sparse file), which is not supported; pack it without --sparse";
  else if (data + size > bytes_.size())
    problem = "is cut off: the archive ends in it" + cure_of_archive(archive_.path());
  if (type == '1' || type == '2') {
    const std::string to(extra_.link.empty() ? field(header, 157, 100) : extra_.link);
    links_.push_back({name, type == '1' ? to : beside(name, to)});
  } else if ((type == '0' || type == '\0' || type == '7' || type == 'S') && !name.ends_with('/')) {
    archive_.add(name, {.begin = data, .stored = size, .size = size}, std::move(problem));
  }
  extra_ = {};
}

// Zeros end an archive. Where a header follows after all, another archive was appended, which
// begins at a record of 20 blocks; or what was there is lost.
void TarIndex::read() {
  constexpr std::uint64_t kRecord = 20 * kBlock;
  std::uint64_t at = 0, behind = 0;  // behind: where the last header's bytes ended
  bool has_header = false, is_zeros = true;
  int archives = 1;
  while (at < bytes_.size()) {
    const auto block = bytes_.at(at, kBlock);
    const auto size = is_header(block) ? number(block, 124, 12) : std::nullopt;
    if (!size) {
      is_zeros = is_zeros && is_zero(block);
      at += kBlock;
      continue;
    }
    if (at > behind) extra_ = {};  // it described what is lost
    if (at > behind && is_zeros && has_header && at % kRecord == 0)
      ++archives;
    else if (at > behind)
      archive_.add_damage(behind, at);
    has_header = is_zeros = true;
    // Only files have data; the size of links and folders says nothing.
    const char type = static_cast<char>(block[156]);
    const bool is_empty = type >= '1' && type <= '6';
    const std::uint64_t bytes = is_empty ? 0 : type == 'x' ? *size : extra_.size.value_or(*size);
    take(block, at + kBlock, bytes);
    at += kBlock + padded(bytes);
    behind = at;
  }
  if (!has_header) bytes_.refuse("a tar archive");
  if (!is_zeros && behind < bytes_.size()) archive_.add_damage(behind, bytes_.size());
  if (archives > 1)
    archive_.remarks_.push_back(
        fmt::format("{}: is {} archives, one after the other", archive_.path(), archives));
  if (is_zeros && bytes_.size() > behind + kRecord + 2 * kBlock)
    archive_.remarks_.push_back(fmt::format(
        "{}: its last {} bytes are zeros, more than its end takes; members may be missing",
        archive_.path(), bytes_.size() - behind));
  if (behind >= bytes_.size() || bytes_.size() % kBlock != 0)
    archive_.remarks_.push_back(archive_.path() +
                                ": has no end mark; it may be cut off, and members missing");
  add_links();
}

void TarIndex::add_links() {
  if (links_.empty()) return;
  archive_.sort();
  std::vector<Archive::Member> targets;
  for (const Link& link : links_) {
    const Archive::Member* m = archive_.find(beside(".", link.to));
    targets.push_back(m != nullptr && m->problem == 0 ? *m : Archive::Member{});
  }
  // Members were sorted, and are found among them only until another is added.
  std::vector<bool> is_there;
  for (const Link& link : links_) is_there.push_back(archive_.find(link.name) != nullptr);
  for (std::size_t i = 0; i < links_.size(); ++i)
    if (!is_there[i])
      archive_.add(links_[i].name, targets[i],
                   targets[i].begin > 0 ? "" : "is a link to what is not in the archive");
}

}  // namespace melflow
