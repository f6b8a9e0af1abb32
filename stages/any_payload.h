// The traits of a stage that takes every payload of an audio graph (PassesAny).
#pragma once

#include <vector>

#include "pipeline/stage/stage.h"
#include "stages/items.h"

namespace melflow {

/// Stands for any of them in the traits of a stage.
struct AnyPayload {
  static constexpr const char* kName = "anything";
};

/// The ports that such a stage knows. What is on its way over a device is not among them: it holds
/// a place there.
inline std::vector<PortType> any_payload_ports() {
  return {port_type<FileRef>(), port_type<RawBytes>(), port_type<Waveform>(),
          port_type<Windows>(), port_type<Batch>(),    port_type<MelBatch>()};
}

}  // namespace melflow
