#include "stages/output/earlier_output.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <unordered_set>

#include <fmt/format.h>

#include "pipeline/base/problem.h"
#include "pipeline/stage/kept_items.h"
#include "stages/corpus/update.h"
#include "stages/manifest.h"
#include "stages/output/resume.h"
#include "stages/output/rows/row_hash.h"

namespace melflow {
namespace {

// Returns "/data/a", or for several sources "train: /data/a, extra: /data/b".
std::string roots_text(const std::string& root, const std::vector<CorpusSource>& sources) {
  std::string out = root;
  for (const CorpusSource& s : sources)
    out += fmt::format("{}{}: {}", out.empty() ? "" : ", ", s.name, s.root);
  return out;
}

// Whether no sink of the run needs the file again.
bool is_complete(const RunContext& run, std::size_t file) {
  if (run.settings.sinks == 1) return true;
  const auto kept = run.services.find<KeptItems>();
  return kept != nullptr && kept->is_complete(static_cast<std::size_t>(run.settings.sinks), file);
}

}  // namespace

void EarlierOutput::visit(const std::string& feature_fingerprint,
                          const std::vector<std::string>& splits,
                          const EarlierFiles::Visit& visit) {
  std::vector<std::string> names{""};
  if (target_.split_files) names.insert(names.end(), splits.begin(), splits.end());
  std::unordered_set<std::string> visited;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string path = OutputSections::path_of(target_.path, names[i]);
    if (!visited.insert(path).second) continue;
    const auto [it, is_new] = opened_.try_emplace(path);  // may be there for another source
    if (is_new) it->second = RowReuse::open(path, feature_fingerprint, may_change_);
    if (it->second == nullptr) continue;
    it->second->visit(visit);
    if (target_.split_files)
      names.insert(names.end(), it->second->splits().begin(), it->second->splits().end());
  }
}

void EarlierOutput::match(RunContext& run, const Stage& sink, const OutputSections& sections,
                          const FeatureInfo& info, const std::string& feature_fingerprint,
                          bool are_routes_kept) {
  given_.resize(sections.size());
  matched_.resize(sections.size());
  if (update_of(run) == Update::none) return;
  for (std::size_t s = 0; s < sections.size(); ++s)
    matched_[s] = match(run, sections, s, info, feature_fingerprint,
                        are_routes_kept && run.settings.sinks > 1);
  if (is_there_) refusal_ = too_many_dropped(run);
  if (!refusal_.empty() && !is_preview(run)) throw RunError(refusal_);
  if (is_there_ && !is_preview(run) && !run.services.find<Repair>()) note_changes(run, sections);
  forget_opened(run);
  if (run.settings.sinks == 1) return;
  const auto kept = run.services.find_or_make<KeptItems>();
  const std::size_t files = run.ledger.counts().found;
  for (const auto& old : matched_) {
    if (old == nullptr) continue;
    for (const RowReuse::Kept& k : old->kept()) kept->has(sink, k.file, files);
    for (const RowReuse::Routed& r : old->routed()) kept->goes_elsewhere(sink, r.file, files);
  }
}

