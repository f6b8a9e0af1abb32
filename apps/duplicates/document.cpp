#include "apps/duplicates/document.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "apps/csv_cell.h"
#include "apps/report/format.h"
#include "pipeline/base/text.h"
#include "pipeline/base/version.h"
#include "stages/corpus/group_table.h"

namespace melflow {
namespace {

using Json = nlohmann::ordered_json;

const std::string& path_of(const Duplicates& found, std::size_t recording) {
  return found.recordings[recording].entry->path;
}

Json in_milliseconds(double seconds) { return std::stod(fmt::format("{:.3f}", seconds)); }

Json paths_of(const std::vector<const FeatureFile::Entry*>& entries) {
  Json out = Json::array();
  for (const FeatureFile::Entry* e : entries) out.push_back(e->path);
  return out;
}

// "not compared: 3 failed in the run (a.wav, ...), 1 skipped there (b.wav)" as a line, or "".
std::string not_compared(const Duplicates& found) {
  std::vector<std::string> parts;
  const auto add = [&](const std::vector<const FeatureFile::Entry*>& entries, const char* what) {
    if (!entries.empty())
      parts.push_back(fmt::format("{} {} ({}{})", count_text(entries.size()), what,
                                  one_line(excerpt(entries.front()->path)),
                                  entries.size() > 1 ? ", ..." : ""));
  };
  add(found.failed, "failed in the run");
  add(found.skipped, "skipped there");
  add(found.silent, "with too little sound that changes");
  if (parts.empty()) return "";
  return fmt::format("not compared: {}\n", fmt::join(parts, ", "));
}

}  // namespace

Json pair_json(const Duplicates& found, const LikePair& p) {
  const auto one = [&](std::size_t recording, double begin) {
    const ListedRecording& r = found.recordings[recording];
    return Json{{"path", r.entry->path},
                {"output", r.output->path()},
                {"split", r.split()},
                {"begin", in_milliseconds(begin)},
                {"duration", in_milliseconds(r.entry->duration)}};
  };
  return {{"kind", to_text(p.likeness)},
          {"seconds", in_milliseconds(p.seconds)},
          {"score", in_milliseconds(p.score)},
          {"joined", p.is_joined},
          {"across", p.is_across},
          {"a", one(p.a, p.begin_a)},
          {"b", one(p.b, p.begin_b)}};
}

std::vector<const LikePair*> worst_pairs(const Duplicates& found, std::size_t most) {
  std::vector<const LikePair*> out;
  for (const LikePair& p : found.pairs) out.push_back(&p);
  std::stable_sort(out.begin(), out.end(), [](const LikePair* x, const LikePair* y) {
    const auto rank = [](const LikePair* p) { return 2 * p->is_across + p->is_joined; };
    return std::pair(rank(x), x->seconds) > std::pair(rank(y), y->seconds);
  });
  out.resize(std::min(most, out.size()));
  return out;
}

Json duplicates_json(const Duplicates& found) {
  Json out{{"melflow_version", kVersion},
           {"recordings", found.compared},
           {"against", found.recordings.size() - found.compared},
           {"grouped", found.grouped},
           {"across", found.across},
           {"not_compared",
            {{"failed", paths_of(found.failed)},
             {"skipped", paths_of(found.skipped)},
             {"too_little_sound", paths_of(found.silent)}}},
           {"groups", Json::array()},
           {"pairs", Json::array()}};
  std::unordered_map<std::size_t, std::size_t> place;
  for (std::size_t r = 0; r < found.recordings.size(); ++r) {
    const std::size_t group = found.recordings[r].group;
    if (found.recordings[r].in_group < 2) continue;
    const auto [at, is_new] = place.emplace(group, out["groups"].size());
    if (is_new)
      out["groups"].push_back({{"name", path_of(found, group)}, {"paths", Json::array()}});
    out["groups"][at->second]["paths"].push_back(path_of(found, r));
  }
  for (const LikePair& p : found.pairs) out["pairs"].push_back(pair_json(found, p));
  return out;
}

std::string duplicates_text(const Duplicates& found) {
  std::string out = fmt::format(
      "{} of {} sound like another one, in {}; {} in groups across splits{}\n",
      count_text(found.grouped), plural(found.recordings.size(), "recording"),
      plural(found.groups, "group"), count_text(found.across),
      found.compared < found.recordings.size() ? " or with what they are compared with" : "");
  out += not_compared(found);
  std::vector<std::vector<std::string>> rows{
      {"kind", "length", "score", "joined", "across", "at", "in", "at", "in"}};
  const auto where = [&](std::size_t r) {
    const std::string split = found.recordings[r].split();
    return one_line(excerpt(path_of(found, r))) + (split.empty() ? "" : " (" + split + ")");
  };
  for (const LikePair* p : worst_pairs(found, kShownPairs)) {
    rows.push_back({to_text(p->likeness), seconds_text(p->seconds), fmt::format("{:.2f}", p->score),
                    p->is_joined ? "yes" : "no", p->is_across ? "yes" : "",
                    fmt::format("{:.2f} s", p->begin_a), where(p->a),
                    fmt::format("{:.2f} s", p->begin_b), where(p->b)});
  }
  if (!found.pairs.empty()) out += '\n' + aligned(rows, 1);
  if (found.pairs.size() > kShownPairs)
    out += fmt::format("and {}; --json has all\n",
                       plural(found.pairs.size() - kShownPairs, "more pair"));
  return out;
}

std::string across_text(const ListedRecording& recording) {
  if (!recording.is_across) return "";
  const std::string split = recording.split();
  return split.empty() ? "against" : split;
}

std::string duplicates_csv(const Duplicates& found) {
  std::vector<std::string> names;
  std::string out = kGroupTable;
  if (const auto first = std::find_if(found.recordings.begin(), found.recordings.end(),
                                      [](const ListedRecording& r) { return !r.is_old; });
      first != found.recordings.end())
    names = first->output->columns();
  // Those of an earlier table of this kind would be there twice.
  std::erase_if(names, [](const std::string& name) {
    return fmt::format(",{},", kGroupTable).find(',' + name + ',') != std::string::npos;
  });
  for (const std::string& name : names) out += ',' + csv_cell(name);
  out += '\n';
  for (const ListedRecording& one : found.recordings) {
    if (one.is_old) continue;
    out += fmt::format("{},{},{},{},{},{}", csv_cell(one.entry->path),
                       csv_cell(path_of(found, one.group)), one.in_group, csv_cell(one.split()),
                       csv_cell(across_text(one)),
                       csv_cell(one.output->data().text_of(*one.entry, "label")));
    const std::vector<std::string>& there = one.output->columns();
    for (const std::string& name : names) {
      const auto at = std::find(there.begin(), there.end(), name);
      out += ',';
      if (at != there.end())
        out += csv_cell(one.entry->texts[static_cast<std::size_t>(at - there.begin())]);
    }
    out += '\n';
  }
  return out;
}

}  // namespace melflow
