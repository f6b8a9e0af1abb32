// Models' own files: expressions, tables of classes, and what becomes of every key.

#include <doctest/doctest.h>

#include <string>

#include "config/load.h"
#include "pipeline/stage/registry.h"
#include "stages/features/mel/mel_presets.h"
#include "stages/front_ends.h"
#include "stages/model_files/class_reader.h"
#include "stages/model_files/expression.h"
#include "stages/model_files/front_end_class.h"
#include "stages/model_files/model_file.h"
#include "tests/support/temp_folder.h"

namespace melflow::model_files_test {
namespace {

std::string computed(std::string_view expression) {
  try {
    const Term term = evaluate(expression, [](std::string_view name) -> Term {
      if (name == "rate") return 16000.0;
      if (name == "word") return std::string("hann");
      if (name == "list.of") return Term::List{1, 2, 4};
      throw ExpressionError("no key " + std::string(name));
    });
    if (term.is_none()) return "none";
    if (term.truth() != nullptr) return *term.truth() ? "true" : "false";
    if (term.text() != nullptr) return *term.text();
    if (term.number() != nullptr) return number_text(*term.number());
    std::string out;
    for (const double v : *term.list()) out += number_text(v) + " ";
    return out;
  } catch (const ExpressionError& error) {
    return std::string("error: ") + error.what();
  }
}

using Files = test::TempFolder;

// Returns the problems with a file, without its folder; "" for none.
std::string problems_of(const Value& preset, const std::string& folder) {
  try {
    read_model_file(preset);
    return "";
  } catch (const ConfigError& error) {
    std::string text = error.what();
    for (std::size_t at = 0; (at = text.find(folder + "/")) != text.npos;)
      text.erase(at, folder.size() + 1);
    return text;
  }
}

std::string nodes_of(const ModelFrontEnd& of) {
  std::string out;
  for (const ModelFrontEnd::Node& node : of.nodes) {
    out += node.stage + "(";
    for (const ModelFrontEnd::Option& option : node.options)
      out += option.name + "=" + to_json(option.value) + " ";
    out += ") ";
  }
  return out;
}

constexpr const char* kWhisper = R"({
  "chunk_length": 30,
  "feature_extractor_type": "WhisperFeatureExtractor",
  "feature_size": 128,
  "hop_length": 160,
  "n_fft": 400,
  "n_samples": 480000,
  "nb_max_frames": 3000,
  "padding_side": "right",
  "padding_value": 0.0,
  "return_attention_mask": false,
  "sampling_rate": 16000
}
)";

}  // namespace

TEST_CASE("model files: expressions are Python's, and only the value that is taken is evaluated") {
  const std::pair<const char*, const char*> kCases[] = {
      {"1 + 2 * 3", "7"},
      {"-rate // 3", "-5334"},
      {"7 % -3", "-2"},
      {"2 ** 3 ** 2", "512"},
      {"(1 + 2) * 3", "9"},
      {"int(rate * 0.001 * 25)", "400"},
      {"round(2.5)", "2"},
      {"pow2(400)", "512"},
      {"pow2(512)", "512"},
      {"rate == 16000 and not none", "true"},
      {"none or 3", "3"},
      {"0 or none", "none"},
      {"'a' if rate > 8000 else nowhere", "a"},
      {"nowhere if rate < 8000 else 'b' if true else nowhere", "b"},
      {"max(1, 5 // 2)", "2"},
      {"pick(word, 'hamming', 'x', 'hann', 'y')", "y"},
      {"pick(word, 'povey', 'x')", "error: known are povey"},
      {"list.of * 2", "2 4 8 "},
      {"inverse(list.of)", "1 0.5 0.25 "},
      {"head(list.of, 2)", "1 2 "},
      {"size(list.of)", "3"},
      {"s(30)", "30s"},
      {"dB(-25)", "-25dB"},
      {"float32('tiny')", "1.1754943508222875e-38"},
      {"before('2.4.1', '2.5')", "true"},
      {"before('2.10', '2.5')", "false"},
      {"hertz('22.05k')", "22050"},
      {"1 / 0", "error: it would be divided by 0"},
      {"1 +", "error: this is no whole expression"},
      {"system('ls')", "error: there is no function system here"},
      {"1 $", "error: this is no expression from '$' on"},
  };
  for (const auto& [expression, expected] : kCases) {
    CAPTURE(expression);
    CHECK(computed(expression) == expected);
  }
  CHECK(computed(std::string(100000, '(')) == "error: too many parentheses");
  CHECK(computed(std::string(100000, '-') + "1") == "error: too many parentheses");
}

