// libcurl, loaded at run time where the machine has it.
#pragma once

#include <sys/socket.h>

namespace melflow {

// Numbers of curl/curl.h, which never change: the library's interface has been version 4 since
// 2006.
namespace libcurl {

enum Option : int {
  low_speed_limit = 19,
  low_speed_time = 20,
  connect_timeout = 78,
  buffer_size = 98,
  no_signal = 99,
  timeout_ms = 155,
  write_data = 10001,
  url_of = 10002,
  user_agent = 10018,
  header_data = 10029,
  ca_file = 10065,
  ca_folder = 10097,
  accept_encoding = 10102,
  socket_data = 10164,
  write_function = 20011,
  header_function = 20079,
  socket_function = 20163,
};
enum Info : int {
  response_code = 0x200002,
  content_length = 0x60000f,
  redirect_url = 0x10001f,
  primary_ip = 0x100020,
  retry_after = 0x600039
};
enum Code : int { unsupported_protocol = 1, malformed_url = 3, timed_out = 28 };
struct Address {  // struct curl_sockaddr
  int family, socktype, protocol;
  unsigned size;
  sockaddr address;
};

}  // namespace libcurl

class Curl {
 public:
  Curl();

  bool is_here = false;
  void* (*init)() = nullptr;
  int (*set)(void*, int, ...) = nullptr;
  int (*perform)(void*) = nullptr;
  int (*info)(void*, int, ...) = nullptr;
  void (*cleanup)(void*) = nullptr;
  const char* (*text_of)(int) = nullptr;
};

/// It is never unloaded.
const Curl& curl();

}  // namespace melflow
