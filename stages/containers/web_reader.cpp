#include "stages/containers/web_reader.h"

#include <strings.h>
#include <sys/socket.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <iterator>
#include <new>
#include <random>
#include <span>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "pipeline/base/memory.h"
#include "pipeline/base/secrets.h"
#include "pipeline/base/text.h"
#include "pipeline/base/version.h"
#include "stages/containers/container.h"
#include "stages/containers/libcurl.h"
#include "stages/containers/web_address.h"
#include "stages/files/temporary_file.h"
#include "stages/files/whole_io.h"

namespace melflow {
namespace {

using namespace libcurl;

using Clock = std::chrono::steady_clock;

constexpr int kTries = 5, kSlowTries = 2;  // with a server that is too slow
constexpr int kMostRedirects = 10;
constexpr const char* kToPrivate = "is redirected from a public to a private address";
constexpr std::uint64_t kMostIgnored = 64 << 10;  // [bytes] of an answer that is no recording
constexpr std::uint64_t kBetween = 16 << 20;      // [bytes] between looks at the disk

// A request's answer, whose bytes are on their way into `out`.
struct Answer {
  void* handle;
  BufferPool& pool;
  const WebLimits& limits;
  std::uint64_t in_memory;  // [bytes] that may be held there
  std::shared_ptr<RawBytes> out = std::make_shared<RawBytes>();
  long status = 0;
  std::string range = {};           // the header Content-Range
  std::uint64_t ignored = 0;        // [bytes]
  std::uint64_t looked = kBetween;  // [bytes] `out` may have before the disk is looked at again
  int error = 0;                    // errno of the temporary file
  std::string refusal = {};         // why no other request will do
  bool has_private = false;  // an address that is not connected to; another one may have answered
  std::exception_ptr exception = nullptr;  // must not pass through libcurl

  [[nodiscard]] bool is_recording() const { return status >= 200 && status < 300; }

