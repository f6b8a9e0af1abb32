#include "apps/verbs/recompute.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <unordered_map>

#include <fmt/format.h>

#include "apps/temporary_folder.h"
#include "apps/verbs/output_check.h"
#include "apps/verbs/output_corpus.h"
#include "apps/verbs/watched_run.h"
#include "config/load.h"
#include "pipeline/base/problem.h"
#include "pipeline/base/version.h"
#include "pipeline/run/runner.h"
#include "stages/containers/container.h"
#include "stages/corpus/corpus_listing.h"
#include "stages/corpus/frozen_corpus.h"
#include "stages/features/mel/utterance_steps.h"
#include "stages/output/part_sink.h"
#include "stages/output/row_sink.h"
#include "stages/output/rows/row_hash.h"
#include "stages/permutation.h"
#include "stages/run_task.h"

namespace melflow {
namespace {

std::vector<std::size_t> drawn(const FeatureFile& file, const CountOrShare& sample,
                               std::uint64_t seed) {
  std::vector<std::size_t> known;
  for (std::size_t i = 0; i < file.files().size(); ++i)
    if (file.files()[i].count > 0 && file.files()[i].rows_hash != 0) known.push_back(i);
  const auto wanted =
      sample.count ? *sample.count
                   : static_cast<std::size_t>(
                         std::ceil(sample.share.value_or(1) * static_cast<double>(known.size())));
  const Permutation order(known.size(), seed);
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < std::min(wanted, known.size()); ++i)
    out.push_back(known[static_cast<std::size_t>(order(i))]);
  std::sort(out.begin(), out.end());
  return out;
}

// Checks one of the facts beside the configuration that determine the bytes of rows.
void check_is_same(const FeatureFile& file, const char* what, const std::string& here) {
  const std::string there = file.text(what);
  if (there == here) return;
  throw RunError(
      fmt::format("{}: was made with {} {}, and this is {}: the bytes of rows may be others. "
                  "Compute again with what made it; `melflow compare` says how far features are "
                  "apart",
                  file.path(), what, there, here));
}

// Returns the hash of rows as stored: scaled by the statistics of a normalised output.
std::uint64_t hash_of(const FeatureFile& made, const FeatureFile::Entry& e, const FeatureFile& file,
                      const FeatureFile::Entry& stored, NumberType type) {
  const auto& statistics = file.statistics();
  if (!statistics || !statistics->is_applied) return e.rows_hash;
  std::vector<float> values =
      made.read_rows(static_cast<std::uint64_t>(e.offset), static_cast<std::uint64_t>(e.count));
  const auto columns = static_cast<int>(file.bands());
  MemoryRows rows(values.data(), e.count * static_cast<std::int64_t>(file.frames_per_row()),
                  columns);
  file.scaling_step(stored)->run(rows, rows);
  return RowHash::of(values.data(), values.size(), NumberType::float32, type);
}

// Omits files that have changed since, as these would end the run.
std::vector<std::size_t> unchanged(const FeatureFile& file, std::vector<std::size_t> files,
                                   Recomputed& out) {
  const auto corpus = corpus_of({{&file, files}});
  const Manifest& list = corpus->manifest;
  std::vector<std::size_t> as_it_was;
  for (std::size_t i = 0; i < files.size(); ++i)
    (stamp_of(list.path(i)) == file.files()[files[i]].stamp ? as_it_was : out.changed)
        .push_back(files[i]);
  return as_it_was;
}

}  // namespace

Recomputed recompute(const FeatureFile& file, const CountOrShare& sample, std::uint64_t seed,
                     const LoadOptions& options) {
  Plan plan = plan_of(file, options);
  const PlanNode& sink = only_sink(plan, file.path());
  check_root(plan, file);
  if (auto* lists = dynamic_cast<ReadsLists*>(plan.nodes.front().stage.get())) lists->list_given();
  Recomputed out;
  const std::vector<std::size_t> files = unchanged(file, drawn(file, sample, seed), out);
  if (files.empty()) return out;
  if (const auto settings = sink.stage->settings();
      settings && settings->find("compression") != nullptr)
    throw RunError(
        file.path() +
        ": its matrices are compressed with loss, so that rows are not compared with "
        "what is computed again. Without --recompute they are compared with their hashes");
  check_is_same(file, "melflow_version", kVersion);
  const ComputedBy& by = *dynamic_cast<const RowSink&>(*sink.stage).info().computed_by;
  check_is_same(file, "backend", by.backend);
  if (by.sets_like(file.text("instruction_set")) != by.sets_like(by.instruction_set))
    check_is_same(file, "instruction_set", by.instruction_set);
  const TemporaryFolder folder;
  const std::string path = folder / "rows.h5";
  PartSink::replace(plan, sink.name, {.path = path, .with_statistics = false});
  plan.settings.is_part = true;
  plan.allow_failures();
  const auto corpus = corpus_of({{&file, files}});
  for (const std::size_t i : files) corpus->stamps.push_back(file.files()[i].stamp);
  set_task(plan.services, {.corpus = corpus, .resume = {Resume::When::never}});
  Runner runner(std::move(plan));
  const RunReport report = run_watched(runner, kQuietly).report;
  if (report.ending == Ending::failed) throw RunError(report.error);
  if (report.ending == Ending::stopped) throw RunError("stopped before all files were computed");
  const FeatureFile made(path);
  const NumberType type = file.type();
  std::unordered_map<std::uint64_t, std::size_t> stored;  // by the hash of their rows
  for (std::size_t i = 0; i < file.files().size(); ++i)
    if (file.files()[i].count > 0) stored.emplace(file.files()[i].rows_hash, i);
  for (std::size_t i = 0; i < files.size(); ++i) {
    const FeatureFile::Entry& e = made.files().at(i);
    const auto remark =
        std::find_if(made.remarks().begin(), made.remarks().end(),
                     [i](const auto& r) { return r.file == static_cast<std::int64_t>(i); });
    if (e.status != FeatureFile::Status::ok) {
      out.lost.emplace_back(files[i], remark == made.remarks().end()
                                          ? to_text(e.status)
                                          : fmt::format("{}: {}", remark->stage, remark->reason));
      continue;
    }
    const std::uint64_t hash = hash_of(made, e, file, file.files()[files[i]], type);
    if (hash == file.files()[files[i]].rows_hash)
      out.same.push_back(files[i]);
    else if (const auto whose = stored.find(hash); hash != 0 && whose != stored.end())
      out.exchanged.emplace_back(files[i], whose->second);
    else
      out.other.push_back(files[i]);
  }
  return out;
}

}  // namespace melflow
