#include "stages/output/hdf5_layout.h"

#include <hdf5_hl.h>

#include <algorithm>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "stages/output/feature_hash.h"
#include "stages/raii/hdf5.h"
#include "stages/version.h"

namespace melflow {
namespace {

constexpr std::size_t kAtOnce = 8192;  // entries converted at a time, whatever the corpus' size

Hid string_type() {
  Hid type(H5Tcopy(H5T_C_S1), H5Tclose, "string type");
  h5_check(H5Tset_size(type, H5T_VARIABLE), "string type");
  h5_check(H5Tset_cset(type, H5T_CSET_UTF8), "string type");
  return type;
}

Hid status_type() {
  Hid type(H5Tenum_create(H5T_STD_I8LE), H5Tclose, "status type");
  for (std::int8_t value = 0; const char* name : OutputIndex::kStatusNames) {
    h5_check(H5Tenum_insert(type, name, &value), name);
    ++value;
  }
  return type;
}

// A column of `count` entries, value(i) each, of memory type `memory`. Strings come as std::string.
template <class T>
void column(hid_t where, const char* name, hid_t stored, hid_t memory, std::size_t count,
            const std::function<T(std::size_t)>& value) {
  const hsize_t size = count;
  const Hid space(H5Screate_simple(1, &size, nullptr), H5Sclose, name);
  const Hid set(H5Dcreate2(where, name, stored, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
                H5Dclose, name);
  std::vector<T> values;
  std::vector<const char*> texts;
  for (std::size_t at = 0; at < count; at += kAtOnce) {
    const hsize_t start = at, n = std::min(kAtOnce, count - at);
    values.clear();
    for (std::size_t i = 0; i < n; ++i) values.push_back(value(at + i));
    const void* data = values.data();
    if constexpr (std::is_same_v<T, std::string>) {
      texts.clear();
      for (const std::string& v : values) texts.push_back(v.c_str());
      data = texts.data();
    }
    h5_check(H5Sselect_hyperslab(space, H5S_SELECT_SET, &start, nullptr, &n, nullptr), name);
    const Hid piece(H5Screate_simple(1, &n, nullptr), H5Sclose, name);
    h5_check(H5Dwrite(set, memory, piece, space, H5P_DEFAULT, data), name);
  }
}

struct TableShape {
  std::size_t rows = 0, columns = 0;
};

// Numbers in rows; fill(i, row) gets zeros. Both axes are at least 1.
template <class T>
void table(hid_t where, const char* name, hid_t stored, hid_t memory, TableShape shape, bool packed,
           const std::function<void(std::size_t, T*)>& fill) {
  const hsize_t size[] = {shape.rows, shape.columns};
  const Hid space(H5Screate_simple(2, size, nullptr), H5Sclose, name);
  const Hid create(H5Pcreate(H5P_DATASET_CREATE), H5Pclose, name);
  const std::size_t at_once = std::clamp<std::size_t>(kAtOnce * 8 / shape.columns, 1, shape.rows);
  if (packed) {
    const hsize_t chunk[] = {at_once, shape.columns};
    h5_check(H5Pset_chunk(create, 2, chunk), name);
    h5_check(H5Pset_deflate(create, 1), name);
  }
  const Hid set(H5Dcreate2(where, name, stored, space, H5P_DEFAULT, create, H5P_DEFAULT), H5Dclose,
                name);
  std::vector<T> values;
  for (std::size_t at = 0; at < shape.rows; at += at_once) {
    const hsize_t start[] = {at, 0}, n[] = {std::min(at_once, shape.rows - at), shape.columns};
    values.assign(n[0] * n[1], T{});
    for (std::size_t i = 0; i < n[0]; ++i) fill(at + i, values.data() + i * shape.columns);
    h5_check(H5Sselect_hyperslab(space, H5S_SELECT_SET, start, nullptr, n, nullptr), name);
    const Hid piece(H5Screate_simple(2, n, nullptr), H5Sclose, name);
    h5_check(H5Dwrite(set, memory, piece, space, H5P_DEFAULT, values.data()), name);
  }
}

void strings(hid_t where, const char* name, std::size_t count,
             const std::function<std::string(std::size_t)>& value) {
  const Hid type = string_type();
  column<std::string>(where, name, type, type, count, value);
}

void attribute(hid_t where, const char* name, const std::string& text) {
  const Hid type = string_type();
  const Hid space(H5Screate(H5S_SCALAR), H5Sclose, name);
  const Hid a(H5Acreate2(where, name, type, space, H5P_DEFAULT, H5P_DEFAULT), H5Aclose, name);
  const char* data = text.c_str();
  h5_check(H5Awrite(a, type, &data), name);
}

template <class T>
void attribute(hid_t where, const char* name, hid_t stored, hid_t memory, T value) {
  const Hid space(H5Screate(H5S_SCALAR), H5Sclose, name);
  const Hid a(H5Acreate2(where, name, stored, space, H5P_DEFAULT, H5P_DEFAULT), H5Aclose, name);
  h5_check(H5Awrite(a, memory, &value), name);
}

Hid group(hid_t file, const char* name) {
  return {H5Gcreate2(file, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), H5Gclose, name};
}

void write_bands(hid_t file, const FeatureInfo& info) {
  if (info.column_hz.empty()) return;
  column<double>(file, "band_hz", H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, info.column_hz.size(),
                 [&](std::size_t i) { return info.column_hz[i]; });
  const Hid bands(H5Dopen2(file, "band_hz", H5P_DEFAULT), H5Dclose, "band_hz");
  h5_check(H5DSset_scale(bands, (info.axis + " centre frequency [Hz]").c_str()), "dimension scale");
}

// Axis labels of rows, and where a column has a frequency, /band_hz as the scale of the last axis.
void write_axes(hid_t file, hid_t rows, const OutputIndex& x) {
  const FeatureInfo& info = x.info;
  const std::vector<std::string> axes = x.axes();
  const auto last = static_cast<unsigned>(axes.size() - 1);
  if (!info.column_hz.empty()) {
    const Hid bands(H5Dopen2(file, "band_hz", H5P_DEFAULT), H5Dclose, "band_hz");
    h5_check(H5DSattach_scale(rows, bands, last), "dimension scale");
  }
  for (unsigned i = 0; i <= last; ++i) h5_check(H5DSset_label(rows, i, axes[i].c_str()), "label");
  attribute(rows, "unit", info.unit);
  if (info.energy_column >= 0)
    attribute<std::int32_t>(rows, "energy_column", H5T_STD_I32LE, H5T_NATIVE_INT32,
                            info.energy_column);
}

// One for each label that the file has, else nought; mostly noughts, so packed.
void write_label_sets(hid_t files, const OutputIndex& x) {
  const std::size_t labels = x.label_names().size();
  table<std::uint8_t>(files, "labels", H5T_STD_U8LE, H5T_NATIVE_UINT8, {x.files(), labels}, true,
                      [&](std::size_t i, std::uint8_t* row) {
                        for (const std::int32_t l : x.labels(i)) row[l] = 1;
                      });
}

void write_files(hid_t file, const OutputIndex& x) {
  const std::size_t count = x.files();
  const Hid files = group(file, "files");
  attribute(files, "root", x.root());
  strings(files, "path", count, [&](std::size_t i) { return x.path(i); });
  const std::vector<std::int64_t> offsets = x.offsets();
  column<std::int64_t>(files, "offset", H5T_STD_I64LE, H5T_NATIVE_INT64, count,
                       [&](std::size_t i) { return offsets[i]; });
  column<std::int64_t>(files, "count", H5T_STD_I64LE, H5T_NATIVE_INT64, count,
                       [&](std::size_t i) { return x.rows(i); });
  column<std::int32_t>(files, "label", H5T_STD_I32LE, H5T_NATIVE_INT32, count,
                       [&](std::size_t i) { return x.label(i); });
  column<std::int8_t>(files, "split", H5T_STD_I8LE, H5T_NATIVE_INT8, count,
                      [&](std::size_t i) { return x.split(i); });
  column<std::int32_t>(files, "sample_rate", H5T_STD_I32LE, H5T_NATIVE_INT32, count,
                       [&](std::size_t i) { return x.sample_rate(i); });
  column<double>(files, "duration", H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, count,
                 [&](std::size_t i) { return x.duration(i); });
  column<std::int64_t>(files, "size", H5T_STD_I64LE, H5T_NATIVE_INT64, count,
                       [&](std::size_t i) { return x.stamp(i).size; });
  column<std::int64_t>(files, "modified", H5T_STD_I64LE, H5T_NATIVE_INT64, count,
                       [&](std::size_t i) { return x.stamp(i).modified; });
  if (x.has_contents())
    column<std::uint64_t>(files, "content", H5T_STD_U64LE, H5T_NATIVE_UINT64, count,
                          [&](std::size_t i) { return x.content(i); });
  const Hid status = status_type();
  column<std::int8_t>(files, "status", status, status, count,
                      [&](std::size_t i) { return x.status(i); });
  const Hid labels = group(file, "labels"), splits = group(file, "splits");
  const auto &label_names = x.label_names(), &split_names = x.split_names();
  strings(labels, "name", label_names.size(), [&](std::size_t i) { return label_names[i]; });
  strings(splits, "name", split_names.size(), [&](std::size_t i) { return split_names[i]; });
  if (x.has_label_sets() && !label_names.empty()) write_label_sets(files, x);
  if (x.target_names().empty()) return;
  const Hid targets = group(file, "targets");
  strings(targets, "name", x.target_names().size(),
          [&](std::size_t i) { return x.target_names()[i]; });
  table<float>(files, "targets", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, {count, x.target_names().size()},
               false, [&](std::size_t i, float* row) {
                 for (std::size_t t = 0; t < x.target_names().size(); ++t) row[t] = x.target(i, t);
               });
}

void select(hid_t space, const std::vector<hsize_t>& start, const std::vector<hsize_t>& count) {
  h5_check(H5Sselect_hyperslab(space, H5S_SELECT_SET, start.data(), nullptr, count.data(), nullptr),
           "selection");
}

// The rows of a split as a dataset of their own, which has no bytes: it shows those of /mel.
Hid make_view(hid_t where, hid_t rows, const OutputIndex::SplitRows& split) {
  const Hid source(H5Dget_space(rows), H5Sclose, "dataspace");
  std::vector<hsize_t> shape(static_cast<std::size_t>(H5Sget_simple_extent_ndims(source)));
  h5_check(H5Sget_simple_extent_dims(source, shape.data(), nullptr), "dataspace");
  shape.front() = static_cast<hsize_t>(split.row_count);
  const Hid space(H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr), H5Sclose,
                  "dataspace");
  const Hid create(H5Pcreate(H5P_DATASET_CREATE), H5Pclose, "dataset creation");
  std::vector<hsize_t> from(shape.size(), 0), to(shape.size(), 0), count = shape;
  for (const OutputIndex::Rows& range : split.rows) {
    from.front() = static_cast<hsize_t>(range.first);
    count.front() = static_cast<hsize_t>(range.count);
    select(source, from, count);
    select(space, to, count);
    h5_check(H5Pset_virtual(create, space, ".", "/mel", source), "virtual dataset");
    to.front() += count.front();
  }
  h5_check(H5Sselect_all(space), "selection");
  const Hid type(H5Dget_type(rows), H5Tclose, "type");
  return {H5Dcreate2(where, "mel", type, space, H5P_DEFAULT, create, H5P_DEFAULT), H5Dclose,
          split.name + "/mel"};
}

// A group for each split: its rows, and where files have one label each, that of every row.
void write_splits(hid_t file, hid_t rows, const OutputIndex& x) {
  for (const OutputIndex::SplitRows& split : x.splits()) {
    const Hid where = group(file, split.name.c_str());
    write_axes(file, make_view(where, rows, split), x);
    if (x.has_label_sets() || x.label_names().empty()) continue;
    std::size_t i = split.first;  // asked in order
    std::int64_t left = x.rows(i);
    column<std::int32_t>(where, "label", H5T_STD_I32LE, H5T_NATIVE_INT32,
                         static_cast<std::size_t>(split.row_count), [&](std::size_t) {
                           while (left == 0) left = x.rows(++i);
                           --left;
                           return x.label(i);
                         });
  }
}

void write_statistics(hid_t file, const ColumnStatistics& s) {
  const Hid where = group(file, "statistics");
  for (const auto& [name, values] : {std::pair{"mean", &s.mean}, std::pair{"std", &s.std}})
    column<double>(where, name, H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, values->size(),
                   [&values = values](std::size_t i) { return (*values)[i]; });
  attribute(where, "of", s.of);
  attribute<std::int64_t>(where, "frames", H5T_STD_I64LE, H5T_NATIVE_INT64, s.frames);
  attribute<std::int8_t>(where, "applied", H5T_STD_I8LE, H5T_NATIVE_INT8, s.is_applied ? 1 : 0);
}

void write_remarks(hid_t file, const OutputIndex& x) {
  const std::vector<std::size_t> remarked = x.remarked();
  const Hid remarks = group(file, "remarks");
  const std::size_t n = remarked.size();
  column<std::int64_t>(remarks, "file", H5T_STD_I64LE, H5T_NATIVE_INT64, n,
                       [&](std::size_t i) { return static_cast<std::int64_t>(remarked[i]); });
  strings(remarks, "path", n, [&](std::size_t i) { return x.path(remarked[i]); });
  const Hid status = status_type();
  column<std::int8_t>(remarks, "status", status, status, n,
                      [&](std::size_t i) { return x.status(remarked[i]); });
  strings(remarks, "stage", n, [&](std::size_t i) { return x.entry(remarked[i]).stage; });
  strings(remarks, "reason", n, [&](std::size_t i) { return x.entry(remarked[i]).reason; });
}

void write_attributes(hid_t file, const OutputIndex& x) {
  attribute(file, "melflow_version", std::string(kVersion));
  attribute<std::int32_t>(file, "format", H5T_STD_I32LE, H5T_NATIVE_INT32, OutputIndex::kFormat);
  attribute<std::int8_t>(file, "complete", H5T_STD_I8LE, H5T_NATIVE_INT8, x.complete ? 1 : 0);
  for (const auto& [name, n] : x.counts())
    attribute(file, name, H5T_STD_I64LE, H5T_NATIVE_INT64, n);
  attribute(file, "config", to_json(x.run.settings.config));
  attribute(file, "features", to_json(x.contract));
  attribute(file, "feature_hash", feature_hash(x.contract));
  if (!x.info.preset.empty()) attribute(file, "preset", x.info.preset);
  attribute(file, "backend", x.info.backend);
  attribute(file, "instruction_set", x.info.instruction_set);
  const std::pair<const char*, int> frames[] = {
      {"sample_rate", x.info.sample_rate}, {"n_fft", x.info.n_fft}, {"hop_length", x.info.hop}};
  for (const auto& [name, n] : frames)
    attribute(file, name, H5T_STD_I32LE, H5T_NATIVE_INT32, static_cast<std::int32_t>(n));
}

}  // namespace

void write_layout(hid_t file, hid_t rows, const OutputIndex& index) {
  write_bands(file, index.info);
  write_axes(file, rows, index);
  write_files(file, index);
  write_splits(file, rows, index);
  write_remarks(file, index);
  if (index.statistics != nullptr) write_statistics(file, *index.statistics);
  write_attributes(file, index);
}

}  // namespace melflow
