#include "cuda/shared_library.h"

#include <dlfcn.h>

#include "cuda/error.h"

namespace melflow::cuda {

SharedLibrary::SharedLibrary(const std::string& path, std::string what)
    : handle_(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE)),
      path_(path),
      what_(std::move(what)) {
  if (handle_ == nullptr) throw CudaError(dlerror());
}

SharedLibrary::~SharedLibrary() {
  if (handle_ != nullptr) dlclose(handle_);
}

void* SharedLibrary::symbol(const char* name) const {
  void* found = dlsym(handle_, name);
  if (found == nullptr) throw CudaError(path_ + " has no " + name + ", so it is not " + what_);
  return found;
}

}  // namespace melflow::cuda
