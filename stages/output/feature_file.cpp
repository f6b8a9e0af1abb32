#include "stages/output/feature_file.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "pipeline/problem.h"
#include "stages/output/h5_reader.h"
#include "stages/output/npy_reader.h"

namespace melflow {
namespace {

// What to say of a path that cannot be opened as a feature file.
std::string advice(const std::string& path) {
  struct stat other {};
  if (stat((path + ".part").c_str(), &other) == 0)
    return fmt::format(
        "; {}.part is there: a run is still writing it, or was ended before it was "
        "complete",
        path);
  return {};
}

}  // namespace

const char* to_text(FeatureFile::Status status) {
  switch (status) {
    case FeatureFile::Status::ok:
      return "ok";
    case FeatureFile::Status::skipped:
      return "skipped";
    case FeatureFile::Status::failed:
      return "failed";
    case FeatureFile::Status::not_run:
      return "not run";
  }
  return "?";
}

FeatureFile::FeatureFile(std::string path) : path_(std::move(path)) {
  struct stat st {};
  if (stat(path_.c_str(), &st) != 0)
    throw RunError(fmt::format("{}: {}{}", path_, std::strerror(errno), advice(path_)));
  if (S_ISDIR(st.st_mode)) throw RunError(path_ + ": is a folder; name the .h5 file in it");
  file_bytes_ = static_cast<std::uint64_t>(st.st_size);
  contents_ = is_npy(path_) ? read_npy(path_, file_bytes_) : read_h5(path_);
}

std::vector<float> FeatureFile::read_rows(std::uint64_t offset, std::uint64_t count) const {
  if (offset + count > rows())
    throw RunError(fmt::format("{}: rows {} to {} are asked for, /mel has {}", path_, offset,
                               offset + count, rows()));
  return contents_.rows->read(offset, count);
}

}  // namespace melflow
