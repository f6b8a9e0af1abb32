// synthetic: computes recordings: tones, sweeps, noise and silence, to try or measure a pipeline
// without files. The node stands for two: itself, which emits signals by number, and `samples`,
// which computes their samples in blocks, on many workers.
//
// Out: Waveform blocks of int16, computed with integers, so that the samples are the same on every
//      machine. Recording i depends on i, the seed and the other options, but not on the number of
//      recordings.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "pipeline/base/problem.h"
#include "pipeline/stage/registry.h"
#include "stages/audio/fixed_sine.h"
#include "stages/facts.h"
#include "stages/items.h"
#include "stages/length.h"
#include "stages/manifest.h"
#include "stages/node_group.h"
#include "stages/run_task.h"
#include "stages/sample_rate.h"

namespace melflow {

enum class Sound { tone, sweep, noise, silence };
template <>
struct EnumNames<Sound> {
  static constexpr std::pair<const char*, Sound> values[] = {{"tone", Sound::tone},
                                                             {"sweep", Sound::sweep},
                                                             {"noise", Sound::noise},
                                                             {"silence", Sound::silence}};
};

namespace {

constexpr std::int64_t kMilli = 1000;  // frequencies are whole numbers of mHz

/// A recording to compute.
struct Signal {
  static constexpr const char* kName = "signal";
  std::string name;
  Sound sound = Sound::tone;
  int sample_rate = 0;
  std::int64_t count = 0;          // number of samples
  std::int64_t amplitude = 0;      // of 32767
  std::int64_t low = 0, high = 0;  // [mHz] at the start and the end
  std::uint64_t seed = 0;

