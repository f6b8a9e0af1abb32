// melflow.hpp - melflow.h for C++17: handles that free themselves, exceptions for statuses.
//
//   melflow::c::Front front("kaldi", 16000);
//   std::vector<float> rows = front.rows(samples.data(), samples.size());  // [n][front.columns()]
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "melflow.h"

namespace melflow::c {

struct Error : std::runtime_error {
  explicit Error(melflow_status s) : std::runtime_error(melflow_error()), status(s) {}
  melflow_status status;
};

inline void check(melflow_status status) {
  if (status != MELFLOW_OK) throw Error(status);
}

class Front {
 public:
  explicit Front(const std::string& preset, int sample_rate = 0) {
    melflow_front* made = nullptr;
    check(melflow_front_from_preset(preset.c_str(), sample_rate, &made));
    handle_.reset(made, melflow_front_destroy);
  }
  static Front from_json(const std::string& text, int sample_rate = 0) {
    melflow_front* made = nullptr;
    check(melflow_front_from_json(text.data(), text.size(), sample_rate, &made));
    return Front(made);
  }
  int columns() const { return melflow_front_columns(get()); }
  std::string fingerprint() const { return melflow_front_fingerprint(get()); }
  std::vector<float> rows(const float* samples, std::size_t count) const {
    const auto n = static_cast<std::int64_t>(count);
    return collect(melflow_front_rows(get(), n), [&](float* to, std::int64_t room, auto* made) {
      return melflow_compute(get(), samples, n, to, room, made);
    });
  }
  std::vector<float> rows_of_file(const void* bytes, std::size_t size, double most = 0) const {
    return collect(kRows, [&](float* to, std::int64_t room, auto* made) {
      return melflow_compute_file(get(), bytes, size, most, to, room, made);
    });
  }
  const melflow_front* get() const { return handle_.get(); }

 private:
  static constexpr std::int64_t kRows = 8192;  // room for a file at first; more are computed twice
  explicit Front(melflow_front* made) : handle_(made, melflow_front_destroy) {}
  // Calls with room for as many rows, or below 0 none, and again where that is too little.
  template <class Call>
  std::vector<float> collect(std::int64_t room, Call&& call) const {
    std::int64_t made = 0;
    std::vector<float> out;
    const auto attempt = [&](std::int64_t rows) {
      out.resize(static_cast<std::size_t>(rows * columns()));
      return call(out.data(), rows, &made);
    };
    melflow_status status = attempt(room < 0 ? 0 : room);
    if (status == MELFLOW_NO_ROOM) status = attempt(made);
    check(status);
    out.resize(static_cast<std::size_t>(made * columns()));
    return out;
  }
  std::shared_ptr<melflow_front> handle_;
};

class Stream {
 public:
  explicit Stream(const Front& front, std::int64_t most = 0, unsigned flags = 0)
      : columns_(static_cast<std::size_t>(front.columns())) {
    melflow_stream* made = nullptr;
    check(melflow_stream_create(front.get(), most, flags, &made));
    handle_.reset(made);
  }
  // The rows that no later sample can change.
  std::vector<float> push(const float* samples, std::size_t count) {
    check(melflow_stream_push(handle_.get(), samples, static_cast<std::int64_t>(count)));
    return pull();
  }
  std::vector<float> finish() {
    check(melflow_stream_finish(handle_.get()));
    return pull();
  }
  void reset() { check(melflow_stream_reset(handle_.get())); }

 private:
  struct Destroy {
    void operator()(melflow_stream* stream) const { melflow_stream_destroy(stream); }
  };
  std::vector<float> pull() {
    std::int64_t n = melflow_stream_waiting(handle_.get());
    std::vector<float> rows(static_cast<std::size_t>(n) * columns_);
    check(melflow_stream_pull(handle_.get(), rows.data(), n, &n));
    return rows;
  }
  std::size_t columns_;
  std::unique_ptr<melflow_stream, Destroy> handle_;
};

}  // namespace melflow::c
