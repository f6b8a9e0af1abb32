#include "stages/corpus/united_manifest.h"

#include <algorithm>
#include <functional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "pipeline/base/problem.h"
#include "stages/corpus/manifest_remarks.h"

namespace melflow {
namespace {

void add_names(std::vector<std::string>& to, const std::vector<std::string>& names) {
  for (const std::string& name : names)
    if (std::find(to.begin(), to.end(), name) == to.end()) to.push_back(name);
}

// Returns the position of each of `names` in `all`.
std::vector<std::size_t> places_of(const std::vector<std::string>& names,
                                   const std::vector<std::string>& all) {
  std::vector<std::size_t> out;
  out.reserve(names.size());
  for (const std::string& name : names)
    out.push_back(static_cast<std::size_t>(std::find(all.begin(), all.end(), name) - all.begin()));
  return out;
}

void append(Manifest& to, const Manifest& from, std::size_t source, bool has_label_sets) {
  const std::vector<std::size_t> targets = places_of(from.target_names(), to.target_names());
  const std::vector<std::size_t> texts = places_of(from.text_names(), to.text_names());
  std::vector<std::string_view> labels;
  for (std::size_t i = 0; i < from.size(); ++i) {
    const std::size_t at = to.size();
    to.add(to.add_folder(from.folder(i), source), from.file_name(i));
    labels.clear();
    for (const std::int32_t l : from.labels(i))
      labels.emplace_back(from.label_names()[static_cast<std::size_t>(l)]);
    if (has_label_sets)
      to.set_labels(at, labels);
    else if (!labels.empty())
      to.set_label(at, labels.front());
    if (from.split(i) >= 0 && !to.set_split(at, from.split_name(from.split(i))))
      throw RunError(fmt::format(
          "{}: the sources together have more than {} splits, '{}' is one more",
          to.sources()[source].name, Manifest::kMostSplits, from.split_name(from.split(i))));
    for (std::size_t t = 0; t < targets.size(); ++t)
      to.set_target(at, targets[t], from.target(i, t));
    for (std::size_t t = 0; t < texts.size(); ++t) to.set_text(at, texts[t], from.text(i, t));
    if (from.has_spans()) to.set_span(at, from.span(i));
    if (!from.declared(i).is_empty()) to.set_declared(at, from.declared(i));
    if (!from.problem(i).empty()) to.set_problem(at, std::string(from.problem(i)));
  }
}

// Whether a file may be in two sources: one root contains another, or a path is absolute.
bool may_overlap(const Manifest& united, const std::vector<std::string>& roots) {
  for (std::size_t a = 0; a < roots.size(); ++a)
    for (std::size_t b = 0; b < roots.size(); ++b)
      if (a != b && roots[a].starts_with(roots[b])) return true;
  for (std::size_t i = 0; i < united.size(); ++i)
    if ((united.folder(i).empty() ? united.file_name(i) : united.folder(i)).starts_with('/'))
      return true;
  return false;
}

}  // namespace

Manifest unite(const std::vector<std::string>& names, std::vector<Manifest>& manifests) {
  std::vector<CorpusSource> sources;
  std::vector<std::string> splits, targets, texts;
  bool has_label_sets = false, are_all_files = true;
  for (std::size_t k = 0; k < manifests.size(); ++k) {
    const Manifest& m = manifests[k];
    sources.push_back({names[k], m.root()});
    add_names(splits, m.split_names());
    add_names(targets, m.target_names());
    add_names(texts, m.text_names());
    has_label_sets = has_label_sets || m.has_label_sets();
    are_all_files = are_all_files && m.are_all_files();
  }
  Manifest out(std::move(sources));
  out.set_all_files(are_all_files);
  if (!targets.empty()) out.set_target_names(std::move(targets));
  if (!texts.empty()) out.set_text_names(std::move(texts));
  if (manifests.front().has_spans()) out.set_span_unit(manifests.front().span_unit());
  for (std::size_t k = 0; k < manifests.size(); ++k) {
    append(out, manifests[k], k, has_label_sets);
    manifests[k] = Manifest();  // releases its memory
  }
  if (!splits.empty()) out.order_by_split(splits);
  out.close();
  return out;
}

std::string sources_without(const char* option, const std::vector<std::string>& names,
                            const std::vector<Manifest>& manifests,
                            const std::vector<std::string>& (Manifest::*of)() const) {
  std::vector<std::string> with, without;
  for (std::size_t k = 0; k < manifests.size(); ++k)
    ((manifests[k].*of)().empty() ? without : with).push_back(names[k]);
  if (with.empty() || without.empty()) return "";
  return fmt::format("{} {} {}, {} {} none: the files of {} are {}; set {} of {}, too",
                     fmt::join(with, ", "), with.size() == 1 ? "has" : "have", option,
                     fmt::join(without, ", "), without.size() == 1 ? "has" : "have",
                     without.size() == 1 ? "that" : "those",
                     option == std::string_view("labels") ? "without a label" : "in no split",
                     option, fmt::join(without, " and of "));
}

std::string files_of_several_sources(const Manifest& united) {
  std::vector<std::string> roots;
  for (const CorpusSource& source : united.sources()) roots.push_back(whole_root(source.root));
  if (!may_overlap(united, roots)) return "";
  const auto path_of = [&](std::size_t i) {
    const std::string path = united.relative(i);
    return path.starts_with('/') ? path : roots[united.source_of(i)] + path;
  };
  // Compares hashes first: the paths of a million files would take much memory.
  std::vector<std::pair<std::size_t, std::size_t>> hashes;  // hash and index of each file
  hashes.reserve(united.size());
  for (std::size_t i = 0; i < united.size(); ++i)
    hashes.emplace_back(std::hash<std::string>{}(path_of(i)), i);
  std::sort(hashes.begin(), hashes.end());
  std::vector<std::pair<std::size_t, std::size_t>> pairs;
  std::size_t crossing = 0;
  for (std::size_t n = 1; n < hashes.size(); ++n) {
    const std::size_t a = hashes[n - 1].second, b = hashes[n].second;
    if (hashes[n - 1].first != hashes[n].first || united.source_of(a) == united.source_of(b) ||
        path_of(a) != path_of(b))
      continue;
    pairs.emplace_back(b, a);
    if (united.split(a) != united.split(b)) ++crossing;
  }
  if (pairs.empty()) return "";
  std::sort(pairs.begin(), pairs.end());
  const auto [second, first] = pairs.front();
  std::string out =
      fmt::format("{} of {} files are in more than one source, such as {}, which is {}",
                  pairs.size(), united.size(), united.name(second), united.name(first));
  if (crossing > 0) {
    const auto [other, one] = *std::find_if(pairs.begin(), pairs.end(), [&](const auto& pair) {
      return united.split(pair.first) != united.split(pair.second);
    });
    out += fmt::format("; {} in another split: {} is in {}, {} in {}", crossing, united.name(one),
                       split_of(united, one), united.name(other), split_of(united, other));
  }
  return out + ". Each gives rows of its own";
}

std::shared_ptr<const ManifestFields> unite(
    const std::vector<std::shared_ptr<const ManifestFields>>& fields) {
  ManifestFields out;
  for (const auto& of_one : fields) {
    out.has_labels = out.has_labels || of_one->has_labels;
    out.has_splits = out.has_splits || of_one->has_splits;
    add_names(out.columns, of_one->columns);
    add_names(out.targets, of_one->targets);
  }
  return std::make_shared<const ManifestFields>(std::move(out));
}

std::vector<EarlierFile> of_source(const std::vector<EarlierFile>& all, const std::string& name) {
  std::vector<EarlierFile> out;
  const std::string prefix = name + "/";
  for (const auto& [path, split] : all)
    if (path.starts_with(prefix)) out.push_back({path.substr(prefix.size()), split});
  return out;
}

}  // namespace melflow
