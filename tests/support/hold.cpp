#include "tests/support/hold.h"

#include <atomic>
#include <stdexcept>
#include <thread>
#include <utility>

#include "stages/items.h"
#include "tests/support/concurrency_probe.h"

namespace melflow::test {
namespace {

std::atomic<const Hold::Hook*> hook{nullptr};

struct HoldOptions {
  void describe(Schema& /*s*/) {}
};

template <class Payload>
class HoldStage final : public Transform<Payload, Payload> {
 public:
  explicit HoldStage(const HoldOptions&) { this->traits_.max_concurrency = 1; }
  // Waiting here must not block a worker of the other nodes.
  [[nodiscard]] StageResources resources() const override {
    return {.passes_on = true, .blocking = true};
  }
  Result<std::shared_ptr<const Payload>> process(std::shared_ptr<const Payload> in,
                                                 ItemContext& context) const override {
    if (const Hold::Hook* h = hook) (*h)(context.origin().stream->index());
    return in;
  }
};

const RegisterStage<HoldStage<FileRef>, HoldOptions> held_file{"hold_file", "Waits for a test."};
const RegisterStage<HoldStage<Batch>, HoldOptions> held_batch{"hold_batch", "Waits for a test."};

}  // namespace

Hold::Hold(Hook h) : hook_(std::move(h)) { hook = &hook_; }
Hold::~Hold() { hook = nullptr; }

std::string with_held_files(std::string yaml) {
  const std::string from = "from: files";
  const std::size_t at = yaml.find(from);
  if (at == yaml.npos) throw std::logic_error("nothing takes what the node files gives");
  yaml.replace(at, from.size(), "from: held");
  yaml.insert(yaml.rfind('\n', at) + 1, "  held: {stage: hold_file, from: files, queue: 1}\n");
  return yaml;
}

JobResult run_and_stop(const std::string& yaml, const LoadOptions& options, StopAt at,
                       Update update) {
  Gate stopped;
  const Hold hold([&](std::size_t file) {
    if (file >= at.let_in) stopped.wait();
  });
  const auto stop = [&](Runner& runner) {
    while (runner.progress().counts.closed() < at.closed) std::this_thread::yield();
    runner.stop();
    stopped.open();
  };
  return run_job(with_held_files(yaml), options, stop, update);
}

}  // namespace melflow::test
