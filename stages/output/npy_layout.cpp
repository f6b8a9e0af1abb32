#include "stages/output/npy_layout.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stages/listing/utf8.h"
#include "stages/output/feature_hash.h"
#include "stages/output/npy_header.h"
#include "stages/version.h"

namespace melflow {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are written as they are");

class Hash {
 public:
  Hash() { XXH3_64bits_reset(&state_); }
  void add(std::string_view bytes) { XXH3_64bits_update(&state_, bytes.data(), bytes.size()); }
  [[nodiscard]] std::uint64_t sum() const { return XXH3_64bits_digest(&state_); }

 private:
  XXH3_state_t state_;
};

// What a file is made of, from its beginning, in pieces that are worth a call.
class Appender {
 public:
  explicit Appender(const PartFile& file) : file_(file) {}
  void add(std::string_view bytes) {
    buffer_ += bytes;
    if (buffer_.size() >= kPiece) write();
  }
  template <class T>
  void number(T value) {
    char bytes[sizeof value];
    std::memcpy(bytes, &value, sizeof value);
    add({bytes, sizeof value});
  }
  // Reads all of it back. Throws RunError where it is not what was written.
  void finish() {
    write();
    file_.cut(at_);
    Hash there;
    for (std::uint64_t at = 0; at < at_; at += buffer_.size()) {
      buffer_.resize(std::min<std::uint64_t>(kPiece, at_ - at));
      file_.get(buffer_.data(), buffer_.size(), at);
      there.add(buffer_);
    }
    if (there.sum() != hash_.sum()) fail_read_back(file_.part_path());
  }

 private:
  static constexpr std::size_t kPiece = 1 << 20;
  void write() {
    file_.put(buffer_.data(), buffer_.size(), at_);
    hash_.add(buffer_);
    at_ += buffer_.size();
    buffer_.clear();
  }
  const PartFile& file_;
  std::string buffer_;
  std::uint64_t at_ = 0;
  Hash hash_;
};

// The path is as long as makes it a multiple of eight bytes.
NpyRecord record_of(const OutputIndex& x) {
  NpyRecord out{x.has_contents(), x.target_names().size(),
                x.has_label_sets() ? x.label_names().size() : 0, 1};
  for (std::size_t i = 0; i < x.files(); ++i) out.path = std::max(out.path, x.path(i).size());
  out.path = (out.bytes() + 7) / 8 * 8 - out.number_bytes();
  return out;
}

std::string json(const std::string& text) {
  return utf8_or_escaped(to_json(Value::scalar(text, {}, true)));
}

std::string json(const Value& value) { return utf8_or_escaped(to_json(value)); }

std::string json(const std::vector<std::string>& texts) {
  std::vector<std::string> out;
  out.reserve(texts.size());
  for (const std::string& t : texts) out.push_back(json(t));
  return fmt::format("[{}]", fmt::join(out, ", "));
}

std::string json(const std::vector<double>& numbers) {
  std::vector<std::string> out;
  out.reserve(numbers.size());
  for (const double n : numbers) out.push_back(!std::isfinite(n) ? "null" : fmt::format("{}", n));
  return fmt::format("[{}]", fmt::join(out, ", "));
}

std::string remark(const OutputIndex& x, std::size_t file) {
  const Ledger::Entry entry = x.entry(file);
  return fmt::format(R"({{"file": {}, "path": {}, "status": "{}", "stage": {}, "reason": {}}})",
                     file, json(x.path(file)),
                     OutputIndex::kStatusNames[static_cast<std::size_t>(x.status(file))],
                     json(entry.stage), json(entry.reason));
}

std::string without_ending(const std::string& rows) {
  return rows.substr(0, rows.size() - std::strlen(kNpyEnding));
}

}  // namespace

std::string npy_index_path(const std::string& rows) { return without_ending(rows) + ".index.npy"; }

std::string npy_document_path(const std::string& rows) {
  return without_ending(rows) + ".index.json";
}

