#include "stages/manifest.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <limits>
#include <numeric>
#include <system_error>
#include <tuple>
#include <type_traits>

#include <fmt/format.h>

#include "pipeline/stage/stage.h"
#include "stages/permutation.h"

namespace melflow {

std::string whole_root(const std::string& root) {
  if (root.starts_with(kPythonScheme)) return root + '/';
  std::error_code ignored;
  const std::filesystem::path given = root.empty() ? "." : root;
  std::string out =
      std::filesystem::weakly_canonical(std::filesystem::absolute(given), ignored).string();
  if (!out.ends_with('/')) out += '/';
  return out;
}

std::uint32_t Manifest::add_folder(std::string_view folder, std::size_t source) {
  const bool is_new = folders_.empty() || folders_.back() != folder ||
                      (!sources_.empty() && source_of_folder_.back() != source);
  if (is_new) folders_.emplace_back(folder);
  if (is_new && !sources_.empty()) source_of_folder_.push_back(static_cast<std::uint16_t>(source));
  return static_cast<std::uint32_t>(folders_.size() - 1);
}

void Manifest::add(std::uint32_t folder, std::string_view name) {
  if (has_spans() && size() > 0 && text_.at(names_.back()) == name) {
    names_.push_back(names_.back());
  } else {
    names_.push_back(text_.add(name));
  }
  folder_of_.push_back(folder);
  labels_.push_back(label_sets_.empty() ? -1 : 0);
  splits_.push_back(-1);
  if (has_spans()) spans_.emplace_back();
  targets_.resize(targets_.size() + target_names_.size(), std::numeric_limits<float>::quiet_NaN());
  texts_.resize(texts_.size() + text_names_.size(), 0);
}

void Manifest::order_texts(const std::vector<std::string>& names) {
  const auto place = [&](std::size_t t) {
    return std::find(names.begin(), names.end(), text_names_[t]) - names.begin();
  };
  std::vector<std::size_t> from(text_names_.size());
  std::iota(from.begin(), from.end(), std::size_t{0});
  std::stable_sort(from.begin(), from.end(), [&](auto a, auto b) { return place(a) < place(b); });
  if (std::is_sorted(from.begin(), from.end())) return;
  const auto put = [&from](auto* row) {
    std::vector<std::remove_pointer_t<decltype(row)>> before(row, row + from.size());
    for (std::size_t t = 0; t < from.size(); ++t) row[t] = std::move(before[from[t]]);
  };
  put(text_names_.data());
  for (std::size_t i = 0; i < texts_.size(); i += from.size()) put(texts_.data() + i);
}

// The text is often that of the file before, such as its speaker, and then stored only once.
void Manifest::set_text(std::size_t i, std::size_t which, std::string_view text) {
  std::uint64_t& at = texts_[i * text_names_.size() + which];
  if (text.empty()) {
    at = 0;
  } else if (i > 0 && this->text(i - 1, which) == text) {
    at = texts_[(i - 1) * text_names_.size() + which];
  } else {
    at = text_.add(text);
  }
}

std::int32_t Manifest::Names::number(std::string_view name) {
  const std::size_t hash = std::hash<std::string_view>()(name);
  const auto [first, last] = numbers.equal_range(hash);
  for (auto it = first; it != last; ++it)
    if (list[static_cast<std::size_t>(it->second)] == name) return it->second;
  list.emplace_back(name);
  return numbers.emplace(hash, static_cast<std::int32_t>(list.size() - 1))->second;
}

void Manifest::set_names(const std::vector<std::string>& labels,
                         const std::vector<std::string>& splits) {
  for (const std::string& label : labels) label_names_.number(label);
  for (const std::string& split : splits) split_names_.number(split);
}

void Manifest::set_label(std::size_t i, std::string_view label) {
  if (has_label_sets()) return set_labels(i, {&label, 1});
  labels_[i] = label_names_.number(label);
}

void Manifest::set_labels(std::size_t i, std::span<const std::string_view> labels) {
  const auto number = [this](std::vector<std::int32_t> set) {
    const auto [it, is_new] =
        set_of_.try_emplace(std::move(set), static_cast<std::int32_t>(label_sets_.size()));
    if (is_new) label_sets_.push_back(it->first);
    return it->second;
  };
  if (label_sets_.empty()) {
    number({});
    for (std::int32_t& l : labels_) l = l < 0 ? 0 : number({l});
  }
  std::vector<std::int32_t> set;
  for (const std::string_view l : labels) set.push_back(label_names_.number(l));
  std::sort(set.begin(), set.end());
  set.erase(std::unique(set.begin(), set.end()), set.end());
  labels_[i] = number(std::move(set));
}

std::int32_t Manifest::label(std::size_t i) const {
  if (!has_label_sets()) return labels_[i];
  const std::span<const std::int32_t> set = labels(i);
  return set.size() == 1 ? set.front() : -1;
}

std::span<const std::int32_t> Manifest::labels(std::size_t i) const {
  if (has_label_sets()) return label_sets_[static_cast<std::size_t>(labels_[i])];
  return {&labels_[i], labels_[i] < 0 ? std::size_t{0} : std::size_t{1}};
}

void Manifest::set_target_names(std::vector<std::string> names) {
  target_names_ = std::move(names);
  targets_.assign(size() * target_names_.size(), std::numeric_limits<float>::quiet_NaN());
}

void Manifest::set_target(std::size_t i, std::size_t target, float value) {
  targets_[i * target_names_.size() + target] = value;
}

bool Manifest::set_split(std::size_t i, std::string_view split) {
  const std::int32_t number = split_names_.number(split);
  if (number >= kMostSplits) return false;
  splits_[i] = static_cast<std::int8_t>(number);
  return true;
}

void Manifest::order_by_split(const std::vector<std::string>& first) {
  std::vector<std::string>& names = split_names_.list;
  std::vector<std::string> sorted;
  for (const std::string& n : first)
    if (std::find(names.begin(), names.end(), n) != names.end()) sorted.push_back(n);
  for (const std::string& n : names)
    if (std::find(sorted.begin(), sorted.end(), n) == sorted.end()) sorted.push_back(n);
  for (std::int8_t& s : splits_)
    if (s >= 0)
      s = static_cast<std::int8_t>(
          std::find(sorted.begin(), sorted.end(), names[static_cast<std::size_t>(s)]) -
          sorted.begin());
  names = std::move(sorted);
  split_names_.numbers.clear();

  std::vector<std::size_t> order(size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto rank = [this](std::size_t i) { return static_cast<std::uint8_t>(splits_[i]); };
  const auto by_split = [&](std::size_t a, std::size_t b) { return rank(a) < rank(b); };
  if (std::is_sorted(order.begin(), order.end(), by_split)) return;
  std::stable_sort(order.begin(), order.end(), by_split);
  reorder(order);
}

void Manifest::set_declared(std::size_t i, const DeclaredAudio& audio) {
  if (declared_.size() <= i) declared_.resize(i + 1);
  declared_[i] = audio;
}

void Manifest::reorder(const std::vector<std::size_t>& order) {
  const auto put = [&order](auto& values, std::size_t width) {
    std::remove_reference_t<decltype(values)> out;
    out.reserve(values.size());
    for (const std::size_t i : order)
      for (std::size_t c = 0; c < width; ++c) out.push_back(values[i * width + c]);
    values = std::move(out);
  };
  put(names_, 1);
  put(folder_of_, 1);
  put(labels_, 1);
  put(splits_, 1);
  if (has_spans()) put(spans_, 1);
  put(targets_, target_names_.size());
  put(texts_, text_names_.size());
  if (!declared_.empty()) {
    declared_.resize(order.size());
    put(declared_, 1);
  }
  if (problems_.empty()) return;
  std::map<std::size_t, std::string> problems;
  for (std::size_t i = 0; i < order.size(); ++i)
    if (const auto it = problems_.find(order[i]); it != problems_.end())
      problems.emplace(i, std::move(it->second));
  problems_ = std::move(problems);
}

std::vector<Manifest::SplitRange> Manifest::split_ranges() const {
  std::vector<SplitRange> out;
  for (std::size_t i = 0; i < size(); ++i) {
    if (out.empty() || out.back().split != splits_[i]) out.push_back({splits_[i], i, i});
    ++out.back().last;
  }
  return out;
}

void Manifest::close() {
  std::vector<std::string>& names = label_names_.list;
  std::vector<std::int32_t> order(names.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
    return names[static_cast<std::size_t>(a)] < names[static_cast<std::size_t>(b)];
  });
  std::vector<std::int32_t> new_number(order.size());
  std::vector<std::string> sorted;
  for (std::size_t i = 0; i < order.size(); ++i) {
    new_number[static_cast<std::size_t>(order[i])] = static_cast<std::int32_t>(i);
    sorted.push_back(std::move(names[static_cast<std::size_t>(order[i])]));
  }
  names = std::move(sorted);
  label_names_.numbers.clear();
  split_names_.numbers.clear();
  const auto renumber = [&new_number](std::vector<std::int32_t>& labels) {
    for (std::int32_t& l : labels)
      if (l >= 0) l = new_number[static_cast<std::size_t>(l)];
  };
  for (std::vector<std::int32_t>& set : label_sets_) {
    renumber(set);
    std::sort(set.begin(), set.end());
  }
  if (label_sets_.empty()) renumber(labels_);
  set_of_.clear();
  folders_.shrink_to_fit();
  text_.shrink_to_fit();
  names_.shrink_to_fit();
  folder_of_.shrink_to_fit();
  labels_.shrink_to_fit();
  splits_.shrink_to_fit();
  targets_.shrink_to_fit();
  texts_.shrink_to_fit();
  spans_.shrink_to_fit();
}

std::string Manifest::relative(std::size_t i) const {
  std::string out;
  out.reserve(folder(i).size() + file_name(i).size());
  out.append(folder(i)).append(file_name(i));
  return out;
}

std::string Manifest::recorded_path(std::size_t i) const {
  return sources_.empty() ? relative(i) : sources_[source_of(i)].name + "/" + relative(i);
}

std::string Manifest::name(std::size_t i) const { return with_span(recorded_path(i), i); }

std::string Manifest::name_in_source(std::size_t i) const { return with_span(relative(i), i); }

std::string Manifest::with_span(std::string path, std::size_t i) const {
  if (!has_spans()) return path;
  const Span& span = spans_[i];
  const char* unit = *span_unit_ == SpanUnit::seconds ? "t" : "samples";
  return span.has_end() ? fmt::format("{}#{}={},{}", path, unit, span.start, span.end)
                        : fmt::format("{}#{}={}", path, unit, span.start);
}

bool Manifest::is_same_recording(std::size_t a, std::size_t b) const {
  return file_name(a) == file_name(b) && folder(a) == folder(b) && source_of(a) == source_of(b);
}

std::size_t Manifest::entries_of_recording(std::size_t i) const {
  std::size_t end = i + 1;
  while (end < size() && follows_in_recording(end)) ++end;
  return end - i;
}

bool Manifest::follows_in_recording(std::size_t i) const {
  return has_spans() && i > 0 && is_same_recording(i, i - 1) && splits_[i] == splits_[i - 1] &&
         problem(i).empty() && problem(i - 1).empty() && spans_[i].start >= spans_[i - 1].start &&
         spans_[i - 1].end - spans_[i].start <= most_overlap();
}

std::size_t Manifest::recordings() const {
  if (!has_spans()) return size();
  std::size_t count = 0;
  for (std::size_t i = 0; i < size(); i += entries_of_recording(i)) ++count;
  return count;
}

void Manifest::order_by_recording() {
  std::unordered_map<std::string, std::size_t> numbers;  // of recordings, in order of appearance
  std::vector<std::size_t> recording(size()), pass(size()), order(size());
  for (std::size_t i = 0; i < size(); ++i)
    recording[i] = numbers.try_emplace(relative(i), numbers.size()).first->second;
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto place = [&](std::size_t i) {
    return std::tuple(recording[i], pass[i], spans_[i].start, spans_[i].end);
  };
  const auto before = [&](std::size_t a, std::size_t b) { return place(a) < place(b); };
  std::stable_sort(order.begin(), order.end(), before);
  std::vector<double> ends;  // of the last utterance in each pass over the present recording
  for (std::size_t n = 0; n < order.size(); ++n) {
    const std::size_t i = order[n];
    if (n == 0 || recording[order[n - 1]] != recording[i]) ends.clear();
    const auto free = std::find_if(ends.begin(), ends.end(), [&](double end) {
      return end - spans_[i].start <= most_overlap();
    });
    pass[i] = static_cast<std::size_t>(free - ends.begin());
    if (free == ends.end()) ends.push_back(0);
    ends[pass[i]] = spans_[i].end;
  }
  std::stable_sort(order.begin(), order.end(), before);
  if (!std::is_sorted(order.begin(), order.end())) reorder(order);
}

// Utterances that are cut out of a recording in one reading stay together.
void Manifest::shuffle(std::uint64_t seed) {
  std::vector<std::size_t> firsts;
  for (std::size_t i = 0; i < size(); i += entries_of_recording(i)) firsts.push_back(i);
  const Permutation of(firsts.size(), seed);
  std::vector<std::size_t> order;
  order.reserve(size());
  for (std::size_t k = 0; k < firsts.size(); ++k) {
    const std::size_t first = firsts[of(k)];
    for (std::size_t i = 0; i < entries_of_recording(first); ++i) order.push_back(first + i);
  }
  reorder(order);
  listed_.assign(order.begin(), order.end());
}

std::string Manifest::path(std::size_t i) const {
  const std::string_view folder = this->folder(i), name = file_name(i);
  const std::string& root = sources_.empty() ? root_ : sources_[source_of(i)].root;
  std::string out;
  out.reserve(root.size() + 1 + folder.size() + name.size());
  const bool is_absolute = folder.empty() ? name.starts_with('/') : folder.starts_with('/');
  if (!root.empty() && !is_absolute) {
    out.append(root);
    if (!root.ends_with('/')) out.push_back('/');
  }
  out.append(folder).append(name);
  return out;
}

std::size_t Manifest::memory_bytes() const {
  std::size_t n = text_.capacity() + names_.capacity() * 8 + folder_of_.capacity() * 4 +
                  labels_.capacity() * 4 + splits_.capacity() + targets_.capacity() * 4 +
                  texts_.capacity() * 8 + spans_.capacity() * sizeof(Span) +
                  declared_.capacity() * sizeof(DeclaredAudio);
  // Includes the copies of names in an output's index while that is written.
  for (const std::string& name : label_names_.list) n += sizeof(std::string) + 3 * name.capacity();
  for (const auto& set : label_sets_) n += sizeof(std::vector<std::int32_t>) + set.capacity() * 4;
  n += folders_.capacity() * sizeof(std::string) + source_of_folder_.capacity() * 2;
  for (const std::string& f : folders_)
    if (f.capacity() >= sizeof(std::string) / 2) n += f.capacity() + 16;  // else kept in the string
  return n;
}

ManifestSource* manifest_source(const RunContext& run) {
  return dynamic_cast<ManifestSource*>(&run.source);
}

}  // namespace melflow
