// Functions of Python as stages see them. The Python module provides them; the program melflow has
// none, and starts Python when a pipeline needs one.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace melflow {

/// An array of float32, by rows.
struct PythonArray {
  std::vector<std::size_t> shape;
  std::vector<float> values;
};

/// What a function made of a recording.
struct PythonAnswer {
  enum class Outcome { made, skipped, failed };
  Outcome outcome = Outcome::made;
  std::string reason;                ///< why it was skipped, or the exception and its place
  std::vector<PythonArray> results;  ///< one, or several where the function gives several
  std::vector<std::string> notes;    ///< warnings about the recording
};

class PythonFunction {
 public:
  virtual ~PythonFunction() = default;
  /// A hash of the code, and of the files that it says it depends on; "" where it cannot be known.
  [[nodiscard]] virtual std::string source_hash() const = 0;
  /// Calls it with an array of float32. `sample_rate`: 0 for rows. From any thread.
  [[nodiscard]] virtual PythonAnswer call(const float* values,
                                          const std::vector<std::size_t>& shape,
                                          int sample_rate) const = 0;
};

/// How a pipeline names a function.
struct PythonCall {
  std::string function;        ///< "module:name" or "file.py:name"
  std::string arguments;       ///< a JSON object
  std::string gives;           ///< "waveform", "waveforms", "rows", "utterances"
  int processes = 0;           ///< 0: it is called in threads of this process
  double timeout_seconds = 0;  ///< of a call in another process; 0: none
};

class PythonHost {
 public:
  virtual ~PythonHost() = default;
  /// Imports a function. Throws RunError with the reason.
  virtual std::shared_ptr<const PythonFunction> open(const PythonCall& call) = 0;
  /// `melflow export`: returns what it prints. `arguments`: those of melflow.export, a JSON object.
  /// Throws RunError.
  virtual std::string export_rows(const std::string& arguments) = 0;
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
