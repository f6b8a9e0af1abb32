#include "pipeline/base/secrets.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <utility>

#include <fmt/format.h>

namespace melflow {
namespace {

constexpr std::string_view kBeforeHost = "://";

bool is_alphanumeric(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

// Where the parts of a URL are in a text.
struct Url {
  std::size_t user;   // where "user:password" begins, or the host
  std::size_t host;   // behind the @
  std::size_t query;  // of the `?`; `end`: there is none
  std::size_t end;
  [[nodiscard]] bool has_user() const { return host > user; }
  [[nodiscard]] bool has_query() const { return end > query + 1; }
};

// Whether a text is the host and port of a server: "127.0.0.1:80", "localhost:80", "[::1]:80".
bool is_host_and_port(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == text.npos || colon + 1 == text.size()) return false;
  const std::string_view host = text.substr(0, colon);
  const bool is_host = host == "localhost" || host.starts_with('[') ||
                       (!host.empty() && host.find_first_not_of("0123456789.") == host.npos);
  return is_host && std::all_of(text.begin() + static_cast<std::ptrdiff_t>(colon) + 1, text.end(),
                                [](unsigned char c) { return std::isdigit(c) != 0; });
}

// Whether a URL in the middle of a message ends before the character at `at`.
bool ends_url(std::string_view text, std::size_t at) {
  const char c = text[at];
  if (static_cast<unsigned char>(c) <= ' ' || c == '"' || c == '<' || c == '>') return true;
  return c == '\'' && (at + 1 == text.size() || !is_alphanumeric(text[at + 1]));
}

// The next URL from `from` on. `is_whole`: whether it goes to the end of the text, as an option's
// value does. A password may have any character, so that the user's part ends at the last @.
std::optional<Url> next_url(std::string_view text, std::size_t from, bool is_whole) {
  std::size_t at = text.find(kBeforeHost, from);
  while (at != text.npos && (at == 0 || !is_alphanumeric(text[at - 1])))
    at = text.find(kBeforeHost, at + 1);
  if (at == text.npos) return std::nullopt;
  Url out{at + kBeforeHost.size(), 0, 0, text.size()};
  if (!is_whole) {
    out.end = out.user;
    while (out.end < text.size() && !ends_url(text, out.end)) ++out.end;
  }
  const std::string_view all = text.substr(out.user, out.end - out.user);
  const std::string_view first = all.substr(0, all.find_first_of("/?#"));
  const std::size_t last = all.rfind('@');
  const bool has_user =
      last != all.npos && (first.find('@') != first.npos ||
                           (first.find(':') != first.npos && !is_host_and_port(first)));
  out.host = out.user + (has_user ? last + 1 : 0);
  out.query = std::min(text.find('?', out.host), out.end);
  return out;
}

std::string without_secrets(std::string_view text, bool is_whole) {
  std::string out;
  std::size_t done = 0;
  while (const std::optional<Url> url = next_url(text, done, is_whole)) {
    out += text.substr(done, url->user - done);
    out += text.substr(url->host, url->query - url->host);
    done = url->end;
    // Behind a URL, a mark is probably the message's.
    if (!is_whole && url->has_query() &&
        std::string_view(",;:.)").find(text[done - 1]) != text.npos)
      --done;
  }
  return out.append(text.substr(done));
}

// Whether an argument of a function is a secret, by its name.
bool is_secret_name(std::string_view name) {
  std::string plain;
  for (const char c : name)
    if (is_alphanumeric(c)) plain += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  constexpr std::array kEnds{"password",     "passwd",      "passphrase",    "secret",
                             "credential",   "credentials", "apikey",        "accesskey",
                             "secretkey",    "privatekey",  "accountkey",    "authtoken",
                             "accesstoken",  "apitoken",    "hftoken",       "sastoken",
                             "sessiontoken", "bearertoken", "authorization", "connectionstring"};
  return plain == "token" || std::any_of(kEnds.begin(), kEnds.end(),
                                         [&](const char* end) { return plain.ends_with(end); });
}

// Whether a value below an argument with such a name is a secret.
bool is_secret(const Value& value) {
  return value.is_scalar() && !value.text().empty() && value.text() != "true" &&
         value.text() != "false";
}

// Where a value is: in settings, in the arguments of a function, or below one that is a secret.
enum class Within { settings, arguments, secret };

constexpr const char* kArguments = "arguments";

Within within(Within outer, const std::string& key) {
  if (outer == Within::arguments && is_secret_name(key)) return Within::secret;
  return outer == Within::settings && key == kArguments ? Within::arguments : outer;
}

Value without_secrets_within(const Value& settings, Within where) {
  if (where == Within::secret && is_secret(settings))
    return Value::scalar("***", settings.mark(), true);
  Value out = settings;
  for (Value& item : out.items()) item = without_secrets_within(item, where);
  for (Value::Entry& e : out.entries())
    e.value = without_secrets_within(e.value, within(where, e.key));
  if (!settings.is_scalar() || !next_url(settings.text(), 0, true)) return out;
  return Value::scalar(without_secrets(settings.text(), true), settings.mark(), settings.quoted());
}

// Writes settings as they are stored; `name` becomes that of a variable.
class Stored {
 public:
  explicit Stored(std::vector<Secret>& secrets) : secrets_(secrets) {}

