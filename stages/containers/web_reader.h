// Recordings on the web, read by libcurl, which is loaded at run time.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/base/result.h"
#include "stages/containers/web_limits.h"
#include "stages/items.h"

namespace melflow {

class BufferPool;

struct WebCloser {
  void operator()(void* handle) const;
};
using WebHandle = std::unique_ptr<void, WebCloser>;  ///< of libcurl
/// The connections of one thread.
struct WebHandles {
  WebHandle to_any;
  WebHandle to_public;  ///< connects to public addresses only; null: not needed so far
};

class WebReader {
 public:
  /// Whether a URL begins with http:// or https://.
  static bool is_for(std::string_view url);
  /// Whether this machine has libcurl.
  static bool is_here();

  explicit WebReader(WebLimits limits) : limits_(limits) {}

  /// Reads what is behind a URL, in several tries and within the limits: up to `whole` and
  /// FileRef::size in memory, more in a temporary file. Follows redirects to http and https, but
  /// neither from https to http nor from a public to a private address. Proxies and certificates
  /// are those of the usual variables. Messages do not show the user, password and query of the
  /// URL. From any thread; as many connections are kept as threads read at once.
  [[nodiscard]] Result<std::shared_ptr<RawBytes>> read(std::shared_ptr<const FileRef> file,
                                                       const std::string& url, BufferPool& pool,
                                                       std::uint64_t whole) const;

 private:
  const WebLimits limits_;
  mutable std::mutex mutex_;
  mutable std::vector<WebHandles> idle_;  // with their connections
};

}  // namespace melflow
