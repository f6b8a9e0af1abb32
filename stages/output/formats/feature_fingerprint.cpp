#include "stages/output/formats/feature_fingerprint.h"

#include <xxhash.h>

#include <fmt/format.h>

namespace melflow {

std::string feature_fingerprint(const Value& features) {
  const std::string text = to_json(features);
  const XXH128_hash_t h = XXH3_128bits(text.data(), text.size());
  return fmt::format("{:016x}{:016x}", h.high64, h.low64);
}

}  // namespace melflow
