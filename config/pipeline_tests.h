// The tests that a configuration has of its pipeline (`tests:`): what goes in, and what has to come
// out. docs/pipelines.md describes them; `melflow test` runs them. Nothing else looks at them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/variables.h"
#include "pipeline/options/schema.h"

namespace melflow {

/// A value of any kind, for what is read further by hand.
struct AnyValue {
  Value value;
};
template <>
struct OptionType<AnyValue> {
  static std::string name() { return "any"; }
  static std::string parse(const Value& v, AnyValue& out) {
    out.value = v;
    return {};
  }
  static Value echo(const AnyValue& v) { return v.value; }
};

/// Values that rows of one file have.
struct ExpectedValues {
  std::string file;
  std::int64_t row = 0;     ///< of the file, from 0
  std::int64_t column = 0;  ///< the first one; frames of a row follow each other
  AnyValue equal;           ///< as it was written
  double within = 1e-5;     ///< largest difference

  std::vector<double> numbers;  ///< of one row from `column` on
  std::string npy;              ///< else this file has all rows from `row` on

  void describe(Schema& s);
};

/// The expected properties of an output.
struct ExpectedOutput {
  /// The number of rows that a file has; nothing: any number but 0.
  using Rows = std::pair<std::string, std::optional<std::int64_t>>;

  std::string node;
  std::optional<std::int64_t> rows;
  std::vector<std::int64_t> shape;  ///< empty: any
  std::optional<std::string> dtype;
  AnyValue files_written, values_written;  ///< as they were written

  std::optional<std::vector<Rows>> files;  ///< all that are in it
  std::vector<ExpectedValues> values;

  void describe(Schema& s);
};

struct ExpectedRun {
  std::optional<std::int64_t> ok, skipped, failed;  ///< files
  std::optional<std::string> error;                 ///< a part of why the run fails
  AnyValue remarks_written, outputs_written;        ///< as they were written

  std::vector<std::pair<std::string, std::string>> remarks;  ///< a file, and a part of its warning
  std::vector<ExpectedOutput> outputs;

  void describe(Schema& s);
};

struct PipelineTest {
  std::string name;
  AnyValue input;         ///< a map of options of the source; null: as in the pipeline
  AnyValue vars_written;  ///< as they were written
  AnyValue set_written;

  std::vector<Assignment> vars, sets;
  std::optional<ExpectedRun> expect;
  Mark mark;  ///< of its name

  void describe(Schema& s);
};

/// Reads the tests below `tests`; what is wrong is reported at its place.
std::vector<PipelineTest> read_tests(const Value& tests, Problems& problems);

/// The tests of a configuration file, in the order that they are written in. Throws ConfigError.
std::vector<PipelineTest> load_tests(const std::filesystem::path& file);

}  // namespace melflow
