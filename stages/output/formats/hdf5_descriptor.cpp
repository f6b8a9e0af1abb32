#include "stages/output/formats/hdf5_descriptor.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <span>
#include <vector>

#if H5_VERSION_GE(1, 13, 0)
#include <H5FDdevelop.h>
#endif

#include "stages/files/whole_io.h"
#include "stages/output/formats/hdf5_heap.h"

namespace melflow {

// The functions that the library calls. Addresses are positions in the descriptor's file.
struct Hdf5Driver {
  struct File {
    H5FD_t base;  // the library's part; has to come first
    Hdf5Descriptor* at;
    haddr_t eoa;   // end of what HDF5 has allotted
    haddr_t next;  // where HDF5 allots next, around an omitted range
    haddr_t eof;   // end of what HDF5 has written or found
  };
  struct Info {
    Hdf5Descriptor* at;
  };
  static File& of(H5FD_t* file) { return *reinterpret_cast<File*>(file); }
  static const File& of(const H5FD_t* file) { return *reinterpret_cast<const File*>(file); }

  static H5FD_t* open(const char*, unsigned flags, hid_t access, haddr_t) {
    const auto* info = static_cast<const Info*>(H5Pget_driver_info(access));
    struct stat st {};
    if (info == nullptr || fstat(info->at->fd_, &st) != 0) return nullptr;
    auto* file = new (std::nothrow) File{};
    if (file == nullptr) return nullptr;
    file->at = info->at;
    file->eof = (flags & H5F_ACC_TRUNC) != 0 ? 0 : static_cast<haddr_t>(st.st_size);
    return &file->base;
  }
  static herr_t close(H5FD_t* file) {
    delete &of(file);
    return 0;
  }
  // Flags of the library's own file driver, so that files have the same layout.
  static herr_t query(const H5FD_t*, unsigned long* flags) {
    *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DATA_SIEVE |
             H5FD_FEAT_AGGREGATE_SMALLDATA | H5FD_FEAT_DEFAULT_VFD_COMPATIBLE;
    return 0;
  }
  static haddr_t get_eoa(const H5FD_t* file, H5FD_mem_t) { return of(file).eoa; }
  static herr_t set_eoa(H5FD_t* file, H5FD_mem_t, haddr_t at) {
    File& f = of(file);
    if (f.next == f.eoa) f.next = at;  // the last allotted piece grows or shrinks
    f.eoa = at;
    return 0;
  }
  // Used only for files around a range: others grow at their end.
  static haddr_t allot(H5FD_t* file, H5FD_mem_t type, hid_t, hsize_t bytes) {
    File& f = of(file);
    const Hdf5Descriptor::Range &there = f.at->there_, &left_out = f.at->left_out_;
    if (type == H5FD_MEM_DRAW && there.bytes > 0 && there.bytes == bytes) return there.at;
    const haddr_t behind = left_out.at + left_out.bytes;
    if (f.next < left_out.at && f.next + bytes > left_out.at) f.next = behind;
    const haddr_t at = f.next;
    f.next += bytes;
    f.eoa = std::max({f.eoa, f.next, behind});
    return at;
  }
  static haddr_t get_eof(const H5FD_t* file, H5FD_mem_t) { return of(file).eof; }