std::unique_ptr<RowReuse> EarlierOutput::match(RunContext& run, const OutputSections& sections,
                                               std::size_t section, const FeatureInfo& info,
                                               const std::string& feature_fingerprint,
                                               bool are_routes_kept) {
  const std::string& path = sections.path(section);
  const auto opened = opened_.find(path);
  auto old = opened != opened_.end() ? std::move(opened->second)
                                     : RowReuse::open(path, feature_fingerprint, may_change_);
  if (opened != opened_.end()) opened_.erase(opened);
  auto* source = manifest_source(run);
  if (old == nullptr || source == nullptr) return nullptr;
  is_there_ = true;
  const Manifest& manifest = source->manifest();
  const std::string was = roots_text(old->root(), old->sources()),
                    is = roots_text(manifest.root(), manifest.sources());
  if (was != is)
    run.warn(fmt::format(
        "{}: was made of {}, this is {}; files of the same name, size and {} are "
        "taken for the same",
        path, was, is, source->contents() != nullptr ? "content" : "modification time"));
  // Told, not stored: the bytes of the output do not depend on how often it was updated.
  const std::string renumbered = old->renumbered_labels(manifest.label_names());
  if (const Resume resume = resume_of(run); !renumbered.empty() && resume.tell)
    resume.tell(
        fmt::format("warning: {}: {}; a program that keeps numbers, such as a trained model, has "
                    "to go by names",
                    path, renumbered));
  const ComputedBy& by = *info.computed_by;
  if (const std::string now = by.backend + " " + by.instruction_set;
      by.sets_like(old->computed_by()) != by.sets_like(now))
    run.warn(
        fmt::format("{}: its rows were computed by {}, new ones are by {}: the same values, but "
                    "not the same bytes",
                    path, old->computed_by(), now));
  if (target_.normalize && !run.services.find<Repair>())
    throw RunError(
        fmt::format("{}: its rows are normalised by statistics that new files would change; "
                    "rebuild it by `melflow run` with overwrite: true, and without normalize "
                    "if it is to be updated",
                    path));
  if (source->contents() != nullptr && old->rows() > 0 && !old->has_contents())
    run.warn(
        fmt::format("{}: was made without update_by: content and has no hashes of its files: all "
                    "are recomputed",
                    path));
  old->match(*source, sections.first(section), sections.end(section), run, are_routes_kept);
  if (!old->unreachable().empty())
    run.warn(fmt::format("{}: {}; what they had there stays as it is", path, old->unreachable()));
  if (source->contents() == nullptr && old->are_all_touched())
    run.warn(fmt::format(
        "{}: every file has another modification time than when it was made, and its size: "
        "was the corpus copied? Keep the times (cp -p, rsync -t), or write update_by: "
        "content, with which later updates know files by their bytes",
        path));
  return old;
}

// Notes changes for the report; files that had failed or been skipped are neither new nor changed.
void EarlierOutput::note_changes(const RunContext& run, const OutputSections& sections) {
  const Manifest& manifest = manifest_source(run)->manifest();
  for (std::size_t s = 0; s < matched_.size(); ++s) {
    const RowReuse* const old = matched_[s].get();
    std::size_t kept = 0, routed = 0;  // the next ones; both lists are in the order of the files
    for (std::size_t i = sections.first(s); i < sections.end(s); ++i) {
      if (old != nullptr && kept < old->kept().size() && old->kept()[kept].file == i) {
        ++kept;
      } else if (old != nullptr && routed < old->routed().size() &&
                 old->routed()[routed].file == i) {
        ++routed;
      } else {
        const std::string why = old != nullptr ? old->why_computed(i) : "new";
        if (why == "new") added_.add(manifest.name(i));
        if (why.starts_with("changed")) changed_.add(manifest.name(i));
      }
    }
  }
}

// Returns why the update must not begin: files that are gone may be on an unmounted disk.
std::string EarlierOutput::too_many_dropped(const RunContext& run) {
  if (run.is_stopping()) return {};  // files that were not checked look as if they were gone
  const Manifest& manifest = manifest_source(run)->manifest();
  std::unordered_set<std::string> paths;
  if (matched_.size() > 1)  // a file may be in another section now
    for (std::size_t i = 0; i < manifest.size(); ++i) paths.insert(manifest.name(i));
  for (const auto& old : matched_)
    if (old) old->add_dropped([&](const std::string& p) { return paths.contains(p); }, dropped_);
  const CountOrShare& most = target_.max_dropped;
  const bool is_over = (most.count && dropped_.files.count > *most.count) ||
                       (most.share && static_cast<double>(dropped_.rows) >
                                          *most.share * static_cast<double>(dropped_.of_rows));
  if (!is_over) return {};
  return fmt::format(
      "{}: {} of its {} files with rows ({} of {} rows) are gone or not listed any more, such as "
      "{}. Is a disk not mounted, or have root, include or the manifest changed? The output is "
      "left as it was. If these rows are to go, set the sink's max_dropped, such as --set "
      "write.max_dropped=100% (it is {})",
      target_.path, dropped_.files.count, dropped_.of_files, dropped_.rows, dropped_.of_rows,
      dropped_.files.names.front(), OptionType<CountOrShare>::echo(most).text());
}

// Warns about outputs of splits that no file belongs to any more.
void EarlierOutput::forget_opened(const RunContext& run) {
  for (const auto& [path, old] : opened_)
    if (old != nullptr)
      run.warn(path +
               ": no file belongs there any more; it is left as it was. Remove it, or it is "
               "taken for a part of this output");
  opened_.clear();
}

