#include "stages/corpus/manifest_file.h"

#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <limits>

#include "pipeline/base/problem.h"
#include "tests/support/temp_folder.h"

namespace melflow::manifest_file_test {

using test::TempFolder;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Manifest example(bool has_label_sets, bool has_sources = false) {
  Manifest m("root/\xFF");
  if (has_sources) m = Manifest({{"one", "root/\xFF"}, {"two", ""}});
  m.set_target_names({"level", "other"});
  m.set_text_names({"speaker"});
  m.set_span_unit(Manifest::SpanUnit::samples);
  const char* paths[] = {"a.wav", "x/y/b.wav", "/abs/c.wav", "d\xE9.wav", "shut/"};
  for (std::size_t i = 0; i < std::size(paths); ++i) {
    const std::string path = paths[i];
    const std::size_t name = path == "shut/" ? 0 : path.rfind('/') + 1;
    m.add(m.add_folder(path.substr(0, name), i % 2), path.substr(name));
    if (has_label_sets && i == 1) m.set_labels(i, std::vector<std::string_view>{"z", "a\xFF"});
    if (i == 2) m.set_label(i, "m\n\"");
    m.set_target(i, 0, i == 0 ? 0.1F : static_cast<float>(-kInfinity));
    m.set_text(i, 0, i == 3 ? "sp\xC3\xA9 ${X}" : "");
    m.set_span(i, {0.1 * static_cast<double>(i), i == 1 ? kInfinity : 1e6 / 3});
    (void)m.set_split(i, i < 3 ? "train" : "test");
  }
  m.set_problem(4, "cannot be listed");
  m.order_by_split({"train"});
  m.close();
  return m;
}

bool same(float a, float b) { return a == b || (std::isnan(a) && std::isnan(b)); }

}  // namespace

TEST_CASE("manifest file: what is read is what was written, of any range") {
  const TempFolder folder;
  const std::string path = folder / "m.jsonl";
  for (const auto& row : {std::pair(false, false), {true, false}, {true, true}}) {
    const bool has_label_sets = row.first, has_sources = row.second;
    const Manifest m = example(has_label_sets, has_sources);
    const std::vector<FileStamp> stamps{{1, 2}, {3, 4}, {-1, -1}, {5, 1700000000123456789}, {0, 0}};
    std::vector<ManifestRange> ranges(3);
    ranges[0].end = ranges[1].first = 2;
    ranges[1].end = ranges[2].first = 3;
    ranges[2].end = 5;
    write_manifest(path, m, stamps, ranges);
    const auto check = [&](std::span<const ManifestRange> of) {
      const FrozenCorpus read = read_manifest(path, of);
      CHECK(read.manifest.root() == m.root());
      CHECK((read.manifest.sources() == m.sources()));
      CHECK((read.manifest.label_names() == m.label_names()));
      CHECK((read.manifest.split_names() == m.split_names()));
      CHECK((read.manifest.target_names() == m.target_names()));
      CHECK((read.manifest.text_names() == m.text_names()));
      CHECK(read.manifest.has_label_sets() == has_label_sets);
      REQUIRE(read.manifest.size() == of.back().end - of.front().first);
      for (std::size_t k = 0; k < read.manifest.size(); ++k) {
        const std::size_t i = of.front().first + k;
        CAPTURE(i);
        CHECK(read.manifest.name(k) == m.name(i));
        CHECK(read.manifest.path(k) == m.path(i));
        CHECK((read.stamps[k] == stamps[i]));
        CHECK(read.manifest.label(k) == m.label(i));
        CHECK(std::vector(read.manifest.labels(k).begin(), read.manifest.labels(k).end()) ==
              std::vector(m.labels(i).begin(), m.labels(i).end()));
        CHECK(read.manifest.split(k) == m.split(i));
        CHECK(read.manifest.problem(k) == m.problem(i));
        CHECK((read.manifest.span(k) == m.span(i)));
        CHECK(read.manifest.text(k, 0) == m.text(i, 0));
        for (std::size_t t = 0; t < 2; ++t) CHECK(same(read.manifest.target(k, t), m.target(i, t)));
      }
    };
    check(ranges);
    for (const ManifestRange& range : ranges) check({&range, 1});
  }
}

TEST_CASE("manifest file: what is not what was written is refused") {
  const TempFolder folder;
  const std::string path = folder / "m.jsonl";
  const Manifest m = example(false);
  std::vector<ManifestRange> ranges(1);
  ranges[0].end = m.size();
  write_manifest(path, m, std::vector<FileStamp>(m.size()), ranges);
  std::ifstream in(path, std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(in), {}};
  for (const std::string& text :
       {std::string(), whole.substr(0, 20), whole.substr(0, whole.size() - 1),
        whole.substr(0, whole.size() - 3) + "1}\n", "[1]\n" + whole}) {
    std::ofstream(path, std::ios::binary) << text;
    CHECK_THROWS_WITH_AS(
        (void)read_manifest(path, ranges),
        (path + ": this file is not what `melflow plan` wrote; plan again").c_str(), RunError);
  }
}

TEST_CASE("manifest file: names that would lead out of the output are refused") {
  const TempFolder folder;
  const std::string path = folder / "m.jsonl";
  const Manifest m = example(false);
  std::vector<ManifestRange> ranges(1);
  ranges[0].end = m.size();
  write_manifest(path, m, std::vector<FileStamp>(m.size()), ranges);
  const std::string whole = test::read_bytes(path);
  for (const auto& [from, to] :
       {std::pair("\"train\"", "\"/tmp\""), {"\"speaker\"", "\"a/../b\""}}) {
    CAPTURE(std::string(to));
    std::string text = whole;
    text.replace(text.find(from), std::string_view(from).size(), to);
    // The ranges are where they were.
    text.insert(text.find('\n'), std::string(whole.size() - text.size(), ' '));
    test::write_bytes(path, text);
    CHECK_THROWS_WITH_AS((void)read_manifest(path, ranges),
                         doctest::Contains("cannot be the name of a"), RunError);
  }
}

}  // namespace melflow::manifest_file_test
