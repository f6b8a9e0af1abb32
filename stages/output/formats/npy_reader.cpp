#include "stages/output/formats/npy_reader.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "pipeline/base/input_file.h"
#include "pipeline/base/problem.h"
#include "pipeline/base/text.h"
#include "stages/files/whole_io.h"
#include "stages/output/formats/npy_file.h"
#include "stages/output/formats/npy_header.h"
#include "stages/output/formats/npy_layout.h"
#include "stages/output/formats/root_attributes.h"
#include "stages/output/formats/stored_json.h"
#include "stages/python_json.h"

namespace melflow {
namespace {

using Json = StoredJson;

constexpr const char* kMagic = "\x93NUMPY";
constexpr const char* kPart = ".part";

// The files beside "out.npy.part" are ".part" files as well.
std::string beside(const std::string& rows, std::string (*name)(const std::string&)) {
  if (!rows.ends_with(kPart)) return name(rows);
  return name(rows.substr(0, rows.size() - std::strlen(kPart))) + kPart;
}

constexpr std::size_t kMostDocument = 1 << 30;  // [bytes]

std::string read_all(const std::string& path) {
  std::uint64_t bytes = 0;
  const UniqueFd fd = open_regular(path, bytes);
  return read_at(fd.get(), 0, bytes, path);
}

NumberType row_type(const std::string& dtype) {
  if (const auto type = number_type(dtype)) return *type;
  throw RunError("rows of type " + dtype);
}

template <class Read>
void or_damaged(const std::string& path, const Read& read) {
  try {
    read();
  } catch (const std::exception& e) {
    throw RunError(
        fmt::format("{}: this file is damaged, or not as docs/output-format.md describes it: {}",
                    path, utf8_or_escaped(e.what())));
  }
}

std::vector<double> numbers_or_nan(const Json& list) {
  std::vector<double> out;
  for (const Json& n : list)
    out.push_back(n.is_null() ? std::numeric_limits<double>::quiet_NaN() : n.get<double>());
  return out;
}

// The document with the bytes of texts that are not UTF-8, which it has as \udc80 to \udcff.
Json parse_with_bytes(const std::string& document) {
  const auto marked = with_marked_bytes(document);
  if (!marked) return parse_stored(without_escaped_bytes(document));
  Json out = parse_stored(*marked);
  restore_all_bytes(out);
  return out;
}

// A number with a fraction or an exponent is no integer: get<>() would convert it.
std::int64_t integer_of(const Json& json) {
  if (!json.is_number_integer()) throw RunError(json.dump() + " where an integer is expected");
  return json.get<std::int64_t>();
}

class TopLevel {
 public:
  explicit TopLevel(const Json& document) : document_(document) {}
  [[nodiscard]] bool has(const std::string& name) const { return document_.contains(name); }
  [[nodiscard]] std::string text(const std::string& name) const {
    const Json& value = document_.at(name);
    return value.is_structured() ? value.dump() : value.get<std::string>();
  }
  [[nodiscard]] std::int64_t integer(const std::string& name) const {
    const Json& value = document_.at(name);
    return value.is_boolean() ? static_cast<std::int64_t>(value.get<bool>()) : integer_of(value);
  }

