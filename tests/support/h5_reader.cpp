#include "tests/support/h5_reader.h"

#include <hdf5.h>
#include <hdf5_hl.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

namespace melflow::test {
namespace {

// Owns an identifier; H5Idec_ref closes identifiers of any kind.
class Id {
 public:
  Id(hid_t id, const std::string& what) : id_(id) {
    if (id < 0) throw std::runtime_error("HDF5: " + what);
  }
  Id(Id&& other) noexcept : id_(std::exchange(other.id_, -1)) {}
  Id& operator=(Id&&) = delete;
  ~Id() {
    if (id_ >= 0) H5Idec_ref(id_);
  }
  operator hid_t() const { return id_; }  // NOLINT: it stands for the identifier in every call

 private:
  hid_t id_;
};

void check(herr_t status, const std::string& what) {
  if (status < 0) throw std::runtime_error("HDF5: " + what);
}

std::string number_type(hid_t type) {
  const std::size_t bits = 8 * H5Tget_size(type);
  const bool is_float = H5Tget_class(type) == H5T_FLOAT;
  std::string text = (is_float                            ? "float"
                      : H5Tget_sign(type) == H5T_SGN_NONE ? "uint"
                                                          : "int") +
                     std::to_string(bits);
  // Only IEEE 754 binary16 counts as float16, and bfloat16 is the upper half of a float.
  if (is_float && bits == 16) {
    std::array<std::size_t, 5> f{};
    auto& [sign, exponent, exponent_bits, fraction, fraction_bits] = f;
    check(H5Tget_fields(type, &sign, &exponent, &exponent_bits, &fraction, &fraction_bits),
          "fields of a float");
    const bool is_16 = H5Tget_norm(type) == H5T_NORM_IMPLIED && H5Tget_precision(type) == 16;
    if (is_16 && f == std::array<std::size_t, 5>{15, 7, 8, 0, 7} && H5Tget_ebias(type) == 127)
      text = "bfloat16";
    else if (!is_16 || f != std::array<std::size_t, 5>{15, 10, 5, 0, 10} ||
             H5Tget_ebias(type) != 15)
      text = "16-bit float of another kind";
  }
  if (bits > 8 && H5Tget_order(type) != H5T_ORDER_LE) text += " big-endian";
  return text;
}

std::string type_text(hid_t type) {
  switch (H5Tget_class(type)) {
    case H5T_INTEGER:
    case H5T_FLOAT:
      return number_type(type);
    case H5T_STRING:
      if (H5Tis_variable_str(type) > 0 && H5Tget_cset(type) == H5T_CSET_UTF8) return "string";
      return "string of another kind";
    case H5T_ENUM: {
      const Id base(H5Tget_super(type), "base of an enumeration");
      std::string text = "enum " + number_type(base) + ":";
      for (unsigned i = 0; i < static_cast<unsigned>(H5Tget_nmembers(type)); ++i) {
        char* name = H5Tget_member_name(type, i);
        std::int64_t value = 0;
        check(H5Tget_member_value(type, i, &value), "value of an enumeration");
        check(H5Tconvert(base, H5T_NATIVE_INT64, 1, &value, nullptr, H5P_DEFAULT), "conversion");
        text += std::string(" ") + name + "=" + std::to_string(value);
        H5free_memory(name);
      }
      return text;
    }
    default:
      return "something else";
  }
}

std::string of(const std::string& object) { return object.empty() ? "/" : object; }

}  // namespace

struct H5File::Impl {
  explicit Impl(const std::string& path_)
      : path(path_), file(H5Fopen(path_.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), "open " + path_) {}

  Id set(const std::string& name) const {
    return {H5Dopen2(file, name.c_str(), H5P_DEFAULT), path + ": no dataset " + name};
  }
  Id attribute(const std::string& object, const std::string& name) const {
    return {H5Aopen_by_name(file, of(object).c_str(), name.c_str(), H5P_DEFAULT, H5P_DEFAULT),
            path + ": " + of(object) + " has no attribute " + name};
  }
  std::size_t count(hid_t dataset) const {
    const Id space(H5Dget_space(dataset), path + ": dataspace");
    return static_cast<std::size_t>(H5Sget_simple_extent_npoints(space));
  }
  template <class T>
  std::vector<T> numbers(const std::string& name, hid_t memory) const {
    const Id d = set(name);
    const Id stored(H5Dget_type(d), name);
    std::vector<T> out(count(d));
    // An enumeration is read as such: it does not convert to its numbers.
    if (H5Tget_class(stored) == H5T_ENUM) {
      const Id native(H5Tget_native_type(stored, H5T_DIR_DEFAULT), name);
      const Id base(H5Tget_super(native), name);
      if (!out.empty()) {
        check(H5Dread(d, native, H5S_ALL, H5S_ALL, H5P_DEFAULT, out.data()), "read " + name);
        check(H5Tconvert(base, memory, out.size(), out.data(), nullptr, H5P_DEFAULT), name);
      }
      return out;
    }
    if (!out.empty())
      check(H5Dread(d, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, out.data()), "read " + name);
    return out;
  }

