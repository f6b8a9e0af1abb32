// Which split a file goes to, where the user says only how large the splits shall be.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/schema.h"

namespace melflow {

constexpr std::size_t kMostShares = 128;

/// Splits and their shares of the files, in the order of the output.
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
  std::uint64_t key = 0;    ///< files of equal keys stay together; well mixed, with the seed in it
  std::int32_t label = -1;  ///< the stratum
  /// The split that it has to have, and so all files of its key; equal where several of a key have
  /// one. -1: any.
  std::int8_t split = -1;
};

/// The split of every file by its own key alone: a file that is added moves no other. The shares
/// are met in expectation.
std::vector<std::int8_t> split_by_key(std::span<const SplitUnit> files, const SplitShares& shares);

/// The shares are met as well as whole files (and keys that stay together) allow, in all and within
/// every label; the largest split has every label that is not in another one already. Depends on
/// the set of the files, not on their order.
std::vector<std::int8_t> split_by_stratum(std::span<const SplitUnit> files,
                                          const SplitShares& shares);

}  // namespace melflow
