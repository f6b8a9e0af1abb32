// The facts by which a file is routed: those in the list and, on an edge with samples, those of its
// first block and the peak of every block.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/stage/stage.h"
#include "stages/measures.h"

namespace melflow {

enum class Fact {
  path,
  label,
  split,
  column,
  target,
  size,
  sample_rate,
  duration,
  channels,
  peak,
  measure,  ///< of a stage `quality`, by its name
  share,
  decibels  ///< only what the numbers of some measures are
};

/// What conditions are judged by. By default all of a recording is known.
class KnownFacts {
 public:
  KnownFacts() = default;
  KnownFacts(const KnownFacts&) = default;
  KnownFacts& operator=(const KnownFacts&) = default;
  virtual ~KnownFacts() = default;

  /// The texts of a fact; a file may have several labels, or no text. `name`: the column's.
  [[nodiscard]] virtual std::vector<std::string> texts(Fact fact,
                                                       const std::string& name) const = 0;
  /// The value of a number; nothing where it is not known. `name`: of the target or measure.
  [[nodiscard]] virtual std::optional<double> number(Fact fact, const std::string& name) const = 0;
  /// Whether all blocks have come, so that every value is known.
  [[nodiscard]] virtual bool is_at_end() const { return true; }
  /// Whether the peak covers all samples of the file.
  [[nodiscard]] virtual bool is_peak_whole() const { return true; }
  /// Whether the number is only what the header says: the recording may turn out shorter.
  [[nodiscard]] virtual bool is_promised(Fact) const { return false; }
};

class RoutingFacts final : public KnownFacts {
 public:
  /// Takes the facts from the first block of a file, which comes as `port`.
  RoutingFacts(const Item& item, const PortType& port, const ItemContext& context);

  /// The types of payload that the constructor takes.
  static std::vector<PortType> ports();
  /// Whether the fact is known only on edges with samples; others are known on every edge.
  static bool needs_samples(Fact fact) {
    return fact == Fact::sample_rate || fact == Fact::duration || fact == Fact::channels ||
           fact == Fact::peak || fact == Fact::measure;
  }

  /// Whether the fact is one of the file itself, whatever a list says of it.
  static bool is_of_content(Fact fact) {
    return needs_samples(fact) || fact == Fact::path || fact == Fact::size;
  }

  /// Adds what a block tells beside the first one, which the constructor took: what was measured,
  /// in the last one.
  void note(const Item& item);
  /// Adds the samples of a block, including the first one; the peak needs all blocks of a file.
  void note_peak(const Item& item);
  [[nodiscard]] bool is_at_end() const override { return is_at_end_; }
  [[nodiscard]] bool is_peak_whole() const override { return is_peak_whole_; }
  [[nodiscard]] std::vector<std::string> texts(Fact fact, const std::string& name) const override;
  [[nodiscard]] std::optional<double> number(Fact fact, const std::string& name) const override;
  [[nodiscard]] bool is_promised(Fact fact) const override {
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
  std::shared_ptr<const MeasureValues> measured_;
  bool is_at_end_ = false;
  double peak_ = 0;
  bool is_peak_whole_ = false;
};

}  // namespace melflow