  void begin() {
    curl().info(handle, response_code, &status);
    std::int64_t length = -1;  // not known
    curl().info(handle, content_length, &length);
    if (!is_recording()) return;
    const auto size = static_cast<std::uint64_t>(length);
    if (status == 206 && !is_whole_range())
      refusal = fmt::format("the server gives a part ({}) of what was asked for as a whole",
                            excerpt(range));
    else if (length > 0 && size > limits.largest.count)
      refusal = fmt::format("has {} bytes, and web.largest is {}; raise it", size, limits.largest);
    else if (length > 0 && size > in_memory)
      spill(size);
    else
      out->data = pool.lease(length > 0 ? size : in_memory);
  }
  // Whether "bytes 0-99/100" is all there is.
  [[nodiscard]] bool is_whole_range() const {
    unsigned long long last = 0, all = 0;
    return std::sscanf(range.c_str(), "bytes 0-%llu/%llu", &last, &all) == 2 && last + 1 == all;
  }
  // `more`: how many bytes are known to come.
  void spill(std::uint64_t more) {
    out->fd = temporary_file({out->data.data(), static_cast<std::size_t>(out->size)});
    if (!out->fd) error = errno;
    out->data = {};
    if (error == 0) check_room(more);
  }
  void check_room(std::uint64_t more) {
    struct statvfs disk {};
    if (fstatvfs(out->fd.get(), &disk) != 0) return;
    const std::uint64_t free = disk.f_bavail * disk.f_frsize;
    if (free < more || free - more < out->size + more)
      refusal = fmt::format(
          "takes more than is left free on the disk of temporary files ({} bytes have come, {} are "
          "free); set TMPDIR to a folder with room",
          out->size, free);
    looked = out->size + kBetween;
  }
  // Whether to go on.
  bool take(std::span<const std::byte> bytes) {
    if (status == 0) begin();
    if (!is_recording()) return (ignored += bytes.size()) <= kMostIgnored;
    if (refusal.empty() && bytes.size() > limits.largest.count - out->size)
      refusal = fmt::format("has more bytes than web.largest, {}; raise it", limits.largest);
    if (!refusal.empty() || error != 0) return false;
    if (out->data && bytes.size() > out->data.size() - out->size) spill(bytes.size());
    if (out->fd && out->size > looked) check_room(0);
    if (!refusal.empty() || error != 0) return false;
    if (out->fd) error = write_whole(out->fd.get(), bytes.data(), bytes.size(), out->size);
    if (error != 0) return false;
    if (out->data) std::memcpy(out->data.data() + out->size, bytes.data(), bytes.size());
    out->size += bytes.size();
    return true;
  }
  static std::size_t write(const char* bytes, std::size_t, std::size_t size, void* answer) {
    auto& self = *static_cast<Answer*>(answer);
    try {
      if (self.take(std::as_bytes(std::span(bytes, size)))) return size;
    } catch (...) {
      self.exception = std::current_exception();
    }
    return 0;
  }
  static std::size_t take_header(const char* line, std::size_t, std::size_t size, void* answer) {
    constexpr std::string_view kRange = "content-range:", kBlanks = " \t\r\n";
    std::string_view text(line, size);
    try {
      if (size > kRange.size() && strncasecmp(line, kRange.data(), kRange.size()) == 0) {
        text = text.substr(std::min(text.find_first_not_of(kBlanks, kRange.size()), size));
        static_cast<Answer*>(answer)->range = text.substr(0, text.find_last_not_of(kBlanks) + 1);
      }
      return size;
    } catch (...) {
      static_cast<Answer*>(answer)->exception = std::current_exception();
      return 0;
    }
  }
  // For handles that connect to public addresses only.
  static int open_socket(void* answer, int, const Address* to) {
    if (!is_private(to->address))
      return socket(to->family, to->socktype | SOCK_CLOEXEC, to->protocol);
    static_cast<Answer*>(answer)->has_private = true;
    return -1;
  }
};

// As browsers send it: what may not be in a URL as it is, in hexadecimal.
std::string escaped(const std::string& url) {
  std::string out;
  for (const char c : url) {
    if (c > ' ' && c < 0x7f && std::strchr("\"<>\\^`{|}", c) == nullptr)
      out += c;
    else
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

bool is_set(const char* variable) {
  const char* value = std::getenv(variable);  // NOLINT(concurrency-mt-unsafe)
  return value != nullptr && *value != '\0';
}

// Whether connections may be to a proxy, whose address says nothing.
bool may_have_proxy() {
  constexpr const char* kVariables[] = {"http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy",
                                        "ALL_PROXY"};
  return std::any_of(std::begin(kVariables), std::end(kVariables), is_set);
}

// `is_public`: connects to public addresses only, also if one that is kept is used again.
WebHandle make_handle(const WebLimits& limits, bool is_public) {
  WebHandle out(curl().init());
  if (!out) throw std::bad_alloc();
  const std::pair<Option, long> kNumbers[] = {
      {no_signal, 1},
      {buffer_size, 256 << 10},
      {connect_timeout, limits.patience},
      {low_speed_time, limits.patience},
      {low_speed_limit, static_cast<long>(limits.least_speed.count)}};
  for (const auto& [option, value] : kNumbers) curl().set(out.get(), option, value);
  curl().set(out.get(), user_agent, fmt::format("melflow/{}", kVersion).c_str());
  // Some servers send objects packed, whatever is asked for; libcurl unpacks them if any encoding
  // is set.
  curl().set(out.get(), accept_encoding, "identity");
  curl().set(out.get(), write_function, &Answer::write);
  curl().set(out.get(), header_function, &Answer::take_header);
  if (is_public) curl().set(out.get(), socket_function, &Answer::open_socket);
  // The program curl looks at the first one, OpenSSL at the others; libcurl at none.
  constexpr std::pair<const char*, Option> kCertificates[] = {
      {"SSL_CERT_FILE", ca_file}, {"SSL_CERT_DIR", ca_folder}, {"CURL_CA_BUNDLE", ca_file}};
  for (const auto& [variable, option] : kCertificates)
    // NOLINTNEXTLINE(concurrency-mt-unsafe)
    if (is_set(variable)) curl().set(out.get(), option, std::getenv(variable));
  return out;
}

// Reads one recording, in several tries.
class Request {
 public:
  Request(WebHandles& handles, const WebLimits& limits, BufferPool& pool, std::uint64_t in_memory)
      : handles_(handles), limits_(limits), pool_(pool), in_memory_(in_memory) {}

  // `what` names the recording in messages.
  Result<std::shared_ptr<RawBytes>> read(const std::string& url, const std::string& what) {
    for (int tries = 1;; ++tries) {
      auto out = asked(url);
      if (out) return out;
      if (is_about_bytes_) return out;
      const std::string problem = fmt::format("{}: {}", what, out.error().reason);
      if (is_final_) return ItemError::failed(problem);
      if (tries == kTries || slow_ == kSlowTries)
        return ItemError::failed(fmt::format("{}; tried {} times", problem, tries));
      const double own = 0.05 * (1 << tries) * random_factor();
      const double wait = std::max(own, static_cast<double>(std::exchange(asked_to_wait_, 0)));
      if (wait > left())
        return ItemError::failed(
            fmt::format("{}; the next request, after {:.0f} s, would be later than web.time, {} s",
                        problem, wait, limits_.time));
      std::this_thread::sleep_for(std::chrono::duration<double>(wait));
    }
  }

 private:
  static double random_factor() {
    thread_local std::minstd_rand random{std::random_device{}()};
    return std::uniform_real_distribution<>(1, 2)(random);
  }
  [[nodiscard]] double left() const {  // [s]
    return std::chrono::duration<double>(end_ - Clock::now()).count();
  }
  // One try, with what the server redirects it to.
  Result<std::shared_ptr<RawBytes>> asked(std::string url) {
    is_final_ = false;
    bool is_public = false;  // what has redirected
    for (int redirects = 0;; ++redirects) {
      WebHandle& handle = is_public && !has_proxy_ ? handles_.to_public : handles_.to_any;
      if (!handle) handle = make_handle(limits_, is_public && !has_proxy_);
      Answer answer{handle.get(), pool_, limits_, in_memory_};
      const int code = perform(answer, url);
      if (answer.exception) std::rethrow_exception(answer.exception);
      if (answer.error != 0)
        return about_bytes(
            fmt::format("cannot be kept in a temporary file: {}", std::strerror(answer.error)));
      const bool is_answer = code == 0 || answer.ignored > kMostIgnored;
      if (!is_answer) return failed(answer, code);
      if (answer.is_recording()) {
        if (answer.out->size == 0) return about_bytes("empty file (0 bytes)");
        return std::move(answer.out);
      }
      const char* next = nullptr;
      curl().info(handle.get(), redirect_url, &next);
      if (next == nullptr) return refused(handle.get(), answer.status);
      const char* address = nullptr;
      curl().info(handle.get(), primary_ip, &address);
      is_public = has_proxy_ ? !is_private_host(host_of(url))
                             : address == nullptr || !is_private_address(address);
      if (const char* why = wrong_redirect(url, next, is_public, redirects)) return final(why);
      url = next;
    }
  }
  int perform(Answer& answer, const std::string& url) {
    const double seconds = std::max(0.001, left());
    curl().set(answer.handle, url_of, url.c_str());
    curl().set(answer.handle, timeout_ms, static_cast<long>(1000 * seconds));
    for (const Option data : {write_data, header_data, socket_data})
      curl().set(answer.handle, data, &answer);
    const int code = curl().perform(answer.handle);
    curl().info(answer.handle, response_code, &answer.status);  // also of one without bytes
    return code;
  }
  // Why a redirect is not followed, or null.
  [[nodiscard]] const char* wrong_redirect(std::string_view from, std::string_view to,
                                           bool is_public, int redirects) const {
    if (redirects == kMostRedirects) return "is redirected too often";
    if (!WebReader::is_for(to)) return "is redirected to what is neither http nor https";
    if (from.starts_with("https:") && !to.starts_with("https:"))
      return "is redirected from https to http";
    // Without a proxy Answer::open_socket finds out.
    if (is_public && has_proxy_ && is_private_host(host_of(std::string(to)))) return kToPrivate;
    return nullptr;
  }
  Result<std::shared_ptr<RawBytes>> final(std::string why) {
    is_final_ = true;
    return ItemError::failed(std::move(why));
  }
  // An error about bytes that arrived: its message need not say where the recording is.
  Result<std::shared_ptr<RawBytes>> about_bytes(std::string why) {
    is_about_bytes_ = true;
    return ItemError::failed(std::move(why));
  }
  // Where there is no answer, or one that is not wanted.
  Result<std::shared_ptr<RawBytes>> failed(const Answer& answer, int code) {
    if (!answer.refusal.empty()) return final(answer.refusal);
    if (answer.has_private) return final(kToPrivate);
    if (code == unsupported_protocol || code == malformed_url) return final(curl().text_of(code));
    if (code != timed_out) return ItemError::failed(curl().text_of(code));
    if (left() < 0.1)
      return final(fmt::format("takes longer than web.time, {} s; raise it", limits_.time));
    ++slow_;
    return ItemError::failed(fmt::format(
        "less than {} bytes a second have come for {} s (web.least_speed, web.patience)",
        limits_.least_speed.count, limits_.patience));
  }
  Result<std::shared_ptr<RawBytes>> refused(void* handle, long status) {
    curl().info(handle, retry_after, &asked_to_wait_);
    is_final_ = status == 401 || status == 403 || status == 404 || status == 410;
    return ItemError::failed(fmt::format("the server answers {}", status));
  }

  WebHandles& handles_;
  const WebLimits& limits_;
  BufferPool& pool_;
  const std::uint64_t in_memory_;  // [bytes]
  const bool has_proxy_ = may_have_proxy();
  const Clock::time_point end_ = Clock::now() + std::chrono::seconds(limits_.time);
  // Of the last try.
  bool is_final_ = false;  // others would not help
  bool is_about_bytes_ = false;
  std::int64_t asked_to_wait_ = 0;  // [s]
  int slow_ = 0;                    // tries that were too slow
};

}  // namespace

void WebCloser::operator()(void* handle) const { curl().cleanup(handle); }

bool WebReader::is_for(std::string_view url) {
  return url.starts_with("http://") || url.starts_with("https://");
}
bool WebReader::is_here() { return curl().is_here; }

Result<std::shared_ptr<RawBytes>> WebReader::read(std::shared_ptr<const FileRef> file,
                                                  const std::string& url, BufferPool& pool,
                                                  std::uint64_t whole) const {
  WebHandles held;
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      held = std::move(idle_.back());
      idle_.pop_back();
    }
  }
  auto out = Request(held, limits_, pool, std::min(file->size, whole))
                 .read(escaped(with_escaped_user(url)), without_secrets(url));
  if (out) (*out)->file = std::move(file);
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(held));
  return out;
}

}  // namespace melflow
