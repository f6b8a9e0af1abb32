#include "stages/output/h5_reader.h"

#include <sys/file.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "pipeline/problem.h"
#include "stages/output/h5_number_type.h"
#include "stages/output/open_regular.h"
#include "stages/raii/hdf5_descriptor.h"

namespace melflow {
namespace {

constexpr const char* kSignature = "\x89HDF\r\n\x1a\n";
constexpr std::uint64_t kMostUnpacked = 1032;  // of a byte by deflate

// An open file. What it says of sizes is believed as far as the file itself is large enough.
struct OpenFile {
  UniqueFd fd;
  std::uint64_t bytes = 0;
  std::unique_ptr<Hdf5Descriptor> from;
  Hid id;
};

bool has(hid_t object, const std::string& name) {
  const htri_t is_there = H5Lexists(object, name.c_str(), H5P_DEFAULT);
  h5_check(is_there, "looking for " + name);
  return is_there > 0;
}

std::vector<std::uint64_t> shape_of(hid_t space, const std::string& what) {
  const int rank = H5Sget_simple_extent_ndims(space);
  h5_check(rank, what);
  std::vector<hsize_t> shape(static_cast<std::size_t>(rank));
  h5_check(H5Sget_simple_extent_dims(space, shape.data(), nullptr), what);
  return {shape.begin(), shape.end()};
}

// One for a scalar.
std::size_t count_of(hid_t space, const std::string& what) {
  if (H5Sget_simple_extent_type(space) == H5S_NULL) return 0;
  return checked_product(shape_of(space, what), what);
}

// Throws where the values are not in the file, all of them.
void check_storage(hid_t set, std::uint64_t bytes, const OpenFile& file, const std::string& name) {
  const Hid made(H5Dget_create_plist(set), H5Pclose, name);
  const H5D_layout_t layout = H5Pget_layout(made);
  if (layout == H5D_VIRTUAL || H5Pget_external_count(made) != 0)
    throw RunError(name + " is not stored in the file itself");
  const std::uint64_t there = H5Dget_storage_size(set);
  const bool is_packed = layout == H5D_CHUNKED && H5Pget_nfilters(made) > 0;
  if (there > file.bytes || bytes / (is_packed ? kMostUnpacked : 1) > there)
    throw RunError(
        fmt::format("{} should have {} bytes, and there are {} of it in the {} of the file", name,
                    bytes, there, file.bytes));
}

// Strings of one attribute or dataset, fixed or variable in length. `read` is H5Aread or H5Dread.
template <class Read>
std::vector<std::string> read_strings(const Hid& type, hid_t space, const std::string& what,
                                      const Read& read) {
  if (H5Tget_class(type) != H5T_STRING) throw RunError(what + ": is no text");
  const std::size_t count = count_of(space, what);
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
  DatasetReader(const OpenFile& file, const std::string& name)
      : name_(name),
        id_(H5Dopen2(file.id, name.c_str(), H5P_DEFAULT), H5Dclose, "no dataset " + name),
        space_(H5Dget_space(id_), H5Sclose, name),
        type_(H5Dget_type(id_), H5Tclose, name),
        count_(count_of(space_, name)) {
    check_storage(id_, checked_product({count_, H5Tget_size(type_)}, name), file, name);
  }

  template <class T>
  [[nodiscard]] std::vector<T> numbers(hid_t type) const {
    std::vector<T> out(count_);
    if (!out.empty())
      h5_check(H5Dread(id_, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, out.data()), "reading " + name_);
    return out;
  }
  [[nodiscard]] std::vector<std::string> strings() const {
    return read_strings(type_, space_, "reading " + name_, [this](hid_t memory, void* to) {
      return H5Dread(id_, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, to);
    });
  }

 private:
  std::string name_;
  Hid id_, space_, type_;
  std::size_t count_;
};

// An attribute of one value.
class Attribute {
 public:
  Attribute(hid_t object, const std::string& name)
      : name_(name),
        id_(H5Aopen(object, name.c_str(), H5P_DEFAULT), H5Aclose, name),
        type_(H5Aget_type(id_), H5Tclose, name),
        space_(H5Aget_space(id_), H5Sclose, name),
        is_single_(count_of(space_, name) == 1 && H5Tget_size(type_) <= kMostAttribute) {}
  [[nodiscard]] bool is(H5T_class_t kind) const {
    return is_single_ && H5Tget_class(type_) == kind;
  }
  [[nodiscard]] std::string text() const {
    if (!is(H5T_STRING)) throw RunError("the attribute " + name_ + " is no text");
    return read_strings(type_, space_, "reading the attribute " + name_,
                        [&](hid_t memory, void* to) { return H5Aread(id_, memory, to); })
        .front();
  }
  [[nodiscard]] std::int64_t integer() const {
    if (!is(H5T_INTEGER)) throw RunError("the attribute " + name_ + " is no integer");
    std::int64_t value = 0;
    h5_check(H5Aread(id_, H5T_NATIVE_INT64, &value), "reading the attribute " + name_);
    return value;
  }

