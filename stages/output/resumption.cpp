#include "stages/output/resumption.h"

#include <algorithm>
#include <cstdio>  // RENAME_NOREPLACE
#include <cstring>

#include <fmt/format.h>

#include "pipeline/problem.h"
#include "stages/files/own_file.h"

namespace melflow {
namespace {

std::string part_of(const std::string& path) { return without_links(path) + ".part"; }

}  // namespace

Resumption::Resumption(const std::string& path, const Uses& uses)
    : path_(path), journal_(RunJournal::open(path)) {
  RunJournal::Record record;
  if (journal_ == nullptr || !journal_->next(record)) return;
  const auto* facts = std::get_if<RunJournal::Facts>(&record);
  begin_ = journal_->log().place();
  if (facts == nullptr) return;
  refusal_ = RunJournal::difference(*facts, uses.facts);
  if (!refusal_.empty()) {
    has_rows_ = has_committed_rows();
    return;
  }
  for (std::size_t s = 0; s < uses.sections.size(); ++s) {
    if (!has_name(part_of(uses.sections.path(s)))) return;
    files_of_sections_.push_back(uses.open(s));
    sections_.push_back({0, files_of_sections_.back()->safe_rows()});
  }
  const bool verifies = must_verify();
  while (journal_->next(record)) {
    const auto* commit = std::get_if<RunJournal::Commit>(&record);
    if (commit == nullptr) continue;
    if (commit->first != files_) return;
    for (const RunJournal::File& file : commit->files) {
      if (uses.run.is_stopping() || !is_done(file, uses, verifies)) return;
      ++files_;
    }
  }
}

bool Resumption::has_committed_rows() {
  for (RunJournal::Record record; journal_->next(record);)
    if (const auto* commit = std::get_if<RunJournal::Commit>(&record))
      for (const RunJournal::File& file : commit->files)
        if (file.rows > 0) return true;
  return false;
}

// What was written since the machine was started is in the page cache, if not on disk. Leaves the
// journal behind its facts.
bool Resumption::must_verify() {
  bool out = true;
  const std::string boot = RunJournal::boot_now();
  for (RunJournal::Record record; journal_->next(record);) {
    if (const auto* begin = std::get_if<RunJournal::Begin>(&record))
      out = boot.empty() || begin->boot != boot;
    else if (std::holds_alternative<RunJournal::Ending>(record))
      out = true;
  }
  journal_->log().go_to(begin_);
  return out;
}

bool Resumption::is_done(const RunJournal::File& file, const Uses& uses, bool verifies) {
  const std::size_t i = files_;
  if (i >= uses.sections.end(uses.sections.size() - 1)) return false;
  const std::size_t section = uses.sections.of(i);
  if (file.name_hash != RunJournal::name_hash(uses.run.source.name(i), section)) return false;
  if (const ManifestSource* listed = manifest_source(uses.run)) {
    const std::string path = listed->manifest().path(i);
    if (path != stamped_path_) stamp_ = stamp_of(stamped_path_ = path);
    if (file.stamp.size >= 0 && file.stamp != stamp_) return false;
  }
  Section& to = sections_[section];
  if (file.rows > to.safe - to.rows) return false;
  if (verifies && file.rows > 0 &&
      files_of_sections_[section]->hash(to.rows, file.rows) != file.rows_hash)
    return false;
  to.rows += file.rows;
  return true;
}

std::unique_ptr<RunJournal> Resumption::resume(std::size_t done, const Into& into,
                                               std::size_t& committed) {
  std::vector<std::int64_t> rows(sections_.size(), 0);
  ManifestSource* listed = manifest_source(into.run);
  const Ledger& ledger = into.run.ledger;
  journal_->log().go_to(begin_);
  LogFile::Place end = begin_;
  std::size_t i = committed = 0;
  for (RunJournal::Record record; i < done && journal_->next(record);) {
    if (const auto* commit = std::get_if<RunJournal::Commit>(&record)) {
      for (const RunJournal::File& file : commit->files) {
        if (i == done) break;
        rows[into.writer.resume(file.rows, file.rows_hash, file.audio)] += file.rows;
        if (file.rows > 0) into.statistics.mistake(i);
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

void Resumption::clear(const std::string& path, const OutputSections& sections) {
  for (const std::string& section : sections.paths())
    if (has_name(part_of(section))) return;
  if (const auto journal = RunJournal::open(path)) journal->log().remove();
}

std::string Resumption::give_up(const OutputSections& sections, bool keeps) {
  files_of_sections_.clear();
  std::string names;
  for (std::size_t s = 0; journal_ != nullptr && s < sections.size(); ++s) {
    const std::string part = part_of(sections.path(s));
    if (!keeps || !has_rows_) ::unlink(part.c_str());
    if (!has_name(part)) continue;
    std::string aside = part + ".aside";
    for (int n = 2; has_name(aside); ++n) aside = fmt::format("{}.aside-{}", part, n);
    if (const int error = rename_file(part, aside, RENAME_NOREPLACE); error != 0)
      throw RunError(
          fmt::format("{}: cannot be put aside as {}: {}", part, aside, std::strerror(error)));
    names += (names.empty() ? "" : ", ") + aside;
  }
  if (journal_ != nullptr) journal_->log().remove();
  journal_.reset();
  return names;
}

}  // namespace melflow
