// Shards of WebDataset: tar archives in which rows of a recording lie beside what is known of it.
//
//   NAME.json   path, label or labels, split, targets, columns, rows, sample_rate, duration,
//               feature_fingerprint, and for one of several results its entry in the index
//   NAME.txt    its column `text`, if any; NAME.cls the number of its label, if any
//   NAME.npy    its rows
//
// Headers are POSIX's (pax, IEEE 1003.1-2001), without time and owner: the same rows are the same
// bytes. The index of all recordings is that of npy_layout.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stages/output/formats/feature_data.h"
#include "stages/output/formats/framed_rows.h"
#include "stages/output/formats/npy_layout.h"
#include "stages/output/formats/row_part_file.h"

namespace melflow {

constexpr const char* kTarEnding = ".tar";

/// The paths that "a-{000..127}.tar" stands for; without braces the path itself. Throws RunError
/// for braces without two numbers of as many digits, ascending, and for more than 4096 paths.
std::vector<std::string> shard_paths(const std::string& path);
/// The header of a member, its name and size [bytes] of any length.
std::string tar_header(std::string_view name, std::uint64_t size);

/// The bytes around the rows of recordings in an archive. `about`: the names of labels, splits,
/// targets and columns, the shape of all rows, and the fingerprint; must outlive this object.
class TarMembers {
 public:
  TarMembers(const FeatureData& about, NumberType type) : about_(about), type_(type) {}
  /// Everything that lies before the rows.
  [[nodiscard]] std::string before(const FeatureData::Entry& recording, const NamedRows& of) const;
  /// The zeros that fill up the last block of the rows.
  [[nodiscard]] std::string after(const NamedRows& of) const;
  /// What ends an archive.
  [[nodiscard]] static std::string end();

 private:
  [[nodiscard]] std::string json(const FeatureData::Entry& recording, const NamedRows& of) const;
  [[nodiscard]] std::uint64_t bytes_with_header(const NamedRows& of) const;

  const FeatureData& about_;
  NumberType type_;
};

class TarShards final : public RowPartFile {
 public:
  /// The paths of all files, the first shard first.
  static std::vector<std::string> files_of(const std::string& path);

  /// `names`: of the recordings of the run. Throws RunError as PartFile does, for any of the files.
  TarShards(const std::string& path, NumberType type, std::size_t values_per_row,
            const Opening& opening, std::shared_ptr<const std::vector<std::string>> names,
            std::string fingerprint);

  /// Completes all files; after a stopped run only the index, since a later run goes on with the
  /// rows. Throws RunError, also where rows read back are not those written.
  void make_shards(std::span<const std::uint64_t> shape, const OutputIndex& index);
  [[nodiscard]] std::vector<PartFile*> parts() override;

 private:
  std::shared_ptr<const std::vector<std::string>> names_;
  std::string fingerprint_;
  NpyIndexFiles index_;
  std::vector<std::unique_ptr<PartFile>> files_;  // all shards but the first
};

}  // namespace melflow