TEST_CASE("model files: every class's table can be read, and its nodes have options of stages") {
  for (const FrontEndFamily* family : front_end_families())
    for (const FrontEndClass& of : family->classes) {
      CAPTURE(family->name);
      CAPTURE(of.name);
      // As the class is by itself; two have defaults that are not computed.
      ModelAssumptions assumptions;
      if (of.name == "CohereAsrFeatureExtractor")
        assumptions.keys.set("dither", Value::scalar("0"));
      if (of.name == "PocketTTSFeatureExtractor")
        assumptions.keys.set("end_on_pause", Value::scalar("false"));
      Problems problems;
      const ModelFrontEnd front =
          read_class({family, std::string(of.name), {}, Value::map({})}, assumptions, problems);
      CHECK(problems.str() == "");
      REQUIRE(!front.nodes.empty());
      CHECK(front.sample_rate() > 0);
      for (const ModelFrontEnd::Node& node : front.nodes) {
        CAPTURE(node.stage);
        const StageInfo* stage = Registry::global().find(node.stage);
        REQUIRE(stage != nullptr);
        Value options = Value::map({});
        for (const ModelFrontEnd::Option& option : node.options)
          options.set(option.name, option.value);
        stage->configure()->schema().read(options, "", problems);
        CHECK(problems.str() == "");
        // A base with further nodes would put them in, too.
        if (const Value* base = node.find("preset"))
          for (const FrontEndNode& n : find_front_end(base->text())->nodes())
            CHECK((n.stage == "mel" || n.stage == "segment"));
      }
    }
}

TEST_CASE("model files: each value is that of the file, with its place and source") {
  Files files;
  const std::string path = files.write("preprocessor_config.json", kWhisper);
  const ModelFrontEnd of = read_model_file(Value::scalar(path));
  CHECK(of.title == "WhisperFeatureExtractor of transformers 5.24.0");
  CHECK(of.window.value.text() == "30s");
  CHECK(nodes_of(of) == "mel(preset=\"whisper\" sample_rate=16000 n_fft=400 hop=160 n_mels=128 ) ");
  for (const ModelFrontEnd::Option& option : of.main().options)
    if (option.name == "n_mels") {
      CHECK(option.source == "feature_size, line 4");
      CHECK(option.value.mark().line == 4);
    }
  CHECK(read_model_file(Value::scalar(files.path())).hash == of.hash);
  CHECK(of.hash.starts_with("xxh3 "));
}

TEST_CASE(
    "model files: a key is used, known to have no influence, or an error with name and line") {
  Files files;
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string text = kWhisper;
    text.replace(text.find(from), from.size(), to);
    const std::string path = files.write("preprocessor_config.json", text);
    return problems_of(Value::scalar(path), files.path());
  };
  const std::pair<std::pair<const char*, const char*>, const char*> kCases[] = {
      {{"\"hop_length\"", "\"hop_lenght\""},
       "preprocessor_config.json:5:3: hop_lenght: WhisperFeatureExtractor is not known to have "
       "this key, so what it changes is not known. Did you mean 'hop_length'? Where it changes "
       "nothing, write {file: FILE, ignore: [hop_lenght]}"},
      {{"160", "\"160\""}, "preprocessor_config.json:5:17: hop_length: "},
      {{"160", "160.5"}, "preprocessor_config.json:5:17: hop_length: '160.5' is not an integer"},
      {{"160", "null"}, "preprocessor_config.json:5:17: hop_length: "},
      {{"160", "[160]"}, "preprocessor_config.json:5:17: hop_length: "},
      {{"0.0", "1.5"},
       "preprocessor_config.json:10:20: padding_value: WhisperFeatureExtractor is computed with "
       "0.0 "
       "alone"},
      {{"\"right\"", "\"left\""}, "preprocessor_config.json:9:19: padding_side: "},
      {{"\"n_fft\": 400", "\"n_fft\": 400, \"n_fft\": 400"},
       "preprocessor_config.json:6:17: 'n_fft'"},
      {{"\"n_fft\": 400", "\"n_fft\": 400, \"do_normalize\": true"},
       "preprocessor_config.json:6:17: do_normalize: is an argument of the call"},
      {{"WhisperFeatureExtractor", "WhisperFeatureExtracter"},
       "preprocessor_config.json:3:29: WhisperFeatureExtracter is no class of transformers"},
      {{"WhisperFeatureExtractor", "MusicgenMelodyFeatureExtractor"},
       "preprocessor_config.json:3:29: MusicgenMelodyFeatureExtractor is not computed: no options "
       "give chroma"},
      {{"\"n_fft\": 400", "\"n_samples2\": {}"}, "preprocessor_config.json:6:3: n_samples2: "},
      {{"3000", "17"}, ""},
      {{"WhisperFeatureExtractor\",", "ClvpFeatureExtractor\", \"mel_norms\": [[1, 2]],"},
       "preprocessor_config.json:3:66: mel_norms: "},
  };
  for (const auto& [change, expected] : kCases) {
    CAPTURE(change.second);
    const std::string problems = changed(change.first, change.second);
    CAPTURE(problems);
    CHECK((*expected == '\0' ? problems.empty() : problems.starts_with(expected)));
  }
}

