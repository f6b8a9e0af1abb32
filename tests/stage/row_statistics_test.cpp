// Sums do not depend on how rows come: blocks, order of files, parts of a corpus.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <stdexcept>
#include <thread>

#include "stages/output/rows/row_statistics.h"
#include "tests/support/printing.h"

namespace melflow::row_statistics_test {
namespace {

struct Shape {
  int frames, columns;
  [[nodiscard]] std::size_t values() const {
    return static_cast<std::size_t>(frames) * static_cast<std::size_t>(columns);
  }
};

using File = std::vector<float>;  // [rows, frames, columns]

// Makes files of few rows and many; some columns have values of all sizes, column 0 a constant.
std::vector<File> corpus(const Shape& shape, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> level(-40, 20);
  std::vector<File> files;
  for (const std::size_t rows : {1U, 7U, 128U, 129U, 300U, 1000U, 80U, 255U, 2500U, 64U, 3U}) {
    File& file = files.emplace_back(rows * shape.values());
    for (std::size_t i = 0; i < file.size(); ++i) {
      const std::size_t column = i % static_cast<std::size_t>(shape.columns);
      const float value = level(random);
      file[i] = column == 0   ? -13.815511F
                : column == 1 ? std::ldexp(value, static_cast<int>(random() % 200) - 100)
                              : value;
    }
  }
  return files;
}

struct Piece {
  std::size_t file;
  std::int64_t first, rows;
  bool is_last;
};

// Sums the files [from, to) in blocks of up to `longest` rows, in any order.
ColumnSums sums_of(const std::vector<File>& files, const Shape& shape, std::size_t from,
                   std::size_t to, std::int64_t longest, std::mt19937& random, int threads = 1) {
  std::vector<Piece> pieces;
  for (std::size_t f = from; f < to; ++f) {
    const auto rows = static_cast<std::int64_t>(files[f].size() / shape.values());
    for (std::int64_t row = 0; row < rows;) {
      const std::int64_t n =
          std::min(rows - row,
                   1 + static_cast<std::int64_t>(random() % static_cast<unsigned long>(longest)));
      pieces.push_back({f, row, n, row + n == rows});
      row += n;
    }
  }
  std::shuffle(pieces.begin(), pieces.end(), random);
  RowStatistics statistics(shape.frames, shape.columns);
  std::vector<std::thread> workers;
  for (int w = 0; w < threads; ++w)
    workers.emplace_back([&, w] {
      for (auto i = static_cast<std::size_t>(w); i < pieces.size();
           i += static_cast<std::size_t>(threads)) {
        const Piece& p = pieces[i];
        statistics.take(p.file, p.first, p.rows,
                        files[p.file].data() + static_cast<std::size_t>(p.first) * shape.values(),
                        p.is_last);
      }
    });
  for (std::thread& worker : workers) worker.join();
  // A file that fails on the way leaves nothing.
  statistics.take(1000, 5, 1, files.back().data(), false);
  statistics.drop(1000);
  std::vector<std::size_t> order(to - from);
  std::iota(order.begin(), order.end(), from);
  std::shuffle(order.begin(), order.end(), random);
  for (const std::size_t f : order) statistics.close(f);
  return statistics.sums();
}

bool same(const ColumnStatistics& a, const ColumnStatistics& b) {
  return a.frames == b.frames && a.mean == b.mean && a.std == b.std;
}

}  // namespace

TEST_CASE(
    "statistics: the same bits for any blocks, order of arrival, threads and parts of a corpus") {
  for (const Shape& shape : {Shape{1, 20}, Shape{5, 9}, Shape{200, 3}}) {
    CAPTURE(shape.frames);
    const std::vector<File> files = corpus(shape, 1);
    std::mt19937 random(7);
    const ColumnStatistics whole =
        sums_of(files, shape, 0, files.size(), 1 << 20, random).statistics();
    CHECK(whole.std[0] == 0);
    CHECK(whole.std[1] > 0);
    for (const std::int64_t longest : {1, 50, 128, 700})
      CHECK(same(whole, sums_of(files, shape, 0, files.size(), longest, random, 3).statistics()));
    // Three ways to divide a corpus; the parts are added in any order.
    const std::vector<std::size_t> cuts[] = {{4}, {1, 2, 9}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}};
    for (const std::vector<std::size_t>& cut : cuts) {
      std::vector<ColumnSums> parts;
      for (std::size_t i = 0; i <= cut.size(); ++i)
        parts.push_back(sums_of(files, shape, i == 0 ? 0 : cut[i - 1],
                                i < cut.size() ? cut[i] : files.size(), 200, random));
      for (int order = 0; order < 3; ++order) {
        std::shuffle(parts.begin(), parts.end(), random);
        ColumnSums all(shape.columns);
        for (const ColumnSums& part : parts) all.add(part);
        CHECK(same(whole, all.statistics()));
      }
    }
  }
}

