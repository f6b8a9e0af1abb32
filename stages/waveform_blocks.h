// Converts samples to the blocks that cross an edge, and back, for tests of stages.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "pipeline/base/memory.h"
#include "stages/items.h"

namespace melflow {

/// A sample in memory: a 16-bit integer with full scale 32768, or a float with full scale 1.
template <class T>
concept SampleInMemory = std::is_same_v<T, float> || std::is_same_v<T, std::int16_t>;

/// Returns mono samples at `sample_rate` [Hz] as blocks of `block` samples (0: as one block).
template <SampleInMemory Sample>
std::vector<std::shared_ptr<const Waveform>> waveform(const std::vector<Sample>& samples,
                                                      int sample_rate, std::int64_t block = 0) {
  const auto count = static_cast<std::int64_t>(samples.size());
  if (block <= 0) block = std::max<std::int64_t>(1, count);
  BufferPool pool(std::size_t{1} << 30);
  std::vector<std::shared_ptr<const Waveform>> out;
  for (std::int64_t at = 0; at < count || at == 0; at += block) {
    const std::int64_t n = std::min(block, count - at);
    // Leases exactly the bytes needed, so that a sanitizer detects a read past the end.
    auto buffer =
        std::make_shared<Buffer>(pool.lease(static_cast<std::size_t>(n) * sizeof(Sample)));
    if (n > 0) std::memcpy(buffer->data(), samples.data() + at, buffer->size());
    auto w = std::make_shared<Waveform>();
    w->samples = {buffer, buffer->data(), n,
                  sizeof(Sample) == 2 ? SampleType::int16 : SampleType::float32};
    w->sample_rate = sample_rate;
    w->start = at;
    w->first = at == 0;
    w->last = at + n >= count;
    w->file = {sample_rate, at + n};
    out.push_back(std::move(w));
  }
  return out;
}

/// Returns the samples of all blocks. Throws std::runtime_error where the blocks do not follow each
/// other without a gap, or hold samples of another type.
template <SampleInMemory Sample>
std::vector<Sample> joined(const std::vector<std::shared_ptr<const Waveform>>& blocks) {
  std::vector<Sample> out;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const Waveform& w = *blocks[i];
    if (size_of(w.samples.type) != sizeof(Sample)) throw std::runtime_error("another sample type");
    if (w.start != static_cast<std::int64_t>(out.size())) throw std::runtime_error("a gap");
    if (w.first != (i == 0) || w.last != (i + 1 == blocks.size()))
      throw std::runtime_error("first or last is wrong");
    const auto* from = reinterpret_cast<const Sample*>(w.samples.data);
    out.insert(out.end(), from, from + w.samples.count);
  }
  return out;
}

}  // namespace melflow
