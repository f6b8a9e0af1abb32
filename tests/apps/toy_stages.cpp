// Three stages without audio: a source that counts, a stage that takes time and fails on demand, a
// sink that keeps nothing. And a stage for graphs with audio that never lets them end.
#include <chrono>
#include <fstream>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "pipeline/stage/registry.h"
#include "stages/items.h"

namespace melflow {
namespace {

struct ToyItem {
  static constexpr const char* kName = "toy";
  std::size_t index = 0;
  [[nodiscard]] static std::size_t bytes() { return 1000; }
  [[nodiscard]] static std::size_t rows() { return 3; }
};

struct CountOptions {
  int count = 10;
  void describe(Schema& s) { s.field("count", count, "items to give").range(0, 1'000'000); }
};

class Count final : public Source<ToyItem> {
 public:
  explicit Count(CountOptions options) : options_(options) {}
  std::size_t count() const override { return static_cast<std::size_t>(options_.count); }
  SourceItem item(std::size_t i) override {
    return {std::make_shared<ToyItem>(ToyItem{i}), {names_ = name(i), 1000}};
  }
  std::string name(std::size_t i) const override { return fmt::format("toy/{:04}", i); }

 private:
  CountOptions options_;
  std::string names_;
};

struct WorkOptions {
  int wait_ms = 0;
  int fail_every = 0, skip_every = 0;
  bool break_down = false;
  std::string begun, until;
  void describe(Schema& s) {
    s.field("wait_ms", wait_ms, "time an item takes [ms]").range(0, 60'000).tuning();
    s.field("fail_every", fail_every, "each so many-th item fails").at_least(0);
    s.field("skip_every", skip_every, "each so many-th item is skipped").at_least(0);
    s.field("break_down", break_down, "end the run with an error");
    s.field("begun", begun, "a file that is made when an item begins").tuning();
    s.field("until", until, "a file without which no item ends").tuning();
  }
};

class Work final : public Transform<ToyItem, ToyItem> {
 public:
  explicit Work(WorkOptions options) : options_(std::move(options)) {}
  Properties plan(const Properties& given, const Requirements&, PlanCheck& check) override {
    if (options_.wait_ms == 13) check.warning("wait_ms", "13 is an unlucky number");
    return given;
  }
  std::size_t output_bound(const SourceInfo&, std::size_t) const override {
    return ToyItem::bytes();
  }
  void start(RunContext&) override {
    if (options_.break_down) throw RunError("toy_work: the disk is full; make room");
  }
  Result<std::shared_ptr<const ToyItem>> process(std::shared_ptr<const ToyItem> in,
                                                 ItemContext&) const override {
    if (!options_.begun.empty()) std::ofstream(options_.begun) << "begun";
    do std::this_thread::sleep_for(std::chrono::milliseconds(options_.wait_ms));
    while (!options_.until.empty() && !std::ifstream(options_.until));
    const auto is_due = [&](int every) {
      return every > 0 && (in->index + 1) % static_cast<std::size_t>(every) == 0;
    };
    if (is_due(options_.fail_every)) return ItemError::failed("is broken");
    if (is_due(options_.skip_every)) return ItemError::skipped("is too short");
    return in;
  }

 private:
  WorkOptions options_;
};

struct KeepOptions {
  std::string path;
  void describe(Schema& s) { s.field("path", path, "what the summary calls it"); }
};

class Keep final : public Sink<ToyItem> {
 public:
  explicit Keep(KeepOptions options) : options_(std::move(options)) {}
  std::optional<ItemError> consume(std::shared_ptr<const ToyItem>, ItemContext&) override {
    return {};
  }
  std::vector<std::pair<std::string, Value>> summary() const override {
    return {{"path", Value::scalar(options_.path, {}, true)}, {"bytes", Value::scalar("1500000")}};
  }

 private:
  KeepOptions options_;
};

const RegisterStage<Count, CountOptions> count{"toy_count", "Counts."};
const RegisterStage<Work, WorkOptions> work{"toy_work", "Works, or fails when told to.", true};
const RegisterStage<Keep, KeepOptions> keep{"toy_keep", "Keeps nothing."};

}  // namespace
}  // namespace melflow
