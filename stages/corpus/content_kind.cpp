#include "stages/corpus/content_kind.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "stages/audio/decoders/sound_header.h"

namespace melflow {
namespace {

using namespace std::string_view_literals;

struct Kind {
  std::string_view bytes;
  const char* what;
  const char* cure;  // {}: the path
  std::size_t at = 0;
};

constexpr const char* kUnpack = "unpack it, and name the list that was in it";
constexpr const char* kUtf16 = "write it as UTF-8: iconv -f UTF-16 -t UTF-8 {} > NEW";
constexpr const char* kUtf32 = "write it as UTF-8: iconv -f UTF-32 -t UTF-8 {} > NEW";
constexpr const char* kSave = "save the table as a .csv, .tsv or .jsonl";
constexpr const char* kOutput =
    "a list of recordings is a text file with one path per line, or a .csv, .tsv or .jsonl";

// Longer ones first where one begins another.
constexpr Kind kKinds[] = {
    {"\xFF\xFE\0\0"sv, "UTF-32 text", kUtf32},
    {"\0\0\xFE\xFF"sv, "UTF-32 text", kUtf32},
    {"\xFF\xFE"sv, "UTF-16 text", kUtf16},
    {"\xFE\xFF"sv, "UTF-16 text", kUtf16},
    {"\x1F\x8B"sv, "a file packed by gzip",
     "unpack it (tar -xzf, or gunzip), and name the list in it"},
    {"1AY&SY"sv, "a file packed by bzip2", kUnpack, 4},
    {"\xFD\x37zXZ\0"sv, "a file packed by xz", kUnpack},
    {"\x28\xB5\x2F\xFD"sv, "a file packed by zstd", kUnpack},
    {"PK\x03\x04"sv, "a ZIP archive or spreadsheet", "unpack it, or save the sheet as a .csv"},
    {"7z\xBC\xAF\x27\x1C"sv, "a 7z archive", kUnpack},
    {"Rar!\x1A\x07"sv, "a RAR archive", kUnpack},
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

std::string why_no_text(std::string_view head, const std::string& path) {
  const auto message = [&](std::string_view what, const char* cure) {
    return fmt::format("this is {}, not UTF-8 text; {}", what,
                       fmt::format(fmt::runtime(cure), path));
  };
  for (const Kind& kind : kKinds)
    if (is_there(head, kind.bytes, kind.at)) return message(kind.what, kind.cure);
  // What else is known by letters may be the beginning of a name.
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
      {".gz", "gunzip -k"}, {".bz2", "bunzip2 -k"}, {".xz", "unxz -k"}, {".zst", "unzstd"}};
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
  if (ending == ".json")
    return fmt::format(
        "{0} has no ending that is known; one JSON object a line, as NeMo has it, is "
        "read from a .jsonl: rename it to {1}.jsonl",
        path, file.stem().string());
  if (ending == ".scp")
    return path +
           " has ids before its paths; give Kaldi's segments in place of it (manifest: segments), "
           "or where there are none, make them: awk '{print $1, $1, 0, -1}' wav.scp > segments";
  if (ending == ".xls" || ending == ".xlsx" || ending == ".ods" || ending == ".parquet")
    return path +
           " is not a text file with one path per line, a .csv, .tsv or .jsonl; "
           "save the table as one of these";
  return why_packed(path);
}

}  // namespace melflow
