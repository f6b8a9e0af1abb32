#include "stages/output/formats/npy_layout.h"

#define XXH_INLINE_ALL

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "pipeline/base/text.h"
#include "stages/output/formats/appender.h"
#include "stages/output/formats/npy_header.h"
#include "stages/output/formats/root_attributes.h"

namespace melflow {
namespace {

NpyRecord record_of(const OutputIndex& x) {
  NpyRecord out;
  for (const IndexColumn& column : index_columns()) {
    std::size_t values = column.values(x);
    if (column.type == ColumnType::text)  // as long as the longest
      for (std::size_t i = 0; i < x.files(); ++i)
        values = std::max(values, column.text(x, i).size());
    if (values > 0) out.add(column, values);
  }
  out.pad();
  return out;
}

Value text(std::string of) { return Value::scalar(std::move(of), {}, true); }

template <class T>
Value json_number(T of) {
  return Value::scalar(fmt::format("{}", of));
}

template <class T>
Value as_json(T number_or_flag) {
  return json_number(number_or_flag);
}
Value as_json(const std::string& of) { return text(of); }
Value as_json(const Value& json) { return json; }

template <class List, class Convert>
Value list(const List& of, const Convert& convert) {
  std::vector<Value> out;
  out.reserve(of.size());
  for (const auto& one : of) out.push_back(convert(one));
  return Value::list(std::move(out));
}

Value texts(const std::vector<std::string>& of) { return list(of, text); }

Value numbers(const std::vector<double>& of) {
  return list(of, [](double n) { return std::isfinite(n) ? json_number(n) : Value(); });
}

const char* status_name(FeatureData::Status status) {
  return FeatureData::kStatusNames[static_cast<std::size_t>(status)];
}

Value remark(const OutputIndex& x, std::size_t file) {
  const Ledger::Entry entry = x.entry(file);
  return Value::map({{"file", json_number(file), {}},
                     {"path", text(x.path(file)), {}},
                     {"status", text(status_name(x.status(file))), {}},
                     {"stage", text(entry.stage), {}},
                     {"reason", text(entry.reason), {}}});
}

Value statistics(const ColumnStatistics& of) {
  return Value::map({{"of", text(of.of), {}},
                     {"frames", json_number(of.frames), {}},
                     {"applied", json_number(of.is_applied), {}},
                     {"mean", numbers(of.mean), {}},
                     {"std", numbers(of.std), {}}});
}

std::string json(const Value& value) { return utf8_or_escaped(to_json(value)); }

std::string without_ending(const std::string& rows) {
  return rows.substr(0, rows.size() - std::strlen(kNpyEnding));
}

}  // namespace

std::string npy_index_path(const std::string& rows) { return without_ending(rows) + ".index.npy"; }

std::string npy_document_path(const std::string& rows) {
  return without_ending(rows) + ".index.json";
}

void NpyRecord::pad() {
  const std::size_t rest = bytes() % 8;
  if (rest > 0) fields_.back().values += 8 - rest;
}

std::size_t NpyRecord::bytes() const {
  std::size_t out = 0;
  for (const Field& field : fields_) out += field.bytes();
  return out;
}

std::string NpyRecord::type() const {
  std::vector<std::string> out;
  for (const auto& [column, values] : fields_) {
    const char* type = numpy_name(column->type);
    if (column->type == ColumnType::text)
      out.push_back(fmt::format("('{}', '{}{}')", column->name, type, values));
    else if (column->per != IndexColumn::Per::file)
      out.push_back(fmt::format("('{}', '{}', ({},))", column->name, type, values));
    else
      out.push_back(fmt::format("('{}', '{}')", column->name, type));
  }
  return fmt::format("[{}]", fmt::join(out, ", "));
}

namespace {

void write_npy_index(const PartFile& file, const OutputIndex& x) {
  const NpyRecord record = record_of(x);
  const std::uint64_t count = x.files();
  Appender out(file);
  out.add(npy_header(record.type(), {&count, 1}));
  const std::size_t size = record.bytes();
  std::string bytes;
  for (std::size_t i = 0; i < count; ++i) {
    bytes.assign(size, '\0');
    char* to = bytes.data();
    for (const NpyRecord::Field& field : record.fields()) {
      if (field.column->type == ColumnType::text)
        field.column->text(x, i).copy(to, field.bytes());
      else
        field.column->put(x, i, to);
      to += field.bytes();
    }
    out.add(bytes);
  }
  out.finish();
}

void write_npy_document(const PartFile& file, std::span<const std::uint64_t> shape, NumberType type,
                        const OutputIndex& x) {
  Appender out(file);
  auto begin = [&, before = "{"](const char* name) mutable {
    out.add(fmt::format("{}\n{}: ", before, json(text(name))));
    before = ",";
  };
  const auto entry = [&](const char* name, const Value& value) {
    begin(name);
    out.add(json(value));
  };
  for (const RootAttribute& a : root_attributes())
    if (a.is_in(x))
      std::visit([&](const auto& value) { entry(a.name, as_json(value)); }, a.value(x));
  entry("shape", list(shape, json_number<std::uint64_t>));
  entry("dtype", text(to_text(type)));
  entry("axes", texts(x.axes()));
  entry("unit", text(x.info.unit));
  if (x.info.energy_column >= 0) entry("energy_column", json_number(x.info.energy_column));
  if (!x.info.column_hz.empty()) entry("band_hz", numbers(x.info.column_hz));
  entry("root", text(x.manifest.root()));
  entry("labels", texts(x.manifest.label_names()));
  entry("splits", texts(x.manifest.split_names()));
  if (!x.manifest.target_names().empty()) entry("targets", texts(x.manifest.target_names()));
  entry("status", list(std::span(FeatureData::kStatusNames), text));
  if (x.statistics != nullptr) entry("statistics", statistics(*x.statistics));
  if (const auto warnings = x.warnings(); !warnings.empty()) entry("warnings", texts(warnings));
  // Written one by one: there may be as many as files.
  const auto each = [&](std::size_t count, const auto& one) {
    const char* before = "[\n";
    for (std::size_t i = 0; i < count; ++i) {
      out.add(before + json(one(i)));
      before = ",\n";
    }
    out.add(*before == '[' ? "[]" : "]");
  };
  if (const auto& names = x.manifest.text_names(); !names.empty()) {
    begin("columns");
    for (std::size_t t = 0; t < names.size(); ++t) {
      out.add(fmt::format("{}{}: ", t == 0 ? "{" : ",\n", json(text(names[t]))));
      each(x.files(), [&](std::size_t i) { return text(x.text(i, t)); });
    }
    out.add("}");
  }
  if (x.statistics != nullptr && x.statistics->groups) {
    const GroupStatistics& groups = *x.statistics->groups;
    const std::size_t columns = x.statistics->mean.size();
    begin("statistics_by");
    out.add(fmt::format("{{\"column\": {},\n\"name\": ", json(text(groups.by))));
    each(groups.names.size(), [&](std::size_t g) { return text(groups.names[g]); });
    out.add(",\n\"frames\": " + json(list(groups.frames, json_number<std::int64_t>)));
    for (const auto& [name, values] : {std::pair("mean", &groups.mean), {"std", &groups.std}}) {
      out.add(fmt::format(",\n\"{}\": ", name));
      each(groups.names.size(), [&, &values = *values](std::size_t g) {
        const double* first = values.data() + g * columns;
        return numbers({first, first + columns});
      });
    }
    out.add("}");
  }
  begin("remarks");
  const auto& remarked = x.remarked();
  each(remarked.size(), [&](std::size_t i) { return remark(x, remarked[i]); });
  out.add("\n}\n");
  out.finish();
}

}  // namespace

NpyIndexFiles::NpyIndexFiles(const std::string& rows, const char* stage, Existing existing)
    : index(npy_index_path(rows), stage, existing,
            has_one_of({"('offset', '<i8'), ('count', '<i8')"})),
      document(npy_document_path(rows), stage, existing, has_one_of({"\"melflow_version\""})) {}

void NpyIndexFiles::write(std::span<const std::uint64_t> shape, NumberType type,
                          const OutputIndex& x) const {
  write_npy_index(index, x);
  write_npy_document(document, shape, type, x);
}

}  // namespace melflow
