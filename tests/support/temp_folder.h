// A temporary folder for a test, removed with all its contents.
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>

namespace melflow::test {

/// Returns all bytes of a file; throws when it cannot be read.
inline std::string read_bytes(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + path);
  std::string out;
  std::string piece(1 << 16, '\0');
  do {
    in.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    out.append(piece, 0, static_cast<std::size_t>(in.gcount()));
  } while (in);
  return out;
}

inline void write_bytes(const std::string& path, std::string_view bytes) {
  std::ofstream out(path, std::ios::binary);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!out.flush()) throw std::runtime_error("cannot write " + path);
}

using Names = std::set<std::string>;
/// Returns the names in a folder.
inline Names names_in(const std::string& path) {
  Names out;
  for (const auto& entry : std::filesystem::directory_iterator(path))
    out.insert(entry.path().filename());
  return out;
}

class TempFolder {
 public:
  /// Makes a folder below TMPDIR or /tmp that any user may enter, so tests can act as others.
  TempFolder() {
    const char* base = std::getenv("TMPDIR");
    path_ = std::string(base != nullptr && *base != '\0' ? base : "/tmp") + "/melflow-test-XXXXXX";
    if (mkdtemp(path_.data()) == nullptr) throw std::runtime_error("cannot make " + path_);
    ::chmod(path_.c_str(), 0755);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  ~TempFolder() {
    // Restores permissions that a test removed, or these folders could not be emptied.
    std::error_code ignored;
    for (std::filesystem::recursive_directory_iterator it(path_, ignored), end; it != end;
         it.increment(ignored)) {
      if (it->is_directory(ignored) && !it->is_symlink(ignored)) ::chmod(it->path().c_str(), 0755);
    }
    std::filesystem::remove_all(path_, ignored);
  }

  [[nodiscard]] const std::string& path() const { return path_; }
  /// Returns the full path of something inside; creates nothing.
  [[nodiscard]] std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  /// Creates a folder and its parents; returns its full path.
  std::string folder(const std::string& name) const {
    std::filesystem::create_directories(*this / name);
    return *this / name;
  }
  /// Returns the full path of a file to be made; creates the folders above it.
  [[nodiscard]] std::string file(const std::string& name) const {
    std::string full = *this / name;
    std::filesystem::create_directories(std::filesystem::path(full).parent_path());
    return full;
  }
  /// Writes a file, creating the folders above it; returns its full path.
  std::string write(const std::string& name, std::string_view bytes) const {
    write_bytes(file(name), bytes);
    return *this / name;
  }

 private:
  std::string path_;
};

/// A folder with the contents that `fill` makes.
template <void (*fill)(const TempFolder&)>
struct Filled : TempFolder {
  Filled() { fill(*this); }
};

/// Acts as a user without privileges while it lives; ok() is false, and nothing is changed, where
/// that is impossible (the test does not run as root). Applies to the whole process: no other
/// thread of a test may need root meanwhile.
class OtherUser {
 public:
  static constexpr uid_t kNobody = 65534;
  OtherUser() : ok_(geteuid() == 0 && seteuid(kNobody) == 0) {}
  OtherUser(const OtherUser&) = delete;
  OtherUser& operator=(const OtherUser&) = delete;
  ~OtherUser() {
    if (ok_ && seteuid(0) != 0) std::abort();
  }
  /// Whether permissions apply: this object is ok, or the process is no superuser.
  [[nodiscard]] bool ok() const { return ok_ || geteuid() != 0; }

 private:
  bool ok_;
};

}  // namespace melflow::test
