// Functions of Python as stages see them. The Python module provides them; the program melflow has
// none, and starts Python when a pipeline needs one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/base/number_type.h"
#include "pipeline/base/result.h"

namespace melflow {

struct WebLimits;

/// An array of float32 that a function gets.
struct PythonArray {
  std::vector<float> values;
  std::vector<std::size_t> shape;
};

/// Arrays of one type: float32, or the integers of rows.
struct PythonResults {
  std::vector<std::vector<std::size_t>> shapes;  ///< of each
  std::vector<std::byte> values;                 ///< of all, one after the other
  NumberType type = NumberType::float32;

  [[nodiscard]] std::size_t count() const { return values.size() / size_of(type); }
  /// The values of float32.
  [[nodiscard]] std::span<const float> floats() const {
    return {reinterpret_cast<const float*>(values.data()), count()};
  }
};

/// The result of a function for a recording.
struct PythonAnswer {
  enum class Outcome { made, skipped, failed };
  Outcome outcome = Outcome::made;
  std::string reason;              ///< why it was skipped, or the exception and its place
  PythonResults results;           ///< one, or several where the function gives several
  std::vector<std::string> notes;  ///< warnings about the recording
};

/// How often Python's lock was looked at since the first call, at equal intervals, and how often it
/// was held while a call was under way.
struct LockLooks {
  std::size_t all = 0, held = 0;
};

/// The cost of calls that the asking thread does not make itself: they are made in other processes,
/// or together with calls of other threads.
struct CallsTaken {
  int at_once = 0;               ///< the most of them; 0: each thread makes its own
  double seconds = 0;            ///< of all of them
  double cpu_seconds = 0;        ///< processor time of other processes
  double core_wait_seconds = 0;  ///< in which other processes were ready but had no core
};

/// An object of Python that gets one recording, block by block, from one thread at a time.
class PythonStream {
 public:
  virtual ~PythonStream() = default;
  /// Gives the samples that the object gives for all these blocks, as one result.
  virtual PythonAnswer call(std::vector<PythonArray> blocks, int sample_rate, bool is_last) = 0;
};

class PythonFunction {
 public:
  virtual ~PythonFunction() = default;
  /// A hash of the code, and of the files that it says it depends on; "" where it cannot be known.
  [[nodiscard]] virtual std::string source_hash() const = 0;
  /// Calls it for each of these arrays, which it may keep or change, and gives an answer about
  /// each. `sample_rate`: 0 for rows. From any thread.
  [[nodiscard]] virtual std::vector<PythonAnswer> call(std::vector<PythonArray> arrays,
                                                       int sample_rate) const = 0;
  /// Makes an object for one recording; of a function with `has_blocks`.
  [[nodiscard]] virtual std::unique_ptr<PythonStream> open_stream() const = 0;
  [[nodiscard]] virtual CallsTaken calls_taken() const = 0;
  /// Empty if the function runs in other processes.
  [[nodiscard]] virtual LockLooks lock_looks() const = 0;
};

/// The function of an option `call` as messages name it; one that only this process knows
/// (@NAME-HASH:here), as it is called in the code.
std::string shown_call(const std::string& call);

/// How a pipeline names a function.
struct PythonCall {
  std::string function;        ///< "module:name" or "file.py:name"
  std::string arguments;       ///< a JSON object
  std::string gives;           ///< "waveform", "waveforms", "rows", "utterances"
  int processes = 0;           ///< 0: it is called in threads of this process
  double timeout_seconds = 0;  ///< of a call in another process; 0: none
  int batch = 0;               ///< the number of arrays in a call; 0: it gets one
  bool has_blocks = false;     ///< recordings come in blocks, each to an object of its own
  int columns = 0;             ///< of the rows that it gives; 0: not given
  NumberType type = NumberType::float32;  ///< of the rows that it gives
};

/// One recording of a corpus that Python gives.
struct PythonItem {
  std::string path;                     ///< its name in the corpus
  std::vector<std::string> columns;     ///< its keys beside those that say what it is
  std::int64_t size = 0, modified = 0;  ///< its stamp; 0: not known, it counts as unchanged
  std::string file;     ///< the file with its bytes, or their URL of http or https, which read()
                        ///< gives, too; "": read() gives them
  std::string problem;  ///< why it cannot be used; "" if it can
};

/// The corpus that a function gave.
class PythonItems {
 public:
  virtual ~PythonItems() = default;
  /// The next recording, or nothing behind the last one. Throws RunError. From one thread.
  virtual std::optional<PythonItem> next() = 0;
  /// The text that the item which next() gave last has in a column, "" for none; or why its value
  /// is no text. From the same thread.
  [[nodiscard]] virtual Result<std::string> cell(const std::string& column) const = 0;
  [[nodiscard]] virtual bool has_paths() const = 0;
  /// Passes the bytes of a recording that was listed to `take`; gives an answer without results.
  /// From any thread.
  virtual PythonAnswer read(const std::string& path,
                            const std::function<void(std::span<const std::byte>)>& take) const = 0;
};

/// How a verb that Python runs has ended.
struct PythonVerb {
  int status = 0;
  std::string printed;    ///< for stdout
  std::string complaint;  ///< for stderr; "": none
};

class PythonHost {
 public:
  virtual ~PythonHost() = default;
  /// Imports a function. Throws RunError with the reason.
  virtual std::shared_ptr<const PythonFunction> open(const PythonCall& call) = 0;
  /// Calls a function that gives the recordings of a corpus. `arguments`: a JSON object; `web`: of
  /// what Python reads from the web. Throws RunError with the reason.
  virtual std::shared_ptr<PythonItems> open_items(const std::string& function,
                                                  const std::string& arguments,
                                                  const WebLimits& web) = 0;
  /// Calls of_verb() of melflow/MODULE.py. `arguments`: a JSON object. Throws RunError.
  virtual PythonVerb run_verb(const std::string& module, const std::string& arguments) = 0;
};

/// Sets the process's Python, once, before the first plan.
void set_python_host(PythonHost* host);
PythonHost* python_host();

/// Thrown where a plan has a function of Python, or a verb is one, and the process has no Python.
/// The program then starts itself within Python; not an exception that a stage or verb handles.
struct NeedsPython {
  std::string call;
};

}  // namespace melflow
