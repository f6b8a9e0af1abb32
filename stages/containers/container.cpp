#include "stages/containers/container.h"

#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <utility>

#include <fmt/format.h>

#include "pipeline/base/memory.h"
#include "stages/containers/archive.h"
#include "stages/containers/file_channel.h"
#include "stages/files/temporary_file.h"

namespace melflow {
namespace {

struct Known {
  std::shared_mutex mutex;
  std::map<std::string, std::weak_ptr<const Container>, std::less<>> containers;
};
Known& known() {
  static Known of_process;
  return of_process;
}

// The recording of that path, which is no channel of another one.
ContainedItem item_at(const std::string& path) {
  if (!path.starts_with(kPythonScheme)) return archived_item(path);
  const std::size_t slash = std::min(path.find('/'), path.size());
  Known& all = known();
  const std::shared_lock lock(all.mutex);
  const auto it = all.containers.find(std::string_view(path).substr(0, slash));
  if (it == all.containers.end()) return {};
  return {it->second.lock(), path.substr(std::min(slash + 1, path.size()))};
}

FileStamp stamp_of_file(const std::string& path, int* error = nullptr) {
  struct stat st {};
  const int failed = stat(path.c_str(), &st) != 0 ? errno : 0;
  if (error != nullptr) *error = failed;
  return failed != 0 ? FileStamp() : stamp_of(st);
}

}  // namespace

// NOLINTNEXTLINE(performance-unnecessary-value-param)
Result<std::shared_ptr<RawBytes>> Container::read(std::shared_ptr<const FileRef>, BufferPool&,
                                                  std::uint64_t) const {
  return ItemError::failed("is in no file");
}

void add_container(const std::string& path, const std::shared_ptr<const Container>& container) {
  Known& all = known();
  const std::lock_guard lock(all.mutex);
  std::erase_if(all.containers, [](const auto& one) { return one.second.expired(); });
  all.containers[path] = container;
}

ContainedItem item_of(std::shared_ptr<const Container> container, std::string name) {
  auto channel = channel_of(name);
  if (!channel || container->stamp(name).size >= 0) return {std::move(container), std::move(name)};
  return {std::move(container), std::move(channel->file), channel->number};
}

ContainedItem contained_item(const std::string& path) {
  ContainedItem item = item_at(path);
  if (item.container) return item_of(std::move(item.container), std::move(item.name));
  struct stat st {};
  const auto channel = channel_of(path);
  return !channel || stat(path.c_str(), &st) == 0 ? item : channel_item(*channel);
}

ContainedItems::ContainedItems() {
  static std::atomic<std::uint64_t> numbers{0};
  number_ = ++numbers;
}

ContainedItem ContainedItems::operator()(const std::string& path) const {
  struct Last {
    std::uint64_t of = 0;  // the object that looked it up
    std::string path;
    std::shared_ptr<const Container> container;
  };
  if (channel_of(path)) return contained_item(path);
  static thread_local Last last;
  const std::size_t size = last.path.size();
  if (last.of == number_ && path.size() > size && path[size] == '/' && path.starts_with(last.path))
    return {last.container, path.substr(size + 1)};
  ContainedItem out = contained_item(path);
  if (out.container && !path.starts_with(kPythonScheme))  // which ends with its corpus
    last = {number_, path.substr(0, path.size() - out.name.size() - 1), out.container};
  return out;
}

FileStamp stamp_of(const std::string& path, int* error) {
  if (const ContainedItem item = contained_item(path); item.container) {
    const FileStamp stamp = item.container->stamp(item.name);
    if (error != nullptr) *error = stamp.size >= 0 ? 0 : item.container->is_known() ? ENOENT : EIO;
    return stamp;
  }
  return stamp_of_file(path, error);
}

FileRef located(std::string path, FileStamp* stamp) {
  const ContainedItem item = contained_item(path);
  return located(std::move(path), item, stamp);
}

FileRef located(std::string path, const ContainedItem& item, FileStamp* stamp) {
  FileRef out;
  out.path = std::move(path);
  out.channel = item.channel;
  FileStamp now;
  if (item.container == nullptr) {
    now = stamp_of_file(out.path);
    out.size = static_cast<std::uint64_t>(std::max<std::int64_t>(now.size, 0));
  } else {
    now = item.container->locate(item.name, out);
  }
  if (stamp != nullptr) *stamp = now;
  return out;
}

Result<std::shared_ptr<RawBytes>> as_raw_bytes(std::shared_ptr<const FileRef> file,
                                               std::span<const std::byte> bytes, BufferPool& pool,
                                               std::uint64_t whole) {
  if (bytes.empty()) return ItemError::failed("empty file (0 bytes)");
  auto out = std::make_shared<RawBytes>();
  out->size = bytes.size();
  // Only as much memory as was admitted may be held.
  if (out->size <= std::min(file->size, whole)) {
    out->data = pool.lease(bytes.size());
    std::memcpy(out->data.data(), bytes.data(), bytes.size());
  } else if (!(out->fd = temporary_file(bytes))) {
    return ItemError::failed(
        fmt::format("cannot be kept in a temporary file: {}", std::strerror(errno)));
  }
  out->file = std::move(file);
  return out;
}

}  // namespace melflow
