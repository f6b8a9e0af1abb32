// Outputs of format 1, which this program reads and does not go on with. They are made of format 2
// by what is different: names of the root attributes, and no name for the rows.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <hdf5.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/apps/process.h"
#include "tests/apps/sound.h"

namespace format_1_test {

using namespace melflow;
using test::Ended;
using test::has;
using test::read_text;
using test::TempFolder;
using test::write_text;
using Json = nlohmann::ordered_json;

namespace {

const std::string kMelflow = MELFLOW_PROGRAM;

void make_format_1_h5(const std::string& path) {
  const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  REQUIRE(file >= 0);
  CHECK(H5Arename(file, "feature_fingerprint", "feature_hash") >= 0);
  CHECK(H5Arename(file, "feature_settings", "features") >= 0);
  CHECK(H5Adelete(file, "rows") >= 0);
  const hid_t format = H5Aopen(file, "format", H5P_DEFAULT);
  const int one = 1;
  CHECK(H5Awrite(format, H5T_NATIVE_INT, &one) >= 0);
  H5Aclose(format);
  // All rows were called so.
  if (H5Lexists(file, "mfcc", H5P_DEFAULT) > 0)
    CHECK(H5Lmove(file, "mfcc", file, "mel", H5P_DEFAULT, H5P_DEFAULT) >= 0);
  CHECK(H5Fclose(file) >= 0);
}

void make_format_1_npy(const std::string& path) {
  const std::string document = path.substr(0, path.size() - 4) + ".index.json";
  Json about = Json::parse(read_text(document));
  about["feature_hash"] = about.at("feature_fingerprint");
  about["features"] = about.at("feature_settings");
  for (const char* name : {"feature_fingerprint", "feature_settings", "rows"}) about.erase(name);
  about["format"] = 1;
  write_text(document, about.dump());
}

struct Row {
  const char* name;
  const char* sink;
  const char* last;  ///< what is written
  void (*make_format_1)(const std::string& path);
};
constexpr Row kRows[] = {{"out.h5", "hdf5_write", "mel", make_format_1_h5},
                         {"out.h5", "hdf5_write", "mfcc", make_format_1_h5},
                         {"out.npy", "npy_write", "mel", make_format_1_npy},
                         {"out.npy", "npy_write", "mfcc", make_format_1_npy}};

struct Outputs : TempFolder {
  explicit Outputs(const Row& row) : name(row.name) {
    test::write_clip(*this / "data/one.wav", 8000, 0.5, 1);
    test::write_clip(*this / "data/two.wav", 8000, 0.7, 2);
    write_text(*this / "p.yaml", pipeline(row, fmt::format("stage: {}, from: {}, statistics: all",
                                                           row.sink, row.last)));
    REQUIRE(melflow({"run", "p.yaml", "-q", "--var", "OUT=" + name}).code == 0);
    std::filesystem::create_directory(*this / "earlier");
    for (const char* file : {"out.h5", "out.npy", "out.index.npy", "out.index.json"})
      if (std::filesystem::exists(*this / file))
        std::filesystem::copy(*this / file, *this / "earlier");
    row.make_format_1(*this / earlier());
  }
  [[nodiscard]] std::string earlier() const { return "earlier/" + name; }
  [[nodiscard]] Ended melflow(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), kMelflow);
    return run(*this, arguments);
  }
  [[nodiscard]] static std::string pipeline(const Row& row, const std::string& write) {
    const std::string mfcc = "  mfcc: {stage: mfcc, from: mel, n_mfcc: 20}\n";
    return "version: 1\n"
           "graph:\n"
           "  files: {stage: file_list, root: data}\n"
           "  read: {stage: disk_read, from: files}\n"
           "  decode: {stage: decode, from: read}\n"
           "  segment: {stage: segment, from: decode}\n"
           "  batch: {stage: batch, from: segment}\n"
           "  mel: {stage: mel, from: batch, sample_rate: 8000, n_mels: 20, log: db}\n" +
           (row.last == std::string("mfcc") ? mfcc : "") + "  write: {" + write +
           ", path: \"${OUT}\"}\n";
  }

  std::string name;
};

}  // namespace

