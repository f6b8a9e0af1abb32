// Lets HDF5 work on a file that is open already: a driver for the library's virtual file layer that
// reads and writes a descriptor and opens nothing by name.
//
// HDF5 1.10 loses write errors: it writes its buffers when a dataset is closed, and when that fails
// the dataset is full of zeros and no error is returned. So this driver reports every write to the
// library as successful and keeps the first error, which the code that makes the file checks at the
// end; the file can then be closed as usual.
//
// Threads: one at a time, under hdf5_mutex(). Lifetime: it has to outlive every identifier of the
// file that it makes or opens, and the descriptor has to outlive it.
#pragma once

#include <cstdint>
#include <string>

#include "stages/output/formats/hdf5.h"

namespace melflow {

class Hdf5Descriptor {
 public:
  /// `fd` is open and stays the caller's. This object must outlive the files that it returns.
  explicit Hdf5Descriptor(int fd) : fd_(fd) {}
  Hdf5Descriptor(const Hdf5Descriptor&) = delete;
  Hdf5Descriptor& operator=(const Hdf5Descriptor&) = delete;

  /// Begins a new HDF5 file at byte 0; bytes that HDF5 does not write keep their value. Datasets of
  /// at least `aligned_from` bytes begin at a multiple of `alignment` [bytes]. `name` is for
  /// messages. Throws RunError.
  Hid create(const std::string& name, hsize_t aligned_from = 1, hsize_t alignment = 1);
  /// Begins a new HDF5 file that leaves bytes [begin, end) to the caller, who declares by There
  /// which of them HDF5 is to treat as its own. Throws RunError.
  Hid create_around(const std::string& name, std::uint64_t begin, std::uint64_t end);
  /// While it lives, the next bytes that HDF5 allots for data, if there are `bytes` of them, are
  /// those at `at`, which are already written: HDF5's write to them is skipped.
  class There {
   public:
    There(Hdf5Descriptor& to, std::uint64_t at, std::uint64_t bytes) : to_(to) {
      to.there_ = {at, bytes};
    }
    There(const There&) = delete;
    There& operator=(const There&) = delete;
    ~There() { to_.there_ = {}; }

   private:
    Hdf5Descriptor& to_;
  };
  struct Range {
    std::uint64_t at = 0, bytes = 0;
  };
  /// While it lives, data that HDF5 would read is not read: `to` gets the position of the last.
  class Located {
   public:
    Located(Hdf5Descriptor& in, Range& to) : in_(in) { in.located_ = &to; }
    Located(const Located&) = delete;
    Located& operator=(const Located&) = delete;
    ~Located() { in_.located_ = nullptr; }

   private:
    Hdf5Descriptor& in_;
  };
  /// Opens the existing file to be read. `name` is for messages. Throws RunError.
  Hid open(const std::string& name);

  /// The errno of the first write that failed, 0 without one. Nothing is written after it.
  [[nodiscard]] int error() const { return error_; }

 private:
  friend struct Hdf5Driver;
  void fail(int error) {
    if (error_ == 0) error_ = error;
  }

  int fd_;
  int error_ = 0;
  Range left_out_, there_;
  Range* located_ = nullptr;
};

}  // namespace melflow
