// What other libraries call the options of stages leads to options that there are.
#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>

#include "config/top_level.h"
#include "pipeline/registry.h"

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
    CHECK(is_option(other.here));
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
       {Row{"mel", "sr", ", here it is 'sample_rate' (sr is the name in librosa)"},
        {"mel", "htk",
         ", here it is 'mel_scale': htk for true, slaney for false (htk is the name in librosa)"},
        {"mel", "num_mel_bins", ", here it is 'n_mels' (num_mel_bins is the name in Kaldi)"},
        {"mel", "f_min", ", here it is 'fmin' (f_min is the name in torchaudio, SpeechBrain)"},
        {"mel", "win", ", here it is 'win_length'"},
        {"resample", "sr", ", here it is 'rate'"},
        {"file_list", "max_duration",
         ", here it is 'segment.max_length': in samples, or with its unit: 20s (max_duration is "
         "the "
         "name in NeMo)"},
        {"batch", "batch_size", ", here it is 'files' (batch_size is the name in PyTorch)"},
        {"mel", "n_mles", ", did you mean 'n_mels'?"},
        {"mel", "quux", ""}}) {
    CAPTURE(row.key);
    const auto config = Registry::global().find(row.stage)->configure();
    CHECK(advice_on(row.key, {&config->schema()}) == row.advice);
  }
}
