// URLs, and secrets in texts and settings: user and password before the host of a URL, the query
// behind its `?`, and arguments of functions called `token`, `password` and the like.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "pipeline/base/value.h"

namespace melflow {

/// Whether the path is a URL, "s3://b/clips", of something else than a local file.
bool is_url(std::string_view path);
/// The scheme of a URL, "s3"; "" for a path.
std::string_view scheme_of(std::string_view path);

/// A text without the users, passwords and queries of the URLs in it, for messages.
std::string without_secrets(std::string_view text);

/// Settings without secrets, for reports and fingerprints: URLs as in messages, other secrets as
/// "***". `are_arguments`: whether the map has the arguments of a function.
Value without_secrets(const Value& settings, bool are_arguments = false);

/// A secret, and the variable that stands for it in a stored configuration.
struct Secret {
  std::string variable, value;
};

/// A text as a configuration has to write it, where a `$` begins a variable: every `$` doubled.
std::string with_doubled_dollars(std::string_view text);

/// A configuration as it is stored, which reads back as the same: with every `$` doubled, and with
/// variables in place of secrets, which are added to `secrets`. A variable is called after its node
/// and option: ${FILES_ROOT_USER} is the "user:password" of the node files' URL,
/// ${FILES_ROOT_QUERY} what is behind its `?`, and ${FILES_ARGUMENTS_TOKEN} an argument.
/// Configurations that differ in secrets only are stored alike.
Value stored_settings(const Value& configuration, std::vector<Secret>& secrets);

/// Escapes what would end the user or password in a URL, as in "http://usr:p%40ss@host/". To be
/// used for requests: otherwise a password with `@` or `/` would give another host.
std::string with_escaped_user(std::string url);

}  // namespace melflow
