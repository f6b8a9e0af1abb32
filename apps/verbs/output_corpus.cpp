#include "apps/verbs/output_corpus.h"

#include <filesystem>
#include <map>
#include <string_view>

#include <fmt/format.h>

#include "pipeline/base/problem.h"
#include "stages/audio/compare_declared.h"
#include "stages/containers/container.h"
#include "stages/output/earlier_rows.h"
#include "stages/output/row_sink.h"
#include "stages/run_task.h"

namespace melflow {
namespace {

constexpr std::string_view kSeconds = "#t=", kSamples = "#samples=";

// Returns where the span begins that ends an utterance's name (Manifest::name).
std::size_t end_of_path(std::string_view name) {
  const std::size_t at = name.rfind('#');
  if (at == name.npos) return name.size();
  const std::string_view span = name.substr(at);
  return span.starts_with(kSeconds) || span.starts_with(kSamples) ? at : name.size();
}

void set_names(Manifest& list, const FeatureFile& output) {
  list.set_names(output.labels(), output.splits());
  list.set_target_names(output.targets());
  list.set_text_names(output.columns());
  for (const FeatureFile::Entry& e : output.files()) {
    if (e.start == 0 && e.end == 0) continue;  // not an utterance
    const bool has_samples = e.path.find(kSamples, end_of_path(e.path)) != e.path.npos;
    return list.set_span_unit(has_samples ? Manifest::SpanUnit::samples
                                          : Manifest::SpanUnit::seconds);
  }
}

void add(Manifest& list, const FeatureFile& output, const FeatureFile::Entry& e) {
  const std::size_t i = list.size();
  std::string_view path =
      std::string_view(e.path).substr(0, list.has_spans() ? end_of_path(e.path) : e.path.size());
  std::size_t source = 0;
  if (const auto& sources = list.sources(); !sources.empty()) {
    const std::string_view own = path.substr(0, path.find('/'));
    while (source < sources.size() && sources[source].name != own) ++source;
    if (source == sources.size())
      throw RunError(fmt::format("{}: this file is damaged: {} is of no source that it names",
                                 output.path(), excerpt(e.path)));
    path.remove_prefix(own.size() + 1);
  }
  const std::size_t name = path.rfind('/') + 1;  // 0 without a folder
  list.add(list.add_folder(path.substr(0, name), source), path.substr(name));
  if (list.has_spans()) list.set_span(i, {e.start, e.end});
  if (e.label >= 0) list.set_label(i, output.labels().at(static_cast<std::size_t>(e.label)));
  if (!e.labels.empty()) {
    std::vector<std::string_view> labels;
    for (const std::int32_t l : e.labels)
      labels.emplace_back(output.labels().at(static_cast<std::size_t>(l)));
    list.set_labels(i, labels);
  }
  if (e.split >= 0)
    static_cast<void>(list.set_split(i, output.splits().at(static_cast<std::size_t>(e.split))));
  for (std::size_t t = 0; t < e.targets.size(); ++t) list.set_target(i, t, e.targets[t]);
  for (std::size_t t = 0; t < e.texts.size(); ++t) list.set_text(i, t, e.texts[t]);
}

}  // namespace

std::shared_ptr<FrozenCorpus> corpus_of(const std::vector<FilesOf>& outputs) {
  auto out = std::make_shared<FrozenCorpus>();
  if (outputs.empty()) return out;
  const FeatureFile& first = *outputs.front().output;
  const std::vector<CorpusSource> sources = first.sources();
  out->manifest = sources.empty() ? Manifest(first.root()) : Manifest(sources);
  Manifest& list = out->manifest;
  set_names(list, *outputs.front().output);
  for (const auto& [output, files] : outputs) {
    std::map<std::int64_t, const FeatureFile::Remark*> remarks;
    for (const FeatureFile::Remark& remark : output->remarks()) remarks[remark.file] = &remark;
    for (const std::size_t i : files) {
      const FeatureFile::Entry& e = output->files()[i];
      add(list, *output, e);
      const auto remark = remarks.find(static_cast<std::int64_t>(i));
      if (remark == remarks.end()) continue;
      if (e.path.ends_with('/'))  // a folder without access
        list.set_problem(list.size() - 1, remark->second->reason);
      else if (const DeclaredAudio audio = declared_in(remark->second->reason); !audio.is_empty())
        list.set_declared(list.size() - 1, audio);
    }
  }
  list.close();
  return out;
}

void check_root(const Plan& made, const FeatureFile& output) {
  if (made.nodes.front().info->name != "file_list") return;
  std::vector<CorpusSource> sources = output.sources();
  if (sources.empty()) sources.push_back({"", output.root()});
  for (const auto& [name, root] : sources) {
    if (root.starts_with(kPythonScheme)) continue;  // Python is asked for them again
    std::error_code none;
    const bool is_there = std::filesystem::exists(root, none);
    // The mount point of an unmounted disk is an empty folder.
    if (root.empty() || (is_there && !std::filesystem::is_empty(root, none))) continue;
    throw RunError(fmt::format("{}: its recordings{} were in the folder '{}', which {} here; {}",
                               output.path(), name.empty() ? "" : " of " + name, root,
                               is_there ? "is empty" : "does not exist",
                               std::filesystem::path(root).is_absolute()
                                   ? "is its disk mounted?"
                                   : "run this in the folder where the output was made"));
  }
}

Plan plan_of(const FeatureFile& output, LoadOptions options) {
  const std::string config = output.text("config");
  if (config.empty())
    throw RunError(output.path() + ": does not record the configuration that it was made with");
  options.has_all_options = true;
  return load_plan_text(config, output.path() + ": config", options);
}

std::string why_no_update(const Plan& plan) {
  std::string why;
  for (const PlanNode& n : plan.nodes)
    if (const auto* stage = dynamic_cast<const RefusesUpdate*>(n.stage.get()); why.empty() && stage)
      why = stage->why_no_update();
  return why;
}

std::string cure_of(const Plan& made, const std::string& output) {
  return why_no_update(made).empty() ? cure_of_damaged_rows(output, made.settings.sinks)
                                     : "run its pipeline again, with overwrite: true";
}

const PlanNode& only_sink(const Plan& plan, const std::string& path) {
  const PlanNode* out = nullptr;
  for (const PlanNode& n : plan.nodes) {
    if (n.info->traits.kind != StageKind::sink) continue;
    if (out != nullptr || dynamic_cast<const RowSink*>(n.stage.get()) == nullptr)
      throw RunError(fmt::format(
          "{}: this file is of a pipeline with more than one output ({} is another); rows are "
          "recomputed where it has one. If they are damaged, {}",
          path, n.name, cure_of(plan, path)));
    out = &n;
  }
  return *out;
}

}  // namespace melflow
