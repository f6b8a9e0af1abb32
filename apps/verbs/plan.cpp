// melflow plan: divides a corpus into a job on which any number of machines can work.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <system_error>

#include <fmt/format.h>

#include "apps/exit_codes.h"
#include "apps/job/checked_json.h"
#include "apps/job/job.h"
#include "apps/report/format.h"
#include "apps/report/printing.h"
#include "apps/usage_errors.h"
#include "apps/verbs/plan_arguments.h"
#include "apps/verbs/verbs.h"
#include "config/load.h"
#include "config/top_level.h"
#include "config/yaml_text.h"
#include "pipeline/base/problem.h"
#include "pipeline/base/secrets.h"
#include "pipeline/base/threads.h"
#include "pipeline/options/schema.h"
#include "pipeline/run/runner.h"
#include "stages/containers/container.h"
#include "stages/corpus/frozen_corpus.h"
#include "stages/files/own_file.h"
#include "stages/model_files/model_file.h"
#include "stages/output/row_sink.h"
#include "stages/run_task.h"

namespace melflow {
namespace {

namespace fs = std::filesystem;

const RowSink* row_sink(const PlanNode& node) {
  return dynamic_cast<const RowSink*>(node.stage.get());
}

// Returns the node that writes rows, which must be the only sink. Throws RunError.
const PlanNode& only_sink(const Plan& plan) {
  const PlanNode* out = nullptr;
  for (const PlanNode& node : plan.nodes) {
    if (node.info->traits.kind != StageKind::sink) continue;
    if (row_sink(node) == nullptr || out != nullptr)
      throw RunError(fmt::format(
          "{}: a job has one output of rows (hdf5_write, npy_write, kaldi_write, tar_write); {}",
          node.name,
          out == nullptr ? "remove " + node.info->name : "plan a pipeline for each output"));
    out = &node;
  }
  return *out;
}

std::vector<FileStamp> stamps_of(const Manifest& manifest, int workers) {
  std::vector<FileStamp> out(manifest.size());
  std::vector<std::size_t> recordings;
  for (std::size_t i = 0; i < out.size(); i += manifest.entries_of_recording(i))
    recordings.push_back(i);
  std::atomic<std::size_t> next{0};
  constexpr std::size_t kAtOnce = 256;
  on_threads(workers, [&] {
    for (std::size_t from = 0; (from = next.fetch_add(kAtOnce)) < recordings.size();)
      for (std::size_t r = from; r < std::min(from + kAtOnce, recordings.size()); ++r) {
        const std::size_t end = r + 1 < recordings.size() ? recordings[r + 1] : out.size();
        const auto first = out.begin() + static_cast<std::ptrdiff_t>(recordings[r]);
        std::fill(first, out.begin() + static_cast<std::ptrdiff_t>(end),
                  stamp_of(manifest.path(recordings[r])));
      }
  });
  return out;
}

// Divides the corpus into parts; the utterances of a recording stay together.
std::vector<JobPart> cut(const Manifest& manifest, const std::vector<FileStamp>& stamps,
                         std::uint64_t part_bytes) {
  std::vector<JobPart> out;
  for (std::size_t i = 0; i < manifest.size();) {
    const std::size_t end = i + manifest.entries_of_recording(i);
    if (out.empty() || out.back().audio_bytes >= part_bytes) {
      out.emplace_back();
      out.back().first = i;
    }
    out.back().end = end;
    out.back().audio_bytes += static_cast<std::uint64_t>(std::max<std::int64_t>(0, stamps[i].size));
    i = end;
  }
  return out;
}

// Whether the folder has files that an interrupted plan would not have left: it leaves some of the
// job's folders, empty, and files without a job.json.
bool has_other_files(const std::string& folder) {
  std::error_code unread;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, unread)) {
    const std::string name = entry.path().filename();
    const bool is_file =
        name == kJobPipeline || name == kJobManifest || name.starts_with("job.json.");
    const bool is_folder = std::ranges::count(kJobFolders, name) > 0 &&
                           entry.is_directory(unread) && fs::is_empty(entry.path(), unread);
    if (!is_file && !is_folder) return true;
  }
  return false;
}

void make_folders(const Job& job) {
  if (has_name(job.in("job.json")))
    throw RunError(job.folder +
                   ": there is a job already; remove the folder, or plan into another");
  if (has_other_files(job.folder))
    throw RunError(job.folder +
                   ": this folder has something in it; a job needs a new or an empty one");
  for (const char* name : kJobFolders) {
    std::error_code error;
    fs::create_directories(job.in(name), error);
    if (error) throw RunError(fmt::format("{}: cannot be made: {}", job.in(name), error.message()));
  }
}

// Puts what the planned configuration keeps of files that options name in place of their paths, so
// that workers need none of these files.
void keep_numbers(const Value& planned, Value& stored) {
  const Value* of_plan = planned.find("graph");
  Value* graph = stored.find("graph");
  if (of_plan == nullptr || graph == nullptr) return;
  // A model's file may stand for several nodes.
  for (const Value::Entry& node : graph->entries())
    if (const Value* preset = node.value.find("preset"); preset && is_model_file(*preset)) {
      *graph = *of_plan;
      return;
    }
  for (Value::Entry& node : graph->entries())
    for (Value::Entry& option : node.value.entries())
      if (const Value* as_planned = of_plan->find(node.key))
        if (const Value* whole = as_planned->find(option.key);
            whole != nullptr && whole->is_map() && option.value.is_scalar() &&
            whole->find("numbers") != nullptr)
          option.value = *whole;
}

