#include "stages/audio/decoders/decoder_process.h"

#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "stages/audio/decoders/sound_file.h"
#include "stages/files/unique_fd.h"

namespace melflow {
namespace {

using namespace decoder_protocol;

bool may_start = false;

// A library that hangs does not see that the socket has closed.
void end_with_parent() {
  std::thread([] {
    pollfd parent{kSocket, 0, 0};
    while (poll(&parent, 1, -1) <= 0 || (parent.revents & (POLLHUP | POLLERR | POLLNVAL)) == 0) {
    }
    _exit(0);
  }).detach();
}

// What a library wants beyond that it does not get, and fails: a number in a damaged file costs the file.
void bound_memory() {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // whose own it would be
  long pages[6] = {};                                                // of data: the last
  std::FILE* self = std::fopen("/proc/self/statm", "re");
  if (self == nullptr) return;
  const int known = std::fscanf(self, "%ld %ld %ld %ld %ld %ld", pages, pages + 1, pages + 2,
                                pages + 3, pages + 4, pages + 5);
  std::fclose(self);
  const auto now = static_cast<rlim_t>(pages[5]) * static_cast<rlim_t>(sysconf(_SC_PAGESIZE));
  const rlimit most{now + kLibraryMemory, now + kLibraryMemory};
  if (known == 6) (void)setrlimit(RLIMIT_DATA, &most);
#endif
}

struct Asked {
  Request request;
  UniqueFd fd;
};

// False at the end.
bool receive(Asked& out) {
  iovec request{&out.request, sizeof out.request};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &request;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  ssize_t n = 0;
  do n = recvmsg(kSocket, &message, MSG_CMSG_CLOEXEC);
  while (n < 0 && errno == EINTR);
  if (n < static_cast<ssize_t>(sizeof out.request)) return false;
  if (const cmsghdr* given = CMSG_FIRSTHDR(&message)) {
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(given), sizeof fd);
    out.fd = UniqueFd(fd);
  }
  return true;
}

void send(Reply reply, std::string text) {
  text.resize(std::min(text.size(), kMostText));
  reply.text = static_cast<std::uint32_t>(text.size());
  std::array<iovec, 2> parts{iovec{&reply, sizeof reply}, iovec{text.data(), text.size()}};
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  (void)sendmsg(kSocket, &message, MSG_NOSIGNAL);
}

class Server {
 public:
  bool answer(Asked& asked) {
    const Request& r = asked.request;
    switch (r.ask) {
      case Ask::shared:
        shared_ =
            mmap(nullptr, kSharedBytes, PROT_READ | PROT_WRITE, MAP_SHARED, asked.fd.get(), 0);
        return shared_ != MAP_FAILED;
      case Ask::open:
        open(asked);
        return true;
      case Ask::read_short:
        read<short>(r.frames);
        return true;
      case Ask::read_float:
        read<float>(r.frames);
        return true;
    }
    return false;
  }

 private:
  void open(Asked& asked) {
    const Request& r = asked.request;
    sound_.reset();
    file_ = std::move(asked.fd);
    sound_.emplace(SoundInput(file_.get(), r.size, static_cast<std::size_t>(r.window)));
    Reply reply;
    reply.io_error = sound_->io_error();
    if (!sound_->ok()) {
      send(reply, sound_->reason());
      return;
    }
    const SF_INFO& info = sound_->info();
    reply.is_open = 1;
    reply.frames = info.frames;
    reply.sample_rate = info.samplerate;
    reply.channels = info.channels;
    reply.format = info.format;
    reply.is_count_known = sound_->is_count_known() ? 1 : 0;
    reply.is_by_ffmpeg = sound_->is_by_ffmpeg() ? 1 : 0;
    give(reply);
  }

  template <class Sample>
  void read(std::int64_t frames) {
    Reply reply;
    reply.frames = sound_->read(static_cast<Sample*>(shared_), frames);
    reply.io_error = sound_->io_error();
    give(reply);
  }

  void give(Reply reply) {
    std::string text;
    reply.untimed_from = sound_->untimed_from();
    if (auto fault = sound_->fault()) {
      reply.has_fault = 1;
      reply.is_change = fault->is_change ? 1 : 0;
      reply.fault_after = fault->after;
      text = std::move(fault->what);
    }
    send(reply, std::move(text));
  }

  void* shared_ = nullptr;
  UniqueFd file_;
  std::optional<SoundFile> sound_;  // reads file_
};

}  // namespace

bool is_decoder_process(int argc, char** argv) {
  may_start = true;
  return argc == 2 && std::string_view(argv[1]) == kVerb;
}

bool can_start_decoders() { return may_start; }

int serve_decoder() {
  const rlimit none{0, 0};  // a crash is expected, and its memory is of no use
  (void)setrlimit(RLIMIT_CORE, &none);
  end_with_parent();
  bound_memory();
  Server server;
  for (Asked asked; receive(asked); asked = {})
    if (!server.answer(asked)) return 1;
  return 0;
}

}  // namespace melflow
