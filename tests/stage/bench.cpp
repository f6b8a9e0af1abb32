#include "tests/stage/bench.h"
#include "pipeline/reach.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "config/document.h"

namespace melflow::test {
namespace {

constexpr std::size_t kPool = std::size_t{1} << 30;

class NoSource final : public Source<FileRef> {
 public:
  [[nodiscard]] std::size_t count() const override { return 0; }
  [[nodiscard]] SourceItem item(std::size_t) override { return {}; }
  [[nodiscard]] std::string name(std::size_t) const override { return {}; }
};

std::unique_ptr<StageConfig> configured(const std::string& stage, const std::string& options) {
  const StageInfo* info = Registry::global().find(stage);
  if (info == nullptr) throw std::runtime_error("there is no stage " + stage);
  auto config = info->configure();
  Document document = read_document(options, "options");
  config->schema().read(document.root, "", document.problems);
  if (!document.problems.empty()) throw ConfigError(document.problems);
  return config;
}

}  // namespace

Bench::Bench(const std::string& stage, const std::string& options)
    : config_(configured(stage, options)),
      stage_(config_->make()),
      faces_(*stage_),
      no_source_(std::make_unique<NoSource>()),
      pool_(kPool),
      run_{.pool = pool_,
           .ledger = ledger_,
           .settings = settings_,
           .source = *no_source_,
           .services = services_,
           .warn = [this](std::string text) { run_warnings_.push_back(std::move(text)); }} {}

Bench::~Bench() = default;

Planned Bench::plan(const Properties& given, const Requirements& required) {
  Planned out;
  const auto into = [](std::vector<std::string>& list) {
    return [&list](const std::string& option, const std::string& message) {
      list.push_back(option + ": " + message);
    };
  };
  PlanCheck check(into(out.errors), into(out.warnings));
  out.properties = stage_->plan(given, required, check);
  return out;
}

namespace {

Result<Emission> through(Engine& engine, const Item& item, const ItemContext& context) {
  std::vector<Engine::Done> done;
  engine.begin(&done, item, context);
  while (done.empty()) engine.collect(done);
  CHECK(done.size() == 1);
  CHECK(done[0].tag == &done);
  return std::move(done[0].result);
}

}  // namespace

Ledger::Entry Bench::pass(const std::vector<std::shared_ptr<const void>>& in,
                          std::vector<std::shared_ptr<const void>>& out) {
  Ledger ledger;  // one for each stream, so that several can run at once
  ledger.open(1, {"bench"});
  const std::unique_ptr<Engine> engine =
      faces_.engine != nullptr ? faces_.engine->engine(1) : nullptr;
  {
    static const Reach reach = Reach::plain(0, 1);
    auto stream = std::make_shared<Stream>(ledger, 0, 0, reach);
    for (std::size_t i = 0; i < in.size() && !stream->failed(); ++i) {
      Item item;
      item.origins =
          std::make_shared<const Origins>(Origins{{nullptr, stream, i == 0, i + 1 == in.size()}});
      item.payload = in[i];
      std::unique_ptr<StageState> cursor;
      bool more = true;
      while (more) {
        ItemContext context(run_, item, 0);
        auto emission =
            engine ? through(*engine, item, context) : faces_.items->run(item, cursor, context);
        if (!emission) {
          stream->fail(0, emission.error());
          break;
        }
        more = emission->more;
        if (emission->payload) out.push_back(emission->payload);
      }
    }
  }
  return ledger.entry(0);
}

template <class Sample>
std::vector<std::shared_ptr<const Waveform>> waveform(const std::vector<Sample>& samples,
                                                      int sample_rate, std::int64_t block) {
  const auto count = static_cast<std::int64_t>(samples.size());
  if (block <= 0) block = std::max<std::int64_t>(1, count);
  BufferPool pool(kPool);
  std::vector<std::shared_ptr<const Waveform>> out;
  for (std::int64_t at = 0; at < count || at == 0; at += block) {
    const std::int64_t n = std::min(block, count - at);
    // Exactly as many bytes as there are, so that a sanitizer sees whoever reads one too many.
    auto buffer =
        std::make_shared<Buffer>(pool.lease(static_cast<std::size_t>(n) * sizeof(Sample)));
    if (n > 0) std::memcpy(buffer->data(), samples.data() + at, buffer->size());
    auto w = std::make_shared<Waveform>();
    w->samples = {buffer, buffer->data(), n,
                  sizeof(Sample) == 2 ? SampleType::int16 : SampleType::float32};
    w->sample_rate = sample_rate;
    w->start = at;
    w->first = at == 0;
    w->last = at + n >= count;
    w->file = {sample_rate, at + n};
    out.push_back(std::move(w));
  }
  return out;
}

template <class Sample>
std::vector<Sample> joined(const std::vector<std::shared_ptr<const Waveform>>& blocks) {
  std::vector<Sample> out;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const Waveform& w = *blocks[i];
    if (size_of(w.samples.type) != sizeof(Sample)) throw std::runtime_error("another sample type");
    if (w.start != static_cast<std::int64_t>(out.size())) throw std::runtime_error("a gap");
    if (w.first != (i == 0) || w.last != (i + 1 == blocks.size()))
      throw std::runtime_error("first or last is wrong");
    const auto* from = reinterpret_cast<const Sample*>(w.samples.data);
    out.insert(out.end(), from, from + w.samples.count);
  }
  return out;
}

template std::vector<std::shared_ptr<const Waveform>> waveform(const std::vector<float>&, int,
                                                               std::int64_t);
template std::vector<std::shared_ptr<const Waveform>> waveform(const std::vector<std::int16_t>&,
                                                               int, std::int64_t);
template std::vector<float> joined(const std::vector<std::shared_ptr<const Waveform>>&);
template std::vector<std::int16_t> joined(const std::vector<std::shared_ptr<const Waveform>>&);

}  // namespace melflow::test
