#include "stages/output/formats/framed_rows.h"

#include <algorithm>
#include <stdexcept>
#include <unordered_set>

#include <fmt/format.h>

#include "pipeline/base/problem.h"
#include "stages/output/formats/stored_json.h"

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

std::vector<NamedRows> named_rows(std::size_t files,
                                  const std::function<RowsOfFile(std::size_t)>& rows_of,
                                  std::span<const std::string> names) {
  std::vector<NamedRows> out;
  std::unordered_set<std::string> taken;
  const auto own_name = [&](std::string name) {
    if (taken.empty()) taken.insert(names.begin(), names.end());
    std::string unique = name;
    for (int n = 1; !taken.insert(unique).second; ++n) unique = fmt::format("{}-{}", name, n);
    return unique;
  };
  for (std::size_t i = 0; i < files; ++i) {
    const RowsOfFile of = rows_of(i);
    if (of.count == 0) continue;
    const std::string name = names.empty() ? "" : names[i];
    if (of.results.empty()) {
      out.push_back({i, of.first, of.count, name});
      continue;
    }
    std::int64_t first = of.first;
    for (const StoredJson& result : parse_stored(std::string(of.results))) {
      std::string numbered = name;
      const StoredJson numbers = result.value("number", StoredJson::object());
      // They become part of names, and so of paths.
      if (!numbers.is_object() || !std::all_of(numbers.begin(), numbers.end(),
                                               [](const auto& n) { return n.is_number_integer(); }))
        throw RunError(fmt::format("a result of a recording has the number {}", numbers.dump()));
      for (const StoredJson& n : numbers) numbered += "-" + n.dump();
      const auto rows = result.at("rows").get<std::int64_t>();
      if (rows < 1 || rows > of.first + of.count - first)
        throw RunError(fmt::format("a recording of {} rows has a result of {}", of.count, rows));
      out.push_back({i, first, rows, names.empty() ? "" : own_name(numbered), result.dump()});
      first += rows;
    }
    if (first != of.first + of.count)
      throw RunError(fmt::format("the results of a recording have {} rows, and it has {}",
                                 first - of.first, of.count));
  }
  std::sort(out.begin(), out.end(),
            [](const NamedRows& a, const NamedRows& b) { return a.first < b.first; });
  return out;
}

// From the last piece to the first, since each moves to where later ones were. After an
// interruption the first rows are still in place; a run that resumes finds by hashes how many.
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

void replace_rows(const RowPartFile& file, std::size_t pieces,
                  const std::function<std::int64_t(std::size_t)>& rows_of,
                  const std::function<std::uint64_t(std::size_t)>& bytes_of,
                  const std::function<std::string(std::size_t, const std::vector<float>&)>& made) {
  const auto size = [&](std::size_t i) {
    return static_cast<std::uint64_t>(rows_of(i)) * file.row_bytes();
  };
  // Where pieces are longer than their rows, rows first move up, so that none is overwritten before
  // it was read.
  std::uint64_t from = kUnframedOffset, to = 0, shift = 0;
  for (std::size_t i = 0; i < pieces; ++i) {
    from += size(i);
    to += bytes_of(i);
    shift = std::max(shift, to > from ? to - from : 0);
  }
  if (shift > 0) {
    std::vector<char> buffer(1 << 20);
    move_up(file, kUnframedOffset, kUnframedOffset + shift, from - kUnframedOffset, buffer);
  }
  from = kUnframedOffset + shift;
  to = 0;
  std::vector<float> values;
  for (std::size_t i = 0; i < pieces; ++i) {
    values.resize(size(i) / sizeof(float));
    file.get(values.data(), size(i), from);
    from += size(i);
    const std::string piece = made(i, values);
    if (piece.size() != bytes_of(i)) throw std::logic_error("a piece of another length");
    file.put(piece.data(), piece.size(), to);
    to += piece.size();
  }
  file.cut(to);
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
