#include "stages/output/formats/h5_values.h"

#include <sys/file.h>

#include <cerrno>
#include <cstring>
#include <span>

#include <fmt/format.h>

#include "pipeline/base/problem.h"
#include "stages/files/own_file.h"
#include "stages/files/whole_io.h"
#include "stages/output/formats/h5_number_type.h"
#include "stages/output/formats/hdf5_heap.h"

namespace melflow {
namespace {

constexpr const char* kSignature = "\x89HDF\r\n\x1a\n";
constexpr std::size_t kMostAttribute = 16 << 20;  // [bytes] of text without a length

// Refuses links to other files in `name`, which starts with a slash.
void check_links(hid_t file, const std::string& name) {
  for (std::size_t end = 0; end != name.npos;) {
    end = name.find('/', end + 1);
    const std::string part = name.substr(0, end);
    if (!has_object(file, part)) return;  // opening it reports that
    H5L_info_t link;
    h5_check(H5Lget_info(file, part.c_str(), &link, H5P_DEFAULT), part);
    if (link.type != H5L_TYPE_HARD && link.type != H5L_TYPE_SOFT)
      throw RunError(part + " is a link to another file, where the file itself has to have it");
  }
}

// The number of values; one for a scalar.
std::size_t count_of(hid_t space, const std::string& what) {
  if (H5Sget_simple_extent_type(space) == H5S_NULL) return 0;
  return checked_product(h5_shape(space, what), what);
}

// A conversion that leaves the references to texts as they are.
herr_t keep_references(hid_t from, hid_t to, H5T_cdata_t* what, std::size_t, std::size_t,
                       std::size_t, void*, void*, hid_t) {
  if (what->command == H5T_CONV_FREE) return 0;  // the types may be gone
  what->need_bkg = H5T_BKG_NO;
  return H5Tget_size(from) == TextHeap::kReferenceBytes &&
                 H5Tget_size(to) == TextHeap::kReferenceBytes
             ? 0
             : -1;
}

Hid reference_type() {
  Hid out(H5Tcreate(H5T_OPAQUE, TextHeap::kReferenceBytes), H5Tclose, "references");
  static const herr_t is_known = H5Tregister(H5T_PERS_SOFT, "text references",
                                             h5_type(ColumnType::text), out, keep_references);
  h5_check(is_known, "references");
  return out;
}

// Reads the strings, fixed or variable in length, of an attribute or dataset by H5Aread or H5Dread.
template <class Read>
std::vector<std::string> read_texts(const OpenH5& file, const Hid& type, hid_t space,
                                    const std::string& what, const Read& read) {
  if (H5Tget_class(type) != H5T_STRING) throw RunError(what + ": is not a text");
  const std::size_t count = count_of(space, what);
  std::vector<std::string> out(count);
  if (count == 0) return out;
  if (H5Tis_variable_str(type) > 0) {
    constexpr std::size_t kBytes = TextHeap::kReferenceBytes;
    std::vector<std::byte> references(count * kBytes);
    h5_check(read(static_cast<hid_t>(reference_type()), static_cast<void*>(references.data())),
             what);
    TextHeap heap(file.fd.get(), file.bytes, what);
    for (std::size_t i = 0; i < count; ++i)
      out[i] = heap.text(std::span(references).subspan(i * kBytes).template first<kBytes>());
    return out;
  }
  const Hid memory(H5Tcopy(H5T_C_S1), H5Tclose, what);
  H5Tset_cset(memory, H5Tget_cset(type));
  const std::size_t size = H5Tget_size(type);
  h5_check(H5Tset_size(memory, size), what);
  h5_check(H5Tset_strpad(memory, H5Tget_strpad(type)), what);
  std::vector<char> bytes(count * size);
  h5_check(read(static_cast<hid_t>(memory), static_cast<void*>(bytes.data())), what);
  for (std::size_t i = 0; i < count; ++i)
    out[i].assign(bytes.data() + i * size, strnlen(bytes.data() + i * size, size));
  return out;
}

}  // namespace

OpenH5 open_h5(const std::string& path) {
  OpenH5 out;
  out.fd = open_regular(path, out.bytes);
  if (read_at(out.fd.get(), 0, std::strlen(kSignature), path) != kSignature)
    throw RunError(path +
                   (path.ends_with(".part")
                        ? ": cannot be read yet: a run is still writing it, or died while it did"
                        : ": this is not an HDF5 file; name an output of `melflow run`"));
  // HDF5's own programs lock the files that they write, and so does an update.
  if (flock(out.fd.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    throw InUseError(path + ": another program is writing it");
  out.from = std::make_unique<Hdf5Descriptor>(out.fd.get());
  try {
    out.id = out.from->open(path);
  } catch (const RunError& e) {
    throw RunError(fmt::format(
        "{}: this is an HDF5 file that is not complete, or damaged ({}); run its pipeline again",
        path, e.what()));
  }
  return out;
}

bool has_object(hid_t where, const std::string& name) {
  const htri_t is_there = H5Lexists(where, name.c_str(), H5P_DEFAULT);
  h5_check(is_there, "looking for " + name);
  return is_there > 0;
}

std::vector<std::uint64_t> h5_shape(hid_t space, const std::string& what) {
  const int rank = H5Sget_simple_extent_ndims(space);
  h5_check(rank, what);
  std::vector<hsize_t> shape(static_cast<std::size_t>(rank));
  h5_check(H5Sget_simple_extent_dims(space, shape.data(), nullptr), what);
  return {shape.begin(), shape.end()};
}

Hid open_dataset(hid_t file, const std::string& name) {
  check_links(file, name);
  return {H5Dopen2(file, name.c_str(), H5P_DEFAULT), H5Dclose, "no dataset " + name};
}

Hid open_group(hid_t file, const std::string& name) {
  check_links(file, name);
  return {H5Gopen2(file, name.c_str(), H5P_DEFAULT), H5Gclose, "no group " + name};
}

void check_storage(hid_t set, std::uint64_t bytes, const OpenH5& file, const std::string& name) {
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

H5Dataset::H5Dataset(const OpenH5& file, const std::string& name)
    : file_(&file),
      name_(name),
      id_(open_dataset(file.id, name)),
      space_(H5Dget_space(id_), H5Sclose, name),
      type_(H5Dget_type(id_), H5Tclose, name),
      count_(count_of(space_, name)) {
  check_storage(id_, checked_product({count_, H5Tget_size(type_)}, name), file, name);
}

void H5Dataset::read(ColumnType type, void* to) const {
  if (count_ == 0) return;
  // The numbers of an enumeration are read as plain integers.
  const Hid memory = h5_type(type == ColumnType::status ? ColumnType::int8 : type);
  h5_check(H5Dread(id_, memory, H5S_ALL, H5S_ALL, H5Conversion(), to), "reading " + name_);
}

std::string H5Dataset::bytes(ColumnType type) const {
  std::string out(count_ * size_of(type), '\0');
  read(type, out.data());
  return out;
}

std::vector<std::string> H5Dataset::texts() const {
  return read_texts(*file_, type_, space_, "reading " + name_, [this](hid_t memory, void* to) {
    return H5Dread(id_, memory, H5S_ALL, H5S_ALL, H5Conversion(), to);
  });
}

H5Attribute::H5Attribute(const OpenH5& file, hid_t object, const std::string& name)
    : file_(&file),
      name_(name),
      id_(H5Aopen(object, name.c_str(), H5P_DEFAULT), H5Aclose, name),
      type_(H5Aget_type(id_), H5Tclose, name),
      space_(H5Aget_space(id_), H5Sclose, name),
      is_single_(count_of(space_, name) == 1 && H5Tget_size(type_) <= kMostAttribute) {}

bool H5Attribute::is(H5T_class_t kind) const { return is_single_ && H5Tget_class(type_) == kind; }

std::string H5Attribute::text() const {
  if (!is(H5T_STRING)) throw RunError("the attribute " + name_ + " is not a text");
  return read_texts(*file_, type_, space_, "reading the attribute " + name_,
                    [&](hid_t memory, void* to) { return H5Aread(id_, memory, to); })
      .front();
}

std::int64_t H5Attribute::integer() const {
  if (!is(H5T_INTEGER)) throw RunError("the attribute " + name_ + " is not an integer");
  std::int64_t value = 0;
  h5_check(H5Aread(id_, H5T_NATIVE_INT64, &value), "reading the attribute " + name_);
  return value;
}

std::string text_attribute(const OpenH5& file, hid_t object, const std::string& name) {
  const htri_t is_there = H5Aexists(object, name.c_str());
  h5_check(is_there, "looking for the attribute " + name);
  return is_there > 0 ? H5Attribute(file, object, name).text() : "";
}

}  // namespace melflow
