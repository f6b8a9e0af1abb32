// The program's readers on outputs of npy_write: inspect, show and compare print the same as for
// HDF5.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "pipeline/base/text.h"
#include "pipeline/base/version.h"
#include "tests/apps/pipelines.h"
#include "tests/apps/process.h"
#include "tests/apps/sound.h"

namespace melflow::test::npy_test {

namespace fs = std::filesystem;
using Json = nlohmann::json;

namespace {

const std::string kMelflow = MELFLOW_PROGRAM;

struct Folder : TempFolder {
  Folder() {
    test::write_clip(*this / "data/en/one.wav", 8000, 1.0, 1);
    test::write_clip(*this / "data/en/two.wav", 8000, 0.5, 2);
    test::write_clip(*this / "data/fr/d\xE9j\xE0.wav", 8000, 0.7, 3);
    write_text(*this / "data/fr/not.wav", "no sound at all");
    write_text(
        *this / "p.yaml",
        test::nodes_to_mel("root: \"${ROOT:-data}\", labels: parent_dir",
                           "sample_rate: 8000, n_mels: 32, log: db, use_energy: true") +
            "  h5: {stage: hdf5_write, from: mel, path: out.h5, dtype: \"${TYPE:-float32}\"}\n"
            "  npy: {stage: npy_write, from: mel, path: out.npy, dtype: \"${TYPE:-float32}\"}\n");
  }
  Ended melflow(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), kMelflow);
    return run(*this, arguments);
  }
  void clear() const {
    for (const char* name : {"out.h5", "out.npy", "out.index.npy", "out.index.json"})
      fs::remove(*this / name);
  }
};

Json parsed(const std::string& document) { return Json::parse(without_escaped_bytes(document)); }

}  // namespace

TEST_CASE("npy: inspect, show and compare say of .npy what they say of .h5") {
  const Folder folder;
  for (const char* type : {"float32", "float16", "bfloat16"}) {
    CAPTURE(std::string(type));
    folder.clear();
    exits(3, folder.melflow({"run", "p.yaml", "--quiet", "--var", std::string("TYPE=") + type}));
    const auto inspect = [&](const std::string& file) {
      const Ended e = exits(0, folder.melflow({"inspect", file, "--json", "--files"}));
      CHECK(has(e.out, R"("path": "fr/d\udce9j\udce0.wav")"));
      Json json = parsed(e.out);
      CHECK(json["path"] == file);
      CHECK(json["bytes"] == fs::file_size(folder / file));
      json.erase("path");
      json.erase("bytes");
      return json;
    };
    const Json npy = inspect("out.npy");
    CHECK(npy["dtype"] == type);
    CHECK(npy["files"].size() == 4);
    CHECK(npy["remarks"].size() == 1);
    CHECK(npy == inspect("out.h5"));

    const auto text = [&](const std::string& file) {
      const std::string out = folder.melflow({"inspect", file, "--files"}).out;
      return out.substr(out.find('\n'));  // without the first line, which names the file
    };
    CHECK(has(text("out.npy"), "fr/d\\xe9j\\xe0.wav"));
    std::string named = text("out.npy");  // only the kind of sink differs
    const std::size_t sink = named.find("npy_write:");
    REQUIRE(sink != named.npos);
    CHECK(named.replace(sink, 9, "hdf5_write") == text("out.h5"));

    const Ended equal = exits(0, folder.melflow({"compare", "out.npy", "out.h5"}));
    CHECK(has(equal.out, "equal: same features"));
    CHECK(folder.melflow({"compare", "out.npy", "p.yaml", "--var", std::string("TYPE=") + type})
              .code == 0);

    for (const char* file : {"out.npy", "out.h5"}) {
      exits(0, folder.melflow({"show", file, "--file", "two.wav", "--rows", "3:40", "-o",
                               std::string(file) + ".svg"}));
    }
    CHECK(read_text(folder / "out.npy.svg") == read_text(folder / "out.h5.svg"));
  }
}

TEST_CASE("npy: an output and a run with a path that is no UTF-8 can be read") {
  const Folder folder;
  fs::rename(folder / "data", folder / "d\xE9");
  REQUIRE(folder
              .melflow({"run", "p.yaml", "--quiet", "--var", "ROOT=d\xE9", "--json=r.json",
                        "--report=r.html"})
              .code == 3);
  for (const char* report : {"r.json", "r.html"}) {
    INFO(report);
    CHECK(has(read_text(folder / report), "d\\udce9"));
  }
  CHECK(folder.melflow({"report", "r.json", "r.json"}).code == 0);
  for (const char* file : {"out.npy", "out.h5"}) {
    INFO(file);
    const Json said = parsed(folder.melflow({"inspect", file, "--json"}).out);
    REQUIRE(said["config"].is_object());
    CHECK(said["config"]["graph"]["files"]["root"] == "d\uFFFD");
  }
}

