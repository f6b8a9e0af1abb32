// Any bytes as a long FLAC recording, for libFuzzer (perf/fuzz.sh): what comes of it, its samples, how it ends and the remark, is the
// same whether it is decoded in pieces on several cores or as one. The first byte has the size of blocks.
#include <sys/mman.h>
#include <tbb/global_control.h>
#include <tbb/task_arena.h>

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "pipeline/reach.h"
#include "pipeline/stage.h"
#include "stages/audio/decoded_blocks.h"
#include "tests/fuzz/fuzz_input.h"

namespace {

using namespace melflow;
using namespace melflow::fuzz;

constexpr int kWorkers = 3;
constexpr std::int64_t kMost = 1 << 17;  // samples: a few bytes may promise hours of silence

struct Nothing {
  static constexpr const char* kName = "nothing";
};
class NoSource final : public Source<Nothing> {
 public:
  [[nodiscard]] std::size_t count() const override { return 0; }
  [[nodiscard]] SourceItem item(std::size_t) override { return {}; }
  [[nodiscard]] std::string name(std::size_t) const override { return {}; }
};

struct Decoded {
  std::string samples;
  Ledger::Entry entry;
  bool is_cut = false;  // there was more
};

Decoded decoded(const std::uint8_t* data, std::size_t size, std::size_t block, int ahead) {
  static BufferPool pool(std::size_t{1} << 28);
  static NoSource source;
  static const RunSettings settings;
  static RunServices services;
  static const Reach reach = Reach::plain(0, 1);
  Ledger ledger;
  ledger.open(1, {"decode"});
  RunContext run{
      .pool = pool, .ledger = ledger, .settings = settings, .source = source, .services = services};
  run.workers = kWorkers;
  auto raw = std::make_shared<RawBytes>();
  raw->fd = UniqueFd(memfd_create("sound", MFD_CLOEXEC));
  raw->window = 4096;
  raw->size = size;
  require(raw->fd && write(raw->fd.get(), data, size) == static_cast<ssize_t>(size));
  Decoded out;
  {
    const auto stream = std::make_shared<Stream>(ledger, Stream::Records{0}, 0, reach);
    Item item;
    item.origins = std::make_shared<const Origins>(Origins{{nullptr, stream, true, true}});
    ItemContext context(run, item, 0);
    SoundFile sound(SoundInput(raw->fd.get(), size, raw->window));
    if (!sound.ok() || sound.info().samplerate <= 0) return out;
    DecodeOptions options;
    options.ahead = ahead;
    std::atomic<int> long_recordings{0};
    const auto blocks =
        decoded_blocks(raw, std::move(sound), options, {block}, long_recordings, nullptr);
    for (std::int64_t count = 0;;) {
      const auto result = blocks->next(context);
      if (!result) {
        stream->fail(0, result.error());
        break;
      }
      if (const auto& wave = result->out) {
        require(wave->start == count);
        count += wave->samples.count;
        out.samples.append(reinterpret_cast<const char*>(wave->samples.data),
                           wave->samples.bytes());
      }
      if (!result->more) break;
      if ((out.is_cut = count > kMost)) break;
    }
  }
  out.entry = ledger.entry(0);
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  static const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, kWorkers);
  static tbb::task_arena arena(kWorkers);
  const std::size_t block = 512 * (1 + data[0] % 16U);
  const Decoded alone = decoded(data + 1, size - 1, block, 0);
  Decoded ahead;
  arena.execute([&] { ahead = decoded(data + 1, size - 1, block, 2 * kWorkers); });
  require(ahead.is_cut == alone.is_cut);
  if (alone.is_cut) {  // after so many or a block more
    const std::size_t both = std::min(alone.samples.size(), ahead.samples.size());
    alone.samples.compare(0, both, ahead.samples, 0, both) == 0 ? void() : std::abort();
    return 0;
  }
  require(ahead.samples == alone.samples);
  require(ahead.entry.outcome == alone.entry.outcome && ahead.entry.reason == alone.entry.reason);
  return 0;
}
