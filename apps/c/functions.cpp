// The functions of melflow.h: handles, statuses and texts.
#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "apps/c/front.h"
#include "apps/c/melflow.h"

using melflow::RowVector;
using melflow::c_interface::Failure;
using melflow::c_interface::Front;
using melflow::c_interface::Given;
using melflow::c_interface::Recording;
using melflow::c_interface::Source;

namespace {
constexpr const char* kFailed = "the stream has failed; reset it to begin another recording";
constexpr const char* kFinished =
    "the stream has been finished; reset it to begin another recording";
}  // namespace

struct melflow_front {
  std::shared_ptr<const Front> front;
};

struct melflow_stream {
  std::shared_ptr<const Front> front;
  std::unique_ptr<Recording> recording;
  RowVector rows;               // rows that wait are [pulled, end)
  std::size_t pulled = 0;       // values
  const char* ended = nullptr;  // why no samples are taken; null if they are

  [[nodiscard]] std::int64_t waiting() const {
    return static_cast<std::int64_t>(rows.size() - pulled) / front->columns;
  }
};

namespace {

// Of fixed size, as there may be no memory for it.
thread_local char last_error[1024], last_warning[1024];

template <std::size_t kSize>
void put(std::string_view text, char (&to)[kSize]) {
  const std::size_t size = std::min(text.size(), kSize - 1);
  std::memcpy(to, text.data(), size);
  to[size] = '\0';
}

melflow_status failed(melflow_status status, std::string_view text) {
  put(text, last_error);
  return status;
}

// Calls a function; returns what becomes of the call.
template <class Function>
melflow_status guarded(Function&& function) noexcept {
  try {
    function();
    return MELFLOW_OK;
  } catch (const Failure& e) {
    return failed(e.status, e.text);
  } catch (const std::bad_alloc&) {
    return failed(MELFLOW_NO_MEMORY, "there is no memory");
  } catch (const std::exception& e) {
    return failed(MELFLOW_INTERNAL, e.what());
  } catch (...) {
    return failed(MELFLOW_INTERNAL, "an exception of an unknown type");
  }
}

void require(bool is_so, const char* text) {
  if (!is_so) throw Failure{MELFLOW_BAD_ARGUMENT, text};
}

melflow_status make(Source source, const char* text, std::size_t length, int sample_rate,
                    melflow_front** out) {
  return guarded([&] {
    require(out != nullptr, "front is null");
    require(text != nullptr, source == Source::preset ? "name is null" : "text is null");
    constexpr int kLowest = 100, kHighest = 10'000'000;  // as of mel.sample_rate [Hz]
    require(sample_rate == 0 || (sample_rate >= kLowest && sample_rate <= kHighest),
            "sample_rate is 0, or from 100 to 10000000 Hz");
    const std::string_view all(text, source == Source::preset ? std::strlen(text) : length);
    auto made = std::make_unique<melflow_front>();
    made->front = source == Source::yaml
                      ? melflow::c_interface::pipeline_front(source, all, sample_rate)
                      : melflow::c_interface::core_front(source, all, sample_rate);
    *out = made.release();
  });
}

// Checks the arguments of a function that gives rows.
void check_space(const float* rows, std::int64_t room, const std::int64_t* made) {
  require(made != nullptr, "made is null");
  require(room >= 0, "room is negative");
  require(rows != nullptr || room == 0, "rows is null");
}

void check_samples(const Given& samples) {
  require(samples.count >= 0, "count is negative");
  require(samples.data != nullptr || samples.count == 0, "samples is null");
}

template <class Compute>
melflow_status whole(const melflow_front* front, float* rows, std::int64_t room, std::int64_t* made,
                     Compute&& compute) {
  return guarded([&] {
    require(front != nullptr, "front is null");
    check_space(rows, room, made);
    const RowVector all = compute(*front->front);
    const std::int64_t count = std::ssize(all) / front->front->columns;
    *made = count;
    if (count > room)
      throw Failure{MELFLOW_NO_ROOM, "there is room for " + std::to_string(room) +
                                         " rows, and the recording gives " + std::to_string(count)};
    std::copy(all.begin(), all.end(), rows);
  });
}

melflow_status compute(const melflow_front* front, const Given& samples, float* rows,
                       std::int64_t room, std::int64_t* made) {
  return whole(front, rows, room, made, [&](const Front& f) {
    check_samples(samples);
    return f.rows(samples);
  });
}

melflow_status push(melflow_stream* stream, const Given& samples, bool is_last) {
  return guarded([&] {
    require(stream != nullptr, "stream is null");
    check_samples(samples);
    melflow_stream& s = *stream;
    if (s.ended != nullptr) throw Failure{MELFLOW_ENDED, s.ended};
    if (s.pulled > 0) {
      s.rows.erase(s.rows.begin(), s.rows.begin() + static_cast<std::ptrdiff_t>(s.pulled));
      s.pulled = 0;
    }
    const std::size_t before = s.rows.size();
    try {
      s.recording->push(samples, is_last, s.rows);
    } catch (...) {
      s.rows.resize(before);
      s.ended = kFailed;
      throw;
    }
    if (is_last) s.ended = kFinished;
  });
}

}  // namespace

