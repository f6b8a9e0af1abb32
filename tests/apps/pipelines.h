// Pipelines that several of these tests run.
#pragma once

#include <string>

#include <fmt/format.h>

#include "tests/apps/process.h"

namespace melflow::test {

/// Returns lines up to a node `mel`; `files` and `mel`: their options.
inline std::string nodes_to_mel(const std::string& files, const std::string& mel) {
  return fmt::format(R"(version: 1
graph:
  files: {{stage: file_list, {}}}
  read: {{stage: disk_read, from: files}}
  decode: {{stage: decode, from: read}}
  segment: {{stage: segment, from: decode}}
  batch: {{stage: batch, from: segment}}
  mel: {{stage: mel, from: batch, {}}}
)",
                     files, mel);
}

/// Writes a pipeline of `count` items through the toy program's stages into toy.out.
inline void write_toy(const TempFolder& folder, int count, const std::string& name = "toy.yaml") {
  write_text(folder / name, fmt::format(R"(version: 1
workers: 2
graph:
  files: {{stage: toy_count, count: {}}}
  work: {{stage: toy_work, from: files}}
  end: {{stage: toy_keep, from: work, path: toy.out}}
)",
                                        count));
}

struct Toy : TempFolder {
  explicit Toy(int count) { write_toy(*this, count); }
};

}  // namespace melflow::test
