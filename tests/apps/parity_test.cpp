// melflow verify-parity: the shipped golden vectors, altered ones, and Python's own libraries.
#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/apps/copy_program.h"
#include "tests/apps/pipelines.h"
#include "tests/apps/process.h"
#include "tests/apps/sound.h"
#include "tests/support/source_path.h"

namespace melflow::test::parity_test {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

namespace {

const std::string kMelflow = MELFLOW_PROGRAM;

Ended verify(const TempFolder& folder, const std::vector<std::string>& more,
             const std::string& program = kMelflow) {
  std::vector<std::string> command{program, "verify-parity"};
  command.insert(command.end(), more.begin(), more.end());
  return run(folder, command);
}

fs::path vectors() { return fs::path(test::source_path("tests/golden/presets.json")); }

// Returns the case of that name, to be altered.
Json& case_of(Json& all, const std::string& name) {
  for (Json& one : all["cases"])
    if (one["name"] == name) return one;
  throw std::runtime_error("no case " + name);
}

void write_silence(const std::string& path, int rate, std::size_t samples) {
  write_audio(path, audio_kind("wav s16"), rate, std::vector<float>(samples));
}

void write_script(const std::string& path, const std::string& text) {
  write_text(path, text);
  fs::permissions(path, fs::perms::owner_all);
}

}  // namespace

TEST_CASE("parity: every shipped vector passes, a line for each preset") {
  const TempFolder folder;
  const Ended e = exits(0, verify(folder, {}));
  CHECK(e.err.empty());
  for (const char* start :
       {"\npreset ", "\nlibrosa ", "\ntorchaudio ", "\nkaldi ", "\nkaldi_htk ", "\nwhisper ",
        "\nwhisper_large_v3 ", "\nnemo ", "\nspeechbrain ", "\nhifigan ", "\nast ", "\ndeltas "})
    CHECK(has(e.out, start));
  CHECK_FALSE(has(e.out, "FAILED"));
}

TEST_CASE("parity: the JSON document has every case, and --preset limits") {
  const TempFolder folder;
  const Ended e = exits(0, verify(folder, {"--json"}));
  const Json all = Json::parse(e.out);
  CHECK(all["passed"] == true);
  CHECK(all["presets"].size() == 11);
  const Json stored = Json::parse(read_text(vectors()));
  CHECK(all["cases"].size() == stored["cases"].size() + stored["deltas"].size());
  for (const Json& one : all["cases"]) {
    INFO(one.dump());
    CHECK(one["passed"] == true);
    if (!one["worst"].is_null()) CHECK(one["worst"]["share"].get<double>() <= 1.0);
  }
  const Json two =
      Json::parse(verify(folder, {"--json", "--preset", "nemo", "--preset", "ast"}).out);
  REQUIRE(two["presets"].size() == 2);
  CHECK(two["presets"][0]["name"] == "nemo");
  CHECK(two["presets"][1]["name"] == "ast");
  CHECK(two["presets"][0]["tolerance"]["atol"] == 1e-3);

  const Ended lines = verify(folder, {"--all", "--preset", "torchaudio"});
  CHECK(has(lines.out, "\ntorchaudio amplitude, voice "));
  CHECK(has(lines.out, "omitted: RuntimeError: "));
}

TEST_CASE("parity: an altered vector fails, with its row and column named") {
  struct Row {
    const char *name, *message;
    void (*alter)(Json&);
  };
  const Row rows[] = {
      {"hifigan, voice", "hifigan, voice: frame 0, column 7: ",
       [](Json& one) {
         one["rows"][0]["values"][7] = one["rows"][0]["values"][7].get<double>() + 1e-3;
       }},
      {"kaldi mfcc, voice", "kaldi mfcc, voice: frame 0, column 12: ",
       [](Json& one) { one["rows"][0]["values"][12] = 99.0; }},
      {"whisper, noise", "whisper, noise: 30 x 80 values (frames x columns) here, 31 x 80 by ",
       [](Json& one) { one["frames"] = 31; }},
      {"librosa magnitudes, voice", "librosa magnitudes, voice: frame ",
       [](Json& one) { one["options"]["window"] = "hamming"; }},
      {"librosa, noise", "librosa, noise: its signal has 6615 samples here, must have 6614",
       [](Json& one) { one["samples"] = 6614; }},
  };
  for (const Row& row : rows) {
    const TempFolder folder;
    Json all = Json::parse(read_text(vectors()));
    row.alter(case_of(all, row.name));
    write_text(folder / "v.json", all.dump());
    const Ended e = exits(1, verify(folder, {"--vectors", "v.json"}));
    CHECK(has(e.out, "FAILED\n"));
    CHECK(has(e.out, std::string("\nfailed:\n  ") + row.message));
    CHECK(std::count(e.out.begin(), e.out.end(), '\n') == 17);  // nothing else failed
    CHECK(Json::parse(verify(folder, {"--vectors", "v.json", "--json"}).out)["passed"] == false);
  }
}

TEST_CASE("parity: vectors that cannot be used are refused, with file and place") {
  struct Row {
    void (*alter)(Json&);
    const char* message;
  };
  const Row rows[] = {
      {[](Json& all) { all["signals"][0]["fnv1a"] = 1; },
       "v.json: signals[0]: the checksum of 'voice' at 8000 Hz is 1813870650 here, the vectors "
       "were made with 1: the signals differ, so nothing can be compared\n"},
      {[](Json& all) { all["signals"][0]["signal"] = "song"; },
       "v.json: signals[0]: there is no signal 'song' at 8000 Hz"},
      {[](Json& all) { all["cases"][0].erase("frames"); },
       "v.json: cases[0] 'librosa, voice': 'frames' is missing\n"},
      {[](Json& all) { all["cases"][0]["sample_rate"] = "fast"; },
       "v.json: cases[0] 'librosa, voice': 'sample_rate' is \"fast\", which is not a value for "
       "it\n"},
      {[](Json& all) { all["cases"][0]["rows"][0]["values"].erase(0); },
       "v.json: cases[0] 'librosa, voice': rows[0]: has 127 values, must have 128\n"},
      {[](Json& all) { all["cases"][0]["rows"][0]["frame"] = 33; },
       "v.json: cases[0] 'librosa, voice': rows[0]: frame 33 is not among its 33\n"},
      {[](Json& all) { all["cases"][0]["options"]["n_mel"] = 3; },
       "v.json: cases[0] 'librosa, voice': options.n_mel: unknown option. Did you mean "
       "'n_mels'?\n"},
      {[](Json& all) { all["cases"][0]["options"]["n_mels"] = 0; },
       "v.json: cases[0] 'librosa, voice': options.n_mels: 0 is out of range"},
      {[](Json& all) { all.erase("tolerances"); }, "v.json: 'tolerances' is missing\n"},
      {[](Json& all) { all["cases"] = Json::array(); }, "v.json: has no cases\n"},
      {[](Json& all) { all = Json::array(); },
       "v.json: this is not a JSON document, or is damaged\n"},
  };
  const Json stored = Json::parse(read_text(vectors()));
  for (const Row& row : rows) {
    const TempFolder folder;
    Json all = stored;
    row.alter(all);
    write_text(folder / "v.json", all.dump());
    const Ended e = exits(1, verify(folder, {"--vectors", "v.json"}));
    CHECK(e.out.empty());
    CHECK(e.err.starts_with(std::string("melflow: ") + row.message));
  }
  const TempFolder folder;
  const Ended none = exits(1, verify(folder, {"--vectors", "none.json"}));
  CHECK(none.err == "melflow: none.json: cannot be read: No such file or directory\n");
  write_text(folder / "v.json", stored.dump().substr(0, 1000));
  const Ended cut = verify(folder, {"--vectors", "v.json"});
  CHECK(cut.err == "melflow: v.json: this is not a JSON document, or is damaged\n");
}

TEST_CASE("parity: an installed program finds its vectors; without them it says what is missing") {
  const TempFolder folder;
  const std::string program = copy_program(folder);
  CHECK(has(exits(1, verify(folder, {}, program)).err,
            "share/melflow/parity/presets.json is missing: the installation is not "
            "complete, or the program was moved out of it\n"));
  fs::create_directories(folder / "share/melflow/parity");
  fs::copy_file(vectors(), folder / "share/melflow/parity/presets.json");
  CHECK(verify(folder, {"--preset", "ast"}, program).code == 0);
}

TEST_CASE("parity: --reference says what is wrong with the command line, Python or the library") {
  const TempFolder folder;
  test::write_clip(folder / "a.wav", 16000, 0.5);
  struct Row {
    std::vector<std::string> arguments;
    int code;
    const char* message;
  };
  const Row rows[] = {
      {{"--reference", "whisper"}, 2, "--reference requires FILE"},
      {{"--python", "x"}, 2, "--python requires --reference"},
      {{"--reference", "whisper", "a.wav", "--preset", "nemo"},
       2,
       "melflow: --preset nemo: whisper has no such preset; those that it has are whisper, "
       "whisper_large_v3\n"},
      {{"--reference", "librosa", "a.wav", "--python", "no_such_python"},
       1,
       "melflow: no_such_python: cannot be started: No such file or directory\n"},
      {{"--reference", "librosa", "a.wav", "--python", "/bin/false"},
       1,
       "melflow: /bin/false exited with status 1 and without an answer: \n"},
  };
  for (const Row& row : rows) {
    const Ended e = exits(row.code, verify(folder, row.arguments));
    INFO(row.message << " | " << e.err);
    CHECK(has(e.err, row.message));
  }
  // An isolated Python without site packages has none of the libraries.
  write_script(folder / "python", "#!/bin/sh\nexec python3 -I -S \"$@\"\n");
  const Ended lacking = exits(1, verify(folder, {"--reference", "kaldi-native-fbank", "a.wav",
                                                 "--python", folder / "python"}));
  CHECK(has(lacking.err, "/python lacks what the library needs (numpy: ModuleNotFoundError: "));
  CHECK(has(lacking.err, "/python -m pip install numpy kaldi-native-fbank, or name another "));
}

// A stand-in for the libraries returns zeros and records its input.
TEST_CASE("parity: --reference compares every frame of every file with the answer") {
  const TempFolder folder;
  write_text(folder / "zeros.py",
             "import json, sys, os, array\n"
             "request = json.load(open(sys.argv[2]))\n"
             "outputs = []\n"
             "for one in request['inputs']:\n"
             "    n = os.path.getsize(one['samples']) // 4\n"
             "    frames = 0 if n < 400 else 1 + (n - 400) // 160\n"
             "    array.array('f', [0.0] * (frames * 23)).tofile(open(one['rows'], 'wb'))\n"
             "    outputs.append(dict(frames=frames, columns=23))\n"
             "assert request['reference'] == 'kaldi-native-fbank'\n"
             "assert request['options']['preemphasis'] == 0.97\n"
             "json.dump(dict(library='zeros', version='1', function='f', outputs=outputs,\n"
             "               unknown=[]), open(sys.argv[3], 'w'))\n");
  write_script(folder / "python", "#!/bin/sh\nexec python3 " + (folder / "zeros.py") + " \"$@\"\n");
  test::write_clip(folder / "a.wav", 16000, 0.5);
  test::write_clip(folder / "b.wav", 8000, 0.5);
  write_text(folder / "c.wav", "no sound");
  const std::vector<std::string> arguments{
      "--reference", "kaldi-native-fbank", "--python", folder / "python", "a.wav", "b.wav", "c.wav",
      "none.wav"};
  const Ended e = exits(1, verify(folder, arguments));
  CHECK(e.out.starts_with(
      "the library's calls: f\nb.wav: resampled from 8000 to 16000 Hz, for both\n"));
  CHECK(has(e.out, "  a.wav: frame "));
  CHECK(has(e.out, " 0 by zeros 1: differs by "));
  CHECK(has(e.out, "  c.wav: decode: "));
  CHECK(has(e.out, "  none.wav: disk_read: "));
  std::vector<std::string> as_json = arguments;
  as_json.emplace_back("--json");
  const Json json = Json::parse(verify(folder, as_json).out);
  CHECK(json["preset"] == "kaldi");
  REQUIRE(json["files"].size() == 4);
  CHECK(json["files"][0]["frames"] == 48);
  CHECK(json["files"][1]["frames"] == 48);
  CHECK(json["files"][0]["passed"] == false);
  for (const Json& one : json["files"])
    if (!one["worst"].is_null())
      CHECK(one["largest_difference"].get<double>() >= one["worst"]["error"].get<double>());
}

// Refused before the library is called, so empty modules are enough.
TEST_CASE("parity: an option that the library has nothing like is named, with what it has") {
  const TempFolder folder;
  write_text(folder / "numpy.py", "def fromfile(path, dtype): return []\n");
  for (const char* package : {"librosa", "torchaudio", "nemo_toolkit", "kaldi_native_fbank"}) {
    const std::string info = folder / (std::string(package) + "-1.dist-info");
    fs::create_directory(info);
    write_text(info + "/METADATA", std::string("Name: ") + package + "\nVersion: 1\n");
  }
  for (const char* module : {"librosa", "torch", "torchaudio", "nemo"})
    write_text(folder / (std::string(module) + ".py"), "def __getattr__(name): return name\n");
  write_text(folder / "kaldi_native_fbank.py", "def FbankOptions(): return None\n");
  write_script(folder / "python",
               "#!/bin/sh\nPYTHONPATH=" + folder.path() + " exec python3 \"$@\"\n");
  write_silence(folder / "a.wav", 16000, 4000);
  struct Row {
    std::string library, set, refused;
  };
  const Row rows[] = {
      {"librosa", "log=ln", "librosa has no log: ln; it has none, db"},
      {"librosa", "window=povey", "librosa has no window: povey"},
      {"torchaudio", "window=povey",
       "torchaudio has no window: povey; it has hann, hamming, blackman, kaiser, bartlett, values"},
      {"kaldi-native-fbank", "n_fft=1024", "kaldi-native-fbank has no n_fft: 1024; it has 512"},
      {"kaldi-native-fbank", "htk_mode=htk",
       "kaldi-native-fbank has no htk_mode: htk; it has false, kaldi"},
      {"kaldi-native-fbank", "vtln_warp=1.1", "kaldi-native-fbank has no vtln_warp: 1.1; it has 1"},
      {"nemo", "window=kaiser", "NeMo has no window: kaiser; it has hann, hamming, blackman"},
  };
  for (const Row& row : rows) {
    const Ended e =
        exits(1, verify(folder, {"--reference", row.library, "--python", folder / "python", "--set",
                                 "mel." + row.set, "a.wav"}));
    INFO(row.set << ": " << e.out << e.err);
    CHECK(has(e.out, "omitted: " + row.refused + "\n"));
  }
}

// For silence Kaldi returns only its floor, so a stand-in knows the right result.
TEST_CASE("parity: --set changes both sides, and what a library is off itself is allowed") {
  const TempFolder folder;
  write_text(
      folder / "floor.py",
      "import json, sys, os, array, math\n"
      "request = json.load(open(sys.argv[2]))\n"
      "o = request['options']\n"
      "assert request['changed'] == ['sample_rate', 'n_fft', 'win_length', 'hop', 'n_mels']\n"
      "assert (o['sample_rate'], o['n_fft'], o['n_mels']) == (8000, 256, 20), o\n"
      "floor = math.log(2.0 ** -23)\n"
      "outputs = []\n"
      "for one in request['inputs']:\n"
      "    n = os.path.getsize(one['samples']) // 4\n"
      "    frames = 1 + (n - o['win_length']) // o['hop']\n"
      "    array.array('f', [floor] * (frames * 20)).tofile(open(one['rows'], 'wb'))\n"
      "    outputs.append(dict(frames=frames, columns=20))\n"
      "    if 'OWN' in os.environ:\n"
      "        rows = [floor, floor, floor + 0.5] + [floor] * (frames * 20 - 3)\n"
      "        array.array('f', rows).tofile(open(one['rows'], 'wb'))\n"
      "        errors = [float(os.environ['OWN'])] * (frames * 20)\n"
      "        array.array('f', errors).tofile(open(one['own_errors'], 'wb'))\n"
      "        outputs[-1]['has_own_errors'] = True\n"
      "json.dump(dict(library='floor', version='1', function='fbank', outputs=outputs,\n"
      "               unknown=os.environ.get('UNKNOWN', '').split()),\n"
      "          open(sys.argv[3], 'w'))\n");
  write_silence(folder / "a.wav", 8000, 4000);
  write_silence(folder / "b.wav", 8000, 2400);
  const auto asked = [&](const std::string& environment) {
    write_script(folder / "python", "#!/bin/sh\n" + environment + " exec python3 " +
                                        (folder / "floor.py") + " \"$@\"\n");
    return verify(folder,
                  {"--reference", "kaldi-native-fbank", "--python", folder / "python", "--set",
                   "mel.sample_rate=8000", "--set", "mel.n_fft=256", "--set", "mel.win_length=200",
                   "--set", "mel.hop=80", "--set", "mel.n_mels=20", "a.wav", "b.wav"});
  };
  const Ended right = exits(0, asked(""));
  CHECK_FALSE(has(right.out, "resampled"));
  // The error that the library states for itself is allowed, and no more.
  exits(0, asked("OWN=0.5"));
  CHECK(has(exits(1, asked("OWN=0.4")).out, "  a.wav: frame 0, column 2: "));
  CHECK(exits(1, asked("UNKNOWN='n_mels hop'")).err ==
        "melflow: fbank has no setting for n_mels, hop, so nothing can be compared\n");
}

TEST_CASE("parity: what --set cannot change is said before anything is computed") {
  const TempFolder folder;
  test::write_clip(folder / "a.wav", 16000, 0.5);
  struct Row {
    const char *set, *message;
  };
  const Row rows[] = {
      {"mel.n_mel=3", "mel.n_mel: unknown option. Did you mean 'n_mels'?"},
      {"mel.n_mels=0", "mel.n_mels: 0 is out of range"},
      {"mel.win_length=900", "mel.win_length is 900 but must be at most n_fft (512) samples"},
      {"mel.precision=double", "mel.precision: rows of both precisions are always compared"},
      {"mel.preset=nemo", "mel.preset: here the preset is given by --preset"},
      {"memory.host=1GiB", "--set: only options of mel can be set here"},
      {"decode.block=1MiB", "decode.block: there is no node 'decode'"},
  };
  for (const Row& row : rows) {
    const Ended e = exits(78, verify(folder, {"--reference", "kaldi-native-fbank", "--python",
                                              "/bin/false", "--set", row.set, "a.wav"}));
    INFO(row.set << " | " << e.err);
    CHECK(has(e.err, row.message));
  }
  CHECK(has(verify(folder, {"--set", "mel.n_mels=3"}).err, "--set requires --reference"));
}

TEST_CASE("parity: a linear value far below its frame's peak is held to more than the peak") {
  const TempFolder folder;
  Json all = Json::parse(read_text(vectors()));
  Json& values = case_of(all, "librosa, voice")["rows"][2]["values"];
  double peak = 0;
  for (const Json& v : values) peak = std::max(peak, v.get<double>());
  std::size_t altered = values.size();
  for (std::size_t c = 0; c < values.size() && altered == values.size(); ++c)
    if (values[c].get<double>() < 1e-4 * peak) altered = c;
  REQUIRE(altered < values.size());
  // A change of a thousandth: 1e-7 of the peak.
  values[altered] = values[altered].get<double>() * 1.001;
  write_text(folder / "v.json", all.dump());
  const Ended e = exits(1, verify(folder, {"--vectors", "v.json"}));
  CHECK(has(e.out, "\nfailed:\n  librosa, voice: frame "));
  CHECK(has(e.out, ", column " + std::to_string(altered) + ": "));
  CHECK(has(e.out, " here in double, "));
}

// A stand-in for Kaldi, as above: returns the floor for silence, and records its input.
TEST_CASE("parity: the mel settings of a pipeline are compared with the library of its preset") {
  const TempFolder folder;
  write_text(folder / "floor.py",
             "import json, sys, os, array, math\n"
             "request = json.load(open(sys.argv[2]))\n"
             "o = request['options']\n"
             "json.dump(dict(reference=request['reference'], changed=request['changed'],\n"
             "               sample_rate=o['sample_rate'], n_mels=o['n_mels'],\n"
             "               inputs=len(request['inputs'])), open('asked.json', 'w'))\n"
             "floor, outputs = math.log(2.0 ** -23), []\n"
             "for one in request['inputs']:\n"
             "    n = os.path.getsize(one['samples']) // 4\n"
             "    frames = 1 + (n - o['win_length']) // o['hop']\n"
             "    rows = array.array('f', [floor] * (frames * o['n_mels']))\n"
             "    rows.tofile(open(one['rows'], 'wb'))\n"
             "    outputs.append(dict(frames=frames, columns=o['n_mels']))\n"
             "json.dump(dict(library='floor', version='1', function='f', outputs=outputs,\n"
             "               unknown=[]), open(sys.argv[3], 'w'))\n");
  write_script(folder / "python", "#!/bin/sh\nexec python3 " + (folder / "floor.py") + " \"$@\"\n");
  write_silence(folder / "a.wav", 8000, 4000);
  const std::string begin = test::nodes_to_mel(
      "root: '${DATA}'",
      "preset: kaldi, sample_rate: 8000, n_fft: 256, win_length: 200, hop: 80, n_mels: 20");
  const std::string write = "  write: {stage: hdf5_write, from: mel, path: '${OUT}'}\n";
  write_text(folder / "p.yaml", begin + write);
  const std::vector<std::string> python{"--python", folder / "python"};
  const auto asked = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), python.begin(), python.end());
    return verify(folder, arguments);
  };
  CHECK(exits(0, asked({"p.yaml", "a.wav"}))
            .out.starts_with("mel of p.yaml, beside kaldi-native-fbank; other than in its preset: "
                             "sample_rate, n_fft, win_length, hop, n_mels\n"));
  const Json question = Json::parse(read_text(folder / "asked.json"));
  CHECK(question["reference"] == "kaldi-native-fbank");
  CHECK(question["changed"] == Json({"sample_rate", "n_fft", "win_length", "hop", "n_mels"}));
  CHECK(question["sample_rate"] == 8000);
  CHECK(question["n_mels"] == 20);

  // --set changes the pipeline; without recordings the test signals are compared.
  const Ended set = asked({"p.yaml", "--set", "mel.n_mels=23", "--json"});
  CHECK(set.code == 1);  // the test signals are not silent
  const Json document = Json::parse(set.out);
  CHECK(document["pipeline"] == "p.yaml");
  CHECK(document["node"] == "mel");
  CHECK(document["preset"] == "kaldi");
  REQUIRE(document["files"].size() == 5);
  CHECK(document["changed"] == Json({"sample_rate", "n_fft", "win_length", "hop"}));
  CHECK(Json::parse(read_text(folder / "asked.json"))["inputs"] == 5);

  // Without a preset no library is chosen, unless --reference names one.
  CHECK(has(asked({"p.yaml", "--set", "mel.preset=none", "a.wav"}).err,
            "p.yaml: mel has no preset, which would say which library is meant; give --reference, "
            "one of librosa, "));
  (void)asked({"p.yaml", "--reference", "torchaudio", "a.wav"});
  CHECK(Json::parse(read_text(folder / "asked.json"))["reference"] == "torchaudio");

  // A pipeline with several mel nodes.
  write_text(folder / "two.yaml", begin + write +
                                      "  more: {stage: mel, from: batch, preset: whisper}\n"
                                      "  write2: {stage: hdf5_write, from: more, path: o2.h5}\n");
  CHECK(has(exits(1, asked({"two.yaml", "--set", "mel.sample_rate=16000", "a.wav"})).err,
            "two.yaml has several mel nodes whose settings differ (mel, more); name one: --node "
            "mel"));
  CHECK(has(asked({"two.yaml", "--set", "mel.sample_rate=16000", "--node", "mroe"}).err,
            "--node mroe: two.yaml has no such mel node. Did you mean 'more'? It has mel, more"));
  (void)asked({"two.yaml", "--set", "mel.sample_rate=16000", "--node", "more"});
  CHECK(Json::parse(read_text(folder / "asked.json"))["reference"] == "whisper");

  write_text(folder / "none.yaml",
             "version: 1\ngraph:\n  files: {stage: file_list, root: data}\n"
             "  end: {stage: discard, from: files}\n");
  CHECK(has(asked({"none.yaml"}).err, "none.yaml: no node of it is a mel"));
  CHECK(asked({"p.yaml", "--var", "DTAA=clips", "a.wav"}).code == 78);
  CHECK(has(verify(folder, {"--node", "mel"}).err, "--node requires a pipeline as the first FILE"));
}

}  // namespace melflow::test::parity_test
