#include "stages/output/formats/kaldi_ark.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <initializer_list>
#include <limits>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "pipeline/base/problem.h"
#include "pipeline/base/text.h"
#include "stages/files/whole_io.h"
#include "stages/output/formats/appender.h"
#include "stages/output/formats/framed_rows.h"
#include "stages/output/formats/kaldi_matrix.h"
#include "stages/output/formats/npy_reader.h"
#include "stages/output/formats/stored_json.h"
#include "stages/output/rows/row_hash.h"

namespace melflow {
namespace {

using Shape = std::span<const std::uint64_t>;
constexpr const char* kArkStage = "kaldi_write";
constexpr const char *kCmvnArk = "cmvn.ark", *kCmvnScp = "cmvn.scp";
const std::string kBinary("\0BF", 3), kDoubles("\0BDM ", 5), kPacked("\0BCM", 4);
constexpr std::size_t kBinaryMark = 2;  // the bytes "\0B"

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

using Matrix = KaldiMatrix;

// In the order of their rows.
std::vector<Matrix> matrices_of(const std::vector<NamedRows>& named, Shape shape) {
  std::vector<Matrix> out;
  for (const NamedRows& of : named) {
    if (shape.size() < 3) out.push_back({&of, of.first, of.rows});
    for (std::int64_t n = 0; shape.size() == 3 && n < of.rows; ++n)
      out.push_back({&of, of.first + n, 1});
  }
  return out;
}

// Rows of one matrix of Kaldi.
std::int64_t height_of(const Matrix& m, Shape shape) {
  return shape.size() < 3 ? m.rows : static_cast<std::int64_t>(shape[1]);
}

std::uint64_t packed_bytes(const Matrix& m, Shape shape, int compression) {
  return compressed_bytes(height_of(m, shape), static_cast<std::int64_t>(shape.back()),
                          compression);
}

std::string key_of(const Matrix& m, Shape shape) {
  return shape.size() < 3 ? m.of->name : fmt::format("{}-{:06}", m.of->name, m.row - m.of->first);
}

// The sums of each speaker's rows and of their squares, as compute-cmvn-stats --spk2utt gives them:
// with the number of frames behind the former. Names that are one word to Kaldi are one speaker.
std::map<std::string, std::vector<double>> cmvn_of(const ColumnStatistics& statistics) {
  std::map<std::string, std::vector<double>> out;
  const GroupStatistics& groups = *statistics.groups;
  const std::size_t columns = statistics.mean.size();
  for (std::size_t g = 0; g < groups.names.size(); ++g) {
    std::vector<double>& sums = out[kaldi_words(groups.names[g], '_')];
    sums.resize(2 * (columns + 1));
    const auto n = static_cast<double>(groups.frames[g]);
    for (std::size_t c = 0; c < columns; ++c) {
      const double mean = groups.mean[g * columns + c], std = groups.std[g * columns + c];
      sums[c] += n * mean;
      sums[columns + 1 + c] += n * (std * std + mean * mean);
    }
    sums[columns] += n;
  }
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
  ArkRows(std::string path, UniqueFd fd, std::vector<Place> places, const FeatureData& data,
          int compression)
      : path_(std::move(path)),
        fd_(std::move(fd)),
        places_(std::move(places)),
        row_bytes_(data.values_per_row() * sizeof(float)),
        columns_(static_cast<std::int64_t>(data.shape.back())),
        compression_(compression) {}

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
      const std::string bytes = values_of(p, row - p.row, n);
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

std::string kaldi_words(std::string_view text, char blank) {
  std::string out;
  for (const char c : text)
    if (c != ' ' && (c < '\t' || c > '\r'))
      out += c;
    else if (!out.empty() && out.back() != blank)
      out += blank;
  while (!out.empty() && out.back() == blank) out.pop_back();
  return out;
}

std::vector<std::string> KaldiFile::files_of(const std::string& target, const KaldiForm& form) {
  std::vector<std::string> out{target, npy_index_path(target), npy_document_path(target),
                               scp_path(target)};
  const auto add = [&](bool is_there, std::initializer_list<const char*> names) {
    for (const char* name : names)
      if (is_there) out.push_back(in_folder_of(target, name));
  };
  add(form.speakers, {"utt2spk", "spk2utt"});
  add(form.texts, {"text"});
  add(form.cmvn, {kCmvnArk, kCmvnScp});
  return out;
}

KaldiFile::KaldiFile(const std::string& target, std::size_t values_per_row, const Opening& opening,
                     const KaldiForm& form, std::shared_ptr<const KaldiNames> names)
    : RowPartFile(target, kArkStage, NumberType::float32, values_per_row, kUnframedOffset, opening,
                  has_one_of({kBinary, kPacked})),
      compression_(form.compression),
      names_(std::move(names)),
      index_(target, kArkStage, opening.existing) {
  const std::vector<std::string> all = files_of(target, form);
  for (auto path = all.begin() + 3; path != all.end(); ++path) {
    Recognizer recognizer = path->ends_with(kCmvnArk)   ? has_one_of({kDoubles})
                            : path->ends_with(kCmvnScp) ? has_one_of({kCmvnArk})
                                                        : has_a_key(names_);
    files_.push_back(
        std::make_unique<PartFile>(*path, kArkStage, opening.existing, std::move(recognizer)));
  }
}

std::vector<PartFile*> KaldiFile::parts() {
  std::vector<PartFile*> out{&index_.index, &index_.document};
  for (const auto& file : files_) out.push_back(file.get());
  out.push_back(this);
  return out;
}

// Writes one of the tables, "KEY VALUE" in each line, where the output has it.
void KaldiFile::put_table(const std::string& path,
                          const std::map<std::string, std::string>& lines) const {
  for (const auto& file : files_) {
    if (file->target() != path) continue;
    Appender out(*file);
    for (const auto& [key, value] : lines) out.add(fmt::format("{} {}\n", key, value));
    out.finish();
  }
}

void KaldiFile::put_cmvn(const ColumnStatistics& statistics) const {
  for (const auto& file : files_) {
    if (!file->target().ends_with(kCmvnArk)) continue;
    Appender out(*file);
    std::map<std::string, std::string> scp;
    std::uint64_t at = 0;
    for (const auto& [speaker, sums] : cmvn_of(statistics)) {
      const std::string head = kDoubles + int32(2) + int32(sums.size() / 2);
      const std::size_t bytes = sums.size() * sizeof(double);
      scp[speaker] = fmt::format("{}:{}", kCmvnArk, at + speaker.size() + 1);
      out.add(fmt::format("{} {}", speaker, head));
      out.add({reinterpret_cast<const char*>(sums.data()), bytes});
      at += speaker.size() + 1 + head.size() + bytes;
    }
    out.finish();
    put_table(in_folder_of(target(), kCmvnScp), scp);
  }
}

// Replaces the rows by compressed matrices; notes the hashes of what these hold.
void KaldiFile::compress(const std::vector<Matrix>& matrices, Shape shape, const OutputIndex& index,
                         std::vector<std::uint64_t>& hashes) const {
  const auto columns = static_cast<std::int64_t>(shape.back());
  RowHash hash;
  replace_rows(
      *this, matrices.size(), [&](std::size_t i) { return matrices[i].rows; },
      [&](std::size_t i) {
        return key_of(matrices[i], shape).size() + 1 + kBinaryMark +
               packed_bytes(matrices[i], shape, compression_);
      },
      [&](std::size_t i, const std::vector<float>& rows) {
        const Matrix& m = matrices[i];
        const std::int64_t height = height_of(m, shape);
        const std::string packed = compressed_matrix(rows, height, columns, compression_);
        const std::vector<float> values = expanded_matrix(packed, height, columns, compression_);
        hash.add(values.data(), values.size() * sizeof(float));
        if (i + 1 == matrices.size() || matrices[i + 1].of->file != m.of->file) {
          hashes[index.first + m.of->file] = hash.value();
          hash.reset();
        }
        return key_of(m, shape) + " " + kPacked.substr(0, kBinaryMark) + packed;
      });
}

void KaldiFile::make_ark(std::span<const std::uint64_t> shape, const OutputIndex& index,
                         std::vector<std::uint64_t>& hashes) {
  if (!index.complete) return index_.write(shape, type(), index);
  const std::vector<NamedRows> named = named_rows(
      index.files(),
      [&](std::size_t i) {
        return RowsOfFile{index.offset(i), index.rows(i), index.results(i)};
      },
      std::span(names_->keys).subspan(index.first, index.files()));
  const std::vector<Matrix> matrices = matrices_of(named, shape);
  const auto head = [&](const Matrix& m) {
    return key_of(m, shape) + " " +
           (compression_ != 0 ? kPacked.substr(0, kBinaryMark) : head_of(shape, m.rows));
  };
  if (compression_ != 0)
    compress(matrices, shape, index, hashes);
  else
    frame_rows(*this, matrices.size(), [&](std::size_t i) {
      return FramedPiece{head(matrices[i]), matrices[i].rows};
    });
  index_.write(shape, type(), index);

  std::map<std::string, std::string> scp, speaker_of, keys_of, text;
  const std::string ark = std::filesystem::path(target()).filename();
  std::uint64_t at = 0;
  RowHash hash;
  std::string packed;
  for (std::size_t i = 0; i < matrices.size(); ++i) {
    const Matrix& m = matrices[i];
    const std::string name = key_of(m, shape);
    const std::size_t file = index.first + m.of->file;
    scp[name] = fmt::format("{}:{}", ark, at + name.size() + 1);
    at += head(m).size();
    if (compression_ != 0) {
      packed.resize(packed_bytes(m, shape, compression_));
      get(packed.data(), packed.size(), at);
      at += packed.size();
      const std::vector<float> values = expanded_matrix(
          packed, height_of(m, shape), static_cast<std::int64_t>(shape.back()), compression_);
      hash.add(values.data(), values.size() * sizeof(float));
    } else {
      at = add_bytes(hash, *this, at, static_cast<std::uint64_t>(m.rows) * row_bytes());
    }
    if (i + 1 == matrices.size() || matrices[i + 1].of->file != m.of->file) {
      const std::uint64_t written = index.rows_hash(m.of->file);
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
  put_table(scp_path(target()), scp);
  put_table(in_folder_of(target(), "utt2spk"), speaker_of);
  put_table(in_folder_of(target(), "spk2utt"), keys_of);
  put_table(in_folder_of(target(), "text"), text);
  if (index.statistics != nullptr && index.statistics->groups) put_cmvn(*index.statistics);
}

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
    const std::uint64_t row_bytes = data.values_per_row() * sizeof(float);
    const auto offsets = offsets_in(scp_path(path));
    const std::vector<NamedRows> named =
        named_rows(data.files.size(),
                   [&](std::size_t i) {
                     const FeatureData::Entry& e = data.files[i];
                     return RowsOfFile{e.offset, e.count, e.results};
                   },
                   {});
    const std::vector<Matrix> matrices = matrices_of(named, data.shape);
    if (offsets.size() != matrices.size())
      throw RunError(fmt::format("{} has {} lines, and there are {} matrices", scp_path(path),
                                 offsets.size(), matrices.size()));
    std::vector<ArkRows::Place> places;
    std::uint64_t end = 0;
    for (std::size_t i = 0; i < matrices.size(); ++i) {
      const auto& [offset, key] = offsets[i];
      const std::string own =
          compression != 0 ? kPacked.substr(0, kBinaryMark) : head_of(data.shape, matrices[i].rows);
      const std::uint64_t at = offset + own.size();
      if (offset < end + key.size() + 1 || at > file_bytes)
        throw RunError(fmt::format("{} has a matrix at byte {}, which is none of {}",
                                   scp_path(path), offset, path));
      end = at + (compression != 0 ? packed_bytes(matrices[i], data.shape, compression)
                                   : static_cast<std::uint64_t>(matrices[i].rows) * row_bytes);
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
