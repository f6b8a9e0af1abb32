// The rows of several readers, one after the other.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "apps/python/row_reader.h"

namespace melflow {

class JoinedRows final : public RowReader {
 public:
  /// `parts`: at least one, with one type and shape of rows; `rows`: how many each has.
  JoinedRows(std::vector<std::shared_ptr<const RowReader>> parts,
             const std::vector<std::int64_t>& rows);

  [[nodiscard]] std::unique_ptr<RowReader::Scratch> scratch() const override;
  [[nodiscard]] std::vector<std::size_t> fetch(std::span<const Range> ranges,
                                               RowReader::Scratch& scratch,
                                               bool is_urgent) const override;
  void drop(RowReader::Scratch& scratch) const override;
  void prefetch(std::span<const Range> ranges) const override;
  [[nodiscard]] std::string last_loss() const override;
  void read(const Range& rows, std::byte* to, RowReader::Scratch& scratch) const override;
  void confirm() const override;
  [[nodiscard]] bool is_ordered() const override;

 private:
  struct Scratches;
  // The ranges in one part, by the part's own numbers, and where they are in the list of all.
  struct Share {
    std::vector<Range> ranges;
    std::vector<std::size_t> places;
  };
  [[nodiscard]] std::size_t part_of(std::uint64_t row) const;
  [[nodiscard]] Range within(std::size_t part, const Range& rows) const;
  [[nodiscard]] std::vector<Share> shares_of(std::span<const Range> ranges) const;

  std::vector<std::shared_ptr<const RowReader>> parts_;
  std::vector<std::uint64_t> ends_;               // the number after each part's last row
  mutable std::atomic<std::size_t> lost_in_ = 0;  // the part of the last loss
};

}  // namespace melflow
