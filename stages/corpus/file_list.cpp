// file_list: lists the files of a corpus, in the order that their rows will have.
//
// Out: FileRef, one for every path that matches, even if it turns out to be no readable file: the
//      stage that reads it reports that, and the ledger has a record for each.

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "pipeline/base/problem.h"
#include "pipeline/base/secrets.h"
#include "pipeline/stage/registry.h"
#include "pipeline/stage/stage_abilities.h"
#include "stages/audio/store/feed.h"
#include "stages/containers/archive.h"
#include "stages/containers/container.h"
#include "stages/corpus/corpus_listing.h"
#include "stages/corpus/earlier_files.h"
#include "stages/corpus/frozen_corpus.h"
#include "stages/corpus/kaldi_folder.h"
#include "stages/corpus/manifest_remarks.h"
#include "stages/corpus/python_corpus.h"
#include "stages/corpus/united_manifest.h"
#include "stages/facts.h"
#include "stages/files/files_read.h"
#include "stages/items.h"
#include "stages/run_task.h"

namespace melflow {

enum class UpdateBy { stamp, content };
template <>
struct EnumNames<UpdateBy> {
  static constexpr std::pair<const char*, UpdateBy> values[] = {{"stamp", UpdateBy::stamp},
                                                                {"content", UpdateBy::content}};
};

namespace {

struct SourceOptions {
  FileListOptions corpus;
  FeedOptions feed;
  UpdateBy update_by = UpdateBy::stamp;
  std::optional<NodeGroup> hash;

