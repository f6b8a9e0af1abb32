#include "stages/output/formats/feature_file.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "pipeline/problem.h"
#include "stages/files/own_file.h"
#include "stages/files/publication.h"
#include "stages/output/formats/h5_reader.h"
#include "stages/output/formats/npy_reader.h"

namespace melflow {
namespace {

// What to say of a path that cannot be opened as a feature file.
std::string advice(const std::string& path) {
  if (has_name(path + ".undo") && has_name(path + ".part"))
    return fmt::format(
        "; an update of it is under way, or was ended in the middle: {0}.part and {0}.undo are "
        "what it was, keep both. The next `melflow update` or `melflow run` of it makes it "
        "what it was",
        path);
  if (const std::string commit = Publication::waiting(path); !commit.empty())
    return fmt::format(
        "; {}.part is complete, but a run was ended before its files had their names ({}). The "
        "next `melflow run` or `melflow update` of that output gives them these",
        path, commit);
  if (has_name(path + ".part"))
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
  if (!S_ISREG(st.st_mode)) throw RunError(path_ + ": is a pipe or a device, not a file");
  file_bytes_ = static_cast<std::uint64_t>(st.st_size);
  contents_ = is_npy(path_) ? read_npy(path_, file_bytes_) : read_h5(path_);
  try {
    check_contents(data());
  } catch (const RunError& e) {
    throw RunError(fmt::format("{}: is damaged: {}", path_, e.what()));
  }
}

std::vector<float> FeatureFile::read_rows(std::uint64_t offset, std::uint64_t count) const {
  if (count > rows() || offset > rows() - count)
    throw RunError(fmt::format("{}: {} rows from {} on are asked for, there are {}", path_, count,
                               offset, rows()));
  return contents_.rows->read(offset, count);
}

}  // namespace melflow
