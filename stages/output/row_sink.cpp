#include "stages/output/row_sink.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "pipeline/base/problem.h"
#include "pipeline/base/version.h"
#include "stages/facts.h"
#include "stages/files/files_read.h"
#include "stages/files/own_file.h"
#include "stages/files/publication.h"
#include "stages/files/undo_file.h"
#include "stages/manifest.h"
#include "stages/output/formats/feature_fingerprint.h"
#include "stages/output/joint_publication.h"
#include "stages/output/left_under_way.h"
#include "stages/output/update_planner.h"
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

void warn_of_locks(RunContext& run, const std::vector<SectionFile>& files) {
  const auto unlocked =
      std::ranges::find_if(files, [](const SectionFile& file) { return file->is_unlocked(); });
  if (unlocked != files.end())
    run.warn(
        fmt::format("{}: this file system has no locks: make sure that no other run writes "
                    "there meanwhile",
                    (*unlocked)->target()));
}

// Whether the run updates several outputs, which starts over after an interruption: a file may be
// done in one of them, and not in another.
bool starts_over(const RunContext& run) {
  return update_of(run) != Update::none && run.settings.sinks > 1;
}

}  // namespace

RowSink::RowSink(const RowSink& planned, RowSinkOptions options) : RowSink(std::move(options)) {
  info_ = planned.info_;
  measures_ = planned.measures_;
  libraries_ = planned.libraries_;
  is_routed_by_content_ = planned.is_routed_by_content_;
  set_gets_sub_items(planned.gets_sub_items());
  set_feature_settings(planned.feature_settings());
  set_settings_up_to(planned.settings_up_to());
}

Requirements RowSink::require(const Requirements& below) const {
  Requirements above = below;
  require_rows(above, target_.dtype);
  return above;
}

Properties RowSink::plan(const Properties& given, const Requirements&, PlanCheck& check) {
  target_.check(ending(), check);
  info_ = given.get_or(property::kFeatures, nullptr);
  measures_ = given.get_or(property::kMeasures, MeasureSet());
  libraries_ = given.get_or(property::kLibraries, std::string());
  is_routed_by_content_ = given.get_or(property::kIsRoutedByContent, false);
  if (info_) {
    check_dtype(*info_, target_.dtype, check);
    target_.dtype = stored_type(*info_, target_.dtype);
    if (info_->has_integers() && target_.statistics != StatisticsOf::none)
      check.error("statistics", fmt::format("the rows are integers of {}, which are stored as they "
                                            "are and not scaled; leave it out",
                                            to_text(info_->type)));
  }
  if (info_ && target_.normalize) {
    auto normalized = std::make_shared<FeatureInfo>(*info_);
    normalized->unit = "standard deviations of " + info_->unit;
    info_ = std::move(normalized);
  }
  return given;
}

std::size_t RowSink::kept_memory(const RunContext& run, int concurrency) const {
  const Manifest* splits = target_.split_files ? manifest_with_splits(run) : nullptr;
  constexpr std::size_t kMeasured = sizeof(MeasureValues) + 32;  // with what allocates and counts
  constexpr std::size_t kResults = 256;  // [bytes] of AboutFile::results of a file, a guess
  return SinkStatistics::kept_memory(target_, *info_, run) +
         file_memory(concurrency, splits != nullptr ? splits->split_ranges().size() : 1) +
         (measures_.any() ? kMeasured * run.source.count() : 0) +
         (gets_sub_items() ? kResults * run.source.count() : 0);
}

PlannedOutput RowSink::planned(RunContext& run) const {
  return {run, *this, target_, *info_, is_routed_by_content_, extensible_at()};
}

