#include "stages/containers/kept_index.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <span>
#include <type_traits>

#include <fmt/format.h>

#include "stages/files/content_hash.h"
#include "stages/files/whole_io.h"

namespace melflow {
namespace {

// The format: kMark, the hash of all bytes behind it, and the values in the order of visit(). Of
// this machine: numbers are as in memory.
constexpr std::string_view kMark = "melflow index 1\n";
constexpr std::size_t kHead = kMark.size() + sizeof(std::uint64_t);
constexpr const char* kEnding = ".index";

std::string folder_of_caches() {
  for (const auto& [variable, below] : {std::pair{"XDG_CACHE_HOME", ""}, {"HOME", "/.cache"}})
    if (const char* folder = std::getenv(variable);  // NOLINT(concurrency-mt-unsafe)
        folder != nullptr && *folder == '/')
      return fmt::format("{}{}/melflow/archives", folder, below);
  return {};
}

class Writer {
 public:
  template <class T>
  void operator()(const std::vector<T>& values) {
    (*this)(values.size());
    if constexpr (std::is_trivially_copyable_v<T>)
      bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
    else
      for (const T& value : values) (*this)(value);
  }
  void operator()(const std::string& text) {
    (*this)(text.size());
    bytes += text;
  }
  template <class T>
  requires std::is_trivially_copyable_v<T>
  void operator()(const T& value) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  std::string bytes = std::string(kHead, '\0');
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}
  template <class T>
  void operator()(std::vector<T>& values) {
    std::size_t count = 0;
    (*this)(count);
    if constexpr (std::is_trivially_copyable_v<T>) {
      if (!has(count, sizeof(T))) return;
      values.resize(count);
      take(values.data(), count * sizeof(T));
    } else {
      for (std::size_t i = 0; i < count && is_right; ++i) (*this)(values.emplace_back());
    }
  }
  void operator()(std::string& text) {
    std::size_t count = 0;
    (*this)(count);
    if (!has(count, 1)) return;
    text.resize(count);
    take(text.data(), count);
  }
  template <class T>
  requires std::is_trivially_copyable_v<T>
  void operator()(T& value) {
    if (has(1, sizeof value)) take(&value, sizeof value);
  }
  bool is_right = true;

 private:
  bool has(std::size_t count, std::size_t size) {
    return is_right = is_right && count <= bytes_.size() / size;
  }
  void take(void* to, std::size_t count) {
    std::memcpy(to, bytes_.data(), count);
    bytes_.remove_prefix(count);
  }
  std::string_view bytes_;
};

std::uint64_t hash_of(std::string_view file) {
  return content_hash(std::as_bytes(std::span(file.substr(kHead))));
}

// Removes what no run has used for two months.
void clean(const std::string& folder) {
  using namespace std::chrono_literals;
  std::error_code error;
  const auto oldest = std::filesystem::file_time_type::clock::now() - 24h * 60;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const auto used = entry.last_write_time(error);
    if (!error && used < oldest) std::filesystem::remove(entry.path(), error);
  }
}

}  // namespace

KeptIndex::KeptIndex(const std::string& path) {
  const std::string folder = folder_of_caches();
  if (folder.empty() || path.empty()) return;
  std::error_code error;
  archive_ = std::filesystem::absolute(path, error).lexically_normal();
  file_ = fmt::format("{}/{:016x}{}", folder, content_hash(std::as_bytes(std::span(archive_))),
                      kEnding);
}

bool KeptIndex::load(Archive& archive) const {
  const UniqueFd fd(file_.empty() ? -1 : ::open(file_.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat st {};
  if (!fd || fstat(fd.get(), &st) != 0 || st.st_size < static_cast<off_t>(kHead)) return false;
  std::string bytes(static_cast<std::size_t>(st.st_size), '\0');
  if (read_whole(fd.get(), bytes.data(), bytes.size(), 0) != 0 || !bytes.starts_with(kMark))
    return false;
  std::uint64_t hash = 0;
  std::memcpy(&hash, bytes.data() + kMark.size(), sizeof hash);
  if (hash != hash_of(bytes)) return false;
  Reader read(std::string_view(bytes).substr(kHead));
  std::string of;
  FileStamp stamp;
  read(of);
  read(stamp);
  if (!read.is_right || of != archive_ || stamp != archive.stamp_) return false;
  Archive::visit(archive, read);
  if (!read.is_right) return false;
  futimens(fd.get(), nullptr);  // it was used
  return true;
}

void KeptIndex::store(const Archive& archive) const {
  if (file_.empty()) return;
  const std::filesystem::path folder = std::filesystem::path(file_).parent_path();
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  static std::once_flag cleaned;
  std::call_once(cleaned, clean, folder);
  Writer write;
  write(archive_);
  write(archive.stamp_);
  Archive::visit(archive, write);
  std::memcpy(write.bytes.data(), kMark.data(), kMark.size());
  const std::uint64_t hash = hash_of(write.bytes);
  std::memcpy(write.bytes.data() + kMark.size(), &hash, sizeof hash);
  std::string part = file_ + ".XXXXXX";
  const UniqueFd fd(mkostemp(part.data(), O_CLOEXEC));
  if (!fd) return;
  if (write_whole(fd.get(), write.bytes.data(), write.bytes.size(), 0) != 0 ||
      std::rename(part.c_str(), file_.c_str()) != 0)
    ::unlink(part.c_str());
}

}  // namespace melflow
