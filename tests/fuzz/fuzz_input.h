// Shared helpers of the targets: numbers and texts taken from the bytes of an input, a folder in
// memory for files, and the seeds of a target, which writes them itself with
// MELFLOW_FUZZ_SEEDS=FOLDER in the environment.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

namespace melflow::fuzz {

inline void require(bool holds, int line = __builtin_LINE()) {
  if (holds) return;
  std::fprintf(stderr, "line %d: does not hold\n", line);
  std::abort();
}

/// Returns zeros and empty texts after the end.
class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size)
      : rest_(reinterpret_cast<const char*>(data), size) {}

  template <class T>
  T take() {
    T out{};
    const std::size_t n = std::min(rest_.size(), sizeof out);
    std::memcpy(&out, rest_.data(), n);
    rest_.remove_prefix(n);
    return out;
  }
  std::size_t below(std::size_t end) { return end == 0 ? 0 : take<std::uint16_t>() % end; }
  bool flag() { return (take<std::uint8_t>() & 1U) != 0; }
  std::string_view bytes(std::size_t most) {
    const std::string_view out = rest_.substr(0, most);
    rest_.remove_prefix(out.size());
    return out;
  }
  std::string_view rest() { return bytes(rest_.size()); }
  [[nodiscard]] bool is_empty() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

/// One folder per process, in MELFLOW_FUZZ_FOLDER, since libFuzzer ends without destructors;
/// emptied by clear().
class Folder {
 public:
  Folder() {
    const char* where = std::getenv("MELFLOW_FUZZ_FOLDER");
    std::string name =
        (where == nullptr ? "/dev/shm" : where) + std::string("/melflow_fuzz_XXXXXX");
    require(mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  [[nodiscard]] std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  void clear() const {
    for (const auto& entry : std::filesystem::directory_iterator(path_))
      std::filesystem::remove(entry);
  }

 private:
  std::string path_;
};

inline const Folder& folder() {
  static const Folder it;
  return it;
}

inline void write_file(const std::string& path, std::string_view bytes) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  require(fd >= 0 && ::write(fd, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
  ::close(fd);
}

inline std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Flips bits of the byte `at`, or cuts off everything after it; returns whether anything changed.
inline bool damage(std::string& bytes, std::size_t at, std::uint8_t mask) {
  if (at >= bytes.size()) return false;
  if (mask == 0)
    bytes.resize(at);
  else
    bytes[at] = static_cast<char>(static_cast<std::uint8_t>(bytes[at]) ^ mask);
  return true;
}

/// Writes seeds, if they are wanted.
template <class Write>
int write_seeds(const Write& write) {
  if (const char* folder = std::getenv("MELFLOW_FUZZ_SEEDS"))
    write([folder](const std::string& name, std::string_view bytes) {
      write_file(folder + ("/" + name), bytes);
    });
  return 0;
}

}  // namespace melflow::fuzz
