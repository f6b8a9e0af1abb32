#include "apps/verbs/scratch_outputs.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <system_error>

#include <fmt/format.h>

#include "pipeline/base/text.h"

namespace melflow {
namespace fs = std::filesystem;
namespace {

void check(const PlanNode& node) {
  if (node.resources.files_made.empty()) return;
  const std::vector<std::string> options = node.config->schema().names();
  if (std::find(options.begin(), options.end(), "path") == options.end())
    throw RunError(
        fmt::format("{} ({}): writes {} and has no option path, by which a trial could write "
                    "elsewhere",
                    node.name, node.info->name, excerpt(node.resources.files_made.front())));
}

fs::path folder_beside(const std::string& node, const fs::path& output) {
  const fs::path parent = output.has_parent_path() ? output.parent_path() : fs::path(".");
  std::string name = (parent / ".melflow-scratch-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr)
    throw RunError(fmt::format("{}: cannot make a folder for a trial output in {}: {}", node,
                               excerpt(parent.string()), std::generic_category().message(errno)));
  return name;
}

}  // namespace

ScratchOutputs::ScratchOutputs(const Plan& plan) {
  // Before the first folder is made: a constructor that throws has no destructor.
  for (const PlanNode& node : plan.nodes) check(node);
  try {
    for (const PlanNode& node : plan.nodes) {
      add_cache(node);
      if (node.resources.files_made.empty()) continue;
      const fs::path output = node.resources.files_made.front();
      folders_.push_back(folder_beside(node.name, output));
      sets_.push_back(
          fmt::format("{}.path={}", node.written, (folders_.back() / output.filename()).string()));
    }
  } catch (...) {
    remove();
    throw;
  }
}

// Links to the files of the cache, so that they are used; what a run adds to them is valid for
// later runs, too.
void ScratchOutputs::add_cache(const PlanNode& node) {
  const Value options = node.config->schema().echo();
  const Value* path = options.find("cache_path");
  if (path == nullptr || path->text().empty()) return;
  std::error_code ignored;
  const fs::path cache = fs::absolute(path->text());
  fs::path place = cache;  // a run makes the folders that lead to it
  while (!fs::exists(place.parent_path(), ignored)) place = place.parent_path();
  folders_.push_back(folder_beside(node.name, place));
  caches_.push_back(folders_.back());
  std::error_code error;
  for (fs::directory_iterator e(cache, error), end; !error && e != end; e.increment(error))
    fs::create_symlink(e->path(), folders_.back() / e->path().filename(), ignored);
  sets_.push_back(fmt::format("{}.cache_path={}", node.written, folders_.back().string()));
}

ScratchOutputs::~ScratchOutputs() { remove(); }

void ScratchOutputs::remove() {
  std::error_code ignored;
  for (const fs::path& folder : folders_) fs::remove_all(folder, ignored);
}

void ScratchOutputs::clear(bool but_caches) const {
  for (const fs::path& folder : folders_) {
    if (but_caches && std::find(caches_.begin(), caches_.end(), folder) != caches_.end()) continue;
    std::error_code error, ignored;
    for (fs::directory_iterator e(folder, error), end; !error && e != end; e.increment(error))
      if (!e->is_symlink(ignored)) fs::remove_all(e->path(), ignored);
  }
}

}  // namespace melflow
