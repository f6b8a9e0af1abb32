// uring_engine.cpp - opens a file, checks it by fstat (which never waits once it is open), reads it
// to its end and closes it. The requests of all files that can take a step go to the kernel in one
// call.
//
// Buffers are not registered with the ring: that would save pinning pages, which reads through the
// page cache do not do.

#include "stages/audio/reading/uring_engine.h"

#if defined(MELFLOW_HAS_URING)

#include <liburing.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <exception>
#include <iterator>
#include <new>
#include <optional>
#include <utility>
#include <vector>

namespace melflow {
namespace {

// A ring that knows the requests needed, or null; refusal() says why.
class Ring {
 public:
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;
  ~Ring() {
    if (is_open_) io_uring_queue_exit(&ring_);
  }
  explicit Ring(unsigned entries) {
    const int error = io_uring_queue_init(entries, &ring_, 0);
    if (error != 0) {
      refusal_ = std::strerror(-error);
      return;
    }
    is_open_ = true;
    io_uring_probe* probe = io_uring_get_probe_ring(&ring_);
    const bool knows = probe != nullptr &&
                       io_uring_opcode_supported(probe, IORING_OP_OPENAT) != 0 &&
                       io_uring_opcode_supported(probe, IORING_OP_READ) != 0 &&
                       io_uring_opcode_supported(probe, IORING_OP_CLOSE) != 0;
    if (probe != nullptr) io_uring_free_probe(probe);
    if (!knows) refusal_ = "the kernel is too old, it needs Linux 5.6";
  }
  [[nodiscard]] const std::string& refusal() const { return refusal_; }
  io_uring* get() { return &ring_; }

 private:
  io_uring ring_{};
  bool is_open_ = false;
  std::string refusal_;
};

class UringEngine final : public Engine {
 public:
  UringEngine(const FileReader& reader, int depth)
      : reader_(reader),
        ring_(static_cast<unsigned>(2 * depth + 8)),  // a slot is reused before its file is closed
        wake_(::eventfd(0, EFD_CLOEXEC)) {
    for (int i = 0; i < depth; ++i) {
      requests_.push_back(std::make_unique<Request>());
      free_.push_back(requests_.back().get());
    }
  }

  [[nodiscard]] bool ok() const { return ring_.refusal().empty() && wake_; }

  void begin(void* tag, const Item& item, const ItemContext& context) override {
    if (!is_listening_) listen();
    if (auto unread = reader_.unread(payload_of<FileRef>(item))) {
      if (*unread)
        unread_.push_back({tag, emission<RawBytes>(std::move(**unread))});
      else
        unread_.push_back({tag, std::move(unread->error())});
      return;
    }
    if (auto file = payload_of<FileRef>(item); file->container) {
      auto given = reader_.read(std::move(file), context.run().pool);
      if (given)
        unread_.push_back({tag, emission<RawBytes>(std::move(*given))});
      else
        unread_.push_back({tag, std::move(given.error())});
      return;
    }
    Request& r = *free_.back();
    free_.pop_back();
    r.tag = tag;
    r.file = payload_of<FileRef>(item);
    r.pool = &context.run().pool;
    r.got = 0;
    open(r);
  }

  void collect(std::vector<Done>& done) override {
    if (!is_listening_) listen();
    bool woken = !unread_.empty();
    std::move(unread_.begin(), unread_.end(), std::back_inserter(done));
    unread_.clear();
    for (bool first = true; first || (done.empty() && !woken); first = false) {
      // Any other error but an interruption means that the ring itself is broken.
      const int n = io_uring_submit_and_wait(ring_.get(), woken ? 0 : 1);
      if (n < 0 && n != -EINTR && n != -EAGAIN && n != -EBUSY) std::terminate();
      io_uring_cqe* cqe = nullptr;
      while (io_uring_peek_cqe(ring_.get(), &cqe) == 0) {
        const std::uint64_t who = cqe->user_data;
        const int result = cqe->res;
        io_uring_cqe_seen(ring_.get(), cqe);
        if (who == kClosed) continue;
        if (who == kWoken) {
          woken = true;
          listen();
        } else {
          step(*reinterpret_cast<Request*>(who), result, done);
        }
      }
    }
  }

  void wake() override {
    const std::uint64_t one = 1;
    while (::write(wake_.get(), &one, sizeof one) != sizeof one) {  // else the ring waits for ever
    }
  }

 private:
  // Used instead of a request's address.
  static constexpr std::uint64_t kClosed = 1, kWoken = 2;

