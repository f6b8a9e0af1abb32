// What a sink of rows does with the output of an earlier run.
#include <algorithm>
#include <filesystem>
#include <unordered_set>

#include <fmt/format.h>

#include "stages/listing/manifest.h"
#include "stages/output/feature_hash.h"
#include "stages/sink/row_sink.h"

namespace melflow {

// For the source, before this stage starts.
void RowSink::visit_earlier(const std::vector<std::string>& splits,
                            const EarlierFiles::Visit& visit) const {
  Publication::recover(target_.path);
  std::vector<std::string> names{""};
  if (target_.split_files) names.insert(names.end(), splits.begin(), splits.end());
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string path = section_path(names[i]);
    const auto [it, is_new] = opened_.try_emplace(path);
    if (!is_new) continue;
    it->second = RowReuse::open(path, feature_hash(contract()));
    if (it->second == nullptr) continue;
    it->second->visit(visit);
    if (target_.split_files)
      names.insert(names.end(), it->second->splits().begin(), it->second->splits().end());
  }
}

// The earlier output, if there is one, and what of it is still right.
std::unique_ptr<RowReuse> RowSink::match_earlier(RunContext& run, std::size_t section) {
  const auto opened = opened_.find(paths_[section]);
  auto old = opened != opened_.end() ? std::move(opened->second)
                                     : RowReuse::open(paths_[section], feature_hash(contract()));
  if (opened != opened_.end()) opened_.erase(opened);
  auto* source = dynamic_cast<ManifestSource*>(&run.source);
  if (old == nullptr || source == nullptr) return nullptr;
  updates_ = true;
  if (old->root() != source->manifest().root())
    run.warn(
        fmt::format("{}: was made of {}, this is {}; files of the same name, size and {} are "
                    "taken for the same",
                    paths_[section], old->root(), source->manifest().root(),
                    source->contents() != nullptr ? "content" : "time of change"));
  const ComputedBy& by = *info_->computed_by;
  if (const std::string now = by.backend + " " + by.instruction_set;
      old->computed_by() != now)
    run.warn(
        fmt::format("{}: its rows were computed by {}, new ones are by {}: the same values, but "
                    "not the same bytes",
                    paths_[section], old->computed_by(), now));
  if (target_.normalize)
    throw RunError(
        fmt::format("{}: its rows are normalised by statistics that new files would change; "
                    "build it anew (overwrite: true)",
                    paths_[section]));
  if (source->contents() != nullptr && old->rows() > 0 && !old->has_contents())
    run.warn(
        fmt::format("{}: was made without update_by: content and has no hashes of its files: all "
                    "are computed anew",
                    paths_[section]));
  old->match(*source, first_files_[section], end_of(section, run.ledger.counts().found), run);
  if (!old->unreachable().empty())
    run.warn(fmt::format("{}: {}; what they had there stays as it is", paths_[section],
                         old->unreachable()));
  return old;
}

// Before anything is touched: files that are gone may be on a disk that is not mounted.
void RowSink::check_dropped(RunContext& run, const Earlier& earlier) {
  if (run.is_stopping()) return;  // what was not looked at looks as if it were gone
  const Manifest& manifest = dynamic_cast<const ManifestSource&>(run.source).manifest();
  std::unordered_set<std::string> paths;
  if (earlier.size() > 1)  // a file may be in another section now
    for (std::size_t i = 0; i < manifest.size(); ++i) paths.insert(manifest.relative(i));
  for (const auto& old : earlier)
    if (old) old->add_dropped([&](const std::string& p) { return paths.contains(p); }, dropped_);
  const CountOrShare& most = target_.max_dropped;
  const bool is_over = (most.count && dropped_.files > *most.count) ||
                       (most.share && static_cast<double>(dropped_.rows) >
                                          *most.share * static_cast<double>(dropped_.of_rows));
  if (!is_over) return;
  throw RunError(fmt::format(
      "{}: {} of its {} files with rows ({} of {} rows) are gone or not listed any more, such as "
      "{}. Is a disk not mounted, or are root, include or the manifest others now? The output is "
      "left as it was. If these rows are to go, set the sink's max_dropped, such as --set "
      "write.max_dropped=100% (it is {})",
      target_.path, dropped_.files, dropped_.of_files, dropped_.rows, dropped_.of_rows,
      dropped_.example, OptionType<CountOrShare>::echo(most).text()));
}

