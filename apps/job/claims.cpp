#include "apps/job/claims.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <random>

#include <fmt/format.h>

#include "apps/job/checked_json.h"
#include "pipeline/base/problem.h"
#include "stages/files/own_file.h"
#include "stages/output/run_journal.h"

namespace melflow {
namespace {

using Json = nlohmann::ordered_json;

std::string machine_name() {
  char name[256] = {};
  if (::gethostname(name, sizeof name - 1) != 0) return "unknown";
  return name;
}

std::string new_id() {
  std::string out;
  for (const char c : machine_name().substr(0, 40))
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-') out += c;
  std::random_device chance;
  return fmt::format("{}-{}-{:08x}", out, ::getpid(), chance());
}

// Reads a file; one that is incomplete, because its program was interrupted, counts as missing.
std::optional<Json> read_or_none(const std::string& path) {
  try {
    return read_checked(path);
  } catch (const RunError&) {
    return std::nullopt;
  }
}

// The names of a worker and of its files in work/ and workers/. A job from elsewhere may have any
// text there, which must not become a path.
bool is_name(const std::string& text) {
  return !text.empty() && text.front() != '.' && text.size() <= 200 &&
         std::all_of(text.begin(), text.end(),
                     [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '.'; });
}

// Reads a claim, also one that was left; a claim with names that melflow does not give counts as
// missing.
std::optional<Claims::Claim> claim_in(const std::string& path) {
  const auto json = read_or_none(path);
  if (!json) return std::nullopt;
  const auto text = [&json](const char* key) {
    const auto it = json->find(key);
    return it != json->end() && it->is_string() ? it->get<std::string>() : std::string();
  };
  Claims::Claim out{text("worker"), text("work")};
  return is_name(out.worker) && is_name(out.work) ? std::optional(std::move(out)) : std::nullopt;
}

}  // namespace

WorkerSign::WorkerSign(const Job& job) : folder_(job.in("workers")), id_(new_id()) {
  const std::string path = folder_ + "/" + id_ + ".lock";
  lock_ = UniqueFd(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!lock_) throw RunError(fmt::format("{}: cannot be made: {}", path, std::strerror(errno)));
  (void)lock_file(lock_.get());  // without locks only the heartbeat number is evidence
}

WorkerSign::~WorkerSign() {
  ::unlink((folder_ + "/" + id_ + ".json").c_str());
  ::unlink((folder_ + "/" + id_ + ".lock").c_str());
}

void WorkerSign::give(const std::optional<At>& at) noexcept {
  try {
    Json json{{"number", ++number_}, {"machine", machine_name()}, {"boot", RunJournal::boot_now()}};
    if (at) json["at"] = {{"part", at->part}, {"files", at->files}, {"of_files", at->of_files}};
    write_checked(folder_ + "/" + id_ + ".json", std::move(json), "new");
  } catch (const std::exception&) {
  }
}

std::optional<WorkerSign::Seen> WorkerSign::look(const Job& job, const std::string& id) {
  const auto json = read_or_none(job.in("workers/" + id + ".json"));
  if (!json) return std::nullopt;
  Seen out;
  std::string boot;
  try {
    out.number = json->at("number");
    out.machine = json->at("machine");
    boot = json->at("boot");
    if (json->contains("at"))
      out.at = {json->at("at").at("part"), json->at("at").at("files"),
                json->at("at").at("of_files")};
  } catch (const Json::exception&) {
    return std::nullopt;
  }
  if (boot.empty() || boot != RunJournal::boot_now()) return out;
  const UniqueFd lock(::open(job.in("workers/" + id + ".lock").c_str(),
                             O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  out.is_gone = lock && lock_file(lock.get()) == Lock::held;
  return out;
}

std::optional<Claims::Claim> Claims::read(const Job& job, std::size_t part) {
  return claim_in(job.in("claims/" + job.name(part) + ".json"));
}

Claims::State Claims::state_of(const std::string& worker) {
  const auto seen = WorkerSign::look(job_, worker);
  if (seen && seen->is_gone) return State::has_ended;
  const auto now = std::chrono::steady_clock::now();
  const std::uint64_t number = seen ? seen->number : 0;
  const auto [it, is_new] = watched_.try_emplace(worker, Watched{number, now});
  if (!is_new && it->second.number != number) it->second = {number, now};
  return now - it->second.since >= patience_ ? State::is_silent : State::lives;
}

std::optional<Claims::Taken> Claims::take(std::size_t part) {
  const std::string claim = path(part, ".json"), left = path(part, ".left");
  const std::string aside = job_.in("workers/" + worker_ + ".aside");
  std::string work = job_.name(part) + "." + worker_, silent;
  if (has_name(claim)) {
    const auto before = read(job_, part);
    const State state = state_of(before ? before->worker : fmt::format("?{}", job_.name(part)));
    if (state == State::lives) return std::nullopt;
    if (rename_file(claim, aside, 0) != 0) return std::nullopt;  // another worker was faster
    ::unlink(aside.c_str());
    if (state == State::is_silent && before) silent = before->work;
    if (state == State::has_ended && before) {
      work = before->work;
      for (const char* ending : {".json", ".lock"})
        ::unlink(job_.in("workers/" + before->worker + ending).c_str());
    }
  } else if (rename_file(left, aside, 0) == 0) {
    if (const auto before = claim_in(aside)) work = before->work;
    ::unlink(aside.c_str());
  }
  if (!write_new(claim, {{"worker", worker_}, {"work", work}},
                 job_.in("workers/" + worker_ + ".claim")))
    return std::nullopt;
  return Taken{std::move(work), std::move(silent)};
}

void Claims::forget(std::size_t part) {
  for (const char* ending : {".json", ".left"}) ::unlink(path(part, ending).c_str());
}

void Claims::give_up(std::size_t part) {
  const auto now = read(job_, part);
  if (now && now->worker == worker_) ::unlink(path(part, ".json").c_str());
}

void Claims::leave(std::size_t part, const std::string& work) {
  try {
    const std::string beside = job_.in("workers/" + worker_ + ".left");
    write_checked(beside, {{"worker", worker_}, {"work", work}}, "new");
    (void)rename_file(beside, path(part, ".left"), 0);
  } catch (const RunError&) {  // then the next worker starts the part from its beginning
  }
  give_up(part);
}

}  // namespace melflow
