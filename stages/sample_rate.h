// A sample rate as it is written in a pipeline: 16000, 16kHz, 44.1kHz.
#pragma once

#include <optional>

#include "pipeline/options/schema.h"

namespace melflow {

struct SampleRate {
  int hz = 0;

  SampleRate() = default;
  SampleRate(int of_hz) : hz(of_hz) {}  // NOLINT(google-explicit-constructor): it is that number
  operator int() const { return hz; }   // NOLINT(google-explicit-constructor)
  [[nodiscard]] std::optional<double> as_number() const { return hz; }
};

template <>
struct OptionType<SampleRate> {
  static std::string name() { return "sample rate (16000, 16kHz)"; }
  static std::string parse(const Value& v, SampleRate& out);
  static Value echo(const SampleRate& v) { return Value::scalar(std::to_string(v.hz)); }
};

}  // namespace melflow
