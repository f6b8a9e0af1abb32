#include "stages/python/python_options.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "pipeline/base/problem.h"
#include "stages/run_task.h"

namespace melflow {
namespace {

constexpr double kPatience = 300;  // [s]

bool are_alike(const PythonAnswer& a, const PythonAnswer& b) {
  return a.outcome == b.outcome && a.results.shapes == b.results.shapes &&
         a.results.values == b.results.values;
}

// Two objects that get the same recording, until they give something else.
class TwinStreams final : public PythonStream {
 public:
  TwinStreams(std::unique_ptr<PythonStream> one, std::unique_ptr<PythonStream> other,
              const std::function<void()>& warn)
      : one_(std::move(one)), other_(std::move(other)), warn_(warn) {}
  PythonAnswer call(std::vector<PythonArray> blocks, int sample_rate, bool is_last) override {
    if (!other_) return one_->call(std::move(blocks), sample_rate, is_last);
    PythonAnswer out = one_->call(blocks, sample_rate, is_last);
    if (!are_alike(out, other_->call(std::move(blocks), sample_rate, is_last))) {
      other_.reset();
      warn_();
    }
    return out;
  }

 private:
  std::unique_ptr<PythonStream> one_, other_;
  const std::function<void()>& warn_;
};

}  // namespace

void PythonOptions::describe(Schema& s) {
  s.field(
      "call", call,
      "the function: MODULE:NAME, as Python imports it, or FILE.py:NAME; of a class objects are "
      "made, as many as are called at once; required");
  s.field("arguments", arguments,
          "arguments of the function by their names, or of the class where it is one");
  s.field("takes", takes,
          "what the function gets; waveform: the samples of a recording (float32, 1 is full scale) "
          "and their rate [Hz]; rows: the rows of a recording, [rows, columns], or of its windows, "
          "[rows, frames, columns]");
  s.field(
      "gives", gives,
      "what it gives; waveform: samples; waveforms: several arrays of samples, each of which is "
      "a result of its own; rows: an array [rows, columns], or one row; utterances: pairs of "
      "start and end [s], which segments_by makes results of");
  s.field("columns", columns,
          "with gives: rows: the number of columns; not set: that of the rows that it takes")
      .range(1, 1 << 24);
  s.field("dtype", dtype,
          "with gives: rows: number type of the values; int8, uint8, int16, uint16, int32, int64: "
          "the function gives integers (tokens, codes, units), which are stored and delivered as "
          "they are; not set: float32");
  s.field("hop", hop,
          "with gives: rows: the time from one row to the next, where rows are put beside others "
          "(concat); not set: that of the rows that it takes, if any")
      .range(1, 1 << 30);
  s.field("grows", grows,
          "the most samples or rows that it gives, all results together, as a multiple of those "
          "that it gets")
      .greater_than(0)
      .highest = 1000;
  s.field("block", block,
          "the longest recording that it takes, as float32; a longer one fails. Memory for as many "
          "bytes is reserved where the length is not known before")
      .range(4096, 1 << 30)
      .tuning();
  s.field("processes", processes,
          "the number of other processes that call it, for functions that hold Python's lock; 0: "
          "threads of this process")
      .range(0, 256)
      .tuning();
  s.field(
       "batch", batch,
       "calls the function with so many recordings of one shape, [batch, samples] or [batch, "
       "rows, columns], filled up with copies if there are fewer; it gives as many results, in a "
       "list or array. Not set: one recording")
      .range(1, 4096);
  s.field("blocks", blocks,
          "samples in a call; recordings of any length come block by block: an object of the "
          "class, made for each recording, is called with its blocks in order, and its method "
          "finish, if any, gives what is left")
      .range(1, 1 << 24);
  s.field("timeout", timeout,
          "with processes: how long a call may take [s]; then its recording fails, and its process "
          "is replaced; 0: as long as it likes; not set: 300")
      .range(0, 1e6)
      .tuning();
  s.field("deterministic", deterministic,
          "whether the function gives the same for the same input; false is written into the "
          "output");
}

void PythonCaller::open(PlanCheck& check) {
  if (options_.call.find(':') == std::string::npos)
    return check.error("call", options_.call.empty()
                                   ? "is missing; write MODULE:NAME or FILE.py:NAME"
                                   : fmt::format("'{}' names no function; write MODULE:NAME or "
                                                 "FILE.py:NAME",
                                                 options_.call));
  if (options_.dtype && options_.gives != PythonGives::rows)
    return check.error("dtype", "is for rows; write gives: rows, or leave it out");
  const NumberType type = options_.dtype.value_or(NumberType::float32);
  if (type != NumberType::float32 && !is_integer(type))
    return check.error("dtype", fmt::format("a function gives float32 or integers; leave it out, "
                                            "and write dtype: {} for the output",
                                            to_text(type)));
  if (options_.batch && options_.call == kOnnxFunction &&
      options_.arguments.map.find("frames") != nullptr)
    check.error("batch",
                "and frames are both given: pieces of a recording are a batch already (at_once); "
                "remove one");
  if (options_.timeout.value_or(kPatience) != kPatience && options_.processes == 0)
    check.note("timeout",
               "has no effect without processes: a call in a thread of this process cannot be "
               "ended; set processes, or remove it");
  const char* gives = "waveform";
  for (const auto& [name, value] : EnumNames<PythonGives>::values)
    if (value == options_.gives) gives = name;
  if (python_host() == nullptr) throw NeedsPython{options_.call};
  try {
    function_ = python_host()->open({options_.call, to_json(options_.arguments.map), gives,
                                     options_.processes, options_.timeout.value_or(kPatience),
                                     options_.batch.value_or(0), options_.blocks.has_value(),
                                     options_.columns.value_or(0), type});
  } catch (const RunError& e) {
    const bool is_model = options_.call.starts_with(kModels);
    check.error(is_model ? "model" : "call", e.what());
  }
}

void PythonCaller::describe_rows(FeatureInfo& info, PlanCheck& check) const {
  info.type = options_.dtype.value_or(NumberType::float32);
  if (!options_.hop) return;
  if (info.sample_rate <= 0)
    return check.error("hop",
                       "needs the rate of the samples; put a resample node before the function");
  const std::int64_t hop = options_.hop->at(info.sample_rate);
  if (hop < 1) return check.error("hop", "is less than one sample");
  info.hop = static_cast<int>(std::min<std::int64_t>(hop, 1 << 30));
  info.frames_of = nullptr;
}

void PythonCaller::start(RunContext& run) {
  const auto& delivery = task_of(run).delivery;
  calls_twice_ = delivery != nullptr && options_.deterministic;
  if (!calls_twice_) return;
  warn_of_other_results_ = [call = shown_call(options_.call), tell = delivery->warn,
                            warn = run.warn] {
    const std::string text = fmt::format(
        "{}: gave another result when it was called again with the same recording, so that "
        "batches after a restart may be others. Seed what is random by the samples "
        "(np.random.default_rng(zlib.crc32(samples))), or write deterministic: false for this node",
        call);
    tell(text);
    if (warn) warn(text);
  };
}

std::vector<PythonAnswer> PythonCaller::call(std::vector<PythonArray> arrays,
                                             int sample_rate) const {
  if (!calls_twice_.exchange(false)) return function_->call(std::move(arrays), sample_rate);
  std::vector<PythonAnswer> out = function_->call(arrays, sample_rate);
  const std::vector<PythonAnswer> again = function_->call(std::move(arrays), sample_rate);
  if (!std::equal(out.begin(), out.end(), again.begin(), again.end(), are_alike))
    warn_of_other_results_();
  return out;
}

std::unique_ptr<PythonStream> PythonCaller::open_stream() const {
  if (!calls_twice_.exchange(false)) return function_->open_stream();
  return std::make_unique<TwinStreams>(function_->open_stream(), function_->open_stream(),
                                       warn_of_other_results_);
}

Value PythonCaller::settings() const {
  PythonOptions own = options_;
  Schema s;
  own.describe(s);
  Value out = s.echo(false);
  // Rows of floats have the settings that they had before there was such an option.
  if (options_.dtype.value_or(NumberType::float32) == NumberType::float32)
    std::erase_if(out.entries(), [](const Value::Entry& e) { return e.key == "dtype"; });
  if (function_) out.set("source", Value::scalar(function_->source_hash(), {}, true));
  return out;
}

StageResources PythonCaller::resources() const {
  // A call in another process, or with the arrays of other threads, is waited for.
  const int calls = std::max(1, options_.processes);
  if (options_.batch)
    return {.blocking = true, .default_concurrency = std::min(2 * calls * *options_.batch, 256)};
  if (options_.processes > 0) return {.blocking = true, .default_concurrency = calls};
  return {.size_option = "block"};
}

std::vector<std::pair<std::string, Value>> PythonCaller::summary() const {
  if (!function_) return {};
  std::vector<std::pair<std::string, Value>> out;
  const char* importable = options_.blocks                ? "never"
                           : options_.call.front() == '@' ? "false"
                                                          : "true";
  const auto add = [&](const char* name,
                       const std::vector<std::pair<const char*, std::string>>& values) {
    Value map = Value::map({});
    for (const auto& [key, value] : values) map.set(key, Value::scalar(value));
    map.set("importable", Value::scalar(importable));
    out.emplace_back(name, std::move(map));
  };
  if (const LockLooks looks = function_->lock_looks(); looks.all > 0)
    add("lock", {{"looks", std::to_string(looks.all)}, {"held", std::to_string(looks.held)}});
  if (const CallsTaken taken = function_->calls_taken(); taken.at_once > 0)
    add("calls", {{"at_once", std::to_string(taken.at_once)},
                  {"seconds", fmt::format("{:.6f}", taken.seconds)},
                  {"cpu_seconds", fmt::format("{:.6f}", taken.cpu_seconds)},
                  {"core_wait_seconds", fmt::format("{:.6f}", taken.core_wait_seconds)}});
  return out;
}

Result<PythonResults> results_of(PythonAnswer answer, const ItemContext& context,
                                 std::size_t part) {
  for (std::string& note : answer.notes) context.warn(std::move(note), part);
  switch (answer.outcome) {
    case PythonAnswer::Outcome::failed:
      return ItemError::failed(std::move(answer.reason));
    case PythonAnswer::Outcome::skipped:
      return ItemError::skipped(std::move(answer.reason));
    case PythonAnswer::Outcome::made:
      break;
  }
  return std::move(answer.results);
}

}  // namespace melflow
