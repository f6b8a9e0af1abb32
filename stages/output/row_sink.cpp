#include "stages/output/row_sink.h"

#include <atomic>
#include <chrono>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "pipeline/base/problem.h"
#include "pipeline/base/text.h"
#include "pipeline/base/threads.h"
#include "pipeline/base/version.h"
#include "stages/facts.h"
#include "stages/files/files_read.h"
#include "stages/files/own_file.h"
#include "stages/files/publication.h"
#include "stages/manifest.h"
#include "stages/output/formats/feature_fingerprint.h"
#include "stages/output/joint_publication.h"
#include "stages/output/update_planner.h"
#include "stages/path_advice.h"
#include "stages/row_type.h"

namespace melflow {
namespace {

// Throws RunError for an output that would replace a file that the run reads.
void check_is_no_input(const std::string& target, const RunContext& run) {
  if (!has_name(target)) return;
  const auto check = [&](const std::string& input, const char* what) {
    if (is_same_file(target, input))
      throw RunError(fmt::format(
          "{}: this is {} and would be replaced by the output; write elsewhere", target, what));
  };
  for (const std::string& input : files_read(run)) check(input, "what this run reads");
  const auto* listed = manifest_source(run);
  if (listed == nullptr) return;
  const std::string name = std::filesystem::path(without_links(target)).filename();
  for (std::size_t i = 0; i < listed->manifest().size(); ++i)
    if (listed->manifest().relative(i).ends_with(name))
      check(listed->manifest().path(i), "a file of the corpus");
}

// Throws RunError when an output at `paths` has rows and no file of this run made any: an error in
// every file comes from the run itself (a disk, an option), and must not replace those rows.
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

}  // namespace

// Where another output of an update failed, nobody has removed this one's work files.
RowSink::~RowSink() {
  if (is_one_of_several_ && !written_) drop_work();
}

Requirements RowSink::require(const Requirements& below) const {
  Requirements above = below;
  require_rows(above, target_.dtype);
  return above;
}

// Only warns: a pipeline may be checked on another machine than the one it runs on.
void RowSink::check_folder(PlanCheck& check) const {
  if (const std::string url = url_problem(target_.path); !url.empty())
    return check.error("path", url);
  const std::filesystem::path folder = std::filesystem::path(target_.path).parent_path();
  std::error_code error;
  if (std::filesystem::is_directory(target_.path, error))
    return check.warning(
        "path", excerpt(target_.path, 4096) +
                    " is a folder, but path is the name of a file; add one, such as " +
                    excerpt((std::filesystem::path(target_.path) / "features.h5").string(), 4096));
  if (folder.empty() || target_.path.find("${") != std::string::npos ||
      std::filesystem::exists(folder, error) || error)
    return;
  const std::string why = path_advice(target_.path);
  check.warning("path",
                fmt::format("the folder '{}' does not exist{}", excerpt(folder.string(), 4096),
                            why.empty() ? ", and a run does not create it; create it first, "
                                          "or change the path"
                                        : why));
}

Properties RowSink::plan(const Properties& given, const Requirements&, PlanCheck& check) {
  if (target_.path.empty())
    check.error("", "'path' is missing; write path: FILE, the file that this node makes");
  if (const std::string end = ending(); !target_.path.empty() && !target_.path.ends_with(end))
    check.error("path",
                fmt::format("'{}' does not end in {}; name it NAME{}, since the files beside "
                            "it are named after NAME",
                            target_.path, end, end));
  check_folder(check);
  info_ = given.get_or(property::kFeatures, nullptr);
  libraries_ = given.get_or(property::kLibraries, std::string());
  is_routed_by_content_ = given.get_or(property::kIsRoutedByContent, false);
  if (info_) check_dtype(*info_, target_.dtype, check);
  if (target_.dtype == NumberType::int16 && target_.normalize)
    check.error("normalize",
                "normalised values go beyond full scale, which int16 cannot hold; "
                "set dtype: float32, or leave the samples as they are");
  if (target_.normalize && target_.statistics == StatisticsOf::none)
    check.error("normalize",
                "scales by statistics, and none are computed; set statistics: train (or all)");
  if (!target_.statistics_splits.empty() && target_.statistics != StatisticsOf::train)
    check.error("statistics_splits",
                "names the splits of statistics: train; set that, or remove it");
  if (!target_.statistics_by.empty() && target_.statistics == StatisticsOf::none)
    check.error("statistics_by",
                "recordings that it does not name go by the statistics of all, and none are "
                "computed; set statistics: train (or all)");
  if (info_ && target_.normalize) {
    auto normalized = std::make_shared<FeatureInfo>(*info_);
    normalized->unit = "standard deviations of " + info_->unit;
    info_ = std::move(normalized);
  }
  return given;
}

std::optional<Value> RowSink::settings() const {
  Value out = Value::map({});
  out.set("dtype", OptionType<NumberType>::echo(target_.dtype));
  if (!target_.normalize) return out;
  out.set("normalize", OptionType<StatisticsOf>::echo(target_.statistics));
  if (!target_.statistics_splits.empty())
    out.set("statistics_splits",
            OptionType<std::vector<std::string>>::echo(target_.statistics_splits));
  if (!target_.statistics_by.empty())
    out.set("statistics_by", OptionType<std::string>::echo(target_.statistics_by));
  return out;
}

std::size_t RowSink::kept_memory(const RunContext& run, int concurrency) const {
  const Manifest* splits = target_.split_files ? manifest_with_splits(run) : nullptr;
  constexpr std::size_t kResults = 256;  // [bytes] of AboutFile::results of a file, a guess
  return SinkStatistics::kept_memory(target_, *info_, run) +
         file_memory(concurrency, splits != nullptr ? splits->split_ranges().size() : 1) +
         (gets_sub_items() ? kResults * run.source.count() : 0);
}

PlannedOutput RowSink::planned(RunContext& run) const {
  return {run, *this, target_, *info_, is_routed_by_content_, extensible_at()};
}

// All outputs have been announced, so that what an interrupted run began with them is known.
void RowSink::look(RunContext& run) {
  const RunTask& task = task_of(run);
  const bool updates = task.update != Update::none;
  if (task.planner)
    planner_ = task.planner();
  else
    planner_ = updates ? std::make_unique<UpdatePlanner>() : std::make_unique<OutputPlanner>();
  if (updates) (void)run.services.find<JointPublication>()->recover(task.plans == nullptr);
  planner_->look(planned(run));
}

void RowSink::start(RunContext& run) {
  sections_ = {target_.path, target_.split_files, run, run.ledger.counts().found};
  statistics_ = std::make_unique<SinkStatistics>(target_, *info_, run);
  if (const Manifest* splits = manifest_with_splits(run))
    split_times_ = std::make_unique<SplitTimes>(*splits);
  ledger_ = std::make_unique<SinkLedger>(run.ledger);
  const auto copied = [this] {
    if (checkpoints_ != nullptr) checkpoints_->closed();
  };
  writer_ = std::make_unique<RowWriter>(
      RowWriter::Uses{target_, *info_, sections_, files_, plan_, *statistics_, copied}, *ledger_,
      run.ledger.counts().found);
  if (gets_sub_items()) writer_->order().expect_sub_items();
  announce_names(run);
  run.services.find<JointPublication>()->expect(
      [this] { Resumption::clear(target_.path, all_files()); });
}

// The files of all sections.
std::vector<std::string> RowSink::all_files() const {
  std::vector<std::string> out;
  for (const std::string& path : sections_.paths())
    for (std::string& file : part_ ? std::vector{path} : files_of(path))
      out.push_back(std::move(file));
  return out;
}

// All outputs have been started, so that all their files are known.
std::optional<std::size_t> RowSink::resumable(RunContext& run) {
  const RunTask& task = task_of(run);
  if (task.check_place)
    for (const std::string& file : all_files()) task.check_place(without_links(file));
  for (const std::string& path :
       run.services.find<JointPublication>()->recover(task.plans == nullptr))
    run.warn(fmt::format(
        "{}: an interrupted run was complete but unpublished; its files are published now", path));
  check_files(run);
  plan_ = planner_->plan(planned(run), sections_);
  plan_.path = target_.path;
  planner_.reset();
  if (plan_.normalized_by) statistics_->use(*plan_.normalized_by);
  if (task.is_dry()) return std::nullopt;
  find_places();
  const RunJournal::Facts facts = this->facts();
  resumption_ = std::make_unique<Resumption>(
      target_.path,
      Resumption::Uses{run, sections_, facts, works_,
                       [&](std::size_t section) { return open_work(run, section, true); }, plan_});
  if (plan_.copies_first) return 0;
  is_one_of_several_ = task.update != Update::none && run.settings.sinks > 1;
  const bool may = task.resume.when != Resume::When::never && !is_one_of_several_;
  return may ? resumption_->files() : 0;
}

RunJournal::Facts RowSink::row_facts() const {
  const std::string shape = fmt::format("{}", fmt::join(shape_of(0), " x "));
  return {
      {"version of melflow", kVersion},
      {"setting of the features, by their fingerprint", feature_fingerprint(feature_settings())},
      {"backend", info_->computed_by->backend},
      {"instruction set", info_->computed_by->sets_like(info_->computed_by->instruction_set)},
      {"version of a library", libraries_},
      {"dtype", OptionType<NumberType>::echo(target_.dtype).text()},
      {"shape of rows", shape}};
}

void RowSink::begin(RunContext& run, std::size_t done) {
  const RunTask& task = task_of(run);
  pass_routes_again(plan_, run);
  if (task.plans != nullptr && !run.is_stopping()) task.plans->push_back(plan_);
  // Where the run is being stopped, what an interrupted run left may not have been checked to the
  // end.
  if (task.is_dry() || (run.is_stopping() && resumption_->is_there())) {
    resumption_.reset();
    for (std::size_t i = 0; i < run.ledger.counts().found; ++i)
      if (run.ledger.outcome(i) == Outcome::open) run.ledger.close(i, Outcome::not_run, -1, "");
    return;
  }
  if (done == 0) give_up_work(task.resume);
  if (plan_.copies_first) {
    resumption_.reset();
    return copy_all(run);
  }
  begin_journal(run, done);
  resumption_.reset();
  warn_of_locks(run);
  run.ledger.subscribe([this](std::size_t index, Outcome outcome) {
    writer_->closed(index, outcome);
    if (checkpoints_ == nullptr) return;
    try {
      checkpoints_->closed();
    } catch (...) {
      writer_->keep_error();
    }
  });
}

Opening RowSink::opening(const RunContext& run, bool resumes) const {
  const bool may_be_there = target_.overwrite || update_of(run) != Update::none;
  return {may_be_there ? Existing::replace : Existing::refuse, resumes};
}

void RowSink::warn_of_locks(RunContext& run) const {
  for (const auto& file : files_) {
    if (!file->is_unlocked()) continue;
    run.warn(
        fmt::format("{}: this file system has no locks: make sure that no other run writes "
                    "there meanwhile",
                    file->target()));
    break;
  }
}

// All files are checked before the first is opened, so that a refusal leaves everything untouched.
void RowSink::check_files(const RunContext& run) const {
  const std::string advice = planner_->advice();
  for (const std::string& file : all_files()) {
    PartFile::recover(file, task_of(run).plans == nullptr);
    if (!advice.empty() && !target_.overwrite && std::filesystem::exists(file))
      throw RunError(fmt::format("{}: exists already; {}", file, advice));
    PartFile::check(file, stage_name(), opening(run, false).existing);
    check_is_no_input(file, run);
  }
}

std::optional<ItemError> RowSink::consume(std::shared_ptr<const MelBatch> in,
                                          ItemContext& context) {
  const auto begin = SplitTimes::Clock::now();
  writer_->consume(*in, context);
  if (split_times_ != nullptr) split_times_->wrote(*in, *context.item().origins, begin);
  return std::nullopt;
}

void RowSink::drop_waiting() { writer_->drop_waiting(); }

void RowSink::left_out(std::size_t index, int stage, const ItemError& why) {
  ledger_->left_out(index, stage, why);
  writer_->left_out(index);
}

void RowSink::finish(RunContext& run, Ending ending) {
  if (files_.empty()) return;
  try {
    writer_->check();
    if (ending == Ending::failed) return leave_work(run);
    complete_ = ending == Ending::complete;
    if (!complete_ && plan_.is_update) {
      run.warn(fmt::format("{}: the update was stopped; it is what it was before", target_.path));
      return leave_work(run);
    }
    if (!complete_ && plan_.copies_first) return leave_work(run);
    if (complete_) {
      std::vector<std::string> rows;
      for (const std::string& path : sections_.paths())
        rows.push_back(part_ ? path : files_of(path).front());
      check_gives_rows(run, rows);
    }
    // A power failure must not destroy what earlier runs have written.
    const bool updates = update_of(run) != Update::none;
    const auto timed = [&](const auto& act) {
      const auto before = std::chrono::steady_clock::now();
      act();
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - before;
      if (target_.sync && !updates) sync_seconds_ += took.count();
    };
    timed([&] { checkpoints_->commit(); });
    checkpoints_->ending();
    writer_->finish();
    if (const std::size_t next = writer_->order().current(); next < run.ledger.counts().found)
      throw RunError(fmt::format("{}: not all rows of {} came (a bug in melflow)", target_.path,
                                 run.source.name(next)));
    add_in_place();
    complete(run);
    splits_ = split_summaries(run);
    std::vector<PartFile*> parts;
    for (const auto& file : files_)
      for (PartFile* part : file->parts()) parts.push_back(part);
    if (complete_) {
      for (std::size_t s = 0; s < extended_.size(); ++s)
        (extended_[s] != nullptr ? extended_[s] : files_[s])->stay();
      return timed([&] {
        run.services.find<JointPublication>()->complete(target_.path, parts,
                                                        target_.sync || updates, [this] {
                                                          written_ = true;
                                                          remove_journal();
                                                        });
      });
    }
    checkpoints_->commit();  // rows that were only in memory so far
    for (PartFile* part : parts) part->keep();
    written_ = true;
  } catch (...) {
    leave_work(run);
    throw;
  }
}

void RowSink::complete(RunContext& run) {
  const RowOrder& order = writer_->order();
  const bool has_split_files =
      target_.split_files && !part_ && manifest_with_splits(run) != nullptr;
  statistics_->settle(run, order, sections_, files_, complete_);
  if (target_.normalize && complete_)
    for (std::size_t s = 0; s < files_.size(); ++s) normalize(run, s);
  std::vector<std::string> hashes;
  for (std::size_t s = 0; s < files_.size(); ++s) {
    const std::int64_t rows = order.total(s);
    const OutputIndex index{run,
                            *ledger_,
                            order,
                            *info_,
                            feature_settings(),
                            complete_,
                            sections_.first(s),
                            sections_.end(s),
                            statistics_->settled(),
                            &writer_->hashes(),
                            has_split_files,
                            plan_.is_repair ? &plan_.sections[s].warnings : nullptr};
    finish_file(*files_[s], rows, index);
    hashes.push_back(index.hash());
    rows_ += rows;
  }
  if (plan_.is_update && complete_) checkpoints_->complete(std::move(hashes));
  if (part_) {
    part_->rows = rows_;
    part_->sums = statistics_->sums();
  }
}

// Normalises rows, and updates their hashes.
void RowSink::normalize(RunContext& run, std::size_t section) {
  if (plan_.normalized_by) return normalize_repaired(run, section);
  const std::vector<std::int64_t> offsets = writer_->order().offsets();
  std::atomic<std::size_t> next{sections_.first(section)};
  on_threads(run.workers, [&] {
    for (std::size_t i = 0; (i = next.fetch_add(1)) < sections_.end(section);)
      if (const std::int64_t n = writer_->order().rows(i); n > 0) {
        statistics_->normalize(i, *files_[section], offsets[i], n);
        writer_->hashes()[i] = files_[section]->hash_written(offsets[i], n);
      }
  });
}

// Repaired rows are normalised by the statistics of the others. These hold only for the rows as
// they were, so changed rows are refused.
void RowSink::normalize_repaired(const RunContext& run, std::size_t section) {
  const RowOrder& order = writer_->order();
  const std::vector<std::int64_t> offsets = order.offsets();
  RowPartFile& file = *files_[section];
  for (std::size_t i = sections_.first(section); i < sections_.end(section); ++i) {
    const std::int64_t rows = order.rows(i);
    if (rows == 0 || plan_.is_kept(section, i)) continue;
    statistics_->normalize(i, file, offsets[i], rows);
    std::uint64_t& hash = writer_->hashes()[i] = file.hash_written(offsets[i], rows);
    const PlannedRange& range = plan_.sections[section].of(i);
    if (range.giver != nullptr && hash == range.giver->entry(range.entry_of(i)).rows_hash) continue;
    checkpoints_->remove();
    checkpoints_.reset();
    throw RunError(fmt::format(
        "{}: its rows are normalised by statistics of the recordings as they were, and what {} "
        "gives now is not what was written: the recording has changed, or this program or "
        "processor makes other bytes. It is left as it is; rebuild it (overwrite: true)",
        sections_.path(section), run.source.name(i)));
  }
}

RowSink::Shape RowSink::shape_of(std::int64_t rows) const {
  Shape shape{static_cast<std::uint64_t>(rows)};
  if (info_->frames > 1) shape.push_back(static_cast<std::uint64_t>(info_->frames));
  if (!info_->is_samples()) shape.push_back(static_cast<std::uint64_t>(info_->columns));
  return shape;
}

}  // namespace melflow
