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
    for (const std::string& work : {file, Resumption::added_path(file)})
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

std::string Resumption::added_path(const std::string& path) { return without_links(path) + ".new"; }

Resumption::Resumption(const std::string& path, const Uses& uses)
    : path_(path), journal_(RunJournal::open(path)) {
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
  for (std::size_t s = 0; s < uses.sections.size(); ++s) {
    if (!has_name(part_of(uses.works[s]))) return;
    files_of_sections_.push_back(uses.open(s));
    const RowPartFile& file = *files_of_sections_.back();
    sections_.push_back({file.first_row(), file.safe_rows()});
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

std::string Resumption::why_of_no_use() const {
  if (files_of_sections_.empty() || files_ > 0) return {};
  return unlike_.empty()
             ? std::string(
                   "ended before the first file was noted as done, which is every 64 MiB "
                   "of rows or 5 s")
             : fmt::format("began with another file, or with other contents, than {}",
                           excerpt(unlike_));
}

// Leaves the journal behind its facts. Rows written since the machine was started need no check:
// they are in the page cache, if not on disk.
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
    // Rows that are kept were checked when they were found.
    if (file.stamp.size >= 0 && file.stamp != (is_kept ? listed->stamp(i) : stamp_)) return false;
  }
  Section& to = sections_[section];
  if (file.rows > to.safe - to.rows) return false;
  if (verifies && file.rows > 0 &&
      files_of_sections_[section]->hash(to.rows, file.rows) != file.rows_hash)
    return false;
  to.rows += file.rows;
  return true;
}

std::unique_ptr<RunJournal> Resumption::resume(std::size_t done, const Accounts& into,
                                               std::size_t& committed, KeptFiles& resumed) {
  std::vector<std::int64_t> rows;
  for (const auto& file : files_of_sections_) rows.push_back(file->first_row());
  ManifestSource* listed = manifest_source(into.run);
  const Ledger& ledger = into.run.ledger;
  journal_->log().go_to(begin_);
  LogFile::Place end = begin_;
  std::size_t i = committed = 0;
  for (RunJournal::Record record; i < done && journal_->next(record);) {
    if (const auto* commit = std::get_if<RunJournal::Commit>(&record)) {
      for (const RunJournal::File& file : commit->files) {
        if (i == done) break;
        rows[into.writer.resume(file.rows, file.rows_hash, file.about)] += file.rows;
        if (file.rows > 0) into.statistics.mistake(i);
        if (!file.is_kept) {
          ++resumed.files;
          resumed.rows += file.rows;
        }
        if (listed != nullptr) listed->set_stamp(i, file.stamp);
        if (listed != nullptr && listed->contents() != nullptr)
          listed->contents()->of[i] = file.content;
        const Ledger::Entry& own = file.in_sink;
        if (own.outcome != Outcome::open)
          into.ledger.left_out(
              i, ledger.stage_number(own.stage),
              {own.outcome == Outcome::skipped ? ItemError::Kind::skipped : ItemError::Kind::failed,
               own.reason});
        if (ledger.outcome(i) == Outcome::open)
          into.run.ledger.close(i, file.in_run.outcome, ledger.stage_number(file.in_run.stage),
                                file.in_run.reason);
        ++i;
      }
      if (commit->first + commit->files.size() > done) break;
      committed = i;
    }
    end = journal_->log().place();
  }
  journal_->log().go_to(end);
  journal_->log().cut();
  for (std::size_t s = 0; s < rows.size(); ++s) files_of_sections_[s]->resume_at(rows[s]);
  return std::move(journal_);
}

void Resumption::clear(const std::string& path, const std::vector<std::string>& files) {
  for (const std::string& part : parts_of(files))
    if (has_name(part)) return;
  if (const auto journal = RunJournal::open(path)) journal->log().remove();
}

std::string Resumption::give_up(const std::vector<std::string>& files, bool keeps) {
  files_of_sections_.clear();
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
