// Puts samples into batches, in their order or shuffled.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "pipeline/base/memory.h"
#include "stages/training/batch_cut.h"
#include "stages/training/sample_batch.h"

namespace melflow {

/// A sample whose memory is owned elsewhere; valid for one call.
struct SampleView {
  struct Rows {
    const std::byte* data = nullptr;
    std::int64_t count = 1;  ///< 1 for a row of frames
  };
  std::vector<Rows> inputs;
  std::int64_t file = 0, offset = 0, result_offset = 0;
  std::shared_ptr<const SubItem> result = nullptr;
};

/// Not thread-safe.
class SampleBatcher {
 public:
  static constexpr std::size_t kComeForOne = 4;
  struct Settings {
    std::size_t size = 32;     ///< samples of a batch
    std::size_t max_rows = 0;  ///< of a batch with its padding, by the first input; 0: any number
    /// The number of held samples from which the next one is drawn; until so many are held, one
    /// leaves for every kComeForOne that come. 0: samples stay in order.
    std::size_t shuffle = 0;
    std::size_t bucket = 0;  ///< number of recordings that are grouped by similar length, that of
                             ///< the first input, into batches that leave in any order
    /// The most bytes that `shuffle` and `bucket` may each hold, though a bucket holds at least a
    /// batch: of long recordings they hold fewer. 0: any number.
    std::size_t held_bytes = 0;
    std::uint64_t seed = 0, epoch = 0;
    std::uint64_t skip = 0;  ///< number of first samples to leave out; of buckets in whole batches
    bool drop_last = false;  ///< drop a batch that is not full
    bool is_ragged = false;  ///< a sample is a recording
    std::shared_ptr<BufferPool> pool;  ///< null: the batcher has its own
    /// By input: [frames, columns], [columns], ...
    std::vector<std::vector<std::size_t>> row_shapes;
    std::vector<NumberType> types = {};  ///< likewise; float32 for inputs without one

    [[nodiscard]] NumberType type_of(std::size_t input) const {
      return input < types.size() ? types[input] : NumberType::float32;
    }
  };
  /// Takes a batch; returns false when no more are wanted.
  using Give = std::function<bool(SampleBatch)>;
  SampleBatcher(Settings settings, Give give);

  /// Returns false when no more batches are wanted.
  [[nodiscard]] bool add(const SampleView& sample);
  /// Notes that no more samples come.
  void end();
  /// The number of samples left out because of `skip`.
  [[nodiscard]] std::uint64_t passed_over() const { return passed_over_; }
  /// The memory [bytes] that `shuffle` and `bucket` hold now, as the pool rounds it.
  [[nodiscard]] std::size_t held_bytes() const { return in_shuffled_.bytes + in_bucket_.bytes; }
  /// The number held when `held_bytes` first kept them below what `shuffle` and `bucket` say; 0:
  /// never.
  [[nodiscard]] std::size_t most_shuffled() const { return in_shuffled_.most; }
  [[nodiscard]] std::size_t most_in_bucket() const { return in_bucket_.most; }

 private:
  struct Held {
    std::vector<Buffer> data;  // the memory that `view` points to
    SampleView view;
    std::size_t bytes = 0;
    [[nodiscard]] std::int64_t rows() const { return view.inputs.front().count; }
  };
  struct Memory {
    std::size_t bytes = 0;
    std::size_t most = 0;  // number held when one first did not fit
  };
  [[nodiscard]] std::size_t bytes_of(std::size_t input, std::int64_t rows) const {
    return static_cast<std::size_t>(rows) * row_bytes_[input];
  }
  [[nodiscard]] std::size_t memory_of(const SampleView& sample) const;
  [[nodiscard]] bool has_room(const Memory& memory, std::size_t bytes) const;
  [[nodiscard]] Held hold(const SampleView& sample, BufferPool& pool);
  [[nodiscard]] bool draw();
  [[nodiscard]] bool place(const SampleView& sample);
  [[nodiscard]] bool place_row(const SampleView& sample);
  [[nodiscard]] bool place_recording(const SampleView& sample);
  [[nodiscard]] bool put_in_bucket(const SampleView& sample);
  [[nodiscard]] bool give_bucket(bool is_last);
  void begin();
  [[nodiscard]] bool give();
  [[nodiscard]] bool give_recordings();
  [[nodiscard]] SampleBatch::Rows padded(std::size_t input);

  Settings settings_;
  Give give_;
  std::vector<std::size_t> row_bytes_;  // by input
  BatchLimits limits_;
  Draws draws_;
  std::shared_ptr<BufferPool> pool_, held_pool_;
  std::vector<Held> shuffled_;
  Memory in_shuffled_, in_bucket_;
  std::size_t came_ = 0;  // samples that came before it was full
  Bucket<Held> bucket_;
  std::vector<Held> recordings_;  // of the present batch
  SampleBatch batch_;             // the present batch of rows
  std::uint64_t passed_over_ = 0;
  bool is_wanted_ = true;
};

}  // namespace melflow
