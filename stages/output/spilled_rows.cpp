#include "stages/output/spilled_rows.h"

#include <algorithm>
#include <memory>
#include <vector>

namespace melflow {
namespace {

constexpr std::int64_t kPieceValues = 1 << 16;

class SpilledRows final : public UtteranceRows {
 public:
  SpilledRows(RowPartFile& file, std::uint64_t begin, std::int64_t rows, int values)
      : UtteranceRows(rows, values), file_(file), begin_(begin) {}

  [[nodiscard]] std::int64_t piece() const override {
    return std::max<std::int64_t>(1, kPieceValues / values());
  }
  const float* get(std::int64_t first, std::int64_t count,
                   std::vector<float>& room) const override {
    room.resize(size(count));
    file_.spill().get(room.data(), room.size() * sizeof(float), at(first));
    return room.data();
  }
  float* place(std::int64_t, std::int64_t count, std::vector<float>& room) override {
    room.resize(size(count));
    return room.data();
  }
  void put(std::int64_t first, std::int64_t count, const float* from) override {
    file_.spill().put(from, size(count) * sizeof(float), at(first));
  }
  [[nodiscard]] std::uint64_t begin() const { return begin_; }
  [[nodiscard]] std::uint64_t end() const { return at(rows()); }

 private:
  [[nodiscard]] std::size_t size(std::int64_t count) const {
    return static_cast<std::size_t>(count) * static_cast<std::size_t>(values());
  }
  [[nodiscard]] std::uint64_t at(std::int64_t row) const {
    return begin_ + size(row) * sizeof(float);
  }

  RowPartFile& file_;
  std::uint64_t begin_;
};

}  // namespace

void finish_spilled(RowPartFile& file, const UtteranceSteps& finish, std::int64_t rows, int columns,
                    const TakeRows& take) {
  auto utterance = std::make_unique<SpilledRows>(file, 0, rows, columns);
  for (const auto& step : finish.steps()) {
    const int wanted = step->values_out(utterance->values());
    const std::int64_t wanted_rows = step->rows_out(rows);
    if (wanted == utterance->values() && wanted_rows == rows) {
      step->run(*utterance, *utterance);
      continue;
    }
    // Writes behind the rows that are read, or before them where there is room again.
    const std::uint64_t bytes = static_cast<std::uint64_t>(wanted_rows) *
                                static_cast<std::uint64_t>(wanted) * sizeof(float);
    auto next = std::make_unique<SpilledRows>(
        file, bytes <= utterance->begin() ? 0 : utterance->end(), wanted_rows, wanted);
    step->run(*utterance, *next);
    utterance = std::move(next);
    rows = wanted_rows;
  }
  std::vector<float> room;
  for (std::int64_t row = 0; row < rows; row += utterance->piece()) {
    const std::int64_t n = std::min(utterance->piece(), rows - row);
    take(row, utterance->get(row, n, room), n);
  }
}

}  // namespace melflow
