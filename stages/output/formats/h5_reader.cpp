#include "stages/output/formats/h5_reader.h"

#include <algorithm>
#include <memory>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "pipeline/base/problem.h"
#include "stages/output/formats/h5_number_type.h"
#include "stages/output/formats/h5_values.h"
#include "stages/output/formats/index_columns.h"
#include "stages/output/formats/root_attributes.h"

namespace melflow {
namespace {

class RootGroup {
 public:
  explicit RootGroup(const OpenH5& file) : file_(file) {}
  [[nodiscard]] bool has(const std::string& name) const {
    const htri_t is_there = H5Aexists(file_.id, name.c_str());
    h5_check(is_there, "looking for the attribute " + name);
    return is_there > 0;
  }
  [[nodiscard]] std::string text(const std::string& name) const {
    return H5Attribute(file_, file_.id, name).text();
  }
  [[nodiscard]] std::int64_t integer(const std::string& name) const {
    return H5Attribute(file_, file_.id, name).integer();
  }

 private:
  const OpenH5& file_;
};

// Reads the attributes that all formats have; nothing where melflow did not write the file.
void read_format(const OpenH5& file, FeatureData& out) {
  const RootGroup root(file);
  if (!root.has("format") || !root.has("melflow_version")) return;
  const H5Attribute format(file, file.id, "format"), version(file, file.id, "melflow_version");
  if (format.is(H5T_INTEGER)) out.integers["format"] = format.integer();
  if (version.is(H5T_STRING)) out.texts["melflow_version"] = version.text();
}

// The path of the dataset of rows.
std::string rows_path(const FeatureData& data) {
  const std::string name = data.rows_name();
  if (name.empty() || name.find('/') != name.npos)
    throw RunError(fmt::format("the attribute 'rows' is '{}', which names no dataset", name));
  return "/" + name;
}

// Reads the filters of the rows: those of ChunkCodec, in its order.
void read_filters(hid_t made, std::size_t value_bytes, const std::string& name, RowPlaces& out) {
  const int filters = H5Pget_nfilters(made);
  h5_check(filters, name);
  for (int i = 0; i < filters; ++i) {
    unsigned flags = 0, value = 0;
    std::size_t values = 1;
    const H5Z_filter_t filter = H5Pget_filter2(made, static_cast<unsigned>(i), &flags, &values,
                                               &value, 0, nullptr, nullptr);
    if (filter == H5Z_FILTER_SHUFFLE && i == 0 && values == 1 && value == value_bytes)
      out.is_shuffled = true;
    else if (filter == H5Z_FILTER_DEFLATE && i == filters - 1)
      out.is_deflated = true;
    else
      throw RunError(fmt::format(
          "{} has the filter {} in the place {} of {}, where only shuffle of {} bytes "
          "({}) and deflate ({}) after it can be",
          name, filter, i + 1, filters, value_bytes, H5Z_FILTER_SHUFFLE, H5Z_FILTER_DEFLATE));
  }
}

// Reads all but the chunks. Throws where rows are neither contiguous nor in chunks of whole rows.
RowPlaces read_layout(const OpenH5& file, hid_t rows, const std::string& name,
                      std::size_t value_bytes, const FeatureData& data) {
  RowPlaces out;
  if (std::count(data.shape.begin(), data.shape.end(), 0) > 0) return out;
  const Hid made(H5Dget_create_plist(rows), H5Pclose, name);
  const H5D_layout_t layout = H5Pget_layout(made);
  if (layout == H5D_CONTIGUOUS) {
    const std::uint64_t bytes =
        checked_product({checked_product(data.shape, name), value_bytes}, name);
    out.at = H5Dget_offset(rows);
    if (out.at > file.bytes || bytes > file.bytes - out.at)
      throw RunError(fmt::format("{} has {} bytes from {} on, and the file has {}", name, bytes,
                                 out.at, file.bytes));
    return out;
  }
  if (layout != H5D_CHUNKED)
    throw RunError(name +
                   " is stored in the head of the file (layout compact), where rows are in "
                   "one piece or in chunks");
  std::vector<hsize_t> chunk(data.shape.size());
  h5_check(H5Pget_chunk(made, static_cast<int>(chunk.size()), chunk.data()), name);
  if (chunk.front() == 0 || !std::equal(chunk.begin() + 1, chunk.end(), data.shape.begin() + 1))
    throw RunError(fmt::format("{} has chunks of [{}], which are no whole rows of [{}]", name,
                               fmt::join(chunk, ", "), fmt::join(data.shape, ", ")));
  out.chunk_rows = chunk.front();
  const std::uint64_t bytes =
      checked_product({checked_product({chunk.begin(), chunk.end()}, name), value_bytes}, name);
  if (bytes / kMostUnpacked > file.bytes)
    throw RunError(
        fmt::format("{} has chunks of {} bytes, and the file has {}", name, bytes, file.bytes));
  read_filters(made, value_bytes, name, out);
  return out;
}

RowPlaces read_shape(const OpenH5& file, hid_t rows, const std::string& name, FeatureData& out) {
  const Hid space(H5Dget_space(rows), H5Sclose, name);
  out.shape = h5_shape(space, name);
  check_axes(out);
  const Hid type(H5Dget_type(rows), H5Tclose, name);
  check_storage(rows, checked_product({checked_product(out.shape, name), H5Tget_size(type)}, name),
                file, name);
  if (const auto known = number_type_of(type)) {
    out.dtype = to_text(*known);
  } else {
    out.dtype = fmt::format("{}{}", H5Tget_class(type) == H5T_FLOAT ? "float" : "type of ",
                            8 * H5Tget_size(type));
    if (number_type(out.dtype)) out.dtype += " with other bytes than little-endian ones";
  }
  out.unit = text_attribute(file, rows, "unit");
  RowPlaces places = read_layout(file, rows, name, H5Tget_size(type), out);
  if (out.rows() > 0 && places.chunk_rows == 0) out.rows_at = places.at;
  if (has_object(file.id, "/band_hz"))  // else the columns are no frequencies
    out.band_hz = H5Dataset(file, "/band_hz").numbers<double>();
  return places;
}

void read_column(const OpenH5& file, const IndexColumn& column, FeatureData& out) {
  const std::string name = std::string("/files/") + column.name;
  const std::size_t values = column.values(out);
  if (values == 0 || (!has_object(file.id, name) && !column.is_needed(out))) return;
  const H5Dataset set(file, name);
  if (column.per == IndexColumn::Per::label) out.has_label_sets = true;
  const std::size_t count = checked_product({out.files.size(), values}, name);
  if (set.count() != count)
    throw RunError(fmt::format("{} has {} values, not {}", name, set.count(), count));
  if (column.type == ColumnType::text) {
    const std::vector<std::string> texts = set.texts();
    for (std::size_t i = 0; i < texts.size(); ++i) column.set(texts[i], out.files[i]);
    return;
  }
  const std::string all = set.bytes(column.type);
  const std::size_t bytes = values * size_of(column.type);
  for (std::size_t i = 0; i < out.files.size(); ++i)
    column.set({all.data() + i * bytes, bytes}, out.files[i]);
}

void read_files(const OpenH5& file, FeatureData& out) {
  const Hid group = open_group(file.id, "/files");
  out.root = text_attribute(file, group, "root");
  out.labels = H5Dataset(file, "/labels/name").texts();
  out.splits = H5Dataset(file, "/splits/name").texts();
  if (has_object(file.id, "/targets")) out.targets = H5Dataset(file, "/targets/name").texts();
  out.files.resize(H5Dataset(file, "/files/path").count());
  for (const IndexColumn& column : index_columns()) read_column(file, column, out);
}

std::vector<std::string> names_in(hid_t group, const std::string& what) {
  H5G_info_t info;
  h5_check(H5Gget_info(group, &info), what);
  std::vector<std::string> out;
  for (hsize_t i = 0; i < info.nlinks; ++i) {
    const auto name = [&](char* to, std::size_t bytes) {
      const ssize_t length =
          H5Lget_name_by_idx(group, ".", H5_INDEX_NAME, H5_ITER_INC, i, to, bytes, H5P_DEFAULT);
      h5_check(length < 0 ? -1 : 0, what);
      return static_cast<std::size_t>(length);
    };
    out.emplace_back(name(nullptr, 0), '\0');
    name(out.back().data(), out.back().size() + 1);
  }
  return out;
}

void read_texts(const OpenH5& file, FeatureData& out) {
  if (!has_object(file.id, "/columns")) return;
  const Hid group = open_group(file.id, "/columns");
  out.columns = names_in(group, "/columns");
  for (const std::string& column : out.columns) {
    const std::string name = "/columns/" + column;
    std::vector<std::string> texts = H5Dataset(file, name).texts();
    if (texts.size() != out.files.size())
      throw RunError(fmt::format("{} has {} values, not {}", name, texts.size(), out.files.size()));
    for (std::size_t i = 0; i < texts.size(); ++i)
      out.files[i].texts.push_back(std::move(texts[i]));
  }
}

void read_statistics(const OpenH5& file, FeatureData& out) {
  if (!has_object(file.id, "/statistics")) return;
  const Hid group = open_group(file.id, "/statistics");
  ColumnStatistics& s = out.statistics.emplace();
  s.of = text_attribute(file, group, "of");
  s.frames = H5Attribute(file, group, "frames").integer();
  s.is_applied = H5Attribute(file, group, "applied").integer() != 0;
  s.mean = H5Dataset(file, "/statistics/mean").numbers<double>();
  s.std = H5Dataset(file, "/statistics/std").numbers<double>();
  const std::string by = text_attribute(file, group, "by");
  if (by.empty()) return;
  const std::string at = "/statistics/by_" + by;
  s.groups = {.by = by,
              .names = H5Dataset(file, at + "/name").texts(),
              .frames = H5Dataset(file, at + "/frames").numbers<std::int64_t>(),
              .mean = H5Dataset(file, at + "/mean").numbers<double>(),
              .std = H5Dataset(file, at + "/std").numbers<double>()};
}

void read_remarks(const OpenH5& file, FeatureData& out) {
  const auto index = H5Dataset(file, "/remarks/file").numbers<std::int64_t>();
  const auto status = H5Dataset(file, "/remarks/status").numbers<FeatureData::Status>();
  std::vector<std::string> path = H5Dataset(file, "/remarks/path").texts();
  std::vector<std::string> stage = H5Dataset(file, "/remarks/stage").texts();
  std::vector<std::string> reason = H5Dataset(file, "/remarks/reason").texts();
  if (status.size() != index.size() || path.size() != index.size() ||
      stage.size() != index.size() || reason.size() != index.size())
    throw RunError("the datasets of /remarks are not equally long");
  for (std::size_t i = 0; i < index.size(); ++i)
    out.remarks.push_back(
        {index[i], std::move(path[i]), status[i], std::move(stage[i]), std::move(reason[i])});
}

class H5Rows final : public FeatureRows {
 public:
  H5Rows(OpenH5 file, Hid rows, std::string name, std::vector<std::uint64_t> shape,
         RowPlaces layout)
      : file_(std::move(file)),
        rows_(std::move(rows)),
        name_(std::move(name)),
        shape_(std::move(shape)),
        layout_(std::move(layout)) {}
  ~H5Rows() override {
    const QuietHdf5 quiet;
    rows_ = {};
    file_.id = {};
  }
  H5Rows(const H5Rows&) = delete;
  H5Rows& operator=(const H5Rows&) = delete;

