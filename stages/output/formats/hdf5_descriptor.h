// HDF5 on a file that is open already: a driver of the library's "virtual file layer" that reads
// and writes a descriptor and opens nothing by name.
//
// HDF5 1.10 loses errors of writes: what it keeps in buffers of its own is written when a dataset is
// closed, and where that fails the dataset is full of noughts and nobody is told. So the library is
// not told either: every write succeeds as far as it knows, the first error is kept here, and who
// makes the file asks for it at the end. The file can then be closed as after any other end.
#pragma once

#include <cerrno>
#include <string>

#include "stages/output/formats/hdf5.h"

namespace melflow {

class Hdf5Descriptor {
 public:
  /// `fd` is open, and stays the caller's. This object outlives the files it gives.
  explicit Hdf5Descriptor(int fd) : fd_(fd) {}
  Hdf5Descriptor(const Hdf5Descriptor&) = delete;
  Hdf5Descriptor& operator=(const Hdf5Descriptor&) = delete;

  /// A new HDF5 file from byte 0 on, as if there was nothing; what is not written stays what it
  /// was. With `alignment`, datasets of at least `aligned_from` bytes begin at a multiple of it.
  /// `name` is for messages. Throws RunError.
  Hid create(const std::string& name, hsize_t aligned_from = 1, hsize_t alignment = 1);
  /// The file that is there, to be read. Throws RunError.
  Hid open(const std::string& name);

  /// Of the first write that failed; 0 as long as all is well. Nothing is written from then on.
  [[nodiscard]] int error() const { return error_; }
  /// Nothing is written from now on: the file is given up.
  void abandon() { fail(ECANCELED); }

 private:
  friend struct Hdf5Driver;
  void fail(int error) {
    if (error_ == 0) error_ = error;
  }

  int fd_;
  int error_ = 0;
};

}  // namespace melflow
