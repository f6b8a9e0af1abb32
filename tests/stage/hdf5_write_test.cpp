#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "stages/output/formats/hdf5.h"
#include "tests/stage/sink_jobs.h"
#include "tests/support/documented.h"
#include "tests/support/h5_reader.h"
#include "tests/support/printing.h"
#include "tests/support/source_path.h"

namespace melflow::test::hdf5_write_test {
namespace {

using Options = SinkJob;

std::string pipeline(const Options& o = {}) { return test::pipeline(kHdf5, o); }

JobResult run(const std::string& yaml, const TempFolder& folder) { return run_sinks(yaml, folder); }

}  // namespace

TEST_CASE("hdf5_write: everything in docs/output-format.md is there, with its type and shape") {
  const Filled<make_corpus> folder;
  struct Row {
    const char* what;
    Options options;
    std::size_t axes;
    std::string type;
  };
  const Row rows[] = {
      {"frames", {}, 2, "float32"},
      {"windows of one frame",
       {.segment = "length: 256", .mel = "center: false, log: db"},
       2,
       "float32"},
      {"windows of several frames", {.segment = "length: 1024"}, 3, "float32"},
      {"float16", {.write = "dtype: float16"}, 2, "float16"},
      {"bfloat16", {.write = "dtype: bfloat16"}, 2, "bfloat16"},
  };
  std::vector<std::string> expected_names{
      "band_hz",        "files",        "labels",       "labels/name",    "mel",
      "remarks",        "remarks/file", "remarks/path", "remarks/reason", "remarks/stage",
      "remarks/status", "splits",       "splits/name"};
  for (const DocumentedColumn& c : documented_columns())
    if (!c.is_optional) expected_names.push_back(c.name);
  std::sort(expected_names.begin(), expected_names.end());
  CHECK(expected_names.size() >= 13 + 10);
  for (const Row& row : rows) {
    CAPTURE(std::string(row.what));
    const JobResult job = completed(run(pipeline(row.options), folder));
    const H5File h5(folder / "out.h5");
    CHECK(h5.names() == expected_names);
    const std::uint64_t found = job.report.counts.found, bands = 20;
    const auto rows_written = h5.shape("mel").at(0);
    CHECK(h5.shape("mel").size() == row.axes);
    CHECK(h5.shape("mel").back() == bands);
    CHECK(h5.type("mel") == row.type);
    CHECK(h5.layout("mel") == "contiguous");
    CHECK(h5.shape("band_hz") == std::vector<std::uint64_t>{bands});
    CHECK(h5.axis_scale("mel", static_cast<unsigned>(row.axes - 1)) == "/band_hz");
    CHECK(h5.axis_label("mel", 0) == "row");
    CHECK(h5.axis_label("mel", static_cast<unsigned>(row.axes - 1)) == "band");
    if (row.axes == 3) CHECK(h5.axis_label("mel", 1) == "frame");
    const std::string status = "enum int8: ok=0 skipped=1 failed=2 not_run=3";
    std::vector<std::pair<std::string, std::string>> types{
        {"band_hz", "float64"},      {"labels/name", "string"},   {"splits/name", "string"},
        {"remarks/file", "int64"},   {"remarks/path", "string"},  {"remarks/status", status},
        {"remarks/stage", "string"}, {"remarks/reason", "string"}};
    for (const DocumentedColumn& c : documented_columns())
      if (!c.is_optional) types.emplace_back(c.name, c.name == "files/status" ? status : c.type);
    for (const auto& dataset : types) {
      const std::string& name = dataset.first;
      CAPTURE(name);
      CHECK(h5.type(name) == dataset.second);
      if (name.starts_with("files/")) CHECK(h5.shape(name) == std::vector<std::uint64_t>{found});
    }
    CHECK(h5.attribute_names("/") ==
          std::vector<std::string>{"backend", "complete", "config", "failed", "feature_fingerprint",
                                   "feature_settings", "format", "found", "hop_length",
                                   "index_hash", "instruction_set", "melflow_version", "n_fft",
                                   "not_run", "ok", "rows", "sample_rate", "skipped"});
    const std::pair<const char*, std::string> attributes[] = {{"melflow_version", "string"},
                                                              {"format", "int32"},
                                                              {"complete", "int8"},
                                                              {"rows", "string"},
                                                              {"found", "int64"},
                                                              {"ok", "int64"},
                                                              {"skipped", "int64"},
                                                              {"failed", "int64"},
                                                              {"not_run", "int64"},
                                                              {"config", "string"},
                                                              {"feature_settings", "string"},
                                                              {"feature_fingerprint", "string"},
                                                              {"backend", "string"},
                                                              {"instruction_set", "string"},
                                                              {"sample_rate", "int32"},
                                                              {"n_fft", "int32"},
                                                              {"hop_length", "int32"}};
    for (const auto& a : attributes) {
      CAPTURE(std::string(a.first));
      CHECK(h5.attribute_type("/", a.first) == a.second);
    }
    CHECK(h5.attribute_names("files") == std::vector<std::string>{"root"});
    CHECK(h5.text_attribute("files", "root") == folder / "clips");
    CHECK(h5.text_attribute("mel", "unit") == "dB");
    CHECK(h5.integer_attribute("/", "complete") == 1);
    CHECK(h5.integer_attribute("/", "format") == 2);
    CHECK(h5.text_attribute("/", "rows") == "mel");
    CHECK(h5.integer_attribute("/", "sample_rate") == kRate);
    CHECK(h5.integer_attribute("/", "n_fft") == 256);
    CHECK(h5.integer_attribute("/", "hop_length") == 128);
    CHECK(h5.text_attribute("/", "backend") == "cpu");
    CHECK(h5.text_attribute("/", "feature_fingerprint").size() == 32);
    // The names in the file and in the documentation are the same.
    const std::string text = read_bytes(source_path("docs/output-format.md"));
    for (const std::string& name : h5.names())
      if (name.find('/') != name.npos || name == "mel" || name == "band_hz")
        CHECK_MESSAGE(text.find("`/" + name + "`") != text.npos, name);
    for (const std::string& name : h5.attribute_names("/"))
      CHECK_MESSAGE(text.find("`" + name + "`") != text.npos, name);
    CHECK(rows_written > 0);
    CHECK(check_h5(folder / "out.h5") == "");
    // The report has the same values.
    for (const auto& [name, value] : job.stage("write").summary) {
      if (name == "path") CHECK(value.text() == folder / "out.h5");
      if (name == "rows") CHECK(value.text() == std::to_string(rows_written));
      if (name == "dtype") CHECK(value.text() == row.type);
      if (name == "shape") CHECK(value.items().size() == row.axes);
      if (name == "bytes")
        CHECK(value.text() == std::to_string(std::filesystem::file_size(folder / "out.h5")));
    }
    std::filesystem::remove(folder / "out.h5");
  }
}

TEST_CASE("hdf5_write: of a compressed output the report has its size and what packing takes") {
  const Filled<make_corpus> folder;
  const auto figure = [](const Value& of, const char* name) {
    return std::stod(of.find(name)->text());
  };
  for (const int level : {1, 9}) {
    CAPTURE(level);
    const JobResult job = completed(
        run(pipeline({.write = fmt::format("compression: deflate, level: {}, chunk: 4KiB", level)}),
            folder));
    const auto& summary = job.stage("write").summary;
    const auto entry = [&](const char* name) {
      return std::find_if(summary.begin(), summary.end(),
                          [&](const auto& e) { return e.first == name; });
    };
    REQUIRE(entry("bytes") != summary.end());
    CHECK(entry("bytes")->second.text() ==
          std::to_string(std::filesystem::file_size(folder / "out.h5")));
    REQUIRE(entry("packing") != summary.end());
    const Value& packing = entry("packing")->second;
    CHECK(packing.find("level")->text() == std::to_string(level));
    CHECK(figure(packing, "seconds") > 0);
    const Value& fast = *packing.find("level_1");
    CHECK(figure(packing, "size") < 1);
    if (level == 1) CHECK(figure(fast, "size") == figure(packing, "size"));
    if (level > 1) CHECK(figure(fast, "size") > figure(packing, "size"));
    std::filesystem::remove(folder / "out.h5");
  }
}

TEST_CASE("hdf5_write: what stands in the index is what became of the files") {
  const Filled<make_corpus> folder;
  completed(run(pipeline({.mel = "center: false"}), folder));
  const Output out = read_output(folder / "out.h5");
  std::vector<std::string> paths;
  for (const Output::File& f : out.files) paths.push_back(f.path);
  CHECK(paths == std::vector<std::string>{"cat/3.wav", "cat/4.wav", "cat/5.wav", "cat/broken.wav",
                                          "cat/short.wav", "dog/0.wav", "dog/1.wav", "dog/2.wav",
                                          "dog/cut.wav", "dog/folder.wav", "top.wav"});
  CHECK(out.labels == std::vector<std::string>{"cat", "dog"});
  CHECK(out.splits.empty());
  std::int64_t offset = 0;
  for (const Output::File& f : out.files) {
    CAPTURE(f.path);
    CHECK(f.offset == offset);
    offset += f.count;
    CHECK(f.label == (f.path.starts_with("cat") ? 0 : f.path.starts_with("dog") ? 1 : -1));
    CHECK(f.split == -1);
    const bool has_rows = f.status == 0;
    CHECK((f.count > 0) == has_rows);
    CHECK(f.sample_rate == (has_rows ? kRate : 0));
    if (!has_rows) CHECK(f.duration == 0);
  }
  CHECK(offset == static_cast<std::int64_t>(out.rows()));
  CHECK(out.file("dog/1.wav").count == (4512 - 256) / 128 + 1);
  CHECK(out.file("dog/1.wav").duration == 4512.0 / kRate);
  CHECK(out.file("dog/cut.wav").duration == 5500.0 / kRate);
  const std::vector<Output::Remark> remarks{
      {3, "cat/broken.wav", 2, "decode", "is not an audio file (begins with 'no sound')"},
      {4, "cat/short.wav", 1, "mel", "shorter than one frame: 10 samples of 256"},
      {8, "dog/cut.wav", 0, "decode",
       "short: the header promises 12044 bytes, the file has 11044; 5500 samples (0.688 s) are "
       "there"},
      {9, "dog/folder.wav", 1, "read", "is a folder, not a file"}};
  CHECK(out.remarks == remarks);
  CHECK(out.integers.at("found") == 11);
  CHECK(out.integers.at("ok") == 8);
  CHECK(out.integers.at("skipped") == 2);
  CHECK(out.integers.at("failed") == 1);
  CHECK(out.integers.at("not_run") == 0);
}

TEST_CASE("hdf5_write: equal features have equal hashes, whatever else the configuration says") {
  const TempFolder folder;
  write_wav(folder.file("clips/a.wav"), 4000, kRate);
  const auto hash = [&](const Options& options) {
    Options o = options;
    o.write += ", overwrite: true";
    completed(run(pipeline(o), folder));
    return read_output(folder / "out.h5").texts.at("feature_fingerprint");
  };
  const std::string first = hash({.write = "sync: true"});
  CHECK(hash({.files = "labels: none",
              .decode = "truncated: keep, block: 64KiB",
              .write = "dtype: float32"}) == first);
  CHECK(hash({.write = "sync: false", .top = "memory: {host: 300MiB}\nworkers: 1"}) == first);
  CHECK(hash({.mel = "log: db, top_db: 80", .write = "sync: false"}) != first);
  // Different texts for the same settings: defaults, or options without effect.
  CHECK(hash({.mel = "log: db, fmax: 4000, pad: 128, win_length: 256, kaiser_beta: 3",
              .write = "sync: true"}) == first);
  CHECK(hash({.mel = "log: db, preset: none, fmax: 0, vtln_low: 50, htk_compat: true",
              .write = "sync: true"}) == first);
  const std::pair<std::string, std::string> same[] = {
      {"use_energy: true", "use_energy: true, energy_floor: 1e-10"},
      {"normalize: fixed, norm_mean: -4", "normalize: fixed, norm_mean: [-4], norm_std: 1"},
      {"normalize: fixed, norm_mean: 0",
       "normalize: fixed, norm_mean: 0, norm_std: 3, norm_variance: false"},
      {"normalize: fixed, norm_mean: 2",
       "normalize: fixed, norm_mean: [2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2]"},
  };
  for (const auto& pair : same) {
    CAPTURE(pair.second);
    CHECK(hash({.mel = pair.first, .write = "sync: true"}) ==
          hash({.mel = pair.second, .write = "sync: true"}));
  }
  CHECK(hash({.decode = "fit: 1s", .write = "sync: true"}) ==
        hash({.decode = "fit: 8000", .write = "sync: true"}));
  CHECK(hash({.segment = "min_length: 800", .write = "sync: true"}) ==
        hash({.segment = "min_length: 100ms", .write = "sync: true"}));
  CHECK(hash({.segment = "length: 1024", .write = "sync: true"}) ==
        hash({.segment = "length: 128ms, hop: 1024", .write = "sync: true"}));
  CHECK(hash({.mel = "log: db, preset: torchaudio", .write = "sync: true"}) == first);
  CHECK(hash({.decode = "fit: 1s", .write = "sync: false"}) != first);
  CHECK(hash({.segment = "length: 1024", .write = "sync: false"}) != first);
  // With half the precision, /mel has other values.
  CHECK(hash({.write = "dtype: float16"}) != first);
  CHECK(hash({.write = "dtype: bfloat16"}) != hash({.write = "dtype: float16"}));
}

TEST_CASE("hdf5_write: the output says which preset its features have and what was changed") {
  const TempFolder folder;
  write_wav(folder.file("clips/a.wav"), 4000, kRate);
  const std::pair<std::string, std::string> table[] = {
      {"preset: torchaudio", "torchaudio, with sample_rate, n_fft, hop and n_mels changed"},
      {"preset: whisper, normalize: none",
       "whisper, with sample_rate, n_fft, hop, n_mels and normalize changed"},
      {"preset: whisper, log: db, use_energy: false",
       "whisper, with sample_rate, n_fft, hop, n_mels and log changed"},
  };
  for (const auto& [mel, text] : table) {
    completed(run(pipeline({.mel = mel, .write = "overwrite: true"}), folder));
    CHECK(H5File(folder / "out.h5").text_attribute("/", "preset") == text);
  }
}

TEST_CASE(
    "hdf5_write: compressed chunks hold the same rows, and none of files that failed on the way") {
  const TempFolder folder;
  for (unsigned i = 0; i < 9; ++i)
    write_wav(folder.file("clips/" + std::to_string(i) + ".wav"), 20'000 + 1000 * i, kRate, i);
  // Damaged in the middle: its first rows are placed before it fails.
  std::string flac;
  {
    write_audio(folder.file("clips/4b.flac"), audio_kind("flac s16"), kRate, test_signal(400'000));
    flac = read_bytes(folder / "clips/4b.flac");
    for (std::size_t i = flac.size() / 2; i < flac.size() / 2 + 3000; ++i) flac[i] = '\0';
    std::ofstream(folder / "clips/4b.flac", std::ios::binary) << flac;
  }
  const Options plain{.decode = "truncated: fail, block: 64KiB"};
  REQUIRE(run(pipeline(plain), folder).complete());
  const Output expected = read_output(folder / "out.h5");
  CHECK(expected.file("4b.flac").count == 0);
  CHECK(expected.file("4b.flac").status == 2);
  for (const char* how :
       {"layout: chunked", "compression: deflate", "compression: deflate, level: 9",
        "compression: deflate, shuffle: false, chunk: 4KiB"}) {
    CAPTURE(std::string(how));
    std::filesystem::remove(folder / "out.h5");
    Options o = plain;
    o.write = how;
    completed(run(pipeline(o), folder));
    CHECK(expected.difference(read_output(folder / "out.h5")) == "");
    CHECK(H5File(folder / "out.h5").layout("mel") == "chunked");
    CHECK(read_output(folder / "out.h5").texts.at("feature_fingerprint") ==
          expected.texts.at("feature_fingerprint"));
  }
  CHECK_THROWS_WITH_AS(run(pipeline({.write = "layout: contiguous, compression: deflate"}), folder),
                       "test.yaml:10:68: write.layout: a contiguous dataset cannot be compressed; "
                       "layout: auto chooses chunks",
                       ConfigError);
}

TEST_CASE("hdf5_write: access chooses the size of chunks, unless that is given") {
  const TempFolder folder;
  write_wav(folder.file("clips/a.wav"), 4000, kRate);
  const std::pair<const char*, hsize_t> table[] = {
      {"compression: deflate", 262144 / 80},
      {"compression: deflate, access: sequential", 262144 / 80},
      {"compression: deflate, access: blocks", 32768 / 80},
      {"compression: deflate, access: shuffled", 8192 / 80},
      {"layout: chunked, access: shuffled", 8192 / 80},
      {"layout: chunked, dtype: float16, access: shuffled", 8192 / 40},
      {"layout: chunked, access: shuffled, chunk: 64KiB", 65536 / 80},
      {"layout: chunked, access: shuffled, chunk: auto", 8192 / 80},
      {"access: shuffled", 0},  // contiguous, so that every row is equally near
  };
  for (const auto& row : table) {
    const std::string write = row.first;
    CAPTURE(write);
    completed(run(pipeline({.write = "overwrite: true, " + write}), folder));
    const Hid file(H5Fopen((folder / "out.h5").c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose,
                   "file");
    const Hid mel(H5Dopen2(file, "mel", H5P_DEFAULT), H5Dclose, "mel");
    const Hid created(H5Dget_create_plist(mel), H5Pclose, "how it was made");
    std::array<hsize_t, 2> chunk{};
    if (H5Pget_layout(created) == H5D_CHUNKED) H5Pget_chunk(created, 2, chunk.data());
    CHECK(chunk[0] == row.second);
  }
}

}  // namespace melflow::test::hdf5_write_test
