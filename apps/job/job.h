// A job: a corpus that is computed in parts, by any number of programs that share only a folder of
// plain files. docs/clusters.md describes the folder.
//
//   job.json          the plan; written last, so it exists only when the rest of the plan does
//   pipeline.yaml     the pipeline, without variables
//   manifest.jsonl    every file (stages/corpus/manifest_file.h)
//   parts/0007.h5     a complete part
//   done/0007.json    says that the part is complete, and describes its contents
//   failed/0007.json  why the last try of a part failed
//   claims/, work/    which worker has which part (claims.h), and incomplete parts
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/load.h"
#include "stages/corpus/manifest_file.h"
#include "stages/output/rows/row_statistics.h"
#include "stages/output/run_journal.h"

namespace melflow {

struct JobPart : ManifestRange {
  std::uint64_t audio_bytes = 0;  ///< of the part's files
};

struct Job {
  std::string folder;                ///< the job's folder, as an absolute path
  std::string id;                    ///< a hash of the whole plan
  std::string working_folder;        ///< relative paths of the pipeline start here
  std::string sink;                  ///< the node that writes
  std::string config;                ///< JSON: the configuration as the output stores it
  RunJournal::Facts row_facts;       ///< everything that determines the bytes of rows
  std::vector<std::string> remarks;  ///< about the corpus as a whole
  std::vector<JobPart> parts;

  /// Reads job.json. Throws RunError when it is missing or does not match its hash.
  static Job read(const std::string& folder);
  /// Writes job.json; `id` becomes a hash of it and of the other files. Throws RunError.
  void write();

  [[nodiscard]] std::size_t files() const { return parts.empty() ? 0 : parts.back().end; }
  [[nodiscard]] std::uint64_t audio_bytes() const;
  /// "0007"
  [[nodiscard]] std::string name(std::size_t part) const;
  [[nodiscard]] std::string in(const std::string& name) const { return folder + "/" + name; }
  [[nodiscard]] std::string part_path(std::size_t part) const {
    return in("parts/" + name(part) + ".h5");
  }
  [[nodiscard]] std::string done_path(std::size_t part) const {
    return in("done/" + name(part) + ".json");
  }
  [[nodiscard]] std::string failed_path(std::size_t part) const {
    return in("failed/" + name(part) + ".json");
  }

  /// Makes the run plan of the job's pipeline, with the configuration that the job stored; `output`
  /// is written in place of the pipeline's unless "". The program has to be in the working folder.
  /// Throws ConfigError and RunError.
  [[nodiscard]] Plan load(const LoadOptions& given, const std::string& output = "") const;
  /// Changes to the working folder. Throws RunError.
  void enter_working_folder() const;
};

inline constexpr const char* kJobPipeline = "pipeline.yaml";
inline constexpr const char* kJobFolders[] = {"parts",  "done",    "failed",
                                              "claims", "workers", "work"};
inline constexpr const char* kJobManifest = "manifest.jsonl";

/// The record done/0007.json: says that a part is complete, and describes its contents.
struct PartRecord {
  std::size_t ok = 0, skipped = 0, failed = 0;  ///< files
  std::int64_t rows = 0;
  std::uint64_t bytes = 0, hash = 0;     ///< of parts/0007.h5; hash: XXH3 of the whole file
  std::optional<ColumnSums::Text> sums;  ///< if the output has statistics
  std::string worker;
  double seconds = 0;

  /// Reads the record, if there is one. Throws RunError when it is damaged or of another plan.
  static std::optional<PartRecord> read(const Job& job, std::size_t part);
  /// Writes the record. Throws RunError.
  void write(const Job& job, std::size_t part) const;
};

}  // namespace melflow
