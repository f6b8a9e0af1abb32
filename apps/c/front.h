// What stands behind the handles of melflow.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apps/c/melflow.h"
#include "apps/c/settings.h"
#include "stages/features/mel/row_stream.h"

namespace melflow::c_interface {

// Thrown below the functions of melflow.h, which make a status and a text of it.
struct Failure {
  melflow_status status;
  std::string text;
};

// Sets melflow_warning() of the call.
void warn(const std::string& text);

// Samples of the caller.
struct Given {
  const void* data = nullptr;
  std::int64_t count = 0;
  bool is_int16 = false;
};

// One recording whose samples come in pieces.
class Recording {
 public:
  virtual ~Recording() = default;
  // Appends the rows that the samples complete; with is_last all that remain.
  virtual void push(const Given& samples, bool is_last, RowVector& rows) = 0;
  virtual void reset() = 0;
};

// What a melflow_front is. All functions may be called from any thread.
class Front {
 public:
  virtual ~Front() = default;
  [[nodiscard]] virtual std::unique_ptr<Recording> start(std::int64_t most, bool finish_only,
                                                         RowVector& rows) const = 0;
  [[nodiscard]] virtual RowVector rows(const Given& samples) const = 0;
  // A file with more than `most_seconds` fails; 0: any.
  [[nodiscard]] virtual RowVector rows_of_file(std::span<const std::byte> file,
                                               double most_seconds) const = 0;
  // The most rows of so many samples.
  [[nodiscard]] virtual std::int64_t count(std::int64_t samples) const = 0;

  int columns = 0;
  int sample_rate = 0;
  double row_seconds = 0;
  std::int64_t delay = -1;
  std::string fingerprint;
};

// Changes the rate of samples that come in pieces.
class RateChange {
 public:
  virtual ~RateChange() = default;
  // Sets `out` to the samples that these complete.
  virtual void put(const Given& samples, bool is_last, std::vector<float>& out) = 0;
};

// What the text that a front end is made of is.
enum class Source { preset, json, yaml };

std::shared_ptr<const Front> core_front(Source source, std::string_view text, int sample_rate);

// By the stages of a pipeline: of files, YAML, and front ends that change samples before mel.
// `mel_rate`: of a preset for any rate; 0: the one that it has. These three throw Failure in the
// library that has no stages.
std::shared_ptr<const Front> pipeline_front(Source source, std::string_view text, int sample_rate,
                                            int mel_rate = 0);
std::unique_ptr<RateChange> rate_change(int from, int to, const RateOptions& options);
// Samples of the rate `from` that have come in and are not out yet, at most.
std::int64_t rate_change_lag(int from, int to, const RateOptions& options);

}  // namespace melflow::c_interface
