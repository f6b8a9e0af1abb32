// From the host's memory through a device and back, as a run does it: cuda::Lanes.
//
// link    samples lie in page-locked memory already: copies and kernels alone
// packed  samples come from ordinary memory and rows go back there, copied by a thread for each
//         stream, as the nodes h2d and rows do

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <exception>
#include <memory>
#include <thread>

#include "bench.h"
#include "cuda/error.h"
#include "cuda/lanes.h"
#include "mel/mel_plan.h"

namespace melflow::bench {
namespace {

using Clock = std::chrono::steady_clock;

void fill(cuda::Lane& lane, const Pack& pack) {
  std::memcpy(lane.offsets(), pack.offsets.data(), pack.frames() * sizeof(std::uint32_t));
  std::memcpy(lane.samples(), pack.samples.data(), pack.sample_bytes());
}

void submit(cuda::Lane& lane, const Pack& pack, cuda::Completions& done) {
  lane.submit(cuda::SampleType::int16, pack.sample_bytes(), pack.frames());
  lane.when(cuda::Phase::copied_out, done, &lane);
}

// Before `done` goes away: a batch that is under way would be posted there.
struct FinishAtEnd {
  const std::vector<cuda::Lanes::Lease>& lanes;
  ~FinishAtEnd() {
    for (const auto& lane : lanes) lane->finish();
  }
};

// The next tags; throws where a lane's device has failed and no more will come.
std::vector<void*> next(cuda::Completions& done, const std::vector<cuda::Lanes::Lease>& lanes) {
  std::vector<void*> tags;
  while (!done.wait(tags, 1.0))
    for (const auto& lane : lanes) lane->check();
  return tags;
}

double link_seconds(cuda::Lanes& lanes, const Pack& pack, std::size_t batches) {
  std::vector<cuda::Lanes::Lease> leases;
  for (std::size_t i = 0; i < lanes.count(); ++i) {
    leases.push_back(lanes.take());
    fill(*leases.back(), pack);
  }
  cuda::Completions done;
  const FinishAtEnd guard{leases};
  std::size_t started = 0, finished = 0;
  const auto begin = Clock::now();
  for (; started < std::min(batches, leases.size()); ++started)
    submit(*leases[started], pack, done);
  while (finished < batches) {
    for (void* tag : next(done, leases)) {
      ++finished;
      if (started == batches) continue;
      ++started;
      submit(*static_cast<cuda::Lane*>(tag), pack, done);
    }
  }
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

double packed_seconds(cuda::Lanes& lanes, const Pack& pack, std::size_t row_bytes,
                      std::size_t batches) {
  std::atomic<std::size_t> started{0};
  std::vector<std::exception_ptr> errors(lanes.count());
  const auto begin = Clock::now();
  {
    std::vector<std::jthread> threads;
    for (std::size_t t = 0; t < lanes.count(); ++t) {
      threads.emplace_back([&, t] {
        try {
          std::vector<std::byte> rows(row_bytes);
          cuda::Completions done;
          while (started++ < batches) {
            const std::vector<cuda::Lanes::Lease> lane{lanes.take()};
            const FinishAtEnd guard{lane};
            fill(*lane.front(), pack);
            submit(*lane.front(), pack, done);
            next(done, lane);
            std::memcpy(rows.data(), lane.front()->rows(), row_bytes);
          }
        } catch (...) {
          errors[t] = std::current_exception();
        }
      });
    }
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  for (const auto& error : errors)
    if (error) std::rethrow_exception(error);
  return seconds;
}

std::size_t bytes_in(const Pack& pack) {
  return pack.sample_bytes() + pack.frames() * sizeof(std::uint32_t);
}

Json figures(double seconds, std::size_t batches, const Pack& pack, std::size_t sample_bytes,
             std::size_t row_bytes, const Ceilings& ceilings) {
  const double each = static_cast<double>(batches) / seconds;
  const double in = static_cast<double>(sample_bytes) * each;
  const double out = static_cast<double>(row_bytes) * each;
  return {{"files_per_second", static_cast<double>(pack.files) * each},
          {"windows_per_second", static_cast<double>(pack.frames()) * each},
          {"bytes_per_second_in", in},
          {"bytes_per_second_out", out},
          {"share_of_link_in", in / ceilings.to_device},
          {"share_of_link_out", out / ceilings.from_device}};
}

// One row of the table.
Json measure(cuda::Gpus& gpus, int index, const std::shared_ptr<const MelPlan>& plan,
             const Pack& pack, int streams, NumberType rows, const Effort& effort,
             const Ceilings& ceilings) {
  Json out{{"streams", streams}, {"rows", to_text(rows)}};
  cuda::LaneSettings settings;
  settings.devices = {index};
  settings.streams = streams;
  settings.kernel.rows = rows;
  settings.memory =
      std::make_shared<cuda::DeviceBudget>(std::size_t{16} << 30, std::size_t{16} << 30);
  try {
    cuda::Lanes lanes(gpus, plan, settings, pack.sample_bytes(), pack.frames());
    const std::size_t row_bytes = lanes.row_bytes(pack.frames());
    std::vector<double> link, packed;
    for (int i = -1; i < std::max(3, effort.repetitions / 8); ++i) {
      const double a = link_seconds(lanes, pack, effort.batches);
      const double b = packed_seconds(lanes, pack, row_bytes, effort.batches);
      if (i < 0) continue;  // lanes have their recordings now
      link.push_back(a);
      packed.push_back(b);
    }
    const auto of = [&](const std::vector<double>& seconds) {
      return figures(median(seconds), effort.batches, pack, bytes_in(pack), row_bytes, ceilings);
    };
    out["lanes"] = lanes.count();
    out["bytes_out_of_batch"] = row_bytes;
    out["link"] = of(link);
    out["packed"] = of(packed);
  } catch (const std::exception& e) {
    out["error"] = e.what();
  }
  return out;
}

}  // namespace

Json measure_lanes(cuda::Gpus& gpus, int index, const Geometry& geometry, const Effort& effort,
                   const Ceilings& ceilings) {
  const auto plan = std::make_shared<const MelPlan>(geometry.options);
  const Pack pack(geometry, effort.batch_bytes);
  Json out{{"geometry", geometry.name},
           {"files_of_batch", pack.files},
           {"bytes_in_of_batch", bytes_in(pack)},
           {"results", Json::array()}};
  const auto add = [&](int streams, NumberType rows) {
    out["results"].push_back(measure(gpus, index, plan, pack, streams, rows, effort, ceilings));
  };
  for (const int streams : effort.streams) add(streams, NumberType::float32);
  add(cuda::LaneSettings{}.streams, NumberType::float16);  // bfloat16 is as large
  return out;
}

}  // namespace melflow::bench
