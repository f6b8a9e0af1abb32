#include "apps/h5_reader.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include <fmt/format.h>

#include "apps/npy_reader.h"
#include "pipeline/problem.h"

namespace melflow {
namespace {

constexpr std::int64_t kFormat = 1;

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

// What to say of a path that cannot be opened as a feature file.
std::string advice(const std::string& path) {
  struct stat other {};
  if (stat((path + ".part").c_str(), &other) == 0)
    return fmt::format(
        "; {}.part is there: a run is still writing it, or was ended before it was "
        "complete",
        path);
  return {};
}

}  // namespace

const char* to_text(FeatureFile::Status status) {
  switch (status) {
    case FeatureFile::Status::ok:
      return "ok";
    case FeatureFile::Status::skipped:
      return "skipped";
    case FeatureFile::Status::failed:
      return "failed";
    case FeatureFile::Status::not_run:
      return "not run";
  }
  return "?";
}

FeatureFile::FeatureFile(const std::string& path) : path_(path) {
  open();
  if (rows_) {
    read_npy();
    return;
  }
  try {
    read_mel();
    read_files();
    read_remarks();
  } catch (const RunError& e) {
    throw RunError(fmt::format("{}: is damaged, or not as docs/output-format.md describes it: {}",
                               path_, e.what()));
  }
}

void FeatureFile::open() {
  struct stat st {};
  if (stat(path_.c_str(), &st) != 0)
    throw RunError(fmt::format("{}: {}{}", path_, std::strerror(errno), advice(path_)));
  if (S_ISDIR(st.st_mode)) throw RunError(path_ + ": is a folder; name the .h5 file in it");
  file_bytes_ = static_cast<std::uint64_t>(st.st_size);
  if ((rows_ = open_if_npy(path_))) return;
  if (H5Fis_hdf5(path_.c_str()) <= 0)
    throw RunError(path_ +
                   (path_.ends_with(".part")
                        ? ": cannot be read yet: a run is still writing it, or died while it did"
                        : ": is not an HDF5 file"));
  const hid_t id = H5Fopen(path_.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
  if (id < 0)
    throw RunError(path_ +
                   ": is an HDF5 file that cannot be opened: it is not complete, or another "
                   "program is writing it");
  file_ = Hid(id, H5Fclose, path_);
  if (!integer("format") || text("melflow_version").empty())
    throw RunError(path_ +
                   ": is an HDF5 file, but none that melflow wrote (it has no attributes "
                   "'format' and 'melflow_version')");
  check_format();
}

void FeatureFile::check_format() const {
  const auto format = integer("format");
  if (*format > kFormat)
    throw RunError(fmt::format("{}: was written by melflow {} in format {}, this program reads {}",
                               path_, text("melflow_version"), *format, kFormat));
}

void FeatureFile::read_mel() {
  mel_ = Hid(H5Dopen2(file_, "/mel", H5P_DEFAULT), H5Dclose, "no dataset /mel");
  const Hid space(H5Dget_space(mel_), H5Sclose, "/mel");
  const int rank = H5Sget_simple_extent_ndims(space);
  if (rank != 2 && rank != 3) throw RunError(fmt::format("/mel has {} axes, not 2 or 3", rank));
  std::vector<hsize_t> shape(static_cast<std::size_t>(rank));
  H5Sget_simple_extent_dims(space, shape.data(), nullptr);
  shape_.assign(shape.begin(), shape.end());
  const Hid type(H5Dget_type(mel_), H5Tclose, "/mel");
  dtype_ = fmt::format("{}{}", H5Tget_class(type) == H5T_FLOAT ? "float" : "type of ",
                       8 * H5Tget_size(type));
  unit_ = text_attribute(mel_, "unit");
  if (H5Lexists(file_, "/band_hz", H5P_DEFAULT) <= 0) return;  // columns that are no frequencies
  band_hz_ = DatasetReader(file_, "/band_hz").numbers<double>(H5T_NATIVE_DOUBLE);
  if (band_hz_.size() != bands())
    throw RunError(fmt::format("/band_hz has {} values, /mel {} bands", band_hz_.size(), bands()));
}

void FeatureFile::read_files() {
  const Hid group(H5Gopen2(file_, "/files", H5P_DEFAULT), H5Gclose, "no group /files");
  root_ = text_attribute(group, "root");
  labels_ = DatasetReader(file_, "/labels/name").strings();
  splits_ = DatasetReader(file_, "/splits/name").strings();
  std::vector<std::string> paths = DatasetReader(file_, "/files/path").strings();
  files_.resize(paths.size());
  const auto column = [&](const std::string& name, auto member, hid_t type) {
    using T = std::remove_reference_t<decltype(files_.front().*member)>;
    const std::vector<T> values = DatasetReader(file_, "/files/" + name).numbers<T>(type);
    if (values.size() != files_.size())
      throw RunError(fmt::format("/files/{} has {} entries, /files/path {}", name, values.size(),
                                 files_.size()));
    for (std::size_t i = 0; i < values.size(); ++i) files_[i].*member = values[i];
  };
  column("offset", &Entry::offset, H5T_NATIVE_INT64);
  column("count", &Entry::count, H5T_NATIVE_INT64);
  column("label", &Entry::label, H5T_NATIVE_INT32);
  column("split", &Entry::split, H5T_NATIVE_INT8);
  column("sample_rate", &Entry::sample_rate, H5T_NATIVE_INT32);
  column("duration", &Entry::duration, H5T_NATIVE_DOUBLE);
  // The status is an enumeration in the file; its numbers are read as the integers they are.
  const auto status = DatasetReader(file_, "/files/status").numbers<std::int8_t>(H5T_NATIVE_INT8);
  for (std::size_t i = 0; i < files_.size(); ++i) {
    files_[i].path = std::move(paths[i]);
    files_[i].status = static_cast<Status>(status.at(i));
  }
}

void FeatureFile::read_remarks() {
  const auto file = DatasetReader(file_, "/remarks/file").numbers<std::int64_t>(H5T_NATIVE_INT64);
  const auto status = DatasetReader(file_, "/remarks/status").numbers<std::int8_t>(H5T_NATIVE_INT8);
  std::vector<std::string> path = DatasetReader(file_, "/remarks/path").strings();
  std::vector<std::string> stage = DatasetReader(file_, "/remarks/stage").strings();
  std::vector<std::string> reason = DatasetReader(file_, "/remarks/reason").strings();
  if (status.size() != file.size() || path.size() != file.size() || stage.size() != file.size() ||
      reason.size() != file.size())
    throw RunError("the datasets of /remarks are not equally long");
  for (std::size_t i = 0; i < file.size(); ++i)
    remarks_.push_back({file[i], std::move(path[i]), static_cast<Status>(status[i]),
                        std::move(stage[i]), std::move(reason[i])});
}

std::optional<std::int64_t> FeatureFile::integer(const std::string& name) const {
  if (rows_) {
    const auto it = integers_.find(name);
    return it == integers_.end() ? std::nullopt : std::optional(it->second);
  }
  if (H5Aexists(file_, name.c_str()) <= 0) return std::nullopt;
  const Hid id(H5Aopen(file_, name.c_str(), H5P_DEFAULT), H5Aclose, name);
  std::int64_t value = 0;
  h5_check(H5Aread(id, H5T_NATIVE_INT64, &value), "reading the attribute " + name);
  return value;
}

std::string FeatureFile::text(const std::string& name) const {
  if (!rows_) return text_attribute(file_, name);
  const auto it = texts_.find(name);
  return it == texts_.end() ? "" : it->second;
}

std::vector<float> FeatureFile::read_rows(std::uint64_t offset, std::uint64_t count) const {
  if (offset + count > rows())
    throw RunError(fmt::format("{}: rows {} to {} are asked for, /mel has {}", path_, offset,
                               offset + count, rows()));
  if (rows_) return read_npy_rows(offset, count);
  std::vector<float> out(count * frames_per_row() * bands());
  if (out.empty()) return out;
  std::vector<hsize_t> start(shape_.size(), 0), extent(shape_.begin(), shape_.end());
  start[0] = offset;
  extent[0] = count;
  const Hid space(H5Dget_space(mel_), H5Sclose, "/mel");
  const Hid memory(H5Screate_simple(static_cast<int>(extent.size()), extent.data(), nullptr),
                   H5Sclose, "/mel");
  h5_check(
      H5Sselect_hyperslab(space, H5S_SELECT_SET, start.data(), nullptr, extent.data(), nullptr),
      "/mel");
  h5_check(H5Dread(mel_, H5T_NATIVE_FLOAT, memory, space, H5P_DEFAULT, out.data()), "reading /mel");
  return out;
}

}  // namespace melflow
