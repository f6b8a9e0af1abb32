// A manifest stored as a file, which can be read as a whole or in ranges. Lines of JSON:
//
//   {"root": ..., "files": 3, "labels": [...], "splits": [...], "targets": [...], "texts": [...],
//    "several_labels": false, "spans": "seconds",                     spans: only with utterances
//    "sources": [{"name": "train", "root": ...}, ...]}                only of several sources
//   {"path": "a/b.wav", "size": 80044, "modified": 1700000000123456789, "source": 0,
//    "label": 0, "split": 1, "targets": [0.5, null], "texts": ["ann"], "start": 1.5, "end": 2,
//    "duration": 4}                                       duration: by the list, of the recording
//
// A line has only the fields that its file has; labels and splits are numbers of the whole corpus.
// A text that is not UTF-8 is {"hex": "ff61"}.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "stages/corpus/frozen_corpus.h"
#include "stages/manifest.h"

namespace melflow {

/// Files [first, end) of a manifest, and their lines in its file.
struct ManifestRange {
  std::size_t first = 0, end = 0;
  std::uint64_t at = 0, bytes = 0;  ///< where the lines begin, and how long they are
  std::uint64_t hash = 0;           ///< XXH3 of the lines
};

/// Writes a new file. `ranges` cover all files in order; fills in the position, length and hash of
/// the lines of each. Throws RunError.
void write_manifest(const std::string& path, const Manifest& manifest,
                    std::span<const FileStamp> stamps, std::span<ManifestRange> ranges);

/// Reads these ranges, which must follow each other. Throws RunError when the file cannot be read,
/// or their lines differ from what was written.
FrozenCorpus read_manifest(const std::string& path, std::span<const ManifestRange> ranges);

}  // namespace melflow
