#include "stages/output/merge_planner.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <mutex>

#include <fmt/format.h>

#include "pipeline/base/input_file.h"
#include "pipeline/base/problem.h"
#include "stages/files/content_hash.h"
#include "stages/files/unique_fd.h"
#include "stages/output/formats/hdf5.h"

namespace melflow {
namespace {

[[noreturn]] void refuse(const FinishedPart& part, const std::string& what) {
  const auto job = std::filesystem::path(part.path).parent_path().parent_path();
  throw RunError(fmt::format("{}: {}; {}`melflow work {}` makes it again", part.path, what,
                             ::access(part.path.c_str(), F_OK) == 0 ? "remove it, then " : "",
                             job.string()));
}

UniqueFd open_whole(const FinishedPart& part) {
  InputFile file(part.path);
  if (!file.problem().empty()) refuse(part, file.problem());
  UniqueFd fd(file.release());
  struct stat st {};
  if (::fstat(fd.get(), &st) != 0)
    refuse(part, fmt::format("cannot be read: {}", std::strerror(errno)));
  if (static_cast<std::uint64_t>(st.st_size) != part.bytes)
    refuse(part, fmt::format("this file is damaged: it has {} bytes, and its worker wrote {}",
                             st.st_size, part.bytes));
  const std::uint64_t hash = content_hash(fd.get());
  if (hash == 0) refuse(part, fmt::format("cannot be read: {}", std::strerror(errno)));
  if (hash != part.hash)
    refuse(part, "this file is damaged: its bytes are not those that its worker wrote");
  return fd;
}

class Part final : public RowGiver {
 public:
  explicit Part(FinishedPart part) : part_(std::move(part)) {}
  ~Part() override { Part::close(); }

  void open(const ManifestSource& source, const PlannedRange&) override {
    if (file_ != nullptr) return;
    fd_ = open_whole(part_);
    const std::lock_guard lock(hdf5_mutex());
    file_ = std::make_unique<const FeatureFile>(part_.path);
    note_remarks();
    if (file_->rows() > 0 && !file_->rows_at()) refuse(part_, "has rows that are not in one piece");
    if (file_->files().size() != part_.end - part_.first)
      refuse(part_, fmt::format("has {} files in place of {}", file_->files().size(),
                                part_.end - part_.first));
    for (std::size_t k = 0; k < file_->files().size(); ++k)
      if (const std::string name = source.manifest().name(part_.first + k); entry(k).path != name)
        refuse(part_, fmt::format("has {} in place of {}", entry(k).path, name));
  }
  void close() override {
    const std::lock_guard lock(hdf5_mutex());
    forget_remarks();
    file_.reset();
    fd_ = UniqueFd();
  }
  [[nodiscard]] const FeatureFile& file() const override { return *file_; }
  // The bytes were compared as a whole, by open().
  void copy(std::span<const std::size_t> entries, RowPartFile& to, std::int64_t at) const override {
    std::int64_t count = 0;
    for (const std::size_t e : entries) count += entry(e).count;
    const auto first = static_cast<std::uint64_t>(entry(entries.front()).offset);
    to.write(at, count,
             {fd_.get(), file_->rows_at().value_or(0) + first * to.row_bytes(), part_.path});
  }
  [[nodiscard]] const ColumnSums* sums() const override {
    return part_.sums ? &*part_.sums : nullptr;
  }

 private:
  FinishedPart part_;
  UniqueFd fd_;
  std::unique_ptr<const FeatureFile> file_;
};

}  // namespace

RowPlan MergePlanner::plan(const PlannedOutput&, const OutputSections& sections) {
  RowPlan plan{.sections = std::vector<RowPlan::Section>(sections.size()), .copies_first = true};
  for (FinishedPart& part : parts_) {
    const std::size_t first = part.first, end = part.end;
    const auto giver = std::make_shared<Part>(std::move(part));
    for (std::size_t s = 0; s < sections.size(); ++s) {
      const std::size_t from = std::max(first, sections.first(s)),
                        to = std::min(end, sections.end(s));
      if (from < to)
        plan.sections[s].ranges.push_back({from, to, PlannedRange::From::giver,
                                           PlannedRange::Found::unchanged, giver, from - first});
    }
  }
  return plan;
}

std::string MergePlanner::advice() const {
  return "remove it, or write elsewhere: `melflow merge JOB -o FILE`";
}

}  // namespace melflow
