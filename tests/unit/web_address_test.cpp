#include "stages/containers/web_address.h"

#include <doctest/doctest.h>

namespace melflow::web_address_test {

TEST_CASE("web addresses: what is not of the public internet is private") {
  for (const char* text : {"127.0.0.1",
                           "127.255.255.254",
                           "0.0.0.0",
                           "0.1.2.3",
                           "10.0.0.1",
                           "10.255.255.255",
                           "100.64.0.1",
                           "100.127.255.255",
                           "169.254.169.254",
                           "172.16.0.1",
                           "172.31.255.255",
                           "192.0.0.1",
                           "192.0.2.1",
                           "192.168.0.1",
                           "198.18.0.1",
                           "198.19.255.255",
                           "198.51.100.7",
                           "203.0.113.9",
                           "224.0.0.1",
                           "240.0.0.1",
                           "255.255.255.255",
                           "::",
                           "::1",
                           "fe80::1",
                           "fc00::1",
                           "fdff::1",
                           "ff02::1",
                           "::ffff:127.0.0.1",
                           "::ffff:10.1.2.3",
                           "::127.0.0.1",
                           "64:ff9b::10.0.0.1",
                           "64:ff9b:1::8.8.8.8",
                           "2002:7f00:1::",
                           "2002:a9fe:a9fe::1",
                           "2001:db8::1",
                           "2001::1"}) {
    CAPTURE(std::string(text));
    CHECK(is_private_address(text));
  }
  for (const char* text : {"1.1.1.1",
                           "8.8.8.8",
                           "9.255.255.255",
                           "11.0.0.0",
                           "100.63.255.255",
                           "100.128.0.0",
                           "126.255.255.255",
                           "128.0.0.0",
                           "169.253.255.255",
                           "169.255.0.0",
                           "172.15.255.255",
                           "172.32.0.0",
                           "192.0.1.1",
                           "192.167.255.255",
                           "192.169.0.0",
                           "198.17.255.255",
                           "198.20.0.0",
                           "223.255.255.255",
                           "2606:4700::1111",
                           "2a00:1450:4001::200e",
                           "2001:4860:4860::8888",
                           "::ffff:8.8.8.8",
                           "64:ff9b::8.8.8.8",
                           "2002:808:808::",
                           "no address",
                           ""}) {
    CAPTURE(std::string(text));
    CHECK_FALSE(is_private_address(text));
  }
}

TEST_CASE("web addresses: numbers that the system reads as addresses") {
  for (const char* text : {"2130706433", "0x7f000001", "0177.0.0.1", "127.1", "10.1"}) {
    CAPTURE(std::string(text));
    CHECK(is_private_host(text));
  }
  CHECK(is_private_host("localhost"));
}

TEST_CASE("web addresses: the host of a URL") {
  const std::pair<const char*, const char*> table[] = {
      {"http://a.b/c", "a.b"},
      {"https://a.b", "a.b"},
      {"http://a.b:80/c:9", "a.b"},
      {"http://u:p@a.b/c@d", "a.b"},
      {"http://u:p@x@a.b:8/", "a.b"},
      {"http://a.b?c=/@d", "a.b"},
      {"http://a.b#c@d", "a.b"},
      {"http://[::1]:8080/x", "::1"},
      {"http://u@[fe80::1%25eth0]/", "fe80::1%25eth0"},
      {"http://[::1", "::1"},
      {"http://", ""},
      {"", ""},
  };
  for (const auto& [url, host] : table) {
    CAPTURE(std::string(url));
    CHECK(host_of(url) == host);
  }
}

}  // namespace melflow::web_address_test
