// Front ends by the stages of a pipeline, with the framework.
#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <nlohmann/json.hpp>
#include <utility>

#include "apps/c/front.h"
#include "apps/calls/stage_chain.h"
#include "config/load.h"
#include "pipeline/base/problem.h"
#include "stages/audio/resampler.h"
#include "stages/features/mel/mel_presets.h"
#include "stages/front_ends.h"
#include "stages/streaming/sample_stream.h"

namespace melflow::c_interface {
namespace {

using Json = nlohmann::ordered_json;

// The pipeline that a preset stands for, or the stages of settings.
std::string pipeline_text(Source source, std::string_view text, int mel_rate) {
  if (source == Source::yaml) return std::string(text);
  Json graph{{"files", {{"stage", "file_list"}, {"root", "/"}}},
             {"read", {{"stage", "disk_read"}, {"from", "files"}}}};
  std::string last = "read";
  const auto add = [&](const std::string& stage, Json options) {
    std::string name = stage;
    while (graph.contains(name)) name += "_";
    options["stage"] = stage;
    options["from"] = last;
    graph[name] = std::move(options);
    last = name;
  };
  if (source == Source::preset) {
    const FrontEnd* of = find_front_end(text);
    if (of == nullptr) throw Failure{MELFLOW_BAD_SETTINGS, fmt::format("'{}' is no preset", text)};
    const char* stage = of->sample_rate_of("samples") > 0 ? "samples" : "mel";
    const MelPreset* mel = find_preset(text);
    int rate = mel != nullptr ? mel->options.sample_rate : of->sample_rate_of(stage);
    if (mel_rate != 0) rate = mel_rate;
    add("decode", Json::object());
    add("resample", {{"rate", rate}});
    add(stage, {{"preset", std::string(text)}, {"sample_rate", rate}});
    add("batches", Json::object());
    return Json{{"version", 1}, {"graph", std::move(graph)}}.dump();
  }
  const std::vector<SettingsNode> nodes = nodes_of_json(text);
  const auto has = [&nodes](std::string_view stage) {
    return std::any_of(nodes.begin(), nodes.end(), [&](const auto& n) { return n.stage == stage; });
  };
  if (!has("decode")) add("decode", Json::object());
  bool has_rate = has("resample"), has_sink = false;
  for (const SettingsNode& node : nodes) {
    Json options = Json::parse(node.json());
    options.erase("stage");
    if (node.stage == "mel" && !has_rate) {
      // Written by hand.
      if (mel_rate != 0) add("resample", {{"rate", mel_rate}});
      has_rate = true;
    }
    // Recorded settings have no center where snip_edges decides.
    if (node.stage == "mel" && !node.text("snip_edges").empty()) options["center"] = false;
    const bool is_sink = !node.text("dtype").empty();
    has_sink = has_sink || is_sink;
    if (is_sink)
      add("batches", {{"dtype", node.text("dtype")}});
    else if (node.stage != "segment" || !options.empty())
      add(node.stage, std::move(options));
  }
  if (!has_sink) add("batches", Json::object());
  return Json{{"version", 1}, {"graph", std::move(graph)}}.dump();
}

// Calls what reads settings.
template <class Function>
auto with_settings(Function&& function) {
  try {
    return function();
  } catch (const ConfigError& e) {
    throw Failure{MELFLOW_BAD_SETTINGS, e.what()};
  } catch (const nlohmann::json::exception& e) {
    throw Failure{MELFLOW_BAD_SETTINGS, e.what()};
  } catch (const RunError& e) {
    throw Failure{MELFLOW_UNSUPPORTED, e.what()};
  }
}

Samples samples_of(const Given& given) {
  return {nullptr, static_cast<const std::byte*>(given.data), given.count,
          given.is_int16 ? SampleType::int16 : SampleType::float32};
}

class PipelineRecording final : public Recording {
 public:
  explicit PipelineRecording(std::shared_ptr<const StreamFront> front)
      : stream_(std::move(front)) {}
  void push(const Given& samples, bool is_last, RowVector& rows) override {
    SampleStream::Feed feed{&stream_, samples_of(samples), is_last, &rows};
    try {
      SampleStream::push({&feed, 1});
    } catch (const RunError& e) {
      throw Failure{MELFLOW_ENDED, e.what()};
    }
    if (!feed.error.empty()) throw Failure{MELFLOW_BAD_AUDIO, feed.error};
  }
  void reset() override { stream_.reset(); }

