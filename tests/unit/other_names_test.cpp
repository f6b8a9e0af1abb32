// The names of options in other libraries lead to existing options.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include <fmt/format.h>

#include "config/overrides.h"
#include "config/top_level.h"
#include "pipeline/stage/registry.h"
#include "stages/other_names.h"
#include "tests/support/source_path.h"
#include "tests/support/temp_folder.h"

namespace melflow::test::other_names_test {
namespace {

int check_names(const Schema& schema, const std::vector<std::string>& more = {}) {
  std::vector<std::string> options = schema.names();
  options.insert(options.end(), more.begin(), more.end());
  const auto is_option = [&](std::string_view name) {
    if (const std::size_t dot = name.find('.'); dot != name.npos) {  // an option of another stage
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

TEST_CASE("other names: what hand-written loaders call their settings is answered in any place") {
  TopLevelOptions top;
  NodeOptions node;
  Schema of_top, of_nodes;
  top.describe(of_top);
  node.describe(of_nodes);
  const auto has = [](const Schema& schema, std::string_view option) {
    const std::vector<std::string> names = schema.names();
    return std::find(names.begin(), names.end(), option) != names.end();
  };
  for (const OtherName& other : other_names::of_loaders()) {
    CAPTURE(std::string(other.name));
    const std::string_view here = other.here;
    const std::string_view first = here.substr(0, here.find('.')),
                           option = here.substr(here.find('.') + 1);
    const StageInfo* stage = Registry::global().find(std::string(first));
    CHECK((here.empty() || has(of_top, first) ||
           (stage != nullptr &&
            (has(of_nodes, option) || has(stage->configure()->schema(), option)))));
    CHECK((!here.empty() || other.how.starts_with("remove it: ")));
    const std::string begin =
        here.empty() ? "; remove it: " : fmt::format("; use '{}' instead: ", here);
    for (const std::string& of : {std::string("file_list"), std::string("mel")}) {
      const auto config = Registry::global().find(of)->configure();
      CHECK(advice_on(other.name, {&config->schema(), &of_nodes}, Value::scalar("4"))
                .starts_with(begin));
    }
    CHECK(advice_on(other.name, {&of_top}, Value::scalar("4")).starts_with(begin));
  }
  CHECK(advice_on("disk_files_per_task", {&of_top}, Value::scalar("2048")) ==
        "; use 'file_list.files_per_task' instead: files_per_task: 2048 in the file_list node");
  CHECK(advice_on("SAMPLE_LENGTH_SEC", {&of_top}, Value::scalar("10")) ==
        "; use 'decode.fit' instead: fit: 10s in the decode node");
}

TEST_CASE("other names: --set answers names of other programs, too") {
  const auto problem = [](const Assignment& set) {
    Value root = Value::map({{kGraphKey, Value::map({}), {}}});
    Problems problems;
    apply_overrides(root, {set}, problems);
    return problems.str();
  };
  CHECK(problem({"FILES_PER_TASK", "768"}) ==
        "--set: FILES_PER_TASK: there is no node 'FILES_PER_TASK' and no such key at the top "
        "level; use 'file_list.files_per_task' instead: files_per_task: 768 in the file_list node");
  CHECK(problem({"n_jobs", "4"}) ==
        "--set: n_jobs: there is no node 'n_jobs' and no such key at the top level; use 'workers' "
        "instead (n_jobs is the name in scikit-learn)");
}

TEST_CASE("other names: docs/dataset-builder.md has a table of what loaders call their settings") {
  const std::string text = read_bytes(source_path("docs/dataset-builder.md"));
  std::map<std::string, std::string> here;  // by the other name: the second cell of its line
  for (std::size_t at = text.find("\n|---|---|---|\n", text.find("| there |")) + 15;
       text[at] == '|'; at = text.find('\n', at) + 1) {
    const std::size_t second = text.find('|', at + 1), third = text.find('|', second + 1);
    const std::string names = text.substr(at, second - at);
    for (std::size_t from = names.find('`'); from != names.npos;) {
      const std::size_t to = names.find('`', from + 1);
      here[names.substr(from + 1, to - from - 1)] = text.substr(second, third - second);
      from = names.find('`', to + 1);
    }
  }
  // The stages, by the names of their nodes there.
  const std::map<std::string_view, std::string> nodes{{"file_list", "files"},
                                                      {"disk_read", "read"}};
  const auto named = [&](std::string_view option) {
    const std::size_t dot = option.find('.');
    const auto node = nodes.find(option.substr(0, dot));
    return node == nodes.end() ? std::string(option)
                               : node->second + std::string(option.substr(dot));
  };
  for (const OtherName& other : other_names::of_loaders()) {
    CAPTURE(std::string(other.name));
    REQUIRE(here.contains(std::string(other.name)));
    const std::string& cell = here.at(std::string(other.name));
    CAPTURE(cell);
    CHECK(other.here.empty() == (cell.find_first_not_of("| ") == cell.npos));
    CHECK(cell.find(other.here.empty() ? "" : "`" + named(other.here) + "`") != cell.npos);
  }
  TopLevelOptions top;
  Schema of_top;
  top.describe(of_top);
  for (const auto& [name, cell] : here) {
    CAPTURE(name);
    CHECK(advice_on(name, {&of_top}, Value::scalar("4")).starts_with("; "));
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

}  // namespace melflow::test::other_names_test
