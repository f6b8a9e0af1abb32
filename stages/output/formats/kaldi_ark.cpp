#include "stages/output/formats/kaldi_ark.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <initializer_list>
#include <limits>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "pipeline/base/problem.h"
#include "pipeline/base/text.h"
#include "stages/output/formats/appender.h"
#include "stages/output/formats/framed_rows.h"
#include "stages/output/formats/kaldi_matrix.h"
#include "stages/output/rows/row_hash.h"

namespace melflow {
namespace {

constexpr const char* kArkStage = "kaldi_write";
const std::string kBinary("\0BF", 3), kDoubles("\0BDM ", 5), kPacked("\0BCM", 4);

std::string in_folder_of(const std::string& ark, const std::string& name) {
  return (std::filesystem::path(ark).parent_path() / name).string();
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

}  // namespace

std::string scp_path(const std::string& ark) {
  return ark.substr(0, ark.size() - std::strlen(kArkEnding)) + ".scp";
}

std::vector<KaldiMatrix> KaldiLayout::matrices(std::span<const NamedRows> named) const {
  std::vector<KaldiMatrix> out;
  for (const NamedRows& of : named) {
    if (shape.size() < 3) out.push_back({&of, of.first, of.rows});
    for (std::int64_t n = 0; shape.size() == 3 && n < of.rows; ++n)
      out.push_back({&of, of.first + n, 1});
  }
  return out;
}

std::string KaldiLayout::key(const KaldiMatrix& m) const {
  return shape.size() < 3 ? m.of->name : fmt::format("{}-{:06}", m.of->name, m.row - m.of->first);
}

std::string KaldiLayout::head(const KaldiMatrix& m) const {
  if (compression != 0) return {"\0B", 2};
  const auto height = static_cast<std::uint64_t>(this->height(m));
  if (shape.size() == 1) return kBinary + "V " + int32(height);
  return kBinary + "M " + int32(height) + int32(shape.back());
}

std::uint64_t KaldiLayout::bytes(const KaldiMatrix& m) const {
  if (compression != 0) return compressed_bytes(height(m), columns(), compression);
  return static_cast<std::uint64_t>(height(m) * columns()) * sizeof(float);
}

// Kaldi's validate_text.pl refuses white space of Unicode, at which Python's str.split() splits.
std::string kaldi_words(std::string_view text, char blank) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t n = std::max<std::size_t>(utf8_length(text, at), 1);
    const std::string_view character = text.substr(at, n);
    at += n;
    if (!is_white_space(character))
      out += character;
    else if (!out.empty() && out.back() != blank)
      out += blank;
  }
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

void KaldiTables::add(const std::string& key, const std::string& place, std::int64_t height,
                      const KaldiNames& names, std::size_t file) {
  of[scp][key] = place;
  if (names.has_frames) of["utt2num_frames"][key] = fmt::format("{}", height);
  if (names.speakers) {
    const std::string& speaker = (*names.speakers)[file];
    of["utt2spk"][key] = speaker.empty() ? key : speaker;
  }
  const auto add_text = [&](const auto& texts, const char* table) {
    if (texts && !(*texts)[file].empty()) of[table][key] = (*texts)[file];
  };
  add_text(names.texts, "text");
  add_text(names.labels, "utt2label");
}

void KaldiTables::add_speakers() {
  for (const auto& [key, speaker] : of["utt2spk"]) {
    std::string& keys = of["spk2utt"][speaker];
    keys += (keys.empty() ? "" : " ") + key;
  }
}

void write_table(const PartFile& file, const std::map<std::string, std::string>& lines) {
  Appender out(file);
  for (const auto& [key, value] : lines) out.add(fmt::format("{} {}\n", key, value));
  out.finish();
}

// As compute-cmvn-stats --spk2utt gives them.
std::map<std::string, std::vector<double>> speaker_sums(const ColumnStatistics& statistics) {
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

std::map<std::string, std::string> write_cmvn(
    const PartFile& file, const std::map<std::string, std::vector<double>>& sums) {
  Appender out(file);
  std::map<std::string, std::string> scp;
  std::uint64_t at = 0;
  for (const auto& [speaker, of] : sums) {
    const std::string head = kDoubles + int32(2) + int32(of.size() / 2);
    const std::size_t bytes = of.size() * sizeof(double);
    scp[speaker] = fmt::format("{}:{}", kCmvnArk, at + speaker.size() + 1);
    out.add(fmt::format("{} {}", speaker, head));
    out.add({reinterpret_cast<const char*>(of.data()), bytes});
    at += speaker.size() + 1 + head.size() + bytes;
  }
  out.finish();
  return scp;
}

// Replaces the rows by compressed matrices, and the hashes by those of the compressed values.
void KaldiFile::compress(const std::vector<KaldiMatrix>& matrices, const KaldiLayout& layout,
                         const OutputIndex& index, std::vector<std::uint64_t>& hashes) const {
  const auto head = [&](std::size_t i) {
    return layout.key(matrices[i]) + " " + layout.head(matrices[i]);
  };
  RowHash hash;
  replace_rows(
      *this, matrices.size(), [&](std::size_t i) { return matrices[i].rows; },
      [&](std::size_t i) { return head(i).size() + layout.bytes(matrices[i]); },
      [&](std::size_t i, const std::vector<float>& rows) {
        const KaldiMatrix& m = matrices[i];
        const std::string packed =
            compressed_matrix(rows, layout.height(m), layout.columns(), layout.compression);
        const std::vector<float> values =
            expanded_matrix(packed, layout.height(m), layout.columns(), layout.compression);
        hash.add(values.data(), values.size() * sizeof(float));
        if (i + 1 == matrices.size() || matrices[i + 1].of->file != m.of->file) {
          hashes[index.first + m.of->file] = hash.value();
          hash.reset();
        }
        return head(i) + packed;
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
  const KaldiLayout layout{shape, compression_};
  const std::vector<KaldiMatrix> matrices = layout.matrices(named);
  if (compression_ != 0)
    compress(matrices, layout, index, hashes);
  else
    frame_rows(*this, matrices.size(), [&](std::size_t i) {
      return FramedPiece{layout.key(matrices[i]) + " " + layout.head(matrices[i]),
                         matrices[i].rows};
    });
  index_.write(shape, type(), index);

  KaldiTables tables{std::filesystem::path(scp_path(target())).filename()};
  const std::string ark = std::filesystem::path(target()).filename();
  std::uint64_t at = 0;
  RowHash hash;
  std::string packed;
  for (std::size_t i = 0; i < matrices.size(); ++i) {
    const KaldiMatrix& m = matrices[i];
    const std::string name = layout.key(m);
    tables.add(name, fmt::format("{}:{}", ark, at + name.size() + 1), layout.height(m), *names_,
               index.first + m.of->file);
    at += name.size() + 1 + layout.head(m).size();
    if (compression_ != 0) {
      packed.resize(layout.bytes(m));
      get(packed.data(), packed.size(), at);
      at += packed.size();
      const std::vector<float> values =
          expanded_matrix(packed, layout.height(m), layout.columns(), compression_);
      hash.add(values.data(), values.size() * sizeof(float));
    } else {
      at = add_bytes(hash, *this, at, layout.bytes(m));
    }
    if (i + 1 == matrices.size() || matrices[i + 1].of->file != m.of->file) {
      const std::uint64_t written = index.rows_hash(m.of->file);
      if (written != 0 && hash.value() != written) fail_read_back(part_path());
      hash.reset();
    }
  }
  tables.add_speakers();
  for (const auto& file : files_) {
    const std::string name = std::filesystem::path(file->target()).filename();
    if (name != kCmvnArk)
      write_table(*file, tables.of[name]);
    else if (index.statistics != nullptr && index.statistics->groups)
      tables.of[kCmvnScp] = write_cmvn(*file, speaker_sums(*index.statistics));
  }
}

}  // namespace melflow
