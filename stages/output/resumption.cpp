#include "stages/output/resumption.h"

#include <algorithm>
#include <cstdio>  // RENAME_NOREPLACE
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "pipeline/base/problem.h"
#include "pipeline/base/text.h"
#include "stages/containers/container.h"
#include "stages/files/own_file.h"

namespace melflow {
namespace {

std::string part_of(const std::string& path) { return without_links(path) + ".part"; }

// Returns the paths of all work files that may exist.
std::vector<std::string> parts_of(const std::vector<std::string>& files) {
  std::vector<std::string> out;
  for (const std::string& file : files)
    for (const std::string& work : {file, SectionFile::added_path(file)})
      out.push_back(part_of(work));
  return out;
}

// Whether the outputs are those that these hashes were computed from.
bool are_there(const std::vector<std::string>& hashes, const RowPlan& plan) {
  return std::equal(
      hashes.begin(), hashes.end(), plan.sections.begin(), plan.sections.end(),
      [](const std::string& hash, const auto& section) { return hash == section.hash; });
}

}  // namespace

Resumption::Resumption(const std::string& path, const Uses& uses, std::vector<SectionFile>& files)
    : path_(path), journal_(RunJournal::open(path)), work_(files) {
  RunJournal::Record record;
  if (journal_ == nullptr || !journal_->next(record)) return;
  const auto* facts = std::get_if<RunJournal::Facts>(&record);
  begin_ = journal_->log().place();
  if (facts == nullptr) return;
  const std::string refusal = RunJournal::difference(*facts, uses.facts);
  const Said said = look_through();
  if (are_there(said.complete, uses.plan)) return;  // it was interrupted right after publishing
  if (!refusal.empty()) {
    refusal_ = refusal;
    has_rows_ = said.has_rows;
    return;
  }
  under_way_ = UnderWay::judge(said.under_way);
  for (SectionFile& file : work_) {
    if (!has_name(part_of(file.work_path()))) return;
    file.open(true);
    sections_.push_back({file->first_row(), file->safe_rows()});
  }
  while (journal_->next(record)) {
    const auto* commit = std::get_if<RunJournal::Commit>(&record);
    if (commit == nullptr) continue;
    if (commit->first != files_) return;
    for (const RunJournal::File& file : commit->files) {
      if (uses.run.is_stopping()) return;
      if (!is_done(file, uses, said.must_verify)) {
        if (files_ < uses.run.source.count()) unlike_ = uses.run.source.name(files_);
        return;
      }
      ++files_;
    }
  }
}

// Why nothing of the existing work can be kept; "" where something can, or there is no work.
std::string Resumption::why_of_no_use() const {
  if (sections_.empty() || files_ > 0) return {};
  return unlike_.empty()
             ? std::string(
                   "ended before the first file was noted as done, which is every 64 MiB "
                   "of rows or 5 s")
             : fmt::format("began with another file, or with other contents, than {}",
                           excerpt(unlike_));
}

// Leaves the journal positioned after its facts. Rows written since the machine was started need no
// check: they are in the page cache, if not on disk.
Resumption::Said Resumption::look_through() {
  Said out;
  const std::string boot = RunJournal::boot_now();
  for (RunJournal::Record record; journal_->next(record);) {
    if (const auto* begin = std::get_if<RunJournal::Begin>(&record))
      out.must_verify = boot.empty() || begin->boot != boot;
    else if (std::holds_alternative<RunJournal::Ending>(record))
      out.must_verify = true;
    else if (const auto* under_way = std::get_if<UnderWay::Entries>(&record))
      out.under_way = *under_way;
    else if (const auto* complete = std::get_if<RunJournal::Complete>(&record))
      out.complete = complete->hashes;
    else if (const auto* commit = std::get_if<RunJournal::Commit>(&record))
      out.has_rows = out.has_rows || std::any_of(commit->files.begin(), commit->files.end(),
                                                 [](const auto& file) { return file.rows > 0; });
  }
  journal_->log().go_to(begin_);
  return out;
}

bool Resumption::is_done(const RunJournal::File& file, const Uses& uses, bool verifies) {
  const std::size_t i = files_;
  if (i >= uses.sections.end(uses.sections.size() - 1)) return false;
  const std::size_t section = uses.sections.of(i);
  if (file.name_hash != RunJournal::name_hash(uses.run.source.name(i), section)) return false;
  const bool is_kept = uses.plan.is_kept(section, i);
  if (file.is_kept != is_kept) return false;
  if (const ManifestSource* listed = manifest_source(uses.run)) {
    const std::string path = listed->manifest().path(i);
    if (!is_kept && path != stamped_path_) stamp_ = stamp_of(stamped_path_ = path);
    // The planner has looked at files whose rows are kept, and put their stamps into the list.
    if (file.stamp.size >= 0 && file.stamp != (is_kept ? listed->stamp(i) : stamp_)) return false;
  }
  Section& to = sections_[section];
  if (file.rows > to.safe - to.rows) return false;
  if (verifies && file.rows > 0 && work_[section]->hash(to.rows, file.rows) != file.rows_hash)
    return false;
  to.rows += file.rows;
  return true;
}

std::unique_ptr<RunJournal> Resumption::resume(std::size_t done, const Accounts& into,
                                               std::size_t& committed, KeptFiles& resumed) {
  journal_->log().go_to(begin_);
  LogFile::Place end = begin_;
  std::size_t i = committed = 0;
  for (RunJournal::Record record; i < done && journal_->next(record);) {
    if (const auto* commit = std::get_if<RunJournal::Commit>(&record)) {
      for (const RunJournal::File& file : commit->files) {
        if (i == done) break;
        account(i, {file}, into);
        if (!file.is_kept) resumed.add(file.rows);
        ++i;
      }
      if (commit->first + commit->files.size() > done) break;
      committed = i;
    }
    end = journal_->log().place();
  }
  journal_->log().go_to(end);
  journal_->log().cut();
  for (std::size_t s = 0; s < work_.size(); ++s) work_[s]->resume_at(into.writer.order().total(s));
  return std::move(journal_);
}

void Resumption::clear(const std::string& path, const std::vector<std::string>& files) {
  for (const std::string& part : parts_of(files))
    if (has_name(part)) return;
  if (const auto journal = RunJournal::open(path)) journal->log().remove();
}

void Resumption::give_up(const Resume& how, const std::vector<std::string>& files,
                         bool starts_over) {
  const std::string no_use = why_of_no_use();
  if (how.when == Resume::When::required)
    throw RunError(fmt::format("{}: there is nothing to resume: {}; omit --resume to start over",
                               path_,
                               starts_over         ? "an update of several outputs starts over"
                               : !refusal_.empty() ? refusal_
                               : !no_use.empty()   ? "the interrupted run " + no_use
                                                   : "there is no interrupted run of it"));
  const std::string backup =
      remove_work(files, !refusal_.empty() && how.when != Resume::When::never);
  if (!how.tell) return;
  if (!backup.empty())
    how.tell(
        fmt::format("{}: what an interrupted run left cannot be resumed, since {}; it is moved "
                    "to {}. Remove it when it is not needed",
                    path_, refusal_, backup));
  else if (!no_use.empty() && how.when == Resume::When::automatic)
    how.tell(fmt::format("{}: the interrupted run {}; this one starts over", path_, no_use));
}

// Removes all work, or with `keeps` keeps it as a backup under other names, which it returns; ""
// where nothing was worth keeping.
std::string Resumption::remove_work(const std::vector<std::string>& files, bool keeps) {
  for (SectionFile& file : work_) file.close();
  std::string names;
  if (journal_ == nullptr) return names;
  std::vector<std::pair<std::string, UniqueFd>> left;  // all, before the first is changed
  for (const std::string& part : parts_of(files))
    if (UniqueFd fd = open_locked(part)) left.emplace_back(part, std::move(fd));
  for (const auto& [part, fd] : left) {
    if (!keeps || !has_rows_) {
      ::unlink(part.c_str());
      continue;
    }
    std::string backup = part + ".backup";
    for (int n = 2; has_name(backup); ++n) backup = fmt::format("{}.backup-{}", part, n);
    if (const int error = rename_file(part, backup, RENAME_NOREPLACE); error != 0)
      throw RunError(
          fmt::format("{}: cannot be renamed to {}: {}", part, backup, std::strerror(error)));
    names += (names.empty() ? "" : ", ") + backup;
  }
  journal_->log().remove();
  journal_.reset();
  return names;
}

}  // namespace melflow
