// Records in parts by a number that the caller gives, in memory and, from a limit on, in files.
#pragma once

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "pipeline/base/problem.h"

namespace melflow::fingerprint {

template <class Record>
class Spill {
  static_assert(std::is_trivially_copyable_v<Record>);

 public:
  static constexpr std::size_t kParts = 64;
  /// `path`: of files that need not exist, without the number that is added. `bytes`: kept in
  /// memory.
  Spill(std::string path, std::size_t bytes) : path_(std::move(path)), bytes_(bytes) {}
  Spill(const Spill&) = delete;
  Spill& operator=(const Spill&) = delete;
  ~Spill() {
    for (std::size_t p = 0; p < kParts; ++p)
      if (files_[p]) std::remove(name(p).c_str());
  }

  /// Throws RunError where a file cannot be written.
  void add(std::size_t part, const Record& record) {
    kept_[part].push_back(record);
    if (++count_ * sizeof(Record) >= bytes_) flush();
  }
  /// Gives the records of a part in the order in which they came, and frees it. Throws RunError.
  std::vector<Record> take(std::size_t part) {
    std::vector<Record> out;
    if (std::FILE* const file = files_[part].get()) {
      out.resize(written_[part]);
      std::rewind(file);
      if (std::fread(out.data(), sizeof(Record), out.size(), file) != out.size())
        throw RunError(fmt::format("{}: cannot be read: {}", name(part), std::strerror(errno)));
      files_[part].reset();
      std::remove(name(part).c_str());
    }
    out.insert(out.end(), kept_[part].begin(), kept_[part].end());
    std::vector<Record>().swap(kept_[part]);
    return out;
  }

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  [[nodiscard]] std::string name(std::size_t part) const { return path_ + std::to_string(part); }
  void flush() {
    for (std::size_t p = 0; p < kParts; ++p) {
      if (kept_[p].empty()) continue;
      if (!files_[p]) files_[p].reset(std::fopen(name(p).c_str(), "w+bx"));
      const std::size_t count = kept_[p].size();
      if (!files_[p] ||
          std::fwrite(kept_[p].data(), sizeof(Record), count, files_[p].get()) != count ||
          std::fflush(files_[p].get()) != 0)
        throw RunError(fmt::format("{}: cannot be written: {}; TMPDIR names another folder for it",
                                   name(p), std::strerror(errno)));
      written_[p] += count;
      kept_[p].clear();
    }
    count_ = 0;
  }

  std::string path_;
  std::size_t bytes_, count_ = 0;
  std::array<std::vector<Record>, kParts> kept_;
  std::array<std::unique_ptr<std::FILE, Close>, kParts> files_;
  std::array<std::size_t, kParts> written_{};
};

}  // namespace melflow::fingerprint
