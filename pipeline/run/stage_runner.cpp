#include "pipeline/run/stage_runner.h"

#include <barrier>
#include <exception>
#include <stdexcept>
#include <thread>

#include "pipeline/stage/reach.h"

namespace melflow {
namespace {

constexpr std::size_t kPool = std::size_t{1} << 30;

struct Nothing {
  static constexpr const char* kName = "nothing";
};

class NoSource final : public Source<Nothing> {
 public:
  [[nodiscard]] std::size_t count() const override { return 0; }
  [[nodiscard]] SourceItem item(std::size_t) override { return {}; }
  [[nodiscard]] std::string name(std::size_t) const override { return {}; }
};

std::unique_ptr<StageConfig> configured(const std::string& stage, const Value& options) {
  const StageInfo* info = Registry::global().find(stage);
  if (info == nullptr)
    throw std::runtime_error("there is no stage " + stage + "; is its file linked in?");
  auto config = info->configure();
  Problems problems;
  config->schema().read(options, "", problems);
  if (!problems.empty()) throw ConfigError(problems);
  return config;
}

Result<Emission> through(Engine& engine, const Item& item, const ItemContext& context) {
  std::vector<Engine::Done> done;
  engine.begin(&done, item, context);
  while (done.empty()) engine.collect(done);
  if (done.size() != 1 || done[0].tag != &done)
    throw std::logic_error("an engine gave back what it was not given");
  return std::move(done[0].result);
}

}  // namespace

StageRunner::StageRunner(const std::string& stage, const Value& options)
    : StageRunner(configured(stage, options), nullptr) {}

StageRunner::StageRunner(PlanNode&& node)
    : StageRunner(std::move(node.config), std::move(node.stage)) {}

StageRunner::StageRunner(std::unique_ptr<StageConfig> config, std::unique_ptr<Stage> stage)
    : config_(std::move(config)),
      stage_(stage ? std::move(stage) : config_->make()),
      faces_(*stage_),
      no_source_(std::make_unique<NoSource>()),
      pool_(kPool),
      run_{.pool = pool_,
           .ledger = ledger_,
           .settings = settings_,
           .source = faces_.source != nullptr ? *faces_.source : *no_source_,
           .services = services_,
           .warn = [this](std::string text) { run_warnings_.push_back(std::move(text)); }} {}

StageRunner::~StageRunner() = default;

Planned StageRunner::plan(const Properties& given, const Requirements& required) {
  Planned out;
  const auto into = [](std::vector<std::string>& list) {
    return [&list](const std::string& option, const std::string& message) {
      list.push_back(option + ": " + message);
    };
  };
  PlanCheck check(into(out.errors), into(out.warnings), into(out.warnings));
  out.properties = stage_->plan(given, required, check);
  return out;
}

StageRunner::Pass::Pass(StageRunner& runner)
    : runner_(runner),
      engine_(runner.faces_.engine != nullptr ? runner.faces_.engine->engine(1) : nullptr) {
  static const Reach reach = Reach::plain(0, 1);
  ledger_.open(1, {"stage"});
  stream_ = std::make_shared<Stream>(ledger_, Stream::Records{0}, 0, reach);
}

StageRunner::Pass::~Pass() = default;

bool StageRunner::Pass::put(std::shared_ptr<const void> payload, bool is_last, const Give& give) {
  Item item;
  item.origins =
      std::make_shared<const Origins>(Origins{{nullptr, stream_, block_ == 0, is_last, block_}});
  ++block_;
  item.payload = std::move(payload);
  std::unique_ptr<StageState> cursor;
  for (bool more = true; more;) {
    ItemContext context(runner_.run_, item, 0);
    std::vector<Leaving> outputs;
    context.set_outputs(outputs);
    auto emission = engine_ ? through(*engine_, item, context)
                            : runner_.faces_.items->run(item, cursor, context);
    if (!emission) {
      stream_->fail(0, emission.error());
      return false;
    }
    more = emission->more;
    if (stream_->failed()) return false;
    if (emission->payload && !give(std::move(emission->payload), is_last && !more)) return false;
    for (Leaving& output : outputs)
      if (output.payload && !give(std::move(output.payload), is_last)) return false;
  }
  return !stream_->failed();
}

Ledger::Entry StageRunner::Pass::end() {
  stream_.reset();
  return ledger_.entry(0);
}

Ledger::Entry StageRunner::pass(const std::vector<std::shared_ptr<const void>>& in,
                                std::vector<std::shared_ptr<const void>>& out) {
  Pass pass(*this);
  const auto give = [&out](std::shared_ptr<const void> block, bool) {
    out.push_back(std::move(block));
    return true;
  };
  for (std::size_t i = 0; i < in.size(); ++i)
    if (!pass.put(in[i], i + 1 == in.size(), give)) break;
  return pass.end();
}

void StageRunner::on_threads(std::size_t count, const std::function<void(std::size_t)>& work) {
  std::barrier all_there(static_cast<std::ptrdiff_t>(count));
  std::vector<std::exception_ptr> errors(count);
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < count; ++i)
      threads.emplace_back([&, i] {
        all_there.arrive_and_wait();
        try {
          work(i);
        } catch (...) {
          errors[i] = std::current_exception();
        }
      });
  }
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
}

}  // namespace melflow
