// What `melflow check` says, as one JSON document, as text and as a table.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/check/findings.h"
#include "apps/duplicates/groups.h"
#include "stages/output/formats/feature_file.h"

namespace melflow {

struct DocumentOptions {
  std::string profile;
  std::vector<std::string> by = {};   ///< groupings()
  std::size_t worst = 10;             ///< recordings listed of each check
  std::size_t clips = 0;              ///< those of them that come with a stretch to hear
  const Duplicates* alike = nullptr;  ///< what sounds alike; null where nobody has looked
  std::size_t pairs = 0;  ///< of these, the worst ones, to hear where clips are; 0: all, unheard
  std::vector<Verdict> expected = {};  ///< verdict_on_recordings(), where something is expected
  std::size_t clip_bytes = 0;          ///< of all of these together
  /// The path by which a recording is read, by its number; for clips.
  std::function<std::string(std::size_t)> path_of = {};
};

/// By what the recordings are grouped: label, split and the column speaker, where they are there,
/// and `by`. Throws ConfigError where there is no such column.
std::vector<std::string> groupings(const FeatureFile& output, const std::vector<std::string>& by);

/// What is wrong, by check, by group and in all, and how each measure is distributed.
nlohmann::ordered_json check_json(const FeatureFile& output, const CheckedCorpus& checked,
                                  const std::vector<Criterion>& wanted,
                                  const DocumentOptions& options);

/// As printed. `alike` may be null.
std::string check_text(const FeatureFile& output, const CheckedCorpus& checked,
                       const Duplicates* alike);

/// A line for each recording: what is known of it, every measure, its group where `alike` is not
/// null, and the checks that it fails.
std::string check_csv(const FeatureFile& output, const CheckedCorpus& checked,
                      const Duplicates* alike);

/// A page for a browser that shows the document.
std::string check_page(const nlohmann::ordered_json& document);

}  // namespace melflow
