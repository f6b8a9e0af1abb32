// Reads the arks that kaldi_write makes.
#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "pipeline/base/problem.h"
#include "stages/files/whole_io.h"
#include "stages/output/formats/kaldi_ark.h"
#include "stages/output/formats/kaldi_matrix.h"
#include "stages/output/formats/npy_reader.h"
#include "stages/output/formats/stored_json.h"

namespace melflow {
namespace {

// Reads the rows of an ark.
class ArkRows final : public FeatureRows {
 public:
  struct Place {
    std::int64_t row, rows;
    std::uint64_t at;  // of the values
    std::string head;
  };
  ArkRows(std::string path, UniqueFd fd, std::vector<Place> places, const FeatureData& data,
          int compression)
      : path_(std::move(path)),
        fd_(std::move(fd)),
        places_(std::move(places)),
        row_bytes_(data.values_per_row() * sizeof(float)),
        columns_(static_cast<std::int64_t>(data.shape.back())),
        compression_(compression) {}

  void read(std::uint64_t offset, std::uint64_t count, std::byte* out) const override {
    auto row = static_cast<std::int64_t>(offset);
    const auto end = static_cast<std::int64_t>(offset + count);
    auto at = std::upper_bound(places_.begin(), places_.end(), row,
                               [](std::int64_t r, const Place& p) { return r < p.row; });
    for (char* to = reinterpret_cast<char*>(out); row < end; ++at) {
      const Place& p = *std::prev(at);
      if (read_at(fd_.get(), p.at - p.head.size(), p.head.size(), path_) != p.head)
        throw RunError(fmt::format("{}: at byte {} there is no matrix as the index has it", path_,
                                   p.at - p.head.size()));
      const std::int64_t n = std::min(end, p.row + p.rows) - row;
      const std::string bytes = values_of(p, row - p.row, n);
      to = std::copy(bytes.begin(), bytes.end(), to);
      row += n;
    }
  }
  [[nodiscard]] RowPlaces places() const override {
    throw RowsApart(path_ +
                    ": rows of an ark lie apart; read it by kaldiio, or write hdf5 or npy beside");
  }

 private:
  // The bytes of rows [first, first + rows) of a matrix, as float32.
  [[nodiscard]] std::string values_of(const Place& p, std::int64_t first, std::int64_t rows) const {
    const std::uint64_t skipped = static_cast<std::uint64_t>(first) * row_bytes_,
                        size = static_cast<std::uint64_t>(rows) * row_bytes_;
    if (compression_ == 0) {
      std::string bytes = read_at(fd_.get(), p.at + skipped, size, path_);
      if (bytes.size() != size) throw RunError(path_ + ": ends before its rows do");
      return bytes;
    }
    const std::int64_t height =
        p.rows * static_cast<std::int64_t>(row_bytes_ / sizeof(float)) / columns_;
    const std::vector<float> all = expanded_matrix(
        read_at(fd_.get(), p.at, compressed_bytes(height, columns_, compression_), path_), height,
        columns_, compression_);
    return {reinterpret_cast<const char*>(all.data()) + skipped, size};
  }

  std::string path_;
  UniqueFd fd_;
  std::vector<Place> places_;  // by row
  std::uint64_t row_bytes_;
  std::int64_t columns_;
  int compression_;
};

// The compression of an output that melflow wrote.
int compression_of(const FeatureData& data) {
  const StoredJson settings = parse_settings(data.text("feature_settings"));
  const int out = settings.empty() ? 0 : settings.back().value("compression", 0);
  if (out != 0 && std::ranges::count(kKaldiCompressions, out) == 0)
    throw RunError(fmt::format("there is no compression {}", out));
  return out;
}

// Returns the offsets in the table, ascending, each with its key.
std::vector<std::pair<std::uint64_t, std::string>> offsets_in(const std::string& scp) {
  std::uint64_t size = 0;
  const UniqueFd fd = open_regular(scp, size);
  const std::string text = read_at(fd.get(), 0, size, scp);
  std::vector<std::pair<std::uint64_t, std::string>> out;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::size_t colon = text.rfind(':', end);
    std::uint64_t at = 0;
    const char* last = text.data() + end;
    if (colon == text.npos || colon < begin ||
        std::from_chars(text.data() + colon + 1, last, at).ptr != last || colon + 1 == end)
      throw RunError(fmt::format("{}: line {} has no offset", scp, out.size() + 1));
    out.emplace_back(at, text.substr(begin, text.find(' ', begin) - begin));
    begin = end + 1;
  }
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace

FeatureContents read_ark(const std::string& path, std::uint64_t file_bytes) {
  return read_beside(path, kArkEnding, [&](FeatureData& data) {
    check_contents(data);
    if (data.dtype != to_text(NumberType::float32)) throw RunError("rows of type " + data.dtype);
    const int compression = compression_of(data);
    const std::uint64_t bytes =
        checked_product({checked_product(data.shape, "the rows"), sizeof(float)}, "the rows") /
        (compression != 0 ? sizeof(float) : 1);
    if (bytes > file_bytes)
      throw RunError(fmt::format("the file has {} bytes, its rows {}", file_bytes, bytes));
    const auto offsets = offsets_in(scp_path(path));
    const std::vector<NamedRows> named =
        named_rows(data.files.size(),
                   [&](std::size_t i) {
                     const FeatureData::Entry& e = data.files[i];
                     return RowsOfFile{e.offset, e.count, e.results};
                   },
                   {});
    const KaldiLayout layout{data.shape, compression};
    const std::vector<KaldiMatrix> matrices = layout.matrices(named);
    if (offsets.size() != matrices.size())
      throw RunError(fmt::format("{} has {} lines, and there are {} matrices", scp_path(path),
                                 offsets.size(), matrices.size()));
    std::vector<ArkRows::Place> places;
    std::uint64_t end = 0;
    for (std::size_t i = 0; i < matrices.size(); ++i) {
      const auto& [offset, key] = offsets[i];
      const std::string own = layout.head(matrices[i]);
      const std::uint64_t at = offset + own.size();
      if (offset < end + key.size() + 1 || at > file_bytes)
        throw RunError(fmt::format("{} has a matrix at byte {}, which is none of {}",
                                   scp_path(path), offset, path));
      end = at + layout.bytes(matrices[i]);
      places.push_back({matrices[i].row, matrices[i].rows, at, fmt::format("{} {}", key, own)});
    }
    if (end != file_bytes)
      throw RunError(fmt::format("the file has {} bytes, and its rows end at {}", file_bytes, end));
    std::uint64_t now = 0;
    return std::make_unique<ArkRows>(path, open_regular(path, now), std::move(places), data,
                                     compression);
  });
}

}  // namespace melflow
