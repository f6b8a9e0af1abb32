// The tests of a pipeline in its configuration (`tests:`): inputs and expected outputs.
// docs/pipelines.md describes them; `melflow test` runs them. Everything else ignores them.
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

/// A value of any kind, to be read further by hand.
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

/// Expected values in the rows of one file.
struct ExpectedValues {
  std::string file;
  std::int64_t row = 0;     ///< of the file, from 0
  std::int64_t column = 0;  ///< the first one; the frames of a row are consecutive
  AnyValue equal;           ///< as written
  double within = 1e-5;     ///< largest allowed difference

  std::vector<double> numbers;  ///< of one row from `column` on
  std::string npy;              ///< or the file with all rows from `row` on

  void describe(Schema& s);
};

/// The expected properties of an output.
struct ExpectedOutput {
  /// A file and its number of rows; nullopt: any number but 0.
  using Rows = std::pair<std::string, std::optional<std::int64_t>>;

  std::string node;
  std::optional<std::int64_t> rows;
  std::vector<std::int64_t> shape;  ///< empty: any
  std::optional<std::string> dtype;
  AnyValue files_written, values_written;  ///< as written

  std::optional<std::vector<Rows>> files;  ///< all files in the output
  std::vector<ExpectedValues> values;

  void describe(Schema& s);
};

struct ExpectedRun {
  std::optional<std::int64_t> ok, skipped, failed;  ///< files
  std::optional<std::string> error;                 ///< part of the error that ends the run
  AnyValue remarks_written, outputs_written;        ///< as written

  std::vector<std::pair<std::string, std::string>> remarks;  ///< a file, and part of its warning
  std::vector<ExpectedOutput> outputs;

  void describe(Schema& s);
};

struct PipelineTest {
  std::string name;
  AnyValue input;         ///< a map of options of the source; null: unchanged
  AnyValue vars_written;  ///< as written
  AnyValue set_written;

  std::vector<Assignment> vars, sets;
  std::optional<ExpectedRun> expect;
  Mark mark;  ///< position of the name

  void describe(Schema& s);
};

/// Reads the tests in `tests`; reports problems with their positions.
std::vector<PipelineTest> read_tests(const Value& tests, Problems& problems);

/// Returns the tests of a configuration file, in the written order. Throws ConfigError.
std::vector<PipelineTest> load_tests(const std::filesystem::path& file);

}  // namespace melflow
