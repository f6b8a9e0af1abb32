// The front end that a model's file stands for: nodes with plain values, and where each is from.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "pipeline/base/value.h"

namespace melflow {

struct ModelFrontEnd {
  struct Option {
    std::string name;
    Value value;         ///< with the place in the file, for messages
    std::string source;  ///< "feature_size, line 5"; "feature_size of the class"; "": the class
  };
  struct Node {
    std::string stage;
    std::vector<Option> options;
    [[nodiscard]] const Value* find(std::string_view option) const;
  };

  std::vector<Node> nodes;  ///< in the order of the data
  /// What the class takes of a recording ("30s"), longer ones are cut and shorter ones filled with
  /// zeros; "": all of it. In a pipeline that cuts recordings it is the length of a window.
  Option window;
  std::size_t window_at = 0;      ///< the number of the node that takes what a segment gives
  std::string title;              ///< "WhisperFeatureExtractor of transformers 5.24.0"
  std::string file;               ///< as the user named it
  std::string hash;               ///< of the bytes that were read, "xxh3 0123..."
  std::vector<std::string> said;  ///< what is assumed, as no file tells it
  Option resampling;  ///< `length` of a resample as by the library's reading of files; or no name

  /// The node that makes rows: mel or samples.
  [[nodiscard]] const Node& main() const;
  [[nodiscard]] int sample_rate() const;
};

}  // namespace melflow
