// Owners of HDF5 identifiers, and calls that throw. The library has one global lock: nothing here
// is meant for the hot path.
#pragma once

#include <hdf5.h>

#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace melflow {

class Hid {
 public:
  using Closer = herr_t (*)(hid_t);
  Hid() = default;
  /// Throws RunError naming `what` when `id` is invalid.
  Hid(hid_t id, Closer closer, const std::string& what);
  Hid(Hid&& other) noexcept
      : id_(std::exchange(other.id_, H5I_INVALID_HID)), closer_(other.closer_) {}
  Hid& operator=(Hid&& other) noexcept {
    std::swap(id_, other.id_);
    std::swap(closer_, other.closer_);
    return *this;
  }
  ~Hid() {
    if (id_ >= 0) closer_(id_);
  }
  /// Closes the identifier; throws RunError naming `what` when that fails.
  void close(const std::string& what);
  operator hid_t() const { return id_; }  // NOLINT: it stands for the identifier in every call

 private:
  hid_t id_ = H5I_INVALID_HID;
  Closer closer_ = nullptr;
};

/// Properties for making objects of a class (H5P_DATASET_CREATE, ...) without times, so that a file
/// has the same bytes whenever it is made.
Hid without_times(hid_t properties);

/// Properties of a transfer that converts values, with memory for the conversion: HDF5 1.10
/// destroys its own properties when the system has no memory for it.
class H5Conversion {
 public:
  H5Conversion();
  operator hid_t() const { return transfer_; }  // NOLINT: likewise

 private:
  std::vector<char> values_, background_;
  Hid transfer_;
};

/// Throws RunError naming `what` when an HDF5 call failed.
void h5_check(herr_t status, const std::string& what);

/// Held around every use of the library during a run, since it may be built without thread safety.
std::mutex& hdf5_mutex();

/// Silences the library's own printing for the life of the object; errors come as exceptions.
class QuietHdf5 {
 public:
  QuietHdf5();
  ~QuietHdf5();

 private:
  H5E_auto2_t function_ = nullptr;
  void* data_ = nullptr;
};

}  // namespace melflow
