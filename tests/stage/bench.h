// A StageRunner that takes options as YAML, like a configuration.
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

/// Returns the buffer that owns samples which are neither in a store nor a file's bytes.
inline const Buffer& buffer_of(const Samples& samples) {
  return *static_cast<const Buffer*>(samples.owner.get());
}

}  // namespace melflow::test
