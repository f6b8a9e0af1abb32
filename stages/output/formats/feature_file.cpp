#include "stages/output/formats/feature_file.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <type_traits>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "pipeline/base/input_file.h"
#include "pipeline/base/problem.h"
#include "pipeline/base/sentences.h"
#include "stages/files/own_file.h"
#include "stages/files/publication.h"
#include "stages/output/formats/h5_reader.h"
#include "stages/output/formats/index_hash.h"
#include "stages/output/formats/kaldi_ark.h"
#include "stages/output/formats/npy_layout.h"
#include "stages/output/formats/npy_reader.h"
#include "stages/output/formats/root_attributes.h"
#include "stages/output/formats/stored_json.h"
#include "stages/output/formats/tar_shards.h"
#include "stages/output/output_sections.h"

namespace melflow {
namespace {

// Returns the first existing files of splits: for "out/a.npy", "out/a.test.npy" and others.
std::vector<std::string> files_of_splits(const std::string& path) {
  constexpr std::size_t kShown = 5;
  std::vector<std::string> out;
  if (!std::filesystem::path(path).has_extension()) return out;
  for (const std::string& split : OutputSections::splits_beside(path))
    if (out.size() < kShown && !("." + split).ends_with(".index"))
      out.push_back(OutputSections::path_of(path, split));
  return out;
}

// Returns advice on a path that cannot be opened as a feature file.
std::string advice(const std::string& path) {
  if (has_name(path + ".undo") && has_name(path + ".part"))
    return fmt::format(
        "; an update of it is under way, or was interrupted: keep {0}.part and {0}.undo, from "
        "which the next `melflow update` or `melflow run` of it restores it",
        path);
  if (const std::string commit = Publication::waiting(path); !commit.empty())
    return fmt::format(
        "; {}.part is complete, but an interrupted run left it unpublished ({}). "
        "The "
        "next `melflow run` or `melflow update` of that output gives them these",
        path, commit);
  if (has_name(path + ".part"))
    return fmt::format(
        "; {}.part is there: a run is still writing it, or was interrupted before it was "
        "complete",
        path);
  if (const std::vector<std::string> splits = files_of_splits(path); !splits.empty())
    return fmt::format("; there are {}, which an output with split_files: true has for its splits",
                       fmt::join(splits, ", "));
  return {};
}

// Returns the path of the rows beside an index of .npy rows or an ark; "" where there are none.
std::string rows_of_index(const std::string& path) {
  for (const std::string ending : {".index.json", ".index.npy"}) {
    if (!path.ends_with(ending)) continue;
    for (const char* of_rows : {kNpyEnding, kArkEnding, kTarEnding})
      if (const std::string rows = path.substr(0, path.size() - ending.size()) + of_rows;
          has_name(rows))
        return rows;
  }
  return {};
}

}  // namespace

const char* to_text(FeatureFile::Status status) {
  if (status == FeatureFile::Status::not_run) return "not run";
  const auto i = static_cast<std::size_t>(status);  // of a remark it may be any number
  return i < std::size(FeatureData::kStatusNames) ? FeatureData::kStatusNames[i] : "?";
}

FeatureFile::FeatureFile(std::string path) : path_(std::move(path)) {
  struct stat st {};
  if (stat(path_.c_str(), &st) != 0) {
    const int error = errno;
    const std::string known = advice(path_);
    if (error == ENOENT && known.empty())
      throw RunError(
          in_sentences(fmt::format("{}: {}; name an output of `melflow run`", path_,
                                   no_such_file(path_, {".h5", ".hdf5", ".npy", ".ark"}))));
    throw RunError(fmt::format("{}: {}{}", path_,
                               error == ENOENT ? "there is no such file" : std::strerror(error),
                               known));
  }
  if (S_ISDIR(st.st_mode))
    throw RunError(path_ + ": this is a folder; name the .h5, .npy or .ark file in it");
  if (!S_ISREG(st.st_mode)) throw RunError(path_ + ": this is " + not_a_file(st.st_mode));
  if (const std::string rows = rows_of_index(path_); !rows.empty())
    throw RunError(fmt::format("{}: this is the index of {}; name that", path_, rows));
  file_bytes_ = static_cast<std::uint64_t>(st.st_size);
  if (path_.ends_with(kTarEnding))
    throw RunError(path_ +
                   ": rows in archives are read by webdataset or tarfile; what became of every "
                   "recording is in the .index.npy and .index.json beside it");
  const bool is_ark = path_.ends_with(kArkEnding);
  contents_ = is_ark          ? read_ark(path_, file_bytes_)
              : is_npy(path_) ? read_npy(path_, file_bytes_)
                              : read_h5(path_);
  try {
    check_contents(data());
  } catch (const RunError& e) {
    throw RunError(fmt::format("{}: this file is damaged: {}", path_, e.what()));
  }
}

NumberType FeatureFile::type() const {
  if (const auto type = number_type(dtype())) return *type;
  throw RunError(fmt::format("{}: this file has rows of type {}, which melflow does not know",
                             path_, dtype()));
}

RowPlaces FeatureFile::places() const {
  try {
    return contents_.rows->places();
  } catch (const RowsApart&) {
    throw;
  } catch (const RunError& e) {
    throw RunError(fmt::format("{}: this file is damaged: {}", path_, e.what()));
  }
}

std::string FeatureFile::flaw() const {
  if (!complete())
    return fmt::format(
        "{}: this file is not complete (its attribute 'complete' is {}, not 1): the run was "
        "ended; the same melflow run goes on with it",
        path_, integer("complete").value_or(0));
  if (hash().empty())
    return fmt::format(
        "{}: its index has no hash ({}), so that nothing tells whether it is what was written; "
        "copy it again, or rebuild it (overwrite: true)",
        path_, kIndexHash);
  if (!is_index_as_written())
    return fmt::format(
        "{}: this file is damaged: its index is not what was written "
        "({} is {}, not {}); copy it again, or rebuild it (overwrite: true)",
        path_, kIndexHash, index_hash(data()), hash());
  return {};
}

std::string FeatureFile::hash() const { return text(kIndexHash); }

bool FeatureFile::is_index_as_written() const { return hash() == index_hash(data()); }

std::shared_ptr<const FinishStep> FeatureFile::scaling_step(const Entry& entry) const {
  const auto& groups = statistics()->groups;
  return melflow::scaling_step(*statistics(),
                               groups ? groups->find(data().text_of(entry, groups->by)) : -1);
}

std::vector<std::byte> FeatureFile::read_stored(std::uint64_t offset, std::uint64_t count) const {
  if (count > rows() || offset > rows() - count)
    throw RunError(fmt::format("{}: {} rows from {} on are asked for, there are {}", path_, count,
                               offset, rows()));
  std::vector<std::byte> out(count * data().values_per_row() * size_of(type()));
  contents_.rows->read(offset, count, out.data());
  return out;
}

template <class Number>
std::vector<Number> FeatureFile::read_rows(std::uint64_t offset, std::uint64_t count) const {
  const std::vector<std::byte> stored = read_stored(offset, count);
  std::vector<Number> out(count * data().values_per_row());
  if (has_integers()) {
    integers_to(stored.data(), out.size(), type(), out.data());
  } else if constexpr (std::is_same_v<Number, float>) {
    to_float(stored.data(), out.size(), type(), out.data());
  } else {
    std::vector<float> floats(out.size());
    to_float(stored.data(), out.size(), type(), floats.data());
    std::copy(floats.begin(), floats.end(), out.begin());
  }
  return out;
}
template std::vector<float> FeatureFile::read_rows(std::uint64_t, std::uint64_t) const;
template std::vector<double> FeatureFile::read_rows(std::uint64_t, std::uint64_t) const;

std::vector<CorpusSource> FeatureFile::sources() const {
  std::vector<CorpusSource> out;
  if (text(kSources).empty()) return out;
  try {
    for (const StoredJson& source : parse_settings(text(kSources)))
      out.push_back({source.at("name").get<std::string>(), source.at("root").get<std::string>()});
  } catch (const StoredJson::exception&) {
    throw RunError(fmt::format(
        "{}: this file is damaged: what it says of its sources cannot be read", path()));
  }
  return out;
}

}  // namespace melflow