TEST_CASE("npy: inspect says what is wrong with a file that is none of melflow's, or not whole") {
  const Folder folder;
  REQUIRE(folder.melflow({"run", "p.yaml", "--quiet"}).code == 3);
  const std::string rows = read_text(folder / "out.npy");
  const std::string index = read_text(folder / "out.index.npy");
  const std::string document = read_text(folder / "out.index.json");
  const auto with = [](std::string text, const std::string& from, const std::string& to) {
    const std::size_t at = text.find(from);
    REQUIRE(at != std::string::npos);
    return text.replace(at, from.size(), to);
  };
  std::string shifted = index;  // the second record's first field is its offset
  const std::size_t header = index.find('\n') + 1;
  ++shifted[header + (index.size() - header) / 4];
  const std::string damaged =
      "melflow: out.npy: this file is damaged, or not as docs/output-format.md describes it: ";
  struct Row {
    const char* what;
    std::string rows, index, document, message;
  };
  const Row table[] = {
      {"rows that end early", rows.substr(0, rows.size() - 1), index, document,
       damaged + "the file has "},
      {"another shape", with(rows, "'shape': (", "'shape': (1"), index, document,
       damaged + "its header is not that of float32 ["},
      {"an index that ends early", rows, index.substr(0, index.size() - 1), document,
       damaged + "out.index.npy is not a list of 4 files"},
      {"no index", rows, "", document, damaged + "out.index.npy is not a list of 4 files"},
      {"half a document", rows, index, document.substr(0, document.size() / 2), damaged},
      {"an empty document", rows, index, "{}",
       "melflow: out.index.json: this is not an index that melflow wrote"},
      {"a warning about no file", rows, index, with(document, "{\"file\": 3", "{\"file\": 9"),
       damaged},
      {"a warning about half a file", rows, index, with(document, "{\"file\": 3", "{\"file\": 3.5"),
       damaged + "3.5 where an integer is expected"},
      {"offsets of another run", rows, shifted, document,
       "melflow: out.npy: this file is damaged: the rows of en/two.wav begin at "},
      {"a later format", rows, index, with(document, "\"format\": 2", "\"format\": 3"),
       fmt::format("melflow: out.npy: was written by melflow {} in format 3, this program reads "
                   "format 2 only",
                   kVersion)},
  };
  for (const Row& row : table) {
    CAPTURE(std::string(row.what));
    write_text(folder / "out.npy", row.rows);
    write_text(folder / "out.index.npy", row.index);
    write_text(folder / "out.index.json", row.document);
    CHECK(has(exits(1, folder.melflow({"inspect", "out.npy"})).err, row.message));
  }
  write_text(folder / "foreign.bin", rows);
  CHECK(has(folder.melflow({"inspect", "foreign.bin"}).err,
            "foreign.bin: this is a .npy file, but no rows that melflow wrote; name an output of "
            "`melflow run`\n"));
  for (const char* name : {"out.index.npy", "out.index.json"})
    CHECK(has(folder.melflow({"inspect", name}).err,
              std::string(name) + ": this is the index of out.npy; name that\n"));
  write_text(folder / "new.npy.part", std::string(5000, '\0'));
  CHECK(has(folder.melflow({"inspect", "new.npy.part"}).err, "cannot be read yet"));
}

TEST_CASE("npy: a set that a stopped run left is shown as not complete") {
  const Folder folder;
  REQUIRE(folder.melflow({"run", "p.yaml", "--quiet"}).code == 3);
  for (const char* name : {"out.npy", "out.index.npy", "out.index.json"})
    fs::rename(folder / name, folder / (name + std::string(".part")));
  std::string document = read_text(folder / "out.index.json.part");
  document.replace(document.find("\"complete\": true"), 16, "\"complete\": false");
  write_text(folder / "out.index.json.part", document);
  CHECK(has(exits(0, folder.melflow({"inspect", "out.npy.part"})).out, "NOT COMPLETE"));
}

TEST_CASE("npy: where only the files of splits are there, inspect names them") {
  const Folder folder;
  for (const char* stage : {"hdf5_write", "npy_write"}) {
    const std::string ending = std::string(stage) == "npy_write" ? ".npy" : ".h5";
    write_text(folder / "s.yaml",
               test::nodes_to_mel("root: data, splits: top_dir", "sample_rate: 8000, n_mels: 8") +
                   "  write: {stage: " + stage + ", from: mel, path: sets/f" + ending +
                   ", split_files: true}\n");
    fs::create_directories(folder / "sets");
    REQUIRE(folder.melflow({"run", "s.yaml", "--quiet"}).code == 3);
    const Ended e = exits(1, folder.melflow({"inspect", "sets/f" + ending}));
    CHECK(e.err == "melflow: sets/f" + ending + ": there is no such file; there are sets/f.en" +
                       ending + ", sets/f.fr" + ending +
                       ", which an output with split_files: true has for its splits\n");
    CHECK(folder.melflow({"inspect", "sets/quite_another" + ending})
              .err.starts_with("melflow: sets/quite_another" + ending +
                               ": there is no such file; its folder has "));
  }
}

}  // namespace melflow::test::npy_test
