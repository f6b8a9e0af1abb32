#include "stages/output/formats/output_index.h"

#include <limits>

#include "pipeline/base/problem.h"
#include "stages/output/formats/index_hash.h"

namespace melflow {

const Manifest& OutputIndex::no_manifest() {
  static const Manifest none;
  return none;
}

FileStamp OutputIndex::stamp(std::size_t file) const {
  return listed != nullptr ? listed->stamp(first + file) : FileStamp{};
}

void fail_read_back(const std::string& what) {
  throw RunError(what +
                 ": what is read back is not what was written; the output is not published. Is the "
                 "disk sound?");
}

const std::string& OutputIndex::hash() const {
  if (hash_.empty()) hash_ = index_hash(*this);
  return hash_;
}

const std::string& OutputIndex::run_hash() const {
  if (run_hash_.empty()) run_hash_ = melflow::run_hash(*this);
  return run_hash_;
}

double OutputIndex::duration(std::size_t file) const {
  const FileAudio& a = order.audio(first + file);
  return a.sample_rate > 0 ? static_cast<double>(a.frames) / a.sample_rate : 0.0;
}

float OutputIndex::measured(std::size_t file, Measure which) const {
  const auto& values = order.audio(first + file).measured;
  return values != nullptr ? (*values)[which] : std::numeric_limits<float>::quiet_NaN();
}

FeatureData::Status OutputIndex::status(std::size_t file) const {
  using Status = FeatureData::Status;
  const Outcome outcome = ledger.outcome(first + file);
  return outcome == Outcome::ok        ? Status::ok
         : outcome == Outcome::skipped ? Status::skipped
         : outcome == Outcome::failed  ? Status::failed
                                       : Status::not_run;
}

std::vector<std::size_t> OutputIndex::remarked() const {
  std::vector<std::size_t> out;
  const Ledger::Counts all = run.ledger.counts();
  const bool has_other_reasons = ledger.has_remarks() || all.not_run > 0;  // mostly there are none
  for (std::size_t i = 0; i < files(); ++i) {
    const Outcome o = ledger.outcome(first + i);
    if (o == Outcome::skipped || o == Outcome::failed ||
        (has_other_reasons && !entry(i).reason.empty()))
      out.push_back(i);
  }
  return out;
}

std::vector<OutputIndex::SplitRows> OutputIndex::splits() const {
  std::vector<SplitRows> out;
  if (manifest.split_names().empty()) return out;
  for (std::size_t i = 0; i < files(); ++i) {
    const int s = split(i);
    if (s < 0) continue;
    if (i == 0 || split(i - 1) != s) out.push_back({manifest.split_name(s), i, i, {}, 0});
    SplitRows& of = out.back();
    of.last = i + 1;
    if (rows(i) == 0) continue;
    if (of.rows.empty() || of.rows.back().first + of.rows.back().count != offset(i))
      of.rows.push_back({offset(i), 0});
    of.rows.back().count += rows(i);
    of.row_count += rows(i);
  }
  return out;
}

OutputIndex::FilesByStatus OutputIndex::count_files() const {
  FilesByStatus out{};
  for (std::size_t i = 0; i < files(); ++i) ++out[static_cast<std::size_t>(status(i))];
  return out;
}

std::vector<std::string> OutputIndex::axes() const {
  if (info.is_samples()) {
    if (info.frames > 1) return {"row", "sample"};
    return {"sample"};
  }
  if (info.frames > 1) return {"row", "frame", info.axis};
  return {"row", info.axis};
}

}  // namespace melflow
