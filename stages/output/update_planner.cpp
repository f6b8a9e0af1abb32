#include "stages/output/update_planner.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "pipeline/base/memory.h"
#include "pipeline/base/problem.h"
#include "pipeline/base/threads.h"
#include "pipeline/stage/kept_items.h"
#include "stages/audio/reading/file_reader.h"
#include "stages/containers/container.h"
#include "stages/corpus/whole_files.h"
#include "stages/facts.h"
#include "stages/files/content_hash.h"
#include "stages/manifest.h"
#include "stages/run_task.h"

namespace melflow {
namespace {

using From = PlannedRange::From;
using Found = PlannedRange::Found;

// Returns "/data/a", or for several sources "train: /data/a, extra: /data/b".
std::string roots_text(const std::string& root, const std::vector<CorpusSource>& sources) {
  std::string out = root;
  for (const CorpusSource& s : sources)
    out += fmt::format("{}{}: {}", out.empty() ? "" : ", ", s.name, s.root);
  return out;
}

// The present state of a listed file, if its entry may still hold; else the stamp's size is -1.
struct Now {
  FileStamp stamp;
  std::uint64_t content = 0;  // where it is required
  int error = 0;              // why they are unknown
  bool is_seen = false, is_hashed = false;
};
// The states of all files of the source; a service that the run's other outputs share.
struct Seen {
  std::vector<Now> of;
};

// The hash of a recording's bytes, of a file or in a container; as content_hash_of().
std::uint64_t recording_hash(const std::string& path, int* error) {
  const ContainedItem item = contained_item(path);
  if (item.container == nullptr) return content_hash_of(path, error);
  static const FileReader reader({.buffer = 1 << 20, .whole = 4 << 20});
  BufferPool pool(0);
  auto read = reader.read(std::make_shared<const FileRef>(located(path)), pool);
  if (error != nullptr) *error = read ? 0 : EIO;
  if (!read) return 0;
  const RawBytes& raw = **read;
  return raw.fd ? content_hash(raw.fd.get(), raw.begin, raw.size)
                : content_hash({raw.data.data(), static_cast<std::size_t>(raw.size)});
}

void look_at(const ManifestSource& source, std::size_t file, const FeatureFile::Entry& entry,
             Now& now) {
  const std::string path = source.manifest().path(file);
  if (!now.is_seen) now.stamp = stamp_of(path, &now.error);
  now.is_seen = true;
  if (now.is_hashed || source.contents() == nullptr || entry.content == 0 ||
      now.stamp.size != entry.stamp.size || now.error != 0)
    return;
  now.content = recording_hash(path, &now.error);
  now.is_hashed = true;
}

// Compares the files of a section with the entries of its earlier output. A file that was ok is
// unchanged when path, size and modification time are the same; for a source that compares
// contents, when path, size and the hash of its bytes are, for which it is read. A file whose state
// the system cannot tell counts as unchanged, as does one that is still being written
// (RunTask::whole), even if it had failed. When the run is being stopped, the remaining files
// are not checked and count as gone. A repair does not look at the files: all but the damaged ones
// are as they were, also those that had failed.
class Comparison {
 public:
  Comparison(const PlannedOutput& output, const OutputSections& sections, std::size_t section,
             std::shared_ptr<EarlierRows> old, RowPlan& plan)
      : run_(output.run),
        source_(*manifest_source(output.run)),
        first_(sections.first(section)),
        end_(sections.end(section)),
        old_(std::move(old)),
        plan_(plan),
        to_(plan.sections[section]) {
    if (!output.is_routed_by_content || run_.settings.sinks == 1) return;
    for (const FeatureFile::Remark& r : old_->file().remarks())
      if (r.status == FeatureFile::Status::skipped && r.reason.starts_with(kSentElsewhere))
        elsewhere_.insert(r.file);
  }

  void run();
  /// After run(): adds the files with rows to `all`, and to the plan those that are dropped: they
  /// no longer exist, or no section lists them (`is_listed`).
  struct Sums {
    std::size_t files = 0;
    std::int64_t rows = 0;
  };
  void add_dropped(const std::unordered_set<std::string>& is_listed, Sums& all) const;
  [[nodiscard]] EarlierRows& old() const { return *old_; }
  [[nodiscard]] bool has_dead_rows() const { return kept_rows_ != old_->rows(); }
  void warn() const;

