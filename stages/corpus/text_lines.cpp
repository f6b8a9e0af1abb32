#include "stages/corpus/text_lines.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <filesystem>
#include <span>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "pipeline/base/problem.h"
#include "pipeline/base/text.h"
#include "stages/audio/decoders/sound_header.h"
#include "stages/files/packing.h"

namespace melflow {
namespace {

constexpr std::size_t kReadPiece = 1 << 16;  // [bytes] read at a time
constexpr std::size_t kMostBytes = std::size_t{64} << 30;
constexpr std::size_t kLongestLine = std::size_t{64} << 20;  // [bytes]

using namespace std::string_view_literals;

struct Kind {
  std::string_view bytes;
  const char* what;
  const char* cure;  // advice; {} is the path
  std::size_t at = 0;
};

constexpr const char* kUnpack = "unpack it, and name the list that was in it";
constexpr const char* kUtf16 = "write it as UTF-8: iconv -f UTF-16 -t UTF-8 {} > NEW";
constexpr const char* kUtf32 = "write it as UTF-8: iconv -f UTF-32 -t UTF-8 {} > NEW";
constexpr const char* kSave = "save the table as a .csv, .tsv or .jsonl";
constexpr const char* kOutput =
    "a list of recordings is a text file with one path per line, or a .csv, .tsv or .jsonl";

// If one signature begins with another, the longer one comes first.
constexpr Kind kKinds[] = {
    {"\xFF\xFE\0\0"sv, "UTF-32 text", kUtf32},
    {"\0\0\xFE\xFF"sv, "UTF-32 text", kUtf32},
    {"\xFF\xFE"sv, "UTF-16 text", kUtf16},
    {"\xFE\xFF"sv, "UTF-16 text", kUtf16},
    {"PK\x03\x04"sv, "a ZIP archive or spreadsheet", "unpack it, or save the sheet as a .csv"},
    {"ustar"sv, "a tar archive", kUnpack, 257},
    {"\x89HDF\r\n\x1A\n"sv, "an HDF5 file", kOutput},
    {"\x93NUMPY"sv, "a NumPy array", kOutput},
    {"ARROW1\0"sv, "an Arrow table", kSave},
    {"SQLite format 3\0"sv, "an SQLite database", kSave},
    {"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1"sv, "a spreadsheet or document of Office", kSave},
    {"%PDF-1"sv, "a PDF", kSave},
};

bool is_there(std::string_view head, std::string_view bytes, std::size_t at) {
  return head.size() >= at + bytes.size() && head.substr(at, bytes.size()) == bytes;
}

std::string sound_in(std::string_view head) {
  const ReadAt read = [head](std::uint64_t at, std::span<std::byte> out) {
    if (at >= head.size()) return std::size_t{0};
    const std::size_t n = std::min(out.size(), head.size() - static_cast<std::size_t>(at));
    std::memcpy(out.data(), head.data() + at, n);
    return n;
  };
  return std::string(sound_kind(read).name);
}

}  // namespace

TextLines::TextLines(std::string path, std::string_view why_needed)
    : path_(std::move(path)), in_(path_, Pipes::by_descriptor) {
  if (!in_.problem().empty())
    throw RunError(fmt::format("{}: {}{}", path_, in_.problem(), why_needed));
  fill();
  if (const std::string why = why_no_text(buffer_, path_); !why.empty())
    throw RunError(fmt::format("{}: {}", path_, why));
  if (buffer_.starts_with(kByteOrderMark)) at_ = kByteOrderMark.size();
}

bool TextLines::fill() {
  do {
    buffer_ = in_.read(kReadPiece);
    if (!in_.problem().empty()) throw RunError(fmt::format("{}: {}", path_, in_.problem()));
    if (number_ == 0 && read_ == 0 && !inflater_ && Inflater::is_gzip(buffer_))
      inflater_ = std::make_unique<Inflater>(Inflater::Format::gzip);
    if (!inflater_) break;
    const std::string packed = std::exchange(buffer_, "");
    const auto add = [this](std::span<const std::byte> bytes) {
      buffer_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      return true;
    };
    if (packed.empty() ? !inflater_->is_whole() : !inflater_->take(packed, add))
      throw RunError(fmt::format("{}: this file packed by gzip {}; copy it again", path_,
                                 packed.empty() ? "ends too early" : "is damaged"));
    if (packed.empty()) break;
  } while (buffer_.empty());
  read_ += buffer_.size();
  if (read_ > kMostBytes)
    throw RunError(fmt::format("{}: is longer than {} GiB, more than a list may have", path_,
                               kMostBytes >> 30));
  at_ = 0;
  return !buffer_.empty();
}

bool TextLines::next(std::string& line) {
  line.clear();
  line_end_ = "";
  bool any = false;
  while (line_end_.empty() && (at_ < buffer_.size() || fill())) {
    any = true;
    const std::size_t end = buffer_.find('\n', at_);
    line.append(buffer_, at_, end - at_);
    if (line.size() > kLongestLine)
      throw RunError(fmt::format("{}:{}: the line is longer than {} MiB, so this is no list", path_,
                                 number_ + 1, kLongestLine >> 20));
    at_ = end == buffer_.npos ? buffer_.size() : end + 1;
    if (end != buffer_.npos) line_end_ = "\n";
  }
  if (!any) return false;
  ++number_;
  if (line.ends_with('\r')) {
    line.pop_back();
    if (!line_end_.empty()) line_end_ = "\r\n";
  }
  if (line.find('\0') != line.npos)
    throw RunError(fmt::format("{}:{}: a zero byte is no text; take it out, or name another file",
                               path_, number_));
  if (line.find('\r') != line.npos)
    throw RunError(
        fmt::format("{0}:{1}: a carriage return (CR) inside the line; lines end in LF or CRLF: "
                    "take it out, or, where CR alone ends lines, rewrite them with "
                    "tr '\\r' '\\n' < {0} > NEW",
                    path_, number_));
  return true;
}

bool is_utf8(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size() && utf8_length(text, at) > 0) at += utf8_length(text, at);
  return at == text.size();
}

