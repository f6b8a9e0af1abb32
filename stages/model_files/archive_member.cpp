#include "stages/model_files/archive_member.h"

#include <fmt/format.h>

#include "pipeline/base/problem.h"
#include "stages/containers/archive.h"
#include "stages/files/whole_io.h"
#include "stages/model_files/model_text.h"

namespace melflow {

std::optional<std::string> archive_member(const std::string& archive, std::string_view name) {
  const Archive index(archive);
  for (std::size_t i = 0; i < index.size(); ++i) {
    const std::string_view member = index.name(i);
    if (member != name && !member.ends_with("/" + std::string(name))) continue;
    const std::string path = fmt::format("{}/{}", archive, member);
    FileRef file;
    index.locate(std::string(member), file);
    const FilePart& part = *file.part;
    if (!part.problem.empty()) throw RunError(fmt::format("{}: {}", path, part.problem));
    if (file.size > kMostModelText || part.stored > kMostModelText)
      throw RunError(fmt::format("{}: is longer than {} MiB, which is the most that is read", path,
                                 kMostModelText >> 20));
    std::uint64_t whole = 0;
    const UniqueFd fd = open_regular(part.file, whole);
    std::string bytes = read_at(fd.get(), part.begin, part.stored, path);
    if (part.is_deflated) {
      std::string out(file.size, '\0');
      if (!inflate_member(reinterpret_cast<const std::byte*>(bytes.data()), bytes.size(),
                          reinterpret_cast<std::byte*>(out.data()), out.size()))
        throw RunError(path + ": is damaged");
      bytes = std::move(out);
    }
    if (bytes.size() != file.size) throw RunError(path + ": ends before its end");
    return bytes;
  }
  return std::nullopt;
}

}  // namespace melflow