TEST_CASE("model files: what is written beside the file takes the place of its keys") {
  Files files;
  Value preset = Value::map({});
  preset.set("file", Value::scalar(files.write("preprocessor_config.json", kWhisper)));
  preset.set("do_normalize", Value::scalar("true"));
  preset.set("feature_size", Value::scalar("80"));
  const ModelFrontEnd of = read_model_file(preset);
  CHECK(nodes_of(of) ==
        "normalize_samples() mel(preset=\"whisper\" sample_rate=16000 n_fft=400 hop=160 n_mels=80 "
        ") ");
  CHECK(of.window_at == 0);
  preset.set("feature_sise", Value::scalar("80"));
  CHECK(problems_of(preset, files.path()).find("Did you mean 'feature_size'?") !=
        std::string::npos);
  preset.set("ignore", Value::list({Value::scalar("feature_sise")}));
  CHECK(problems_of(preset, files.path()) == "");
}

TEST_CASE("model files: global_cmvn of WeNet is read where the user asks for it, and checked") {
  Files files;
  const std::string path = files.write(
      "train.yaml",
      "dataset_conf:\n  fbank_conf: {num_mel_bins: 2}\ncmvn: global_cmvn\ncmvn_conf:\n  cmvn_file: "
      "data/train/global_cmvn\n");
  Value preset = Value::map({{"file", Value::scalar(path), {}}});
  REQUIRE(problems_of(preset, files.path()) == "");
  CHECK(read_model_file(preset).said.front().starts_with(
      "the file's global_cmvn is a layer of the model, so it is not applied"));
  preset.set("cmvn", Value::scalar("global"));
  const auto with = [&](const std::string& cmvn) {
    files.write("global_cmvn", cmvn);
    return problems_of(preset, files.path());
  };
  CHECK(problems_of(preset, files.path()).find("cmvn: there is no data/train/global_cmvn") !=
        std::string::npos);
  CHECK(with(R"({"mean_stat": [8, 16], "var_stat": [20, 68], "frame_num": 4})") == "");
  const std::string nodes = nodes_of(read_model_file(preset));
  CAPTURE(nodes);
  CHECK(nodes.find("normalize=\"fixed\" norm_mean=[2, 4] norm_std=[1, 1] ") != std::string::npos);
  CHECK(with("  [\n 8 16 4\n 20 68 0 ]\n") == "");
  CHECK(nodes_of(read_model_file(preset)) == nodes);
  CHECK(with("[ 8 16 4 20 68 nan ]").find("this is no global_cmvn") != std::string::npos);
  CHECK(with("\x80\x02 pickle").find("this is no global_cmvn") != std::string::npos);
  CHECK(with("[ 8 16 0 20 68 0 ]").find("needs a count above 0") != std::string::npos);
  CHECK(with(R"({"mean_stat": [8], "var_stat": [20], "frame_num": 4})").find("cmvn: this with") !=
        std::string::npos);
  CHECK(with(R"({"mean_stat": ["a"], "var_stat": [20], "frame_num": 4})")
            .find("needs a count above 0") != std::string::npos);
}

TEST_CASE("model files: InputNormalization of SpeechBrain of one sentence is that of mel") {
  Files files;
  const auto of = [&](const std::string& fbank, const std::string& normalization) {
    const std::string text = "f: !new:speechbrain.lobes.features.Fbank\n  n_mels: 40\n" + fbank +
                             "n: !new:speechbrain.processing.features.InputNormalization\n" +
                             normalization;
    return read_model_file(Value::scalar(files.write("hyperparams.yaml", text)));
  };
  const ModelFrontEnd means = of("", "  norm_type: sentence\n  std_norm: False\n");
  CHECK(nodes_of(means).ends_with("normalize=\"per_feature\" norm_variance=false ) "));
  CHECK(means.said.empty());
  CHECK(
      nodes_of(of("", "  norm_type: sentence\n"))
          .ends_with("normalize=\"per_feature\" norm_variance=true norm_ddof=0 norm_eps=1e-10 ) "));
  for (const ModelFrontEnd& other :
       {of("", "  norm_type: global\n"), of("  deltas: True\n", "  norm_type: sentence\n"),
        of("",
           "  std_norm: False\nm: !new:speechbrain.processing.features.InputNormalization\n  "
           "norm_type: sentence\n")}) {
    CHECK(nodes_of(other).find("normalize") == std::string::npos);
    REQUIRE(other.said.size() == 1);
    CHECK(other.said.front().find("is not applied: norm_type sentence alone is") !=
          std::string::npos);
  }
  CHECK_THROWS_WITH(
      of("", "  norm_type: sentence\n  mean_norm: False\n"),
      doctest::Contains("normalization.mean_norm: Fbank is computed with true alone"));
  CHECK_THROWS_WITH(of("", "  norm_type: sentence\n  avg_faktor: 1\n"),
                    doctest::Contains("normalization.avg_faktor: Fbank is not known"));
}

