// What a list says of a recording's audio, which may not be so.
#pragma once

namespace melflow {

struct DeclaredAudio {
  double seconds = 0, rate = 0;  ///< rate: [Hz]; 0: it does not say so
  [[nodiscard]] bool is_empty() const { return seconds <= 0 && rate <= 0; }
  friend bool operator==(const DeclaredAudio&, const DeclaredAudio&) = default;
};

}  // namespace melflow
