// Groups recordings by what their list says of each: the speaker, the label, or another text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "stages/manifest.h"

namespace melflow {

/// The texts of a column of the list, one for each recording of the run; "" for none. `name`: a
/// column, or "label" or "split" if no column has that name. The texts live as long as the run's
/// source. `option`: the option that names the column, for the message. Throws RunError where there
/// is none.
std::vector<std::string_view> listed_texts(const RunContext& run, const std::string& name,
                                           const std::string& option);

/// The recordings of a run, grouped by such a text. Takes 4 bytes for each.
class RecordingGroups {
 public:
  explicit RecordingGroups(const std::vector<std::string_view>& texts);
  /// In the order of their bytes.
  [[nodiscard]] const std::vector<std::string_view>& names() const { return names_; }
  /// The number of the recording's group; -1 for one without a text.
  [[nodiscard]] std::int64_t of(std::size_t recording) const { return of_[recording]; }

 private:
  std::vector<std::string_view> names_;
  std::vector<std::int32_t> of_;
};

}  // namespace melflow
