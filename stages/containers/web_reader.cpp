#include "stages/containers/web_reader.h"

#include <dlfcn.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <random>
#include <span>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "pipeline/base/memory.h"
#include "pipeline/base/secrets.h"
#include "stages/containers/container.h"
#include "stages/files/temporary_file.h"
#include "stages/files/whole_io.h"
#include "stages/version.h"

namespace melflow {
namespace {

constexpr int kTries = 5;
constexpr long kQuiet = 60;  // [s] without a byte from a server, from which on a try has failed

// Of curl/curl.h: numbers that never change, in a library whose interface has been version 4 since
// 2006.
enum Option : int {
  low_speed_limit = 19,
  low_speed_time = 20,
  follow_location = 52,
  max_redirects = 68,
  connect_timeout = 78,
  buffer_size = 98,
  no_signal = 99,
  redirect_protocols = 182,
  write_data = 10001,
  url_of = 10002,
  user_agent = 10018,
  ca_file = 10065,
  ca_folder = 10097,
  write_function = 20011,
};
enum Info : int { response_code = 0x200002, content_length = 0x60000f };
constexpr int kUnsupportedProtocol = 1, kMalformedUrl = 3;

class Curl {
 public:
  Curl() {
    void* library = nullptr;
    for (const char* name : {"libcurl.so.4", "libcurl-gnutls.so.4"})
      if (library == nullptr) library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return;
    int (*global_init)(long) = nullptr;
    const auto get = [&]<class F>(F*& function, const char* name) {
      function = reinterpret_cast<F*>(dlsym(library, name));
      return function != nullptr;
    };
    is_here = get(init, "curl_easy_init") && get(set, "curl_easy_setopt") &&
              get(perform, "curl_easy_perform") && get(info, "curl_easy_getinfo") &&
              get(cleanup, "curl_easy_cleanup") && get(text_of, "curl_easy_strerror") &&
              get(global_init, "curl_global_init") && global_init(3) == 0;
  }

  bool is_here = false;
  void* (*init)() = nullptr;
  int (*set)(void*, int, ...) = nullptr;
  int (*perform)(void*) = nullptr;
  int (*info)(void*, int, ...) = nullptr;
  void (*cleanup)(void*) = nullptr;
  const char* (*text_of)(int) = nullptr;
};

// The library is never unloaded.
const Curl& curl() {
  static const Curl loaded;
  return loaded;
}

// An answer's bytes on their way into `out`.
struct Answer {
  void* handle;
  BufferPool& pool;
  std::uint64_t limit;  // [bytes] that may be held in memory
  std::shared_ptr<RawBytes> out = std::make_shared<RawBytes>();
  long status = 0;
  int error = 0;                           // errno of the temporary file
  std::exception_ptr exception = nullptr;  // must not pass through libcurl

  void begin() {
    curl().info(handle, response_code, &status);
    std::int64_t length = -1;  // not known
    curl().info(handle, content_length, &length);
    const auto size = static_cast<std::uint64_t>(length);
    if (length > 0 && size > limit)
      spill();
    else
      out->data = pool.lease(length > 0 ? size : limit);
  }
  void spill() {
    out->fd = temporary_file({out->data.data(), static_cast<std::size_t>(out->size)});
    if (!out->fd) error = errno;
    out->data = {};
  }
  bool take(std::span<const std::byte> bytes) {
    if (status == 0) begin();
    if (status >= 400) return true;  // not the recording
    if (out->data && bytes.size() > out->data.size() - out->size) spill();
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

void wait_before_try(int number) {  // 1: the second one
  thread_local std::minstd_rand random{std::random_device{}()};
  const double seconds = 0.05 * (1 << number) * std::uniform_real_distribution<>(1, 2)(random);
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

// Reads what the handle is set to; `what` names it. At most `limit` [bytes] in memory.
Result<std::shared_ptr<RawBytes>> tried(void* handle, const std::string& what, BufferPool& pool,
                                        std::uint64_t limit) {
  std::string problem;
  for (int i = 0; i < kTries; ++i) {
    if (i > 0) wait_before_try(i);
    Answer answer{handle, pool, limit};
    curl().set(handle, write_data, &answer);
    const int code = curl().perform(handle);
    if (answer.exception) std::rethrow_exception(answer.exception);
    if (answer.error != 0)
      return ItemError::failed(
          fmt::format("cannot be kept in a temporary file: {}", std::strerror(answer.error)));
    long status = 0;  // also of an answer without bytes
    curl().info(handle, response_code, &status);
    if (code == 0 && status < 400) {
      if (answer.out->size == 0) return ItemError::failed("empty file (0 bytes)");
      return std::move(answer.out);
    }
    problem = code != 0 ? fmt::format("{}: {}", what, curl().text_of(code))
                        : fmt::format("{}: the server answers {}", what, status);
    if (code == kUnsupportedProtocol || code == kMalformedUrl || status == 401 || status == 403 ||
        status == 404 || status == 410)
      return ItemError::failed(problem);
  }
  return ItemError::failed(fmt::format("{}; tried {} times", problem, kTries));
}

}  // namespace

void WebReader::Closer::operator()(void* handle) const { curl().cleanup(handle); }

bool WebReader::is_for(std::string_view url) {
  return url.starts_with("http://") || url.starts_with("https://");
}
bool WebReader::is_here() { return curl().is_here; }

WebReader::Handle WebReader::handle() const {
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      Handle out = std::move(idle_.back());
      idle_.pop_back();
      return out;
    }
  }
  Handle out(curl().init());
  if (!out) throw std::bad_alloc();
  constexpr std::pair<Option, long> kNumbers[] = {
      {follow_location, 1},      {max_redirects, 10},         {no_signal, 1},
      {buffer_size, 256 << 10},  {redirect_protocols, 1 | 2},  // HTTP and HTTPS
      {connect_timeout, kQuiet}, {low_speed_time, kQuiet},    {low_speed_limit, 1}};
  for (const auto& [option, value] : kNumbers) curl().set(out.get(), option, value);
  curl().set(out.get(), user_agent, fmt::format("melflow/{}", kVersion).c_str());
  curl().set(out.get(), write_function, &Answer::write);
  // The program curl looks at the first one, OpenSSL at the others; libcurl at none.
  constexpr std::pair<const char*, Option> kCertificates[] = {
      {"SSL_CERT_FILE", ca_file}, {"SSL_CERT_DIR", ca_folder}, {"CURL_CA_BUNDLE", ca_file}};
  for (const auto& [variable, option] : kCertificates) {
    const char* place = std::getenv(variable);  // NOLINT(concurrency-mt-unsafe)
    if (place != nullptr && *place != '\0') curl().set(out.get(), option, place);
  }
  return out;
}

Result<std::shared_ptr<RawBytes>> WebReader::read(std::shared_ptr<const FileRef> file,
                                                  const std::string& url, BufferPool& pool,
                                                  std::uint64_t whole) const {
  Handle held = handle();
  curl().set(held.get(), url_of, escaped(with_escaped_user(url)).c_str());
  auto out = tried(held.get(), without_secrets(url), pool, std::min(file->size, whole));
  if (out) (*out)->file = std::move(file);
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(held));
  return out;
}

}  // namespace melflow
