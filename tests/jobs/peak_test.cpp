// Conditions on the peak of a file, the largest |sample|, over its whole length, also where it
// comes in several blocks. The expected values come from libsndfile.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "stages/output/formats/feature_file.h"
#include "tests/support/audio_files.h"
#include "tests/support/job.h"
#include "tests/support/printing.h"
#include "tests/support/temp_folder.h"

namespace melflow::test::peak_test {
namespace {

constexpr int kRate = 8000;
constexpr std::int64_t kLong = 100'000;  // samples: several blocks of 64 KiB
using Names = std::set<std::string>;

class Corpus {
 public:
  Corpus() {
    add("silent", 3000, 0);
    add("quiet", 3000, 0.0004F);
    add("normal", 3000, 0.5F);
    add("full", 3000, 0.5F, 2999, -1);
    add("float", 3000, 0.5F, 10, 1.5F, "wav float");
    add("long_normal", kLong, 0.5F);
    add("long_silent", kLong, 0);
    add("long_quiet_then_normal", kLong, 0.0004F, kLong - 1, 0.25F);
    add("long_full_first", kLong, 0.5F, 7, 1);
    add("long_full_last", kLong, 0.5F, kLong - 2, 1);
  }
  // Returns the largest |sample| of each file, as a fraction of full scale.
  [[nodiscard]] std::map<std::string, double> peaks() const {
    std::map<std::string, double> out;
    for (const std::string& name : names_) {
      double& largest = out[name];
      const ReadAudio audio = read_audio(folder_ / ("clips/" + name));
      for (const float v : audio.interleaved)
        largest = std::max(largest, static_cast<double>(std::abs(v)));
    }
    return out;
  }
  // `nodes`: lines after decode; each of `outputs` follows the node that it names.
  JobResult run(const std::string& nodes, const std::map<std::string, std::string>& outputs,
                const std::string& block = "64KiB", const std::string& files = "") const {
    std::string text = fmt::format(R"(version: 1
graph:
  files: {{stage: file_list, root: "${{DATA}}"{}}}
  read: {{stage: disk_read, from: files}}
  decode: {{stage: decode, from: read, block: {}}}
{})",
                                   files, block, nodes);
    for (const auto& [name, from] : outputs)
      text += fmt::format(R"(  s_{0}: {{stage: segment, from: {1}}}
  b_{0}: {{stage: batch, from: s_{0}, files: 3}}
  m_{0}: {{stage: mel, from: b_{0}, sample_rate: 8000, n_fft: 256, hop: 80, n_mels: 20}}
  w_{0}: {{stage: hdf5_write, from: m_{0}, path: "${{OUT}}/{0}.h5", overwrite: true}}
)",
                          name, from);
    return run_job(text, in_out(folder_ / "clips", folder_.path()));
  }
  [[nodiscard]] std::string path(const std::string& name) const { return folder_ / name; }

 private:
  void add(const std::string& name, std::int64_t frames, float scale, std::int64_t at = -1,
           float there = 0, const char* kind = "wav s16") {
    std::vector<float> signal = test_signal(frames);
    for (float& v : signal) v *= scale;
    if (at >= 0) signal[static_cast<std::size_t>(at)] = there;
    names_.push_back(name + ".wav");
    write_audio(folder_.file("clips/" + names_.back()), audio_kind(kind), kRate, signal);
  }
  TempFolder folder_;
  std::vector<std::string> names_;
};

struct Read {
  std::map<std::string, std::vector<float>> rows;
  std::map<std::string, std::string> remarks;
};

Read read(const std::string& path) {
  const FeatureFile file(path);
  Read out;
  for (const FeatureFile::Entry& e : file.files())
    if (e.count > 0)
      out.rows[e.path] =
          file.read_rows(static_cast<std::uint64_t>(e.offset), static_cast<std::uint64_t>(e.count));
  for (const FeatureFile::Remark& r : file.remarks()) out.remarks[r.path] = r.reason;
  return out;
}

}  // namespace

