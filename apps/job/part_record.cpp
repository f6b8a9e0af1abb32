#include "apps/job/part_record.h"

#include <nlohmann/json.hpp>

#include <fmt/format.h>

#include "apps/job/checked_json.h"
#include "pipeline/base/problem.h"

namespace melflow {

using Json = nlohmann::ordered_json;

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