// What is wrong with every file is wrong with the run (a disk, an option), and not worth the rows
// that are there. What cannot be read as an output may be anything of the user's.
void RowSink::check_gives_rows(const RunContext& run) const {
  const Ledger::Counts counts = run.ledger.counts();
  if (counts.ok > 0) return;
  const auto has_rows = [](const std::string& path) {
    std::error_code unknown;
    if (!std::filesystem::exists(path, unknown) && !unknown) return false;
    try {
      return FeatureFile(path).rows() > 0;
    } catch (const RunError&) {
      return true;
    }
  };
  for (const std::string& path : paths_)
    if (has_rows(path))
      throw RunError(
          fmt::format("{}: is left as it was, since no file of this run gave rows ({} failed, {} "
                      "skipped); remove it, or write elsewhere, if it is to go",
                      path, counts.failed, counts.skipped));
}

// Outputs of splits that nothing belongs to any more.
void RowSink::forget_opened(const RunContext& run) {
  for (const auto& [path, old] : opened_)
    if (old != nullptr)
      run.warn(path +
               ": no file belongs there any more; it is left as it was. Remove it, or it is "
               "taken for a part of this output");
  opened_.clear();
}

// Decides what becomes of an earlier output: its rows stay where they are and new ones come behind
// them, or they are taken over into a new file.
void RowSink::use_earlier(RunContext& run, std::size_t section, std::unique_ptr<RowReuse> old) {
  const bool stays = run.update == Update::append && !old->has_dead_rows() &&
                     extensible_at() >= 0 && old->rows_at() == extensible_at();
  for (const RowReuse::Kept& k : old->kept()) {
    if (stays) {
      order_->stays(k.file, k.row, k.rows, k.audio);
    } else {
      order_->taken_over(k.file, k.rows, k.audio);
      old_rows_.emplace_hint(old_rows_.end(), k.file, k.row);
    }
    statistics_stale_ = statistics_stale_ || counts(k.file);
    if (k.remark != nullptr)
      run.ledger.close(k.file, Outcome::ok, run.ledger.stage_number(k.remark->stage),
                       k.remark->reason);
    else
      run.ledger.close(k.file, Outcome::ok, -1, "");
  }
  kept_files_ += old->kept().size();
  if (!stays) {
    old_[section] = std::move(old);
    return;
  }
  const std::int64_t rows = old->rows();
  old.reset();  // and its lock
  order_->begin_at(section, rows);
  files_.push_back(make_row_file(paths_[section], Existing::extend));
  files_.back()->extend(rows, target_.sync);
}

// Files that are taken over and stand behind the last one that was computed.
void RowSink::take_over_rest() {
  std::vector<PlacedPart> ready;
  order_->advance(ready);
  write(ready, false);
}

// Copies rows of the earlier output, from ready[from] on as long as they stand side by side there,
// too. Returns which comes next.
std::size_t RowSink::take_over(const std::vector<PlacedPart>& ready, std::size_t from) {
  const std::size_t section = ready[from].section;
  const std::int64_t first = old_rows_.at(ready[from].file), to = ready[from].file_row;
  std::int64_t count = 0;
  std::size_t next = from;
  while (next < ready.size() && !ready[next].part && ready[next].section == section &&
         old_rows_.at(ready[next].file) == first + count)
    count += ready[next++].file_rows;
  RowPartFile& file = *files_[section];
  for (std::int64_t done = 0; done < count; done += rows_at_once()) {
    const std::int64_t n = std::min(rows_at_once(), count - done);
    file.write(to + done, old_[section]->read(first + done, n).data(), n);
  }
  return next;
}

}  // namespace melflow
