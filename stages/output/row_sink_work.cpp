// How a row sink treats incomplete work: where it resumes, what it leaves, and how new rows of an
// update are added to their output.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "pipeline/base/problem.h"
#include "stages/files/publication.h"
#include "stages/files/undo_file.h"
#include "stages/output/joint_publication.h"
#include "stages/output/left_under_way.h"
#include "stages/output/row_sink.h"

namespace melflow {

void RowSink::announce(RunContext& run) {
  begin_part(run);
  announce_names(run);
}

// Called before anything is touched: before the splits are known that the files are named after,
// and again then.
void RowSink::announce_names(const RunContext& run) const {
  std::vector<OutputName> names;
  const bool are_listed = sections_.size() > 0;
  for (const std::string& path : are_listed ? sections_.paths() : std::vector{target_.path})
    for (const std::string& file : part_ ? std::vector{path} : files_of(path))
      names.push_back({file});
  Publication::check(target_.path);
  check_side_file(RunJournal::path_of(target_.path));
  for (const OutputName& name : names) {
    const std::string file = without_links(name.begin);
    UndoFile::check(file);
    check_side_file(file + ".part");
    check_side_file(Resumption::added_path(file) + ".part");
  }
  if (target_.split_files) {
    // Compares the names for two splits, to see which part of them is the split's.
    const std::vector<std::string> a = files_of(OutputSections::path_of(target_.path, "a")),
                                   b = files_of(OutputSections::path_of(target_.path, "b"));
    for (std::size_t i = 0; i < a.size(); ++i) {
      const auto split = std::mismatch(a[i].begin(), a[i].end(), b[i].begin()).first;
      names.push_back({{a[i].begin(), split}, std::string(split + 1, a[i].end())});
    }
  }
  run.services.find_or_make<JointPublication>()->announce(target_.path, names);
}

// Determines where the new rows of an update go.
void RowSink::find_places() {
  for (std::size_t s = 0; s < sections_.size(); ++s) {
    const std::string& path = sections_.path(s);
    works_.push_back(plan_.sections[s].in_place ? Resumption::added_path(path) : path);
  }
}

// Returns everything that decides the bytes of the output. A different order or number of files is
// detected file by file.
RunJournal::Facts RowSink::facts() const {
  RunJournal::Facts out = row_facts();
  out.emplace_back("layout", layout_facts());
  out.emplace_back("files of the output", fmt::format("{}", fmt::join(sections_.paths(), "\n")));
  if (!plan_.is_update) return out;
  std::vector<std::string> before, places;
  for (const RowPlan::Section& section : plan_.sections) {
    before.push_back(section.hash);
    places.emplace_back(section.in_place ? "in place" : "copied");
  }
  out.emplace_back("output to update", fmt::format("{}", fmt::join(before, " ")));
  out.emplace_back("place of the rows that it has", fmt::format("{}", fmt::join(places, " ")));
  if (plan_.is_repair) out.emplace_back("kind of update", "repair");
  return out;
}

void RowSink::give_up_work(const Resume& resume) {
  const std::string& why = resumption_->refusal();
  const std::string why_of_no_use = resumption_->why_of_no_use();
  if (resume.when == Resume::When::required)
    throw RunError(fmt::format("{}: there is nothing to resume: {}; omit --resume to start over",
                               target_.path,
                               is_one_of_several_       ? "an update of several outputs starts over"
                               : !why.empty()           ? why
                               : !why_of_no_use.empty() ? "the interrupted run " + why_of_no_use
                                                        : "there is no interrupted run of it"));
  const std::string backup =
      resumption_->give_up(all_files(), !why.empty() && resume.when != Resume::When::never);
  if (!backup.empty() && resume.tell)
    resume.tell(
        fmt::format("{}: what an interrupted run left cannot be resumed, since {}; it is moved "
                    "to {}. Remove it when it is not needed",
                    target_.path, why, backup));
  else if (!why_of_no_use.empty() && resume.tell && resume.when == Resume::When::automatic)
    resume.tell(fmt::format("{}: the interrupted run {}; this one starts over", target_.path,
                            why_of_no_use));
}

std::unique_ptr<RunJournal> RowSink::new_journal(const RunJournal::Facts& facts) const {
  auto out = RunJournal::create(target_.path);
  out->append(facts);
  return out;
}

void RowSink::begin_journal(RunContext& run, std::size_t done) {
  std::unique_ptr<RunJournal> journal;
  std::size_t committed = 0;
  const bool updates = plan_.is_update;
  const RunJournal::Facts facts = this->facts();
  kept_ = keep_planned(plan_, {run, *ledger_, *writer_, *statistics_});
  for (std::size_t s = 0; s < sections_.size(); ++s)
    extended_.push_back(
        plan_.sections[s].in_place ? make_row_file(sections_.path(s), Existing::extend) : nullptr);
  if (done == 0) {
    // In an update the journal comes first, synced: it names the owner of the work file.
    if (updates) {
      journal = new_journal(facts);
      journal->log().sync();
    }
    try {
      for (std::size_t s = 0; s < sections_.size(); ++s) files_.push_back(open_work(run, s, false));
    } catch (...) {
      if (journal != nullptr) journal->log().remove();
      throw;
    }
    if (!updates) journal = new_journal(facts);
  } else {
    journal =
        resumption_->resume(done, {run, *ledger_, *writer_, *statistics_}, committed, resumed_);
    files_ = resumption_->take_files();
    if (const Resume& resume = task_of(run).resume; resume.tell)
      resume.tell(fmt::format("{}: resumes an interrupted {}; {} of {} files are done, with {} {}",
                              target_.path, updates ? "update" : "run", done,
                              run.ledger.counts().found, resumed_.rows,
                              updates ? "new rows" : "rows"));
  }
  checkpoints_ = std::make_unique<Checkpoints>(
      std::move(journal), committed,
      Checkpoints::Uses{run, *ledger_, *writer_, files_, target_.checkpoint.count, target_.sync,
                        updates});
  const UnderWay::Entries& left = resumption_->under_way();
  note_under_way(
      run, target_.path,
      left.empty() && part_ && !part_->before.empty() ? left_under_way(part_->before) : left,
      *checkpoints_);
}

std::unique_ptr<RowPartFile> RowSink::open_work(const RunContext& run, std::size_t section,
                                                bool resumes) const {
  auto out = open_file(works_[section], opening(run, resumes));
  if (const auto& in_place = plan_.sections[section].in_place) out->begin_at(*in_place);
  return out;
}

// All rows are written: puts those of the work files behind the ones that stay.
void RowSink::add_in_place() {
  for (std::size_t s = 0; s < extended_.size(); ++s) {
    if (extended_[s] == nullptr) continue;
    const std::int64_t before = *plan_.sections[s].in_place, all = writer_->order().total(s);
    extended_[s]->extend(before);
    extended_[s]->take_rows(*files_[s], before, all - before);
  }
  for (std::size_t s = 0; s < extended_.size(); ++s)
    if (extended_[s] != nullptr) extended_[s].swap(files_[s]);
  are_in_place_ = true;
}

// Leaves the outputs as they were before.
void RowSink::take_back_in_place() {
  for (std::size_t s = 0; s < extended_.size(); ++s)
    if (extended_[s] != nullptr && are_in_place_) extended_[s].swap(files_[s]);
  extended_.clear();
  are_in_place_ = false;
}

// Leaves finished work for a run that resumes it, unless there is none.
void RowSink::leave_work(RunContext& run) {
  if (is_one_of_several_) return drop_work();
  take_back_in_place();
  if (checkpoints_ != nullptr) {
    try {
      checkpoints_->commit();
    } catch (const std::exception&) {
      // The error that ended the run is the one to report.
    }
    if (checkpoints_->rows() == 0) {
      files_.clear();  // first: without a journal nothing tells whose they are
      checkpoints_->remove();
    } else {
      for (const auto& file : files_) file->stay();
      if (const Resume& resume = task_of(run).resume; resume.tell)
        resume.tell(fmt::format(
            "{}: {} {}rows are safe in {}, and {} of {} files are done; the same command "
            "goes on from there",
            target_.path, checkpoints_->rows(), plan_.sections.front().in_place ? "new " : "",
            files_.front()->part_path(), checkpoints_->files(), run.ledger.counts().found));
    }
    checkpoints_.reset();
  }
  files_.clear();
}

// An update of several outputs starts over: a file may be done in one, and not in another.
void RowSink::drop_work() {
  take_back_in_place();
  // An output that is about to get its name is complete: the next run publishes it.
  for (const auto& file : files_)
    if (Publication::waiting(file->target()).empty()) file->remove();
  files_.clear();
  if (checkpoints_ != nullptr) checkpoints_->remove();
  checkpoints_.reset();
}

// Removes files of rows first: without a journal nothing tells whose they are.
void RowSink::remove_journal() {
  for (const auto& work : extended_)
    if (work != nullptr) work->remove();
  if (checkpoints_ != nullptr) checkpoints_->remove();
}

}  // namespace melflow
