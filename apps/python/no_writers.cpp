// What the module says of the stages that it has not: those that write rows.
#include "pipeline/stage/registry.h"

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
}  // namespace melflow
