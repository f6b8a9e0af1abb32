#include "stages/output/formats/hdf5.h"

#include "pipeline/base/problem.h"

namespace melflow {
namespace {

// Every file is closed by its owner, so HDF5 has nothing to do at exit; and HDF5 1.10 crashes there
// if a file could not be closed.
[[maybe_unused]] const herr_t at_exit = H5dont_atexit();

// Returns the innermost message of the library's error stack, which names the cause.
std::string cause() {
  std::string text;
  H5Ewalk2(
      H5E_DEFAULT, H5E_WALK_UPWARD,
      [](unsigned n, const H5E_error2_t* e, void* out) -> herr_t {
        if (n == 0 && e->desc != nullptr) *static_cast<std::string*>(out) = e->desc;
        return 0;
      },
      &text);
  return text;
}

}  // namespace

Hid::Hid(hid_t id, Closer closer, const std::string& what) : id_(id), closer_(closer) {
  if (id < 0) throw RunError("HDF5: " + what + ": " + cause());
}

void Hid::close(const std::string& what) {
  const hid_t id = std::exchange(id_, H5I_INVALID_HID);
  if (id >= 0) h5_check(closer_(id), what);
}

Hid without_times(hid_t properties) {
  Hid out(H5Pcreate(properties), H5Pclose, "properties");
  h5_check(H5Pset_obj_track_times(out, false), "times");
  return out;
}

H5Conversion::H5Conversion()
    : values_(std::size_t{64} << 10),
      background_(values_.size()),
      transfer_(H5Pcreate(H5P_DATASET_XFER), H5Pclose, "memory for a conversion") {
  h5_check(H5Pset_buffer(transfer_, values_.size(), values_.data(), background_.data()),
           "memory for a conversion");
}

void h5_check(herr_t status, const std::string& what) {
  if (status < 0) throw RunError("HDF5: " + what + ": " + cause());
}

std::mutex& hdf5_mutex() {
  static std::mutex mutex;
  return mutex;
}

QuietHdf5::QuietHdf5() {
  H5Eget_auto2(H5E_DEFAULT, &function_, &data_);
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

QuietHdf5::~QuietHdf5() { H5Eset_auto2(H5E_DEFAULT, function_, data_); }

}  // namespace melflow
