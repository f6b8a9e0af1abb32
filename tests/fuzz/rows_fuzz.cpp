// Feeds blocks of files in any order, for libFuzzer (long/fuzz.sh): after each block RowOrder has
// emitted what the rule says, computed from all blocks so far: blocks of the oldest incomplete file
// and of all files before it, each after the rows of earlier files in its section; nothing of files
// that leave no rows; and at the end the rows have no gap.
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "stages/output/rows/row_order.h"
#include "tests/fuzz/fuzz_input.h"

namespace {

using namespace melflow;
using namespace melflow::fuzz;

constexpr std::size_t kMostFiles = 12, kMostBlocks = 4, kMostRows = 5;

struct Block {
  std::int64_t first = 0, count = 0;
  bool last = false;
};

enum class Fate { made, stays, taken_over, resumed };

struct File {
  Fate fate = Fate::made;
  std::size_t section = 0;
  std::int64_t row = 0, rows = 0;  // of rows that exist already
  std::vector<Block> blocks;       // still to come
  std::vector<Block> came;
  bool is_void = false;
};

using Given = std::map<std::pair<std::size_t, std::int64_t>, std::int64_t>;  // file, its row: row

class Model {
 public:
  std::vector<File> files;
  std::vector<std::int64_t> begins;  // of new rows in each section

  // Returns the rows that may be written by now; files that leave no rows do not count.
  [[nodiscard]] Given given(std::size_t& current, std::vector<std::int64_t>& totals) const {
    Given out;
    totals = begins;
    for (current = 0; current < files.size(); ++current) {
      const File& f = files[current];
      if (f.fate == Fate::stays || f.is_void) continue;
      if (f.fate != Fate::made) {
        totals[f.section] += f.rows;
        continue;
      }
      std::int64_t have = 0, all = -1;
      for (const Block& b : f.came) {
        out[{current, b.first}] = totals[f.section];
        have += b.count;
        if (b.last) all = b.first + b.count;
      }
      if (have != all) break;
      totals[f.section] += all;
    }
    return out;
  }
};

std::vector<Block> blocks(Input& in) {
  std::vector<Block> out;
  std::int64_t at = 0;
  for (std::size_t n = 1 + in.below(kMostBlocks); n > 0; --n) {
    // Only the last block may be empty.
    const auto count =
        static_cast<std::int64_t>(n == 1 ? in.below(kMostRows) : 1 + in.below(kMostRows));
    out.push_back({at, count, n == 1});
    at += count;
  }
  return out;
}

Model model(Input& in, std::vector<std::size_t>& sections) {
  Model out;
  out.files.resize(1 + in.below(kMostFiles));
  sections = {0};
  for (std::size_t i = 1; i < out.files.size(); ++i)
    if (in.below(4) == 0) sections.push_back(i);
  const bool is_update = in.flag();
  bool resumes = !is_update && in.flag();
  for (std::size_t i = 0, section = 0; i < out.files.size(); ++i) {
    if (section + 1 < sections.size() && i == sections[section + 1]) ++section;
    File& f = out.files[i];
    f.section = section;
    f.blocks = blocks(in);
    f.rows = static_cast<std::int64_t>(in.below(kMostRows));
    if (is_update) {
      f.fate = static_cast<Fate>(in.below(3));
    } else {
      resumes = resumes && in.below(3) != 0;
      if (resumes) f.fate = Fate::resumed;
    }
    if (f.fate != Fate::made) f.blocks.clear();
  }
  out.begins.assign(sections.size(), 0);
  for (File& f : out.files)  // kept rows precede all new ones
    if (f.fate == Fate::stays)
      f.row = std::exchange(out.begins[f.section], out.begins[f.section] + f.rows);
  return out;
}

class Run {
 public:
  Run(Model model, std::vector<std::size_t> sections)
      : model_(std::move(model)),
        order_(
            model_.files.size(), [this](std::size_t i) { return model_.files[i].is_void; },
            std::move(sections)) {
    for (std::size_t i = 0; i < model_.files.size(); ++i) {
      const File& f = model_.files[i];
      if (f.fate == Fate::stays) order_.stays(i, f.row, f.rows, {});
      if (f.fate == Fate::taken_over) order_.taken_over(i, f.rows, {});
    }
    for (std::size_t s = 0; s < model_.begins.size(); ++s) order_.begin_at(s, model_.begins[s]);
    for (const File& f : model_.files)
      if (f.fate == Fate::resumed) order_.resume(f.rows, {});
    std::vector<PlacedPart> ready;
    order_.advance(ready);  // kept rows at the beginning are noticed with the first block
    check(ready);
  }