// The next run trusts only its own user's files, so it could not restore another user's; and where
// the output has a second name, as in a backup of hard links, that one must keep its bytes.
bool EarlierOutput::stays(const RowReuse& old, const RunContext& run, std::int64_t extensible_at) {
  struct stat st {};
  return ::stat(old.path().c_str(), &st) == 0 && st.st_uid == ::geteuid() && st.st_nlink == 1 &&
         update_of(run) == Update::append && !old.has_dead_rows() && extensible_at >= 0 &&
         old.rows_at() == extensible_at;
}

UpdatePreview::Output EarlierOutput::previewed(RunContext& run, const OutputSections& sections,
                                               std::int64_t extensible_at) {
  UpdatePreview::Output out{.path = target_.path,
                            .is_there = is_there_,
                            .in_place = is_there_,
                            .dropped_files = dropped_.files.count,
                            .dropped_rows = dropped_.rows,
                            .dropped = dropped_.files.names,
                            .refusal = refusal_};
  for (std::size_t s = 0; s < matched_.size(); ++s) {
    for (std::size_t i = sections.first(s); i < sections.end(s); ++i)
      out.to_compute.emplace_hint(out.to_compute.end(), i, "new");
    const std::unique_ptr<RowReuse> old = std::move(matched_[s]);
    if (old == nullptr) continue;
    out.in_place = out.in_place && stays(*old, run, extensible_at);
    out.kept_files += old->kept().size();
    for (const RowReuse::Kept& k : old->kept()) out.to_compute.erase(k.file);
    for (const RowReuse::Routed& r : old->routed())
      if (is_complete(run, r.file)) out.to_compute.erase(r.file);
    for (std::size_t i = sections.first(s); i < sections.end(s); ++i)
      if (const auto it = out.to_compute.find(i); it != out.to_compute.end())
        it->second = old->why_computed(i);
  }
  return out;
}

void EarlierOutput::preview(RunContext& run, const OutputSections& sections,
                            std::int64_t extensible_at, UpdatePreview& out) {
  if (run.is_stopping()) return;  // files that were not checked look changed
  out.outputs.push_back(previewed(run, sections, extensible_at));
  if (out.outputs.size() < static_cast<std::size_t>(run.settings.sinks)) return;
  for (std::size_t i = 0; i < run.ledger.counts().found; ++i) {
    const auto computes = std::find_if(out.outputs.begin(), out.outputs.end(),
                                       [i](const auto& o) { return o.to_compute.contains(i); });
    if (computes == out.outputs.end())
      run.ledger.close(i, Outcome::ok, -1, "");
    else
      run.ledger.close(i, Outcome::not_run, -1, computes->to_compute.at(i));
  }
  const ManifestSource* source = manifest_source(run);
  if (source == nullptr) return;
  const Manifest& manifest = source->manifest();
  for (std::size_t i = 0; i < manifest.size(); ++i)
    if (run.ledger.outcome(i) == Outcome::not_run && manifest.split(i) >= 0)
      out.splits[i] = manifest.split_names()[static_cast<std::size_t>(manifest.split(i))];
}

std::optional<std::int64_t> EarlierOutput::rows_in_place(const RunContext& run, std::size_t section,
                                                         std::int64_t extensible_at) const {
  const auto& old = matched_[section];
  if (old == nullptr || !stays(*old, run, extensible_at)) return std::nullopt;
  return old->rows();
}

const ColumnStatistics& EarlierOutput::statistics() const {
  for (const auto& old : matched_)
    if (old != nullptr && old->statistics() && old->statistics()->is_applied)
      return *old->statistics();
  throw RunError(
      fmt::format("{}: has no statistics by which its rows were normalised, so rows cannot be made "
                  "again; rebuild it (overwrite: true)",
                  target_.path));
}

std::string EarlierOutput::hash(std::size_t section) const {
  return matched_[section] != nullptr ? matched_[section]->hash() : "";
}

bool EarlierOutput::is_kept(std::size_t section, std::size_t file) const {
  if (matched_[section] == nullptr) return false;
  const std::vector<RowReuse::Kept>& kept = matched_[section]->kept();
  const auto it =
      std::lower_bound(kept.begin(), kept.end(), file,
                       [](const RowReuse::Kept& k, std::size_t wanted) { return k.file < wanted; });
  return it != kept.end() && it->file == file;
}

