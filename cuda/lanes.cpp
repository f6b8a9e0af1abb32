#include "cuda/lanes.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "cuda/error.h"

namespace melflow::cuda {
namespace {

constexpr std::size_t kAlignment = 256;

std::size_t aligned(std::size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

double mib(std::size_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

}  // namespace

void Completions::post(void* tag) {
  {
    const std::lock_guard lock(mutex_);
    done_.push_back(tag);
  }
  came_.notify_one();
}

void Completions::wake() {
  {
    const std::lock_guard lock(mutex_);
    woken_ = true;
  }
  came_.notify_one();
}

bool Completions::wait(std::vector<void*>& done, double seconds) {
  std::unique_lock lock(mutex_);
  const bool came = came_.wait_for(lock, std::chrono::duration<double>(seconds),
                                   [this] { return woken_ || !done_.empty(); });
  woken_ = false;
  done.insert(done.end(), done_.begin(), done_.end());
  done_.clear();
  return came;
}

// ---- a lane -----------------------------------------------------------------------------------

LaneMemory::LaneMemory(Lanes& all, Gpu& on, std::size_t bytes, std::uint32_t most_frames)
    : lanes(all), gpu(on), sample_bytes(aligned(bytes)), frames(most_frames) {
  program = lanes.program_for(gpu, frames);
  const std::size_t in = samples_at() + sample_bytes;
  const std::size_t out = aligned(lanes.row_bytes(frames));
  const std::size_t more = aligned(program->mel->scratch_bytes());
  lanes.charge(gpu, in + out, in + out + more);
  pinned_ = in + out;
  device_ = in + out + more;
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
  const std::size_t wanted = has_pinned ? device_ : pinned_;
  release();
  throw CudaError(fmt::format(
      "{} memory: there is no room for the {:.1f} MiB of a batch; lower mel.accumulate.bytes or "
      "mel.streams",
      has_pinned ? "device" : "pinned", mib(wanted)));
}

LaneMemory::~LaneMemory() { release(); }

void LaneMemory::release() {
  for (std::byte* pinned : {host_in, host_out})
    if (pinned != nullptr) gpu.release_pinned(pinned);
  for (std::byte* device : {device_in, device_out, scratch})
    if (device != nullptr) gpu.release(device);
  lanes.refund(gpu, pinned_, device_);
}

std::size_t LaneMemory::samples_at() const {
  return header + aligned(frames * sizeof(std::uint32_t));
}

Lane::Lane(Lanes& lanes, Gpu& gpu) : lanes_(lanes), gpu_(gpu), stream_(gpu.make_stream()) {}

Lane::~Lane() { finish(); }

void Lane::reserve(std::size_t sample_bytes, std::uint32_t frames) {
  const std::size_t had_bytes = memory_ ? memory_->sample_bytes : 0;
  const std::uint32_t had_frames = memory_ ? memory_->frames : 0;
  if (memory_ && sample_bytes <= had_bytes && frames <= had_frames) return;
  // What there was goes back first: the limits are for one of them.
  recording_.reset();
  recorded_ = last_ = {};
  memory_.reset();
  memory_ = std::make_unique<LaneMemory>(lanes_, gpu_, std::max(sample_bytes, had_bytes),
                                         std::max(frames, had_frames));
}

// The whole way of a batch: what a recording holds, too.
void Lane::enqueue(const Size& size) {
  Stream& s = *stream_;
  const LaneMemory& m = *memory_;
  s.mark(0);
  s.copy_in(m.device_in, m.host_in, LaneMemory::header + size.frames * sizeof(std::uint32_t));
  s.copy_in(m.device_in + m.samples_at(), samples(), size.sample_bytes);
  s.mark(1);
  MelWork work;
  work.samples = m.device_in + m.samples_at();
  work.sample_type = size.type;
  work.offsets = reinterpret_cast<const std::uint32_t*>(m.device_in + LaneMemory::header);
  work.n_frames = reinterpret_cast<const std::uint32_t*>(m.device_in);
  work.capacity = size.frames;
  work.rows = m.device_out;
  work.scratch = m.scratch;
  {
    const std::lock_guard lock(m.program->mutex);
    s.mel(*m.program->mel, work);
  }
  s.mark(2);
  s.call(reach<Phase::computed>, this);
  s.mark(3);
  s.copy_out(m.host_out, m.device_out, lanes_.row_bytes(size.frames));
  s.mark(4);
  s.call(reach<Phase::copied_out>, this);
}

void Lane::submit(SampleType type, std::size_t sample_bytes, std::uint32_t frames) {
  note_times();
  std::memcpy(memory_->host_in, &frames, sizeof frames);
  const Size size{type, sample_bytes, frames};
  // A recording copies what it was made for, so what it is used for may not be much less.
  const auto fits = [](std::size_t wanted, std::size_t made) {
    return wanted <= made && wanted >= made - made / 10;
  };
  const bool is_recorded = recording_ && type == recorded_.type &&
                           fits(sample_bytes, recorded_.sample_bytes) &&
                           fits(frames, recorded_.frames);
  bool replays = is_recorded;
  if (!is_recorded && size == last_ && may_record_) {
    try {
      recording_ = stream_->record([&] { enqueue(size); });
      recorded_ = size;
      replays = true;
    } catch (const CudaError&) {
      // What cannot be recorded goes plainly.
      may_record_ = false;
    }
  }
  last_ = size;
  {
    const std::lock_guard lock(mutex_);
    phases_reached_ = 0;
    waiting_.clear();
  }
  try {
    if (replays)
      stream_->launch(*recording_);
    else
      enqueue(size);
  } catch (...) {
    // A part of it may have begun.
    is_broken_ = true;
    finish();
    throw;
  }
  has_times_ = true;
  ++times_.batches;
  if (replays) ++times_.replayed;
  times_.bytes_in += LaneMemory::header + frames * sizeof(std::uint32_t) + sample_bytes;
  times_.bytes_out += lanes_.row_bytes(frames);
}

void Lane::note_times() {
  if (!std::exchange(has_times_, false)) return;
  {
    // A batch that failed on the way has none.
    const std::lock_guard lock(mutex_);
    if (phases_reached_ < all_phases || is_broken_) return;
  }
  times_.copy_in += stream_->between(0, 1);
  times_.compute += stream_->between(1, 2);
  times_.copy_out += stream_->between(3, 4);
}

void Lane::when(Phase phase, Completions& to, void* tag) {
  {
    const std::lock_guard lock(mutex_);
    if (phases_reached_ <= static_cast<int>(phase)) {
      waiting_.push_back({phase, &to, tag});
      return;
    }
  }
  to.post(tag);
}

void Lane::check() {
  try {
    stream_->check();
  } catch (...) {
    is_broken_ = true;
    throw;
  }
}

void Lane::finish() noexcept {
  {
    const std::lock_guard lock(mutex_);
    waiting_.clear();
    if (phases_reached_ == all_phases) return;
  }
  try {
    stream_->wait();
  } catch (const std::exception&) {
    is_broken_ = true;  // nothing of it is under way any more
  }
  const std::lock_guard lock(mutex_);
  phases_reached_ = all_phases;
}

// Posts with the mutex held: once a tag is out, this lane may be somebody else's.
void Lane::reached(Phase phase) {
  const std::lock_guard lock(mutex_);
  phases_reached_ = static_cast<int>(phase) + 1;
  std::erase_if(waiting_, [phase](const Waiting& w) {
    if (w.phase > phase) return false;
    w.to->post(w.tag);
    return true;
  });
}

// ---- all of them ------------------------------------------------------------------------------

Lanes::Lanes(Gpus& gpus, std::shared_ptr<const MelPlan> plan, LaneSettings settings,
             std::size_t sample_bytes, std::uint32_t frames)
    : plan_(std::move(plan)), settings_(std::move(settings)) {
  for (const int index : settings_.devices) {
    Device device;
    device.gpu = gpus.open(index);
    device.index = index;
    infos_.push_back(device.gpu->info());
    devices_.push_back(std::move(device));
  }
  // A device with little memory gets fewer lanes, but one at least.
  for (int stream = 0; stream < settings_.streams; ++stream) {
    for (Device& device : devices_) {
      auto lane = std::make_unique<Lane>(*this, *device.gpu);
      try {
        lane->reserve(sample_bytes, frames);
      } catch (const CudaError&) {
        if (stream == 0) throw;
        continue;
      }
      lanes_.push_back(std::move(lane));
    }
  }
  for (auto& lane : lanes_) free_.push_back(lane.get());
  working_ = lanes_.size();
}

Lanes::~Lanes() = default;

std::size_t Lanes::row_bytes(std::uint32_t frames) const {
  return frames * size_of(settings_.kernel.rows) * static_cast<std::size_t>(plan_->columns());
}

Lanes::Lease Lanes::take() {
  std::unique_lock lock(mutex_);
  free_came_.wait(lock, [this] { return !free_.empty() || working_ == 0; });
  if (working_ == 0) throw CudaError("no device works any more");
  Lane* lane = free_.back();
  free_.pop_back();
  return {lane, [this](Lane* done) { give_back(done); }};
}

void Lanes::give_back(Lane* lane) {
  bool is_last = false;
  {
    const std::lock_guard lock(mutex_);
    if (lane->is_broken_)
      is_last = --working_ == 0;
    else
      free_.push_back(lane);
  }
  is_last ? free_came_.notify_all() : free_came_.notify_one();
}

Lanes::Device& Lanes::device_of(const Gpu& gpu) {
  return *std::find_if(devices_.begin(), devices_.end(),
                       [&gpu](const Device& d) { return d.gpu.get() == &gpu; });
}

std::shared_ptr<SharedProgram> Lanes::program_for(const Gpu& gpu, std::uint32_t frames) {
  const std::lock_guard lock(mutex_);
  Device& device = device_of(gpu);
  if (!device.program || device.program->most_frames < frames) {
    auto program = std::make_shared<SharedProgram>();
    program->mel = device.gpu->make_mel(*plan_, settings_.kernel, frames);
    program->most_frames = frames;
    device.program = std::move(program);
  }
  return device.program;
}

void Lanes::charge(const Gpu& gpu, std::size_t pinned, std::size_t device) {
  settings_.memory->charge(device_of(gpu).index, pinned, device);
}

void Lanes::refund(const Gpu& gpu, std::size_t pinned, std::size_t device) noexcept {
  settings_.memory->refund(device_of(gpu).index, pinned, device);
}

std::string Lanes::description() const {
  return devices_.front().program ? devices_.front().program->mel->description() : "";
}

LaneTimes Lanes::times() noexcept {
  LaneTimes sum;
  for (auto& lane : lanes_) {
    try {
      lane->note_times();
    } catch (const std::exception&) {
      lane->is_broken_ = true;
    }
    sum.copy_in += lane->times_.copy_in;
    sum.compute += lane->times_.compute;
    sum.copy_out += lane->times_.copy_out;
    sum.batches += lane->times_.batches;
    sum.replayed += lane->times_.replayed;
    sum.bytes_in += lane->times_.bytes_in;
    sum.bytes_out += lane->times_.bytes_out;
  }
  return sum;
}

}  // namespace melflow::cuda
