#include "stages/output/h5_reader.h"

#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "pipeline/problem.h"
#include "stages/output/h5_number_type.h"
#include "stages/raii/hdf5.h"

namespace melflow {
namespace {

std::size_t count_of(hid_t space) {
  const hssize_t n = H5Sget_simple_extent_npoints(space);
  return n < 0 ? 0 : static_cast<std::size_t>(n);
}

// Strings of one attribute or dataset, fixed or variable in length. `read` is H5Aread or H5Dread.
template <class Read>
std::vector<std::string> read_strings(const Hid& type, hid_t space, const std::string& what,
                                      const Read& read) {
  if (H5Tget_class(type) != H5T_STRING) throw RunError(what + ": is no text");
  const std::size_t count = count_of(space);
  std::vector<std::string> out(count);
  if (count == 0) return out;
  const Hid memory(H5Tcopy(H5T_C_S1), H5Tclose, what);
  H5Tset_cset(memory, H5Tget_cset(type));
  if (H5Tis_variable_str(type) > 0) {
    h5_check(H5Tset_size(memory, H5T_VARIABLE), what);
    std::vector<char*> texts(count, nullptr);
    h5_check(read(static_cast<hid_t>(memory), static_cast<void*>(texts.data())), what);
    for (std::size_t i = 0; i < count; ++i)
      if (texts[i] != nullptr) out[i] = texts[i];
    H5Dvlen_reclaim(memory, space, H5P_DEFAULT, texts.data());
    return out;
  }
  const std::size_t size = H5Tget_size(type);
  h5_check(H5Tset_size(memory, size), what);
  h5_check(H5Tset_strpad(memory, H5Tget_strpad(type)), what);
  std::vector<char> bytes(count * size);
  h5_check(read(static_cast<hid_t>(memory), static_cast<void*>(bytes.data())), what);
  for (std::size_t i = 0; i < count; ++i)
    out[i].assign(bytes.data() + i * size, strnlen(bytes.data() + i * size, size));
  return out;
}

class DatasetReader {
 public:
  DatasetReader(hid_t file, const std::string& name)
      : name_(name),
        id_(H5Dopen2(file, name.c_str(), H5P_DEFAULT), H5Dclose, "no dataset " + name),
        space_(H5Dget_space(id_), H5Sclose, name) {}

  template <class T>
  [[nodiscard]] std::vector<T> numbers(hid_t type) const {
    std::vector<T> out(count_of(space_));
    if (!out.empty())
      h5_check(H5Dread(id_, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, out.data()), "reading " + name_);
    return out;
  }
  [[nodiscard]] std::vector<std::string> strings() const {
    const Hid type(H5Dget_type(id_), H5Tclose, name_);
    return read_strings(type, space_, "reading " + name_, [this](hid_t memory, void* to) {
      return H5Dread(id_, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, to);
    });
  }

