// discard: a sink that writes nothing, for measuring the stages before it and for runs that only
// report the outcome of every file.
//
// In: file, bytes, waveform, windows, batch or rows.

#include <atomic>
#include <cstdint>

#include <fmt/format.h>

#include "pipeline/base/problem.h"
#include "pipeline/stage/registry.h"
#include "stages/any_payload.h"
#include "stages/node_group.h"
#include "stages/run_task.h"

namespace melflow {
namespace {

// The audio format of one part of an item; a rate of 0 where it is unknown.
FileAudio audio_of(const Item& item, const PortType& port, std::size_t part) {
  if (port == port_type<Waveform>()) return payload_of<Waveform>(item)->file;
  if (port == port_type<Windows>()) return payload_of<Windows>(item)->file;
  if (port == port_type<Batch>()) return payload_of<Batch>(item)->parts[part]->file;
  if (port != port_type<MelBatch>()) return {};
  const auto& rows = payload_of<MelBatch>(item)->parts[part];
  return rows ? rows->file : FileAudio{};
}

class Discard final : public ItemStage, public PassesAny, public RefusesUpdate {
 public:
  explicit Discard(NoOptions)
      : ItemStage(
            {.kind = StageKind::sink, .in = port_type<AnyPayload>(), .order = BlockOrder::any}) {}

  static std::vector<PortType> ports() { return any_payload_ports(); }
  void set_port(PortType port) override { port_ = port; }

  [[nodiscard]] std::string why_no_update() const override {
    return "discard: keeps nothing, so there is nothing to update; use melflow run instead";
  }
  void start(RunContext& run) override { check_update(run); }

  Result<Emission> run(const Item& item, std::unique_ptr<StageState>&,
                       ItemContext& context) override {
    for (std::size_t part = 0; part < item.origins->size(); ++part) {
      if (!context.origin(part).last || context.is_lost(part)) continue;
      files_.fetch_add(1, std::memory_order_relaxed);
      const FileAudio audio = audio_of(item, port_, part);
      if (audio.sample_rate > 0)
        microseconds_.fetch_add(microseconds(audio), std::memory_order_relaxed);
    }
    return Emission{};
  }

  [[nodiscard]] std::vector<std::pair<std::string, Value>> summary() const override {
    std::vector<std::pair<std::string, Value>> out{
        {"files", Value::scalar(std::to_string(files_.load()))}};
    if (microseconds_ > 0)
      out.emplace_back(
          "audio_seconds",
          Value::scalar(fmt::format("{:.3f}", static_cast<double>(microseconds_.load()) * 1e-6)));
    return out;
  }

 private:
  // Whole numbers, so that their sum does not depend on the order of the files.
  static std::int64_t microseconds(const FileAudio& audio) {
    const std::int64_t seconds = audio.frames / audio.sample_rate;
    return seconds * 1'000'000 + audio.frames % audio.sample_rate * 1'000'000 / audio.sample_rate;
  }

  PortType port_;
  std::atomic<std::int64_t> files_{0}, microseconds_{0};
};

const RegisterStage<Discard, NoOptions> register_discard{
    "discard", "Takes anything and writes nothing, for measuring what is before it."};

}  // namespace
}  // namespace melflow
