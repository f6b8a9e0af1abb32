// Sinks of rows in runs that make parts of an output, and in runs that put these parts together.
#include <fmt/format.h>

#include "pipeline/base/problem.h"
#include "stages/output/formats/hdf5_layout.h"
#include "stages/output/formats/row_file.h"
#include "stages/output/row_sink.h"

namespace melflow {

void RowSink::begin_part(const RunContext& run) {
  part_ = task_of(run).part;
  if (!part_) return;
  target_.path = part_->path;
  target_.split_files = target_.normalize = false;
  target_.statistics_by.clear();
  target_.overwrite = true;
  if (!part_->with_statistics) target_.statistics = StatisticsOf::none;
  if (part_->row_facts.empty()) return;
  const std::string other = RunJournal::difference(part_->row_facts, row_facts());
  if (!other.empty())
    throw RunError(
        fmt::format("this worker would not produce the planned bytes: {}; use "
                    "the program, the libraries and a processor as where the plan was "
                    "made, or plan again here",
                    other));
}

void RowSink::copy_all(RunContext& run) {
  checkpoints_ = std::make_unique<Checkpoints>(
      new_journal(facts()), 0,
      Checkpoints::Uses{run, *ledger_, *writer_, files_, 0, false, false, false});
  try {
    for (const std::string& path : sections_.paths())
      files_.push_back(make_row_file(path, opening(run, false)));
    warn_of_locks(run);
    copy_first(plan_, {run, *ledger_, *writer_, *statistics_}, files_);
  } catch (...) {
    files_.clear();
    checkpoints_.reset();
    throw;
  }
}

std::unique_ptr<RowPartFile> RowSink::open_file(const std::string& path,
                                                const Opening& opening) const {
  if (!part_) return make_row_file(path, opening);
  return std::make_unique<RowFile>(path, info_->name, target_.dtype, info_->values_per_row(),
                                   opening);
}

void RowSink::finish_file(RowPartFile& file, std::int64_t rows, const OutputIndex& index) {
  if (!part_) return complete_file(file, shape_of(rows), index);
  complete_hdf5(static_cast<RowFile&>(file), shape_of(rows), index);
}

}  // namespace melflow