 private:
  std::string name_;
  Hid id_, space_;
};

std::string text_attribute(hid_t object, const std::string& name) {
  if (H5Aexists(object, name.c_str()) <= 0) return {};
  const Hid id(H5Aopen(object, name.c_str(), H5P_DEFAULT), H5Aclose, name);
  const Hid type(H5Aget_type(id), H5Tclose, name);
  const Hid space(H5Aget_space(id), H5Sclose, name);
  const auto all = read_strings(type, space, "reading the attribute " + name,
                                [&](hid_t memory, void* to) { return H5Aread(id, memory, to); });
  return all.empty() ? "" : all.front();
}

std::int64_t integer_attribute(hid_t object, const std::string& name) {
  const Hid id(H5Aopen(object, name.c_str(), H5P_DEFAULT), H5Aclose, name);
  std::int64_t value = 0;
  h5_check(H5Aread(id, H5T_NATIVE_INT64, &value), "reading the attribute " + name);
  return value;
}

// Texts and integers of the root group.
void read_attributes(hid_t file, FeatureData& out) {
  std::vector<std::string> names;
  const auto take = [](hid_t, const char* name, const H5A_info_t*, void* to) -> herr_t {
    static_cast<std::vector<std::string>*>(to)->emplace_back(name);
    return 0;
  };
  h5_check(H5Aiterate2(file, H5_INDEX_NAME, H5_ITER_INC, nullptr, take, &names), "attributes");
  for (const std::string& name : names) {
    const Hid id(H5Aopen(file, name.c_str(), H5P_DEFAULT), H5Aclose, name);
    const Hid type(H5Aget_type(id), H5Tclose, name);
    if (H5Tget_class(type) == H5T_STRING) {
      out.texts[name] = text_attribute(file, name);
    } else if (H5Tget_class(type) == H5T_INTEGER) {
      out.integers[name] = integer_attribute(file, name);
    }
  }
}

void read_mel(hid_t file, hid_t mel, FeatureData& out) {
  const Hid space(H5Dget_space(mel), H5Sclose, "/mel");
  const int rank = H5Sget_simple_extent_ndims(space);
  if (rank != 2 && rank != 3) throw RunError(fmt::format("/mel has {} axes, not 2 or 3", rank));
  std::vector<hsize_t> shape(static_cast<std::size_t>(rank));
  H5Sget_simple_extent_dims(space, shape.data(), nullptr);
  out.shape.assign(shape.begin(), shape.end());
  const Hid type(H5Dget_type(mel), H5Tclose, "/mel");
  if (const auto known = number_type_of(type))
    out.dtype = to_text(*known);
  else
    out.dtype = fmt::format("{}{}", H5Tget_class(type) == H5T_FLOAT ? "float" : "type of ",
                            8 * H5Tget_size(type));
  out.unit = text_attribute(mel, "unit");
  if (const haddr_t at = H5Dget_offset(mel); at != HADDR_UNDEF) out.rows_at = at;
  if (H5Lexists(file, "/band_hz", H5P_DEFAULT) <= 0) return;  // columns that are no frequencies
  out.band_hz = DatasetReader(file, "/band_hz").numbers<double>(H5T_NATIVE_DOUBLE);
  if (out.band_hz.size() != out.bands())
    throw RunError(
        fmt::format("/band_hz has {} values, /mel {} bands", out.band_hz.size(), out.bands()));
}

// All numbers of a dataset; nothing where there is no such dataset, as in files of earlier
// versions.
template <class T>
std::vector<T> files_table(hid_t file, const std::string& name, hid_t type, std::size_t values) {
  if (H5Lexists(file, name.c_str(), H5P_DEFAULT) <= 0) return {};
  std::vector<T> out = DatasetReader(file, name).numbers<T>(type);
  if (out.size() != values)
    throw RunError(fmt::format("{} has {} values, not {}", name, out.size(), values));
  return out;
}

void read_files(hid_t file, FeatureData& out) {
  const Hid group(H5Gopen2(file, "/files", H5P_DEFAULT), H5Gclose, "no group /files");
  out.root = text_attribute(group, "root");
  out.labels = DatasetReader(file, "/labels/name").strings();
  out.splits = DatasetReader(file, "/splits/name").strings();
  std::vector<std::string> paths = DatasetReader(file, "/files/path").strings();
  out.files.resize(paths.size());
  const auto column = [&](const std::string& name, auto member, hid_t type) {
    using T = std::remove_reference_t<decltype(out.files.front().*member)>;
    const std::vector<T> values = DatasetReader(file, "/files/" + name).numbers<T>(type);
    if (values.size() != out.files.size())
      throw RunError(fmt::format("/files/{} has {} entries, /files/path {}", name, values.size(),
                                 out.files.size()));
    for (std::size_t i = 0; i < values.size(); ++i) out.files[i].*member = values[i];
  };
  column("offset", &FeatureData::Entry::offset, H5T_NATIVE_INT64);
  column("count", &FeatureData::Entry::count, H5T_NATIVE_INT64);
  column("label", &FeatureData::Entry::label, H5T_NATIVE_INT32);
  column("split", &FeatureData::Entry::split, H5T_NATIVE_INT8);
  column("sample_rate", &FeatureData::Entry::sample_rate, H5T_NATIVE_INT32);
  column("duration", &FeatureData::Entry::duration, H5T_NATIVE_DOUBLE);
  const std::size_t files = out.files.size();
  const auto size = files_table<std::int64_t>(file, "/files/size", H5T_NATIVE_INT64, files);
  const auto modified = files_table<std::int64_t>(file, "/files/modified", H5T_NATIVE_INT64, files);
  for (std::size_t i = 0; i < size.size() && i < modified.size(); ++i)
    out.files[i].stamp = {size[i], modified[i]};
  const auto content = files_table<std::uint64_t>(file, "/files/content", H5T_NATIVE_UINT64, files);
  for (std::size_t i = 0; i < content.size(); ++i) out.files[i].content = content[i];
  // The status is an enumeration in the file; its numbers are read as the integers they are.
  const auto status = DatasetReader(file, "/files/status").numbers<std::int8_t>(H5T_NATIVE_INT8);
  for (std::size_t i = 0; i < out.files.size(); ++i) {
    out.files[i].path = std::move(paths[i]);
    out.files[i].status = static_cast<FeatureData::Status>(status.at(i));
  }
}

void read_targets(hid_t file, FeatureData& out) {
  const std::size_t files = out.files.size(), labels = out.labels.size();
  if (H5Lexists(file, "/targets", H5P_DEFAULT) > 0)
    out.targets = DatasetReader(file, "/targets/name").strings();
  const std::size_t n = out.targets.size();
  const auto targets = files_table<float>(file, "/files/targets", H5T_NATIVE_FLOAT, files * n);
  const auto flags =
      files_table<std::uint8_t>(file, "/files/labels", H5T_NATIVE_UINT8, files * labels);
  for (std::size_t i = 0; i < files; ++i) {
    if (!targets.empty())
      out.files[i].targets.assign(targets.data() + i * n, targets.data() + (i + 1) * n);
    for (std::size_t l = 0; l < labels && !flags.empty(); ++l)
      if (flags[i * labels + l] != 0) out.files[i].labels.push_back(static_cast<std::int32_t>(l));
  }
}

void read_statistics(hid_t file, FeatureData& out) {
  if (H5Lexists(file, "/statistics", H5P_DEFAULT) <= 0) return;
  const Hid group(H5Gopen2(file, "/statistics", H5P_DEFAULT), H5Gclose, "/statistics");
  ColumnStatistics& s = out.statistics.emplace();
  s.of = text_attribute(group, "of");
  s.frames = integer_attribute(group, "frames");
  s.is_applied = integer_attribute(group, "applied") != 0;
  s.mean = DatasetReader(file, "/statistics/mean").numbers<double>(H5T_NATIVE_DOUBLE);
  s.std = DatasetReader(file, "/statistics/std").numbers<double>(H5T_NATIVE_DOUBLE);
}

void read_remarks(hid_t file, FeatureData& out) {
  const auto index = DatasetReader(file, "/remarks/file").numbers<std::int64_t>(H5T_NATIVE_INT64);
  const auto status = DatasetReader(file, "/remarks/status").numbers<std::int8_t>(H5T_NATIVE_INT8);
  std::vector<std::string> path = DatasetReader(file, "/remarks/path").strings();
  std::vector<std::string> stage = DatasetReader(file, "/remarks/stage").strings();
  std::vector<std::string> reason = DatasetReader(file, "/remarks/reason").strings();
  if (status.size() != index.size() || path.size() != index.size() ||
      stage.size() != index.size() || reason.size() != index.size())
    throw RunError("the datasets of /remarks are not equally long");
  for (std::size_t i = 0; i < index.size(); ++i)
    out.remarks.push_back({index[i], std::move(path[i]),
                           static_cast<FeatureData::Status>(status[i]), std::move(stage[i]),
                           std::move(reason[i])});
}

class H5Rows final : public FeatureRows {
 public:
  H5Rows(Hid file, Hid mel, std::vector<std::uint64_t> shape)
      : file_(std::move(file)), mel_(std::move(mel)), shape_(std::move(shape)) {
    const Hid type(H5Dget_type(mel_), H5Tclose, "/mel");
    type_ = number_type_of(type);
  }

