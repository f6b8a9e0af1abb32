// Runs every pipeline of docs/gallery.md on real recordings of two languages and of another rate.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>
#include <regex>

#include "stages/output/formats/feature_file.h"
#include "tests/apps/process.h"
#include "tests/support/audio_files.h"
#include "tests/support/doc_blocks.h"

namespace melflow::gallery_test {

using test::Ended;
namespace fs = std::filesystem;

namespace {

struct Recording {
  std::string path;
  std::uintmax_t bytes = 0;
  int rate = 0;
  double seconds = 0;
};

// Copies some recordings of each folder: DATA/03/digits/1.wav and so on.
std::vector<Recording> fill(const fs::path& data, const fs::path& audio) {
  std::map<fs::path, std::vector<fs::path>> folders;
  for (const auto& entry : fs::recursive_directory_iterator(audio))
    if (entry.path().extension() == ".wav" && entry.file_size() > 2000)
      folders[entry.path().parent_path()].push_back(entry.path());
  std::vector<Recording> out;
  int number = 0;
  for (auto& [folder, files] : folders) {
    constexpr std::size_t kMost = 6;
    std::sort(files.begin(), files.end());
    const std::string name = fmt::format("{:02}/{}", number++, folder.filename().string());
    fs::create_directories(data / name);
    for (std::size_t i = 0; i < files.size(); i += std::max<std::size_t>(1, files.size() / kMost)) {
      const fs::path to = data / name / files[i].filename();
      fs::copy_file(files[i], to);
      const test::ReadAudio sound = test::read_audio(to);
      out.push_back({name + "/" + files[i].filename().string(), fs::file_size(to),
                     sound.sample_rate, static_cast<double>(sound.frames()) / sound.sample_rate});
    }
  }
  return out;
}

// Creates the folder of a path and returns the path.
std::string in_folder(const fs::path& path) {
  fs::create_directories(path.parent_path());
  return path;
}

// Copies a WAV file with another rate in its header.
void copy_with_rate(const fs::path& from, const fs::path& to, std::uint32_t rate) {
  fs::copy_file(from, to);
  std::fstream file(to, std::ios::in | std::ios::out | std::ios::binary);
  std::string head(64, '\0');
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  const std::size_t format = head.find("fmt ");
  REQUIRE(format != head.npos);
  file.clear();
  file.seekp(static_cast<std::streamoff>(format + 12));
  file.write(reinterpret_cast<const char*>(&rate), sizeof rate);
}

// Compares with the same samples under another rate, without the nodes that make variants.
void check_speeds(const test::TempFolder& run, std::string text, const fs::path& data,
                  const std::vector<Recording>& corpus) {
  for (const auto& [from, to] : std::map<std::string, std::string>{{"\n  takes: [^\n]*", ""},
                                                                   {"\n  speed: [^\n]*", ""},
                                                                   {"from: takes", "from: read"},
                                                                   {"from: speed", "from: decode"},
                                                                   {"speeds.h5", "plain.h5"}})
    text = std::regex_replace(text, std::regex(from), to);
  test::write_text(run / "plain.yaml", text);
  const FeatureFile made(run / "speeds.h5");
  std::vector<std::vector<float>> expected(made.files().size());
  std::vector<std::string> results(made.files().size(), "[");
  const std::vector<double> factors{0.9, 1, 1.1};
  for (std::size_t k = 0; k < factors.size(); ++k) {
    const test::TempFolder other;
    for (const Recording& r : corpus)
      copy_with_rate(data / r.path, in_folder(other / ("data/" + r.path)),
                     static_cast<std::uint32_t>(std::lround(r.rate * factors[k])));
    fs::remove(run / "plain.h5");
    const Ended e =
        test::run(run, {MELFLOW_PROGRAM, "run", "plain.yaml"}, {{"DATA", other / "data"}});
    REQUIRE_MESSAGE(e.code == 0, e.err);
    const FeatureFile plain(run / "plain.h5");
    for (std::size_t i = 0; i < made.files().size(); ++i) {
      const FeatureFile::Entry& f = plain.files().at(i);
      const std::vector<float> rows = plain.read_rows(static_cast<std::uint64_t>(f.offset),
                                                      static_cast<std::uint64_t>(f.count));
      expected[i].insert(expected[i].end(), rows.begin(), rows.end());
      results[i] += fmt::format("{}{{\"rows\": {}, \"number\": {{\"takes\": {}}}}}",
                                k == 0 ? "" : ", ", f.count, k);
    }
  }
  for (std::size_t i = 0; i < made.files().size(); ++i) {
    const FeatureFile::Entry& f = made.files()[i];
    CAPTURE(f.path);
    CHECK(f.results == results[i] + "]");
    CHECK(made.read_rows(static_cast<std::uint64_t>(f.offset),
                         static_cast<std::uint64_t>(f.count)) == expected[i]);
  }
}

// Checks by the levels of the frames that mark_sound documents, at each recording's own rate: a row
// for each half second of a stretch at 16 kHz.
void check_stretches(const test::TempFolder& run, const fs::path& data) {
  const double limit = std::pow(10.0, -4.5);
  const FeatureFile made(run / "parts.h5");
  std::size_t several = 0;
  for (const FeatureFile::Entry& f : made.files()) {
    const test::ReadAudio sound = test::read_audio(data / f.path);
    CAPTURE(f.path);
    const std::int64_t n = sound.frames(), rate = sound.sample_rate;
    const std::int64_t length = rate / 40, hop = rate / 100, keep = rate / 20, silence = rate / 10;
    std::vector<std::pair<std::int64_t, std::int64_t>> stretches;
    for (std::int64_t frame = 0; frame * hop <= n; ++frame) {
      double sum = 0;
      const std::int64_t from = std::max<std::int64_t>(0, frame * hop - length / 2);
      for (std::int64_t i = from; i < std::min(n, frame * hop - length / 2 + length); ++i)
        sum += std::pow(sound.int16[static_cast<std::size_t>(i)] / 32768.0, 2);
      if (sum / static_cast<double>(length) <= limit) continue;
      const std::int64_t begin = std::max<std::int64_t>(0, frame * hop - keep);
      if (stretches.empty() || begin - stretches.back().second >= silence)
        stretches.emplace_back(begin, 0);
      stretches.back().second = (frame + 1) * hop + keep;
    }
    std::string expected;
    std::int64_t rows = 0;
    for (std::size_t k = 0; k < stretches.size(); ++k) {
      const std::int64_t begin = stretches[k].first, end = std::min(n, stretches[k].second);
      const std::int64_t own = (((end - begin) * 16000 + rate / 2) / rate + 7999) / 8000;
      const auto seconds = [rate](std::int64_t at) {
        return static_cast<double>(at) / static_cast<double>(rate);
      };
      expected += fmt::format(
          "{}{{\"rows\": {}, \"number\": {{\"parts\": {}}}, \"seconds\": [{:.6f}, {:.6f}]}}",
          k == 0 ? "[" : ", ", own, k, seconds(begin), seconds(end));
      rows += own;
    }
    CHECK(f.results == (expected.empty() ? "" : expected + "]"));
    CHECK(f.count == rows);
    several += stretches.size() > 1 ? 1 : 0;
  }
  CHECK(several > 0);
}

std::size_t ok_files(const std::string& path) {
  const FeatureFile file(path);
  return static_cast<std::size_t>(file.integer("ok").value_or(-1));
}

}  // namespace

TEST_CASE("gallery: every pipeline runs as it stands and gives what the page says") {
  const char* const audio = std::getenv("MELFLOW_TEST_AUDIO");
  REQUIRE_MESSAGE(audio != nullptr, "MELFLOW_TEST_AUDIO says where the recordings are");
  const test::TempFolder folder;
  const std::vector<Recording> corpus = fill(folder / "data", audio);
  REQUIRE(corpus.size() > 40);
  const auto count = [&corpus](const auto& is_so) {
    return static_cast<std::size_t>(std::count_if(corpus.begin(), corpus.end(), is_so));
  };
  const std::size_t all = corpus.size();
  const std::size_t narrow = count([](const Recording& r) { return r.rate == 8000; });
  const std::size_t tiny = count([](const Recording& r) { return r.seconds < 0.3; });
  const std::size_t lengthy = count([](const Recording& r) { return r.seconds >= 4; });
  REQUIRE(narrow < all);
  REQUIRE(lengthy > 0);
  // Outputs, and the number of recordings with rows in each; 0: see the checks below.
  const std::map<std::string, std::map<std::string, std::size_t>> expected{
      {"Log-mel of a folder", {{"mel.h5", all}}},
      {"Whisper's windows, with splits by speaker", {{"whisper.h5", all}}},
      {"Two kinds of features from one decoding", {{"mel.h5", all}, {"mfcc.h5", all}}},
      {"Several kinds of features in one row",
       {{"all.h5", all}, {"mel.npy", all}, {"mfcc.npy", all}, {"wide.npy", all}}},
      {"Two corpora in one training set", {{"both.h5", all + 3}}},
      {"Three resolutions", {{"fine.npy", all}, {"middle.npy", all}, {"coarse.npy", all}}},
      {"Long and short recordings apart",
       {{"long.h5", lengthy}, {"short.h5", all - lengthy - tiny}}},
      {"Only what has another rate is resampled", {{"mel.h5", all}}},
      {"A choice of recordings, without silence at their ends", {{"mel.h5", 0}}},
      {"Waveforms for training", {{"frames.npy", all}, {"whole.h5", all}}},
      {"A corpus in one format", {}},
      {"A training set with normalised rows", {{"train.h5", all}}},
      {"Rows that are read at random, small on disk", {{"mel.h5", all}}},
      {"A branch that may fail alone", {{"windows.npy", narrow}, {"whole.h5", all}}},
      {"Sounds of animals", {{"pcen.h5", all}}},
      {"Utterances of long recordings", {{"utterances.h5", 2 * all}}},
      {"Three speeds of each recording", {{"speeds.h5", all}}},
      {"Utterances between pauses", {{"parts.h5", 0}}},
      {"Channels as recordings", {{"channels.h5", 2}}},
      {"How fast this machine can go", {}}};
  // Two parts of each recording.
  std::string parts = "path,start,end\n";
  for (const Recording& r : corpus)
    parts += fmt::format("{0},0,{1}\n{0},{1},\n", r.path, r.seconds / 2);
  test::write_text(folder / "parts.csv", parts);
  for (unsigned i = 0; i < 3; ++i) {
    fs::create_directories(folder / "more/tones");
    test::write_wav(folder / fmt::format("more/tones/{}.wav", i), 9000, 8000, i);
  }
  for (unsigned i = 0; i < 2; ++i) {
    const std::vector<float> both = test::test_signal(20'000, 2, i);
    test::write_audio(in_folder(folder / fmt::format("calls/{}.wav", i)),
                      test::audio_kind("wav s16 stereo"), 8000, both);
    for (std::size_t c = 0; c < 2; ++c) {
      std::vector<float> one;
      for (std::size_t s = c; s < both.size(); s += 2) one.push_back(both[s]);
      test::write_audio(in_folder(folder / fmt::format("channels/{}-{}.wav", i, c)),
                        test::audio_kind("wav s16"), 8000, one);
    }
  }
  const auto yaml = test::blocks_of("docs/gallery.md", "yaml", "### ");
  CHECK(yaml.size() == expected.size());
  for (const auto& [heading, text] : yaml) {
    const std::string title = heading;
    CAPTURE(title);
    REQUIRE(expected.contains(title));
    const test::TempFolder run;
    test::write_text(run / "p.yaml", text);
    const Ended e = exits(0, test::run(run, {MELFLOW_PROGRAM, "run", "p.yaml"},
                                       {{"DATA", folder / "data"},
                                        {"MORE", folder / "more"},
                                        {"MANIFEST", folder / "parts.csv"},
                                        {"CALLS", folder / "calls"}}));
    CHECK_FALSE(test::has(e.err, "warning"));
    for (const auto& [output, files] : expected.at(title)) {
      const std::string name = output;
      CAPTURE(name);
      if (files > 0) CHECK(ok_files(run / name) == files);
    }
    if (title.starts_with("A choice")) {
      // Silence is omitted, so these are the most possible; all that are not silent are there.
      const auto is_chosen = [](const Recording& r) {
        return !test::has(r.path, "digits/") && r.bytes > 2048 && r.seconds >= 0.5 &&
               r.seconds <= 20;
      };
      const FeatureFile file(run / "mel.h5");
      for (const FeatureFile::Entry& f : file.files()) {
        const auto of = std::find_if(corpus.begin(), corpus.end(),
                                     [&f](const Recording& r) { return r.path == f.path; });
        REQUIRE(of != corpus.end());
        if (test::has(f.path, "silence/")) continue;
        CHECK((f.count > 0) == is_chosen(*of));
      }
    } else if (title.starts_with("Several kinds")) {
      const auto rows_of = [&run](const char* name) {
        const FeatureFile file(run / name);
        return file.read_rows(0, file.rows());
      };
      const std::vector<float> mel = rows_of("mel.npy"), mfcc = rows_of("mfcc.npy"),
                               wide = rows_of("wide.npy");
      std::vector<float> beside;
      for (std::size_t r = 0; r < mel.size() / 64; ++r) {
        beside.insert(beside.end(), &mel[r * 64], &mel[r * 64] + 64);
        beside.insert(beside.end(), &mfcc[r * 20], &mfcc[r * 20] + 20);
        beside.insert(beside.end(), &wide[r * 32], &wide[r * 32] + 32);
      }
      CHECK(rows_of("all.h5") == beside);
      const Ended shown = test::run(run, {MELFLOW_PROGRAM, "inspect", "all.h5"});
      CHECK(test::has(shown.out, "\ncolumns       64 mel, 20 mfcc, 32 wide\n"));
    } else if (title.starts_with("Two corpora")) {
      const FeatureFile file(run / "both.h5");
      for (const FeatureFile::Entry& f : file.files())
        if (f.path.starts_with("extra/"))
          CHECK(file.splits().at(static_cast<std::size_t>(f.split)) == "train");
      CHECK(file.sources().size() == 2);
    } else if (title.starts_with("Waveforms")) {
      const FeatureFile file(run / "frames.npy");
      CHECK(file.dtype() == "int16");
      CHECK(file.frames_per_row() == 16000);
    } else if (title.starts_with("A corpus")) {
      std::size_t files = 0;
      for (const auto& entry : fs::recursive_directory_iterator(run / "corpus")) {
        if (!entry.is_regular_file()) continue;
        const std::string split = fs::relative(entry.path(), run / "corpus").begin()->string();
        CHECK((split == "train" || split == "test"));
        CHECK(test::read_audio(entry.path()).sample_rate == 16000);
        ++files;
      }
      CHECK(files == all);
    } else if (title.starts_with("A training set")) {
      const FeatureFile file(run / "train.h5");
      REQUIRE(file.statistics());
      CHECK(file.statistics()->is_applied);
    } else if (title.starts_with("Three speeds")) {
      check_speeds(run, text, folder / "data", corpus);
    } else if (title.starts_with("Utterances between")) {
      check_stretches(run, folder / "data");
    } else if (title.starts_with("Channels as")) {
      // Runs the same pipeline on mono files with these samples.
      test::write_text(
          run / "mono.yaml",
          std::regex_replace(std::regex_replace(text, std::regex(", downmix: each"), ""),
                             std::regex("channels.h5"), "mono.h5"));
      const Ended mono =
          test::run(run, {MELFLOW_PROGRAM, "run", "mono.yaml"}, {{"CALLS", folder / "channels"}});
      REQUIRE_MESSAGE(mono.code == 0, mono.err);
      const FeatureFile made(run / "channels.h5"), alone(run / "mono.h5");
      CHECK(made.read_rows(0, made.rows()) == alone.read_rows(0, alone.rows()));
      for (std::size_t i = 0; i < 2; ++i)
        CHECK(made.files()[i].results ==
              fmt::format("[{{\"rows\": {}, \"number\": {{\"decode\": 0}}}}, "
                          "{{\"rows\": {}, \"number\": {{\"decode\": 1}}}}]",
                          alone.files()[2 * i].count, alone.files()[2 * i + 1].count));
    } else if (title.starts_with("How fast")) {
      CHECK(e.out.starts_with("200 files: 200 ok"));
    } else if (title.starts_with("Whisper")) {
      std::map<std::string, int> split_of;  // of each folder
      const FeatureFile file(run / "whisper.h5");
      for (const FeatureFile::Entry& f : file.files())
        CHECK(split_of.emplace(fs::path(f.path).parent_path(), f.split).first->second == f.split);
      CHECK(split_of.size() > 3);
    }
  }
}

}  // namespace melflow::gallery_test