 private:
  static constexpr std::size_t kMostAttribute = 16 << 20;  // [bytes] of text without a length

  std::string name_;
  Hid id_, type_, space_;
  bool is_single_;
};

std::string text_attribute(hid_t object, const std::string& name) {
  const htri_t is_there = H5Aexists(object, name.c_str());
  h5_check(is_there, "looking for the attribute " + name);
  return is_there > 0 ? Attribute(object, name).text() : "";
}

// Texts and integers of the root group; what else somebody may have put there is left alone.
void read_attributes(hid_t file, FeatureData& out) {
  std::vector<std::string> names;
  const auto take = [](hid_t, const char* name, const H5A_info_t*, void* to) -> herr_t {
    static_cast<std::vector<std::string>*>(to)->emplace_back(name);
    return 0;
  };
  h5_check(H5Aiterate2(file, H5_INDEX_NAME, H5_ITER_INC, nullptr, take, &names), "attributes");
  for (const std::string& name : names) {
    const Attribute attribute(file, name);
    if (attribute.is(H5T_STRING)) out.texts[name] = attribute.text();
    if (attribute.is(H5T_INTEGER)) out.integers[name] = attribute.integer();
  }
}

void read_mel(const OpenFile& file, hid_t mel, FeatureData& out) {
  const Hid space(H5Dget_space(mel), H5Sclose, "/mel");
  out.shape = shape_of(space, "/mel");
  if (out.shape.size() != 2 && out.shape.size() != 3)
    throw RunError(fmt::format("/mel has {} axes, not 2 or 3", out.shape.size()));
  const Hid type(H5Dget_type(mel), H5Tclose, "/mel");
  check_storage(
      mel, checked_product({checked_product(out.shape, "/mel"), H5Tget_size(type)}, "/mel"), file,
      "/mel");
  if (const auto known = number_type_of(type))
    out.dtype = to_text(*known);
  else
    out.dtype = fmt::format("{}{}", H5Tget_class(type) == H5T_FLOAT ? "float" : "type of ",
                            8 * H5Tget_size(type));
  out.unit = text_attribute(mel, "unit");
  if (const haddr_t at = H5Dget_offset(mel); at != HADDR_UNDEF) out.rows_at = at;
  if (has(file.id, "/band_hz"))  // else columns that are no frequencies
    out.band_hz = DatasetReader(file, "/band_hz").numbers<double>(H5T_NATIVE_DOUBLE);
}

// All numbers of a dataset; nothing where there is no such dataset, as in files of earlier
// versions.
template <class T>
std::vector<T> files_table(const OpenFile& file, const std::string& name, hid_t type,
                           std::size_t values) {
  if (!has(file.id, name)) return {};
  std::vector<T> out = DatasetReader(file, name).numbers<T>(type);
  if (out.size() != values)
    throw RunError(fmt::format("{} has {} values, not {}", name, out.size(), values));
  return out;
}

void read_files(const OpenFile& file, FeatureData& out) {
  const Hid group(H5Gopen2(file.id, "/files", H5P_DEFAULT), H5Gclose, "no group /files");
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
  if (status.size() != files)
    throw RunError(fmt::format("/files/status has {} entries, /files/path {}", status.size(), files));
  for (std::size_t i = 0; i < files; ++i) {
    out.files[i].path = std::move(paths[i]);
    out.files[i].status = static_cast<FeatureData::Status>(status[i]);
  }
}

void read_targets(const OpenFile& file, FeatureData& out) {
  const std::size_t files = out.files.size(), labels = out.labels.size();
  if (has(file.id, "/targets"))
    out.targets = DatasetReader(file, "/targets/name").strings();
  const std::size_t n = out.targets.size();
  const auto targets = files_table<float>(file, "/files/targets", H5T_NATIVE_FLOAT,
                                          checked_product({files, n}, "/files/targets"));
  const auto flags =
      files_table<std::uint8_t>(file, "/files/labels", H5T_NATIVE_UINT8,
                                checked_product({files, labels}, "/files/labels"));
  for (std::size_t i = 0; i < files; ++i) {
    if (!targets.empty())
      out.files[i].targets.assign(targets.data() + i * n, targets.data() + (i + 1) * n);
    for (std::size_t l = 0; l < labels && !flags.empty(); ++l)
      if (flags[i * labels + l] != 0) out.files[i].labels.push_back(static_cast<std::int32_t>(l));
  }
}

void read_statistics(const OpenFile& file, FeatureData& out) {
  if (!has(file.id, "/statistics")) return;
  const Hid group(H5Gopen2(file.id, "/statistics", H5P_DEFAULT), H5Gclose, "/statistics");
  ColumnStatistics& s = out.statistics.emplace();
  s.of = text_attribute(group, "of");
  s.frames = Attribute(group, "frames").integer();
  s.is_applied = Attribute(group, "applied").integer() != 0;
  s.mean = DatasetReader(file, "/statistics/mean").numbers<double>(H5T_NATIVE_DOUBLE);
  s.std = DatasetReader(file, "/statistics/std").numbers<double>(H5T_NATIVE_DOUBLE);
}

void read_remarks(const OpenFile& file, FeatureData& out) {
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
  H5Rows(OpenFile file, Hid mel, std::vector<std::uint64_t> shape)
      : file_(std::move(file)), mel_(std::move(mel)), shape_(std::move(shape)) {
    const Hid type(H5Dget_type(mel_), H5Tclose, "/mel");
    type_ = number_type_of(type);
  }
  ~H5Rows() override {
    const QuietHdf5 quiet;
    mel_ = {};
    file_.id = {};
  }
  H5Rows(const H5Rows&) = delete;
  H5Rows& operator=(const H5Rows&) = delete;

  [[nodiscard]] std::vector<float> read(std::uint64_t offset, std::uint64_t count) const override {
    const QuietHdf5 quiet;
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
  OpenFile file_;
  Hid mel_;
  std::vector<std::uint64_t> shape_;
  std::optional<NumberType> type_;  // of the rows, where it is one that is known
};

OpenFile open_h5(const std::string& path) {
  OpenFile out;
  out.fd = open_regular(path, out.bytes);
  if (read_at(out.fd.get(), 0, std::strlen(kSignature), path) != kSignature)
    throw RunError(path +
                   (path.ends_with(".part")
                        ? ": cannot be read yet: a run is still writing it, or died while it did"
                        : ": is not an HDF5 file"));
  // HDF5's own programs lock what they write, and so does an update.
  if (flock(out.fd.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    throw RunError(path + ": another program is writing it");
  out.from = std::make_unique<Hdf5Descriptor>(out.fd.get());
  try {
    out.id = out.from->open(path);
  } catch (const RunError& e) {
    throw RunError(fmt::format("{}: is an HDF5 file that is not complete, or damaged ({})", path,
                               e.what()));
  }
  return out;
}

// Reads a part of the file `path`; says which file an error is about.
template <class Read>
void as_described(const std::string& path, const Read& read) {
  try {
    read();
  } catch (const RunError& e) {
    throw RunError(fmt::format("{}: is damaged, or not as docs/output-format.md describes it: {}",
                               path, e.what()));
  }
}

}  // namespace

FeatureContents read_h5(const std::string& path) {
  const QuietHdf5 quiet;
  FeatureContents out;
  OpenFile file = open_h5(path);
  as_described(path, [&] { read_attributes(file.id, out.data); });
  if (!out.data.integer("format") || out.data.text("melflow_version").empty())
    throw RunError(path +
                   ": is an HDF5 file, but none that melflow wrote (it has no attributes "
                   "'format' and 'melflow_version')");
  check_format(path, out.data);
  as_described(path, [&] {
    Hid mel(H5Dopen2(file.id, "/mel", H5P_DEFAULT), H5Dclose, "no dataset /mel");
    read_mel(file, mel, out.data);
    read_files(file, out.data);
    read_targets(file, out.data);
    read_statistics(file, out.data);
    read_remarks(file, out.data);
    if (has(file.id, "/warnings"))
      out.data.warnings = DatasetReader(file, "/warnings").strings();
    out.rows = std::make_unique<H5Rows>(std::move(file), std::move(mel), out.data.shape);
  });
  return out;
}

}  // namespace melflow
