// How long the search for recordings that share a stretch takes, and how much memory, without
// audio: words are a random walk of 22 bits, about as many as equal words of one voice have, of
// which a twelfth change from word to word; one recording of a thousand is a copy of another with a
// tenth of its bits changed.
//
//     match_fingerprints RECORDINGS [WORDS=755] [MEMORY_MIB=512]
//
// Prints seconds, copies found of those planted, other pairs, and the peak of resident memory.
#include <sys/resource.h>

#include <bit>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "apps/temporary_folder.h"
#include "stages/fingerprint/matches.h"

namespace {

using namespace melflow::fingerprint;

constexpr std::size_t kCopyEvery = 1000;

struct Random {  // splitmix64, by Steele, Lea and Flood
  std::uint64_t state;
  std::uint64_t operator()() {
    std::uint64_t z = state += 0x9e3779b97f4a7c15U;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
  }
};

class Synthetic final : public WordSource {
 public:
  Synthetic(std::size_t recordings, std::size_t words) : recordings_(recordings), words_(words) {}
  [[nodiscard]] std::size_t recordings() const override { return recordings_; }
  void read(std::size_t r, std::vector<std::uint32_t>& words) const override {
    const bool is_copy = r % kCopyEvery == kCopyEvery - 1;
    Random walk{is_copy ? r - kCopyEvery / 2 : r}, noise{r};
    std::uint32_t word = static_cast<std::uint32_t>(walk());
    words.resize(words_);
    for (std::uint32_t& out : words) {
      const std::uint64_t bits = walk();
      // Each bit flips with 1/16 + 1/64.
      word ^= static_cast<std::uint32_t>(bits & (bits >> 32) & std::rotl(bits, 13) &
                                         (std::rotl(bits, 29) | std::rotl(bits, 41)));
      const std::uint32_t low = word & 0x3fffffU;
      out = low | (low << 22);
      if (is_copy) {
        const std::uint64_t n = noise();
        out ^= static_cast<std::uint32_t>(n & (n >> 32) & std::rotl(n, 7) &
                                          (std::rotl(n, 19) | std::rotl(n, 50)));
      }
    }
  }

 private:
  std::size_t recordings_, words_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return std::puts("match_fingerprints RECORDINGS [WORDS=755] [MEMORY_MIB=512]"), 2;
  const std::size_t recordings = std::strtoull(argv[1], nullptr, 10);
  const std::size_t words = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 755;
  const melflow::TemporaryFolder folder;
  MatchOptions options;
  options.memory = (argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 512) << 20;
  options.folder = folder / "";
  const auto begin = std::chrono::steady_clock::now();
  const std::vector<Match> found = find_matches(Synthetic(recordings, words), options);
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  std::size_t copies = 0;
  for (const Match& m : found)
    copies += m.b % kCopyEvery == kCopyEvery - 1 && m.b - m.a == kCopyEvery / 2;
  rusage use{};
  getrusage(RUSAGE_SELF, &use);
  std::printf(
      "%zu recordings of %zu words: %.1f s (%.1f s of the processor), %zu of %zu copies, "
      "%zu other pairs, %.0f MiB\n",
      recordings, words, taken.count(),
      static_cast<double>(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
          static_cast<double>(use.ru_utime.tv_usec + use.ru_stime.tv_usec) * 1e-6,
      copies, recordings / kCopyEvery, found.size() - copies,
      static_cast<double>(use.ru_maxrss) / 1024);
}