TEST_CASE("format 1: inspect, compare and show read it as they read its rows today") {
  for (const Row& row : kRows) {
    CAPTURE(std::string(row.name) + " " + row.last);
    const Outputs folder(row);
    const auto inspect = [&](const std::string& path) {
      const Ended e = folder.melflow({"inspect", path, "--json", "--files"});
      INFO(e.err);
      REQUIRE(e.code == 0);
      return Json::parse(e.out);
    };
    Json now = inspect(folder.name), earlier = inspect(folder.earlier());
    CHECK(now["format"] == 2);
    CHECK(now["dataset"] == row.last);
    CHECK(earlier["format"] == 1);
    CHECK(earlier["dataset"] == "mel");
    CHECK(earlier["feature_fingerprint"].get<std::string>().size() == 32);
    CHECK(earlier["feature_settings"].size() == 4 + (row.last == std::string("mfcc") ? 1 : 0));
    for (const char* different : {"path", "bytes", "format", "dataset"}) {
      now.erase(different);
      earlier.erase(different);
    }
    CHECK(now == earlier);
    CHECK(folder.melflow({"inspect", "--features", folder.name}).out ==
          folder.melflow({"inspect", "--features", folder.earlier()}).out);
    const Ended text = folder.melflow({"inspect", folder.earlier()});
    CHECK(has(text.out, "\nmel           ["));

    const Ended same = folder.melflow({"compare", folder.name, folder.earlier()});
    INFO(same.out << same.err);
    CHECK(same.code == 0);
    for (const std::string& path : {folder.name, folder.earlier()}) {
      const Ended shown = folder.melflow({"show", path, "--file", "two.wav", "-o",
                                          path == folder.name ? "now.png" : "earlier.png"});
      INFO(shown.err);
      CHECK(shown.code == 0);
    }
    CHECK(read_text(folder / "now.png") == read_text(folder / "earlier.png"));
  }
}

TEST_CASE("format 1: its statistics normalise new rows") {
  for (const Row& row : kRows) {
    CAPTURE(std::string(row.name) + " " + row.last);
    const Outputs folder(row);
    std::vector<std::string> fingerprints;
    for (const std::string& file : {folder.name, folder.earlier()}) {
      std::string yaml = Outputs::pipeline(row, "stage: hdf5_write, from: scale, overwrite: true");
      yaml.insert(
          yaml.find("  write:"),
          fmt::format("  scale: {{stage: normalize, from: {}, file: {}}}\n", row.last, file));
      write_text(folder / "q.yaml", yaml);
      const Ended e = folder.melflow({"run", "q.yaml", "-q", "--var", "OUT=scaled.h5"});
      INFO(e.err);
      CHECK(e.code == 0);
      const Json about = Json::parse(folder.melflow({"inspect", "scaled.h5", "--json"}).out);
      CHECK(about["dataset"] == row.last);
      fingerprints.push_back(about["feature_fingerprint"]);
    }
    CHECK(fingerprints[0] == fingerprints[1]);
  }
}

TEST_CASE(
    "format 1: an update is refused with what to do, and changes nothing; a run replaces it") {
  for (const Row& row : kRows) {
    CAPTURE(std::string(row.name) + " " + row.last);
    const Outputs folder(row);
    const std::string before = read_text(folder / folder.earlier());
    test::write_clip(folder / "data/three.wav", 8000, 0.5, 3);
    const std::string out = "OUT=" + folder.earlier();
    for (const char* how : {"", "--compact"}) {
      std::vector<std::string> update{"update", "p.yaml", "-q", "--var", out};
      if (*how != '\0') update.emplace_back(how);
      const Ended e = folder.melflow(update);
      INFO(e.out << e.err);
      CHECK(e.code == 1);
      CHECK(has(e.err, folder.earlier() +
                           ": is in format 1, which this program reads but does not go on with (it "
                           "writes 2), so it cannot be updated; build it anew with `melflow run` "
                           "and overwrite: true on its sink"));
      CHECK(read_text(folder / folder.earlier()) == before);
      CHECK_FALSE(std::filesystem::exists(folder / (folder.earlier() + ".part")));
    }
    const Ended run =
        folder.melflow({"run", "p.yaml", "-q", "--var", out, "--set", "write.overwrite=true"});
    INFO(run.err);
    CHECK(run.code == 0);
    const Json about = Json::parse(folder.melflow({"inspect", folder.earlier(), "--json"}).out);
    CHECK(about["format"] == 2);
    CHECK(about["dataset"] == row.last);
    CHECK(about["counts"]["ok"] == 3);
    CHECK(folder.melflow({"update", "p.yaml", "-q", "--var", out}).code == 0);
  }
}

}  // namespace format_1_test
