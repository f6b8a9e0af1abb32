// Whether an address or a URL of the web leads into a private network.
#pragma once

#include <string>

struct sockaddr;

namespace melflow {

/// Whether an address is not of the public internet: this machine, a private or local network, a
/// group of machines, or reserved.
bool is_private(const sockaddr& address);
/// The same for an address as text, "10.0.0.1" or "::1"; false for any other text.
bool is_private_address(const std::string& text);
/// The name or address of the host in a URL.
std::string host_of(const std::string& url);
/// Whether this machine finds a private address for the host.
bool is_private_host(const std::string& host);

}  // namespace melflow
