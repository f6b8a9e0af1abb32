// What other libraries call the options of stages leads to options that there are.
#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>

#include "config/top_level.h"
#include "pipeline/registry.h"

namespace other_names_test {

using namespace melflow;

namespace {

int check_names(const Schema& schema, const std::vector<std::string>& more = {}) {
  std::vector<std::string> options = schema.names();
  options.insert(options.end(), more.begin(), more.end());
  const auto is_option = [&](std::string_view name) {
    if (const std::size_t dot = name.find('.'); dot != name.npos) {  // of another stage
      const StageInfo* stage = Registry::global().find(std::string(name.substr(0, dot)));
      if (stage == nullptr) return false;
      const auto config = stage->configure();
      const std::vector<std::string> others = config->schema().names();
      return std::find(others.begin(), others.end(), name.substr(dot + 1)) != others.end();
    }
    return std::find(options.begin(), options.end(), name) != options.end();
  };
  std::set<std::string_view> seen;
  for (const OtherName& other : schema.other_names()) {
    CAPTURE(std::string(other.name));
    CHECK((is_option(other.here) || (other.here.empty() && !other.how.empty())));
    CHECK_FALSE(is_option(other.name));
    CHECK(seen.insert(other.name).second);
  }
  return static_cast<int>(seen.size());
}

}  // namespace

TEST_CASE("other names: each leads to an option of its stage, and none is one") {
  int stages = 0, names = 0;
  for (const StageInfo* stage : Registry::global().all()) {
    CAPTURE(stage->name);
    const auto config = stage->configure();
    const int found = check_names(config->schema());
    stages += found > 0 ? 1 : 0;
    names += found;
  }
  CHECK(stages >= 10);
  CHECK(names >= 100);
  NodeOptions node;
  Schema of_nodes;
  node.describe(of_nodes);
  CHECK(check_names(of_nodes) > 0);
  TopLevelOptions top;
  Schema of_top;
  top.describe(of_top);
  CHECK(check_names(of_top, {kGraphKey}) > 0);
}

TEST_CASE("other names: the message of an unknown option says what it is here, and whose it was") {
  struct Row {
    const char *stage, *key, *advice;
  };
  for (const Row& row :
       {Row{"mel", "sr", "; use 'sample_rate' instead (sr is the name in librosa)"},
        {"mel", "htk",
         "; use 'mel_scale' instead: htk for true, slaney for false (htk is the name in librosa)"},
        {"mel", "num_mel_bins", "; use 'n_mels' instead (num_mel_bins is the name in Kaldi)"},
        {"mel", "f_min", "; use 'fmin' instead (f_min is the name in torchaudio, SpeechBrain)"},
        {"mel", "win", "; use 'win_length' instead"},
        {"resample", "sr", "; use 'rate' instead"},
        {"file_list", "max_duration",
         "; use 'segment.max_length' instead: in the segment node: 20s (max_duration is the name "
         "in "
         "NeMo)"},
        {"batch", "batch_size", "; use 'files' instead (batch_size is the name in PyTorch)"},
        {"mel", "onesided",
         "; remove it: the spectrum of real samples has n_fft / 2 + 1 bins, always (onesided is "
         "the name in torchaudio)"},
        {"mel", "use_fft_mag",
         "; use 'power' instead: 1 for true, 2 for false (use_fft_mag is the name in Lhotse)"},
        {"mfcc", "n_mels",
         "; use 'mel.n_mels' instead: in the node mel before this one (n_mels is the name in "
         "librosa)"},
        {"mel", "n_mles", ". Did you mean 'n_mels'?"},
        {"mel", "quux", ""}}) {
    CAPTURE(row.key);
    const auto config = Registry::global().find(row.stage)->configure();
    CHECK(advice_on(row.key, {&config->schema()}, Value::scalar("20")) == row.advice);
  }
}

TEST_CASE("other names: a stage is found by the name that it has elsewhere, and in any case") {
  const Registry& registry = Registry::global();
  CHECK(registry.advice_on("melspectrogram") == "; use 'mel' instead");
  CHECK(registry.advice_on("MelSpectrogram") == "; use 'mel' instead");
  CHECK(registry.advice_on("hdf5") == "; use 'hdf5_write' instead");
  CHECK(registry.advice_on("MFCC") == ". Did you mean 'mfcc'?");
  CHECK(registry.advice_on("mle") == ". Did you mean 'mel'?");
  CHECK(registry.advice_on("quux") == "");
}

TEST_CASE("other names: values that others have are refused with the one that is meant") {
  const auto refusal = [](const char* stage, const char* option, const Value& value) {
    const auto config = Registry::global().find(stage)->configure();
    Value map = Value::map({});
    map.set(option, value);
    Problems problems;
    config->schema().read(map, "", problems);
    return problems.str();
  };
  const auto text = [](const char* value) { return Value::scalar(value); };
  CHECK(refusal("mel", "window", text("hanning")).ends_with("boxcar, values; write hann"));
  CHECK(
      refusal("mel", "n_fft", text("25ms")).ends_with("a time such as 25ms goes into win_length"));
  CHECK(refusal("mel", "fmax", text("8kHz"))
            .ends_with("; write Hz as a number without a unit, such as 8000"));
  CHECK(refusal("mel", "fmax", text("high")) == "fmax: 'high' is not a number");
  CHECK(refusal("hdf5_write", "compression", text("gzip"))
            .ends_with("; write deflate, which is what gzip does"));
  CHECK(refusal("file_list", "splits", Value::list({text("80"), text("20")}))
            .ends_with("{train: SHARE, val: SHARE, test: SHARE}"));
  CHECK(refusal("mel", "window", text("hamming")) == "");
}

}  // namespace other_names_test
