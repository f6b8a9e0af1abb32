#include "stages/python/python_options.h"

#include <fmt/format.h>

#include "pipeline/base/problem.h"

namespace melflow {

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
  s.field("timeout", timeout,
          "with processes: how long a call may take [s]; then its recording fails, and its process "
          "is replaced")
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
  const char* gives = "waveform";
  for (const auto& [name, value] : EnumNames<PythonGives>::values)
    if (value == options_.gives) gives = name;
  if (python_host() == nullptr) throw NeedsPython{options_.call};
  try {
    function_ = python_host()->open({options_.call, to_json(options_.arguments.map), gives,
                                     options_.processes, options_.timeout});
  } catch (const RunError& e) {
    check.error("call", e.what());
  }
}

Value PythonCaller::settings() const {
  PythonOptions own = options_;
  Schema s;
  own.describe(s);
  Value out = s.echo(false);
  if (function_) out.set("source", Value::scalar(function_->source_hash(), {}, true));
  return out;
}

StageResources PythonCaller::resources() const {
  // A call in another process is waited for.
  if (options_.processes > 0) return {.blocking = true, .default_concurrency = options_.processes};
  return {.size_option = "block"};
}

std::vector<std::pair<std::string, Value>> PythonCaller::summary() const {
  if (function_ && options_.processes > 0) {
    Value processes = Value::map({});
    processes.set("count", Value::scalar(std::to_string(options_.processes)));
    processes.set("cpu_seconds",
                  Value::scalar(fmt::format("{:.6f}", function_->processes_cpu_seconds())));
    return {{"processes", std::move(processes)}};
  }
  const LockLooks looks = function_ ? function_->lock_looks() : LockLooks{};
  if (looks.all == 0) return {};
  Value lock = Value::map({});
  lock.set("looks", Value::scalar(std::to_string(looks.all)));
  lock.set("held", Value::scalar(std::to_string(looks.held)));
  lock.set("importable", Value::scalar(options_.call.front() == '@' ? "false" : "true"));
  return {{"lock", std::move(lock)}};
}

Result<PythonResults> PythonCaller::call(std::vector<float> values,
                                         const std::vector<std::size_t>& shape, int sample_rate,
                                         const ItemContext& context, std::size_t part) const {
  PythonAnswer answer = function_->call(std::move(values), shape, sample_rate);
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