  void describe(Schema& s) {
    corpus.describe(s);
    feed.describe(s);
    s.field("update_by", update_by,
            "how `melflow update` finds out whether a file has changed; stamp: by its size and "
            "modification time; content: by a hash of its bytes, which a run stores in the "
            "output; an update then reads every file")
        .tuning();
    s.group("hash", hash, "the node that hashes files, after the one that reads them")
        .used_with("update_by: content", [this] { return update_by == UpdateBy::content; });
  }
};

// What Python is needed for, as the user wrote it.
std::string what_needs_python(const FileListOptions& o) {
  if (o.is_store)
    return fmt::format("the root {}, a URL", without_secrets(o.arguments.map.find("root")->text()));
  if (!o.lists_of_call.empty())
    return fmt::format("the manifest {} with commands: allow", o.lists_of_call.text());
  return o.call;
}

class FileList final : public Source<FileRef>,
                       public ManifestSource,
                       public MakesAhead,
                       public ReadsLists,
                       public RefusesUpdate,
                       public UnitesSources {
 public:
  explicit FileList(SourceOptions options)
      : corpora_{{"", std::move(options.corpus)}},
        feed_(std::make_shared<Feed>(std::move(options.feed))) {
    corpora_.front().options.take_python();
    if (options.update_by == UpdateBy::content) contents_ = std::make_shared<ContentHashes>();
  }

  // Recordings that Python gives may come from anywhere, so reading them may take long.
  [[nodiscard]] StageResources resources() const override {
    constexpr int kAtOnce = 32;
    for (const Corpus& c : corpora_)
      if (!c.options.call.empty()) return {.waits_for = kAtOnce};
    return {};
  }
  // The options of the run as a whole: on feeding audio to stages, changed files and utterances.
  static std::vector<std::string> options_of_run() {
    std::vector<std::string> out{"update_by", "hash", "utterances"};
    FeedOptions feed;
    Schema schema;
    feed.describe(schema);
    for (std::string& name : schema.names()) out.push_back(std::move(name));
    return out;
  }
  std::unique_ptr<SourceStage> unite(const std::vector<Named>& sources) override {
    auto out = std::make_unique<FileList>(SourceOptions{});
    out->corpora_.clear();
    for (const Named& n : sources) {
      auto& source = static_cast<FileList&>(*n.source);
      out->corpora_.push_back({n.name, source.corpora_.front().options});
      source.feed_ = feed_;
      source.contents_ = contents_;
    }
    out->feed_ = feed_;
    out->contents_ = contents_;
    return out;
  }
  // A file of plain samples that has no samples.
  [[nodiscard]] std::optional<SourceInfo> least_item() const override {
    return SourceInfo{"none.wav", 0};
  }
  [[nodiscard]] std::size_t source_of(std::size_t i) const override {
    return manifest_.source_of(i);
  }

  // Sets utterances.rule by the kind of the lists, so that the configuration stored in an output
  // gives the same samples without the lists.
  static std::vector<NodeSpec> expand(const NodeSpec& spec) {
    NodeSpec out = spec;
    Value* cut = out.options.find("utterances");
    if (cut == nullptr || !cut->is_map()) return {out};
    if (const Value* rule = cut->find("rule"); rule != nullptr && !rule->is_null()) return {out};
    const Value *unit = cut->find("unit"), *manifest = spec.options.find("manifest");
    const bool is_in_seconds = unit == nullptr || !unit->is_scalar() || unit->text() != "samples";
    CorpusLists lists;
    if (is_in_seconds && manifest != nullptr &&
        !OptionType<CorpusLists>::parse(*manifest, lists).empty())
      return {out};
    if (const auto rule = FileListOptions::rule_of(lists))
      cut->set("rule", OptionType<UtteranceRule>::echo(*rule));
    return {out};
  }

  static std::vector<Insertion> insert(const NodeSpec& spec) {
    std::vector<Insertion> out;
    const Value* by = spec.options.find("update_by");
    if (by != nullptr && by->is_scalar() && by->text() == "content")
      out.push_back({port_type<RawBytes>(), grouped_node(spec, "hash", "hash_content")});
    if (auto keep = Feed::insertion(spec)) out.push_back(std::move(*keep));
    if (const Value* cut = spec.options.find("utterances"); cut != nullptr && cut->is_map()) {
      NodeSpec node{spec.name + ".utterances", spec.mark, Value::map({}, spec.mark)};
      node.options.set("stage", Value::scalar("utterances", spec.mark));
      out.push_back({port_type<Waveform>(), std::move(node)});
    }
    return out;
  }

  Properties plan(const Properties& given, const Requirements&, PlanCheck& check) override {
    if (corpora_.size() == 1) check_options(check);  // several sources each check their own
    Properties out = given;
    out.set(property::kFeed, feed_);
    if (contents_) out.set(property::kContents, contents_);
    if (const FileListOptions& first = corpora_.front().options; first.utterances) {
      out.set(property::kHasUtterances, true);
      out.set(property::kUtteranceRule, first.utterance_rule());
    }
    std::vector<std::shared_ptr<const ManifestFields>> fields;
    for (const Corpus& c : corpora_) fields.push_back(c.options.fields());
    for (const Corpus& c : corpora_)
      if (!c.options.call.empty()) {
        if (python_host() == nullptr) throw NeedsPython{what_needs_python(c.options)};
        out.set(property::kIsGiven, true);
      }
    out.set(property::kManifestFields,
            fields.size() == 1 ? fields.front() : melflow::unite(fields));
    return out;
  }

  // Known when the items are.
  [[nodiscard]] std::string why_no_update() const override {
    for (const Corpus& c : corpora_)
      if (c.given && !c.given->has_paths())
        return fmt::format(
            "{}: its items have no `path`, so that an update cannot tell which ones are new; give "
            "each a `path`, any text that names it, or use melflow run",
            c.options.call);
    return {};
  }

  void start(RunContext& run) override {
    RunTask& task = task_of(run);
    is_update_ = task.update != Update::none;
    for (const Corpus& c : corpora_) {
      for (const CorpusLists* lists : {&c.options.manifest, &c.options.lists_of_call})
        for (const CorpusLists::List& list : lists->list) {
          note_file_read(run, list.path);
          if (!KaldiFolder::is_one(list.path)) continue;
          for (std::string& file : KaldiFolder::files_of(list.path))
            note_file_read(run, std::move(file));
        }
      note_file_read(run, c.options.label_file);
      for (const TableJoin& join : c.options.join) note_file_read(run, join.table);
    }
    if (task.corpus != nullptr) {
      list_given();
      manifest_ = std::move(task.corpus->manifest);
      // A list that was read from an HDF5 output has them in the order of their names.
      manifest_.order_texts(text_names());
      frozen_ = std::move(task.corpus->stamps);
      for (const std::string& remark : task.corpus->remarks) run.warn(remark);
    } else {
      check_are_told_apart();
      for (Corpus& c : corpora_)
        if (!c.options.call.empty()) c.given = c.opened();
      list(run, task);
      for (const Corpus& c : corpora_)
        if (c.given) c.given->make_known();
    }
    check_update(run);
    if (task.shuffle) manifest_.shuffle(*task.shuffle);
    stamps_.assign(manifest_.size(), {});
    if (contents_) contents_->of.assign(manifest_.size(), 0);
  }

  [[nodiscard]] std::size_t count() const override { return manifest_.size(); }
  [[nodiscard]] std::string name(std::size_t i) const override { return manifest_.name(i); }
  // The memory of the index, and of ledger and writer for every file.
  [[nodiscard]] std::size_t index_bytes() const override {
    const std::size_t hash = contents_ ? sizeof(std::uint64_t) : 0;
    std::size_t archives = 0;
    for (const Corpus& c : corpora_) archives += archive_memory(whole_root(c.options.root));
    return manifest_.memory_bytes() + archives +
           (40 + sizeof(FileStamp) + hash + feed_->index_bytes()) * manifest_.size() +
           frozen_.size() * sizeof(FileStamp);
  }
  // Making an item takes a system call, which takes longer than everything else here.
  [[nodiscard]] bool makes_ahead() const override { return !manifest_.has_spans(); }
  [[nodiscard]] SourceItem item(std::size_t i) override {
    FileStamp now;
    std::string path = manifest_.path(i);
    const auto& given = corpora_[manifest_.source_of(i)].given;
    const ContainedItem item = given                       ? item_of(given, manifest_.relative(i))
                               : manifest_.are_all_files() ? ContainedItem{}
                                                           : contained_(path);
    auto file = std::make_shared<FileRef>(located(std::move(path), item, &now));
    const std::size_t records = manifest_.entries_of_recording(i);
    for (std::size_t r = i; r < i + records; ++r) note_stamp(stamps_[r], now);
    if (!frozen_.empty()) check_is_frozen(i);
    file->problem = manifest_.problem(i);
    for (std::size_t r = i; r < i + records; ++r)
      if (const DeclaredAudio audio = manifest_.declared(r);
          !audio.is_empty() && (file->declared.empty() || file->declared.back() != audio))
        file->declared.push_back(audio);
    file->stored = feed_->find(i, now);
    const bool is_packed = file->part && file->part->is_deflated;
    const SourceInfo info{file->path, file->size,
                          is_packed         ? file->part->stored
                          : file->container ? file->size
                                            : 0};
    return {std::move(file), info, records};
  }
  void finish(RunContext& run, Ending) override { feed_->finish(run); }
  void list_given() override {
    for (Corpus& c : corpora_) {
      if (c.given || c.options.call.empty()) continue;  // given: since before the run
      std::shared_ptr<PythonCorpus> given = c.opened();
      given->list();
      given->make_known();
      c.given = std::move(given);
    }
  }
  void check_lists(const std::function<void(std::string)>& warn) const override {
    for (const Corpus& c : corpora_) {
      const auto& lists = c.options.manifest.list;
      const bool is_there = (c.options.label_file.empty() || is_list_there(c.options.label_file)) &&
                            std::all_of(lists.begin(), lists.end(),
                                        [](auto& one) { return is_list_there(one.path); }) &&
                            std::all_of(c.options.join.begin(), c.options.join.end(),
                                        [](auto& one) { return is_list_there(one.table); });
      const std::string of = c.name.empty() ? "" : c.name + ": ";
      if (is_there)
        melflow::check_lists(c.options, [&](const std::string& remark) { warn(of + remark); });
    }
  }
  [[nodiscard]] std::vector<std::pair<std::string, Value>> summary() const override {
    auto out = feed_->summary();
    if (manifest_.has_spans())
      out.emplace_back("recordings", Value::scalar(std::to_string(manifest_.recordings())));
    if (!not_taken_.counts().empty()) {
      Value counts = Value::map({});
      for (const auto& [ending, count] : not_taken_.counts())
        counts.set(ending, Value::scalar(std::to_string(count)));
      out.emplace_back("not_taken", std::move(counts));
    }
    return out;
  }
  [[nodiscard]] const Manifest& manifest() const override { return manifest_; }
  [[nodiscard]] FileStamp stamp(std::size_t file) const override { return stamps_[file]; }
  void set_stamp(std::size_t file, const FileStamp& stamp) override { stamps_[file] = stamp; }
  [[nodiscard]] ContentHashes* contents() const override { return contents_.get(); }

 private:
  void check_options(PlanCheck& check) const {
    corpora_.front().options.check(check);
    feed_->check(check);
    if (contents_ && feed_->may_cache())
      check.error("update_by",
                  "content does not go with feed: cache or auto: a cache of audio knows files by "
                  "their size and time");
  }
  // In the order of a corpus that is listed.
  [[nodiscard]] std::vector<std::string> text_names() const {
    std::vector<std::string> out;
    for (const Corpus& c : corpora_)
      for (std::string& name : c.options.text_names()) out.push_back(std::move(name));
    return out;
  }
  void list(RunContext& run, RunTask& task) {
    const std::shared_ptr<CorpusSurvey>& survey = task.survey;
    if (survey) survey->is_listed = true;
    const auto warn = [&](const std::string& remark) {
      if (survey) survey->remarks.push_back(remark);
      run.warn(remark);
    };
    const std::vector<EarlierFile> earlier = joined(task.earlier, warn);
    if (corpora_.size() == 1) {
      manifest_ = list_corpus(corpora_.front().options, warn,
                              {.earlier = earlier,
                               .whole = task.whole.get(),
                               .not_taken = &not_taken_,
                               .given = corpora_.front().given.get()});
      return;
    }
    std::vector<std::string> names;
    std::vector<Manifest> manifests;
    for (const Corpus& c : corpora_) {
      NotTaken not_taken;
      manifests.push_back(
          list_corpus(c.options, [&](const std::string& remark) { warn(c.name + ": " + remark); },
                      {.earlier = of_source(earlier, c.name),
                       .whole = task.whole.get(),
                       .not_taken = &not_taken,
                       .given = c.given.get(),
                       .source = c.name}));
      names.push_back(c.name);
      for (const auto& [ending, count] : not_taken.counts()) not_taken_.add(ending, count);
    }
    const std::string labels = sources_without("labels", names, manifests, &Manifest::label_names),
                      splits = sources_without("splits", names, manifests, &Manifest::split_names);
    manifest_ = melflow::unite(names, manifests);
    for (const std::string& remark :
         {labels, splits, files_of_several_sources(manifest_), labels_not_in_training(manifest_)})
      if (!remark.empty()) warn(remark);
  }
  // In an update a file may have the stamp of rows that an output keeps. If the file has changed
  // since, no stamp is right for the rows of all outputs; the next update makes them again.
  void note_stamp(FileStamp& noted, const FileStamp& now) const {
    if (!is_update_ || noted.size < 0 || noted == now)
      noted = now;
    else if (now.size >= 0)
      noted = {};
  }
  void check_is_frozen(std::size_t i) const {
    if (stamps_[i] == frozen_[i]) return;
    const auto text = [](const FileStamp& stamp) {
      if (stamp.size < 0) return std::string("not there, or no file");
      const std::chrono::nanoseconds changed(stamp.modified);  // may be before 1970
      const auto second = std::chrono::floor<std::chrono::seconds>(changed);
      return fmt::format("{} bytes, changed at {:%F %T}.{:09} UTC", stamp.size,
                         fmt::gmtime(second.count()), (changed - second).count());
    };
    throw RunError(fmt::format(
        "{}: this file is not what was planned with: then {}, now {}. Put it back as it was, or "
        "plan again",
        manifest_.path(i), text(frozen_[i]), text(stamps_[i])));
  }

  // Paths of Python's recordings omit secrets, and so do not tell such corpora apart.
  void check_are_told_apart() const {
    std::map<std::string, const Corpus*> seen;
    for (const Corpus& c : corpora_) {
      if (c.options.call.empty()) continue;
      const Corpus& other = *seen.emplace(c.options.base(), &c).first->second;
      if (to_json(c.options.arguments.map) != to_json(other.options.arguments.map))
        throw RunError(fmt::format(
            "{} and {}: these corpora differ in the user, password or query of their URL only, or "
            "in another secret, so that their recordings cannot be told apart; use one of them in "
            "a pipeline",
            other.name, c.name));
    }
  }

  struct Corpus {
    std::string name;  // of the node, where there are several
    FileListOptions options;
    std::shared_ptr<PythonCorpus> given = nullptr;  // the recordings of `call`, from start() on

    [[nodiscard]] std::shared_ptr<PythonCorpus> opened() const {
      return PythonCorpus::open(options.call, options.arguments.map,
                                options.web.value_or(WebLimits{}));
    }
  };
  std::vector<Corpus> corpora_;
  std::shared_ptr<Feed> feed_;
  bool is_update_ = false;
  Manifest manifest_;
  ContainedItems contained_;
  NotTaken not_taken_;
  std::vector<FileStamp> stamps_;
  std::vector<FileStamp> frozen_;  // the required stamps, if the corpus was listed in advance
  std::shared_ptr<ContentHashes> contents_;  // null where they are not asked for
};

const RegisterStage<FileList, SourceOptions> register_file_list{
    "file_list", "Lists the files of a corpus, with their labels and splits, in path order."};

}  // namespace
}  // namespace melflow
