// Tap writes the items of an edge for a few recordings: the same numbers as the later stages get,
// for any payload and any blocks.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/jobs/shared.h"
#include "tests/support/small_disk.h"

namespace melflow::test::tap_test {

using nlohmann::json;

namespace {

// Reads a .npy by its definition: magic, version, length of the header, header, data.
struct Npy {
  std::string descr, shape, data;
  template <class T>
  [[nodiscard]] std::vector<T> values() const {
    std::vector<T> out(data.size() / sizeof(T));
    std::memcpy(out.data(), data.data(), data.size());
    return out;
  }
};
Npy read_npy(const std::string& path) {
  const std::string bytes = read_bytes(path);
  REQUIRE(bytes.substr(0, 8) == std::string("\x93NUMPY\x01\x00", 8));
  const std::size_t length =
      static_cast<unsigned char>(bytes[8]) + 256 * static_cast<unsigned char>(bytes[9]);
  const std::string header = bytes.substr(10, length);
  const auto between = [&](const std::string& from, const std::string& to) {
    const std::size_t at = header.find(from) + from.size();
    return header.substr(at, header.find(to, at) - at);
  };
  CHECK(header.back() == '\n');
  return {between("'descr': '", "'"), between("'shape': (", ")"), bytes.substr(10 + length)};
}

std::string pipeline(const std::string& from, const std::string& options = "",
                     const std::string& block = "64KiB") {
  return fmt::format(R"(version: 1
workers: 2
graph:
  files: {{stage: file_list, root: "${{DATA}}"}}
  read: {{stage: disk_read, from: files}}
  decode: {{stage: decode, from: read, block: {2}}}
  rate: {{stage: resample, from: decode, rate: 8000}}
  segment: {{stage: segment, from: rate, length: 1000, hop: 600}}
  whole: {{stage: segment, from: rate}}
  batch: {{stage: batch, from: segment, files: 3}}
  frames: {{stage: batch, from: whole, files: 3}}
  mel: {{stage: mel, from: batch, n_fft: 256, hop: 100, n_mels: 20, center: false}}
  late: {{stage: mel, from: frames, n_fft: 256, hop: 100, n_mels: 20, normalize: per_feature}}
  write: {{stage: hdf5_write, from: mel, path: "${{OUT}}/rows.h5", overwrite: true}}
  rest: {{stage: discard, from: late}}
  tap: {{stage: tap, from: {0}, path: "${{OUT}}/tap", overwrite: true{1}}}
)",
                     from, options, block);
}

TempFolder& corpus() {
  static TempFolder folder;
  if (!std::filesystem::exists(folder / "clips")) {
    write_wav(folder.file("clips/a.wav"), 5000, 8000, 1);
    write_wav(folder.file("clips/x/b.wav"), 100'001, 8000, 2);
    write_audio(folder.file("clips/x/c.flac"), audio_kind("wav s24"), 16'000, test_signal(30'000));
    folder.write("clips/y.wav", "no sound");
  }
  return folder;
}

json tapped(const std::string& from, const std::string& options, const std::string& block,
            const std::string& name) {
  const TempFolder& folder = corpus();
  std::filesystem::remove_all(folder / "tap");
  completed(run_job(pipeline(from, options, block), in_out(folder / "clips", folder.path())));
  return json::parse(read_bytes(folder / "tap/" + name + ".json"));
}

}  // namespace

