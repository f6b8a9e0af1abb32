#include "apps/parity/audio.h"

#include <sys/stat.h>

#include <fmt/format.h>

#include "apps/parity/signals.h"
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

// A stage without options that works on `files`.
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

}  // namespace melflow
