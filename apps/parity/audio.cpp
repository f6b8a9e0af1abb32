#include "apps/parity/audio.h"

#include <sys/stat.h>
#include <algorithm>
#include <array>
#include <cstdlib>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "pipeline/base/problem.h"
#include "pipeline/plan/graph_builder.h"
#include "pipeline/run/runner.h"
#include "stages/features/mel/mel_signal.h"
#include "stages/items.h"

namespace melflow {
namespace {

using Recordings = std::vector<ParityRecording>;

class GivenFiles final : public Source<FileRef> {
 public:
  explicit GivenFiles(Recordings& files) : files_(files) {}
  [[nodiscard]] std::size_t count() const override { return files_.size(); }
  [[nodiscard]] std::string name(std::size_t i) const override { return files_[i].path; }
  [[nodiscard]] SourceItem item(std::size_t i) override {
    auto file = std::make_shared<FileRef>();
    file->path = files_[i].path;
    struct stat st {};
    if (stat(file->path.c_str(), &st) == 0) file->size = static_cast<std::uint64_t>(st.st_size);
    const SourceInfo info{files_[i].path, file->size};
    return {std::move(file), info};
  }

 private:
  Recordings& files_;
};

class KeptSamples final : public Sink<Waveform> {
 public:
  explicit KeptSamples(Recordings& files) : files_(files) {}
  std::optional<ItemError> consume(std::shared_ptr<const Waveform> in,
                                   ItemContext& context) override {
    ParityRecording& its = files_[context.origin().stream->index()];
    its.file_rate = in->file.sample_rate;
    const Samples& s = in->samples;
    const auto count = static_cast<std::size_t>(s.count);
    if (s.type == SampleType::float32) {
      const auto* from = reinterpret_cast<const float*>(s.data);
      its.samples.insert(its.samples.end(), from, from + count);
    } else {
      const auto* from = reinterpret_cast<const std::int16_t*>(s.data);
      for (std::size_t i = 0; i < count; ++i)
        its.samples.push_back(static_cast<float>(from[i]) * kInt16Scale);
    }
    return std::nullopt;
  }

 private:
  Recordings& files_;
};

// Makes a stage without options that works on `files`.
template <class S>
StageInfo stage_for(const std::string& name, Recordings& files) {
  struct Config final : StageConfig {
    explicit Config(Recordings& its) : files(its) {}
    const Schema& schema() const override { return empty; }
    std::unique_ptr<Stage> make() const override { return std::make_unique<S>(files); }
    Recordings& files;
    Schema empty;
  };
  StageInfo info;
  info.name = name;
  info.traits = S(files).traits();
  info.configure = [&files] { return std::make_unique<Config>(files); };
  return info;
}

NodeSpec node(const std::string& stage, const std::string& from) {
  NodeSpec out;
  out.name = stage;
  out.options = Value::map({});
  out.options.set("stage", Value::scalar(stage));
  if (!from.empty()) out.options.set("from", Value::scalar(from));
  return out;
}

using Signal = std::vector<std::int16_t>;

// Knuth's MMIX generator; a draw is the upper 16 bits of the state.
class Draws {
 public:
  explicit Draws(std::uint64_t seed) : state_(seed) {}
  std::int16_t next() {
    state_ = state_ * 6364136223846793005U + 1442695040888963407U;
    return static_cast<std::int16_t>(state_ >> 48);
  }

