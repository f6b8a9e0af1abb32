// Puts samples into batches, in their order or shuffled.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "pipeline/base/memory.h"
#include "stages/output/training/batch_cut.h"
#include "stages/output/training/sample_batch.h"

namespace melflow {

/// A sample that lies elsewhere; valid for one call.
struct SampleView {
  struct Rows {
    const std::byte* data = nullptr;
    std::int64_t count = 1;  ///< 1 for a row of frames
  };
  std::vector<Rows> inputs;
  std::int64_t file = 0, offset = 0;
};

/// Not thread-safe.
class SampleBatcher {
 public:
  static constexpr std::size_t kComeForOne = 4;
  struct Settings {
    std::size_t size = 32;     ///< samples of a batch
    std::size_t max_rows = 0;  ///< by the first input, of a batch with its padding; 0: any number
    /// Of so many samples the next one is drawn; until so many are held, one leaves for every
    /// kComeForOne that come. 0: in their order.
    std::size_t shuffle = 0;
    std::size_t bucket = 0;  ///< of so many recordings those of similar length come together, by
                             ///< that of the first input, in batches that leave in any order
    /// The most bytes that `shuffle` and `bucket` each may hold, a bucket a batch at least: of long
    /// recordings they hold fewer. 0: any number.
    std::size_t held_bytes = 0;
    std::uint64_t seed = 0, epoch = 0;
    std::uint64_t skip = 0;  ///< the first samples that are not given; of buckets in whole batches
    bool drop_last = false;  ///< no batch that is not full
    bool is_ragged = false;  ///< a sample is a recording
    NumberType type = NumberType::float32;
    std::shared_ptr<BufferPool> pool;  ///< null: one of its own
    /// Of each input: [frames, columns], [columns], ...
    std::vector<std::vector<std::size_t>> row_shapes;
  };
  /// False from `give`: no more batches are wanted.
  using Give = std::function<bool(SampleBatch)>;
  SampleBatcher(Settings settings, Give give);

  /// False: no more batches are wanted.
  [[nodiscard]] bool add(const SampleView& sample);
  /// No more samples come.
  void end();
  /// How many were not given since they are to be skipped.
  [[nodiscard]] std::uint64_t passed_over() const { return passed_over_; }
  /// What `shuffle` and `bucket` hold now, as the pool rounds it.
  [[nodiscard]] std::size_t held_bytes() const { return shuffled_.bytes + bucket_.bytes; }
  /// How many were held when `held_bytes` first kept them from being as many as `shuffle` and
  /// `bucket` say; 0: it did not.
  [[nodiscard]] std::size_t most_shuffled() const { return shuffled_.most; }
  [[nodiscard]] std::size_t most_in_bucket() const { return bucket_.most; }

 private:
  struct Held {
    std::vector<Buffer> data;  // behind what is seen
    SampleView view;
    std::size_t bytes = 0;
    [[nodiscard]] std::int64_t rows() const { return view.inputs.front().count; }
  };
  struct Store {
    std::vector<Held> held;
    std::size_t bytes = 0;
    std::size_t most = 0;  // that fitted when one first did not
  };
  [[nodiscard]] std::size_t bytes_of(std::size_t input, std::int64_t rows) const {
    return static_cast<std::size_t>(rows) * row_bytes_[input];
  }
  [[nodiscard]] std::size_t memory_of(const SampleView& sample) const;
  [[nodiscard]] bool has_room(const Store& store, std::size_t bytes) const;
  [[nodiscard]] Held hold(const SampleView& sample, BufferPool& pool);
  void hold_in(Store& store, const SampleView& sample);
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
  std::vector<std::size_t> row_bytes_;  // of each input
  BatchLimits limits_;
  Draws draws_;
  std::shared_ptr<BufferPool> pool_, held_pool_;
  Store shuffled_;
  std::size_t came_ = 0;  // before it was full
  Store bucket_;
  std::size_t arrived_ = 0;       // in the bucket since it gave batches
  std::vector<Held> recordings_;  // of the batch
  SampleBatch batch_;             // of rows
  std::uint64_t passed_over_ = 0;
  bool is_wanted_ = true;
};

}  // namespace melflow
