// melflow verify-parity, as far as it goes without Python: what is wrong is said before that is
// started. tests/python/parity_test.py tests what it compares.
#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "pipeline/base/version.h"
#include "tests/apps/pipelines.h"
#include "tests/apps/process.h"
#include "tests/apps/sound.h"

namespace melflow::test::parity_test {

namespace fs = std::filesystem;

namespace {

struct Wrong {
  std::vector<std::string> arguments;
  int code;
  const char* message;
};

void check_messages(const TempFolder& folder, const std::vector<Wrong>& rows) {
  for (const Wrong& row : rows) {
    std::vector<std::string> command{"verify-parity"};
    command.insert(command.end(), row.arguments.begin(), row.arguments.end());
    const Ended e = melflow_in(folder, command, {{"MELFLOW_PYTHON", "/bin/false"}});
    INFO(row.message << " | " << e.out << e.err);
    CHECK(e.code == row.code);
    CHECK(e.out.empty());
    CHECK(has(e.err, row.message));
  }
}

}  // namespace

TEST_CASE("parity: Python gets the command line, and its exit status is the program's") {
  const TempFolder folder;
  const std::string version(kVersion);
  write_text(folder / "python",
             "#!/bin/sh\n"
             "case $2 in *print*) echo " +
                 version +
                 "; exit;; esac\n"
                 "shift 2; printf '%s\\n' \"$@\"; exit 23\n");
  fs::permissions(folder / "python", fs::perms::owner_all);
  const auto started = [&](const std::string& python) {
    return melflow_in(folder, {"verify-parity", "--preset", "ast", "--all"},
                      {{"MELFLOW_PYTHON", python}});
  };
  CHECK(exits(23, started(folder / "python")).out == "verify-parity\n--preset\nast\n--all\n");
  CHECK(exits(1, started("/bin/false")).err ==
        "melflow: melflow verify-parity: this needs Python with the package melflow " + version +
            ", and /bin/false has none; install it there (pip install), or name another Python by "
            "MELFLOW_PYTHON\n");
}

TEST_CASE("parity: arguments that do not fit are refused before Python is started") {
  const TempFolder folder;
  write_clip(folder / "a.wav", 16000, 0.5);
  const auto set = [](const char* option) {
    return std::vector<std::string>{"--reference", "kaldi-native-fbank", "--set", option, "a.wav"};
  };
  check_messages(
      folder,
      {{{"--reference", "whisper"}, 2, "--reference requires FILE"},
       {{"--python", "x"}, 2, "--python requires --reference"},
       {{"--set", "mel.n_mels=3"}, 2, "--set requires --reference"},
       {{"--node", "mel"}, 2, "--node requires a pipeline as the first FILE"},
       {{"--reference", "whisper", "a.wav", "--preset", "nemo"},
        2,
        "melflow: --preset nemo: whisper has no such preset; it has whisper, "
        "whisper_large_v3\n"},
       {{"--reference", "whisper", "a.wav", "--preset", "nemo", "--preset", "whisper"},
        2,
        "melflow: --reference compares with one preset, but several are given; leave only one "
        "--preset\n"},
       {set("mel.n_mel=3"), 78, "mel.n_mel: unknown option. Did you mean 'n_mels'?"},
       {set("mel.n_mels=0"), 78, "mel.n_mels: 0 is out of range"},
       {set("mel.win_length=900"), 78,
        "mel.win_length is 900 but must be at most n_fft (512) samples"},
       {set("mel.precision=double"), 78, "mel.precision: rows of both precisions are always"},
       {set("mel.preset=nemo"), 78, "mel.preset: here the preset is given by --preset"},
       {set("memory.host=1GiB"), 78, "--set: only options of mel can be set here"},
       {set("decode.block=1MiB"), 78, "--set: only options of mel can be set here"},
       {set("files.root=x"), 78, "files.root: there is no node 'files'"},
       {set("mel.n_mels=64"), 1, "melflow verify-parity: this needs Python"}});
}

TEST_CASE("parity: a model that Transformers does not take is refused before Python is started") {
  const TempFolder folder;
  write_clip(folder / "a.wav", 16000, 0.5);
  fs::create_directory(folder / "whisper");
  write_text(folder / "whisper/preprocessor_config.json",
             R"({"feature_extractor_type": "WhisperFeatureExtractor", "hop_length": 160})");
  write_text(folder / "fbank.conf", "--num-mel-bins=40\n");
  const auto with = [](std::vector<std::string> more) {
    more.insert(more.begin(), {"--reference", "transformers"});
    return more;
  };
  check_messages(
      folder,
      {{with({}), 2, "--reference transformers requires the folder of a model as the first FILE"},
       {with({"nowhere"}), 78, "nowhere: cannot be read: No such file or directory"},
       {with({"fbank.conf", "a.wav"}), 1,
        "melflow: fbank.conf: is read as compute-fbank-feats of Kaldi, and --reference "
        "transformers compares with classes of transformers alone\n"},
       {with({"whisper", "--set", "model.hop_lenght=3"}), 78,
        "hop_lenght: WhisperFeatureExtractor is not known to have this key"},
       {with({"whisper", "--set", "mel.n_mels=3"}), 78, "mel.n_mels: there is no node 'mel'"},
       {with({"whisper", "--set", "memory.host=1GiB"}), 78,
        "--set: only keys of the model can be set here, as in model.dither=0"},
       {with({"whisper", "--preset", "whisper"}), 2,
        "melflow: --preset, --node and --var: --reference transformers compares by a model's file "
        "alone; leave them out\n"},
       {with({"whisper", "--set", "model.hop_length=320", "a.wav"}), 1,
        "melflow verify-parity: this needs Python"}});
}

TEST_CASE("parity: a pipeline without a mel node that can be compared is refused") {
  const TempFolder folder;
  write_clip(folder / "a.wav", 16000, 0.5);
  const std::string begin = nodes_to_mel("root: '${DATA}'", "preset: kaldi, sample_rate: 16000");
  const std::string write = "  write: {stage: hdf5_write, from: mel, path: '${OUT}'}\n";
  write_text(folder / "p.yaml", begin + write);
  write_text(folder / "two.yaml", begin + write +
                                      "  more: {stage: mel, from: batch, preset: whisper}\n"
                                      "  write2: {stage: hdf5_write, from: more, path: o2.h5}\n");
  fs::create_directory(folder / "gemma");
  write_text(folder / "gemma/preprocessor_config.json",
             R"({"feature_extractor_type": "Gemma4AudioFeatureExtractor"})");
  write_text(folder / "model.yaml",
             "version: 1\ngraph:\n  files: {stage: file_list, root: data}\n"
             "  read: {stage: disk_read, from: files}\n  decode: {stage: decode, from: read}\n"
             "  mel: {stage: mel, from: decode, preset: gemma}\n" +
                 write);
  write_text(folder / "none.yaml",
             "version: 1\ngraph:\n  files: {stage: file_list, root: data}\n"
             "  end: {stage: discard, from: files}\n");
  check_messages(
      folder,
      {{{"p.yaml", "--set", "mel.preset=none", "a.wav"},
        1,
        "p.yaml: mel has no preset, which would say which library is meant; give --reference, "
        "one of librosa, "},
       {{"p.yaml", "--set", "mel.preset=lhotse", "a.wav"},
        1,
        "p.yaml: the preset of mel, lhotse, is of no library that --reference compares with; give "
        "--reference, one of librosa, "},
       {{"model.yaml", "a.wav"},
        1,
        "model.yaml: the preset of mel is a model's file (Gemma4AudioFeatureExtractor of "
        "transformers "},
       {{"model.yaml", "a.wav"},
        1,
        "), which is compared by itself: --reference transformers FOLDER, with the model's "
        "folder\n"},
       {{"two.yaml", "a.wav"},
        1,
        "two.yaml has several mel nodes whose settings differ (mel, more); name one: --node mel"},
       {{"two.yaml", "--node", "mroe"},
        2,
        "--node mroe: two.yaml has no such mel node. Did you mean 'more'? It has mel, more"},
       {{"two.yaml", "--node", "more"}, 1, "melflow verify-parity: this needs Python"},
       {{"none.yaml"}, 1, "none.yaml: has no node of the stage mel"},
       {{"p.yaml", "--var", "DTAA=clips", "a.wav"}, 78, "DTAA"}});
}

}  // namespace melflow::test::parity_test
