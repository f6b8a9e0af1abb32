#include "stages/audio/decoders/decode_ahead.h"

#include <tbb/task_arena.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "pipeline/tsan.h"

namespace melflow {
namespace {

struct Piece {
  FlacPlace begin, end;
  // The reservation of a piece decoded early; declared first, so that the samples are freed first.
  std::shared_ptr<const Reservation> reservation;
  DecodeAhead::Block block;
  bool is_done = false, is_good = false;
};

// Whether two pieces have the same format: a stream may go on at another rate, with other channels
// or bits.
bool is_alike(const SF_INFO& a, const SF_INFO& b) {
  return a.samplerate == b.samplerate && a.channels == b.channels && a.format == b.format;
}

}  // namespace

// The function that a task runs. It is a named type, to be seen in stack traces and by
// tests/support/tsan.supp, and has a plain pointer: `Waiting` keeps the `Work` alive meanwhile.
struct DecodeAhead::Helper {
  Work* work;
  // Asks `arena` for a worker. Never inlined, so that stack traces of what oneTBB writes show this
  // function's name.
  [[gnu::noinline]] static void send(tbb::task_arena& arena, Work* work);
  void operator()() const;
};

// Keeps every Work alive for which tasks are still to run. Never destroyed: a process may end
// before oneTBB has run all its tasks, or while it runs one.
class DecodeAhead::Waiting {
 public:
  static Waiting& instance() {
    static auto* const waiting = new Waiting;
    return *waiting;
  }

  void add(std::shared_ptr<Work> work) {
    const std::lock_guard lock(mutex_);
    works_.emplace(work.get(), std::move(work));
  }

  std::shared_ptr<Work> take(Work* work) {
    const std::lock_guard lock(mutex_);
    return works_.extract(work).mapped();
  }

 private:
  std::mutex mutex_;  // may be locked while the mutex of a Work is held
  std::unordered_map<Work*, std::shared_ptr<Work>> works_;
};

// The state shared with tasks, which may begin after the recording is over. Such a task finds it
// closed, with nothing left of the recording, and touches nothing of the run.
class DecodeAhead::Work : public std::enable_shared_from_this<Work> {
 public:
  Work(AheadPlan plan, int ahead, std::atomic<int>& recordings, RunContext& run)
      : plan_(std::move(plan)),
        type_(sample_type(plan_.info)),
        ahead_(ahead),
        workers_(run.workers),
        recordings_(recordings),
        pool_(run.pool),
        budget_(run.budget),
        cut_(plan_.frames.first()) {
    recordings_.fetch_add(1);
  }

  std::optional<Block> next() {
    std::unique_lock lock(mutex_);
    for (;;) {
      if (!pieces_.empty() && pieces_.front()->is_done) {
        if (!pieces_.front()->is_good) break;
        // Its reservation goes back before its place may be taken by another piece, and without the
        // lock, since that wakes threads which wait for memory. No other thread removes pieces.
        const std::shared_ptr<Piece> first = pieces_.front();
        lock.unlock();
        first->reservation.reset();
        lock.lock();
        pieces_.pop_front();
        hire();
        return std::move(first->block);
      }
      // The block that is asked for is charged to the reservation of the item being decoded.
      std::shared_ptr<Piece> mine = claim(!pieces_.empty());
      if (!mine && pieces_.empty()) break;
      hire();
      if (!mine) {
        changed_.wait(lock);
        continue;
      }
      lock.unlock();
      decode(*mine);
      lock.lock();
      mine->is_done = true;
    }
    lock.unlock();
    close();
    return std::nullopt;
  }

  // Waits for pieces that are being decoded, prevents further ones, and lets go of the file.
  void close() {
    std::deque<std::shared_ptr<Piece>> dropped;  // freed without the lock: that wakes other threads
    std::optional<AheadPlan> over;
    std::unique_lock lock(mutex_);
    if (!std::exchange(is_closed_, true)) recordings_.fetch_sub(1);
    changed_.wait(lock, [this] { return decoding_ == 0; });
    dropped.swap(pieces_);
    over.emplace(std::move(plan_));
    next_cut_.reset();
    is_cut_up_ = true;
    lock.unlock();
  }

  // Decodes pieces on an idle worker.
  void help() {
    std::shared_ptr<Work> self;  // destroyed after the lock
    std::unique_lock lock(mutex_);
    self = --hired_ == 0 ? Waiting::instance().take(this) : shared_from_this();
    while (!is_closed_) {
      const std::shared_ptr<Piece> mine = claim(true);
      if (!mine) return;
      ++decoding_;
      lock.unlock();
      decode(*mine);
      lock.lock();
      mine->is_done = true;
      --decoding_;
      changed_.notify_all();
    }
  }

