// Draws the split of every file from the shares of the splits.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/options/schema.h"

namespace melflow {

constexpr std::size_t kMostShares = 128;

/// The names of the splits and their shares of the files, in the order of the output.
struct SplitShares {
  std::vector<std::pair<std::string, double>> list;
};
template <>
struct OptionType<SplitShares> {
  static std::string name() { return "shares ({train: 0.8, test: 0.2})"; }
  static std::string parse(const Value& v, SplitShares& out);
  static Value echo(const SplitShares& v);
};

struct SplitUnit {
  std::uint64_t key = 0;    ///< hash that includes the seed; files of equal keys stay together
  std::int32_t label = -1;  ///< the stratum
  /// The split that this file, and every file with its key, must have; -1: any. Files with equal
  /// keys have the same number here or -1.
  std::int8_t split = -1;
};

/// Draws the split of every file from its own key alone, so that adding a file moves no other. The
/// shares are met only on average.
std::vector<std::int8_t> split_by_key(std::span<const SplitUnit> files, const SplitShares& shares);

/// Draws splits that meet the shares as exactly as whole files and keys allow, overall and within
/// every label; the largest split gets files of every label, unless these are bound to other
/// splits. The result depends on the set of the files, not on their order.
std::vector<std::int8_t> split_by_stratum(std::span<const SplitUnit> files,
                                          const SplitShares& shares);

}  // namespace melflow
