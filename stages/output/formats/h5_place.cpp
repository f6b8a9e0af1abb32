#include "stages/output/formats/h5_place.h"

#include <algorithm>
#include <cstring>
#include <memory_resource>
#include <new>
#include <utility>

#include "stages/output/formats/h5_number_type.h"
#include "stages/output/formats/output_index.h"

namespace melflow {
namespace {

constexpr std::size_t kAtOnce = 8192;  // entries converted at a time, whatever the corpus' size

void expect(bool is_there, const char* name) {
  if (!is_there) fail_read_back(name);
}

// Memory for the texts that HDF5 reads, released all at once: an allocation for each would be most
// of the cost of reading them.
class TextMemory {
 public:
  TextMemory() {
    h5_check(
        H5Pset_vlen_mem_manager(transfer_, &TextMemory::allocate, this, &TextMemory::release, this),
        "memory for texts");
  }
  TextMemory(const TextMemory&) = delete;
  TextMemory& operator=(const TextMemory&) = delete;
  /// For H5Dread, and H5Dwrite.
  [[nodiscard]] hid_t transfer() const { return transfer_; }
  void clear() { memory_.release(); }

 private:
  static void* allocate(std::size_t bytes, void* self) {
    try {
      return static_cast<TextMemory*>(self)->memory_.allocate(bytes, 1);
    } catch (const std::bad_alloc&) {
      return nullptr;
    }
  }
  static void release(void*, void*) {}

