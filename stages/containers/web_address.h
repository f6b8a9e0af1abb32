// What an address or a URL of the web leads to: whether that is in a private network.
#pragma once

#include <string>

struct sockaddr;

namespace melflow {

/// Whether an address is not of the public internet: this machine, a private or local network, a
/// group of machines, or reserved.
bool is_private(const sockaddr& address);
/// Likewise of its text, "10.0.0.1" or "::1"; not so of a text that is none.
bool is_private_address(const std::string& text);
/// The name or address of the host in a URL.
std::string host_of(const std::string& url);
/// Whether this machine finds a private address for the host.
bool is_private_host(const std::string& host);

}  // namespace melflow