 private:
  [[nodiscard]] std::vector<std::int64_t> entries() const;
  [[nodiscard]] std::vector<Now> look(const std::vector<std::int64_t>& entries) const;
  [[nodiscard]] Found found(const FeatureFile::Entry& entry, const Now& now, bool is_hidden) const;
  [[nodiscard]] const FeatureFile::Entry& entry(std::int64_t i) const {
    return old_->entry(static_cast<std::size_t>(i));
  }

  RunContext& run_;
  ManifestSource& source_;
  const std::size_t first_, end_;  // files of the corpus
  const std::shared_ptr<EarlierRows> old_;
  RowPlan& plan_;
  RowPlan::Section& to_;
  std::unordered_set<std::int64_t> elsewhere_;  // entries that a route sent to another output
  std::vector<bool> is_listed_, is_gone_;       // by entry
  std::int64_t kept_rows_ = 0;
  std::string hidden_;  // a file whose state the system could not tell
  std::size_t hidden_count_ = 0, looked_at_ = 0, touched_ = 0;
};

// Returns the earlier output's entry for each file, -1 for none. Both lists are mostly the same and
// in the same order.
std::vector<std::int64_t> Comparison::entries() const {
  const std::vector<FeatureFile::Entry>& old = old_->file().files();
  std::unordered_multimap<std::string_view, std::size_t> by_path;
  std::vector<bool> used(old.size(), false);
  std::vector<std::int64_t> out;
  out.reserve(end_ - first_);
  std::size_t next = 0;
  for (std::size_t i = first_; i < end_; ++i) {
    const std::string path = source_.manifest().name(i);
    std::int64_t found = -1;
    if (next < old.size() && !used[next] && old[next].path == path) {
      found = static_cast<std::int64_t>(next);
    } else {
      if (by_path.empty())
        for (std::size_t e = 0; e < old.size(); ++e) by_path.emplace(old[e].path, e);
      const auto [begin, end] = by_path.equal_range(path);
      for (auto it = begin; it != end && found < 0; ++it)
        if (!used[it->second]) found = static_cast<std::int64_t>(it->second);
    }
    if (found >= 0) {
      used[static_cast<std::size_t>(found)] = true;
      next = static_cast<std::size_t>(found) + 1;
    }
    out.push_back(found);
  }
  return out;
}

std::vector<Now> Comparison::look(const std::vector<std::int64_t>& entries) const {
  std::vector<Now> out(entries.size());
  const auto seen = run_.settings.sinks > 1 ? run_.services.find_or_make<Seen>() : nullptr;
  if (seen) seen->of.resize(source_.manifest().size());
  constexpr std::size_t kStamps = 256;  // files at a time; hashes take longer, and vary
  const std::size_t at_once = source_.contents() != nullptr ? 1 : kStamps;
  std::atomic<std::size_t> next{0};
  on_threads(run_.workers, [&] {
    for (std::size_t i = 0; (i = next.fetch_add(at_once)) < entries.size();)
      for (std::size_t k = i; k < std::min(i + at_once, entries.size()); ++k) {
        if (entries[k] < 0 || run_.is_stopping()) continue;
        const FeatureFile::Entry& e = entry(entries[k]);
        if (e.status != FeatureFile::Status::ok && !elsewhere_.contains(entries[k])) continue;
        if (seen) out[k] = seen->of[first_ + k];
        look_at(source_, first_ + k, e, out[k]);
        if (seen) seen->of[first_ + k] = out[k];
      }
  });
  return out;
}

// Why the file has no rows in the earlier output.
Found as_before(FeatureFile::Status status) {
  return status == FeatureFile::Status::failed    ? Found::failed_before
         : status == FeatureFile::Status::skipped ? Found::skipped_before
                                                  : Found::not_run_before;
}

Found Comparison::found(const FeatureFile::Entry& e, const Now& now, bool is_hidden) const {
  const bool was_ok = e.status == FeatureFile::Status::ok;
  if (now.stamp.size < 0 && !is_hidden) return was_ok ? Found::gone : as_before(e.status);
  const bool is_same =
      is_hidden || (source_.contents() != nullptr ? now.content != 0 && now.content == e.content
                                                  : now.stamp == e.stamp);
  if (is_same) return Found::unchanged;
  if (!was_ok) return as_before(e.status);
  if (now.stamp.size != e.stamp.size) return Found::with_another_size;
  if (source_.contents() == nullptr) return Found::with_another_time;
  return e.content != 0 ? Found::with_other_content : Found::without_hash;
}

void Comparison::run() {
  const std::vector<std::int64_t> entries = this->entries();
  const RunTask& task = task_of(run_);
  const auto& damaged = task.damaged;
  WholeFiles* const whole = task.whole.get();
  const std::vector<Now> states = damaged ? std::vector<Now>(entries.size()) : look(entries);
  std::vector<std::size_t> to_repair;
  if (damaged)
    if (const auto it = damaged->find(old_->file().path()); it != damaged->end())
      to_repair = it->second;
  to_.ranges.clear();
  is_listed_.assign(old_->file().files().size(), false);
  is_gone_ = is_listed_;
  for (std::size_t k = 0; k < entries.size(); ++k) {
    const std::size_t file = first_ + k;
    if (entries[k] < 0) {
      to_.add(file, From::graph, Found::added, nullptr, 0);
      continue;
    }
    const auto e = static_cast<std::size_t>(entries[k]);
    const FeatureFile::Entry& before = old_->entry(e);
    const Now& now = states[k];
    bool is_hidden = now.error != 0 && !is_gone(now.error);
    if (is_hidden && hidden_count_++ == 0)
      hidden_ = fmt::format("{}: {}", source_.manifest().path(file), std::strerror(now.error));
    Found found = !damaged ? this->found(before, now, is_hidden)
                  : std::binary_search(to_repair.begin(), to_repair.end(), e) ? Found::damaged
                                                                              : Found::unchanged;
    if (whole != nullptr && found != Found::unchanged && found != Found::gone &&
        !whole->is_whole(source_.manifest().path(file))) {
      is_hidden = true;
      found = Found::unchanged;
    }
    is_listed_[e] = true;
    is_gone_[e] = found == Found::gone;
    if (now.stamp.size >= 0 || is_hidden) {
      ++looked_at_;
      if (now.stamp.size == before.stamp.size && now.stamp != before.stamp) ++touched_;
    }
    From from = From::graph;
    if (found == Found::unchanged) {
      source_.set_stamp(file, is_hidden || damaged ? before.stamp : now.stamp);
      if (source_.contents() != nullptr) source_.contents()->of[file] = before.content;
      from = elsewhere_.contains(entries[k]) ? From::nowhere : From::giver;
      if (from == From::giver) kept_rows_ += before.count;
    }
    to_.add(file, from, found, old_, e);
  }
}

void Comparison::add_dropped(const std::unordered_set<std::string>& is_listed, Sums& all) const {
  for (std::size_t e = 0; e < is_listed_.size(); ++e) {
    const FeatureFile::Entry& entry = old_->entry(e);
    if (entry.count == 0) continue;
    ++all.files;
    all.rows += entry.count;
    if (is_listed_[e] ? !is_gone_[e] : is_listed.contains(entry.path)) continue;
    plan_.dropped.add(entry.path);
    plan_.dropped_rows += entry.count;
  }
}

void Comparison::warn() const {
  const std::string& path = old_->file().path();
  if (hidden_count_ > 0)
    run_.warn(fmt::format(
        "{}: {} of {} files cannot be reached, such as {}; what they had there stays as it is",
        path, hidden_count_, end_ - first_, hidden_));
  if (source_.contents() == nullptr && touched_ > 1 && touched_ == looked_at_)
    run_.warn(fmt::format(
        "{}: every file has another modification time than when it was made, and its size: "
        "was the corpus copied? Keep the times (cp -p, rsync -t), or write update_by: "
        "content, with which later updates know files by their bytes",
        path));
}

// Warnings, and errors, about an earlier output as a whole.
void check(const PlannedOutput& output, const EarlierRows& old) {
  RunContext& run = output.run;
  const RunTask& task = task_of(run);
  const ManifestSource& source = *manifest_source(run);
  const Manifest& manifest = source.manifest();
  const std::string& path = old.file().path();
  const std::string was = roots_text(old.file().root(), old.file().sources()),
                    is = roots_text(manifest.root(), manifest.sources());
  // Objects of one process are numbered, also in an update.
  const bool are_objects = was.starts_with("python:@") && is.starts_with("python:@");
  if (was != is && !are_objects)
    run.warn(
        fmt::format("{}: was made of {}, this is {}; files of the same name, size and {} are "
                    "taken for the same",
                    path, was, is, source.contents() != nullptr ? "content" : "modification time"));
  // Told, not stored: the bytes of the output do not depend on how often it was updated.
  const std::string renumbered = old.renumbered_labels(manifest.label_names());
  if (!renumbered.empty() && task.resume.tell)
    task.resume.tell(
        fmt::format("warning: {}: {}; a program that has stored the numbers, such as a trained "
                    "model, must use the names",
                    path, renumbered));
  const ComputedBy& by = *output.info.computed_by;
  if (const std::string now = by.backend + " " + by.instruction_set;
      by.sets_like(old.computed_by()) != by.sets_like(now))
    run.warn(
        fmt::format("{}: its rows were computed by {}, new ones are by {}: the same values, but "
                    "not the same bytes",
                    path, old.computed_by(), now));
  if (output.target.normalize && !task.damaged)
    throw RunError(
        fmt::format("{}: its rows are normalised by statistics that new files would change; "
                    "rebuild it by `melflow run` with overwrite: true, and without normalize "
                    "if it is to be updated",
                    path));
  if (source.contents() != nullptr && old.rows() > 0 && !old.has_contents())
    run.warn(
        fmt::format("{}: was made without update_by: content and has no hashes of its files: all "
                    "are recomputed",
                    path));
}

// The node of the output as the user named it.
std::string node_of(const PlannedOutput& output) {
  if (const Value* graph = output.run.settings.config.find("graph"))
    for (const Value::Entry& node : graph->entries()) {
      const Value* path = node.value.find("path");
      if (path != nullptr && path->is_scalar() && path->text() == output.target.path)
        return node.key;
    }
  return "write";
}

// Returns why the update must not begin: files that are gone may be on an unmounted disk.
std::string too_many_dropped(const PlannedOutput& output, const RowPlan& plan,
                             const Comparison::Sums& all) {
  const CountOrShare& most = output.target.max_dropped;
  const bool is_over = (most.count && plan.dropped.count > *most.count) ||
                       (most.share && static_cast<double>(plan.dropped_rows) >
                                          *most.share * static_cast<double>(all.rows));
  if (!is_over) return {};
  return fmt::format(
      "{}: {} of its {} files with rows ({} of {} rows) are gone or not listed any more, such as "
      "{}. Is a disk not mounted, or have root, include or the manifest changed? The output is "
      "left as it was. If these rows are to go, set {node}.max_dropped, such as --set "
      "{node}.max_dropped=100% (it is {})",
      output.target.path, plan.dropped.count, all.files, plan.dropped_rows, all.rows,
      plan.dropped.names.front(), OptionType<CountOrShare>::echo(most).text(),
      fmt::arg("node", node_of(output)));
}

// Whether rows stay where they are. The next run trusts only its own user's files, so it could not
// restore another user's; and where the output has a second name, as in a backup of hard links,
// that one must keep its bytes.
bool stays(const PlannedOutput& output, const Comparison& compared) {
  const EarlierRows& old = compared.old();
  struct stat st {};
  return ::stat(old.file().path().c_str(), &st) == 0 && st.st_uid == ::geteuid() &&
         st.st_nlink == 1 && update_of(output.run) == Update::append && !compared.has_dead_rows() &&
         output.extensible_at >= 0 && old.rows_at() == output.extensible_at;
}

// For the report; files that had failed or been skipped are neither new nor changed.
void note_changes(const Manifest& manifest, RowPlan& plan) {
  for (const RowPlan::Section& section : plan.sections)
    for (const PlannedRange& range : section.ranges) {
      if (range.from != From::graph) continue;
      const bool is_new = range.found == Found::added;
      const bool is_changed = std::string_view(to_text(range.found)).starts_with("changed");
      for (std::size_t i = range.first; (is_new || is_changed) && i < range.end; ++i)
        (is_new ? plan.added : plan.changed).add(manifest.name(i));
    }
}

void tell_other_sinks(const PlannedOutput& output, const RowPlan& plan) {
  const auto kept = output.run.services.find_or_make<KeptItems>();
  const std::size_t files = output.run.ledger.counts().found;
  for (const RowPlan::Section& section : plan.sections)
    for (const PlannedRange& range : section.ranges)
      for (std::size_t i = range.first; i < range.end; ++i) {
        if (range.is_kept()) kept->has(output.sink, i, files);
        if (range.from == From::nowhere) kept->goes_elsewhere(output.sink, i, files);
      }
}

}  // namespace

void UpdatePlanner::look(const PlannedOutput& output) {
  const std::string& path = output.target.path;
  std::vector<EarlierFile>& found = task_of(output.run).earlier.emplace_back();
  opened_[path] = take(output, path);
  if (output.target.split_files)
    for (const std::string& split : OutputSections::splits_beside(path)) {
      const std::string beside = OutputSections::path_of(path, split);
      try {
        auto old = take(output, beside);
        if (old != nullptr && std::ranges::count(old->file().splits(), split) > 0)
          opened_[beside] = std::move(old);
      } catch (const RunError&) {
        // It may be any file of the user's; plan() opens it again if it is of this output.
      }
    }
  for (const auto& [opened, old] : opened_) {
    if (old == nullptr) continue;
    const std::vector<std::string>& splits = old->file().splits();
    for (const FeatureFile::Entry& e : old->file().files())
      found.push_back({e.path, e.split >= 0 && static_cast<std::size_t>(e.split) < splits.size()
                                   ? std::string_view(splits[static_cast<std::size_t>(e.split)])
                                   : std::string_view()});
  }
}

std::shared_ptr<EarlierRows> UpdatePlanner::take(const PlannedOutput& output,
                                                 const std::string& path) {
  if (const auto opened = opened_.find(path); opened != opened_.end())
    return opened_.extract(opened).mapped();
  return EarlierRows::find(path, output.sink.feature_settings(),
                           task_of(output.run).plans == nullptr, output.run.settings.sinks);
}

RowPlan UpdatePlanner::plan(const PlannedOutput& output, const OutputSections& sections) {
  RunContext& run = output.run;
  const RunTask& task = task_of(run);
  RowPlan plan = OutputPlanner::plan(output, sections);
  plan.is_repair = task.damaged.has_value();
  const ManifestSource* source = manifest_source(run);
  std::vector<Comparison> compared;
  for (std::size_t s = 0; s < sections.size(); ++s) {
    const std::shared_ptr<EarlierRows> old = take(output, sections.path(s));
    if (old == nullptr || source == nullptr) continue;
    plan.is_update = true;
    plan.sections[s].hash = old->file().hash();
    if (plan.is_repair) plan.sections[s].warnings = old->file().warnings();
    check(output, *old);
    Comparison& comparison = compared.emplace_back(output, sections, s, old, plan);
    comparison.run();
    comparison.warn();
    if (stays(output, comparison)) plan.sections[s].in_place = old->rows();
  }
  // Where the run is being stopped, files that were not checked look as if they were gone.
  if (plan.is_update && !run.is_stopping()) {
    std::unordered_set<std::string> listed;
    if (sections.size() > 1)  // a file may be in another section now
      for (std::size_t i = 0; i < source->manifest().size(); ++i)
        listed.insert(source->manifest().name(i));
    Comparison::Sums all;
    for (const Comparison& comparison : compared) comparison.add_dropped(listed, all);
    plan.refusal = too_many_dropped(output, plan, all);
  }
  if (!plan.refusal.empty() && task.plans == nullptr) throw RunError(plan.refusal);
  if (plan.is_update && task.plans == nullptr && !plan.is_repair)
    note_changes(source->manifest(), plan);
  if (output.target.normalize && plan.is_update) {
    for (const Comparison& comparison : compared)
      if (const auto& statistics = comparison.old().file().statistics();
          statistics && statistics->is_applied && !plan.normalized_by)
        plan.normalized_by = statistics;
    if (!plan.normalized_by)
      throw RunError(fmt::format(
          "{}: has no statistics by which its rows were normalised, so rows cannot be made "
          "again; rebuild it (overwrite: true)",
          output.target.path));
  }
  forget_opened(run);
  if (run.settings.sinks > 1) tell_other_sinks(output, plan);
  return plan;
}

// Warns about outputs of splits that no file belongs to any more.
void UpdatePlanner::forget_opened(const RunContext& run) {
  for (const auto& [path, old] : opened_)
    if (old != nullptr)
      run.warn(path +
               ": no file belongs there any more; it is left as it was. Remove it, or it is "
               "taken for a part of this output");
  opened_.clear();
}

}  // namespace melflow
