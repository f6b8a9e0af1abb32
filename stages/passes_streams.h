// An interface of stages that samples can pass as they come.
#pragma once

#include <string>

namespace melflow {

/// A stage that samples can pass without the rest of their recording (stages/streaming).
class PassesStreams {
 public:
  virtual ~PassesStreams() = default;
  /// Returns why they cannot with these options, from the option's name on; "" if they can.
  [[nodiscard]] virtual std::string why_no_stream() const = 0;
};

}  // namespace melflow
