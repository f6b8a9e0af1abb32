// shared_library.h - a library that is opened at run time.

#pragma once

#include <string>
#include <utility>

namespace melflow::cuda {

class SharedLibrary {
 public:
  // A file, or a name for the loader to find; `what` names it in messages. Throws CudaError with
  // the loader's message.
  SharedLibrary(const std::string& path, std::string what);
  SharedLibrary(SharedLibrary&& other) noexcept
      : handle_(std::exchange(other.handle_, nullptr)),
        path_(std::move(other.path_)),
        what_(std::move(other.what_)) {}
  SharedLibrary& operator=(SharedLibrary&&) = delete;
  ~SharedLibrary();

  [[nodiscard]] const std::string& path() const { return path_; }

  // Points `to` at a function. Throws CudaError if the library has none of this name.
  template <class Function>
  void find(const char* name, Function*& to) const {
    to = reinterpret_cast<Function*>(symbol(name));
  }

 private:
  [[nodiscard]] void* symbol(const char* name) const;

  void* handle_;
  std::string path_, what_;
};

}  // namespace melflow::cuda
