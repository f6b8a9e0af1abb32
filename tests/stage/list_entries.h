// What a file list has listed, as texts, for the tests of lists of corpora.
#pragma once

#include <string>
#include <vector>

#include "pipeline/base/problem.h"
#include "tests/stage/listed_files.h"
#include "tests/support/temp_folder.h"

namespace melflow::test {

using Texts = std::vector<std::string>;

/// Returns "split: path=label|text|...", by entry; behind a path in brackets why it fails.
inline Texts entries(List& list) {
  Texts out;
  const Manifest& m = list.manifest();
  for (std::size_t i = 0; i < m.size(); ++i) {
    std::string& line = out.emplace_back(list.split_of(i) + ": " + m.name(i));
    if (!m.problem(i).empty()) line += " [" + std::string(m.problem(i)) + "]";
    std::string labels;
    for (const std::int32_t l : m.labels(i))
      labels += (labels.empty() ? "=" : ",") + m.label_names()[static_cast<std::size_t>(l)];
    line += labels;
    for (std::size_t t = 0; t < m.text_names().size(); ++t) line.append("|").append(m.text(i, t));
  }
  return out;
}

/// Returns the warnings, but that the made-up files are not there.
inline Texts warnings(List& list) {
  Texts out;
  for (const std::string& warning : list.warnings())
    if (warning.find("its first file") == warning.npos) out.push_back(warning);
  return out;
}

/// Returns options, with the folder for @.
inline std::string of(const TempFolder& folder, std::string options) {
  for (std::size_t at; (at = options.find('@')) != options.npos;)
    options.replace(at, 1, folder.path());
  return "{" + options + "}";
}

/// Returns why the options are refused, by themselves or with the corpus; the folder is @.
inline std::string refusal(const TempFolder& folder, const std::string& options) {
  try {
    return complaint(folder, of(folder, options));
  } catch (const ConfigError& e) {
    return e.what();
  }
}

}  // namespace melflow::test