// Lists the corpus of a pipeline and writes the job into `folder`, in parts of about `part_bytes`
// of audio files, without dividing recordings. `warn` gets the warnings about pipeline and corpus.
// Throws ConfigError, and RunError when the corpus cannot be listed, the pipeline cannot be a job,
// or there is a job already.
Job plan_job(const std::string& pipeline, const LoadOptions& options, const std::string& folder,
             std::uint64_t part_bytes, const std::function<void(const std::string&)>& warn) {
  Value filled_in;
  LoadOptions loading = options;
  loading.filled_in = &filled_in;
  Plan plan = load_plan(pipeline, loading);
  std::vector<Secret> secrets;
  Value stored = stored_settings(filled_in, secrets);
  keep_numbers(plan.settings.config, stored);
  // Workers need the plug-ins, whichever way they were given.
  if (const Value* used = plan.settings.config.find(kPluginsKey)) stored.set(kPluginsKey, *used);
  Job job;
  job.folder = fs::absolute(folder).lexically_normal().string();
  job.working_folder = fs::current_path().string();
  job.sink = only_sink(plan).name;
  job.config = to_json(plan.settings.config);
  const int workers = plan.workers;
  const auto survey = std::make_shared<CorpusSurvey>();
  set_task(plan.services, {.survey = survey});
  Runner runner(std::move(plan));
  const RunReport report = runner.run();
  if (report.ending == Ending::failed) throw RunError(report.error);
  for (const std::string& warning : report.warnings) warn(warning);
  if (!survey->is_listed)
    throw RunError(fmt::format("{}: makes its recordings itself; a job takes those of a file_list",
                               runner.plan().nodes.front().name));
  const auto& source = dynamic_cast<const ManifestSource&>(*runner.plan().nodes.front().stage);
  const Manifest& manifest = source.manifest();
  job.row_facts = row_sink(only_sink(runner.plan()))->row_facts();
  job.remarks = survey->remarks;
  const std::vector<FileStamp> stamps = stamps_of(manifest, workers);
  job.parts = cut(manifest, stamps, part_bytes);

  make_folders(job);
  write_file(job.in(kJobPipeline), yaml_text(stored));
  std::vector<ManifestRange> ranges(job.parts.begin(), job.parts.end());
  write_manifest(job.in(kJobManifest), manifest, stamps, ranges);
  for (std::size_t i = 0; i < ranges.size(); ++i)
    static_cast<ManifestRange&>(job.parts[i]) = ranges[i];
  // Every run of the job must load exactly the plan that is stored.
  LoadOptions again;
  again.workers = options.workers;
  for (const Secret& secret : secrets) again.vars.push_back({secret.variable, secret.value});
  if (to_json(load_plan(job.in(kJobPipeline), again).settings.config) != job.config)
    throw std::logic_error("a pipeline that reads otherwise when it was written");
  job.write();
  return job;
}

struct JobArguments {
  PlanArguments plan;
  std::string folder;
  std::string part = "1GiB";
};

int plan(const JobArguments& arguments) {
  Bytes part;
  const std::string why = OptionType<Bytes>::parse(Value::scalar(arguments.part), part);
  if (!why.empty() || part.count == 0)
    throw UsageError("--part: " +
                     (why.empty() ? "a part has at least a byte; write a size such as 1GiB" : why));
  LoadOptions options = arguments.plan.overrides.load_options();
  options.workers = arguments.plan.workers;
  const Job job =
      plan_job(find_pipeline(arguments.plan.file), options, arguments.folder, part.count,
               [](const std::string& warning) { say(stderr, "warning: {}\n", warning); });
  say(stdout,
      "{}: {}, {}, in {}; `melflow work {}` makes them, on any machine that has this folder\n",
      job.folder, plural(job.files(), "file"), bytes_text(static_cast<double>(job.audio_bytes())),
      plural(job.parts.size(), "part"), job.folder);
  return kDone;
}

}  // namespace

Action add_plan(CLI::App& verb) {
  auto arguments = std::make_shared<JobArguments>();
  arguments->plan.add_to(verb);
  verb.add_option("--part", arguments->part, "approximate size of a part, in bytes of recordings")
      ->type_name("SIZE")
      ->capture_default_str();
  verb.add_option("-o,--output", arguments->folder, "the folder of the job; it is created")
      ->type_name("JOB")
      ->required();
  verb.footer(
      "The corpus is listed once; every later step uses that list. docs/clusters.md has whole "
      "commands for\n"
      "several machines, Slurm and Kubernetes.\n"
      "\n"
      "Example:\n"
      "  melflow plan speech_16k_80mel --var DATA=clips --var OUT=features.h5 --part 4GiB -o job\n"
      "  melflow work job     # once on each machine\n"
      "  melflow merge job");
  return [arguments] { return plan(*arguments); };
}

}  // namespace melflow