 private:
  std::uint64_t state_;
};

std::size_t count(std::int64_t n) { return static_cast<std::size_t>(n); }

// Parabolic sine of a phase, where 2^32 is a full turn: returns -32768 to 32768.
std::int64_t sine(std::uint32_t phase) {
  const std::int64_t s = static_cast<std::int16_t>(phase >> 16);
  return (s * (32768 - std::abs(s))) >> 13;
}

// Ten harmonics gliding from 110 to 330 Hz over noise.
Signal voice(std::int64_t rate) {
  constexpr std::array<int, 10> weights{16, 12, 10, 8, 6, 5, 4, 3, 2, 1};
  const std::int64_t n = rate * 3 / 4, attack = n / 8;
  const std::int64_t first = (std::int64_t{110} << 32) / rate;
  const std::int64_t last = (std::int64_t{330} << 32) / rate;
  Draws draws(1);
  Signal out;
  std::uint32_t phase = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    std::int64_t tone = 0;
    for (std::uint32_t h = 1; h <= weights.size(); ++h) tone += weights[h - 1] * sine(h * phase);
    const std::int64_t envelope = std::min((i + 1) * 32768 / attack, (n - i) * 32768 / n);
    out.push_back(static_cast<std::int16_t>(((tone * envelope) >> 22) + (draws.next() >> 7)));
    phase += static_cast<std::uint32_t>(first + (last - first) * i / n);
  }
  return out;
}

Signal noise(std::int64_t rate) {
  Draws draws(2);
  Signal out(count(rate * 3 / 10));
  for (std::int16_t& s : out) s = static_cast<std::int16_t>(draws.next() >> 2);
  return out;
}

Signal silence(std::int64_t rate) { return Signal(count(rate / 5), 0); }

Signal impulse(std::int64_t rate) {
  Signal out = silence(rate);
  out.at(out.size() / 2) = 20000;
  return out;
}

Signal full_scale(std::int64_t rate) {
  Signal out = silence(rate);
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = static_cast<std::int16_t>(i / 37 % 2 == 0 ? -32768 : 32767);
  return out;
}

Signal dc(std::int64_t rate) { return Signal(count(rate / 5), 12000); }

Signal beginning(std::int64_t rate) {
  Signal out = voice(rate);
  out.resize(150);
  return out;
}

Signal one(std::int64_t) { return {12345}; }

constexpr std::array<std::pair<std::string_view, Signal (*)(std::int64_t)>, 8> kSignals{{
    {"voice", voice},
    {"noise", noise},
    {"silence", silence},
    {"impulse", impulse},
    {"full_scale", full_scale},
    {"dc", dc},
    {"short", beginning},
    {"one", one},
}};

}  // namespace

std::vector<ParityRecording> read_recordings(const std::vector<std::string>& paths,
                                             int sample_rate) {
  Recordings out;
  for (const std::string& path : paths) out.push_back({path, {}, 0, {}});
  Registry stages;
  for (const char* name : {"disk_read", "decode", "resample"})
    stages.add(*Registry::global().find(name));
  stages.add(stage_for<GivenFiles>("files", out));
  stages.add(stage_for<KeptSamples>("keep", out));
  GraphSpec graph;
  graph.nodes = {node("files", ""), node("disk_read", "files"), node("decode", "disk_read"),
                 node("resample", "decode"), node("keep", "resample")};
  graph.nodes[3].options.set("rate", Value::scalar(std::to_string(sample_rate)));
  Runner runner(build_plan(graph, stages));
  const RunReport report = runner.run();
  if (report.ending != Ending::complete) throw RunError(report.error);
  for (const Remark& r : runner.remarks())
    if (r.entry.outcome != Outcome::ok)
      out[r.index].problem = fmt::format("{}: {}", r.entry.stage, r.entry.reason);
  return out;
}

std::vector<ParityRecording> signal_recordings(int sample_rate) {
  Recordings out;
  for (const char* name : {"voice", "noise", "silence", "impulse", "full_scale"}) {
    ParityRecording& one = out.emplace_back();
    one.path = name;
    for (const std::int16_t s : parity_signal(name, sample_rate))
      one.samples.push_back(static_cast<float>(s) * kInt16Scale);
  }
  return out;
}

Signal parity_signal(std::string_view name, int sample_rate) {
  std::string names;
  for (const auto& [known, make] : kSignals) {
    if (known == name && sample_rate >= 1000) return make(sample_rate);
    names += (names.empty() ? "" : ", ") + std::string(known);
  }
  throw std::invalid_argument("there is no signal '" + std::string(name) + "' at " +
                              std::to_string(sample_rate) +
                              " Hz; the signals, from 1000 Hz on, are " + names);
}

std::uint32_t fnv1a(std::span<const std::int16_t> samples) {
  std::uint32_t value = 2166136261U;
  for (const std::int16_t sample : samples) {
    const unsigned bits = static_cast<std::uint16_t>(sample);
    for (const unsigned byte : {bits & 0xFFU, bits >> 8}) value = (value ^ byte) * 16777619U;
  }
  return value;
}

}  // namespace melflow