  void read(std::uint64_t offset, std::uint64_t count, std::byte* to) const override {
    const QuietHdf5 quiet;
    std::vector<hsize_t> start(shape_.size(), 0), extent(shape_.begin(), shape_.end());
    start[0] = offset;
    extent[0] = count;
    if (std::find(extent.begin(), extent.end(), 0) != extent.end()) return;
    const Hid space(H5Dget_space(rows_), H5Sclose, name_);
    const Hid memory(H5Screate_simple(static_cast<int>(extent.size()), extent.data(), nullptr),
                     H5Sclose, name_);
    h5_check(
        H5Sselect_hyperslab(space, H5S_SELECT_SET, start.data(), nullptr, extent.data(), nullptr),
        name_);
    const Hid type(H5Dget_type(rows_), H5Tclose, name_);
    h5_check(H5Dread(rows_, type, memory, space, H5P_DEFAULT, to), "reading " + name_);
  }
  // HDF5 1.10 goes over all chunks to locate one, but reads one directly by its index. So a chunk
  // is located by reading it.
  [[nodiscard]] RowPlaces places() const override {
    const QuietHdf5 quiet;
    RowPlaces out = layout_;
    if (out.chunk_rows == 0) return out;
    const Hid type(H5Dget_type(rows_), H5Tclose, name_);
    std::uint64_t bytes = out.chunk_rows * H5Tget_size(type);
    for (std::size_t axis = 1; axis < shape_.size(); ++axis) bytes *= shape_[axis];
    const std::unique_ptr<std::byte[]> unread(new std::byte[bytes]);
    Hdf5Descriptor::Range place;
    const Hdf5Descriptor::Located located(*file_.from, place);
    std::vector<hsize_t> at(shape_.size(), 0);
    for (; at.front() < shape_.front(); at.front() += out.chunk_rows) {
      std::uint32_t mask = 0;
      place = {};
      if (H5Dread_chunk(rows_, H5P_DEFAULT, at.data(), &mask, unread.get()) < 0 ||
          place.bytes == 0 || place.at > file_.bytes || place.bytes > file_.bytes - place.at)
        throw RunError(fmt::format("{}: the chunk of the rows from {} on is not in the file", name_,
                                   at.front()));
      out.chunks.push_back({place.at, place.bytes, mask});
    }
    return out;
  }