  void take(std::size_t file, std::size_t block) {
    File& f = model_.files[file];
    if (f.is_void || f.blocks.empty()) return;
    block %= f.blocks.size();
    const Block b = f.blocks[block];
    f.blocks.erase(f.blocks.begin() + static_cast<std::ptrdiff_t>(block));
    f.came.push_back(b);
    auto part = std::make_shared<MelPart>();
    part->first_row = b.first;
    part->row_count = b.count;
    part->last = b.last;
    std::vector<PlacedPart> ready;
    order_.take(file, std::move(part), {}, ready);
    check(ready);
  }

  // A file that is complete cannot fail any more. `is_seen`: the failure is noticed before it is
  // reported.
  void lose(std::size_t file, bool is_seen) {
    File& f = model_.files[file];
    if (f.is_void || f.blocks.empty()) return;
    f.is_void = true;
    std::vector<PlacedPart> ready;
    if (is_seen) order_.advance(ready);
    order_.closed(file, ready);
    check(ready);
  }

  void end() {
    for (std::size_t i = 0; i < model_.files.size(); ++i)
      while (!model_.files[i].blocks.empty() && !model_.files[i].is_void) take(i, 0);
    std::vector<PlacedPart> ready;
    order_.advance(ready);
    check(ready);
    require(order_.current() == model_.files.size());
    require(order_.take_waiting().empty());
    const std::vector<std::int64_t> offsets = order_.offsets();
    std::vector<std::int64_t> next = model_.begins;
    for (std::size_t i = 0; i < model_.files.size(); ++i) {
      const File& f = model_.files[i];
      const std::int64_t rows = order_.rows(i);
      std::int64_t expected = f.rows;
      if (f.fate == Fate::made) {
        expected = 0;
        for (const Block& b : f.came) expected += f.is_void ? 0 : b.count;
      }
      require(rows == expected);
      if (f.fate == Fate::stays) {
        require(offsets[i] == f.row);
      } else if (rows > 0) {
        require(offsets[i] == next[f.section]);
        next[f.section] += rows;
      }
    }
  }

 private:
  void check(const std::vector<PlacedPart>& ready) {
    for (const PlacedPart& p : ready) {
      const File& f = model_.files[p.file];
      require(p.section == f.section && p.file >= last_);
      last_ = p.file;
      if (p.part == nullptr) {
        require(f.fate == Fate::taken_over && copied_.insert(p.file).second);
        continue;
      }
      require(given_.emplace(std::pair(p.file, p.part->first_row), p.file_row).second);
      const auto parts = static_cast<std::size_t>(
          std::distance(given_.lower_bound({p.file, 0}), given_.lower_bound({p.file + 1, 0})));
      const bool is_complete = f.blocks.empty() && parts == f.came.size();
      require(p.file_rows == (is_complete ? sum(f) : -1));
    }
    for (std::size_t i = 0; i < model_.files.size(); ++i) {
      if (!model_.files[i].is_void || lost_.contains(i)) continue;
      const auto begin = given_.lower_bound({i, 0}), end = given_.lower_bound({i + 1, 0});
      for (auto it = begin; it != end; ++it)
        if (count_of(model_.files[i], it->first.second) > 0)
          lost_.emplace(i, RowOrder::Row{model_.files[i].section, it->second});
      given_.erase(begin, end);
    }
    std::size_t current = 0;
    std::vector<std::int64_t> totals;
    require(given_ == model_.given(current, totals));
    require(order_.current() == current);
    for (std::size_t s = 0; s < totals.size(); ++s) require(order_.total(s) == totals[s]);
    for (const RowOrder::Row& r : order_.take_rolled_back()) rolled_back_.push_back(r);
    require(rolled_back_.size() == lost_.size());
    for (const auto& [file, row] : lost_)
      require(std::find(rolled_back_.begin(), rolled_back_.end(), row) != rolled_back_.end());
  }

  static std::int64_t count_of(const File& f, std::int64_t first) {
    std::int64_t out = 0;
    for (const Block& b : f.came)
      if (b.first == first) out = b.count;
    return out;
  }
  static std::int64_t sum(const File& f) {
    std::int64_t out = 0;
    for (const Block& b : f.came) out += b.count;
    return out;
  }

  Model model_;
  RowOrder order_;
  Given given_;
  std::set<std::size_t> copied_;
  std::map<std::size_t, RowOrder::Row> lost_;  // files whose rows were already placed
  std::vector<RowOrder::Row> rolled_back_;
  std::size_t last_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input in(data, size);
  std::vector<std::size_t> sections;
  Model files = model(in, sections);
  const std::size_t count = files.files.size();
  Run run(std::move(files), std::move(sections));
  while (!in.is_empty()) {
    const std::size_t what = in.take<std::uint8_t>(), file = in.take<std::uint8_t>() % count;
    if (what < 200)
      run.take(file, what);
    else
      run.lose(file, what % 2 == 0);
  }
  run.end();
  return 0;
}

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  return write_seeds([](const auto& seed) {
    std::string bytes;
    for (int i = 0; i < 300; ++i) bytes += static_cast<char>(i * 73 % 251);
    seed("some", bytes);
  });
}