  [[nodiscard]] std::vector<float> read(std::uint64_t offset, std::uint64_t count) const override {
    std::vector<hsize_t> start(shape_.size(), 0), extent(shape_.begin(), shape_.end());
    start[0] = offset;
    extent[0] = count;
    std::size_t values = 1;
    for (const hsize_t n : extent) values *= n;
    std::vector<float> out(values);
    if (out.empty()) return out;
    const Hid space(H5Dget_space(mel_), H5Sclose, "/mel");
    const Hid memory(H5Screate_simple(static_cast<int>(extent.size()), extent.data(), nullptr),
                     H5Sclose, "/mel");
    h5_check(
        H5Sselect_hyperslab(space, H5S_SELECT_SET, start.data(), nullptr, extent.data(), nullptr),
        "/mel");
    // The library takes types without hardware apart bit by bit: they are read as they are.
    const bool is_plain = !type_ || *type_ == NumberType::float32;
    const Hid type =
        is_plain ? Hid(H5Tcopy(H5T_NATIVE_FLOAT), H5Tclose, "type") : h5_number_type(*type_);
    std::vector<std::uint16_t> halves(is_plain ? 0 : values);
    void* to = is_plain ? static_cast<void*>(out.data()) : halves.data();
    h5_check(H5Dread(mel_, type, memory, space, H5P_DEFAULT, to), "reading /mel");
    if (!is_plain) to_float(halves.data(), values, *type_, out.data());
    return out;
  }

