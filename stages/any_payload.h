// The traits of a stage that takes every payload of an audio graph (PassesAny).
#pragma once

#include <vector>

#include "pipeline/stage/stage.h"
#include "stages/items.h"

namespace melflow {

/// Stands for any payload type in the traits of a stage.
struct AnyPayload {
  static constexpr const char* kName = "anything";
};

/// The ports of a stage that takes any payload. Payloads that are in flight on a device are not
/// among them, because each holds a slot there.
inline std::vector<PortType> any_payload_ports() {
  return {port_type<FileRef>(), port_type<RawBytes>(), port_type<Waveform>(),
          port_type<Windows>(), port_type<Batch>(),    port_type<MelBatch>()};
}

}  // namespace melflow
