#include "stages/audio/decoders/isolated_decoder.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "stages/audio/decoders/decoder_process.h"
#include "stages/files/unique_fd.h"
#include "stages/files/whole_io.h"

extern char** environ;  // NOLINT(readability-redundant-declaration): POSIX leaves it to the program

namespace melflow {

using namespace decoder_protocol;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t kWindow = 64 * 1024;  // through which a child reads a file that was in memory
// While a run is stopped: how long a child may work on one request, and how soon that is seen.
constexpr std::chrono::milliseconds kGrace{300}, kLook{100};
constexpr std::size_t kKept = 64 * 1024;  // of a file that was in memory [bytes]

[[noreturn]] void cannot_start(int error) {
  throw DecoderLost(
      fmt::format("no process to decode it can be started: {}", std::strerror(error)));
}

// The path through which the system finds this program, also where its file was replaced.
pid_t start(int socket) {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  sigset_t none;
  sigemptyset(&none);
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, socket, kSocket);
  posix_spawnattr_init(&attributes);
  // In a group of its own: Ctrl-C is for this process, which then lets recordings end.
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
  std::string name = "melflow", verb = kVerb;
  std::array<char*, 3> arguments{name.data(), verb.data(), nullptr};
  pid_t pid = -1;
  const int error =
      posix_spawn(&pid, "/proc/self/exe", &files, &attributes, arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  if (error != 0) cannot_start(error);
  return pid;
}

}  // namespace

class IsolatedDecoders::Child {
 private:
  struct Mapping {
    void* at = MAP_FAILED;
    ~Mapping() {
      if (at != MAP_FAILED) munmap(at, kSharedBytes);
    }
  };

 public:
  explicit Child(const IsolatedDecoders& owner) : owner_(owner) {
    shared_fd_ = UniqueFd(memfd_create("melflow-samples", MFD_CLOEXEC));
    file_ = UniqueFd(memfd_create("melflow-file", MFD_CLOEXEC));
    if (!shared_fd_ || !file_) cannot_start(errno);
    if (const int error = allocate_whole(shared_fd_.get(), 0, kSharedBytes)) cannot_start(error);
    shared_.at = mmap(nullptr, kSharedBytes, PROT_READ, MAP_SHARED, shared_fd_.get(), 0);
    if (shared_.at == MAP_FAILED) cannot_start(errno);
    std::array<int, 2> ends{};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0)
      cannot_start(errno);
    socket_ = UniqueFd(ends[0]);
    const UniqueFd other(ends[1]);
    pid_ = start(other.get());
  }
  ~Child() {
    if (pid_ <= 0) return;
    (void)kill(pid_, SIGKILL);
    (void)wait();
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  void share() { send({.ask = Ask::shared}, shared_fd_.get()); }

  // Where a child reads the bytes of a file that lies in memory, until drop().
  int put(std::span<const std::byte> bytes) {
    has_file_ = bytes.size() > kKept;
    for (std::size_t at = 0; at < bytes.size();) {
      const ssize_t n =
          pwrite(file_.get(), bytes.data() + at, bytes.size() - at, static_cast<off_t>(at));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0)
        throw DecoderLost(fmt::format("no memory to hand it to a process that decodes it: {}",
                                      std::strerror(n < 0 ? errno : ENOSPC)));
      at += static_cast<std::size_t>(n);
    }
    return file_.get();
  }

  void drop() {
    if (!std::exchange(has_file_, false)) return;
    // Where it fails, the bytes stay until the next file overwrites them.
    [[maybe_unused]] const int result = ::ftruncate(file_.get(), 0);
  }

  void send(const Request& request, int fd = -1) {
    iovec bytes{const_cast<Request*>(&request), sizeof request};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    msghdr message{};
    message.msg_iov = &bytes;
    message.msg_iovlen = 1;
    if (fd >= 0) {
      message.msg_control = control.data();
      message.msg_controllen = control.size();
      cmsghdr* given = CMSG_FIRSTHDR(&message);
      given->cmsg_level = SOL_SOCKET;
      given->cmsg_type = SCM_RIGHTS;
      given->cmsg_len = CMSG_LEN(sizeof fd);
      std::memcpy(CMSG_DATA(given), &fd, sizeof fd);
    }
    ssize_t n = 0;
    do n = sendmsg(socket_.get(), &message, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    if (n < 0) lost();
  }

  Reply receive(std::string& text) {
    wait_for_reply();
    Reply reply;
    text.resize(kMostText);
    std::array<iovec, 2> parts{iovec{&reply, sizeof reply}, iovec{text.data(), text.size()}};
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = parts.size();
    ssize_t n = 0;
    do n = recvmsg(socket_.get(), &message, 0);
    while (n < 0 && errno == EINTR);
    if (n < static_cast<ssize_t>(sizeof reply)) lost();
    text.resize(std::min<std::size_t>(reply.text, kMostText));
    return reply;
  }

  [[nodiscard]] const void* shared() const { return shared_.at; }
  [[nodiscard]] bool is_lost() const { return pid_ <= 0; }
  // Whether an idle one was killed meanwhile.
  [[nodiscard]] bool has_ended() const {
    pollfd other{socket_.get(), 0, 0};
    return poll(&other, 1, 0) > 0;
  }

 private:
  void wait_for_reply() {
    using Clock = std::chrono::steady_clock;
    auto until = Clock::now() + owner_.patience_;
    bool is_stopped = false;
    for (;;) {
      if (!is_stopped && owner_.stop_ != nullptr && *owner_.stop_ &&
          Clock::now() + kGrace < until) {
        is_stopped = true;
        until = Clock::now() + kGrace;
      }
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
      pollfd reply{socket_.get(), POLLIN, 0};
      const int n = poll(&reply, 1, static_cast<int>(std::clamp(left, 0ms, kLook).count()));
      if (n > 0) return;
      if (n < 0 && errno == EINTR) continue;
      if (Clock::now() < until) continue;
      (void)kill(pid_, SIGKILL);
      (void)wait();
      if (is_stopped) throw DecoderStopped("the run was stopped");
      throw DecoderLost(
          fmt::format("the decoder gave nothing for {} s: ended", owner_.patience_.count()));
    }
  }

  int wait() {
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    return status;
  }

  [[noreturn]] void lost() {
    (void)shutdown(socket_.get(), SHUT_RDWR);  // if it is still there, it ends
    const int status = wait();
    if (!WIFSIGNALED(status))
      throw DecoderLost(fmt::format("the decoder ended (exit status {})", WEXITSTATUS(status)));
    const int signal = WTERMSIG(status);
    const char* name = sigabbrev_np(signal);
    throw DecoderLost(fmt::format(
        "the decoder {} ({}{})", signal == SIGKILL || signal == SIGTERM ? "was killed" : "crashed",
        name == nullptr ? "signal " : "SIG", name == nullptr ? std::to_string(signal) : name));
  }

  const IsolatedDecoders& owner_;
  UniqueFd shared_fd_, file_, socket_;
  bool has_file_ = false;
  Mapping shared_;
  pid_t pid_ = -1;
};