void require_utf8(std::string_view text, const std::string& path, int line) {
  if (!is_utf8(text))
    throw RunError(
        fmt::format("{}:{}: '{}' is not UTF-8, which texts are stored as; if the file "
                    "is Latin-1, convert it: {}",
                    path, line, excerpt(text), conversion_to_utf8(path)));
}

std::string conversion_to_utf8(const std::string& path) {
  return fmt::format("iconv -f WINDOWS-1252 -t UTF-8 {} > NEW", path);
}

std::string why_no_text(std::string_view head, const std::string& path) {
  const auto message = [&](std::string_view what, const char* cure) {
    return fmt::format("this is {}, not UTF-8 text; {}", what,
                       fmt::format(fmt::runtime(cure), path));
  };
  for (const Kind& kind : kKinds)
    if (is_there(head, kind.bytes, kind.at)) return message(kind.what, kind.cure);
  if (const Packing* packing = packing_of(head)) return message(packing->what, kUnpack);
  // The other kinds begin with letters, as a path may, so they must also contain a zero byte.
  if (head.find('\0') == head.npos && !head.starts_with("NIST_1A\n")) return {};
  if (head.starts_with("PAR1")) return message("a Parquet table", kSave);
  if (const std::string sound = sound_in(head); !sound.empty())
    return message(fmt::format("a recording ({})", sound),
                   "a manifest is a list of recordings; one recording is chosen by root: FOLDER "
                   "and include: NAME");
  const std::string_view first = head.substr(0, 64);
  const auto zeros = static_cast<std::size_t>(std::count(first.begin(), first.end(), '\0'));
  if (zeros * 5 > first.size() * 2 && zeros * 5 < first.size() * 3)
    return message("UTF-16 text without a byte order mark",
                   first.front() == '\0'
                       ? "write it as UTF-8: iconv -f UTF-16BE -t UTF-8 {} > NEW"
                       : "write it as UTF-8: iconv -f UTF-16LE -t UTF-8 {} > NEW");
  return {};
}

std::string why_packed(const std::string& path) {
  if (path.ends_with(".tar.gz") || path.ends_with(".tgz"))
    return path + " is an archive; unpack it (tar -xf), and name the list in it";
  constexpr std::pair<const char*, const char*> kPacked[] = {
      {".bz2", "bunzip2 -k"}, {".xz", "unxz -k"}, {".zst", "unzstd"}};
  const std::filesystem::path file(path);
  for (const auto& [ending, command] : kPacked)
    if (file.extension() == ending)
      return fmt::format("{0} is packed; unpack it ({1} {0}), and name {2}", path, command,
                         (file.parent_path() / file.stem()).string());
  return {};
}

std::string why_no_list(const std::string& path) {
  const std::filesystem::path file(path);
  std::string ending = file.extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  if (ending == ".scp")
    return path +
           " has ids before its paths, as in Kaldi's data folders; name it wav.scp, or the folder "
           "with its wav.scp";
  if (ending == ".xls" || ending == ".xlsx" || ending == ".ods" || ending == ".parquet")
    return path +
           " is not a text file with one path per line, a .csv, .tsv or .jsonl; "
           "save the table as one of these";
  return why_packed(path);
}

}  // namespace melflow