TEST_CASE("model files: hostile texts are refused, and nothing of them is executed") {
  Files files;
  const auto said = [&](const std::string& name, const std::string& text) {
    return problems_of(Value::scalar(files.write(name, text)), files.path());
  };
  CHECK(said("preprocessor_config.json",
             "{\"a\": " + std::string(100, '[') + std::string(100, ']') + "}")
            .find("may be nested 64 deep") != std::string::npos);
  CHECK(
      said("preprocessor_config.json", std::string((8 << 20) + 1, ' ')).find("longer than 8 MiB") !=
      std::string::npos);
  CHECK(said("preprocessor_config.json", "\x80\x04\x95 pickle").find("not part of UTF-8") !=
        std::string::npos);
  CHECK(said("hyperparams.yaml",
             "a: !ref <b>\nb: !ref <a>\nf: !new:speechbrain.lobes.features.Fbank\n  n_mels: !ref "
             "<a>\n")
            .find("n_mels: !ref <a>: a refers to itself") != std::string::npos);
  CHECK(said("hyperparams.yaml",
             "f: !new:speechbrain.lobes.features.Fbank\n  n_mels: !apply:os.system [ls]\n")
            .find("the tag !apply:os.system") != std::string::npos);
  CHECK(said("hyperparams.yaml",
             "f: !new:speechbrain.lobes.features.Fbank\n  n_mels: !ref <n>.__class__\nn: 3\n") !=
        "");
  CHECK(said("model_config.yaml",
             "a: ${b}\nb: ${a}\npreprocessor:\n  _target_: "
             "nemo.collections.asr.modules.AudioToMelSpectrogramPreprocessor\n  features: ${a}\n")
            .find("features: ${a} refers to no value") != std::string::npos);
  CHECK(said("model.nemo", "\x80\x02pickle").find("archive") != std::string::npos);
  for (const char* call :
       {"MelSpectrogram(__import__('os').system('ls'))", "MelSpectrogram(16000, n_fft=2**9)",
        "eval('1')", "MelSpectrogram(16000", "MelSpectrogram(16000, sample_rate=8000)"}) {
    CAPTURE(call);
    CHECK(problems_of(Value::scalar(call), "") != "");
  }
  // Aliases that double with every line.
  std::string bomb = "a0: &a0 [1]\n";
  for (int i = 1; i < 40; ++i)
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [*a" + std::to_string(i - 1) +
            ", *a" + std::to_string(i - 1) + "]\n";
  CHECK(said("config.yaml", bomb).find("keys and values, the maximum") != std::string::npos);
}

TEST_CASE(
    "model files: a pipeline has the nodes in the place of the preset, a stored one reads none") {
  Files files;
  const std::string path = files.write("preprocessor_config.json", kWhisper);
  const auto load = [&](const std::string& preset, Trust trust) {
    LoadOptions options;
    options.trust = trust;
    return load_plan_text(
        "version: 1\ngraph:\n  files: {stage: file_list, root: /}\n  resample: {stage: resample, "
        "from: files, rate: 16000}\n  mel: {stage: mel, from: resample, preset: " +
            preset + "}\n  rows: {stage: batches, from: mel}\n",
        "p.yaml", options);
  };
  const Plan plan = load(path, {});
  const Value& graph = *plan.settings.config.find("graph");
  CHECK(graph.find("mel_fit_samples")->find("length")->text() == "30s");
  CHECK(graph.find("mel")->find("n_mels")->text() == "128");
  CHECK(graph.find("mel")->find("preset")->text() == "whisper");
  CHECK(graph.find("mel")
            ->find("preset_of")
            ->text()
            .starts_with("WhisperFeatureExtractor of transformers 5.24.0, xxh3 "));
  CHECK(to_json(plan.settings.config).find(files.path()) == std::string::npos);
  for (const std::string& preset : {path, "{file: " + path + "}"}) {
    CHECK_THROWS_WITH(load(preset, Trust::in_stored(false)),
                      doctest::Contains("this configuration would read the model's file"));
    CHECK_NOTHROW(load(preset, Trust::in_stored(true)));
  }
  CHECK_NOTHROW(load("whisper", Trust::in_stored(false)));
}

}  // namespace melflow::model_files_test
