#include "stages/manifest.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

#include "tests/support/printing.h"

namespace melflow::manifest_test {
namespace {

void add(Manifest& m, std::string_view path) {
  const std::size_t name = path.rfind('/') + 1;  // 0 without a slash
  m.add(m.add_folder(path.substr(0, name)), path.substr(name));
}

}  // namespace

TEST_CASE(
    "manifest: paths come back as they went in, and below the root as the system opens them") {
  const std::vector<std::string> paths{"a.wav",   "x/a.wav",      "x/b.wav", "x/y/c.wav",
                                       "x/d.wav", "/abs/e/f.wav", "g/",      "x/a.wav"};
  struct Row {
    const char* root;
    const char* before;
  };
  for (const Row& row : {Row{"", ""}, Row{"data", "data/"}, Row{"data/", "data/"}, Row{"/", "/"}}) {
    CAPTURE(row.root);
    Manifest m(row.root);
    for (const std::string& p : paths) add(m, p);
    m.close();
    REQUIRE(m.size() == paths.size());
    CHECK(m.root() == row.root);
    for (std::size_t i = 0; i < paths.size(); ++i) {
      CHECK(m.relative(i) == paths[i]);
      CHECK(m.path(i) == (paths[i].front() == '/' ? paths[i] : row.before + paths[i]));
      CHECK(m.label(i) == -1);
      CHECK(m.split(i) == -1);
    }
  }
}

TEST_CASE(
    "manifest: labels are numbered in the order of their names, splits in that of appearance") {
  Manifest m;
  const std::vector<std::string> labels{"de", "a", "", "\xC3\xA9", "a", "B", "de"};
  const std::vector<std::string> splits{"train", "test", "", "train", "dev", "", "test"};
  for (std::size_t i = 0; i < labels.size(); ++i) {
    add(m, "x.wav");
    if (!labels[i].empty()) m.set_label(i, labels[i]);
    if (!splits[i].empty()) CHECK(m.set_split(i, splits[i]));
  }
  m.close();
  CHECK(m.label_names() == std::vector<std::string>{"B", "a", "de", "\xC3\xA9"});
  CHECK(m.split_names() == std::vector<std::string>{"train", "test", "dev"});
  for (std::size_t i = 0; i < labels.size(); ++i) {
    CAPTURE(i);
    CHECK((m.label(i) < 0 ? "" : m.label_names().at(static_cast<std::size_t>(m.label(i)))) ==
          labels[i]);
    CHECK((m.split(i) < 0 ? "" : m.split_names().at(static_cast<std::size_t>(m.split(i)))) ==
          splits[i]);
  }
}

TEST_CASE("manifest: 128 splits fit, one more is refused") {
  Manifest m;
  for (int i = 0; i < 128; ++i) {
    add(m, "x.wav");
    CHECK(m.set_split(m.size() - 1, std::to_string(i)));
    CHECK(m.split(static_cast<std::size_t>(i)) == i);
  }
  add(m, "x.wav");
  CHECK_FALSE(m.set_split(m.size() - 1, "one more"));
  CHECK(m.split(128) == -1);
  CHECK(m.set_split(m.size() - 1, "127"));
}

TEST_CASE("manifest: an index takes at most 128 bytes a file, whatever the order") {
  struct Row {
    const char* what;
    std::string (*path)(int i);
  };
  const Row rows[] = {
      {"one folder", [](int i) { return "clip_" + std::to_string(1'000'000 + i) + ".wav"; }},
      {"LibriSpeech",
       [](int i) {
         const std::string speaker = std::to_string(i / 100),
                           chapter = std::to_string(100'000 + i / 25);
         return "train-clean-360/" + speaker + "/" + chapter + "/" + speaker + "-" + chapter +
                "-00" + std::to_string(10 + i % 25) + ".flac";
       }},
      {"a folder for every file",
       [](int i) {
         const std::string n = std::to_string(1'000'000 + i);
         return "corpus/" + n + "/" + n + ".wav";
       }},
  };
  constexpr int kFiles = 100'000;
  for (const Row& row : rows) {
    for (const bool shuffled : {false, true}) {
      CAPTURE(std::string(row.what));
      CAPTURE(shuffled);
      std::vector<std::string> paths;
      for (int i = 0; i < kFiles; ++i) paths.push_back(row.path(i));
      if (shuffled) std::shuffle(paths.begin(), paths.end(), std::mt19937(1));
      Manifest m("/data");
      for (const std::string& p : paths) {
        add(m, p);
        m.set_label(m.size() - 1, "one of a few");
      }
      m.close();
      const double each = static_cast<double>(m.memory_bytes()) / kFiles;
      CAPTURE(each);
      CHECK(each <= 128.0);
      // The counted memory is roughly complete: the text alone cannot take less.
      CHECK(each >= 21.0);
      int wrong = 0;
      for (int i = 0; i < kFiles; ++i)
        if (m.relative(static_cast<std::size_t>(i)) != paths[static_cast<std::size_t>(i)]) ++wrong;
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("manifest: entries of several sources have the name of theirs before their paths") {
  Manifest m({{"one", "/data/a"}, {"two", "b"}});
  m.add(m.add_folder("x/", 0), "0.wav");
  m.add(m.add_folder("x/", 1), "0.wav");
  m.add(m.add_folder("/abs/", 1), "1.wav");
  m.close();
  CHECK(m.name(0) == "one/x/0.wav");
  CHECK(m.name(1) == "two/x/0.wav");
  CHECK(m.name(2) == "two//abs/1.wav");
  CHECK(m.name_in_source(1) == "x/0.wav");
  CHECK(m.relative(1) == "x/0.wav");
  CHECK(m.path(0) == "/data/a/x/0.wav");
  CHECK(m.path(1) == "b/x/0.wav");
  CHECK(m.path(2) == "/abs/1.wav");
  CHECK(m.source_of(2) == 1);
}

TEST_CASE("manifest: a recording of one source is not that of another with the same path") {
  Manifest m({{"one", "a"}, {"two", "b"}});
  m.set_span_unit(Manifest::SpanUnit::seconds);
  for (const std::size_t source : {0, 0, 1}) {
    m.add(m.add_folder("", source), "0.wav");
    m.set_span(m.size() - 1, {static_cast<double>(m.size()), 4});
  }
  m.close();
  CHECK(m.entries_of_recording(0) == 2);
  CHECK(m.recordings() == 2);
}

}  // namespace melflow::manifest_test