// Called before anything is touched: first when the splits, after which files are named, are not
// known yet, and again when they are.
void RowSink::announce_names(const RunContext& run) const {
  std::vector<OutputName> names;
  const bool are_listed = sections_.size() > 0;
  for (const std::string& path : are_listed ? sections_.paths() : std::vector{target_.path})
    for (const std::string& file : files_of(path)) names.push_back({file});
  Publication::check(target_.path);
  check_side_file(RunJournal::path_of(target_.path));
  for (const OutputName& name : names) {
    const std::string file = without_links(name.begin);
    UndoFile::check(file);
    check_side_file(file + ".part");
    check_side_file(SectionFile::added_path(file) + ".part");
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
  const auto advanced = [this] {
    if (checkpoints_ != nullptr) checkpoints_->closed();
  };
  writer_ = std::make_unique<RowWriter>(
      RowWriter::Uses{target_, *info_, sections_, files_, plan_, *statistics_, advanced}, *ledger_,
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
    for (std::string& file : files_of(path)) out.push_back(std::move(file));
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
  const Existing existing =
      target_.overwrite || task.update != Update::none ? Existing::replace : Existing::refuse;
  check_files(run, existing);
  plan_ = planner_->plan(planned(run), sections_);
  plan_.path = target_.path;
  planner_.reset();
  if (plan_.normalized_by) statistics_->use(*plan_.normalized_by);
  if (task.is_dry()) return std::nullopt;
  for (std::size_t s = 0; s < sections_.size(); ++s)
    files_.emplace_back(*this, sections_.path(s), plan_.sections[s].in_place, existing);
  resumption_ = std::make_unique<Resumption>(
      target_.path, Resumption::Uses{run, sections_, facts(), plan_}, files_);
  const bool may =
      !plan_.copies_first && task.resume.when != Resume::When::never && !starts_over(run);
  return may ? resumption_->files() : 0;
}

RunJournal::Facts RowSink::row_facts() const {
  const std::string shape = fmt::format("{}", fmt::join(shape_of(*info_, 0), " x "));
  return {
      {"version of melflow", kVersion},
      {"setting of the features, by their fingerprint", feature_fingerprint(feature_settings())},
      {"backend", info_->computed_by->backend},
      {"instruction set", info_->computed_by->sets_like(info_->computed_by->instruction_set)},
      {"version of a library", libraries_},
      {"dtype", OptionType<NumberType>::echo(target_.dtype).text()},
      {"shape of rows", shape}};
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

void RowSink::begin(RunContext& run, std::size_t done) {
  const RunTask& task = task_of(run);
  pass_routes_again(plan_, run);
  if (task.plans != nullptr && !run.is_stopping()) task.plans->push_back(plan_);
  // If the run is being stopped, the work of an interrupted run may not have been checked
  // completely.
  if (task.is_dry() || (run.is_stopping() && resumption_->is_there())) {
    resumption_.reset();
    files_.clear();
    for (std::size_t i = 0; i < run.ledger.counts().found; ++i)
      if (run.ledger.outcome(i) == Outcome::open) run.ledger.close(i, Outcome::not_run, -1, "");
    return;
  }
  if (done == 0) resumption_->give_up(task.resume, all_files(), starts_over(run));
  open_files(run, done);
  resumption_.reset();
  if (plan_.copies_first)
    copy_first(plan_, {run, *ledger_, *writer_, *statistics_}, files_);
  else
    writer_->listen(run.ledger);
}

// Opens the files and the journal, and accounts for what is done already.
void RowSink::open_files(RunContext& run, std::size_t done) {
  const Accounts accounts{run, *ledger_, *writer_, *statistics_};
  const Resume& resume = task_of(run).resume;
  const bool updates = plan_.is_update;
  KeptFiles kept, resumed;
  if (!plan_.copies_first) kept = keep_planned(plan_, accounts);
  for (SectionFile& file : files_) file.open_output();
  std::unique_ptr<RunJournal> journal;
  std::size_t committed = 0;
  if (done == 0) {
    const auto begin_journal = [&] {
      journal = RunJournal::create(target_.path);
      journal->append(facts());
      if (updates) journal->log().sync();
    };
    // The journal names the owner of the work file, and so must exist first, if there is an output
    // already or if no file of the run will be noted in it.
    if (updates || plan_.copies_first) begin_journal();
    try {
      for (SectionFile& file : files_) file.open(false);
    } catch (...) {
      files_.clear();  // first: without a journal nothing tells whose they are
      if (journal != nullptr) journal->log().remove();
      throw;
    }
    if (journal == nullptr) begin_journal();
  } else {
    journal = resumption_->resume(done, accounts, committed, resumed);
    if (resume.tell)
      resume.tell(fmt::format("{}: resumes an interrupted {}; {} of {} files are done, with {} {}",
                              target_.path, updates ? "update" : "run", done,
                              run.ledger.counts().found, resumed.rows,
                              updates ? "new rows" : "rows"));
  }
  checkpoints_ = std::make_unique<Checkpoints>(
      std::move(journal), committed,
      Checkpoints::Uses{run, *ledger_, *writer_, files_, target_.checkpoint.count,
                        target_.sync && !plan_.copies_first, updates, !plan_.copies_first});
  finishing_ = std::make_unique<Finishing>(
      Finishing::Uses{run, *this, target_, *info_, measures_, feature_settings(), sections_, plan_,
                      *statistics_, *ledger_, *writer_, split_times_.get(), files_, checkpoints_,
                      kept, resumed, starts_over(run)});
  warn_of_locks(run, files_);
  if (plan_.copies_first) return;
  const UnderWay::Entries& left = resumption_->under_way();
  note_under_way(run, target_.path,
                 left.empty() && !resume.before.empty() ? left_under_way(resume.before) : left,
                 *checkpoints_);
}

// All files are checked before the first is opened, so that a refusal leaves everything untouched.
void RowSink::check_files(const RunContext& run, Existing existing) const {
  const std::string advice = planner_->advice();
  for (const std::string& file : all_files()) {
    PartFile::recover(file, task_of(run).plans == nullptr);
    if (!advice.empty() && !target_.overwrite && std::filesystem::exists(file))
      throw RunError(fmt::format("{}: exists already; {}", file, advice));
    PartFile::check(file, stage_name(), existing);
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

void RowSink::left_out(std::size_t index, int stage, const ItemError& why) {
  ledger_->left_out(index, stage, why);
  writer_->left_out(index);
}

void RowSink::finish(RunContext&, Ending ending) {
  if (finishing_ != nullptr) finishing_->run(ending);
}

std::vector<std::string> RowSink::written() const {
  return finishing_ == nullptr ? std::vector<std::string>() : finishing_->paths();
}

std::vector<std::pair<std::string, Value>> RowSink::summary() const {
  if (finishing_ == nullptr) return {};
  return finishing_->summary();
}

}  // namespace melflow
