#include "cuda/slot.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "cuda/error.h"
#include "cuda/slot_device.h"

namespace melflow::cuda {
namespace {

constexpr std::size_t kAlignment = 256;

std::size_t aligned(std::size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

double mib(std::size_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

}  // namespace

// ---- Memory -----------------------------------------------------------------------------------

std::size_t SlotMemory::offsets_at(std::size_t sample_bytes) {
  return header + (sample_bytes + 3) / 4 * 4;
}

std::size_t SlotMemory::bytes_in(const SlotSize& size) {
  return aligned(offsets_at(size.sample_bytes) + size.frames * sizeof(std::uint32_t));
}

std::size_t SlotMemory::bytes_out(const SlotSize& size, std::size_t bytes_of_frame) {
  return aligned(size.frames * bytes_of_frame);
}

SlotMemory::SlotMemory(SlotDevice& device, const SlotSize& size) : device_(device) {
  const std::size_t in = bytes_in(size);
  const std::size_t out = bytes_out(size, device.row_bytes(1));
  const std::size_t more = aligned(device.program_->scratch_bytes());
  device.settings_.memory->charge(device.info_.index, in + out, in + out + more);
  pinned_bytes_ = in + out;
  device_bytes_ = in + out + more;
  Gpu& gpu = *device.gpu_;
  try {
    host_in = static_cast<std::byte*>(gpu.allocate_pinned(in));
    host_out = static_cast<std::byte*>(gpu.allocate_pinned(out));
    device_in = static_cast<std::byte*>(gpu.allocate(in));
    device_out = static_cast<std::byte*>(gpu.allocate(out));
    if (more > 0) scratch = static_cast<std::byte*>(gpu.allocate(more));
  } catch (...) {
    release();
    throw;
  }
  const bool has_pinned = host_in != nullptr && host_out != nullptr;
  const bool has_device =
      device_in != nullptr && device_out != nullptr && (scratch != nullptr || more == 0);
  if (has_pinned && has_device) return;
  const std::size_t wanted = has_pinned ? device_bytes_ : pinned_bytes_;
  release();
  throw CudaError(fmt::format(
      "{} memory: there is no room for the {:.1f} MiB of a batch; lower mel.accumulate.bytes or "
      "mel.slots",
      has_pinned ? "device" : "pinned", mib(wanted)));
}

SlotMemory::~SlotMemory() { release(); }

void SlotMemory::release() {
  Gpu& gpu = *device_.gpu_;
  for (std::byte* pinned : {host_in, host_out})
    if (pinned != nullptr) gpu.release_pinned(pinned);
  for (std::byte* device : {device_in, device_out, scratch})
    if (device != nullptr) gpu.release(device);
  device_.settings_.memory->refund(device_.info_.index, pinned_bytes_, device_bytes_);
}

// ---- A slot -----------------------------------------------------------------------------------

Slot::Slot(SlotDevice& device, const SlotSize& size)
    : device_(device),
      size_(size),
      memory_(device, size),
      stream_(device.gpu_->make_stream()),
      may_record_(device.settings_.graphs) {}

Slot::~Slot() { finish(); }

// Enqueues all steps of a batch, directly or into a recording.
void Slot::enqueue(const Batch& batch) {
  Stream& s = *stream_;
  const SlotMemory& m = memory_;
  s.mark(0);
  const std::size_t offsets_at = SlotMemory::offsets_at(batch.sample_bytes);
  s.copy_in(m.device_in, m.host_in, offsets_at + batch.frames * sizeof(std::uint32_t));
  s.mark(1);
  MelWork work;
  work.samples = m.device_in + SlotMemory::header;
  work.sample_type = batch.type;
  work.offsets = reinterpret_cast<const std::uint32_t*>(m.device_in + offsets_at);
  work.n_frames = reinterpret_cast<const std::uint32_t*>(m.device_in);
  work.capacity = batch.frames;
  work.rows = m.device_out;
  work.scratch = m.scratch;
  {
    const std::lock_guard lock(device_.program_mutex_);
    s.mel(*device_.program_, work);
  }
  s.mark(2);
  s.copy_out(m.host_out, m.device_out, device_.row_bytes(batch.frames));
  s.mark(3);
  s.call([](void* slot) { static_cast<Slot*>(slot)->done(); }, this);
}

// A recorded graph copies the size that it was recorded with, so it is used only for batches of
// nearly that size.
bool Slot::is_recorded(const Batch& batch) const {
  const auto fits = [](std::size_t wanted, std::size_t made) {
    return wanted <= made && wanted >= made - made / 10;
  };
  return recording_ && batch.type == recorded_.type &&
         fits(batch.sample_bytes, recorded_.sample_bytes) && fits(batch.frames, recorded_.frames);
}

void Slot::record_again(const Batch& batch) {
  try {
    recording_ = stream_->record([&] { enqueue(batch); });
    recorded_ = batch;
  } catch (const CudaError&) {
    // Work that cannot be recorded is enqueued directly.
    recording_.reset();
    may_record_ = false;
  }
}

bool Slot::replay() {
  try {
    stream_->launch(*recording_);
    return true;
  } catch (const CudaError&) {
    // A recording is enqueued as a whole or not at all.
    recording_.reset();
    may_record_ = false;
    return false;
  }
}

void Slot::submit(SampleType type, std::size_t sample_bytes, std::uint32_t frames,
                  std::size_t files) {
  const Batch batch{type, sample_bytes, frames};
  bool replays = false;
  bool has_begun = false;
  try {
    device_.check();
    if (sample_bytes > size_.sample_bytes || frames > size_.frames)
      throw CudaError(fmt::format("a batch of {} bytes and {} frames, in a slot for {} and {}",
                                  sample_bytes, frames, size_.sample_bytes, size_.frames));
    note_times();
    std::memcpy(memory_.host_in, &frames, sizeof frames);
    if (may_record_ && batch == last_ && !is_recorded(batch)) record_again(batch);
    last_ = batch;
    {
      const std::lock_guard lock(mutex_);
      is_under_way_ = true;
      notices_.clear();
    }
    device_.begun();
    has_begun = true;
    std::size_t behind = size_.sample_bytes;
    const auto put_offsets_behind = [&](std::size_t bytes) {
      std::memmove(offsets_behind(bytes), offsets_behind(behind), frames * sizeof(std::uint32_t));
      behind = bytes;
    };
    if (is_recorded(batch)) {
      put_offsets_behind(recorded_.sample_bytes);  // it copies as much as it was recorded with
      replays = replay();
    }
    if (!replays) {
      put_offsets_behind(sample_bytes);
      enqueue(batch);
    }
  } catch (const std::exception& e) {
    // A part of the batch may have begun.
    device_.put_out(e.what());
    if (has_begun) device_.ended();
    finish();
    throw;
  }
  has_times_ = true;
  const std::lock_guard lock(device_.mutex_);
  SlotTimes& sum = device_.times_;
  ++sum.batches;
  if (replays) ++sum.replayed;
  sum.files += files;
  sum.frames += frames;
  sum.bytes_in += SlotMemory::offsets_at(sample_bytes) + frames * sizeof(std::uint32_t);
  sum.bytes_out += device_.row_bytes(frames);
}

void Slot::note_times() {
  if (!std::exchange(has_times_, false)) return;
  {
    // A batch that failed has no times.
    const std::lock_guard lock(mutex_);
    if (is_under_way_ || device_.is_out()) return;
  }
  const double in = stream_->between(0, 1);
  const double compute = stream_->between(1, 2);
  const double out = stream_->between(2, 3);
  const std::lock_guard lock(device_.mutex_);
  device_.times_.copy_in += in;
  device_.times_.compute += compute;
  device_.times_.copy_out += out;
}

void Slot::when_done(Completions& to, void* tag) {
  {
    const std::lock_guard lock(mutex_);
    if (is_under_way_) {
      notices_.push_back({&to, tag});
      return;
    }
  }
  to.post(tag);
}

void Slot::check() {
  device_.check();
  try {
    stream_->check();
  } catch (const std::exception& e) {
    device_.put_out(e.what());
    throw;
  }
}

// A device calls back when a batch is done. A broken or hung one does not, so devices are also
// polled.
void Slot::wait() {
  std::unique_lock lock(mutex_);
  while (is_under_way_) {
    lock.unlock();
    check();
    lock.lock();
    if (is_under_way_) changed_.wait_for(lock, std::chrono::milliseconds(100));
  }
}

void Slot::finish() noexcept {
  {
    const std::lock_guard lock(mutex_);
    notices_.clear();
  }
  try {
    if (!device_.is_out()) wait();
  } catch (const std::exception&) {  // the device is out now
  }
  const std::lock_guard lock(mutex_);
  is_under_way_ = false;
}

// Posts with the mutex held: once a tag is posted, another caller may take this slot.
void Slot::done() {
  device_.ended();
  const std::lock_guard lock(mutex_);
  is_under_way_ = false;
  for (const Notice& notice : notices_) notice.to->post(notice.tag);
  notices_.clear();
  changed_.notify_all();
}

}  // namespace melflow::cuda
