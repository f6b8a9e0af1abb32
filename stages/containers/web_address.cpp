#include "stages/containers/web_address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <memory>

namespace melflow {
namespace {

struct Range {
  std::uint32_t begin;
  int bits;
};

// The special-purpose addresses of IANA that are not reachable globally (RFC 6890), and multicast.
bool is_private_4(std::uint32_t address) {
  constexpr auto of = [](int a, int b, int c) {
    return static_cast<std::uint32_t>(a << 24 | b << 16 | c << 8);
  };
  constexpr Range kRanges[] = {
      {of(0, 0, 0), 8},      {of(10, 0, 0), 8},    {of(100, 64, 0), 10},   {of(127, 0, 0), 8},
      {of(169, 254, 0), 16}, {of(172, 16, 0), 12}, {of(192, 0, 0), 24},    {of(192, 0, 2), 24},
      {of(192, 168, 0), 16}, {of(198, 18, 0), 15}, {of(198, 51, 100), 24}, {of(203, 0, 113), 24},
      {0xe0000000, 3},
  };
  return std::any_of(std::begin(kRanges), std::end(kRanges), [address](const Range& range) {
    return (address ^ range.begin) >> (32 - range.bits) == 0;
  });
}

// Outside of 2000::/3, the global addresses, only those that stand for a version 4 address can be
// public.
bool is_private_6(const std::array<std::uint8_t, 16>& a) {
  const auto begins = [&a](std::initializer_list<std::uint8_t> bytes) {
    return std::equal(bytes.begin(), bytes.end(), a.begin());
  };
  const auto v4 = [&a](std::size_t at) {
    std::uint32_t out = 0;
    for (std::size_t i = at; i < at + 4; ++i) out = out << 8 | a[i];
    return out;
  };
  if (begins({0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff}) ||   // mapped
      begins({0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0}))  // NAT64
    return is_private_4(v4(12));
  if (begins({0x20, 0x02})) return is_private_4(v4(2));  // 6to4
  return (a[0] & 0xe0) != 0x20 || begins({0x20, 0x01, 0x0d, 0xb8}) || begins({0x20, 0x01, 0, 0});
}

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;
Addresses addresses_of(const std::string& host, int flags) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = flags;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), nullptr, &wanted, &found) != 0) found = nullptr;
  return {found, &freeaddrinfo};
}

bool has_private(const Addresses& addresses) {
  for (const addrinfo* one = addresses.get(); one != nullptr; one = one->ai_next)
    if (is_private(*one->ai_addr)) return true;
  return false;
}

}  // namespace

bool is_private(const sockaddr& address) {
  if (address.sa_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, &address, sizeof(v4));
    return is_private_4(ntohl(v4.sin_addr.s_addr));
  }
  if (address.sa_family != AF_INET6) return true;
  sockaddr_in6 v6{};
  std::memcpy(&v6, &address, sizeof(v6));
  return is_private_6(std::to_array(v6.sin6_addr.s6_addr));
}

bool is_private_address(const std::string& text) {
  return has_private(addresses_of(text, AI_NUMERICHOST));
}

std::string host_of(const std::string& url) {
  const std::size_t scheme = url.find("://");
  std::string out = scheme == url.npos ? url : url.substr(scheme + 3);
  out.resize(std::min(out.find_first_of("/?#\\"), out.size()));
  out.erase(0, out.rfind('@') + 1);
  if (out.starts_with('[')) return out.substr(1, std::min(out.find(']'), out.size()) - 1);
  return out.substr(0, out.find(':'));
}

bool is_private_host(const std::string& host) { return has_private(addresses_of(host, 0)); }

}  // namespace melflow
