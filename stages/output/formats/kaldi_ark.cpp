#include "stages/output/formats/kaldi_ark.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <limits>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "pipeline/base/problem.h"
#include "pipeline/base/text.h"
#include "stages/files/whole_io.h"
#include "stages/output/formats/appender.h"
#include "stages/output/formats/framed_rows.h"
#include "stages/output/formats/npy_reader.h"
#include "stages/output/rows/row_hash.h"

namespace melflow {
namespace {

using Shape = std::span<const std::uint64_t>;
constexpr const char* kArkStage = "kaldi_write";
const std::string kBinary("\0BF", 3);

std::string in_folder_of(const std::string& ark, const std::string& name) {
  return (std::filesystem::path(ark).parent_path() / name).string();
}

std::string scp_path(const std::string& ark) {
  return ark.substr(0, ark.size() - std::strlen(kArkEnding)) + ".scp";
}

std::string int32(std::uint64_t value) {
  if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max()))
    throw RunError(
        fmt::format("a matrix of {} rows is too long for Kaldi; cut recordings by a "
                    "stage segment",
                    value));
  std::string out(5, '\4');
  for (std::size_t i = 0; i < 4; ++i) out[1 + i] = static_cast<char>(value >> (8 * i));
  return out;
}

// What is between the key and the values of `rows` rows, which are one matrix or vector.
std::string head_of(Shape shape, std::int64_t rows) {
  const auto count = static_cast<std::uint64_t>(rows);
  if (shape.size() == 1) return kBinary + "V " + int32(count);
  return kBinary + "M " + int32(shape.size() == 3 ? shape[1] : count) + int32(shape.back());
}

// The matrices in the order of their rows.
struct Matrix {
  std::size_t file;
  std::int64_t row, rows;  // of the output
  std::int64_t number;     // of the window; -1 where a recording is one matrix
};

template <class Files>
std::vector<Matrix> matrices_of(std::size_t files, Shape shape, const Files& range_of) {
  std::vector<Matrix> out;
  for (std::size_t i = 0; i < files; ++i) {
    const auto [first, count] = range_of(i);
    if (count == 0) continue;
    if (shape.size() < 3) out.push_back({i, first, count, -1});
    for (std::int64_t n = 0; shape.size() == 3 && n < count; ++n)
      out.push_back({i, first + n, 1, n});
  }
  std::sort(out.begin(), out.end(), [](const Matrix& a, const Matrix& b) { return a.row < b.row; });
  return out;
}

