// No group has files in two splits, whatever the corpus, the groups, the expression and the
// updates: random ones, with groups that the test itself knows.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <algorithm>

#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "tests/stage/listed_files.h"
#include "tests/support/printing.h"

namespace melflow::test::split_property_test {
namespace {

using SplitOf = std::map<std::string, std::string>;

struct Recording {
  std::string path, speaker, label;
};

// Returns the group of a recording according to a row's options; "" for none.
struct Grouping {
  std::string options;
  std::function<std::string(const Recording&)> group;
};

std::string folder_of(const std::string& path) {
  return path.find('/') == path.npos ? "" : path.substr(0, path.rfind('/'));
}

// Some paths contain the speaker's name and some do not; some have no folder.
class Corpus {
 public:
  explicit Corpus(std::mt19937& random) : random_(random), speakers_(pick(1, 12)) {}

  void grow(int count) {
    for (int i = 0; i < count; ++i) {
      const std::string who = fmt::format("s{}", pick(0, speakers_));
      const std::string label = fmt::format("l{}", pick(0, 3));
      std::string name = fmt::format("{}_{}.wav", who, next_++);
      if (pick(0, odd_) == 1) name = fmt::format("x{}.wav", next_++);
      const std::string folders[] = {"", label + "/", label + "/" + who + "/", who + "/"};
      const int deep = pick(0, 5);
      files_.push_back({folders[deep > 3 ? 2 : deep] + name, pick(0, odd_) == 1 ? "" : who, label});
    }
  }
  void shrink(int count) {
    for (; count > 0 && files_.size() > 1; --count)
      files_.erase(files_.begin() + pick(0, static_cast<int>(files_.size()) - 1));
  }
  void set_odd(int one_of) { odd_ = one_of; }
  int pick(int low, int high) { return std::uniform_int_distribution(low, high)(random_); }
  [[nodiscard]] const std::vector<Recording>& files() const { return files_; }
  [[nodiscard]] std::string manifest() const {
    std::string csv = "path,who,label\n";
    for (const Recording& f : files_) csv += f.path + "," + f.speaker + "," + f.label + "\n";
    return csv;
  }

 private:
  std::mt19937& random_;
  int speakers_, next_ = 0, odd_ = 20;
  std::vector<Recording> files_;
};

const Grouping kGroupings[] = {
    {"split_group: parent_dir", [](const Recording& f) { return folder_of(f.path); }},
    {"split_group: top_dir",
     [](const Recording& f) {
       return f.path.substr(0, std::min(f.path.find('/'), f.path.size()));
     }},
    {"split_group: who", [](const Recording& f) { return f.speaker; }},
    {"split_group: '(s[0-9]+)_'",
     [](const Recording& f) {
       const std::size_t name = f.path.rfind('/') == f.path.npos ? 0 : f.path.rfind('/') + 1;
       return f.path[name] == 's' ? f.path.substr(name, f.path.find('_', name) - name) : "";
     }},
    {"split_group: 'l([0-9])'",
     [](const Recording& f) { return f.path[0] == 'l' ? f.path.substr(1, 1) : ""; }},
};

// Returns "", or the error in the splits of these files.
std::string leak(const Corpus& corpus, const Grouping& how, bool one_group, const SplitOf& splits) {
  std::map<std::string, std::pair<std::string, std::string>> seen;  // group: file, split
  for (const Recording& f : corpus.files()) {
    std::string group = how.group(f);
    if (how.options == "split_group: top_dir" && f.path.find('/') == f.path.npos) group = "";
    if (group.empty() && !one_group) continue;
    const auto [it, is_first] = seen.try_emplace(group, f.path, splits.at(f.path));
    if (!is_first && it->second.second != splits.at(f.path))
      return fmt::format("group '{}': {} is in {}, {} in {}", group, it->second.first,
                         it->second.second, f.path, splits.at(f.path));
  }
  return "";
}

bool is_expected(const std::string& refusal) {
  constexpr const char* parts[] = {" empty: ", "are in no group",
                                   "in several splits of the earlier output",
                                   "of the earlier output, and split_ratios has"};
  return std::ranges::any_of(parts,
                             [&](const char* part) { return refusal.find(part) != refusal.npos; });
}

}  // namespace

TEST_CASE("no file of one group is in two splits, and updates move none: 3000 random lists") {
  const TempFolder folder;
  std::mt19937 random(20);
  int listed = 0, refused = 0, updated = 0;
  for (int round = 0; round < 1000; ++round) {
    Corpus corpus(random);
    const auto pick = [&](int low, int high) { return corpus.pick(low, high); };
    if (pick(0, 1) == 0) corpus.set_odd(1000000);
    corpus.grow(pick(10, 60));
    const Grouping* how = &kGroupings[pick(0, 4)];
    SplitOf earlier;
    for (int step = 0; step < 3; ++step) {
      if (pick(0, 9) == 0) how = &kGroupings[pick(0, 4)];
      const char* const kUnmatched[] = {"error", "own_group", "one_group", "no_split"};
      const std::string unmatched = kUnmatched[pick(0, 3)];
      const bool redraw = pick(0, 9) == 0;
      const std::string options = fmt::format(
          "{{manifest: '{}', splits: ratio, labels: {}, split_stratify: {}, split_seed: {}, "
          "split_ratios: {}, split_unmatched: {}, split_update: {}, {}}}",
          folder.write("list.csv", corpus.manifest()), pick(0, 2) == 0 ? "manifest" : "none",
          pick(0, 1) == 0, pick(0, 3),
          pick(0, 2) == 0 ? "{train: 0.5, test: 0.5}" : "{train: 0.6, val: 0.2, test: 0.2}",
          unmatched, redraw ? "redraw" : "keep", how->options);
      CAPTURE(options);
      CAPTURE(corpus.manifest());
      try {
        List list(options, earlier);
        const SplitOf splits = list.splits_by_path();
        ++listed;
        CHECK(leak(corpus, *how, unmatched == "one_group", splits) == "");
        if (unmatched != "no_split")
          for (const auto& [path, split] : splits) CHECK(split != "-");
        for (const auto& [path, split] : splits) {
          const auto before = earlier.find(path);
          if (redraw || before == earlier.end() || before->second == "-" || split == "-") continue;
          ++updated;
          CHECK(split == before->second);
        }
        earlier = splits;
      } catch (const RunError& e) {
        ++refused;
        CHECK_MESSAGE(is_expected(e.what()), std::string(e.what()));
      }
      corpus.shrink(pick(0, 5));
      corpus.grow(pick(0, 20));
    }
  }
  CHECK(listed > 1000);
  CHECK(refused > 100);
  CHECK(updated > 10000);
}

}  // namespace melflow::test::split_property_test
