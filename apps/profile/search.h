// Looks for settings with which a pipeline is faster: by the hints of the model first, then by values
// beside the present ones. It runs nothing itself, so that it can be tested on a machine made up.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "apps/profile/limits.h"

namespace melflow {

/// An option that changes the speed alone, and what may be tried of it.
struct SearchedOption {
  std::string name;  ///< as for --set
  std::string now;   ///< its value, as in a configuration: "auto" where that is so
  bool is_written = false;
  std::string otherwise;             ///< its value where nothing is written
  std::vector<std::string> choices;  ///< of a choice; else it is a number
  double lowest = 1, highest = 1;    ///< of a number
  bool is_size = false;              ///< a number of bytes
};

class Search {
 public:
  using Settings = std::vector<std::pair<std::string, std::string>>;
  struct Trial {
    double files_per_second = 0;
    std::vector<Hint> hints;
  };
  struct Uses {
    /// Runs the pipeline with these settings; nothing where they are refused.
    std::function<std::optional<Trial>(const Settings&)> run;
    std::function<double()> seconds;                               ///< a clock
    std::function<void(const Settings&, double ratio)> tell = {};  ///< of each that was tried
  };
  /// Speed with over without something, of pairs of runs in turn.
  struct Pairs {
    double middle = 0, least = 0, greatest = 0;
    int count = 0, faster = 0;  ///< pairs, and how many of them were faster with it

    /// Whether it is faster, and not by chance: in all but one of five.
    [[nodiscard]] bool are_faster(double by) const {
      return middle >= by && faster >= count - count / 5;
    }
  };
  struct Change {
    std::string option, was, is;
    Pairs evidence;  ///< of the pairs that decided for it
    int others = 0;  ///< options that were changed together with it
  };
  struct Result {
    std::vector<Change> changes;  ///< none: as it is it is as good as anything that was tried
    Pairs together;               ///< with all of them, over without
    int runs = 0, tried = 0;
  };

  Search(std::vector<SearchedOption> options, Uses uses, double budget, std::uint64_t seed)
      : options_(std::move(options)), uses_(std::move(uses)), budget_(budget), seed_(seed) {}

  /// Takes about `budget` seconds. Throws what `run` throws.
  Result run();

 private:
  struct Step {
    Settings settings;
    Pairs evidence;
  };
  [[nodiscard]] std::vector<Settings> neighbours();
  [[nodiscard]] Settings with(const Settings& settings) const;
  [[nodiscard]] std::string value_of(const std::string& option, const Settings& settings) const;
  [[nodiscard]] bool has_time(double share) const {
    return uses_.seconds() - begin_ < share * budget_;
  }
  std::optional<Trial> trial(const Settings& settings);
  bool accepts(const Settings& further);
  /// Runs in turn while they leave it open which is faster, as long as there is time.
  Pairs pairs(const Settings& without, const Settings& with, int least, int most, double share);
  void drop_what_brings_nothing();

  const std::vector<SearchedOption> options_;
  const Uses uses_;
  const double budget_;
  const std::uint64_t seed_;
  double begin_ = 0;
  Settings best_;
  Trial last_;  // of the best
  std::vector<Step> steps_;
  std::set<Settings> tried_;
  int runs_ = 0;
};

}  // namespace melflow