// Recognizes tables of an interrupted run by the first key in them.
Recognizer has_a_key(std::shared_ptr<const KaldiNames> names) {
  return [names = std::move(names)](int fd) {
    std::string head(4096, '\0');
    const ssize_t n = ::pread(fd, head.data(), head.size(), 0);
    head.resize(static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
    head.resize(std::min(head.find('\n'), head.size()));
    return std::any_of(names->keys.begin(), names->keys.end(), [&](const std::string& key) {
      return head.starts_with(key) || head.find(" " + key) != head.npos;
    });
  };
}

// Reads the rows of an ark.
class ArkRows final : public FeatureRows {
 public:
  struct Place {
    std::int64_t row, rows;
    std::uint64_t at;  // of the values
    std::string head;
  };
  ArkRows(std::string path, UniqueFd fd, std::vector<Place> places, std::uint64_t values_per_row)
      : path_(std::move(path)),
        fd_(std::move(fd)),
        places_(std::move(places)),
        row_bytes_(values_per_row * sizeof(float)) {}

  [[nodiscard]] std::vector<float> read(std::uint64_t offset, std::uint64_t count) const override {
    std::vector<float> out(count * row_bytes_ / sizeof(float));
    auto row = static_cast<std::int64_t>(offset);
    const auto end = static_cast<std::int64_t>(offset + count);
    auto at = std::upper_bound(places_.begin(), places_.end(), row,
                               [](std::int64_t r, const Place& p) { return r < p.row; });
    for (char* to = reinterpret_cast<char*>(out.data()); row < end; ++at) {
      const Place& p = *std::prev(at);
      if (read_at(fd_.get(), p.at - p.head.size(), p.head.size(), path_) != p.head)
        throw RunError(fmt::format("{}: at byte {} there is no matrix as the index has it", path_,
                                   p.at - p.head.size()));
      const std::int64_t n = std::min(end, p.row + p.rows) - row;
      const std::string bytes =
          read_at(fd_.get(), p.at + static_cast<std::uint64_t>(row - p.row) * row_bytes_,
                  static_cast<std::uint64_t>(n) * row_bytes_, path_);
      if (bytes.size() != static_cast<std::uint64_t>(n) * row_bytes_)
        throw RunError(path_ + ": ends before its rows do");
      to = std::copy(bytes.begin(), bytes.end(), to);
      row += n;
    }
    return out;
  }
  [[nodiscard]] RowPlaces places() const override {
    throw RowsApart(path_ +
                    ": rows of an ark lie apart; read it by kaldiio, or write hdf5 or npy beside");
  }

 private:
  std::string path_;
  UniqueFd fd_;
  std::vector<Place> places_;  // by row
  std::uint64_t row_bytes_;
};

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

std::vector<std::string> KaldiFile::files_of(const std::string& target, bool has_speakers,
                                             bool has_texts) {
  std::vector<std::string> out{target, scp_path(target), npy_index_path(target),
                               npy_document_path(target)};
  if (has_speakers)
    for (const char* name : {"utt2spk", "spk2utt"}) out.push_back(in_folder_of(target, name));
  if (has_texts) out.push_back(in_folder_of(target, "text"));
  return out;
}

KaldiFile::KaldiFile(const std::string& target, std::size_t values_per_row, const Opening& opening,
                     std::shared_ptr<const KaldiNames> names)
    : RowPartFile(target, kArkStage, NumberType::float32, values_per_row, kUnframedOffset, opening,
                  has_one_of({kBinary})),
      names_(std::move(names)) {
  for (const std::string& path :
       files_of(target, names_->speakers.has_value(), names_->texts.has_value())) {
    if (path == target) continue;
    Recognizer recognizer =
        path == npy_index_path(target)      ? has_one_of({"('offset', '<i8'), ('count', '<i8')"})
        : path == npy_document_path(target) ? has_one_of({"\"melflow_version\""})
                                            : has_a_key(names_);
    files_.push_back(
        std::make_unique<PartFile>(path, kArkStage, opening.existing, std::move(recognizer)));
  }
}

std::vector<PartFile*> KaldiFile::parts() {
  std::vector<PartFile*> out;
  for (const auto& file : files_) out.push_back(file.get());
  out.push_back(this);
  return out;
}

void KaldiFile::make_ark(std::span<const std::uint64_t> shape, const OutputIndex& index) {
  write_npy_index(*files_[1], index);
  write_npy_document(*files_[2], shape, type(), index);
  if (!index.complete) return;
  const std::vector<Matrix> matrices = matrices_of(index.files(), shape, [&](std::size_t i) {
    return std::pair(index.offset(i), index.rows(i));
  });
  const auto key = [&](const Matrix& m) {
    const std::string& name = names_->keys[index.first + m.file];
    return m.number < 0 ? name : fmt::format("{}-{:06}", name, m.number);
  };
  const auto piece = [&](std::size_t i) {
    const Matrix& m = matrices[i];
    return FramedPiece{key(m) + " " + head_of(shape, m.rows), m.rows};
  };
  frame_rows(*this, matrices.size(), piece);

  std::map<std::string, std::string> scp, speaker_of, keys_of, text;
  const std::string ark = std::filesystem::path(target()).filename();
  std::uint64_t at = 0;
  RowHash hash;
  for (std::size_t i = 0; i < matrices.size(); ++i) {
    const Matrix& m = matrices[i];
    const std::string name = key(m);
    const std::size_t file = index.first + m.file;
    scp[name] = fmt::format("{}:{}", ark, at + name.size() + 1);
    at += piece(i).head.size();
    at = add_bytes(hash, *this, at, static_cast<std::uint64_t>(m.rows) * row_bytes());
    if (i + 1 == matrices.size() || matrices[i + 1].file != m.file) {
      const std::uint64_t written = index.rows_hash(m.file);
      if (written != 0 && hash.value() != written) fail_read_back(part_path());
      hash.reset();
    }
    if (names_->speakers) {
      const std::string& speaker = (*names_->speakers)[file];
      speaker_of[name] = speaker.empty() ? name : speaker;
    }
    if (names_->texts && !(*names_->texts)[file].empty()) text[name] = (*names_->texts)[file];
  }
  for (const auto& [name, speaker] : speaker_of)
    keys_of[speaker] += (keys_of[speaker].empty() ? "" : " ") + name;
  std::vector tables{std::pair(0, &scp)};  // with the number of the file
  if (names_->speakers) tables.insert(tables.end(), {{3, &speaker_of}, {4, &keys_of}});
  if (names_->texts) tables.emplace_back(names_->speakers ? 5 : 3, &text);
  for (const auto& [file, table] : tables) {
    Appender out(*files_[static_cast<std::size_t>(file)]);
    for (const auto& [name, value] : *table) out.add(fmt::format("{} {}\n", name, value));
    out.finish();
  }
}

FeatureContents read_ark(const std::string& path, std::uint64_t file_bytes) {
  return read_beside(path, kArkEnding, [&](FeatureData& data) {
    check_contents(data);
    if (data.dtype != to_text(NumberType::float32)) throw RunError("rows of type " + data.dtype);
    const std::uint64_t bytes =
        checked_product({checked_product(data.shape, "the rows"), sizeof(float)}, "the rows");
    if (bytes > file_bytes)
      throw RunError(fmt::format("the file has {} bytes, its rows {}", file_bytes, bytes));
    const std::uint64_t row_bytes = data.values_per_row() * sizeof(float);
    const auto offsets = offsets_in(scp_path(path));
    const std::vector<Matrix> matrices = matrices_of(
        data.files.size(), data.shape,
        [&](std::size_t i) { return std::pair(data.files[i].offset, data.files[i].count); });
    if (offsets.size() != matrices.size())
      throw RunError(fmt::format("{} has {} lines, and there are {} matrices", scp_path(path),
                                 offsets.size(), matrices.size()));
    std::vector<ArkRows::Place> places;
    std::uint64_t end = 0;
    for (std::size_t i = 0; i < matrices.size(); ++i) {
      const auto& [offset, key] = offsets[i];
      const std::string own = head_of(data.shape, matrices[i].rows);
      const std::uint64_t at = offset + own.size();
      if (offset < end + key.size() + 1 || at > file_bytes)
        throw RunError(fmt::format("{} has a matrix at byte {}, which is none of {}",
                                   scp_path(path), offset, path));
      end = at + static_cast<std::uint64_t>(matrices[i].rows) * row_bytes;
      places.push_back({matrices[i].row, matrices[i].rows, at, fmt::format("{} {}", key, own)});
    }
    if (end != file_bytes)
      throw RunError(fmt::format("the file has {} bytes, and its rows end at {}", file_bytes, end));
    std::uint64_t now = 0;
    return std::make_unique<ArkRows>(path, open_regular(path, now), std::move(places),
                                     data.values_per_row());
  });
}

}  // namespace melflow