void melflow::c_interface::warn(const std::string& text) { put(text, last_warning); }

extern "C" {

const char* melflow_version(void) { return MELFLOW_VERSION_TEXT; }
const char* melflow_error(void) { return last_error; }
const char* melflow_warning(void) { return last_warning; }

melflow_status melflow_front_from_preset(const char* name, int sample_rate, melflow_front** front) {
  return make(Source::preset, name, 0, sample_rate, front);
}
melflow_status melflow_front_from_json(const char* text, size_t length, int sample_rate,
                                       melflow_front** front) {
  return make(Source::json, text, length, sample_rate, front);
}
melflow_status melflow_front_from_yaml(const char* text, size_t length, int sample_rate,
                                       melflow_front** front) {
  return make(Source::yaml, text, length, sample_rate, front);
}
void melflow_front_destroy(melflow_front* front) { delete front; }

int melflow_front_columns(const melflow_front* front) {
  return front == nullptr ? 0 : front->front->columns;
}
int melflow_front_sample_rate(const melflow_front* front) {
  return front == nullptr ? 0 : front->front->sample_rate;
}
double melflow_front_row_seconds(const melflow_front* front) {
  return front == nullptr ? 0 : front->front->row_seconds;
}
const char* melflow_front_fingerprint(const melflow_front* front) {
  return front == nullptr ? "" : front->front->fingerprint.c_str();
}
int64_t melflow_front_delay(const melflow_front* front) {
  return front == nullptr ? -1 : front->front->delay;
}
int64_t melflow_front_rows(const melflow_front* front, int64_t count) {
  constexpr std::int64_t kMost = std::int64_t{1} << 48;
  if (front == nullptr || count < 0) return 0;
  return count > kMost ? -1 : front->front->count(count);
}

melflow_status melflow_compute(const melflow_front* front, const float* samples, int64_t count,
                               float* rows, int64_t room, int64_t* made) {
  return compute(front, {samples, count, false}, rows, room, made);
}
melflow_status melflow_compute_int16(const melflow_front* front, const int16_t* samples,
                                     int64_t count, float* rows, int64_t room, int64_t* made) {
  return compute(front, {samples, count, true}, rows, room, made);
}
melflow_status melflow_compute_file(const melflow_front* front, const void* bytes, size_t length,
                                    double most_seconds, float* rows, int64_t room, int64_t* made) {
  put("", last_warning);
  return whole(front, rows, room, made, [&](const Front& f) {
    require(bytes != nullptr, "bytes is null");
    require(most_seconds >= 0, "most_seconds is negative");
    return f.rows_of_file({static_cast<const std::byte*>(bytes), length}, most_seconds);
  });
}

melflow_status melflow_stream_create(const melflow_front* front, int64_t most, unsigned flags,
                                     melflow_stream** stream) {
  return guarded([&] {
    require(stream != nullptr, "stream is null");
    require(front != nullptr, "front is null");
    constexpr std::int64_t kMost = std::int64_t{1} << 31;
    require(most >= 0 && most <= kMost, "most is from 0 to 2^31 samples");
    require((flags & ~MELFLOW_FINISH_ONLY) == 0, "flags has an unknown one");
    auto made = std::make_unique<melflow_stream>();
    made->front = front->front;
    made->recording = made->front->start(most, (flags & MELFLOW_FINISH_ONLY) != 0, made->rows);
    *stream = made.release();
  });
}
void melflow_stream_destroy(melflow_stream* stream) { delete stream; }

melflow_status melflow_stream_push(melflow_stream* stream, const float* samples, int64_t count) {
  return push(stream, {samples, count, false}, false);
}
melflow_status melflow_stream_push_int16(melflow_stream* stream, const int16_t* samples,
                                         int64_t count) {
  return push(stream, {samples, count, true}, false);
}
melflow_status melflow_stream_finish(melflow_stream* stream) { return push(stream, {}, true); }

int64_t melflow_stream_waiting(const melflow_stream* stream) {
  return stream == nullptr ? 0 : stream->waiting();
}
melflow_status melflow_stream_pull(melflow_stream* stream, float* rows, int64_t room,
                                   int64_t* made) {
  return guarded([&] {
    require(stream != nullptr, "stream is null");
    check_space(rows, room, made);
    melflow_stream& s = *stream;
    const std::int64_t count = std::min(room, s.waiting());
    const auto from = s.rows.begin() + static_cast<std::ptrdiff_t>(s.pulled);
    std::copy_n(from, count * s.front->columns, rows);
    s.pulled += static_cast<std::size_t>(count * s.front->columns);
    *made = count;
    if (s.pulled == s.rows.size()) {
      s.rows.clear();
      s.pulled = 0;
    }
  });
}

melflow_status melflow_stream_reset(melflow_stream* stream) {
  return guarded([&] {
    require(stream != nullptr, "stream is null");
    stream->ended = kFailed;  // until all is new
    stream->recording->reset();
    stream->rows.clear();
    stream->pulled = 0;
    stream->ended = nullptr;
  });
}

}  // extern "C"
