// Recordings on the web, read by libcurl, which is loaded at run time.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/base/result.h"
#include "stages/items.h"

namespace melflow {

class BufferPool;

class WebReader {
 public:
  /// Whether a URL begins with http:// or https://.
  static bool is_for(std::string_view url);
  /// Whether this machine has libcurl.
  static bool is_here();

  /// Reads what is behind a URL, in several tries: up to `whole` and FileRef::size in memory, more
  /// in a temporary file. Proxies and certificates are those of the usual variables. Messages do
  /// not show the user, password and query of the URL. From any thread; as many connections are
  /// kept as threads read at once.
  [[nodiscard]] Result<std::shared_ptr<RawBytes>> read(std::shared_ptr<const FileRef> file,
                                                       const std::string& url, BufferPool& pool,
                                                       std::uint64_t whole) const;

 private:
  struct Closer {
    void operator()(void* handle) const;
  };
  using Handle = std::unique_ptr<void, Closer>;
  [[nodiscard]] Handle handle() const;

  mutable std::mutex mutex_;
  mutable std::vector<Handle> idle_;  // with their connections
};

}  // namespace melflow