  [[nodiscard]] static std::size_t bytes() { return 0; }
  [[nodiscard]] static std::size_t rows() { return 0; }
};

// Knuth's MMIX generator; its upper bits are the better ones.
std::uint64_t next_draw(std::uint64_t& state) {
  state = state * 6364136223846793005ULL + 1442695040888963407ULL;
  return state >> 48;
}

// Makes distinct recordings begin far apart (splitmix64).
std::uint64_t seed_of(std::uint64_t seed, std::size_t recording) {
  std::uint64_t x = seed * 0x9E3779B97F4A7C15ULL + recording + 1;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

struct SamplesGroup : NodeGroup {
  std::optional<Bytes> block;
  void describe(Schema& s) {
    NodeGroup::describe(s);
    s.field("block", block,
            "size of the blocks in which samples go from stage to stage; not set: 512KiB")
        .tuning();
  }
};

struct SyntheticOptions {
  int count = 10;
  std::vector<Sound> kind{Sound::tone};
  Length duration = Length::of_seconds(1);
  SampleRate rate = 16000;
  double low = 100;
  std::optional<double> high;
  double amplitude = 0.5;
  std::uint32_t seed = 0;
  std::optional<SamplesGroup> samples;

  [[nodiscard]] bool has_sine() const {
    return std::any_of(kind.begin(), kind.end(),
                       [](Sound k) { return k == Sound::tone || k == Sound::sweep; });
  }
  void describe(Schema& s) {
    s.field("count", count, "number of recordings").range(0, 100'000'000).tuning();
    s.field("kind", kind,
            "list of kinds of signal, which are also the labels; with several kinds, recordings "
            "have them in turn; tone: a sine of one frequency; sweep: a sine from low to high; "
            "noise: uniform and white; silence: zeros");
    s.field("duration", duration, "length of every recording");
    s.field("rate", rate, "sample rate [Hz]").range(100, 1'000'000);
    s.field("low", low, "lowest frequency of a tone, or the start of a sweep [Hz]")
        .range(0.001, 500'000)
        .used_with("kind: tone or sweep", [this] { return has_sine(); });
    s.field("high", high,
            "highest frequency of a tone, which is drawn between low and high, or the end of a "
            "sweep [Hz]; not set: 0.45 x rate")
        .range(0.001, 500'000)
        .used_with("kind: tone or sweep", [this] { return has_sine(); });
    s.field("amplitude", amplitude, "peak of the samples; full scale is 1").range(0, 1);
    s.field("seed", seed, "seed of the random frequencies and noise");
    s.group("samples", samples, "node that computes the samples");
  }
};

class Synthetic final : public Source<Signal>,
                        public ManifestSource,
                        public MakesAhead,
                        public RefusesUpdate {
 public:
  explicit Synthetic(SyntheticOptions options) : options_(std::move(options)) {}

  static std::vector<NodeSpec> expand(const NodeSpec& spec) {
    NodeSpec samples = grouped_node(spec, "samples", "synthetic_samples");
    samples.options.set("from", Value::scalar(spec.name, spec.mark));
    return {spec, std::move(samples)};
  }

  Properties plan(const Properties& given, const Requirements&, PlanCheck& check) override {
    const SyntheticOptions& o = options_;
    if (o.kind.empty()) check.error("kind", "is empty; name one, such as tone");
    if (o.duration.at(o.rate) < 1) check.error("duration", "recordings of no sample");
    if (high() < mhz(o.low))
      check.error(o.high ? "high" : "low",
                  o.high ? "is less than low"
                         : fmt::format("is above high, which is 0.45 x rate ({} Hz) by default; "
                                       "lower low, or set high",
                                       static_cast<double>(high()) / kMilli));
    if (2 * high() > o.rate.hz * kMilli)
      check.error(o.high ? "high" : "low",
                  fmt::format("a rate of {} Hz holds no frequency above {} Hz", o.rate.hz,
                              o.rate.hz / 2.0));
    Properties out = given;
    out.set(property::kSampleRate, o.rate);
    return out;
  }

  // Writes a length in samples, and nothing of the options of the node `samples`.
  [[nodiscard]] std::optional<Value> settings() const override {
    SyntheticOptions own = options_;
    own.duration = Length(own.duration.at(own.rate));
    own.samples.reset();
    Schema s;
    own.describe(s);
    return s.echo(false);
  }

  [[nodiscard]] std::string why_no_update() const override {
    return "synthetic: there are no files that could be new; use melflow run instead";
  }
  void start(RunContext& run) override {
    check_update(run);
    manifest_ = Manifest("synthetic");
    manifest_.set_target_names({"frequency"});
    std::vector<std::uint32_t> folders;
    for (const Sound kind : options_.kind)
      folders.push_back(manifest_.add_folder(name_of(kind) + "/"));
    for (std::size_t i = 0; i < count(); ++i) {
      const Sound kind = kind_of(i);
      manifest_.add(folders[i % folders.size()], fmt::format("{:06}", i));
      manifest_.set_label(i, name_of(kind));
      if (kind == Sound::tone)
        manifest_.set_target(i, 0, static_cast<float>(frequency(i)) / static_cast<float>(kMilli));
    }
    manifest_.close();
  }

  [[nodiscard]] std::size_t count() const override {
    return static_cast<std::size_t>(options_.count);
  }
  [[nodiscard]] std::string name(std::size_t i) const override { return manifest_.relative(i); }
  [[nodiscard]] std::size_t index_bytes() const override {
    return manifest_.memory_bytes() + 40 * manifest_.size();
  }
  [[nodiscard]] bool makes_ahead() const override { return true; }
  [[nodiscard]] SourceItem item(std::size_t i) override {
    auto signal = std::make_shared<Signal>();
    signal->name = name(i);
    signal->sound = kind_of(i);
    signal->sample_rate = options_.rate;
    signal->count = options_.duration.at(options_.rate);
    signal->amplitude = std::llround(options_.amplitude * 32767);
    signal->low = signal->sound == Sound::tone ? frequency(i) : mhz(options_.low);
    signal->high = signal->sound == Sound::tone ? signal->low : high();
    signal->seed = seed_of(options_.seed, i);
    const SourceInfo info{signal->name,
                          static_cast<std::size_t>(signal->count) * sizeof(std::int16_t)};
    return {std::move(signal), info};
  }
  [[nodiscard]] std::size_t output_bound(const SourceInfo&, std::size_t) const override {
    return sizeof(Signal);
  }

  [[nodiscard]] const Manifest& manifest() const override { return manifest_; }
  [[nodiscard]] FileStamp stamp(std::size_t) const override { return {}; }
  void set_stamp(std::size_t, const FileStamp&) override {}
  [[nodiscard]] ContentHashes* contents() const override { return nullptr; }

 private:
  static std::string name_of(Sound kind) { return OptionType<Sound>::echo(kind).text(); }
  static std::int64_t mhz(double hz) { return std::llround(hz * kMilli); }
  [[nodiscard]] std::int64_t high() const {
    return options_.high ? mhz(*options_.high) : options_.rate.hz * kMilli * 9 / 20;
  }
  [[nodiscard]] Sound kind_of(std::size_t i) const {
    return options_.kind[i % options_.kind.size()];
  }
  // The frequency of a tone [mHz].
  [[nodiscard]] std::int64_t frequency(std::size_t i) const {
    std::uint64_t state = seed_of(options_.seed, i);
    const std::int64_t low = mhz(options_.low);
    return low + (high() - low) * static_cast<std::int64_t>(next_draw(state)) / 65'535;
  }

  SyntheticOptions options_;
  Manifest manifest_;
};

struct SyntheticSamplesOptions {
  Bytes block{512 * 1024};
  void describe(Schema& s) {
    s.field("block", block, "size of the blocks in which samples go from stage to stage")
        .range(4096, 1 << 30)
        .tuning();
  }
};

class SyntheticSamples final : public Expand<Signal, Waveform> {
 public:
  explicit SyntheticSamples(SyntheticSamplesOptions options) : block_(options.block.count) {}

  Properties plan(const Properties& given, const Requirements& required, PlanCheck&) override {
    block_ = std::max(block_, required.get_or(requirement::kWholeBlock, 0));
    return given;
  }
  [[nodiscard]] StageResources resources() const override { return {.size_option = "block"}; }
  [[nodiscard]] std::size_t output_bound(const SourceInfo& source, std::size_t) const override {
    return BufferPool::rounded(std::min<std::size_t>(block_, source.bytes));
  }

  Result<std::unique_ptr<Cursor>> open(std::shared_ptr<const Signal> in,
                                       ItemContext&) const override {
    return std::unique_ptr<Cursor>(std::make_unique<Samples>(
        std::move(in), static_cast<std::int64_t>(block_ / sizeof(std::int16_t))));
  }

 private:
  class Samples final : public Cursor {
   public:
    Samples(std::shared_ptr<const Signal> signal, std::int64_t block)
        : signal_(std::move(signal)),
          block_(block),
          noise_(signal_->seed),
          step_(turn(signal_->low)),
          growth_((turn(signal_->high) - step_) / static_cast<std::uint64_t>(signal_->count)) {}

    Result<Block> next(ItemContext& context) override {
      const Signal& s = *signal_;
      const std::int64_t n = std::min(block_, s.count - at_);
      auto buffer = std::make_shared<Buffer>(
          context.run().pool.lease(static_cast<std::size_t>(n) * sizeof(std::int16_t)));
      auto* out = buffer->as<std::int16_t>();
      for (std::int64_t i = 0; i < n; ++i) out[i] = sample();
      auto wave = std::make_shared<Waveform>();
      wave->samples = {buffer, buffer->data(), n, SampleType::int16};
      wave->sample_rate = s.sample_rate;
      wave->start = at_;
      wave->first = at_ == 0;
      at_ += n;
      wave->last = at_ == s.count;
      wave->file = {s.sample_rate, at_, s.count, 1};
      const bool more = !wave->last;
      return Block{std::move(wave), more};
    }

   private:
    // The phase step per sample for a sine of `mhz`, where 2^64 is a turn; less than half of it.
    [[nodiscard]] std::uint64_t turn(std::int64_t mhz) const {
      const std::uint64_t whole = static_cast<std::uint64_t>(signal_->sample_rate) * kMilli;
      std::uint64_t out = 0;
      auto rest = static_cast<std::uint64_t>(mhz);
      for (int bit = 0; bit < 64; ++bit) {
        rest *= 2;
        out = out * 2 + (rest >= whole ? 1 : 0);
        if (rest >= whole) rest -= whole;
      }
      return out;
    }

    // Computes the next sample.
    std::int16_t sample() {
      const Signal& s = *signal_;
      if (s.sound == Sound::silence) return 0;
      if (s.sound == Sound::noise)
        return static_cast<std::int16_t>(static_cast<std::int16_t>(next_draw(noise_)) *
                                         s.amplitude / 32'768);
      const std::int16_t out = fixed_sine(phase_, s.amplitude);
      phase_ += step_;
      step_ += growth_;
      return out;
    }

    std::shared_ptr<const Signal> signal_;
    const std::int64_t block_;
    std::int64_t at_ = 0;
    std::uint64_t phase_ = 0, noise_;
    std::uint64_t step_, growth_;  // phase per sample, and its growth in a sweep
  };

  std::uint64_t block_;  // [bytes]
};

const RegisterStage<Synthetic, SyntheticOptions> register_synthetic{
    "synthetic",
    "Gives tones, sweeps, noise or silence as waveforms, without files; a node of its own, "
    "NAME.samples, computes them.",
    true};
const RegisterStage<SyntheticSamples, SyntheticSamplesOptions> register_synthetic_samples{
    "synthetic_samples", "Computes the samples of synthetic, which inserts this stage."};

}  // namespace
}  // namespace melflow
