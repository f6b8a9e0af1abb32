#include "stages/output/formats/index_hash.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "pipeline/base/text.h"
#include "stages/output/formats/index_columns.h"
#include "stages/output/formats/root_attributes.h"
#include "stages/output/formats/stored_json.h"
#include "stages/output/rows/row_hash.h"

namespace melflow {
namespace {

class Hash {
 public:
  template <class T>
  void number(T value) {
    static_assert(std::is_arithmetic_v<T> || std::is_enum_v<T>);
    if constexpr (std::is_floating_point_v<T>)
      if (std::isnan(value)) value = std::numeric_limits<T>::quiet_NaN();
    buffer_.append(reinterpret_cast<const char*>(&value), sizeof value);
    if (buffer_.size() >= kAtOnce) flush();
  }
  void text(std::string_view text) {
    number(text.size());
    buffer_ += text;
  }
  // Adds a text that JSON cannot hold where it is not UTF-8.
  void told(const std::string& said) { text(without_escaped_bytes(utf8_or_escaped(said))); }
  template <class List, class Add>
  void list(const List& list, const Add& add) {
    number(std::size(list));
    for (const auto& one : list) add(one);
  }
  void numbers(const std::vector<double>& list) {
    this->list(list, [this](double n) { number(std::isfinite(n) ? n : std::nan("")); });
  }
  void names(const std::vector<std::string>& list) {
    this->list(list, [this](const std::string& name) { told(name); });
  }
  [[nodiscard]] std::string value() {
    flush();
    return fmt::format("{:016x}", hash_.value());
  }