 private:
  OpenH5 file_;
  Hid rows_;
  std::string name_;
  std::vector<std::uint64_t> shape_;
  RowPlaces layout_;  // without its chunks
};

// Calls `read` to read a part of the file `path`, and adds the path to its errors.
template <class Read>
void as_described(const std::string& path, const Read& read) {
  try {
    read();
  } catch (const RunError& e) {
    throw RunError(
        fmt::format("{}: this file is damaged, or not as docs/output-format.md describes it: {}",
                    path, e.what()));
  }
}

}  // namespace

FeatureContents read_h5(const std::string& path) {
  const QuietHdf5 quiet;
  FeatureContents out;
  OpenH5 file = open_h5(path);
  as_described(path, [&] { read_format(file, out.data); });
  if (!out.data.integer("format") || out.data.text("melflow_version").empty())
    throw RunError(path +
                   ": this is an HDF5 file, but none that melflow wrote (it has no attributes "
                   "'format' and 'melflow_version')");
  check_format(path, out.data);
  as_described(path, [&] {
    read_root_attributes(RootGroup(file), out.data);
    const std::string name = rows_path(out.data);
    Hid rows = open_dataset(file.id, name);
    RowPlaces layout = read_shape(file, rows, name, out.data);
    read_files(file, out.data);
    read_texts(file, out.data);
    read_statistics(file, out.data);
    read_remarks(file, out.data);
    if (has_object(file.id, "/warnings")) out.data.warnings = H5Dataset(file, "/warnings").texts();
    out.rows = std::make_unique<H5Rows>(std::move(file), std::move(rows), name, out.data.shape,
                                        std::move(layout));
  });
  return out;
}

}  // namespace melflow