  Value of(const Value& value, const std::string& name, Within where) {
    if (where == Within::secret && is_secret(value))
      return with_text(value, variable(name, value.text()));
    Value out = value;
    for (std::size_t i = 0; i < out.items().size(); ++i)
      out.items()[i] = of(out.items()[i], fmt::format("{}_{}", name, i), where);
    for (Value::Entry& e : out.entries())
      e.value = of(e.value, name.empty() ? e.key : name + "_" + e.key, within(where, e.key));
    return value.is_scalar() ? with_text(value, text_of(value.text(), name)) : out;
  }

 private:
  static Value with_text(const Value& old, std::string text) {
    return text == old.text() ? old : Value::scalar(std::move(text), old.mark(), old.quoted());
  }
  std::string text_of(const std::string& text, const std::string& name) {
    const std::optional<Url> url = next_url(text, 0, true);
    if (!url) return with_doubled_dollars(text);
    const std::string_view all = text;
    std::string out = with_doubled_dollars(all.substr(0, url->user));
    if (url->has_user())
      out += variable(name + "_user", all.substr(url->user, url->host - 1 - url->user)) + "@";
    out += with_doubled_dollars(all.substr(url->host, url->query - url->host));
    if (url->has_query()) out += "?" + variable(name + "_query", all.substr(url->query + 1));
    return out;
  }
  std::string variable(const std::string& name, std::string_view value) {
    std::string own(std::isdigit(static_cast<unsigned char>(name.front())) != 0 ? 1 : 0, '_');
    for (const char c : name)
      own +=
          is_alphanumeric(c) ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : '_';
    const auto is_other = [&](const std::string& one) {
      return std::any_of(secrets_.begin(), secrets_.end(),
                         [&](const Secret& s) { return s.variable == one && s.value != value; });
    };
    const std::string first = own;  // a-b and a_b have one name
    for (int n = 2; is_other(own); ++n) own = fmt::format("{}_{}", first, n);
    secrets_.push_back({own, std::string(value)});
    return fmt::format("${{{}}}", own);
  }

  std::vector<Secret>& secrets_;
};

}  // namespace

std::string_view scheme_of(std::string_view path) {
  const std::string_view scheme = path.substr(0, std::min(path.find(kBeforeHost), path.size()));
  const bool is_scheme = scheme.size() < path.size() &&
                         std::all_of(scheme.begin(), scheme.end(),
                                     [](char c) { return is_alphanumeric(c) || c == '+'; });
  return is_scheme ? scheme : std::string_view();
}

bool is_url(std::string_view path) {
  const std::string_view scheme = scheme_of(path);
  return !scheme.empty() && scheme != "file";
}

std::string with_doubled_dollars(std::string_view text) {
  std::string out;
  for (const char c : text) out.append(c == '$' ? 2 : 1, c);
  return out;
}

std::string without_secrets(std::string_view text) {
  // A URL without a message around it may have blanks in its password.
  return without_secrets(text, is_url(text) && text.find(": ") == text.npos);
}

Value without_secrets(const Value& settings, bool are_arguments) {
  return without_secrets_within(settings, are_arguments ? Within::arguments : Within::settings);
}

Value stored_settings(const Value& configuration, std::vector<Secret>& secrets) {
  Value out = configuration;
  Stored stored(secrets);
  for (Value::Entry& e : out.entries())
    e.value = stored.of(e.value, e.key == "graph" ? "" : e.key, Within::settings);
  return out;
}

std::string with_escaped_user(std::string url) {
  const std::optional<Url> parts = next_url(url, 0, true);
  if (!parts || !parts->has_user()) return url;
  std::string user;
  const std::string_view given =
      std::string_view(url).substr(parts->user, parts->host - 1 - parts->user);
  for (const char c : given) {
    const bool is_kept = is_alphanumeric(c) ||
                         std::string_view("-._~!$&'()*+,;=:%").find(c) != std::string_view::npos;
    user += is_kept ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return url.replace(parts->user, parts->host - 1 - parts->user, user);
}

}  // namespace melflow