  // Reads zeros where nothing has been written yet.
  static herr_t read(H5FD_t* file, H5FD_mem_t type, hid_t, haddr_t at, std::size_t bytes,
                     void* to) {
    const File& f = of(file);
    if (f.at->located_ != nullptr && type == H5FD_MEM_DRAW) {
      *f.at->located_ = {at, bytes};
      return 0;
    }
    const std::size_t there =
        at >= f.eof ? 0 : static_cast<std::size_t>(std::min<haddr_t>(bytes, f.eof - at));
    std::memset(static_cast<char*>(to) + there, 0, bytes - there);
    if (read_whole(f.at->fd_, to, there, at) != 0) return -1;
    return is_believable(f, at, {static_cast<const std::byte*>(to), there}) ? 0 : -1;
  }
  // The library reads the beginning of a collection first, and then the rest.
  static bool is_believable(const File& f, haddr_t at, std::span<const std::byte> begin) {
    const auto size = heap_bytes(begin);
    if (!size) return true;
    if (*size > f.eof - at) return false;
    if (*size <= begin.size()) return is_sound_heap(begin.first(*size));
    std::vector<std::byte> whole(*size);
    return read_whole(f.at->fd_, whole.data(), whole.size(), at) == 0 && is_sound_heap(whole);
  }
  static herr_t write(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t at, std::size_t bytes,
                      const void* from) {
    File& f = of(file);
    if (f.at->there_.bytes > 0 && at == f.at->there_.at && bytes == f.at->there_.bytes) return 0;
    if (f.at->error_ == 0) f.at->fail(write_whole(f.at->fd_, from, bytes, at));
    f.eof = std::max<haddr_t>(f.eof, at + bytes);
    return 0;
  }
  static herr_t truncate(H5FD_t* file, hid_t, hbool_t) {
    File& f = of(file);
    if (f.eof == f.eoa) return 0;
    if (f.at->error_ == 0 && ftruncate(f.at->fd_, static_cast<off_t>(f.eoa)) != 0)
      f.at->fail(errno);
    f.eof = f.eoa;
    return 0;
  }

  static const H5FD_class_t& driver(bool is_around) {
    static const auto make = [](bool allots) {
      H5FD_class_t d{};
#if H5_VERSION_GE(1, 13, 0)
      d.version = H5FD_CLASS_VERSION;
      d.value = 501;  // a value for private drivers
#endif
      d.name = "melflow_descriptor";
      d.maxaddr = (haddr_t{1} << (8 * sizeof(off_t) - 1)) - 1;
      d.fc_degree = H5F_CLOSE_WEAK;
      d.fapl_size = sizeof(Info);
      d.open = open;
      d.close = close;
      d.query = query;
      d.get_eoa = get_eoa;
      d.set_eoa = set_eoa;
      d.get_eof = get_eof;
      d.read = read;
      d.write = write;
      d.truncate = truncate;
      const H5FD_mem_t kinds[] = H5FD_FLMAP_DICHOTOMY;
      std::copy(std::begin(kinds), std::end(kinds), d.fl_map);
      if (allots) d.alloc = allot;
      return d;
    };
    static const H5FD_class_t plain = make(false), around = make(true);
    return is_around ? around : plain;
  }

  static Hid access(Hdf5Descriptor* to, bool is_around = false) {
    static const hid_t plain = H5FDregister(&driver(false));
    static const hid_t around = H5FDregister(&driver(true));
    Hid out(H5Pcreate(H5P_FILE_ACCESS), H5Pclose, "file access");
    const Info info{to};
    h5_check(H5Pset_driver(out, is_around ? around : plain, &info), "file driver");
    return out;
  }
};

Hid Hdf5Descriptor::create(const std::string& name, hsize_t aligned_from, hsize_t alignment) {
  const Hid access = Hdf5Driver::access(this);
  h5_check(H5Pset_alignment(access, aligned_from, alignment), "alignment");
  return {H5Fcreate(name.c_str(), H5F_ACC_TRUNC, without_times(H5P_FILE_CREATE), access), H5Fclose,
          "cannot create " + name};
}

Hid Hdf5Descriptor::create_around(const std::string& name, std::uint64_t begin, std::uint64_t end) {
  left_out_ = {begin, end - begin};
  const Hid access = Hdf5Driver::access(this, true);
  // Makes HDF5 allot each chunk separately.
  h5_check(H5Pset_small_data_block_size(access, 0), "blocks");
  return {H5Fcreate(name.c_str(), H5F_ACC_TRUNC, without_times(H5P_FILE_CREATE), access), H5Fclose,
          "cannot create " + name};
}

Hid Hdf5Descriptor::open(const std::string& name) {
  const Hid access = Hdf5Driver::access(this);
  return {H5Fopen(name.c_str(), H5F_ACC_RDONLY, access), H5Fclose, "cannot open " + name};
}

}  // namespace melflow