 private:
  const Json& document_;
};

// Reads the entries that all formats have; nothing where melflow did not write the document.
void read_format(const Json& document, FeatureData& out) {
  if (!document.is_object()) return;
  const auto format = document.find("format"), version = document.find("melflow_version");
  if (format == document.end() || version == document.end()) return;
  if (format->is_number_integer()) out.integers["format"] = format->get<std::int64_t>();
  if (version->is_string()) out.texts["melflow_version"] = version->get<std::string>();
}

void check_rows(int fd, const std::string& path, std::uint64_t file_bytes,
                const FeatureData& data) {
  const NumberType type = row_type(data.dtype);
  const std::string header = NpyFile::header(data.shape, type);
  if (read_at(fd, 0, header.size(), path) != header)
    throw RunError(fmt::format("its header is not that of {} [{}], which the index describes",
                               data.dtype, fmt::join(data.shape, ", ")));
  const std::uint64_t rows =
      checked_product({checked_product(data.shape, "the rows"), size_of(type)}, "the rows");
  if (file_bytes < header.size() || file_bytes - header.size() != rows)
    throw RunError(fmt::format("the file has {} bytes, its header {} and its rows {}", file_bytes,
                               header.size(), rows));
}

// Makes a record of the fields that the header names, without checking the rest of the header.
NpyRecord record_in(std::string_view header, const FeatureData& data) {
  constexpr std::size_t kLongestText = 1 << 20;
  NpyRecord out;
  for (const IndexColumn& column : index_columns()) {
    const std::string field = fmt::format("('{}', '{}", column.name, numpy_name(column.type));
    const std::size_t at = header.find(field);
    std::size_t values = column.values(data);
    if (values == 0 || (at == header.npos && !column.is_needed(data))) continue;
    if (column.type == ColumnType::text && at != header.npos) {
      values = 0;
      for (std::size_t i = at + field.size();
           i < header.size() && header[i] >= '0' && header[i] <= '9' && values < kLongestText; ++i)
        values = 10 * values + static_cast<std::size_t>(header[i] - '0');
    }
    out.add(column, values);
  }
  return out;
}

void read_index(const std::string& path, FeatureData& out) {
  const std::string bytes = read_all(path);
  const auto count = static_cast<std::uint64_t>(out.integer("found").value_or(0));
  const NpyRecord record = record_in(std::string_view(bytes).substr(0, kLongestNpyHeader), out);
  const std::string header = npy_header(record.type(), {&count, 1});
  if (!bytes.starts_with(header) || (bytes.size() - header.size()) % record.bytes() != 0 ||
      (bytes.size() - header.size()) / record.bytes() != count)
    throw RunError(fmt::format("{} is not a list of {} files", path, count));
  out.files.resize(count);
  for (const NpyRecord::Field& field : record.fields())
    out.has_label_sets = out.has_label_sets || field.column->per == IndexColumn::Per::label;
  std::string_view rest = std::string_view(bytes).substr(header.size());
  for (FeatureData::Entry& e : out.files)
    for (const NpyRecord::Field& field : record.fields()) {
      field.column->set(rest.substr(0, field.bytes()), e);
      rest.remove_prefix(field.bytes());
    }
}

void read_texts(const Json& columns, FeatureData& out) {
  for (const auto& [name, texts] : columns.items()) {
    if (texts.size() != out.files.size())
      throw RunError(fmt::format("the column {} has {} texts, not {}", excerpt(name), texts.size(),
                                 out.files.size()));
    out.columns.push_back(name);
    for (std::size_t i = 0; i < texts.size(); ++i)
      out.files[i].texts.push_back(texts.at(i).get<std::string>());
  }
}

GroupStatistics read_groups(const Json& from) {
  GroupStatistics out;
  from.at("column").get_to(out.by);
  from.at("name").get_to(out.names);
  for (const Json& n : from.at("frames")) out.frames.push_back(integer_of(n));
  for (const auto& [name, to] : {std::pair("mean", &out.mean), {"std", &out.std}})
    for (const Json& group : from.at(name)) {
      const std::vector<double> values = numbers_or_nan(group);
      to->insert(to->end(), values.begin(), values.end());
    }
  return out;
}

class NpyRows final : public FeatureRows {
 public:
  NpyRows(std::string path, UniqueFd fd, NumberType type, std::uint64_t values_per_row)
      : path_(std::move(path)), fd_(std::move(fd)), type_(type), values_per_row_(values_per_row) {}

  void read(std::uint64_t offset, std::uint64_t count, std::byte* to) const override {
    const std::size_t row_bytes = values_per_row_ * size_of(type_);
    const std::string bytes =
        read_at(fd_.get(), NpyFile::kDataOffset + offset * row_bytes, count * row_bytes, path_);
    if (bytes.size() != count * row_bytes) throw RunError(path_ + ": ends before its rows do");
    std::memcpy(to, bytes.data(), bytes.size());
  }
  [[nodiscard]] RowPlaces places() const override {
    RowPlaces out;
    out.at = NpyFile::kDataOffset;
    return out;
  }

