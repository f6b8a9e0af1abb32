#include "apps/shipped.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>

#include "pipeline/base/problem.h"

namespace melflow {
namespace fs = std::filesystem;

namespace {

// Returns the folder of the program or library that contains this function.
fs::path own_folder() {
  Dl_info info;
  void* loaded = nullptr;
  const auto here = reinterpret_cast<const void*>(&shipped_places);
  if (dladdr1(here, &info, &loaded, RTLD_DL_LINKMAP) == 0) loaded = nullptr;
  const std::string name = loaded == nullptr ? "" : static_cast<const link_map*>(loaded)->l_name;
  std::error_code error;  // the name is empty for the program itself
  return fs::canonical(name.empty() ? "/proc/self/exe" : name, error).parent_path();
}

}  // namespace

std::vector<fs::path> shipped_places(const std::string& installed, const std::string& source) {
  fs::path above = own_folder();
  std::vector<fs::path> out{above / MELFLOW_SHARE / "melflow" / installed};
  for (int i = 0; i < 4 && above.has_relative_path(); ++i) {
    above = above.parent_path();
    out.push_back(above / source);
  }
  return out;
}

fs::path shipped_file(const std::string& installed, const std::string& source) {
  const std::vector<fs::path> places = shipped_places(installed, source);
  std::error_code error;
  for (const fs::path& p : places)
    if (fs::is_regular_file(p, error)) return p.lexically_normal();
  throw RunError(fmt::format(
      "{} is missing: the installation is not complete, or the program was moved out of it",
      places.front().lexically_normal().string()));
}

}  // namespace melflow
