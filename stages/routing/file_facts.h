// The metadata that routes a file: what the list says of it and, on an edge with samples, what its
// first block says and the peak of every block.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/stage/stage.h"

namespace melflow {

enum class Fact { path, label, split, column, target, size, sample_rate, duration, channels, peak };

struct FileFacts {
  /// Of the first block of a file, which comes as `port`.
  FileFacts(const Item& item, const PortType& port, const ItemContext& context);

  /// The types of payload that it knows.
  static std::vector<PortType> ports();
  /// The fact is known on every such edge, or only where there are samples.
  static bool needs_samples(Fact fact) {
    return fact == Fact::sample_rate || fact == Fact::duration || fact == Fact::channels ||
           fact == Fact::peak;
  }

  /// The fact is one of the file itself, whatever a list says of it.
  static bool is_of_content(Fact fact) {
    return needs_samples(fact) || fact == Fact::path || fact == Fact::size;
  }

  /// Adds the samples of a block, of which the first is one; what asks for the peak needs all of
  /// them.
  void note_peak(const Item& item);
  /// Of all samples so far: the largest |sample| as a fraction of full scale.
  [[nodiscard]] double peak() const { return peak_; }
  /// All samples of the file are in it.
  [[nodiscard]] bool is_peak_whole() const { return is_peak_whole_; }

  /// Of a text; several of `label`, none where there is none. `name`: of the column.
  [[nodiscard]] std::vector<std::string> texts(Fact fact, const std::string& name) const;
  /// Of a number; nothing where it is not known. `name`: of the target.
  [[nodiscard]] std::optional<double> number(Fact fact, const std::string& name) const;

  /// The number is what the header says, and not what was found: a recording may break off.
  [[nodiscard]] bool is_promised(Fact fact) const {
    return fact == Fact::duration && is_duration_promised_;
  }

 private:
  const class Manifest* manifest_ = nullptr;
  std::size_t index_;
  std::string path_;  // where there is no manifest
  std::uint64_t size_ = 0;
  int sample_rate_ = 0, channels_ = 0;
  std::optional<double> duration_;  // [s]
  bool is_duration_promised_ = false;
  double peak_ = 0;
  bool is_peak_whole_ = false;
};

}  // namespace melflow
