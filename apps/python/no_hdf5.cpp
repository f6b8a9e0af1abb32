// What the stages that are left call of HDF5. Rows in such files are read by melflow.open(), which
// uses h5py.
#include <mutex>

#include "pipeline/problem.h"
#include "pipeline/registry.h"
#include "stages/output/formats/h5_reader.h"
#include "stages/output/formats/hdf5.h"

namespace melflow {
namespace {

constexpr OtherName kProgramsOnly[] = {
    {"hdf5_write", "the program", "batches", "what writes HDF5 is run by melflow.run()"},
};
[[maybe_unused]] const bool kAreSet = [] {
  Registry::global().other_names(kProgramsOnly);
  return true;
}();

}  // namespace

FeatureContents read_h5(const std::string& path) {
  throw RunError(path +
                 ": the Python module reads no HDF5 here; write that output by npy_write, or run "
                 "this pipeline by the program (melflow.run)");
}

std::mutex& hdf5_mutex() {
  static std::mutex mutex;
  return mutex;
}

}  // namespace melflow
