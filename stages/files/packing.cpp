#include "stages/files/packing.h"

#include <fmt/format.h>

#include "pipeline/base/input_file.h"

namespace melflow {
namespace {

using namespace std::string_view_literals;

constexpr Packing kPackings[] = {
    {"\x1F\x8B"sv, "a file packed by gzip", "gunzip -k", ".gz", ".tar.gz"},
    {"1AY&SY"sv, "a file packed by bzip2", "bunzip2 -k", ".bz2", "", 4},
    {"\xFD\x37zXZ\0"sv, "a file packed by xz", "unxz -k", ".xz"},
    {"\x28\xB5\x2F\xFD"sv, "a file packed by zstd", "unzstd", ".zst"},
    {"PK\x03\x04"sv, "a zip archive", "unzip", "", ".zip"},
    {"7z\xBC\xAF\x27\x1C"sv, "a 7z archive", "7z x", ""},
    {"Rar!\x1A\x07"sv, "a RAR archive", "unrar x", ""},
};

}  // namespace

const Packing* packing_of(std::string_view head) {
  for (const Packing& one : kPackings)
    if (head.size() > one.at && head.substr(one.at).starts_with(one.bytes)) return &one;
  return nullptr;
}

const Packing* packing_of_file(const std::string& path) {
  constexpr std::size_t kHead = 512;
  InputFile file(path);
  return packing_of(file.read(kHead));
}

std::string advice_on(const Packing& packing, const std::string& path) {
  if (*packing.archive != '\0') return fmt::format("name it x{}", packing.archive);
  if (packing.ending.empty() || !path.ends_with(packing.ending))
    return fmt::format("unpack it ({} {}) and name what is in it", packing.command, path);
  return fmt::format("unpack it ({} {}) and name {}", packing.command, path,
                     path.substr(0, path.size() - packing.ending.size()));
}

}  // namespace melflow