std::string NpyRecord::type() const {
  std::string more;
  if (has_content) more += "('content', '<u8'), ";
  if (targets > 0) more += fmt::format("('targets', '<f4', ({},)), ", targets);
  if (labels > 0) more += fmt::format("('labels', '|u1', ({},)), ", labels);
  return fmt::format(
      "[('offset', '<i8'), ('count', '<i8'), ('duration', '<f8'), ('label', '<i4'), "
      "('sample_rate', '<i4'), ('split', '|i1'), ('status', '|i1'), ('size', '<i8'), "
      "('modified', '<i8'), {}('path', '|S{}')]",
      more, path);
}

void write_npy_index(const PartFile& file, const OutputIndex& x) {
  const NpyRecord record = record_of(x);
  const std::uint64_t count = x.files();
  Appender out(file);
  out.add(npy_header(record.type(), {&count, 1}));
  const std::vector<std::int64_t> offsets = x.offsets();
  std::string flags;
  for (std::size_t i = 0; i < count; ++i) {
    out.number(offsets[i]);
    out.number(x.rows(i));
    out.number(x.duration(i));
    out.number(x.label(i));
    out.number(static_cast<std::int32_t>(x.sample_rate(i)));
    out.number(x.split(i));
    out.number(x.status(i));
    out.number(x.stamp(i).size);
    out.number(x.stamp(i).modified);
    if (record.has_content) out.number(x.content(i));
    for (std::size_t t = 0; t < record.targets; ++t) out.number(x.target(i, t));
    flags.assign(record.labels, '\0');
    for (const std::int32_t l : x.labels(i))
      if (record.labels > 0) flags[static_cast<std::size_t>(l)] = 1;
    out.add(flags);
    std::string path = x.path(i);
    path.resize(record.path, '\0');
    out.add(path);
  }
  out.finish();
}

void write_npy_document(const PartFile& file, std::span<const std::uint64_t> shape, NumberType type,
                        const OutputIndex& x) {
  Appender out(file);
  out.add("{");
  auto entry = [&, first = true](const char* name, const std::string& value) mutable {
    out.add(fmt::format("{}\n\"{}\": {}", first ? "" : ",", name, value));
    first = false;
  };
  entry("melflow_version", json(std::string(kVersion)));
  entry("format", std::to_string(OutputIndex::kFormat));
  entry("complete", x.complete ? "true" : "false");
  entry("shape", fmt::format("[{}]", fmt::join(shape, ", ")));
  entry("dtype", json(std::string(to_text(type))));
  entry("axes", json(x.axes()));
  entry("unit", json(x.info.unit));
  if (x.info.energy_column >= 0) entry("energy_column", std::to_string(x.info.energy_column));
  if (!x.info.column_hz.empty()) entry("band_hz", json(x.info.column_hz));
  for (const auto& [name, n] : x.counts()) entry(name, std::to_string(n));
  entry("root", json(x.root()));
  entry("labels", json(x.label_names()));
  entry("splits", json(x.split_names()));
  if (!x.target_names().empty()) entry("targets", json(x.target_names()));
  entry("status", json(std::vector<std::string>(std::begin(OutputIndex::kStatusNames),
                                                std::end(OutputIndex::kStatusNames))));
  if (const ColumnStatistics* s = x.statistics)
    entry("statistics",
          fmt::format(R"({{"of": {}, "frames": {}, "applied": {}, "mean": {}, "std": {}}})",
                      json(s->of), s->frames, s->is_applied, json(s->mean), json(s->std)));
  entry("feature_hash", json(feature_hash(x.contract)));
  if (!x.info.preset.empty()) entry("preset", json(x.info.preset));
  entry("backend", json(x.info.computed_by->backend));
  entry("instruction_set", json(x.info.computed_by->instruction_set));
  entry("sample_rate", std::to_string(x.info.sample_rate));
  entry("n_fft", std::to_string(x.info.n_fft));
  entry("hop_length", std::to_string(x.info.hop));
  entry("features", json(x.contract));
  entry("config", json(x.run.settings.config));
  if (const auto warnings = x.warnings(); !warnings.empty()) entry("warnings", json(warnings));
  entry("remarks", "[");
  const char* before = "\n";
  for (const std::size_t i : x.remarked()) {
    out.add(before + remark(x, i));
    before = ",\n";
  }
  out.add("]\n}\n");
  out.finish();
}

}  // namespace melflow
