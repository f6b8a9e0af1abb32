#include "config/pipeline_tests.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "config/document.h"
#include "config/top_level.h"
#include "pipeline/base/text.h"

namespace melflow {
namespace {

// Returns the entries of a map with user-defined names. Each must be a map if `have_options`, else
// it may be anything.
std::vector<Value::Entry> named(const Value& v, const std::string& path, const char* form,
                                bool have_options, Problems& problems) {
  if (v.is_null() && !v.is_missing()) return {};
  if (!v.is_map()) {
    problems.add(v.mark(), fmt::format("{}: this is not a map; write {}", path, form));
    return {};
  }
  std::vector<Value::Entry> out = v.entries();
  if (have_options)
    std::erase_if(out, [&](const Value::Entry& e) {
      if (e.value.is_map()) return false;
      problems.add(e.key_mark,
                   fmt::format("{}.{}: this is not a map; write {}", path, excerpt(e.key), form));
      return true;
    });
  return out;
}

template <class T>
void read_options(T& target, const Value& map, const std::string& path, Problems& problems) {
  Schema schema;
  target.describe(schema);
  schema.read(map, path + ".", problems);
}

// Returns a value in the form that --set and --var accept.
std::string assigned(const Value& v) {
  return v.is_scalar() && !v.quoted() ? v.text() : to_json(v);
}

std::vector<Assignment> assignments(const Value& v, const std::string& path, const char* form,
                                    Problems& problems) {
  std::vector<Assignment> out;
  for (const Value::Entry& e : named(v, path, form, false, problems))
    out.push_back({e.key, assigned(e.value)});
  return out;
}

// Reads numbers, or the path of a .npy file. `where`: the map that should contain them.
void read_equal(ExpectedValues& out, const Mark& where, const std::string& path,
                Problems& problems) {
  const Value& v = out.equal.value;
  double number = 0;
  if (v.is_scalar() && v.text().ends_with(".npy")) {
    out.npy = v.text();
    return;
  }
  const std::string why = v.is_list() ? OptionType<std::vector<double>>::parse(v, out.numbers)
                                      : detail::parse_number(v, number);
  if (!v.is_list()) out.numbers = {number};
  if (!why.empty() || out.numbers.empty())
    problems.add(v.mark().file != nullptr ? v.mark() : where,
                 path + ".equal: write a number, a list of numbers, or the path of a .npy file");
}

std::vector<ExpectedValues> read_values(const Value& v, const std::string& path,
                                        Problems& problems) {
  constexpr const char* kForm = "a list of {file: PATH, row: N, column: N, equal: NUMBERS}";
  if (v.is_null()) return {};
  std::vector<ExpectedValues> out;
  for (const Value& one : v.is_list() ? v.items() : std::vector<Value>{v}) {
    if (!one.is_map()) {
      problems.add(one.mark(), fmt::format("{}: write {}", path, kForm));
      continue;
    }
    ExpectedValues& values = out.emplace_back();
    read_options(values, one, path, problems);
    read_equal(values, one.mark(), path, problems);
    if (values.file.empty()) problems.add(one.mark(), path + ".file: is missing");
  }
  return out;
}

// Reads names of files, with or without their numbers of rows.
std::vector<ExpectedOutput::Rows> read_files(const Value& v, const std::string& path,
                                             Problems& problems) {
  std::vector<ExpectedOutput::Rows> out;
  if (v.is_list()) {
    for (const Value& one : v.items()) {
      out.emplace_back(one.text(), std::nullopt);
      if (!one.is_scalar()) problems.add(one.mark(), path + ": write the paths of files");
    }
    return out;
  }
  constexpr const char* kForm = "{PATH: ROWS}, or a list of paths";
  for (const Value::Entry& e : named(v, path, kForm, false, problems)) {
    std::int64_t rows = 0;
    if (const std::string why = detail::parse_integer(e.value, rows); !why.empty())
      problems.add(e.value.mark(), fmt::format("{}.{}: {}", path, excerpt(e.key), why));
    out.emplace_back(e.key, rows);
  }
  return out;
}

std::vector<ExpectedOutput> read_outputs(const Value& v, const std::string& path,
                                         Problems& problems) {
  std::vector<ExpectedOutput> out;
  for (const Value::Entry& e :
       named(v, path, "NODE: {rows: N, shape: [N, N], files: [PATH]}", true, problems)) {
    const std::string here = fmt::format("{}.{}", path, excerpt(e.key));
    ExpectedOutput& output = out.emplace_back();
    output.node = e.key;
    read_options(output, e.value, here, problems);
    if (!output.files_written.value.is_null())
      output.files = read_files(output.files_written.value, here + ".files", problems);
    output.values = read_values(output.values_written.value, here + ".values", problems);
  }
  return out;
}

void read_run(ExpectedRun& run, const std::string& path, Problems& problems) {
  for (const Value::Entry& e :
       named(run.remarks_written.value, path + ".remarks", "PATH: TEXT", false, problems)) {
    run.remarks.emplace_back(e.key, e.value.text());
    if (!e.value.is_scalar())
      problems.add(e.value.mark(), fmt::format("{}.remarks.{}: write a part of the message about "
                                               "that file, such as \"decode: failed\"",
                                               path, excerpt(e.key)));
  }
  run.outputs = read_outputs(run.outputs_written.value, path + ".outputs", problems);
}

}  // namespace

void ExpectedValues::describe(Schema& s) {
  s.field("file", file, "path of the recording, below the root of the input");
  s.field("row", row, "number of the row among those of the file, from 0").at_least(0);
  s.field("column", column, "the first column, from 0; the frames of a row follow each other")
      .at_least(0);
  s.field("equal", equal,
          "a number, numbers of columns that follow each other, or the path of a .npy file with "
          "all rows from `row` on");
  s.field("within", within, "largest difference").at_least(0);
}

void ExpectedOutput::describe(Schema& s) {
  s.field("rows", rows, "number of rows").at_least(0);
  s.field("shape", shape, "shape of the rows, [rows, columns] or [rows, frames, columns]");
  s.field("dtype", dtype, "type of the values");
  s.field("files", files_written,
          "all files with rows in it: a list of paths, or a map from path to number of rows");
  s.field("values", values_written, "values of some rows");
}

void ExpectedRun::describe(Schema& s) {
  s.field("ok", ok, "number of files that are ok").at_least(0);
  s.field("skipped", skipped, "number of files that are skipped").at_least(0);
  s.field("failed", failed, "number of files that fail").at_least(0);
  s.field("error", error,
          "a part of the error that ends the run; without it the run must not fail");
  s.field("remarks", remarks_written,
          "from the path of a file to a part of the message about it, such as \"decode: failed\"");
  s.field("outputs", outputs_written, "from the node of an output to its expected properties");
}

void PipelineTest::describe(Schema& s) {
  s.field("input", input,
          "options of the source, with paths from the folder of the pipeline's file; or {stage: "
          "synthetic} with options of that stage, whose recordings are the input then");
  s.field("vars", vars_written, "values of variables of the pipeline");
  s.field("set", set_written, "other values of options, as --set has them: {mel.n_mels: 40}");
  s.group("expect", expect, "the expected results; what is not named is not checked");
}

std::vector<PipelineTest> read_tests(const Value& tests, Problems& problems) {
  std::vector<PipelineTest> out;
  constexpr const char* kForm = "NAME: {input: {root: FOLDER}, expect: {ok: N}}";
  for (const Value::Entry& e : named(tests, "tests", kForm, true, problems)) {
    const std::string path = "tests." + excerpt(e.key);
    PipelineTest& test = out.emplace_back();
    test.name = e.key;
    test.mark = e.key_mark;
    read_options(test, e.value, path, problems);
    if (!test.input.value.is_null() && !test.input.value.is_map())
      problems.add(test.input.value.mark(),
                   path +
                       ".input: write options of the source: {root: FOLDER}, or {stage: "
                       "synthetic, count: 3}");
    test.vars = assignments(test.vars_written.value, path + ".vars", "NAME: VALUE", problems);
    test.sets = assignments(test.set_written.value, path + ".set", "NODE.OPTION: VALUE", problems);
    if (!test.expect)
      problems.add(e.key_mark, path + ".expect: is missing; write the expected results: {ok: 3}");
    else
      read_run(*test.expect, path + ".expect", problems);
  }
  return out;
}

std::vector<PipelineTest> load_tests(const std::filesystem::path& file) {
  Document document = read_document(read_configuration(file.string()), file.string());
  Problems problems = std::move(document.problems);
  std::vector<PipelineTest> out;
  if (const Value* tests = document.complete ? document.root.find(kTestsKey) : nullptr)
    out = read_tests(*tests, problems);
  if (!problems.empty()) throw ConfigError(std::move(problems));
  return out;
}

}  // namespace melflow