  struct Request {
    void* tag = nullptr;
    std::shared_ptr<const FileRef> file;
    BufferPool* pool = nullptr;
    int flags = 0;
    UniqueFd fd;
    FileReader::Reading reading;  // `out` is null while it is opened
    std::size_t got = 0;
  };

  io_uring_sqe* next_sqe() {
    io_uring_sqe* sqe = io_uring_get_sqe(ring_.get());
    while (sqe == nullptr) {  // full: submit the queued requests first
      io_uring_submit(ring_.get());
      sqe = io_uring_get_sqe(ring_.get());
    }
    return sqe;
  }

  void listen() {
    is_listening_ = true;
    io_uring_sqe* sqe = next_sqe();
    io_uring_prep_read(sqe, wake_.get(), &wakes_, sizeof wakes_, 0);
    sqe->user_data = kWoken;
  }

  void open(Request& r) {
    r.flags = reader_.flags();
    io_uring_sqe* sqe = next_sqe();
    io_uring_prep_openat(sqe, AT_FDCWD, FileReader::file_of(*r.file).c_str(), r.flags, 0);
    sqe->user_data = reinterpret_cast<std::uint64_t>(&r);
  }

  void read(Request& r) {
    io_uring_sqe* sqe = next_sqe();
    const std::size_t want = std::min<std::size_t>(r.reading.size - r.got, 1U << 30);
    io_uring_prep_read(sqe, r.fd.get(), r.reading.to + r.got, static_cast<unsigned>(want),
                       r.reading.from + r.got);
    sqe->user_data = reinterpret_cast<std::uint64_t>(&r);
  }

  void close(Request& r) {
    io_uring_sqe* sqe = next_sqe();
    io_uring_prep_close(sqe, r.fd.release());
    sqe->user_data = kClosed;
  }

  void step(Request& r, int result, std::vector<Done>& done) {
    try {
      const FileReader::Reading& reading = r.reading;
      auto error = reading.out ? after_read(r, result) : after_open(r, result);
      if (error) return finish(r, std::move(*error), done);
      if (reading.out && (reading.to == nullptr || r.got == reading.size))
        finish(r, emission<RawBytes>(std::move(r.reading.out)), done);
    } catch (const std::bad_alloc&) {
      finish(r, ItemError::failed("out of memory"), done);
    }
  }

  std::optional<ItemError> after_open(Request& r, int result) {
    if (result == -EINTR || result == -EAGAIN || (result < 0 && reader_.retry(-result, r.flags))) {
      open(r);
      return std::nullopt;
    }
    if (result < 0) return FileReader::open_error(*r.file, -result);
    r.fd = UniqueFd(result);
    auto admitted = reader_.admit(r.file, r.fd, *r.pool);
    if (!admitted) return std::move(admitted.error());
    r.reading = std::move(*admitted);
    if (r.reading.to != nullptr) read(r);
    return std::nullopt;
  }

  std::optional<ItemError> after_read(Request& r, int result) {
    if (result == 0) return FileReader::shorter(r.reading, r.got);
    if (result < 0 && result != -EINTR && result != -EAGAIN) return FileReader::read_error(-result);
    r.got += static_cast<std::size_t>(std::max(result, 0));
    if (r.got == r.reading.size) return FileReader::finish(r.reading, r.fd.get());
    read(r);
    return std::nullopt;
  }

  void finish(Request& r, Result<Emission> result, std::vector<Done>& done) {
    if (r.fd) close(r);
    r.reading = {};
    r.file.reset();
    done.push_back({r.tag, std::move(result)});
    free_.push_back(&r);
  }

  const FileReader& reader_;
  Ring ring_;
  UniqueFd wake_;
  std::uint64_t wakes_ = 0;  // read from wake_
  bool is_listening_ = false;
  std::vector<std::unique_ptr<Request>> requests_;
  std::vector<Request*> free_;
  std::vector<Done> unread_;  // already done: nothing had to be read
};

}  // namespace

std::string uring_refusal() { return Ring(8).refusal(); }

std::unique_ptr<Engine> make_uring_engine(const FileReader& reader, int depth) {
  auto engine = std::make_unique<UringEngine>(reader, depth);
  if (!engine->ok()) return nullptr;
  return engine;
}

}  // namespace melflow

#else

namespace melflow {

std::string uring_refusal() { return "this build has no liburing"; }
std::unique_ptr<Engine> make_uring_engine(const FileReader&, int) { return nullptr; }

}  // namespace melflow

#endif
