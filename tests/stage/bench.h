// StageRunner with options in YAML, as a configuration has them.
#pragma once

#include <string>

#include "pipeline/run/stage_runner.h"
#include "stages/items.h"
#include "stages/waveform_blocks.h"

namespace melflow::test {

class Bench : public StageRunner {
 public:
  /// `options` is a YAML map: "{rate: 16000}". Throws ConfigError when the options are wrong.
  explicit Bench(const std::string& stage, const std::string& options = "{}");
};

/// The buffer that owns samples which are not in a store or a file's bytes.
inline const Buffer& buffer_of(const Samples& samples) {
  return *static_cast<const Buffer*>(samples.owner.get());
}

}  // namespace melflow::test
