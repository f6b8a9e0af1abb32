#include "stages/manifest.h"

#include <algorithm>
#include <numeric>

namespace melflow {

std::uint32_t Manifest::add_folder(std::string_view folder) {
  if (folders_.empty() || folders_.back() != folder) folders_.emplace_back(folder);
  return static_cast<std::uint32_t>(folders_.size() - 1);
}

void Manifest::add(std::uint32_t folder, std::string_view name) {
  names_.push_back(text_.size());
  text_.append(name);
  text_.push_back('\0');
  folder_of_.push_back(folder);
  labels_.push_back(-1);
  splits_.push_back(-1);
}

std::int32_t Manifest::Names::number(std::string_view name) {
  const auto [it, is_new] =
      numbers.try_emplace(std::string(name), static_cast<std::int32_t>(list.size()));
  if (is_new) list.emplace_back(name);
  return it->second;
}

void Manifest::set_label(std::string_view label) { labels_.back() = label_names_.number(label); }

bool Manifest::set_split(std::string_view split) {
  const std::int32_t number = split_names_.number(split);
  if (number >= kMostSplits) return false;
  splits_.back() = static_cast<std::int8_t>(number);
  return true;
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
    sorted.push_back(names[static_cast<std::size_t>(order[i])]);
  }
  names = std::move(sorted);
  label_names_.numbers.clear();
  split_names_.numbers.clear();
  for (std::int32_t& l : labels_)
    if (l >= 0) l = new_number[static_cast<std::size_t>(l)];
  folders_.shrink_to_fit();
  text_.shrink_to_fit();
  names_.shrink_to_fit();
  folder_of_.shrink_to_fit();
  labels_.shrink_to_fit();
  splits_.shrink_to_fit();
}

std::string Manifest::relative(std::size_t i) const {
  return folders_[folder_of_[i]] + (text_.c_str() + names_[i]);
}

std::string Manifest::path(std::size_t i) const {
  std::string below = relative(i);
  if (root_.empty() || below.starts_with('/')) return below;
  return root_ + (root_.ends_with('/') ? "" : "/") + below;
}

std::size_t Manifest::memory_bytes() const {
  std::size_t n = text_.capacity() + names_.capacity() * 8 + folder_of_.capacity() * 4 +
                  labels_.capacity() * 4 + splits_.capacity();
  n += folders_.capacity() * sizeof(std::string);
  for (const std::string& f : folders_)
    if (f.capacity() >= sizeof(std::string) / 2) n += f.capacity() + 16;  // else inside the string
  return n;
}

}  // namespace melflow
