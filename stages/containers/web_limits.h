// The limits of what is read from the web, an option of file_list.
#pragma once

#include "pipeline/options/schema.h"

namespace melflow {

struct WebLimits {
  Bytes largest{std::uint64_t{4} << 30};
  Bytes least_speed{1024};  // [bytes/s]
  int patience = 30;        // [s]
  int time = 1800;          // [s]

  void describe(Schema& s) {
    s.field(
         "largest", largest,
         "the largest recording that is taken. None may take more of the disk of temporary files "
         "($TMPDIR) than is left free on it")
        .at_least(4096)
        .tuning();
    s.field("least_speed", least_speed,
            "a request fails where fewer bytes come in a second, for as long as patience")
        .range(1, 1 << 30)
        .tuning();
    s.field(
         "patience", patience,
         "how long a server may be too slow, or silent [s]; such a request is made twice at most")
        .range(1, 3600)
        .tuning();
    s.field("time", time,
            "how long a recording may take, with all requests for it and the waits between them, "
            "also those that a server asks for (Retry-After) [s]")
        .range(1, 1000000)
        .tuning();
  }
  friend bool operator==(const WebLimits&, const WebLimits&) = default;
};

}  // namespace melflow