TEST_CASE("tap: samples are those of the recording, as they came") {
  const TempFolder& folder = corpus();
  for (const char* block : {"64KiB", "4MiB"}) {
    CAPTURE(std::string(block));
    const json facts = tapped("decode", "", block, "000001-b.wav");
    CHECK(facts["name"] == "x/b.wav");
    CHECK(facts["payload"] == "waveform");
    CHECK(facts["outcome"] == "ok");
    CHECK(facts["complete"] == true);
    CHECK(facts["sample_rate"] == 8000);
    CHECK(facts["file"] ==
          json{{"sample_rate", 8000}, {"frames", 100'001}, {"frames_by_header", 100'001}});
    CHECK(facts["feature_settings"].is_array());
    std::int64_t next = 0;
    for (const json& b : facts["blocks"]) {
      CHECK(b["start"] == next);
      next += b["count"].get<std::int64_t>();
    }
    CHECK(next == 100'001);
    const Npy npy = read_npy(folder / "tap/000001-b.wav.npy");
    CHECK(npy.descr == "<i2");
    CHECK(npy.shape == "100001,");
    CHECK(npy.values<std::int16_t>() == read_audio(folder / "clips/x/b.wav").int16);
    const Npy wide = read_npy(folder / "tap/000002-c.flac.npy");
    CHECK(wide.descr == "<f4");
    CHECK(wide.values<float>() == read_audio(folder / "clips/x/c.flac").interleaved);
    // A failed file has all that is known about it, and no numbers.
    const json bad = json::parse(read_bytes(folder / "tap/000003-y.wav.json"));
    CHECK(bad["outcome"] == "failed");
    CHECK(bad["stage"] == "decode");
    CHECK(bad["complete"] == false);
    CHECK(names_in(folder / "tap").size() == 7);
  }
}

TEST_CASE("tap: windows and batches have all samples, and say which windows there are") {
  const TempFolder& folder = corpus();
  for (const char* from : {"segment", "batch"})
    for (const char* block : {"64KiB", "4MiB"}) {
      CAPTURE(std::string(from));
      CAPTURE(std::string(block));
      const json facts = tapped(from, "", block, "000001-b.wav");
      CHECK(facts["windows"] == json{{"length", 1000},
                                     {"long_length", 1000},
                                     {"long_hop", 600},
                                     {"short_hop", 600},
                                     {"per_long", 1}});
      std::int64_t rows = 0;
      for (const json& b : facts["blocks"]) {
        CHECK(b["first_row"] == rows);
        rows += b["rows"].get<std::int64_t>();
      }
      CHECK(rows == (100'001 - 1000) / 600 + 1);
      CHECK(read_npy(folder / "tap/000001-b.wav.npy").values<std::int16_t>() ==
            read_audio(folder / "clips/x/b.wav").int16);
    }
}

TEST_CASE("tap: rows are those that the output has") {
  const TempFolder& folder = corpus();
  for (const char* block : {"64KiB", "4MiB"}) {
    CAPTURE(std::string(block));
    const json facts = tapped("mel", "", block, "000001-b.wav");
    CHECK(facts["rows"]["name"] == "mel");
    CHECK(facts["rows"]["final"] == true);
    CHECK(facts["rows"]["dtype"] == "float32");
    const Output out = read_output(folder / "rows.h5");
    for (const char* name : {"000000-a.wav", "000001-b.wav", "000002-c.flac"}) {
      CAPTURE(std::string(name));
      const json own = json::parse(read_bytes(folder / "tap/" + name + ".json"));
      const Npy npy = read_npy(folder / "tap/" + name + ".npy");
      const std::vector<float> rows = out.rows_of(own["name"]);
      CHECK(npy.descr == "<f4");
      CHECK(npy.shape == fmt::format("{}, {}, 20", out.file(own["name"]).count, out.shape[1]));
      CHECK(npy.values<float>() == rows);
      REQUIRE(own["rows"]["column_hz"].size() == out.band_hz.size());
      for (std::size_t i = 0; i < out.band_hz.size(); ++i)
        CHECK(own["rows"]["column_hz"][i].get<double>() == doctest::Approx(out.band_hz[i]));
    }
  }
  const json late = tapped("late", "", "64KiB", "000001-b.wav");
  CHECK(late["rows"]["final"] == false);
  CHECK(read_npy(folder / "tap/000001-b.wav.npy").shape == "1001, 20");
}

TEST_CASE("tap: files and bytes have facts alone") {
  const TempFolder& folder = corpus();
  const auto size = std::filesystem::file_size(folder / "clips/a.wav");
  const json file = tapped("files", ", files: a.wav", "64KiB", "000000-a.wav");
  CHECK(file["payload"] == "file");
  CHECK(file["path"] == folder / "clips/a.wav");
  CHECK(file["size"] == size);
  CHECK(names_in(folder / "tap") == Names{"000000-a.wav.json"});
  const json bytes = tapped("read", ", files: \"*.wav\"", "64KiB", "000000-a.wav");
  CHECK(bytes["payload"] == "bytes");
  CHECK(bytes["size"] == size);
  CHECK(bytes["is_whole"] == true);
}

TEST_CASE("tap: recordings are chosen by patterns, the first of the list up to a limit") {
  const TempFolder& folder = corpus();
  const auto chosen = [&](const std::string& options) {
    std::filesystem::remove_all(folder / "tap");
    const JobResult job =
        run_job(pipeline("decode", options), in_out(folder / "clips", folder.path()));
    CHECK_MESSAGE(job.complete(), job.text());
    Names out;
    for (const std::string& name : names_in(folder / "tap"))
      if (name.ends_with(".json")) out.insert(name);
    CHECK(job.stage("tap").summary[1].second.text() == std::to_string(out.size()));
    if (out.empty())
      CHECK(job.report.warnings ==
            std::vector<std::string>{
                "tap: no recording matches its patterns (files), so that nothing is written"});
    return out;
  };
  CHECK(chosen(", limit: 2") == Names{"000000-a.wav.json", "000001-b.wav.json"});
  CHECK(chosen(", files: [\"x/*\"]") == Names{"000001-b.wav.json", "000002-c.flac.json"});
  CHECK(chosen(", files: [\"*.flac\", \"y*\"], limit: 1") == Names{"000002-c.flac.json"});
  CHECK(chosen(", files: nothing") == Names{});
}

TEST_CASE("tap: nothing begins where a file is there, and a full disk ends the run") {
  const TempFolder& folder = corpus();
  std::string yaml = pipeline("decode");
  yaml.replace(yaml.rfind(", overwrite: true"), 17, "");
  std::filesystem::remove_all(folder / "tap");
  folder.write("tap/000001-b.wav.json", "old");
  const LoadOptions options = in_out(folder / "clips", folder.path());
  CHECK(run_job(yaml, options).error ==
        fmt::format("{}: exists already; remove it, write elsewhere, or set overwrite: true in the "
                    "tap node",
                    folder / "tap/000001-b.wav.json"));
  CHECK(names_in(folder / "tap") == Names{"000001-b.wav.json"});
  REQUIRE(run_job(pipeline("decode"), options).complete());
  CHECK(json::parse(read_bytes(folder / "tap/000001-b.wav.json"))["complete"] == true);
  const std::string alone = R"(version: 1
graph:
  files: {stage: file_list, root: "${DATA}"}
  tap: {stage: tap, from: files, path: "${OUT}/alone"}
)";
  std::string samples = alone;
  samples.replace(samples.find("  tap:"), 6,
                  "  read: {stage: disk_read, from: files}\n  decode: {stage: decode, from: read}\n"
                  "  tap:");
  samples.replace(samples.find("from: files, path"), 11, "from: decode");
  // Fails while writing the numbers as they come, or the JSON at the end of a recording.
  for (const bool is_json : {false, true}) {
    const FileSizeLimit limit(is_json ? 200 : 150'000);
    const JobResult full = run_job(is_json ? alone : samples, options);
    CHECK_MESSAGE(full.error.find("No file may be larger here") != std::string::npos, full.error);
    CHECK(full.error.find("(option path of the tap node)") != std::string::npos);
    for (const std::string& name : names_in(folder / "alone")) CHECK(!name.ends_with(".part"));
    std::filesystem::remove_all(folder / "alone");
  }
  CHECK(run_job(alone, options, {}, Update::append).error ==
        "tap: cannot be updated; use melflow run, with overwrite: true where the files are there "
        "already");
  folder.write("file", "");
  const JobResult none = run_job(alone, in_out(folder / "clips", folder / "file"));
  CHECK_MESSAGE(
      none.error.find("/file/alone: cannot be made: Not a directory") != std::string::npos,
      none.error);
  std::string empty = alone;
  empty.replace(empty.find("${OUT}/alone"), 12, "");
  LoadOptions data;
  data.vars = {{"DATA", folder / "clips"}};
  CHECK_THROWS_WITH_AS(run_job(empty, data),
                       doctest::Contains("tap: 'path' is missing; write path: FOLDER"),
                       ConfigError);
}

}  // namespace melflow::test::tap_test
