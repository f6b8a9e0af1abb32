#include "apps/job/job.h"

#include <unistd.h>
#include <xxhash.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include <fmt/format.h>

#include "apps/job/checked_json.h"
#include "config/document.h"
#include "config/load.h"
#include "config/yaml_text.h"
#include "pipeline/base/input_file.h"
#include "pipeline/base/problem.h"
#include "pipeline/base/secrets.h"
#include "pipeline/base/text.h"
#include "stages/corpus/text_lines.h"
#include "stages/files/json_bytes.h"

namespace melflow {
namespace {

using Json = nlohmann::ordered_json;

RunError was_changed(const std::string& path) {
  return RunError(path + ": has changed since it was planned; put it back, or plan again");
}

Json json_of_bytes(const std::string& text) {
  return is_utf8(text) ? Json(text) : Json{{"hex", hex_of(text)}};
}

std::string hash_text(const std::string& bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

}  // namespace

std::uint64_t Job::audio_bytes() const {
  std::uint64_t out = 0;
  for (const JobPart& part : parts) out += part.audio_bytes;
  return out;
}

std::string Job::name(std::size_t part) const {
  const std::size_t digits = std::max<std::size_t>(4, std::to_string(parts.size() - 1).size());
  return fmt::format("{:0{}}", part, digits);
}

void Job::write() {
  Json json{{"working_folder", json_of_bytes(working_folder)},
            {"sink", sink},
            {"pipeline", hash_text(read_configuration(in(kJobPipeline)))},
            {"manifest_bytes", std::filesystem::file_size(in(kJobManifest))},
            {"row_facts", row_facts},
            {"config", json_of_bytes(config)},
            {"remarks", Json::array()},
            {"parts", Json::array()}};
  for (const std::string& remark : remarks) json["remarks"].push_back(json_of_bytes(remark));
  for (const JobPart& p : parts)
    json["parts"].push_back({{"first", p.first},
                             {"end", p.end},
                             {"audio_bytes", p.audio_bytes},
                             {"at", p.at},
                             {"bytes", p.bytes},
                             {"hash", fmt::format("{:016x}", p.hash)}});
  id = hash_text(json.dump());
  json["id"] = id;
  write_checked(in("job.json"), std::move(json), "plan");
}

Job Job::read(const std::string& folder) {
  Job job;
  job.folder = std::filesystem::absolute(folder).lexically_normal().string();
  while (job.folder.size() > 1 && job.folder.ends_with('/')) job.folder.pop_back();
  std::error_code unknown;
  if (!std::filesystem::exists(folder, unknown) && !unknown)
    throw RunError(
        fmt::format("{}: there is no such folder{}; `melflow plan PIPELINE --part 4GiB -o "
                    "{}` makes the folder of a job",
                    folder, near_path(folder), folder));
  if (!std::filesystem::is_directory(folder, unknown))
    throw RunError(folder +
                   ": this is a file; name the folder of a job, as `melflow plan` made it");
  for (const char* own : kJobFolders)
    if (std::filesystem::is_symlink(job.in(own), unknown))
      throw RunError(job.in(own) +
                     ": is a link, and workers would write to where it leads; put a folder there");
  const std::string path = job.in("job.json");
  const auto json = read_checked(path);
  if (!json)
    throw RunError(
        fmt::format("{}: there is no job.json in it, so it is not the folder of a job, or `melflow "
                    "plan` was not finished; `melflow plan PIPELINE --part 4GiB -o {}` makes one",
                    folder, folder));
  from_checked(path, [&] {
    job.id = json->at("id");
    job.working_folder = bytes_of(json->at("working_folder"));
    job.sink = json->at("sink");
    job.row_facts = json->at("row_facts").get<RunJournal::Facts>();
    job.config = bytes_of(json->at("config"));
    for (const Json& remark : json->at("remarks")) job.remarks.push_back(bytes_of(remark));
    for (const Json& p : json->at("parts")) {
      JobPart part;
      part.first = p.at("first");
      part.end = p.at("end");
      part.audio_bytes = p.at("audio_bytes");
      part.at = p.at("at");
      part.bytes = p.at("bytes");
      part.hash = std::stoull(p.at("hash").get<std::string>(), nullptr, 16);
      job.parts.push_back(part);
    }
    if (hash_text(read_configuration(job.in(kJobPipeline))) != json->at("pipeline"))
      throw was_changed(job.in(kJobPipeline));
    std::error_code error;
    if (std::filesystem::file_size(job.in(kJobManifest), error) != json->at("manifest_bytes"))
      throw was_changed(job.in(kJobManifest));
  });
  return job;
}

Plan Job::load(const LoadOptions& given, const std::string& output) const {
  LoadOptions options = given;
  if (!output.empty()) options.sets.push_back({sink + ".path", yaml_quoted(output)});
  Plan plan = load_plan(in(kJobPipeline), options);
  // Refuses another sink, which could write to any place that the job's author chose.
  for (const PlanNode& node : plan.nodes)
    if (node.info->traits.kind == StageKind::sink && node.name != sink)
      throw RunError(
          fmt::format("{}: its pipeline has another output than {}, {}; the pipeline of a "
                      "job has one, so plan again",
                      folder, excerpt(sink), node.name));
  // The configuration as it was planned, perhaps by an earlier version. With a path that is not
  // UTF-8 it cannot be read as YAML, and this version plans it again.
  Value planned = is_utf8(config)  ? read_document(config, "job.json").root
                  : output.empty() ? plan.settings.config
                                   : load(given, "").settings.config;
  if (!output.empty())
    if (Value* graph = planned.find("graph"))
      if (Value* node = graph->find(sink))
        node->set("path", Value::scalar(with_doubled_dollars(output), {}, true));
  plan.settings.config = std::move(planned);
  return plan;
}

void Job::enter_working_folder() const {
  if (::chdir(working_folder.c_str()) != 0)
    throw RunError(
        fmt::format("{}: the folder that the job was planned in is not there: {}; the "
                    "pipeline's relative paths begin there, so mount it at this place",
                    working_folder, std::strerror(errno)));
}

std::optional<PartRecord> PartRecord::read(const Job& job, std::size_t part) {
  const std::string path = job.done_path(part);
  const auto json = read_checked(path);
  if (!json) return std::nullopt;
  PartRecord out;
  from_checked(path, [&] {
    if (json->at("plan") != job.id || json->at("part") != part)
      throw RunError(fmt::format(
          "{}: this is part {} of another plan ({}, this one is {}); remove it and "
          "{}, and `melflow work` makes the part",
          path, json->at("part").dump(), json->at("plan").dump(), job.id, job.part_path(part)));
    out.ok = json->at("ok");
    out.skipped = json->at("skipped");
    out.failed = json->at("failed");
    out.rows = json->at("rows");
    out.bytes = json->at("bytes");
    out.hash = std::stoull(json->at("hash").get<std::string>(), nullptr, 16);
    if (json->contains("sums"))
      out.sums = {json->at("sums").at("frames"), json->at("sums").at("of_values"),
                  json->at("sums").at("of_squares")};
    out.worker = json->at("worker");
    out.seconds = json->at("seconds");
  });
  return out;
}

void PartRecord::write(const Job& job, std::size_t part) const {
  Json json{{"plan", job.id},
            {"part", part},
            {"files", job.parts[part].end - job.parts[part].first},
            {"ok", ok},
            {"skipped", skipped},
            {"failed", failed},
            {"rows", rows},
            {"bytes", bytes},
            {"hash", fmt::format("{:016x}", hash)},
            {"worker", worker},
            {"seconds", seconds}};
  if (sums)
    json["sums"] = {
        {"frames", sums->frames}, {"of_values", sums->sums}, {"of_squares", sums->squares}};
  write_checked(job.done_path(part), std::move(json), worker);
}

}  // namespace melflow