 private:
  SampleStream stream_;
};

class PipelineFront final : public Front {
 public:
  PipelineFront(std::string text, int rate)
      : text_(std::move(text)), chain_(load(), "pipeline", StageChain::Input::given) {
    const FeatureInfo& info = chain_.info();
    if (chain_.type() != NumberType::float32)
      throw Failure{MELFLOW_UNSUPPORTED, fmt::format("rows of dtype {}, and rows here are float32",
                                                     to_text(chain_.type()))};
    columns = info.columns;
    sample_rate = rate > 0 ? rate : info.sample_rate;
    row_seconds = static_cast<double>(info.hop) / info.sample_rate;
    fingerprint = chain_.fingerprint();
    try {
      if (const auto found = streams(false)->delay()) delay = found->samples;
    } catch (const RunError&) {  // there are no streams of it
    }
  }

  [[nodiscard]] std::unique_ptr<Recording> start(std::int64_t, bool finish_only,
                                                 RowVector&) const override {
    try {
      return std::make_unique<PipelineRecording>(streams(finish_only));
    } catch (const RunError& e) {
      const bool would_do = !finish_only && has_stream();
      throw Failure{would_do ? MELFLOW_NEEDS_WHOLE : MELFLOW_UNSUPPORTED, e.what()};
    }
  }

  [[nodiscard]] RowVector rows(const Given& samples) const override {
    return computed(false,
                    [&] { return chain_.rows(samples_of(samples), sample_rate, RowCall{}, {}); });
  }
  [[nodiscard]] RowVector rows_of_file(std::span<const std::byte> file,
                                       double most_seconds) const override {
    RowCall call;
    if (most_seconds > 0) call.most_seconds = most_seconds;
    return computed(true, [&] { return chain_.rows(file, call, {}); });
  }
  [[nodiscard]] std::int64_t count(std::int64_t) const override { return -1; }

 private:
  [[nodiscard]] Plan load() const {
    return with_settings([&] { return load_plan_text(text_, "pipeline"); });
  }
  [[nodiscard]] bool has_stream() const {
    try {
      static_cast<void>(streams(true));
      return true;
    } catch (const RunError&) {
      return false;
    }
  }
  // What streams share. Throws RunError where there are none.
  [[nodiscard]] std::shared_ptr<const StreamFront> streams(bool finish_only) const {
    const std::lock_guard lock(making_);
    auto& made = streams_[finish_only ? 1 : 0];
    if (made == nullptr)
      made = std::make_shared<const StreamFront>(load(), sample_rate, finish_only);
    return made;
  }
  template <class Compute>
  static RowVector computed(bool warns, Compute&& compute) {
    StageChain::Rows made;
    try {
      made = compute();
    } catch (const RunError& e) {
      throw Failure{MELFLOW_BAD_AUDIO, e.what()};
    }
    if (warns && !made.entry.reason.empty()) warn(made.entry.stage + ": " + made.entry.reason);
    const auto* values = reinterpret_cast<const float*>(made.values.data());
    return {values, values + made.values.size() / sizeof(float)};
  }

  const std::string text_;
  const StageChain chain_;
  mutable std::mutex making_;
  mutable std::shared_ptr<const StreamFront> streams_[2];  // all rows at the end or not
};

class Soxr final : public RateChange {
 public:
  Soxr(const ResampleOptions& options, int from)
      : made_(std::move(with_settings([&] {
          auto made = Resampler::make(options, from);
          if (!made) throw RunError(made.error().reason);
          return std::move(*made);
        }))) {}
  void put(const Given& samples, bool is_last, std::vector<float>& out) override {
    out.resize(made_->room(samples.count));
    const auto made = made_->put(samples_of(samples), is_last, out.data());
    if (!made) throw Failure{MELFLOW_BAD_AUDIO, made.error().reason};
    out.resize(*made);
  }

 private:
  std::unique_ptr<Resampler> made_;
};

ResampleOptions resampling(int to, const RateOptions& of) {
  ResampleOptions options;
  options.rate = to;
  for (const std::string& why :
       {OptionType<ResampleQuality>::parse(Value::scalar(of.quality), options.quality),
        OptionType<ResampleLength>::parse(Value::scalar(of.length), options.length)})
    if (!why.empty()) throw Failure{MELFLOW_BAD_SETTINGS, "resample: " + why};
  return options;
}

}  // namespace

std::shared_ptr<const Front> pipeline_front(Source source, std::string_view text, int rate,
                                            int mel_rate) {
  return with_settings([&]() -> std::shared_ptr<const Front> {
    return std::make_shared<const PipelineFront>(pipeline_text(source, text, mel_rate), rate);
  });
}

std::unique_ptr<RateChange> rate_change(int from, int to, const RateOptions& options) {
  return std::make_unique<Soxr>(resampling(to, options), from);
}

std::int64_t rate_change_lag(int from, int to, const RateOptions& options) {
  const auto lag = Resampler::most_lag(resampling(to, options), from);
  if (!lag) throw Failure{MELFLOW_UNSUPPORTED, lag.error().reason};
  return *lag;
}

}  // namespace melflow::c_interface