  std::pmr::monotonic_buffer_resource memory_;
  H5Conversion transfer_;
};

// Writes numbers to a dataset or attribute, or reads them back to compare; by H5Dwrite and H5Dread,
// or the calls for attributes.
template <class Write, class Read>
void transfer(const H5Place& where, const char* name, const std::string& bytes, const Write& write,
              const Read& read) {
  if (where.writes()) return h5_check(write(bytes.data()), name);
  std::string there(bytes.size(), '\0');
  h5_check(read(there.data()), name);
  expect(there == bytes, name);
}

// The same for texts, which end in '\0'. let_go(texts): called when texts that HDF5 has read are no
// longer needed.
template <class Write, class Read, class LetGo>
void transfer(const H5Place& where, const char* name, const std::vector<const char*>& texts,
              const Write& write, const Read& read, const LetGo& let_go) {
  if (where.writes()) return h5_check(write(texts.data()), name);
  std::vector<char*> there(texts.size(), nullptr);
  h5_check(read(there.data()), name);
  bool is_same = true;
  for (std::size_t i = 0; i < texts.size(); ++i)
    is_same = is_same && there[i] != nullptr && std::strcmp(texts[i], there[i]) == 0;
  let_go(there.data());
  expect(is_same, name);
}

// Goes through a dataset of `shape`, `at_once` entries of its first axis at a time, by piece(set,
// first, n, memory, file). `create`: the properties of a new dataset.
template <class Piece>
void in_pieces(const H5Place& where, const char* name, hid_t type, const H5Place::Shape& shape,
               hsize_t at_once, hid_t create, const Piece& piece) {
  const auto rank = static_cast<int>(shape.size());
  const Hid space(H5Screate_simple(rank, shape.data(), nullptr), H5Sclose, name);
  Hid set(where.writes() ? H5Dcreate2(where, name, type, space, H5P_DEFAULT, create, H5P_DEFAULT)
                         : H5Dopen2(where, name, H5P_DEFAULT),
          H5Dclose, name);
  if (!where.writes()) {
    const Hid there(H5Dget_space(set), H5Sclose, name);
    expect(H5Sextent_equal(there, space) > 0, name);
  }
  H5Place::Shape start(shape.size(), 0), count = shape;
  for (; start[0] < shape[0]; start[0] += at_once) {
    count[0] = std::min(at_once, shape[0] - start[0]);
    h5_check(
        H5Sselect_hyperslab(space, H5S_SELECT_SET, start.data(), nullptr, count.data(), nullptr),
        name);
    const Hid memory(H5Screate_simple(rank, count.data(), nullptr), H5Sclose, name);
    piece(set, start[0], count[0], memory, space);
  }
  set.close(name);
}

Hid make_attribute(const H5Place& where, const char* name, hid_t type, hid_t space) {
  return {where.writes() ? H5Acreate2(where, name, type, space, H5P_DEFAULT, H5P_DEFAULT)
                         : H5Aopen(where, name, H5P_DEFAULT),
          H5Aclose, name};
}

}  // namespace

H5Place::H5Place(const H5Place& in, const std::string& name)
    : group_(in.writes() ? H5Gcreate2(in, name.c_str(), H5P_DEFAULT,
                                      without_times(H5P_GROUP_CREATE), H5P_DEFAULT)
                         : H5Gopen2(in, name.c_str(), H5P_DEFAULT),
             H5Gclose, name),
      id_(group_),
      pass_(in.pass_) {}

void H5Place::numbers(const char* name, ColumnType type, const Shape& shape, const PutBytes& put,
                      bool is_packed) const {
  const Hid stored = h5_type(type);
  const Hid create = without_times(H5P_DATASET_CREATE);
  hsize_t at_once = kAtOnce;
  if (shape.size() > 1) at_once = std::clamp<hsize_t>(kAtOnce * 8 / shape[1], 1, shape[0]);
  if (is_packed) {
    const hsize_t chunk[] = {at_once, shape[1]};
    h5_check(H5Pset_chunk(create, 2, chunk), name);
    h5_check(H5Pset_deflate(create, 1), name);
  }
  const std::size_t entry = size_of(type) * (shape.size() > 1 ? shape[1] : 1);  // size [bytes]
  std::string bytes;
  in_pieces(*this, name, stored, shape, at_once, create,
            [&](hid_t set, hsize_t first, hsize_t n, hid_t memory, hid_t file) {
              bytes.assign(n * entry, '\0');
              put(first, n, bytes.data());
              transfer(
                  *this, name, bytes,
                  [&](const void* from) {
                    return H5Dwrite(set, stored, memory, file, H5P_DEFAULT, from);
                  },
                  [&](void* to) { return H5Dread(set, stored, memory, file, H5P_DEFAULT, to); });
            });
}

void H5Place::texts(const char* name, std::size_t count,
                    const std::function<std::string(std::size_t)>& text) const {
  const Hid type = h5_type(ColumnType::text);
  std::string all;  // the texts, one after another
  std::vector<std::size_t> begins;
  std::vector<const char*> texts;
  TextMemory room;
  in_pieces(*this, name, type, {count}, kAtOnce, without_times(H5P_DATASET_CREATE),
            [&](hid_t set, hsize_t first, hsize_t n, hid_t memory, hid_t file) {
              all.clear();
              begins.clear();
              for (hsize_t i = first; i < first + n; ++i) {
                begins.push_back(all.size());
                all.append(text(i)).push_back('\0');
              }
              texts.clear();
              for (const std::size_t at : begins) texts.push_back(all.data() + at);
              transfer(
                  *this, name, texts,
                  [&](const void* from) {
                    return H5Dwrite(set, type, memory, file, room.transfer(), from);
                  },
                  [&](void* to) { return H5Dread(set, type, memory, file, room.transfer(), to); },
                  [&](char**) { room.clear(); });
            });
}

void H5Place::attribute(const char* name, ColumnType type, const std::string& bytes) const {
  const Hid stored = h5_type(type), space(H5Screate(H5S_SCALAR), H5Sclose, name);
  Hid a = make_attribute(*this, name, stored, space);
  transfer(
      *this, name, bytes, [&](const void* from) { return H5Awrite(a, stored, from); },
      [&](void* to) { return H5Aread(a, stored, to); });
  a.close(name);
}

void H5Place::attribute(const char* name, const std::string& text) const {
  const Hid type = h5_type(ColumnType::text), space(H5Screate(H5S_SCALAR), H5Sclose, name);
  Hid a = make_attribute(*this, name, type, space);
  transfer(
      *this, name, std::vector{text.c_str()},
      [&](const void* from) { return H5Awrite(a, type, from); },
      [&](void* to) { return H5Aread(a, type, to); },
      [&](char** texts) { h5_check(H5Dvlen_reclaim(type, space, H5P_DEFAULT, texts), name); });
  a.close(name);
}

}  // namespace melflow