void EarlierOutput::keep(const Into& into, std::size_t section, bool in_place) {
  std::unique_ptr<RowReuse> old = std::move(matched_[section]);  // with its lock
  if (old == nullptr) return;
  Ledger& ledger = into.run.ledger;
  for (const RowReuse::Kept& k : old->kept()) {
    if (in_place) {
      into.order.stays(k.file, k.row, k.rows, k.about);
    } else {
      into.order.taken_over(k.file, k.rows, k.about);
      rows_.emplace_hint(rows_.end(), k.file, k.row);
      if (k.hash != 0) hashes_.emplace_hint(hashes_.end(), k.file, k.hash);
    }
    into.statistics.mistake(k.file);
    kept_rows_ += k.rows;
    into.hashes[k.file] = k.hash;
    const int stage = k.remark != nullptr ? ledger.stage_number(k.remark->stage) : -1;
    const std::string remark = k.remark != nullptr ? k.remark->reason : "";
    // Each output has warnings of its own.
    if (into.run.settings.sinks > 1) into.ledger.kept(k.file, stage, remark);
    if (is_complete(into.run, k.file) && ledger.outcome(k.file) == Outcome::open)
      ledger.close(k.file, Outcome::ok, stage, remark);
  }
  for (const RowReuse::Routed& r : old->routed())
    if (is_complete(into.run, r.file))
      into.ledger.left_out(r.file, ledger.stage_number(r.remark->stage),
                           ItemError::skipped(r.remark->reason));
  kept_files_ += old->kept().size();
  if (in_place)
    into.order.begin_at(section, old->rows());
  else
    given_[section] = std::move(old);
}

std::size_t EarlierOutput::take_over(const std::vector<PlacedPart>& ready, std::size_t from,
                                     RowPartFile& file) const {
  const std::size_t section = ready[from].section;
  const std::int64_t first = rows_.at(ready[from].file), to = ready[from].file_row;
  std::int64_t count = 0;
  std::size_t next = from;
  while (next < ready.size() && !ready[next].part && ready[next].section == section &&
         rows_.at(ready[next].file) == first + count &&
         (next == from ||
          static_cast<std::uint64_t>(count) * file.row_bytes() < target_.checkpoint.count))
    count += ready[next++].file_rows;
  RowHash hash;
  std::size_t of = from;    // entry whose rows are hashed
  std::int64_t hashed = 0;  // number of its rows that are hashed
  for (std::int64_t done = 0; done < count; done += file.rows_at_once()) {
    const std::int64_t n = std::min(file.rows_at_once(), count - done);
    const std::vector<float> values = given_[section]->read(first + done, n);
    const std::size_t per_row = values.size() / static_cast<std::size_t>(n);
    for (std::int64_t row = 0; row < n;) {
      const std::int64_t rows = std::min(n - row, ready[of].file_rows - hashed);
      hash.add(values.data() + static_cast<std::size_t>(row) * per_row,
               static_cast<std::size_t>(rows) * per_row, NumberType::float32, target_.dtype);
      row += rows;
      hashed += rows;
      if (hashed < ready[of].file_rows) break;
      check_rows(ready[of].file, section, hash.value());
      hash.reset();
      hashed = 0;
      ++of;
    }
    file.write(to + done, values.data(), n);
  }
  return next;
}

// Keeps damaged rows from being copied.
void EarlierOutput::check_rows(std::size_t file, std::size_t section, std::uint64_t hash) const {
  const auto known = hashes_.find(file);
  if (known == hashes_.end() || known->second == hash) return;
  throw RunError(
      fmt::format("{0}: the rows of {1} are not what was written (`melflow verify {0}` lists all "
                  "such files); the output is left as it is. `melflow repair {0}` makes them again",
                  given_[section]->path(), given_[section]->name_of(file)));
}

void check_gives_rows(const RunContext& run, const std::vector<std::string>& paths) {
  const Ledger::Counts counts = run.ledger.counts();
  if (counts.ok > 0) return;
  const auto has_rows = [](const std::string& path) {
    std::error_code unknown;
    if (!std::filesystem::exists(path, unknown) && !unknown) return false;
    try {
      return FeatureFile(path).rows() > 0;
    } catch (const RunError&) {
      return true;  // it may be any file of the user's
    }
  };
  for (const std::string& path : paths)
    if (has_rows(path))
      throw RunError(fmt::format(
          "{}: this file is left as it was, since no file of this run gave rows ({} failed, {} "
          "skipped); remove it, or write elsewhere, if it is to go",
          path, counts.failed, counts.skipped));
}

}  // namespace melflow