  std::string path;
  Id file;
};

H5File::H5File(const std::string& path) {
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  impl_ = std::make_unique<Impl>(path);
}
H5File::~H5File() = default;

std::vector<std::string> H5File::names() const {
  std::vector<std::string> out;
  check(H5Ovisit2(
            impl_->file, H5_INDEX_NAME, H5_ITER_INC,
            [](hid_t, const char* name, const H5O_info_t*, void* to) -> herr_t {
              if (std::string(name) != ".")
                static_cast<std::vector<std::string>*>(to)->emplace_back(name);
              return 0;
            },
            &out, H5O_INFO_BASIC),
        impl_->path + ": list of objects");
  std::sort(out.begin(), out.end());
  return out;
}

bool H5File::has(const std::string& name) const {
  const auto all = names();
  return std::binary_search(all.begin(), all.end(), name);
}

std::vector<std::uint64_t> H5File::shape(const std::string& name) const {
  const Id d = impl_->set(name);
  const Id space(H5Dget_space(d), name);
  std::vector<hsize_t> sizes(static_cast<std::size_t>(H5Sget_simple_extent_ndims(space)));
  H5Sget_simple_extent_dims(space, sizes.data(), nullptr);
  return {sizes.begin(), sizes.end()};
}

std::string H5File::type(const std::string& name) const {
  const Id d = impl_->set(name);
  const Id t(H5Dget_type(d), name);
  return type_text(t);
}

std::string H5File::layout(const std::string& name) const {
  const Id d = impl_->set(name);
  const Id create(H5Dget_create_plist(d), name);
  switch (H5Pget_layout(create)) {
    case H5D_CONTIGUOUS:
      return "contiguous";
    case H5D_CHUNKED:
      return "chunked";
    case H5D_COMPACT:
      return "compact";
    default:
      return "something else";
  }
}

std::int64_t H5File::offset(const std::string& name) const {
  const haddr_t at = H5Dget_offset(impl_->set(name));
  return at == HADDR_UNDEF ? -1 : static_cast<std::int64_t>(at);
}

std::vector<float> H5File::floats(const std::string& name) const {
  return impl_->numbers<float>(name, H5T_NATIVE_FLOAT);
}
std::vector<double> H5File::doubles(const std::string& name) const {
  return impl_->numbers<double>(name, H5T_NATIVE_DOUBLE);
}
std::vector<std::int64_t> H5File::integers(const std::string& name) const {
  return impl_->numbers<std::int64_t>(name, H5T_NATIVE_INT64);
}

std::vector<std::string> H5File::strings(const std::string& name) const {
  const Id d = impl_->set(name);
  const Id type(H5Dget_type(d), name);
  if (type_text(type) != "string") throw std::runtime_error("HDF5: " + name + " has no strings");
  std::vector<char*> texts(impl_->count(d));
  std::vector<std::string> out;
  if (texts.empty()) return out;
  check(H5Dread(d, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, texts.data()), "read " + name);
  for (const char* t : texts) out.emplace_back(t == nullptr ? "" : t);
  const Id space(H5Dget_space(d), name);
  H5Dvlen_reclaim(type, space, H5P_DEFAULT, texts.data());
  return out;
}

std::string H5File::raw(const std::string& name) const {
  const Id d = impl_->set(name);
  const Id type(H5Dget_type(d), name);
  std::string out(impl_->count(d) * H5Tget_size(type), '\0');
  if (!out.empty())
    check(H5Dread(d, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, out.data()), "read " + name);
  return out;
}

std::string H5File::axis_label(const std::string& name, unsigned axis) const {
  std::array<char, 256> text{};
  const Id d = impl_->set(name);
  if (H5DSget_label(d, axis, text.data(), text.size()) < 0) return "";
  return text.data();
}

std::string H5File::axis_scale(const std::string& name, unsigned axis) const {
  std::string out;
  const Id d = impl_->set(name);
  H5DSiterate_scales(
      d, axis, nullptr,
      [](hid_t, unsigned, hid_t scale, void* to) -> herr_t {
        std::array<char, 256> text{};
        H5Iget_name(scale, text.data(), text.size());
        *static_cast<std::string*>(to) = text.data();
        return 1;
      },
      &out);
  return out;
}

std::vector<std::string> H5File::attribute_names(const std::string& object) const {
  const Id o(H5Oopen(impl_->file, of(object).c_str(), H5P_DEFAULT),
             impl_->path + ": no object " + object);
  std::vector<std::string> out;
  hsize_t at = 0;
  check(H5Aiterate2(
            o, H5_INDEX_NAME, H5_ITER_INC, &at,
            [](hid_t, const char* name, const H5A_info_t*, void* to) -> herr_t {
              static_cast<std::vector<std::string>*>(to)->emplace_back(name);
              return 0;
            },
            &out),
        "attributes of " + object);
  return out;
}

std::string H5File::attribute_type(const std::string& object, const std::string& name) const {
  const Id a = impl_->attribute(object, name);
  const Id type(H5Aget_type(a), name);
  return type_text(type);
}

std::int64_t H5File::integer_attribute(const std::string& object, const std::string& name) const {
  const Id a = impl_->attribute(object, name);
  std::int64_t value = 0;
  check(H5Aread(a, H5T_NATIVE_INT64, &value), "attribute " + name);
  return value;
}

std::string H5File::text_attribute(const std::string& object, const std::string& name) const {
  const Id a = impl_->attribute(object, name);
  const Id type(H5Aget_type(a), name);
  if (type_text(type) != "string") throw std::runtime_error("HDF5: " + name + " is no string");
  char* text = nullptr;
  check(H5Aread(a, type, &text), "attribute " + name);
  std::string out(text == nullptr ? "" : text);
  H5free_memory(text);
  return out;
}

}  // namespace melflow::test
