#include "apps/python/mixing.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <queue>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "stages/permutation.h"

namespace melflow {
namespace {

__extension__ using Wide = unsigned __int128;

constexpr std::uint64_t kOne = std::uint64_t{1} << 52;  // the sum of all weights
constexpr std::uint64_t kMostSamples = std::uint64_t{1} << 31;

// A number whole + part / of, without rounding.
struct Fraction {
  std::uint64_t whole = 0, part = 0, of = 1;

  [[nodiscard]] std::uint64_t rounded_up() const { return whole + (part > 0 ? 1 : 0); }
  // Adds length / (weight / kOne), where `of` is the weight.
  [[nodiscard]] Fraction plus(std::uint64_t length) const {
    const Wide sum = static_cast<Wide>(length) * kOne + part;
    return {whole + static_cast<std::uint64_t>(sum / of), static_cast<std::uint64_t>(sum % of), of};
  }
  friend bool operator<(const Fraction& a, const Fraction& b) {
    if (a.whole != b.whole) return a.whole < b.whole;
    return static_cast<Wide>(a.part) * b.of < static_cast<Wide>(b.part) * a.of;
  }
};

// The samples of a source, pass after pass, in an order of their own.
class Passes {
 public:
  Passes(const Mix& mix, std::size_t number) : mix_(&mix), number_(number) { begin(); }

  [[nodiscard]] std::int64_t next() const {
    return source().samples[static_cast<std::size_t>(order_->at(place_))];
  }
  // Returns whether that was the last one of a pass.
  bool advance() {
    if (++place_ < source().samples.size()) return false;
    ++pass_;
    begin();
    return true;
  }

 private:
  [[nodiscard]] const MixSource& source() const { return mix_->sources[number_]; }
  void begin() {
    EpochOrder::Settings of;
    of.samples = source().samples.size();
    of.shuffles = mix_->shuffles;
    of.seed = Permutation::of_epoch(Permutation::of_epoch(mix_->seed, number_ + 1), pass_);
    of.epoch = mix_->epoch;
    of.together = source().together;
    order_.emplace(std::move(of));
    place_ = 0;
  }

  const Mix* mix_;
  std::size_t number_;
  std::uint64_t pass_ = 0, place_ = 0;
  std::optional<EpochOrder> order_;
};

// Weights in units of 1 / kOne, at least one each, with the sum kOne.
std::vector<std::uint64_t> shares_of(const std::vector<double>& weights) {
  double sum = 0;
  for (const double w : weights) sum += w;
  std::vector<std::uint64_t> out;
  std::int64_t left = static_cast<std::int64_t>(kOne);
  for (const double w : weights) {
    out.push_back(std::max<std::uint64_t>(
        1, static_cast<std::uint64_t>(std::llround(w / sum * static_cast<double>(kOne)))));
    left -= static_cast<std::int64_t>(out.back());
  }
  auto& largest = *std::max_element(out.begin(), out.end());
  largest = static_cast<std::uint64_t>(static_cast<std::int64_t>(largest) + left);
  return out;
}

// Chooses the source of each next sample, among those that have not ended.
class Chooser {
 public:
  using Length = std::function<std::uint64_t(std::size_t)>;  // of a source's next sample
  Chooser(const std::vector<std::size_t>& sources, const std::vector<double>& weights,
          Length length)
      : length_(std::move(length)) {
    const std::vector<std::uint64_t> shares = shares_of(weights);
    for (std::size_t i = 0; i < sources.size(); ++i) wait({sources[i], {0, 0, shares[i]}, {}});
  }
  // Returns the source to take a sample of; then put_back() is called for it, or it has ended.
  std::size_t choose() {
    while (!waiting_.empty() && waiting_.top().begin.rounded_up() <= passed_) {
      begun_.push(waiting_.top());
      waiting_.pop();
    }
    chosen_ = begun_.top();
    begun_.pop();
    passed_ += length_(chosen_.source);
    return chosen_.source;
  }
  void put_back() { wait({chosen_.source, chosen_.end, {}}); }

 private:
  struct Turn {
    std::size_t source = 0;
    Fraction begin, end;  // of its next sample in the fluid mix
  };
  struct BeginsLater {
    bool operator()(const Turn& a, const Turn& b) const {
      const std::uint64_t x = a.begin.rounded_up(), y = b.begin.rounded_up();
      return x != y ? x > y : a.source > b.source;
    }
  };
  struct EndsLater {
    bool operator()(const Turn& a, const Turn& b) const {
      if (b.end < a.end) return true;
      return !(a.end < b.end) && a.source > b.source;
    }
  };
  void wait(Turn turn) {
    turn.end = turn.begin.plus(length_(turn.source));
    waiting_.push(turn);
  }

  Length length_;
  std::uint64_t passed_ = 0;  // lengths of the samples so far
  std::priority_queue<Turn, std::vector<Turn>, BeginsLater> waiting_;
  std::priority_queue<Turn, std::vector<Turn>, EndsLater> begun_;
  Turn chosen_;
};

}  // namespace

MixedOrder mixed_order(const Mix& mix) {
  MixedOrder out;
  out.ended.resize(mix.sources.size());
  std::vector<Passes> passes;
  std::vector<std::size_t> left;  // sources that have not ended
  for (std::size_t i = 0; i < mix.sources.size(); ++i) {
    passes.emplace_back(mix, i);
    left.push_back(i);
  }
  const auto length = [&](std::size_t i) {
    return mix.lengths.empty() ? std::uint64_t{1}
                               : static_cast<std::uint64_t>(
                                     mix.lengths[static_cast<std::size_t>(passes[i].next())]);
  };
  const auto chooser = [&] {
    std::vector<double> weights;
    for (const std::size_t i : left) weights.push_back(mix.sources[i].weight);
    return Chooser(left, weights, length);
  };
  std::size_t unended = mix.sources.size();
  std::optional<Chooser> of;
  while (!left.empty() && (mix.end != Mix::End::after || out.samples.size() < mix.samples)) {
    if (!of) of.emplace(chooser());
    const std::size_t i = of->choose();
    if (out.samples.size() == kMostSamples)
      throw std::invalid_argument(
          fmt::format("an epoch would have more than {} samples", kMostSamples));
    out.samples.push_back(passes[i].next());
    const bool is_last = passes[i].advance();
    if (is_last && out.ended[i] == 0) {
      out.ended[i] = out.samples.size();
      --unended;
      if (mix.end == Mix::End::with_first || (mix.end == Mix::End::with_last && unended == 0))
        break;
    }
    if (!is_last || mix.repeats) {
      of->put_back();
    } else {
      left.erase(std::find(left.begin(), left.end(), i));
      of.reset();
    }
  }
  return out;
}

}  // namespace melflow
