// Windows and filters given as numbers, in a list or a .npy file, and their description in an
// output.

#include <doctest/doctest.h>

#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "pipeline/options/schema.h"
#include "stages/features/mel_stage_options.h"
#include "stages/files/npy_array.h"
#include "stages/output/formats/feature_fingerprint.h"
#include "tests/support/audio_files.h"
#include "tests/support/complaint.h"
#include "tests/support/job.h"
#include "tests/support/npy_bytes.h"
#include "tests/support/temp_folder.h"

namespace melflow::window_values_test {
namespace {

using namespace melflow::test;

// Returns the options of a configuration with this value; errors are added to `problems`.
MelStageOptions options_of(const Value& window_values, std::string& problems) {
  MelStageOptions stage;
  Schema schema;
  stage.describe(schema);
  Value map = Value::map({});
  map.set("n_fft", Value::scalar("4"));
  map.set("window", Value::scalar("values"));
  map.set("window_values", window_values);
  Problems out;
  schema.read(map, "", out);
  problems = out.str();
  return stage;
}

Value list_of(const std::vector<std::string>& numbers) {
  std::vector<Value> items;
  for (const std::string& n : numbers) items.push_back(Value::scalar(n));
  return Value::list(std::move(items));
}

std::string fingerprint(const MelStageOptions& stage) {
  REQUIRE(check(stage.resolved()).empty());
  return feature_fingerprint(MelStageOptions::canonical(stage.resolved()));
}

TEST_CASE("npy vector: float32 and float64 of one dimension, headers of every version") {
  const TempFolder folder;
  const std::string path = folder / "w.npy";
  const std::vector<double> values{0.5, -1, 3e-5};
  for (const char version : {'\1', '\2', '\3'}) {
    write_bytes(path, npy("<f8", "3,", bytes_of(values), version));
    CHECK(read_npy_vector(path) == values);
  }
  write_bytes(path, npy("<f4", "2,", bytes_of(std::vector<float>{0.25F, 7})));
  CHECK(read_npy_vector(path) == std::vector<double>{0.25, 7});
  write_bytes(path, npy("<f8", "0,", ""));
  CHECK(read_npy_vector(path).empty());
}

TEST_CASE("npy vector: what is not a list of numbers is named with what is wrong") {
  const TempFolder folder;
  const std::string path = folder / "w.npy";
  const std::string three = bytes_of(std::vector<double>{1, 2, 3});
  const std::string good = npy("<f8", "3,", three);
  const std::pair<std::string, const char*> table[] = {
      {"", "is not a .npy file"},
      {"RIFF" + good, "is not a .npy file"},
      {good.substr(0, 40), "ends within its header"},
      {npy("<f8", "3, 1", three), "has the shape (3, 1)"},
      {npy("<f8", "", three.substr(0, 8)), "has the shape ()"},
      {npy(">f8", "3,", three), "has values of type >f8"},
      {npy("<i8", "3,", three), "has values of type <i8"},
      {good.substr(0, good.size() - 1), "has 23 bytes of values, 3 values take 24"},
      {good + "x", "has 25 bytes of values, 3 values take 24"},
      {std::string("\x93NUMPY\1\0\4\0{}\n ", 14), "has a header without type or shape"},
      {std::string((8 << 20) + (1 << 17), 'x'), "more than 1048576 numbers take"},
  };
  for (const auto& [bytes, message] : table) {
    const std::string what = message;
    CAPTURE(what);
    write_bytes(path, bytes);
    const std::string said = test::complaint([&] { (void)read_npy_vector(path); });
    CAPTURE(said);
    CHECK(said.starts_with(path + ": "));
    CHECK(said.find(what) != std::string::npos);
  }
  CHECK(test::complaint([&] { (void)read_npy_vector(folder / "none.npy"); }).find("none.npy") !=
        std::string::npos);
  // Any shape is accepted where the caller asks for that.
  write_bytes(path, npy("<f8", "3, 1", three));
  CHECK(read_npy_array(path).shape == std::vector<std::uint64_t>{3, 1});
  CHECK(read_npy_array(path).values == std::vector<double>{1, 2, 3});
  std::string turned = npy("<f8", "3, 1", three);
  turned.replace(turned.find("False"), 5, "True ");
  write_bytes(path, turned);
  CHECK(test::complaint([&] { (void)read_npy_array(path); }).find("Fortran order") !=
        std::string::npos);
}

TEST_CASE("window values: a list and a file of the same numbers are the same features") {
  const TempFolder folder;
  const std::string path = folder / "w.npy";
  write_bytes(path, npy("<f8", "4,", bytes_of(std::vector<double>{0.5, 1, 1, 0.25})));
  std::string problems;
  const MelStageOptions list = options_of(list_of({"0.5", "1", "1", "0.25"}), problems);
  CHECK(problems == "");
  const MelStageOptions file = options_of(Value::scalar(path), problems);
  CHECK(problems == "");
  CHECK(file.mel.window_values.numbers == std::vector<double>{0.5, 1, 1, 0.25});
  CHECK(fingerprint(list) == fingerprint(file));
  // Other numbers are other features, even at the same path.
  write_bytes(path, npy("<f8", "4,", bytes_of(std::vector<double>{0.5, 1, 1, 0.5})));
  CHECK(fingerprint(options_of(Value::scalar(path), problems)) != fingerprint(list));
}

// Two bands of three bins, as many as n_fft 4 has.
MelStageOptions with_filters(const Value& filters, std::string& problems, const char* bands = "2") {
  MelStageOptions stage;
  Schema schema;
  stage.describe(schema);
  Value map = Value::map({});
  map.set("n_fft", Value::scalar("4"));
  map.set("n_mels", Value::scalar(bands));
  map.set("filters", filters);
  Problems out;
  schema.read(map, "", out);
  problems = out.str();
  return stage;
}

TEST_CASE("filters: the same numbers are the same features, from a list or a file, turned or not") {
  const TempFolder folder;
  const std::string path = folder / "f.npy";
  std::string problems;
  const MelStageOptions list = with_filters(
      Value::list({list_of({"0.5", "1", "0"}), list_of({"0", "-1", "0.25"})}), problems);
  CHECK(problems == "");
  CHECK(list.mel.filters.rows == 2);
  CHECK(list.mel.filters.columns == 3);
  const std::vector<double> rows{0.5, 1, 0, 0, -1, 0.25}, turned{0.5, 0, 1, -1, 0, 0.25};
  for (const std::string& bytes :
       {npy("<f8", "2, 3", bytes_of(rows)), npy("<f8", "3, 2", bytes_of(turned)),
        npy("<f4", "2, 3", bytes_of(std::vector<float>(rows.begin(), rows.end())))}) {
    write_bytes(path, bytes);
    const MelStageOptions file = with_filters(Value::scalar(path), problems);
    CHECK(problems == "");
    CHECK(fingerprint(file) == fingerprint(list));
  }
  write_bytes(path, npy("<f8", "2, 3", bytes_of(turned)));
  CHECK(fingerprint(with_filters(Value::scalar(path), problems)) != fingerprint(list));
  // What has no effect is not recorded, and the path is not.
  MelStageOptions other = list;
  other.mel.fmin = 7;
  other.mel.mel_norm = MelOptions::MelNorm::slaney;
  other.mel.filters.file = "elsewhere.npy";
  CHECK(fingerprint(other) == fingerprint(list));
  Schema schema;
  MelStageOptions again = list;
  again.describe(schema);
  CHECK(to_json(*schema.echo().find("filters")) == "[[0.5, 1, 0], [0, -1, 0.25]]");
}

TEST_CASE("filters, window values: what an output keeps of a file is read again without it") {
  const TempFolder folder;
  const std::string path = folder / "f.npy", window = folder / "w.npy";
  const std::vector<double> numbers{0.1, 1, 0, 0, -1e-300, 1.0 / 3};
  write_bytes(path, npy("<f8", "3, 2", bytes_of(numbers)));
  write_bytes(window, npy("<f8", "4,", bytes_of(std::vector<double>{0.5, 1, 1, 0.1})));
  Value map = Value::map({});
  map.set("n_fft", Value::scalar("4"));
  map.set("n_mels", Value::scalar("2"));
  map.set("filters", Value::scalar(path));
  map.set("window", Value::scalar("values"));
  map.set("window_values", Value::scalar(window));
  MelStageOptions first, again;
  Schema schema, schema_again;
  first.describe(schema);
  again.describe(schema_again);
  Problems problems;
  schema.read(map, "", problems);
  const auto kept = [&] {
    Value out = schema.echo();
    first.keep_files(out);
    return out;
  };
  const Value whole = kept();
  CHECK(to_json(*whole.find("filters")) ==
        R"({"file": ")" + path +
            R"(", "shape": [3, 2], "numbers": "0.1 1 0 0 -1e-300 0.3333333333333333"})");
  CHECK(to_json(*schema.echo().find("filters")) == "\"" + path + "\"");
  write_bytes(path, "");
  std::filesystem::remove(window);
  schema_again.read(whole, "", problems);
  CHECK(problems.str() == "");
  CHECK(again.mel == first.mel);
  Value once_more = schema_again.echo();
  again.keep_files(once_more);
  CHECK(to_json(once_more) == to_json(whole));
  // A file whose text would not fit into a configuration is kept by its path.
  const std::vector<double> many(120'000, 1.0 / 3);
  write_bytes(path, npy("<f8", "2, 60000", bytes_of(many)));
  map.set("window", Value::scalar("hann"));
  map.set("window_values", Value());
  schema.read(map, "", problems);
  CHECK(kept().find("filters")->text() == path);
  // What is kept may have been changed by hand.
  const auto said = [&](const char* text) {
    MelOptions::Filters out;
    Value changed = *whole.find("filters");
    changed.set("numbers", Value::scalar(text, {}, true));
    return OptionType<MelOptions::Filters>::parse(changed, out);
  };
  CHECK(said("1 2 3") == "numbers: 3 do not have the shape (3, 2)");
  CHECK(said("1 2 3 4 5 x") == "numbers: are not numbers with spaces between them");
  CHECK(said("") == "numbers: 0 do not have the shape (3, 2)");
}

TEST_CASE("filters: what is wrong with a matrix is said, with what fits") {
  const TempFolder folder;
  const std::string path = folder / "f.npy";
  const std::string six = bytes_of(std::vector<double>{1, 2, 3, 4, 5, 6});
  std::string problems;
  write_bytes(path, npy("<f8", "6,", six));
  (void)with_filters(Value::scalar(path), problems);
  CHECK(problems.find("filters: " + path + ": has the shape (6), not two dimensions") !=
        std::string::npos);
  (void)with_filters(Value::list({list_of({"1", "2"}), list_of({"3"})}), problems);
  CHECK(problems.find("filters: rows of 2 and of 1 numbers") != std::string::npos);
  (void)with_filters(Value::list({list_of({"1", "x"})}), problems);
  CHECK(problems.find("'x' is not a number") != std::string::npos);
  write_bytes(path, npy("<f8", "2, 3", six));
  const auto said = [&](const MelStageOptions& stage) {
    const auto found = check(stage.resolved());
    return found.empty() ? "" : found.front().message;
  };
  CHECK(said(with_filters(Value::scalar(path), problems, "5")) ==
        "filters is 2 by 3 numbers but must be 5 by 3 or 3 by 5, the bands (n_mels) and the bins "
        "(n_fft / 2 + 1); for this one set n_mels: 2");
  write_bytes(path, npy("<f8", "1, 6", six));
  CHECK(said(with_filters(Value::scalar(path), problems)) ==
        "filters is 1 by 6 numbers but must be 2 by 3 or 3 by 2, the bands (n_mels) and the bins "
        "(n_fft / 2 + 1)");
  write_bytes(path, npy("<f8", "2, 3", bytes_of(std::vector<double>(6, 0.0))));
  CHECK(said(with_filters(Value::scalar(path), problems)) ==
        "filters is all zeros but must be at least one other number");
  const double nan = std::numeric_limits<double>::quiet_NaN();
  write_bytes(path, npy("<f8", "2, 3", bytes_of(std::vector<double>{1, 2, nan, 4, 5, nan})));
  CHECK(said(with_filters(Value::scalar(path), problems)) ==
        "filters is 2: nan but must be from -1e+06 to 1e+06");
}

TEST_CASE("window values: what cannot be read is said at the option") {
  const TempFolder folder;
  std::string problems;
  (void)options_of(Value::scalar(folder / "none.npy"), problems);
  CAPTURE(problems);
  CHECK(problems.find("window_values: " + (folder / "none.npy")) != std::string::npos);
  (void)options_of(list_of({"1", "x"}), problems);
  CHECK(problems.find("window_values: 'x' is not a number") != std::string::npos);
}

TEST_CASE("window values: the file is what the run reads, which no output replaces") {
  const TempFolder folder;
  test::write_wav(folder.file("clips/a.wav"), 16000);
  const std::string path = folder / "w.npy";
  const std::string bytes = npy("<f8", "4,", bytes_of(std::vector<double>{0.5, 1, 1, 0.5}));
  write_bytes(path, bytes);
  const test::JobResult job = test::run_job(R"(
version: 1
graph:
  files: {stage: file_list, root: ")" + (folder / "clips") +
                                            R"("}
  read: {stage: disk_read, from: files}
  decode: {stage: decode, from: read}
  segment: {stage: segment, from: decode}
  batch: {stage: batch, from: segment}
  mel: {stage: mel, from: batch, sample_rate: 16000, n_fft: 4, output: spectrogram, backend: cpu,
        window: values, window_values: ")" + path +
                                            R"("}
  write: {stage: npy_write, from: mel, path: ")" +
                                            path + R"(", overwrite: true}
)");
  CAPTURE(job.error);
  CHECK(job.error.find("is what this run reads and would be replaced") != std::string::npos);
  CHECK(test::read_bytes(path) == bytes);
}

}  // namespace
}  // namespace melflow::window_values_test