class IsolatedDecoders::Decoder final : public SoundDecoder {
 public:
  Decoder(IsolatedDecoders& owner, std::unique_ptr<Child> child, SoundInput& input,
          const Reply& reply, const std::string& text)
      : owner_(owner), child_(std::move(child)), input_(input) {
    info_.frames = reply.frames;
    info_.samplerate = reply.sample_rate;
    info_.channels = reply.channels;
    info_.format = reply.format;
    is_guess_ = reply.is_count_known == 0;
    note(reply, text);
  }
  ~Decoder() override { owner_.give_back(std::move(child_)); }

  std::int64_t read(short* out, std::int64_t frames) override {
    return read(Ask::read_short, out, frames);
  }
  std::int64_t read(float* out, std::int64_t frames) override {
    return read(Ask::read_float, out, frames);
  }
  [[nodiscard]] std::optional<Fault> fault() const override { return fault_; }
  [[nodiscard]] std::int64_t untimed_from() const override { return untimed_from_; }

 private:
  template <class Sample>
  std::int64_t read(Ask ask, Sample* out, std::int64_t frames) {
    if (info_.channels < 1) return 0;  // by a header that makes no sense
    const std::size_t frame = sizeof(Sample) * static_cast<std::size_t>(info_.channels);
    const auto most = static_cast<std::int64_t>(kSharedBytes / frame);
    const std::int64_t want = std::min(frames, most);
    std::string text;
    child_->send({.ask = ask, .frames = want});
    const Reply reply = child_->receive(text);
    note(reply, text);
    const std::int64_t n = std::clamp<std::int64_t>(reply.frames, 0, want);
    std::memcpy(out, child_->shared(), static_cast<std::size_t>(n) * frame);
    return n;
  }

  void note(const Reply& reply, const std::string& text) {
    if (reply.io_error != 0) input_.fail(reply.io_error);
    untimed_from_ = reply.untimed_from;
    if (reply.has_fault != 0 && !fault_) fault_ = {reply.fault_after, text, reply.is_change != 0};
  }

  IsolatedDecoders& owner_;
  std::unique_ptr<Child> child_;
  SoundInput& input_;
  std::optional<Fault> fault_;
  std::int64_t untimed_from_ = kAllTimed;
};

// FFmpeg brings over a hundred libraries, each with data of its own.
std::size_t IsolatedDecoders::child_memory() {
#ifdef MELFLOW_HAS_FFMPEG
  return 32 << 20;
#else
  return 8 << 20;
#endif
}

IsolatedDecoders::IsolatedDecoders(std::chrono::seconds patience, const std::atomic<bool>* stop)
    : patience_(patience), stop_(stop) {}
IsolatedDecoders::~IsolatedDecoders() = default;

std::unique_ptr<IsolatedDecoders::Child> IsolatedDecoders::lease() {
  for (;;) {
    std::unique_ptr<Child> child;
    const std::lock_guard lock(mutex_);
    if (idle_.empty()) break;
    child = std::move(idle_.back());
    idle_.pop_back();
    if (!child->has_ended()) return child;
  }
  auto child = std::make_unique<Child>(*this);
  child->share();
  return child;
}

void IsolatedDecoders::give_back(std::unique_ptr<Child> child) {
  if (child->is_lost()) return;
  child->drop();
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(child));
}

IsolatedDecoders::Opened IsolatedDecoders::open(SoundInput& input) {
  auto child = lease();
  const SoundInput::Place place = input.place();
  const int fd = place.fd >= 0 ? place.fd : child->put(place.data);
  child->send(
      {.ask = Ask::open, .size = input.size(), .window = place.fd >= 0 ? place.window : kWindow},
      fd);
  std::string text;
  const Reply reply = child->receive(text);
  if (reply.is_open == 0) {
    if (reply.io_error != 0) input.fail(reply.io_error);
    give_back(std::move(child));
    return {std::move(text), false};
  }
  const bool is_by_ffmpeg = reply.is_by_ffmpeg != 0;
  return {std::make_unique<Decoder>(*this, std::move(child), input, reply, text), is_by_ffmpeg};
}

}  // namespace melflow
