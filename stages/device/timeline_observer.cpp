#include "stages/device/timeline_observer.h"

#include <string>
#include <utility>
#include <vector>

#include "cuda/timeline.h"

namespace melflow {
namespace {

class TimelineObserver final : public RunObserver {
 public:
  explicit TimelineObserver(std::unique_ptr<cuda::Timeline> timeline)
      : timeline_(std::move(timeline)) {}
  void enter(int node) noexcept override { timeline_->push(node); }
  void leave() noexcept override { timeline_->pop(); }
  std::uint64_t begin(int node) noexcept override { return timeline_->start(node); }
  void end(std::uint64_t item) noexcept override { timeline_->end(item); }

 private:
  std::unique_ptr<cuda::Timeline> timeline_;
};

}  // namespace

std::unique_ptr<RunObserver> timeline_observer(const Plan& plan) {
  std::vector<std::string> names;
  for (const PlanNode& n : plan.nodes) names.push_back(n.name);
  auto timeline = cuda::make_timeline(names);
  if (!timeline) return nullptr;
  return std::make_unique<TimelineObserver>(std::move(timeline));
}

}  // namespace melflow
