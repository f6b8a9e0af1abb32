#include "stages/output/left_under_way.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "pipeline/base/problem.h"
#include "pipeline/base/text.h"
#include "stages/manifest.h"
#include "stages/run_task.h"

namespace melflow {
namespace {

struct LeftRecording {
  UnderWay::Entry entry;
  std::string path;
  std::size_t last = 0;  // the last of its consecutive records
};

// Returns the entries' recordings, in the order of the files.
std::vector<LeftRecording> find(const RunContext& run, const Manifest& files,
                                const UnderWay::Entries& entries) {
  std::map<std::uint64_t, UnderWay::Entry> open;
  for (const UnderWay::Entry& e : entries) open.emplace(e.file, e);
  std::vector<LeftRecording> out;
  for (std::size_t i = 0; i < files.size() && !open.empty(); ++i) {
    if (run.ledger.outcome(i) != Outcome::open) continue;
    std::string path = files.path(i);
    const auto it = open.find(UnderWay::key(path));
    if (it == open.end()) continue;
    std::size_t last = i;
    while (last + 1 < files.size() && files.path(last + 1) == path) ++last;
    out.push_back({it->second, std::move(path), last});
    open.erase(it);
  }
  return out;
}

std::string names_of(const std::vector<LeftRecording>& found, bool are_suspects) {
  constexpr std::size_t kNamed = 3;
  std::vector<std::string> names;
  std::size_t count = 0;
  for (const LeftRecording& f : found)
    if ((f.entry.state == UnderWay::State::suspect) == are_suspects && ++count <= kNamed)
      names.push_back(excerpt(f.path));
  if (count > kNamed) names.push_back(fmt::format("{} more", count - kNamed));
  return fmt::format("{}", fmt::join(names, ", "));
}

void tell(const Resume& resume, const std::string& path, const std::vector<LeftRecording>& found) {
  if (!resume.tell) return;
  if (const std::string names = names_of(found, true); !names.empty())
    resume.tell(
        fmt::format("{}: an earlier run ended while these were being decoded: {}. Until they are "
                    "done, files are decoded one at a time; one with which this run ends is "
                    "excluded by the next",
                    path, names));
  if (const std::string names = names_of(found, false); !names.empty())
    resume.tell(fmt::format(
        "{}: twice a run ended while these were being decoded, and they fail: {}", path, names));
}

}  // namespace

UnderWay::Entries left_under_way(const std::string& path) {
  UnderWay::Entries left;
  try {
    const auto journal = RunJournal::open(path);
    for (RunJournal::Record record; journal != nullptr && journal->next(record);)
      if (const auto* entries = std::get_if<UnderWay::Entries>(&record)) left = *entries;
  } catch (const RunError&) {
    return {};
  }
  return UnderWay::judge(left);
}

void note_under_way(RunContext& run, const std::string& path, const UnderWay::Entries& left,
                    Checkpoints& journal) {
  const auto under_way = run.services.find<UnderWay>();
  const ManifestSource* listed = manifest_source(run);
  if (under_way == nullptr || under_way->is_kept() || listed == nullptr) return;
  const Manifest& files = listed->manifest();
  const Resume& resume = task_of(run).resume;
  const std::vector<LeftRecording> found = find(run, files, left);
  tell(resume, path, found);
  UnderWay::Entries known;
  std::map<std::size_t, std::uint64_t> suspects;  // by the last record of each
  for (const LeftRecording& f : found) {
    known.push_back(f.entry);
    if (f.entry.state == UnderWay::State::suspect) suspects.emplace(f.last, f.entry.file);
  }
  LogFile::Mapped memory =
      journal.note_under_way(static_cast<std::size_t>(run.workers) + known.size());
  if (memory.bytes.empty()) return;
  UnderWay::End end;
  if (resume.leave)
    end = [leave = resume.leave, &files](std::uint64_t file, int timeout) {
      std::size_t i = 0;
      while (i < files.size() && UnderWay::key(files.path(i)) != file) ++i;
      leave(
          fmt::format("{}: its decoder has not come back for {} s of processor time (timeout of "
                      "decode), so the run is ended. The same command resumes, and excludes the "
                      "file if that happens again",
                      i < files.size() ? excerpt(files.path(i)) : "a file", timeout));
    };
  under_way->keep_in(std::move(memory.mapping), memory.bytes, known, std::move(end));
  if (suspects.empty()) return;
  run.ledger.subscribe(
      [under_way, suspects = std::move(suspects)](std::size_t index, Outcome outcome) {
        if (outcome == Outcome::not_run) return;
        if (const auto it = suspects.find(index); it != suspects.end()) under_way->pass(it->second);
      });
}

}  // namespace melflow
