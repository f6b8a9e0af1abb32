// The index of a corpus: path, label and split of every file, in the order of the output, in well
// under 128 bytes a file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace melflow {

class Manifest {
 public:
  explicit Manifest(std::string root = "") : root_(std::move(root)) {}

  /// Folder that relative paths are below; "" for the working folder.
  [[nodiscard]] const std::string& root() const { return root_; }
  [[nodiscard]] std::size_t size() const { return names_.size(); }

  /// A folder below the root, "" or ending in '/'; returns its number for add().
  std::uint32_t add_folder(std::string_view folder);
  void add(std::uint32_t folder, std::string_view name);
  static constexpr std::int32_t kMostSplits = 128;
  /// Label and split of the file added last.
  void set_label(std::string_view label);
  /// False when there are kMostSplits others already.
  [[nodiscard]] bool set_split(std::string_view split);
  /// Numbers labels in the order of their names, as bytes; call once, after the last add().
  void close();

  /// As listed: below the root, or absolute.
  [[nodiscard]] std::string relative(std::size_t i) const;
  /// As the system opens it.
  [[nodiscard]] std::string path(std::size_t i) const;
  [[nodiscard]] std::int32_t label(std::size_t i) const { return labels_[i]; }
  [[nodiscard]] int split(std::size_t i) const { return splits_[i]; }
  [[nodiscard]] const std::vector<std::string>& label_names() const { return label_names_.list; }
  [[nodiscard]] const std::vector<std::string>& split_names() const { return split_names_.list; }
  [[nodiscard]] std::size_t memory_bytes() const;

 private:
  std::string root_;
  std::vector<std::string> folders_;
  std::vector<std::uint64_t> names_;  // where the i-th name begins in text_; it ends in '\0'
  std::vector<std::uint32_t> folder_of_;
  std::vector<std::int32_t> labels_;
  std::vector<std::int8_t> splits_;
  std::string text_;
  struct Names {
    std::vector<std::string> list;
    std::unordered_map<std::string, std::int32_t> numbers;  // only until close()
    std::int32_t number(std::string_view name);
  };
  Names label_names_, split_names_;
};

/// A source that lists files.
class ManifestSource {
 public:
  virtual ~ManifestSource() = default;
  [[nodiscard]] virtual const Manifest& manifest() const = 0;
};

}  // namespace melflow