 private:
  static constexpr std::size_t kAtOnce = 4096;
  void flush() {
    hash_.add(buffer_.data(), buffer_.size());
    buffer_.clear();
  }
  RowHash hash_;
  std::string buffer_;
};

// Returns the data of an index without its files and remarks.
FeatureData whole_of(const OutputIndex& x) {
  FeatureData out;
  for (const RootAttribute& a : root_attributes()) {
    if (!a.is_in(x) || a.name == std::string_view(kIndexHash)) continue;
    std::visit(
        [&](const auto& value) {
          using T = std::remove_cvref_t<decltype(value)>;
          if constexpr (std::is_same_v<T, Value>)
            out.texts[a.name] = to_json(value);
          else if constexpr (std::is_same_v<T, std::string>)
            out.texts[a.name] = value;
          else
            out.integers[a.name] = value;
        },
        a.value(x));
  }
  out.unit = x.info.unit;
  out.root = x.manifest.root();
  out.band_hz = x.info.column_hz;
  out.labels = x.manifest.label_names();
  out.splits = x.manifest.split_names();
  out.targets = x.manifest.target_names();
  out.columns = x.manifest.text_names();
  out.warnings = x.warnings();
  if (x.statistics != nullptr) out.statistics = *x.statistics;
  return out;
}

FeatureData::Entry file_of(const OutputIndex& x, std::size_t file) {
  FeatureData::Entry out;
  std::string bytes;
  for (const IndexColumn& column : index_columns()) {
    const std::size_t values = column.values(x);
    if (values == 0) continue;
    if (column.type == ColumnType::text) {
      column.set(column.text(x, file), out);
      continue;
    }
    bytes.assign(values * size_of(column.type), '\0');
    column.put(x, file, bytes.data());
    column.set(bytes, out);
  }
  for (std::size_t t = 0; t < x.manifest.text_names().size(); ++t)
    out.texts.push_back(x.text(file, t));
  return out;
}

// The formats write JSON and order columns differently; the hash does not depend on that.
// Remarks are made one by one by `remark_at`, since all of them may take much memory.
template <class RemarkAt>
void add_whole(Hash& hash, const FeatureData& data, std::size_t remarks,
               const RemarkAt& remark_at) {
  for (const RootAttribute& a : root_attributes()) {
    if (a.name == std::string_view(kIndexHash)) continue;
    // Introduced after the hash: outputs without this attribute keep the hash that they had.
    if (!a.is_in_all && data.text(a.name).empty()) continue;
    if (!a.is_text())
      hash.number(data.integer(a.name).value_or(-1));
    else if (a.type == RootAttribute::Type::json)
      hash.text(parse_settings_or_null(data.text(a.name))
                    .dump(-1, ' ', true, StoredJson::error_handler_t::replace));
    else
      hash.told(data.text(a.name));
  }
  hash.told(data.unit);
  hash.told(data.root);
  hash.numbers(data.band_hz);
  for (const auto* names : {&data.labels, &data.splits, &data.targets}) hash.names(*names);
  hash.number(remarks);
  for (std::size_t i = 0; i < remarks; ++i) {
    const FeatureData::Remark& remark = remark_at(i);
    hash.number(remark.file);
    hash.text(remark.path);
    hash.number(remark.status);
    hash.told(remark.stage);
    hash.told(remark.reason);
  }
  hash.names(data.warnings);
  hash.number(data.statistics.has_value());
  if (!data.statistics) return;
  hash.told(data.statistics->of);
  hash.number(data.statistics->is_applied);
  hash.number(data.statistics->frames);
  hash.numbers(data.statistics->mean);
  hash.numbers(data.statistics->std);
  const auto& groups = data.statistics->groups;
  if (!groups) return;  // as before there were groups
  hash.told(groups->by);
  hash.names(groups->names);
  hash.list(groups->frames, [&](std::int64_t n) { hash.number(n); });
  hash.numbers(groups->mean);
  hash.numbers(groups->std);
}

void add_file(Hash& hash, const FeatureData::Entry& e, const std::vector<std::size_t>& columns) {
  hash.text(e.path);
  if (!e.results.empty()) hash.text(e.results);
  hash.number(e.offset);
  hash.number(e.count);
  hash.number(e.label);
  hash.number(e.split);
  hash.number(e.sample_rate);
  hash.number(e.duration);
  hash.number(e.start);
  hash.number(e.end);
  hash.number(e.status);
  hash.number(e.stamp.size);
  hash.number(e.stamp.modified);
  hash.number(e.content);
  hash.number(e.rows_hash);
  if (e.measured != nullptr)
    for (const float value : e.measured->of) hash.number(value);
  hash.list(e.targets, [&](float target) { hash.number(target); });
  hash.list(e.labels, [&](std::int32_t label) { hash.number(label); });
  for (const std::size_t column : columns) hash.told(e.texts[column]);
}

std::vector<std::size_t> by_name(const std::vector<std::string>& names) {
  std::vector<std::size_t> out(names.size());
  std::iota(out.begin(), out.end(), std::size_t{0});
  std::sort(out.begin(), out.end(),
            [&](std::size_t a, std::size_t b) { return names[a] < names[b]; });
  return out;
}

}  // namespace

std::string index_hash(const OutputIndex& index) {
  Hash hash;
  const FeatureData whole = whole_of(index);
  const std::vector<std::size_t> remarked = index.remarked();
  add_whole(hash, whole, remarked.size(), [&](std::size_t i) {
    const std::size_t file = remarked[i];
    Ledger::Entry entry = index.entry(file);
    return FeatureData::Remark{static_cast<std::int64_t>(file), index.path(file),
                               index.status(file), std::move(entry.stage), std::move(entry.reason)};
  });
  const std::vector<std::size_t> columns = by_name(whole.columns);
  for (const std::size_t column : columns) hash.told(whole.columns[column]);
  for (std::size_t i = 0; i < index.files(); ++i) add_file(hash, file_of(index, i), columns);
  return hash.value();
}

std::string index_hash(const FeatureData& data) {
  Hash hash;
  add_whole(hash, data, data.remarks.size(),
            [&data](std::size_t i) -> const FeatureData::Remark& { return data.remarks[i]; });
  const std::vector<std::size_t> columns = by_name(data.columns);
  for (const std::size_t column : columns) hash.told(data.columns[column]);
  for (const FeatureData::Entry& e : data.files) add_file(hash, e, columns);
  return hash.value();
}

std::string run_hash(const OutputIndex& index) {
  Hash hash;
  hash.text(to_json(index.feature_settings));
  const std::size_t files = index.run.ledger.counts().found;
  for (std::size_t i = 0; i < files; ++i) {
    hash.text(index.run.source.name(i));
    hash.number(index.order.rows(i));
    hash.number(index.rows_hashes != nullptr && index.order.rows(i) > 0 ? (*index.rows_hashes)[i]
                                                                        : std::uint64_t{0});
  }
  return hash.value();
}

}  // namespace melflow