 private:
  std::string path_;
  UniqueFd fd_;
  NumberType type_;
  std::uint64_t values_per_row_;
};

}  // namespace

bool is_npy(const std::string& path) {
  std::uint64_t bytes = 0;
  const UniqueFd file = open_regular(path, bytes);
  return read_at(file.get(), 0, std::strlen(kMagic), path) == kMagic;
}

FeatureContents read_beside(
    const std::string& path, const std::string& ending,
    const std::function<std::unique_ptr<const FeatureRows>(FeatureData&)>& open) {
  const bool has_name = path.ends_with(ending) || path.ends_with(ending + kPart);
  const std::string document = has_name ? beside(path, npy_document_path) : "";
  if (document.empty() || ::access(document.c_str(), F_OK) != 0)
    throw RunError(
        fmt::format("{}: this is a {} file, but no rows that melflow wrote{}; name an output of "
                    "`melflow run`",
                    path, ending, has_name ? fmt::format(" (there is no {})", document) : ""));
  FeatureContents out;
  FeatureData& data = out.data;
  Json about, with_bytes;
  or_damaged(path, [&] {
    const std::string text = InputFile(document).read_all(kMostDocument);
    about = parse_stored(without_escaped_bytes(text));
    if (text.find("\\udc") != text.npos) with_bytes = parse_with_bytes(text);
  });
  const Json& names = with_bytes.is_null() ? about : with_bytes;
  read_format(about, data);
  if (!data.integer("format"))
    throw RunError(document + ": this is not an index that melflow wrote");
  check_format(path, data);
  or_damaged(path, [&] {
    read_root_attributes(TopLevel(about), data);
    for (const Json& n : about.at("shape"))
      data.shape.push_back(static_cast<std::uint64_t>(integer_of(n)));
    check_axes(data);
    about.at("dtype").get_to(data.dtype);
    about.at("unit").get_to(data.unit);
    names.at("root").get_to(data.root);
    names.at("labels").get_to(data.labels);
    about.at("splits").get_to(data.splits);
    if (about.contains("targets")) about.at("targets").get_to(data.targets);
    if (about.contains("statistics")) {
      const Json& s = about.at("statistics");
      ColumnStatistics& out_s = data.statistics.emplace();
      s.at("of").get_to(out_s.of);
      out_s.frames = integer_of(s.at("frames"));
      s.at("applied").get_to(out_s.is_applied);
      out_s.mean = numbers_or_nan(s.at("mean"));
      out_s.std = numbers_or_nan(s.at("std"));
    }
    if (data.statistics && about.contains("statistics_by"))
      data.statistics->groups = read_groups(names.at("statistics_by"));
    data.band_hz = numbers_or_nan(about.value("band_hz", Json::array()));
    read_index(beside(path, npy_index_path), data);
    if (about.contains("columns")) read_texts(names.at("columns"), data);
    for (const Json& r : names.at("remarks")) {
      const auto file = static_cast<std::size_t>(integer_of(r.at("file")));
      const FeatureData::Entry& entry = data.files.at(file);  // its path has the bytes of the name
      data.remarks.push_back({static_cast<std::int64_t>(file), entry.path, entry.status,
                              r.at("stage").get<std::string>(), r.at("reason").get<std::string>()});
    }
    if (about.contains("warnings"))
      data.warnings = names.at("warnings").get<std::vector<std::string>>();
    out.rows = open(data);
  });
  return out;
}

FeatureContents read_npy(const std::string& path, std::uint64_t file_bytes) {
  return read_beside(path, kNpyEnding, [&](FeatureData& data) {
    std::uint64_t now = 0;
    UniqueFd fd = open_regular(path, now);
    check_rows(fd.get(), path, file_bytes, data);
    if (data.rows() > 0) data.rows_at = NpyFile::kDataOffset;
    return std::make_unique<NpyRows>(path, std::move(fd), row_type(data.dtype),
                                     data.values_per_row());
  });
}

}  // namespace melflow
