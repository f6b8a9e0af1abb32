// Rows in pieces with a head before each, as in archives. While a run writes, rows lie one behind
// the other, so everything works as for other formats: any order, resuming, statistics,
// normalising. At the end they are moved apart, to make room for the heads.
//
// Threads: one, when all rows are written. Errors: RunError; rows may then lie apart in part, and a
// run that resumes compares them with their hashes, since the journal says so before they are moved
// (Checkpoints::ending()).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stages/output/formats/row_part_file.h"
#include "stages/output/rows/row_hash.h"

namespace melflow {

/// The first byte of rows that have not been moved yet. No head may be shorter.
constexpr std::uint64_t kUnframedOffset = 16;
static_assert(PartFile::kMark.size() <= kUnframedOffset);

/// Rows of an archive under a name of their own: those of a recording, or of one of its results (a
/// channel, a variant, an utterance).
struct NamedRows {
  std::size_t file = 0;              ///< in the index
  std::int64_t first = 0, rows = 0;  ///< of the output
  std::string name;
  std::string result = {};  ///< the result's part of AboutFile::results; "" for a recording
};
struct RowsOfFile {
  std::int64_t first = 0, count = 0;
  std::string_view results;  ///< AboutFile::results
};
/// Returns the named rows in order. `names`: of the files, without repetition; the name of a result
/// ends in its number at each stage that makes several, as in "a/talk-1". Without `names` all are
/// "". Throws RunError for results that do not make up the rows of their file.
std::vector<NamedRows> named_rows(std::size_t files,
                                  const std::function<RowsOfFile(std::size_t)>& rows_of,
                                  std::span<const std::string> names);

struct FramedPiece {
  std::string head;
  std::int64_t rows = 0;
};

/// Moves all rows of `file`, which are written, so that each of the `pieces` pieces lies behind its
/// head, and `tail` behind the last. `piece` returns a piece, in the order of rows; it is called
/// twice for each. Throws RunError.
void frame_rows(const RowPartFile& file, std::size_t pieces,
                const std::function<FramedPiece(std::size_t)>& piece, std::string_view tail = {});

/// Replaces all rows of `file`, which are written, by `pieces` pieces of other bytes. `rows_of`,
/// `bytes_of`: how many rows a piece has, and how many bytes replace them; `made` makes these bytes
/// from the rows' values, once for each piece, in order. Throws RunError.
void replace_rows(const RowPartFile& file, std::size_t pieces,
                  const std::function<std::int64_t(std::size_t)>& rows_of,
                  const std::function<std::uint64_t(std::size_t)>& bytes_of,
                  const std::function<std::string(std::size_t, const std::vector<float>&)>& made);

/// Adds `bytes` bytes at byte `at` of a file to a hash; returns their end. Throws RunError.
std::uint64_t add_bytes(RowHash& hash, const PartFile& file, std::uint64_t at, std::uint64_t bytes);

}  // namespace melflow
