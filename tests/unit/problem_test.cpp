#include "pipeline/base/problem.h"

#include <doctest/doctest.h>

#include "pipeline/base/near_names.h"
#include "pipeline/base/sentences.h"

namespace melflow::problem_test {
namespace {
Mark mark(int line, int column, const char* file = "p.yaml") {
  return {std::make_shared<const std::string>(file), line, column};
}
}  // namespace

TEST_CASE("problem: the text is file:line:column: message, or the message alone") {
  CHECK(Problem{mark(12, 5), "bad"}.str() == "p.yaml:12:5: bad");
  CHECK(Problem{{}, "bad"}.str() == "bad");
}

TEST_CASE("problem: all of them stand in one error, sorted by place, equal places as found") {
  Problems p;
  CHECK(p.empty());
  p.add(mark(9, 2), "d");
  p.add(mark(3, 7), "b");
  p.add(mark(3, 7), "c");
  p.add(mark(3, 1), "a");
  CHECK(p.size() == 4);
  const ConfigError error(p);
  CHECK(std::string(error.what()) == "p.yaml:3:1: a\np.yaml:3:7: b\np.yaml:3:7: c\np.yaml:9:2: d");
  CHECK(error.problems().size() == 4);
  CHECK(std::string(ConfigError("alone", mark(1, 1)).what()) == "p.yaml:1:1: alone");
}

TEST_CASE("problem: those of one file stand together") {
  Problems p;
  p.add(mark(1, 1, "b.yaml"), "c");
  p.add(mark(2, 1, "a.yaml"), "b");
  p.add(mark(3, 1, "b.yaml"), "d");
  p.add(mark(1, 1, "a.yaml"), "a");
  p.add({}, "of no file");
  CHECK(p.str() == "of no file\na.yaml:1:1: a\na.yaml:2:1: b\nb.yaml:1:1: c\nb.yaml:3:1: d");
}

TEST_CASE("problem: what follows a question is a new sentence") {
  for (const auto& row : {std::pair("no verb 'rnu'. Did you mean 'run'?; the verbs are run",
                                    "no verb 'rnu'. Did you mean 'run'? The verbs are run"),
                          {"Did you mean 16kHz?; allowed: 1; did you mean 2?; a; b",
                           "Did you mean 16kHz? Allowed: 1; did you mean 2? A; b"},
                          {"what?", "what?"},
                          {"what?; ", "what?; "},
                          {"a; b", "a; b"},
                          {"", ""}}) {
    CAPTURE(row.first);
    CHECK(in_sentences(row.first) == row.second);
    Problems problems;
    problems.add({}, row.first);
    CHECK(problems.str() == row.second);
  }
}

TEST_CASE("problem: the nearest name is found for typing slips, and none for other words") {
  const std::vector<std::string> names{"n_mels", "n_fft", "hop", "win_length", "window"};
  struct Row {
    const char* word;
    const char* nearest;
  };
  for (const Row& row : {Row{"n_mel", "n_mels"},
                         {"nmels", "n_mels"},
                         {"n_mesl", "n_mels"},
                         {"N_MELS", "n_mels"},
                         {"n_ftt", "n_fft"},
                         {"hpo", "hop"},
                         {"hops", "hop"},
                         {"windwo", "window"},
                         {"win_lenght", "win_length"},
                         {"colour", ""},
                         {"x", ""},
                         {"", ""}}) {
    CAPTURE(std::string(row.word));
    const std::string nearest = row.nearest;
    CHECK(did_you_mean(row.word, names) ==
          (nearest.empty() ? "" : ". Did you mean '" + nearest + "'?"));
  }
  CHECK(did_you_mean("anything", {}).empty());
  // Among equally close names, prefers one with the same letters, then one that the word begins.
  CHECK(did_you_mean("form", {"norm", "from"}) == ". Did you mean 'from'?");
  CHECK(did_you_mean("parent", {"none", "parent_dir"}) == ". Did you mean 'parent_dir'?");
  CHECK(did_you_mean("win", {"win_length", "window_size"}).empty());
}

TEST_CASE("problem: of many names the nearest are listed, and what shows all") {
  CHECK(names_text("x", {"a", "b"}, "`melflow stages`") == "a, b");
  std::vector<std::string> names;
  for (int i = 0; i < 18; ++i) names.push_back("none" + std::to_string(i));
  for (const char* name : {"whisper", "whisper_large_v3", "vesper"}) names.emplace_back(name);
  CHECK(names_text("wisper", names) == "whisper, vesper, none0 and 18 more");
  CHECK(names_text("wisper", names, "`melflow stages`") ==
        "whisper, vesper, none0 and 18 more (`melflow stages` shows all)");
  CHECK(names_text("whis", names) == "whisper, whisper_large_v3, none0 and 18 more");
  for (const std::string& word : {std::string(), std::string(200, 'x')})
    CHECK(names_text(word, names) == "none0, none1, none2 and 18 more");
  CHECK(not_one_of("wisper", names) ==
        "is not one of whisper, vesper, none0 and 18 more. Did you mean 'whisper'?");
  CHECK(not_one_of("dB", {"ln", "db"}) == "is not one of ln, db. Did you mean 'db'?");
}

}  // namespace melflow::problem_test
