#include "stages/containers/file_channel.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include <fmt/format.h>

namespace melflow {
namespace {

constexpr std::string_view kChannelMark = "#channel=";

class ChannelsOfFiles final : public Container {
 public:
  [[nodiscard]] FileStamp stamp(const std::string& name) const override { return stamp_of(name); }
  FileStamp locate(const std::string& name, FileRef& file) const override {
    const FileStamp now = stamp_of(name);
    file.size = static_cast<std::uint64_t>(std::max<std::int64_t>(now.size, 0));
    file.part = FilePart{.file = name, .stored = file.size};
    return now;
  }
};

}  // namespace

std::string channel_path(std::string_view file, int number) {
  const std::size_t name = file.rfind('/') + 1, dot = file.rfind('.');
  // The ending says how a file is decoded; a name such as .wav has none.
  const std::size_t at = dot == file.npos || dot <= name ? file.size() : dot;
  return fmt::format("{}{}{}{}", file.substr(0, at), kChannelMark, number, file.substr(at));
}

std::optional<FileChannel> channel_of(std::string_view path) {
  const std::size_t at = path.rfind(kChannelMark);
  if (at == path.npos) return std::nullopt;
  const std::string_view rest = path.substr(at + kChannelMark.size());
  int number = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
  const std::string_view ending = rest.substr(static_cast<std::size_t>(end - rest.data()));
  if (error != std::errc() || number < 1 || number > FileChannel::kMost || rest.front() == '0' ||
      ending.find('/') != ending.npos || (!ending.empty() && ending.front() != '.'))
    return std::nullopt;
  return FileChannel{fmt::format("{}{}", path.substr(0, at), ending), number};
}

std::string without_channel(std::string_view path) {
  const auto channel = channel_of(path);
  return channel ? channel->file : std::string(path);
}

ContainedItem channel_item(const FileChannel& channel) {
  static const auto of_all = std::make_shared<const ChannelsOfFiles>();
  return {of_all, channel.file, channel.number};
}

}  // namespace melflow
