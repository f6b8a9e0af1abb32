// The sink that writes nothing: it accepts every type of an edge, and counts.
#include <doctest/doctest.h>

#include <map>
#include <string>
#include <vector>

#include "pipeline/base/problem.h"
#include "tests/jobs/shared.h"

namespace melflow::test::discard_test {
namespace {

// Three good recordings, one of several blocks; a file that is no sound and one without samples.
void write_corpus(const TempFolder& folder) {
  write_wav(folder.file("clips/a.wav"), 4000, 8000, 1);
  write_wav(folder.file("clips/b.wav"), 100'001, 8000, 2);
  write_wav(folder.file("clips/c.wav"), 5513, 11025, 3);
  folder.write("clips/bad.wav", "this is no sound");
  write_wav(folder.file("clips/empty.wav"), 0, 8000);
}
// 4000 / 8000 + 100001 / 8000 + 5513 / 11025, each rounded down to a microsecond.
constexpr const char* kSeconds = "13.500";

const char* const kNodes[] = {"files", "read", "decode", "segment", "batch", "mel"};

std::string pipeline(const std::string& from, const std::string& more = "") {
  const std::string mel =
      "  mel: {stage: mel, from: batch, n_fft: 256, hop: 80, n_mels: 20, sample_rate: 8000}\n";
  const std::string nodes[] = {"  files: {stage: file_list, root: \"${DATA}\"}\n",
                               "  read: {stage: disk_read, from: files}\n",
                               "  decode: {stage: decode, from: read, block: 64KiB}\n",
                               "  segment: {stage: segment, from: decode}\n",
                               "  batch: {stage: batch, from: segment, files: 3}\n",
                               mel};
  std::string out = "version: 1\nworkers: 2\ngraph:\n";
  for (std::size_t i = 0; i < std::size(kNodes); ++i) {
    std::string line = nodes[i];
    if (from == "mel" && i == 3) {  // mel accepts only one rate
      out += "  rate: {stage: resample, from: decode, rate: 8000}\n";
      line = "  segment: {stage: segment, from: rate}\n";
    }
    out += line;
    if (from == kNodes[i]) break;
  }
  return out + "  end: {stage: discard, from: " + from + "}\n" + more;
}

LoadOptions from_clips(const TempFolder& folder) {
  LoadOptions options;
  options.vars = {{"DATA", folder / "clips"}};
  return options;
}

std::map<std::string, std::string> said(const JobResult& job, const std::string& node = "end") {
  std::map<std::string, std::string> out;
  for (const auto& [name, value] : job.stage(node).summary) out[name] = value.text();
  return out;
}

}  // namespace

TEST_CASE("discard: takes whatever comes, and counts the files and the audio") {
  const Filled<write_corpus> folder;
  for (const std::string from : kNodes) {
    CAPTURE(from);
    const JobResult job = completed(run_job(pipeline(from), from_clips(folder)));
    const bool is_decoded = from != "files" && from != "read";
    CHECK(job.report.counts.found == 5);
    CHECK(job.report.counts.ok == (is_decoded ? 3 : 5));
    CHECK(job.report.counts.failed == (is_decoded ? 1 : 0));
    const auto counts = said(job);
    CHECK(counts.at("files") == (is_decoded ? "3" : "5"));
    CHECK(counts.count("audio_seconds") == (is_decoded ? 1 : 0));
    if (is_decoded) CHECK(counts.at("audio_seconds") == kSeconds);
    if (from == "mel") CHECK(job.stage("end").rows_in > 1000);
  }
}

TEST_CASE("discard: one way may end in it while others go on") {
  const Filled<write_corpus> folder;
  const JobResult job = completed(run_job(pipeline("decode", R"(  route:
    stage: route
    from: decode
    outputs: {long: {duration: "> 5s"}}
    else: rest
  none: {stage: discard, from: route.rest}
  segment: {stage: segment, from: route.long}
  batch: {stage: batch, from: segment}
  mel: {stage: mel, from: batch, n_fft: 256, hop: 80, n_mels: 20, sample_rate: 8000}
  write: {stage: hdf5_write, from: mel, path: "${OUT}"}
)"),
                                          in_out(folder / "clips", folder / "out.h5")));
  CHECK(said(job).at("files") == "3");
  CHECK(said(job, "none").at("files") == "2");
  CHECK(read_output(folder / "out.h5").file("b.wav").count > 1000);
}

TEST_CASE("discard: a file that fails behind a batch is not counted") {
  const Filled<write_corpus> folder;
  // mel does not accept 11,025 Hz.
  const std::string yaml = pipeline("batch") +
                           "  mel: {stage: mel, from: batch, n_fft: 256, hop: 80, n_mels: 20, "
                           "sample_rate: 8000}\n  rows: {stage: discard, from: mel}\n";
  const JobResult job = completed(run_job(yaml, from_clips(folder)));
  CHECK(job.report.counts.ok == 2);
  CHECK(said(job, "rows").at("files") == "2");
  CHECK(said(job, "rows").at("audio_seconds") == "13.000");
}

TEST_CASE("discard: there is nothing to update, and nothing behind it") {
  const Filled<write_corpus> folder;
  CHECK(run_job(pipeline("decode"), from_clips(folder), {}, Update::append).error ==
        "discard: keeps nothing, so there is nothing to update; use melflow run instead");
  const std::string more = "  segment: {stage: segment, from: end}\n";
  CHECK_THROWS_WITH_AS(run_job(pipeline("decode", more), from_clips(folder)),
                       doctest::Contains("segment.from: end (discard) is a sink and gives nothing"),
                       ConfigError);
}

}  // namespace melflow::test::discard_test