// The reference sums in long double, in two passes.
TEST_CASE("statistics: right to 14 digits, a small deviation from a large mean, too") {
  struct Row {
    float mean, deviation;
  };
  for (const Row& row : {Row{-40, 20}, Row{0, 1e-20F}, Row{1e6F, 1}, Row{-1e30F, 1e29F},
                         Row{16777216, 2}, Row{3e38F, 1e37F}, Row{0, 1e-42F}}) {
    CAPTURE(row.mean);
    CAPTURE(row.deviation);
    std::mt19937 random(3);
    std::uniform_real_distribution<float> noise(-1, 1);
    File values(10'000);
    for (float& v : values) v = row.mean + row.deviation * noise(random);
    ColumnSums sums(1);
    RunSums runs(1);
    runs.add(values.data(), static_cast<std::int64_t>(values.size()));
    sums.add(runs);
    const ColumnStatistics got = sums.statistics();
    long double mean = 0, squares = 0;
    for (const float v : values) mean += v;
    mean /= static_cast<long double>(values.size());
    for (const float v : values) squares += (v - mean) * (v - mean);
    const auto std =
        static_cast<double>(std::sqrt(squares / static_cast<long double>(values.size())));
    CHECK(got.mean[0] == doctest::Approx(static_cast<double>(mean)).epsilon(1e-14).scale(0));
    CHECK(got.std[0] == doctest::Approx(std).epsilon(1e-14).scale(0));
  }
}

TEST_CASE("exact sum: nothing is lost, whatever it is added to") {
  ExactSum sum;
  CHECK(sum.value() == 0);
  for (const double value : {1e60, 1.0, -1e60, 0x1p-298, -1.0}) sum.add(value);
  CHECK(sum.value() == 0x1p-298);
  sum.add(-0x1p-298, 3);
  CHECK(sum.value() == -0x1p-297);
  ExactSum many;
  for (int i = 0; i < 100'000; ++i) many.add(0x1.fffffffffffffp200, i % 2 == 0 ? 128 : -128);
  CHECK(many.value() == 0);
  many.add(-3.5, 2);
  many.add(sum);
  CHECK(many.value() == -7);
  for (const double value : {HUGE_VAL, -HUGE_VAL, std::nan(""), 1e100, 1e-110})
    CHECK_THROWS_AS(many.add(value), std::logic_error);
  CHECK(many.value() == -7);
}

TEST_CASE("row statistics: sums that were written and read again are the same, to the last digit") {
  const Shape shape{1, 4};
  RowStatistics whole(1, 4), parts(1, 4);
  const std::vector<File> files = corpus(shape, 3);
  for (std::size_t i = 0; i < files.size(); ++i) {
    const auto rows = static_cast<std::int64_t>(files[i].size() / shape.values());
    whole.take(i, 0, rows, files[i].data(), true);
    whole.close(i);
    RowStatistics part(1, 4);
    part.take(i, 0, rows, files[i].data(), true);
    part.close(i);
    const auto read = ColumnSums::of(part.sums().text(), 4);
    REQUIRE(read.has_value());
    parts.add(*read);
  }
  const ColumnSums::Text expected = whole.sums().text(), found = parts.sums().text();
  CHECK(found.frames == expected.frames);
  CHECK((found.sums == expected.sums));
  CHECK((found.squares == expected.squares));
  CHECK((parts.sums().statistics().std == whole.sums().statistics().std));
  CHECK(!ColumnSums::of(expected, 5));
}

TEST_CASE("exact sum: as text it is a whole number times a power of two") {
  const auto text_of = [](std::initializer_list<double> values) {
    ExactSum sum;
    for (const double v : values) sum.add(v);
    return sum.text();
  };
  CHECK(text_of({}) == "0e0");
  CHECK(text_of({1, -1}) == "0e0");
  CHECK(text_of({1}) == "1e6");  // 2^(64 * 6 - 384)
  CHECK(text_of({-31}) == "-1fe6");
  CHECK(text_of({std::ldexp(1.0, 64), 1}) == "10000000000000001e6");
  CHECK(text_of({std::ldexp(1.0, -64), -2}) == "-1ffffffffffffffffe5");
  ExactSum large;
  for (int i = 0; i < 100'000; ++i) large.add(std::ldexp(1.0, 254), 511);
  const auto again = ExactSum::of(large.text());
  REQUIRE(again.has_value());
  CHECK(again->value() == large.value());
  CHECK(again->text() == large.text());
  for (const char* text : {"", "1", "e6", "1e", "1ex", "xe6", "1e12", "-", "--1e6", "+1e6", "1 e6"})
    CHECK_MESSAGE(!ExactSum::of(text), text);
}

}  // namespace melflow::row_statistics_test
