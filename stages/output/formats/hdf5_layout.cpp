#include "stages/output/formats/hdf5_layout.h"

#include <hdf5_hl.h>

#include <cstring>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "stages/output/formats/h5_place.h"
#include "stages/output/formats/index_columns.h"
#include "stages/output/formats/root_attributes.h"

namespace melflow {
namespace {

void write_bands(const H5Place& file, const FeatureInfo& info) {
  if (info.column_hz.empty()) return;
  file.list("band_hz", info.column_hz);
  if (!file.writes()) return;
  const Hid bands(H5Dopen2(file, "band_hz", H5P_DEFAULT), H5Dclose, "band_hz");
  h5_check(H5DSset_scale(bands, (info.axis + " centre frequency [Hz]").c_str()), "dimension scale");
}

// Labels the axes of rows and, where columns have frequencies, makes /band_hz the last axis' scale.
void write_axes(const H5Place& file, const H5Place& rows, const OutputIndex& x) {
  const FeatureInfo& info = x.info;
  const std::vector<std::string> axes = x.axes();
  const auto last = static_cast<unsigned>(axes.size() - 1);
  if (!info.column_hz.empty() && file.writes()) {
    const Hid bands(H5Dopen2(file, "band_hz", H5P_DEFAULT), H5Dclose, "band_hz");
    h5_check(H5DSattach_scale(rows, bands, last), "dimension scale");
  }
  for (unsigned i = 0; i <= last && file.writes(); ++i)
    h5_check(H5DSset_label(rows, i, axes[i].c_str()), "label");
  rows.attribute("unit", info.unit);
  if (info.energy_column >= 0)
    rows.attribute("energy_column", static_cast<std::int32_t>(info.energy_column));
}

void write_column(const H5Place& files, const OutputIndex& x, const IndexColumn& column) {
  const std::size_t values = column.values(x);
  if (values == 0) return;
  if (column.type == ColumnType::text)
    return files.texts(column.name, x.files(), [&](std::size_t i) { return column.text(x, i); });
  H5Place::Shape shape{x.files()};
  if (column.per != IndexColumn::Per::file) shape.push_back(values);
  const bool is_packed = column.per == IndexColumn::Per::label;  // mostly zeros
  const std::size_t bytes = values * size_of(column.type);
  files.numbers(
      column.name, column.type, shape,
      [&](std::size_t first, std::size_t n, char* to) {
        for (std::size_t i = first; i < first + n; ++i, to += bytes) column.put(x, i, to);
      },
      is_packed);
}

void write_files(const H5Place& file, const OutputIndex& x) {
  const H5Place files(file, "files");
  files.attribute("root", x.manifest.root());
  for (const IndexColumn& column : index_columns()) write_column(files, x, column);
  H5Place(file, "labels").list("name", x.manifest.label_names());
  H5Place(file, "splits").list("name", x.manifest.split_names());
  if (!x.manifest.target_names().empty())
    H5Place(file, "targets").list("name", x.manifest.target_names());
}

void write_texts(const H5Place& file, const OutputIndex& x) {
  if (x.manifest.text_names().empty()) return;
  const H5Place columns(file, "columns");
  for (std::size_t t = 0; t < x.manifest.text_names().size(); ++t)
    columns.texts(x.manifest.text_names()[t].c_str(), x.files(),
                  [&](std::size_t i) { return x.text(i, t); });
}

void select(hid_t space, const std::vector<hsize_t>& start, const std::vector<hsize_t>& count) {
  h5_check(H5Sselect_hyperslab(space, H5S_SELECT_SET, start.data(), nullptr, count.data(), nullptr),
           "selection");
}

// Makes a dataset for the rows of a split, without bytes of its own: it shows those of /`name`.
Hid make_view(hid_t where, hid_t rows, const std::string& name,
              const OutputIndex::SplitRows& split) {
  const Hid source(H5Dget_space(rows), H5Sclose, "dataspace");
  std::vector<hsize_t> shape(static_cast<std::size_t>(H5Sget_simple_extent_ndims(source)));
  h5_check(H5Sget_simple_extent_dims(source, shape.data(), nullptr), "dataspace");
  shape.front() = static_cast<hsize_t>(split.row_count);
  const Hid space(H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr), H5Sclose,
                  "dataspace");
  const Hid create = without_times(H5P_DATASET_CREATE);
  std::vector<hsize_t> from(shape.size(), 0), to(shape.size(), 0), count = shape;
  for (const OutputIndex::Rows& range : split.rows) {
    from.front() = static_cast<hsize_t>(range.first);
    count.front() = static_cast<hsize_t>(range.count);
    select(source, from, count);
    select(space, to, count);
    h5_check(H5Pset_virtual(create, space, ".", ("/" + name).c_str(), source), "virtual dataset");
    to.front() += count.front();
  }
  h5_check(H5Sselect_all(space), "selection");
  const Hid type(H5Dget_type(rows), H5Tclose, "type");
  return {H5Dcreate2(where, name.c_str(), type, space, H5P_DEFAULT, create, H5P_DEFAULT), H5Dclose,
          split.name + "/" + name};
}

Hid open_rows(hid_t where, const OutputIndex& x) {
  return {H5Dopen2(where, x.info.name.c_str(), H5P_DEFAULT), H5Dclose, x.info.name};
}

// Writes a group for each split: its rows and, where files have one label each, every row's label.
void write_splits(const H5Place& file, hid_t rows, const OutputIndex& x) {
  for (const OutputIndex::SplitRows& split : x.splits()) {
    const H5Place where(file, split.name);
    const Hid view =
        file.writes() ? make_view(where, rows, x.info.name, split) : open_rows(where, x);
    write_axes(file, {view, file.pass()}, x);
    if (x.manifest.has_label_sets() || x.manifest.label_names().empty()) continue;
    std::size_t i = split.first;  // rows are asked for in order
    std::int64_t left = x.rows(i);
    where.list("label", static_cast<std::size_t>(split.row_count), [&](std::size_t) {
      while (left == 0) left = x.rows(++i);
      --left;
      return x.label(i);
    });
  }
}

void write_statistics(const H5Place& file, const ColumnStatistics& s) {
  const H5Place where(file, "statistics");
  where.list("mean", s.mean);
  where.list("std", s.std);
  where.attribute("of", s.of);
  where.attribute("frames", s.frames);
  where.attribute<std::int8_t>("applied", s.is_applied ? 1 : 0);
  if (!s.groups) return;
  const GroupStatistics& groups = *s.groups;
  where.attribute("by", groups.by);
  const H5Place by(where, "by_" + groups.by);
  by.list("name", groups.names);
  by.list("frames", groups.frames);
  const H5Place::Shape shape{groups.names.size(), s.mean.size()};
  for (const auto& [name, values] : {std::pair("mean", &groups.mean), {"std", &groups.std}})
    by.numbers(
        name, ColumnType::float64, shape,
        [&values = *values, row = s.mean.size()](std::size_t first, std::size_t n, char* to) {
          std::memcpy(to, values.data() + first * row, n * row * sizeof(double));
        });
}

void write_remarks(const H5Place& file, const OutputIndex& x) {
  const std::vector<std::size_t> of = x.remarked();
  const H5Place remarks(file, "remarks");
  const std::size_t n = of.size();
  remarks.list("file", n, [&](std::size_t i) { return static_cast<std::int64_t>(of[i]); });
  remarks.list("path", n, [&](std::size_t i) { return x.path(of[i]); });
  remarks.list("status", n, [&](std::size_t i) { return x.status(of[i]); });
  remarks.list("stage", n, [&](std::size_t i) { return x.entry(of[i]).stage; });
  remarks.list("reason", n, [&](std::size_t i) { return x.entry(of[i]).reason; });
}

void write_warnings(const H5Place& file, const OutputIndex& x) {
  const std::vector<std::string> all = x.warnings();
  if (!all.empty()) file.list("warnings", all);
}

std::int8_t stored(bool flag) { return flag ? 1 : 0; }
std::int32_t stored(std::int32_t number) { return number; }
std::int64_t stored(std::int64_t number) { return number; }
std::string stored(const std::string& text) { return text; }
std::string stored(const Value& json) { return to_json(json); }

void write_attributes(const H5Place& file, const OutputIndex& x) {
  for (const RootAttribute& a : root_attributes())
    if (a.is_in(x))
      std::visit([&](const auto& value) { file.attribute(a.name, stored(value)); }, a.value(x));
}

void go_through(const H5Place& file, hid_t rows, const OutputIndex& index) {
  write_bands(file, index.info);
  write_axes(file, {rows, file.pass()}, index);
  write_files(file, index);
  write_texts(file, index);
  write_splits(file, rows, index);
  write_remarks(file, index);
  write_warnings(file, index);
  if (index.statistics != nullptr) write_statistics(file, *index.statistics);
  write_attributes(file, index);
}

}  // namespace

void complete_hdf5(RowFile& file, const std::vector<std::uint64_t>& shape,
                   const OutputIndex& index) {
  file.make_hdf5(
      std::vector<hsize_t>(shape.begin(), shape.end()),
      [&](hid_t h5, hid_t rows) {
        go_through({h5, H5Place::Pass::write}, rows, index);
      },
      [&](hid_t h5) {
        go_through({h5, H5Place::Pass::check}, open_rows(h5, index), index);
      });
}

}  // namespace melflow