 private:
  // Gives the caller the next piece to decode; null where there is none, or (early) no room for it.
  std::shared_ptr<Piece> claim(bool early) {
    if (!can_cut() || (early && room() == 0)) return nullptr;
    auto piece = std::make_shared<Piece>();
    if (early && budget_ != nullptr) {
      const std::size_t bytes = BufferPool::rounded(block_bytes()) + plan_.raw->window;
      piece->reservation = Reservation::try_make(*budget_, bytes, Claim::later);
      if (!piece->reservation) return nullptr;
    }
    piece->begin = std::exchange(cut_, *std::exchange(next_cut_, std::nullopt));
    piece->end = cut_;
    pieces_.push_back(piece);
    return piece;
  }

  bool can_cut() {
    if (!next_cut_ && !is_cut_up_) {
      const std::int64_t left = plan_.end - cut_.sample;
      if (left > plan_.block)
        next_cut_ = plan_.frames.after(cut_, plan_.block);
      else if (left > 0)
        next_cut_ = FlacPlace{plan_.raw->size, plan_.end};
      is_cut_up_ = !next_cut_;
    }
    return !is_cut_up_;
  }

  // How many more pieces may be decoded early. Where there are recordings for all workers, each is
  // best decoded by one.
  [[nodiscard]] int room() const {
    const int recordings = std::max(1, recordings_.load());
    if (recordings >= workers_) return 0;
    return std::max(0, ahead_ / recordings - static_cast<int>(pieces_.size()));
  }

  // Starts tasks for idle workers.
  void hire() {
    int more = std::min(room() - hired_, workers_ - 1 - hired_ - decoding_);
    if (more <= 0 || !can_cut()) return;
    tbb::task_arena arena{tbb::attach{}};
    for (; more > 0; --more) {
      if (hired_++ == 0) Waiting::instance().add(shared_from_this());
      Helper::send(arena, this);
    }
  }

  [[nodiscard]] std::size_t block_bytes() const {
    return static_cast<std::size_t>(plan_.block) * size_of(type_);
  }

  void decode(Piece& piece) const noexcept {
    try {
      piece.is_good = is_decoded(piece);
    } catch (...) {  // out of memory: decoding the file as one reports it
      piece.is_good = false;
    }
  }

  [[nodiscard]] bool is_decoded(Piece& piece) const {
    SoundFile file(SoundInput(plan_.raw->fd.get(), plan_.frames.head(), piece.begin.at,
                              piece.end.at, plan_.raw->window),
                   plan_.isolated);
    if (!file.ok() || !is_alike(file.info(), plan_.info)) return false;
    SampleReader reader(std::move(file), plan_.downmix);
    const std::int64_t count = piece.end.sample - piece.begin.sample;
    piece.block.samples = pool_.lease(block_bytes());
    std::byte* out = piece.block.samples.data();
    while (piece.block.count < count) {
      const std::int64_t at = piece.block.count;
      const std::int64_t n =
          reader.read(out + static_cast<std::size_t>(at) * size_of(type_), count - at);
      if (n <= 0 || reader.fault()) return false;
      piece.block.count += n;
    }
    piece.block.levels = reader.levels();
    if (piece.end.sample == plan_.end && plan_.end < plan_.info.frames) return true;
    // A piece is good only if its last frame ends where the next piece begins, and no frames follow
    // those that the header counts.
    std::array<std::byte, sizeof(float)> beyond;
    return reader.read(beyond.data(), 1) == 0 && !reader.fault() && reader.io_error() == 0;
  }

  AheadPlan plan_;
  const SampleType type_;
  const int ahead_, workers_;
  std::atomic<int>& recordings_;
  BufferPool& pool_;
  MemoryBudget* const budget_;

  std::mutex mutex_;
  std::condition_variable changed_;            // a piece is done
  std::deque<std::shared_ptr<Piece>> pieces_;  // not given yet, in order
  FlacPlace cut_;                              // where the next piece begins
  std::optional<FlacPlace> next_cut_;          // where it ends, if that is known
  bool is_cut_up_ = false, is_closed_ = false;
  int hired_ = 0, decoding_ = 0;
};

void DecodeAhead::Helper::send(tbb::task_arena& arena, Work* work) {
  tsan::release(work);
  arena.enqueue(Helper{work});
}

void DecodeAhead::Helper::operator()() const {
  tsan::acquire(work);
  work->help();
}

DecodeAhead::DecodeAhead(AheadPlan plan, int ahead, std::atomic<int>& recordings, RunContext& run)
    : work_(std::make_shared<Work>(std::move(plan), ahead, recordings, run)) {}
DecodeAhead::~DecodeAhead() { work_->close(); }

std::optional<DecodeAhead::Block> DecodeAhead::next() { return work_->next(); }

}  // namespace melflow
