#include "apps/shipped.h"

#include <fmt/format.h>

#include "pipeline/base/problem.h"

namespace melflow {
namespace fs = std::filesystem;

namespace {
std::string shared_files;
}

void set_shared_files(const std::string& folder) { shared_files = folder; }

std::vector<fs::path> shipped_places(const std::string& installed, const std::string& source) {
  std::error_code error;
  fs::path above = fs::read_symlink("/proc/self/exe", error).parent_path();
  std::vector<fs::path> out{above / "../share/melflow" / installed};
  for (int i = 0; i < 4 && above.has_relative_path(); ++i) {
    above = above.parent_path();
    out.push_back(above / source);
  }
  if (!shared_files.empty()) out.push_back(fs::path(shared_files) / installed);
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
