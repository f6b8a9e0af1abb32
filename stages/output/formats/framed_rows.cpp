#include "stages/output/formats/framed_rows.h"

#include <algorithm>
#include <stdexcept>
#include <vector>

namespace melflow {
namespace {

// The two ranges may overlap; `to` > `from`.
void move_up(const PartFile& file, std::uint64_t from, std::uint64_t to, std::uint64_t bytes,
             std::vector<char>& buffer) {
  while (bytes > 0) {
    const std::size_t n = std::min<std::uint64_t>(buffer.size(), bytes);
    bytes -= n;
    file.get(buffer.data(), n, from + bytes);
    file.put(buffer.data(), n, to + bytes);
  }
}

}  // namespace

// From the last piece to the first, since each moves to where later ones were. Where that is
// interrupted, rows before it are as they were, and a run that resumes finds by hashes which.
void frame_rows(const RowPartFile& file, std::size_t pieces,
                const std::function<FramedPiece(std::size_t)>& piece, std::string_view tail) {
  std::uint64_t from = kUnframedOffset, to = 0;  // the ends of what has not been moved
  for (std::size_t i = 0; i < pieces; ++i) {
    const FramedPiece p = piece(i);
    if (p.head.size() < kUnframedOffset) throw std::logic_error("a head is too short");
    const std::uint64_t bytes = static_cast<std::uint64_t>(p.rows) * file.row_bytes();
    from += bytes;
    to += p.head.size() + bytes;
  }
  file.put(tail.data(), tail.size(), to);
  file.cut(to + tail.size());
  std::vector<char> buffer(1 << 20);
  for (std::size_t i = pieces; i-- > 0;) {
    const FramedPiece p = piece(i);
    const std::uint64_t bytes = static_cast<std::uint64_t>(p.rows) * file.row_bytes();
    from -= bytes;
    to -= bytes;
    move_up(file, from, to, bytes, buffer);
    to -= p.head.size();
    file.put(p.head.data(), p.head.size(), to);
  }
}

std::uint64_t add_bytes(RowHash& hash, const PartFile& file, std::uint64_t at,
                        std::uint64_t bytes) {
  std::vector<char> buffer(std::min<std::uint64_t>(1 << 20, bytes));
  while (bytes > 0) {
    const std::size_t n = std::min<std::uint64_t>(buffer.size(), bytes);
    file.get(buffer.data(), n, at);
    hash.add(buffer.data(), n);
    at += n;
    bytes -= n;
  }
  return at;
}

}  // namespace melflow