TEST_CASE("peak: a filter knows that of the whole file, in however many blocks it comes") {
  const Corpus corpus;
  const auto peaks = corpus.peaks();
  REQUIRE(corpus.run("", {{"plain", "decode"}}).complete());
  const Read plain = read(corpus.path("plain.h5"));
  const double db40 = std::pow(10.0, -40 / 20.0), db1 = std::pow(10.0, -1 / 20.0);
  struct Row {
    const char* where;
    bool (*holds)(double peak, double low, double high);
  };
  const Row rows[] = {
      {"{peak: \"< 0.999\"}", [](double p, double, double) { return p < 0.999; }},
      {"{peak: \"> -40dB\"}", [](double p, double low, double) { return p > low; }},
      {"{peak: -40 dBFS..-1dB}",
       [](double p, double low, double high) { return p >= low && p <= high; }},
      {"{peak: [0, \">= 1\"]}", [](double p, double, double) { return p == 0 || p >= 1; }},
      {"{duration: \"> 10s\", peak: \">= 0.9\"}",
       [](double p, double, double) { return p >= 0.9; }},
  };
  for (const Row& row : rows) {
    CAPTURE(row.where);
    for (const char* block : {"64KiB", "2MiB"}) {
      for (const char* files : {"", ", feed: preload"}) {
        CAPTURE(block);
        CAPTURE(files);
        completed(corpus.run(
            fmt::format("  filter: {{stage: filter, from: decode, where: {}}}\n", row.where),
            {{"some", "filter"}, {"all", "decode"}}, block, files));
        const Read some = read(corpus.path("some.h5"));
        for (const auto& of_file : peaks) {
          const auto& name = of_file.first;
          const auto& peak = of_file.second;
          CAPTURE(name);
          const bool is_long = name.starts_with("long") || row.where[1] != 'd';
          const bool holds = is_long && row.holds(peak, db40, db1);
          CHECK(some.rows.contains(name) == holds);
          if (holds) CHECK(some.rows.at(name) == plain.rows.at(name));
        }
        // What the filter removes is in the other output.
        CHECK(read(corpus.path("all.h5")).rows == plain.rows);
      }
    }
  }
}

TEST_CASE("peak: the reason says how large it is, and whether more may come") {
  const Corpus corpus;
  const auto remarks = [&](const std::string& where, const char* block) {
    completed(corpus.run("  filter: {stage: filter, from: decode, where: {" + where + "}}\n",
                         {{"some", "filter"}}, block));
    return read(corpus.path("some.h5")).remarks;
  };
  auto said = remarks("peak: \"< 0.999\"", "64KiB");
  CHECK(said.at("full.wav") == "peak is 0.999969 (-0.00 dB), not < 0.999");
  CHECK(said.at("float.wav") == "peak is 1.5 (3.52 dB), not < 0.999");
  CHECK(said.at("long_full_first.wav") == "peak is 0.999969 (-0.00 dB) or more, not < 0.999");
  CHECK(said.at("long_full_last.wav") == "peak is 0.999969 (-0.00 dB), not < 0.999");
  CHECK(remarks("peak: \"< 0.999\"", "2MiB").at("long_full_first.wav") ==
        "peak is 0.999969 (-0.00 dB), not < 0.999");
  said = remarks("peak: \"> -40dB\"", "64KiB");
  CHECK(said.at("silent.wav") == "peak is 0, not > -40dB");
  CHECK(said.at("long_silent.wav") == "peak is 0, not > -40dB");
}

TEST_CASE("peak: a route goes by the first block, where that says enough") {
  const Corpus corpus;
  const std::string route =
      "  way: {stage: route, from: decode, outputs: {full: {peak: \">= 0.999\"}, calm: {peak: \"< "
      "0.999\"}}, else: open}\n";
  const std::map<std::string, std::string> outputs{
      {"full", "way.full"}, {"calm", "way.calm"}, {"open", "way.open"}};
  const auto names = [&](const std::string& output) {
    Names out;
    for (const auto& [name, rows] : read(corpus.path(output + ".h5")).rows) out.insert(name);
    return out;
  };
  REQUIRE(corpus.run(route, outputs).complete());
  CHECK(names("full") == Names{"float.wav", "full.wav", "long_full_first.wav"});
  CHECK(names("calm") == Names{"normal.wav", "quiet.wav", "silent.wav"});
  CHECK(names("open") == Names{"long_full_last.wav", "long_normal.wav",
                               "long_quiet_then_normal.wav", "long_silent.wav"});
  // In one block, the peak of every file is known.
  completed(corpus.run(route, {{"full", "way.full"}, {"calm", "way.calm"}, {"open", "way.open"}},
                       "2MiB"));
  CHECK(names("full").contains("long_full_last.wav"));
  CHECK(names("open").empty());
  // Without an output for unknown peaks, the reason says so.
  const std::string strict = route.substr(0, route.find(", else")) + "}\n";
  REQUIRE(corpus.run(strict, {{"full", "way.full"}, {"calm", "way.calm"}}).complete());
  const std::string said = read(corpus.path("calm.h5")).remarks.at("long_normal.wav");
  CAPTURE(said);
  CHECK(said.starts_with("leaves by no output: full: peak is not known: it is "));
  CHECK(said.find("in the first block, and the file has more (decode.block)") != said.npos);
}

}  // namespace melflow::test::peak_test