 private:
  QuietHdf5 quiet_;
  Hid file_, mel_;
  std::vector<std::uint64_t> shape_;
  std::optional<NumberType> type_;  // of the rows, where it is one that is known
};

Hid open_h5(const std::string& path) {
  if (H5Fis_hdf5(path.c_str()) <= 0)
    throw RunError(path +
                   (path.ends_with(".part")
                        ? ": cannot be read yet: a run is still writing it, or died while it did"
                        : ": is not an HDF5 file"));
  const hid_t id = H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
  if (id < 0)
    throw RunError(path +
                   ": is an HDF5 file that cannot be opened: it is not complete, or another "
                   "program is writing it");
  return {id, H5Fclose, path};
}

}  // namespace

FeatureContents read_h5(const std::string& path) {
  const QuietHdf5 quiet;
  FeatureContents out;
  Hid file = open_h5(path);
  read_attributes(file, out.data);
  if (!out.data.integer("format") || out.data.text("melflow_version").empty())
    throw RunError(path +
                   ": is an HDF5 file, but none that melflow wrote (it has no attributes "
                   "'format' and 'melflow_version')");
  check_format(path, out.data);
  try {
    Hid mel(H5Dopen2(file, "/mel", H5P_DEFAULT), H5Dclose, "no dataset /mel");
    read_mel(file, mel, out.data);
    read_files(file, out.data);
    read_targets(file, out.data);
    read_statistics(file, out.data);
    read_remarks(file, out.data);
    out.rows = std::make_unique<H5Rows>(std::move(file), std::move(mel), out.data.shape);
  } catch (const RunError& e) {
    throw RunError(fmt::format("{}: is damaged, or not as docs/output-format.md describes it: {}",
                               path, e.what()));
  }
  return out;
}

}  // namespace melflow
