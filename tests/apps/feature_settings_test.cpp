// Feature settings: inspect --features and compare, on files and on pipelines.
#include <doctest/doctest.h>
#include <hdf5.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stages/features/mel/mel_kernel.h"
#include "stages/features/mel/real_fft.h"
#include "tests/apps/process.h"
#include "tests/apps/sound.h"

namespace melflow::test::feature_settings_test {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

namespace {

const std::string kMelflow = MELFLOW_PROGRAM;

// Returns a pipeline; only the resample stage and the options of mel vary.
std::string pipeline(const std::string& mel, const std::string& before = "decode",
                     const std::string& resample = "") {
  return "version: 1\n"
         "graph:\n"
         "  files: {stage: file_list, root: data}\n"
         "  read: {stage: disk_read, from: files}\n"
         "  decode: {stage: decode, from: read}\n" +
         resample + "  segment: {stage: segment, from: " + before +
         "}\n"
         "  batch: {stage: batch, from: segment}\n"
         "  mel: {stage: mel, from: batch, " +
         mel +
         "}\n"
         "  write: {stage: hdf5_write, from: mel, path: \"${OUT:-out.h5}\"}\n";
}

struct Folder : TempFolder {
  Folder() {
    test::write_clip(*this / "data/one.wav", 16000, 0.5);
    write_text(*this / "a.yaml", pipeline("sample_rate: 16000, n_mels: 80"));
    write_text(*this / "b.yaml", pipeline("n_mels: 64, log: db", "resample",
                                          "  resample: {stage: resample, from: decode}\n"));
    write_text(*this / "p.yaml", pipeline("n_mels: 64, preset: whisper"));
  }
  Ended melflow(std::vector<std::string> arguments, const Process::Variables& set = {}) const {
    arguments.insert(arguments.begin(), kMelflow);
    return run(*this, arguments, set);
  }
};

}  // namespace

TEST_CASE("feature settings: a file and the pipeline that made it say the same") {
  const Folder folder;
  REQUIRE(folder.melflow({"run", "p.yaml", "--quiet"}).code == 0);
  const Ended file = folder.melflow({"inspect", "--features", "out.h5"});
  const Ended yaml = folder.melflow({"inspect", "--features", "p.yaml"});
  CHECK(file.code == 0);
  CHECK(yaml.code == 0);
  CHECK(file.out == yaml.out);
  CHECK(file.out.starts_with("feature_fingerprint: "));
  CHECK(has(file.out, "\npreset: whisper, with n_mels changed\n"));
  CHECK(has(file.out, "\ndecode.downmix: mean\n"));
  CHECK(has(file.out, "\nmel.n_mels: 64\n"));
  CHECK(has(file.out, "\nmel.log: log10\n"));
  CHECK_FALSE(has(file.out, "out.h5"));

  const Json json = Json::parse(folder.melflow({"inspect", "--features", "--json", "out.h5"}).out);
  CHECK(json["path"] == "out.h5");
  CHECK(json["preset"] == "whisper, with n_mels changed");
  CHECK(has(file.out,
            "feature_fingerprint: " + json["feature_fingerprint"].get<std::string>() + "\n"));
  CHECK(json["stages"][0]["name"] == "decode");
  bool found = false;
  for (const Json& stage : json["stages"])
    if (stage["name"] == "mel") found = stage["settings"]["n_mels"] == 64;
  CHECK(found);
}

TEST_CASE("feature settings: overrides and shipped pipelines count") {
  const Folder folder;
  CHECK(has(folder.melflow({"inspect", "--features", "a.yaml", "--set", "mel.n_mels=20"}).out,
            "\nmel.n_mels: 20\n"));
  CHECK(
      folder.melflow({"inspect", "--features", "demo", "--var", "DATA=d", "--var", "OUT=o"}).code ==
      0);
}

TEST_CASE("compare: equal features end with 0, whichever way they are described") {
  const Folder folder;
  REQUIRE(folder.melflow({"run", "a.yaml", "--quiet"}).code == 0);
  for (const char* other : {"a.yaml", "out.h5"}) {
    const Ended e = exits(0, folder.melflow({"compare", "out.h5", other}));
    CHECK(e.out.starts_with("equal: same features (fingerprint "));
    CHECK(std::count(e.out.begin(), e.out.end(), '\n') == 1);
  }
  const Json json = Json::parse(folder.melflow({"compare", "out.h5", "a.yaml", "--json"}).out);
  CHECK(json["equal"] == true);
  CHECK(json["differences"].empty());
  CHECK(json["a"]["feature_fingerprint"] == json["b"]["feature_fingerprint"]);
}

TEST_CASE("compare: sinks that write no rows have no features beside those that do") {
  const Folder folder;
  write_text(folder / "c.yaml", pipeline("sample_rate: 16000, n_mels: 80") +
                                    "  copy: {stage: audio_write, from: decode, path: copies}\n"
                                    "  end: {stage: discard, from: read}\n");
  exits(0, folder.melflow({"compare", "a.yaml", "c.yaml"}));
  // Without rows, the settings are those of the samples.
  write_text(folder / "d.yaml",
             "version: 1\ngraph:\n  files: {stage: file_list, root: data}\n  read: {stage: "
             "disk_read, from: files}\n  decode: {stage: decode, from: read, downmix: 2}\n  copy: "
             "{stage: audio_write, from: decode, path: copies}\n");
  const Ended d = exits(0, folder.melflow({"inspect", "--features", "d.yaml"}));
  CHECK(has(d.out, "decode.downmix: right"));
}

TEST_CASE("compare: says in words what differs, and ends with 1") {
  const Folder folder;
  REQUIRE(folder.melflow({"run", "a.yaml", "--quiet"}).code == 0);
  REQUIRE(
      folder.melflow({"run", "a.yaml", "--quiet", "--set", "mel.n_mels=64", "--var", "OUT=b.h5"})
          .code == 0);
  const Ended one = exits(1, folder.melflow({"compare", "out.h5", "b.h5"}));
  CHECK(one.out.starts_with(
      "mel.n_mels: 80 in out.h5, 64 in b.h5\ndifferent: 1 difference (fingerprints "));

  const Ended many = exits(1, folder.melflow({"compare", "out.h5", "b.yaml"}));
  CHECK(has(many.out, "mel.n_mels: 80 in out.h5, 64 in b.yaml\n"));
  CHECK(has(many.out, "mel.log: none in out.h5, db in b.yaml\n"));
  CHECK(has(many.out, "mel.amin: 1e-10 in b.yaml, not a setting in out.h5\n"));
  CHECK(has(many.out, "resample: only in b.yaml (rate 16000, quality high)\n"));
  const Json json = Json::parse(folder.melflow({"compare", "out.h5", "b.yaml", "--json"}).out);
  CHECK(json["equal"] == false);
  CHECK(json["differences"][0] == Json{{"setting", "mel.n_mels"}, {"a", 80}, {"b", 64}});
}

TEST_CASE(
    "feature settings: precision is among them where it is double, and in none of an older "
    "output") {
  const Folder folder;
  const auto settings = [&](const std::string& precision) {
    return folder
        .melflow({"inspect", "--features", "a.yaml", "--set", "mel.precision=" + precision})
        .out;
  };
  const std::string plain = folder.melflow({"inspect", "--features", "a.yaml"}).out;
  CHECK(settings("float") == plain);
  CHECK_FALSE(has(plain, "precision"));
  CHECK(has(settings("double"), "\nmel.precision: double\n"));
  CHECK(settings("double").substr(0, 53) != plain.substr(0, 53));  // the fingerprint
  REQUIRE(folder.melflow({"run", "a.yaml", "--quiet"}).code == 0);
  REQUIRE(folder
              .melflow({"run", "a.yaml", "--quiet", "--set", "mel.precision=double", "--var",
                        "OUT=b.h5"})
              .code == 0);
  const Ended e = exits(1, folder.melflow({"compare", "out.h5", "b.h5"}));
  CHECK(has(e.out, "mel.precision: double in b.h5, not a setting in out.h5\n"));
}

TEST_CASE("compare: equal features from another program or machine get a note") {
  const Folder folder;
  REQUIRE(folder.melflow({"run", "a.yaml", "--quiet"}).code == 0);
  const hid_t file = H5Fopen((folder / "out.h5").c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  const hid_t type = H5Tcopy(H5T_C_S1);
  H5Tset_size(type, 4);
  const hid_t space = H5Screate(H5S_SCALAR);
  H5Adelete(file, "instruction_set");
  const hid_t attribute =
      H5Acreate2(file, "instruction_set", type, space, H5P_DEFAULT, H5P_DEFAULT);
  H5Awrite(attribute, type, "neon");
  H5Aclose(attribute);
  H5Sclose(space);
  H5Tclose(type);
  H5Fclose(file);
  const Ended e = exits(0, folder.melflow({"compare", "out.h5", "a.yaml"}));
  CHECK(has(e.out, "\nnote: instruction_set: neon in out.h5, "));
  CHECK(e.out.ends_with(" in a.yaml: the last bits of values may differ\n"));
  const Json json = Json::parse(folder.melflow({"compare", "out.h5", "a.yaml", "--json"}).out);
  CHECK(json["equal"] == true);
  CHECK(json["notes"].size() == 1);
}

TEST_CASE("MELFLOW_INSTRUCTION_SET chooses the instruction set") {
  const Folder folder;
  for (const std::string_view set : MelKernel::instruction_sets()) {
    CAPTURE(set);
    const Process::Variables variables{{"MELFLOW_INSTRUCTION_SET", std::string(set)}};
    const Ended e = exits(0, folder.melflow({"run", "a.yaml"}, variables));
    CHECK(has(e.out, fmt::format("mel: backend cpu, {}\n", set)));
    const Json made =
        Json::parse(folder.melflow({"inspect", "--features", "out.h5", "--json"}).out);
    CHECK(made["instruction_set"] == set);
    fs::remove(folder / "out.h5");
    // The choice of either transform is the processor's; only FFTW's has to do with bytes.
    const Ended in_double = folder.melflow(
        {"inspect", "--features", "a.yaml", "--set", "mel.precision=double", "--json"}, variables);
    const std::string_view widest = MelKernel::instruction_sets().front();
    CHECK(Json::parse(in_double.out)["instruction_set"] ==
          (transform_name() == "melflow" ? fmt::format("{}, transform by melflow", set)
           : set == widest               ? std::string(set)
                                         : fmt::format("{}, FFTW by {}", set, widest)));
  }
  const Ended wrong =
      exits(78, folder.melflow({"run", "a.yaml"}, {{"MELFLOW_INSTRUCTION_SET", "avx"}}));
  CHECK(
      has(wrong.err,
          fmt::format("MELFLOW_INSTRUCTION_SET: 'avx' is not an instruction set of this processor, "
                      "which has {}\n",
                      fmt::join(MelKernel::instruction_sets(), ", "))));
  CHECK(!fs::exists(folder / "out.h5"));
}

TEST_CASE("inspect: what did the transform is named where it decided bits") {
  const Folder folder;
  const auto transform_of = [&](const std::string& setting) {
    exits(0, folder.melflow({"run", "a.yaml", "-q", "--set", setting, "--var", "OUT=b.h5"}));
    const Json json = Json::parse(exits(0, folder.melflow({"inspect", "b.h5", "--json"})).out);
    fs::remove(folder / "b.h5");
    return json["transform"].get<std::string>();
  };
  for (const char* setting : {"mel.n_fft=512", "mel.n_fft=400", "mel.n_fft=16384"})
    CHECK(transform_of(setting) == "");
  for (const char* setting : {"mel.precision=double", "mel.n_fft=401", "mel.n_fft=34"})
    CHECK(transform_of(setting) == transform_name());
}

TEST_CASE("compare: pipelines with several outputs are compared output by output") {
  const Folder folder;
  const auto two = [](const std::string& mel, const std::string& second) {
    return pipeline(mel) + "  cepstra: {stage: mfcc, from: mel}\n  " + second +
           ": {stage: hdf5_write, from: cepstra, path: mfcc.h5}\n"
           "  end: {stage: discard, from: mel}\n";
  };
  write_text(folder / "two.yaml", two("sample_rate: 16000, n_mels: 64, log: db", "mfcc"));
  write_text(folder / "other.yaml", two("sample_rate: 16000, n_mels: 80, log: db", "mfcc"));
  write_text(folder / "names.yaml", two("sample_rate: 16000, n_mels: 64, log: db", "cepstra_file"));
  REQUIRE(folder.melflow({"run", "two.yaml", "--quiet"}).code == 0);

  const Ended same = exits(0, folder.melflow({"compare", "two.yaml", "two.yaml"}));
  CHECK(has(same.out, "write: equal: same features (fingerprint "));
  CHECK(has(same.out, "\nmfcc: equal: same features (fingerprint "));
  const Ended e = exits(1, folder.melflow({"compare", "two.yaml", "other.yaml"}));
  CHECK(has(e.out, "write: mel.n_mels: 64 in two.yaml, 80 in other.yaml\nwrite: different: 1 "));
  CHECK(has(e.out, "\nmfcc: mel.n_mels: 64 in two.yaml, 80 in other.yaml\nmfcc: different: 1 "));
  const Json json =
      Json::parse(folder.melflow({"compare", "two.yaml", "other.yaml", "--json"}).out);
  CHECK(json["equal"] == false);
  CHECK(json["outputs"][1]["output"] == "mfcc");
  CHECK(json["outputs"][1]["differences"][0]["b"] == 80);
  const Ended lacks = exits(1, folder.melflow({"compare", "two.yaml", "names.yaml"}));
  CHECK(has(lacks.out, "\nmfcc: only in two.yaml\ncepstra_file: only in names.yaml\n"));

  // One of them compared with a file, or with a pipeline of one output.
  CHECK(folder.melflow({"compare", "mfcc.h5", "two.yaml", "--output", "mfcc"}).code == 0);
  CHECK(folder.melflow({"compare", "two.yaml", "mfcc.h5", "--output", "write"}).code == 1);
  CHECK(folder.melflow({"compare", "two.yaml", "two.yaml", "--output", "mfcc"}).code == 0);
  CHECK(has(folder.melflow({"compare", "a.yaml", "two.yaml"}).out, "write: mel.n_mels: 80 in a"));
  struct Row {
    std::vector<std::string> words;
    int code;
    const char* message;
  };
  // A file of rows is compared with the output that writes it, whatever other outputs there are.
  CHECK(folder.melflow({"compare", "mfcc.h5", "two.yaml"})
            .out.starts_with("mfcc: equal: same features (fingerprint "));
  fs::create_directories(folder / "old");
  fs::rename(folder / "mfcc.h5", folder / "old/mfcc.train.h5");
  const Ended named = exits(0, folder.melflow({"compare", "two.yaml", "./old/mfcc.train.h5"}));
  CHECK(named.out.starts_with("mfcc: equal: "));
  fs::rename(folder / "old/mfcc.train.h5", folder / "old.h5");
  const Row rows[] = {
      {{"compare", "old.h5", "two.yaml"},
       2,
       "melflow: two.yaml has several outputs whose features differ (write, mfcc); name one of "
       "them: --output write\n"},
      {{"compare", "two.yaml", "two.yaml", "--output", "mfc"},
       2,
       "melflow: there is no output 'mfc' in two.yaml. Did you mean 'mfcc'? It has write, mfcc\n"},
      {{"compare", "two.yaml", "names.yaml", "--output", "mfcc"},
       2,
       "melflow: there is no output 'mfcc' in names.yaml; it has write, cepstra_file\n"},
      {{"compare", "out.h5", "old.h5", "--output", "write"},
       2,
       "melflow: out.h5 is a file of rows and has no output 'write'\n"},
      {{"inspect", "--features", "two.yaml"},
       1,
       "melflow: two.yaml has several outputs whose features differ (write, mfcc); name one"},
      {{"inspect", "--features", "two.yaml", "--output", "wirte"}, 1, "Did you mean 'write'?"},
      {{"inspect", "two.h5", "--output", "write"}, 2, "--output requires --features"},
  };
  for (const Row& row : rows) {
    const Ended wrong = exits(row.code, folder.melflow(row.words));
    CHECK(has(wrong.err, row.message));
    CHECK(wrong.out.empty());
  }
  CHECK(has(folder.melflow({"inspect", "--features", "two.yaml", "--output", "mfcc"}).out,
            "\nmfcc.n_mfcc: 13\n"));
}

TEST_CASE("compare: options that are not set are not named") {
  const Folder folder;
  write_text(
      folder / "route.yaml",
      pipeline("sample_rate: 16000, n_mels: 80", "way.long",
               "  way: {stage: route, from: decode, outputs: {long: {duration: '> 0s'}}}\n"));
  const Ended e = exits(1, folder.melflow({"compare", "a.yaml", "route.yaml"}));
  CHECK(has(e.out, "route: only in route.yaml (outputs {\"long\":"));
  CHECK_FALSE(has(e.out, "else"));
  CHECK(has(folder.melflow({"compare", "--help"}).out, "compares settings, not values"));
}

TEST_CASE("compare: pipelines need no paths, and a variable that either of them uses") {
  const Folder folder;
  std::string other = pipeline("n_mels: \"${BANDS:-64}\", preset: whisper");
  other.replace(other.find("root: data"), 10, "root: \"${DATA}\"");
  write_text(folder / "q.yaml", other);
  CHECK(folder.melflow({"compare", "p.yaml", "q.yaml"}).code == 0);
  CHECK(folder.melflow({"compare", "demo", "demo"}).code == 0);
  CHECK(folder.melflow({"inspect", "--features", "q.yaml"}).code == 0);
  const Ended one = exits(1, folder.melflow({"compare", "p.yaml", "q.yaml", "--var", "BANDS=80"}));
  CHECK(has(one.out, "mel.n_mels: 64 in p.yaml, 80 in q.yaml"));
  for (const std::vector<std::string>& verb :
       {std::vector<std::string>{"compare", "p.yaml", "q.yaml"},
        std::vector<std::string>{"inspect", "--features", "q.yaml"}}) {
    std::vector<std::string> arguments = verb;
    arguments.insert(arguments.end(), {"--var", "BAND=80"});
    const Ended slip = exits(78, folder.melflow(arguments));
    CHECK(has(slip.err, "uses the variable ${BAND}. Did you mean 'BANDS'?"));
  }
  // A number cannot be left open.
  write_text(folder / "open.yaml", pipeline("n_mels: \"${BANDS}\", preset: whisper"));
  const Ended open = exits(78, folder.melflow({"compare", "p.yaml", "open.yaml"}));
  CHECK(has(open.err, "mel.n_mels: '${BANDS}' is not"));
}

TEST_CASE("feature settings: an option counts before the preset of its node as well as behind it") {
  const Folder folder;
  write_text(folder / "q.yaml", pipeline("preset: whisper, n_mels: 64"));
  CHECK(folder.melflow({"compare", "p.yaml", "q.yaml"}).code == 0);
  CHECK(folder
            .melflow({"compare", "p.yaml", "a.yaml", "--set", "mel.preset=whisper", "--set",
                      "mel.n_mels=64"})
            .code == 0);
}

TEST_CASE("feature settings: a pipeline on a device says so, as its output does") {
  const Folder folder;
  write_text(folder / "c.yaml", pipeline("n_mels: 64, preset: whisper, backend: cuda"));
  write_text(folder / "auto.yaml", pipeline("n_mels: 64, preset: whisper, backend: auto"));
  const auto on_device = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), MELFLOW_ON_HOST_GPU);
    return run(folder, arguments);
  };
  const auto json_of = [&](const std::string& path) {
    const Ended e = exits(0, on_device({"inspect", "--features", "--json", path}));
    INFO(path << ": " << e.err);
    return Json::parse(e.out);
  };
  REQUIRE(on_device({"run", "c.yaml", "--quiet"}).code == 0);
  const Json file = json_of("out.h5"), cuda = json_of("c.yaml"), automatic = json_of("auto.yaml");
  for (const Json& one : {file, cuda, automatic}) {
    CHECK(one["preset"] == "whisper, with n_mels changed");
    CHECK(one["feature_fingerprint"] == file["feature_fingerprint"]);
  }
  CHECK(file["backend"] == "cuda");
  CHECK(file["instruction_set"] == "sm_90, fused, fp32");
  CHECK(cuda["backend"] == "cuda");
  CHECK(cuda["instruction_set"] == "");
  CHECK(automatic["backend"] == "auto");
  CHECK(automatic["instruction_set"] == "");

  const Ended same = exits(0, on_device({"compare", "out.h5", "c.yaml"}));
  CHECK_FALSE(has(same.out, "note: backend"));
  CHECK(has(same.out,
            "\nnote: instruction_set: sm_90, fused, fp32 in out.h5, not known before a run in "
            "c.yaml: the last bits of values may differ\n"));
  CHECK(has(folder.melflow({"compare", "out.h5", "p.yaml"}).out,
            "\nnote: backend: cuda in out.h5, cpu in p.yaml: "));
}

}  // namespace melflow::test::feature_settings_test
