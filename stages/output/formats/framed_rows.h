// Rows of which each piece has a head before it, as in archives. While a run writes, rows lie one
// behind the other, so that what holds for all formats holds for these: any order, resuming,
// statistics, normalising. At the end they are moved apart.
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
  std::string result = {};  ///< what the index has of the result, as JSON; "" of a recording
};
struct RowsOfFile {
  std::int64_t first = 0, count = 0;
  std::string_view results;  ///< AboutFile::results
};
/// Returns them in the order of their rows. `names`: of the files, each once; a result has its
/// number by each stage that makes several behind it, as in "a/talk-1". Without `names` they have
/// none. Throws RunError for results that do not make up the rows of their file.
std::vector<NamedRows> named_rows(std::size_t files,
                                  const std::function<RowsOfFile(std::size_t)>& rows_of,
                                  std::span<const std::string> names);

struct FramedPiece {
  std::string head;
  std::int64_t rows = 0;
};

/// Moves the rows of `file`, all of which are written, so that `pieces` of them lie behind their
/// heads, and `tail` behind the last. `piece`: the pieces in the order of their rows; each is asked
/// for twice. Throws RunError.
void frame_rows(const RowPartFile& file, std::size_t pieces,
                const std::function<FramedPiece(std::size_t)>& piece, std::string_view tail = {});

/// Replaces the rows of `file`, all of which are written, by `pieces` of them in other bytes.
/// `rows_of`, `bytes_of`: the rows of a piece, and the bytes that come in their place; `made`:
/// these bytes for its values, called once for each piece, in order. Throws RunError.
void replace_rows(const RowPartFile& file, std::size_t pieces,
                  const std::function<std::int64_t(std::size_t)>& rows_of,
                  const std::function<std::uint64_t(std::size_t)>& bytes_of,
                  const std::function<std::string(std::size_t, const std::vector<float>&)>& made);

/// Adds `bytes` bytes at byte `at` of a file to a hash; returns their end. Throws RunError.
std::uint64_t add_bytes(RowHash& hash, const PartFile& file, std::uint64_t at, std::uint64_t bytes);

}  // namespace melflow
