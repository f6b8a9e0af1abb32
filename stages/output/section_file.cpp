#include "stages/output/section_file.h"

#include "stages/files/own_file.h"
#include "stages/files/publication.h"

namespace melflow {

std::string SectionFile::added_path(const std::string& path) {
  return without_links(path) + ".new";
}

SectionFile::SectionFile(const RowFormat& format, const std::string& path,
                         std::optional<std::int64_t> in_place, Existing existing)
    : format_(&format),
      path_(path),
      work_path_(in_place ? added_path(path) : path),
      in_place_(in_place),
      existing_(existing) {}

void SectionFile::open_output() {
  if (in_place_) output_ = format_->make_row_file(path_, Existing::extend);
}

void SectionFile::open(bool resumes) {
  work_ = format_->make_row_file(work_path_, {existing_, resumes});
  if (in_place_) work_->begin_at(*in_place_);
}

void SectionFile::add_in_place(std::int64_t rows) {
  if (output_ == nullptr) return;
  output_->extend(*in_place_);
  output_->take_rows(*work_, *in_place_, rows - *in_place_);
  is_in_place_ = true;
}

void SectionFile::take_back_in_place() {
  is_in_place_ = false;
  output_.reset();
}

void SectionFile::remove_added() {
  if (is_in_place_) work_->remove();
}

// An output that is about to get its name is complete: the next run publishes it.
void SectionFile::drop() {
  take_back_in_place();
  if (work_ != nullptr && Publication::waiting(work_->target()).empty()) work_->remove();
  work_.reset();
}

void SectionFile::close() {
  take_back_in_place();
  work_.reset();
}

}  // namespace melflow
