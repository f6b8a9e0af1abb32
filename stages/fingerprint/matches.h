// matches.h - finds recordings that sound alike, by their words (words.h).
//
// In:  the words of every recording.
// Out: for two recordings that have a stretch in common, where it lies in each.
//
// Half of the words, chosen by their value, are sorted with their places, in files where they
// do not fit in memory. Two places with one word are a vote for the two recordings at one offset
// where the words 0.4 s later agree in most bits, too. A word that is in very many recordings is no
// evidence and gives no votes. With two votes the words of both recordings are compared at that
// offset, and the stretch is taken in which they differ least. Neither digital silence nor a sound
// that does not change counts there. The result depends neither on the order of the recordings nor
// on the memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace melflow::fingerprint {

/// Gives the words of recordings by their number.
class WordSource {
 public:
  virtual ~WordSource() = default;
  [[nodiscard]] virtual std::size_t recordings() const = 0;
  /// Appends nothing for a recording that is not to be looked at.
  virtual void read(std::size_t recording, std::vector<std::uint32_t>& words) const = 0;
};

struct MatchOptions {
  std::int64_t least_words = 116;  ///< of a stretch that count: 2 s
  /// A word in more recordings than this is no evidence; 0: 100, or a thousandth of all if more.
  std::size_t common = 0;
  std::size_t memory = std::size_t{512} << 20;  ///< for words and votes [bytes], about
  std::size_t new_from = 0;  ///< recordings below this number are not compared with each other
  std::string folder;        ///< for temporary files
};

/// A stretch of two recordings.
struct Match {
  std::size_t a = 0, b = 0;  ///< numbers of the recordings, a < b
  std::int64_t begin_a = 0, begin_b = 0, words = 0;
  std::int64_t evidence = 0;        ///< of these words, those that count
  std::int64_t of_a = 0, of_b = 0;  ///< words of each recording that are evidence
  double error = 0;                 ///< share of bits that differ
};

/// At most one for two recordings, their longest, in the order of a and b. Throws RunError.
std::vector<Match> find_matches(const WordSource& source, const MatchOptions& options);

/// The stretch at which `b`, from word `offset` on, is most like `a`; `words` is 0 for none.
/// Each word adds 11 less the number of bits that differ, or -2, and the stretch has the greatest
/// sum.
Match best_stretch(const std::vector<std::uint32_t>& a, const std::vector<std::uint32_t>& b,
                   std::int64_t offset);
/// Whether word `at` says something: not silence, and not the same for four words.
bool is_evidence(const std::vector<std::uint32_t>& words, std::size_t at);
/// How many words do.
std::int64_t evidence_of(const std::vector<std::uint32_t>& words);

}  // namespace melflow::fingerprint
