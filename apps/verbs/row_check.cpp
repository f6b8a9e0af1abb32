#include "apps/verbs/row_check.h"

#include <algorithm>
#include <atomic>
#include <cstdint>

#include <fmt/format.h>

#include "pipeline/base/cpu.h"
#include "pipeline/base/problem.h"
#include "pipeline/base/threads.h"
#include "stages/output/rows/row_hash.h"

namespace melflow {
namespace {

constexpr std::uint64_t kBytesAtOnce = 4 << 20;

enum class State : char { no_rows, right, wrong, unknown };

State state_of(const FeatureFile& file, const FeatureFile::Entry& entry, NumberType type) {
  if (entry.count == 0) return State::no_rows;
  if (entry.rows_hash == 0) return State::unknown;
  const std::uint64_t row_bytes = file.frames_per_row() * file.bands() * sizeof(float);
  const auto at_once =
      static_cast<std::int64_t>(std::max<std::uint64_t>(1, kBytesAtOnce / row_bytes));
  RowHash hash;
  for (std::int64_t row = 0; row < entry.count; row += at_once) {
    const std::vector<float> values =
        file.read_rows(static_cast<std::uint64_t>(entry.offset + row),
                       static_cast<std::uint64_t>(std::min(at_once, entry.count - row)));
    hash.add(values.data(), values.size(), NumberType::float32, type);
  }
  return hash.value() == entry.rows_hash ? State::right : State::wrong;
}

State checked(const FeatureFile& file, const FeatureFile::Entry& entry, NumberType type) {
  try {
    return state_of(file, entry, type);
  } catch (const RunError&) {  // a chunk that is damaged cannot be unpacked
    return State::wrong;
  }
}

}  // namespace

bool are_rows_right(const FeatureFile& file, const FeatureFile::Entry& entry) {
  return entry.rows_hash == 0 || checked(file, entry, file.type()) != State::wrong;
}

CheckedRows check_rows(const FeatureFile& file) {
  const NumberType type = file.type();
  std::vector<State> states(file.files().size(), State::no_rows);
  std::atomic<std::size_t> next{0};
  on_threads(available_cpus(), [&] {
    for (std::size_t i = 0; (i = next.fetch_add(1)) < states.size();)
      states[i] = checked(file, file.files()[i], type);
  });
  CheckedRows out;
  for (std::size_t i = 0; i < states.size(); ++i) {
    if (states[i] == State::wrong) out.wrong.push_back(i);
    out.right += states[i] == State::right ? 1 : 0;
    out.unknown += states[i] == State::unknown ? 1 : 0;
  }
  return out;
}

}  // namespace melflow
