#include "pipeline/base/secrets.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "config/document.h"
#include "config/variables.h"
#include "pipeline/base/text.h"

namespace melflow::secrets_test {
namespace {

struct Row {
  std::string given, without;
};

Value read(const std::string& json) { return read_document(json, "test").root; }

// The configuration with the variables of its secrets filled in again.
Value filled_in(Value stored, const std::vector<Secret>& secrets) {
  std::vector<Assignment> given;
  for (const Secret& secret : secrets) given.push_back({secret.variable, secret.value});
  Problems problems;
  Variables(given, false).expand(stored, problems);
  CHECK(problems.str() == "");
  return stored;
}

}  // namespace

TEST_CASE("secrets: a message has neither user, password nor query of a URL") {
  for (const Row& row :
       std::vector<Row>{{"http://usr:pw@host/a.wav", "http://host/a.wav"},
                        {"http://usr:p@w/d@host/a.wav", "http://host/a.wav"},
                        {"http://usr:p/w@host:80/a.wav", "http://host:80/a.wav"},
                        {"http://usr:p?w#d@host/a.wav", "http://host/a.wav"},
                        {"http://usr:p w@host/a.wav", "http://host/a.wav"},
                        {"http://usr:12/3@host/a.wav", "http://host/a.wav"},
                        {"http://john.doe:2024/w@host/a.wav", "http://host/a.wav"},
                        {"http://:12/3@host/a.wav", "http://host/a.wav"},
                        {"https://host/a.wav?sig=abc#t", "https://host/a.wav"},
                        {"s3://key:secret@bucket/x?a=b", "s3://bucket/x"},
                        {"simplecache::https://u:p@host/x", "simplecache::https://host/x"},
                        {"zip://a.wav::https://u:p@host/x.zip?t=1", "zip://host/x.zip"},
                        {"cannot read 'http://u:p'q@host/x?t=1': no (ftp://u:p@h/y?t)",
                         "cannot read 'http://host/x': no (ftp://h/y)"},
                        {"http://u:p@host/x?t=abc: the server answers 404",
                         "http://host/x: the server answers 404"},
                        // Nothing secret.
                        {"http://127.0.0.1:80/a@b.wav", "http://127.0.0.1:80/a@b.wav"},
                        {"s3://bucket/a@b.wav", "s3://bucket/a@b.wav"},
                        {"a@b:c?d", "a@b:c?d"},
                        {"://x:y@z", "://x:y@z"},
                        {"", ""}}) {
    CAPTURE(row.given);
    CHECK(without_secrets(row.given) == row.without);
    CHECK(excerpt(row.given) == row.without);
  }
}

TEST_CASE("secrets: what is stored has variables in their place and reads back as the same") {
  const std::string given = R"({"version": 1, "graph": {
    "files": {"stage": "file_list", "root": "http://usr:p@s$/w@host/${x}/?sig=$1",
              "arguments": {"token": "abc$", "keys": ["a", "b"], "password": ["p1", {"of": "p2"}], "pad_token": "<pad>", "max_tokens": 5,
                            "options": {"client_secret": "s", "anon": true, "use_auth_token": false},
                            "urls": ["https://h/a?x=1", "https://h/b?x=2"]}},
    "a-b": {"stage": "python", "arguments": {"password": "one"}},
    "a_b": {"stage": "python", "arguments": {"password": "two"}},
    "mel": {"stage": "mel", "labels": "([a-z]+)$", "password": "of no function"}}})";
  const Value configuration = read(given);
  std::vector<Secret> secrets;
  const Value stored = stored_settings(configuration, secrets);
  const std::string text = to_json(stored);
  const Value& files = *stored.find("graph")->find("files");
  CHECK(files.find("root")->text() == "http://${FILES_ROOT_USER}@host/$${x}/?${FILES_ROOT_QUERY}");
  const Value& arguments = *files.find("arguments");
  CHECK(arguments.find("token")->text() == "${FILES_ARGUMENTS_TOKEN}");
  CHECK(arguments.find("pad_token")->text() == "<pad>");
  const Value& passwords = *arguments.find("password");
  CHECK(passwords.items()[0].text() == "${FILES_ARGUMENTS_PASSWORD_0}");
  CHECK(passwords.items()[1].find("of")->text() == "${FILES_ARGUMENTS_PASSWORD_1_OF}");
  CHECK(arguments.find("options")->find("client_secret")->text() ==
        "${FILES_ARGUMENTS_OPTIONS_CLIENT_SECRET}");
  CHECK(arguments.find("urls")->items()[1].text() == "https://h/b?${FILES_ARGUMENTS_URLS_1_QUERY}");
  for (const char* secret : {"p@s", "sig=", "abc", "one", "two"}) {
    CAPTURE(secret);
    CHECK(text.find(secret) == text.npos);
  }
  CHECK(text.find("${A_B_ARGUMENTS_PASSWORD_2}") != text.npos);
  CHECK(text.find("([a-z]+)$$") != text.npos);
  CHECK(text.find("of no function") != text.npos);
  CHECK(to_json(filled_in(read(text), secrets)) == to_json(configuration));
  // As it is stored again.
  std::vector<Secret> again;
  CHECK(to_json(stored_settings(filled_in(read(text), secrets), again)) == text);
}

TEST_CASE("secrets: a fingerprint does not depend on them") {
  const auto of = [](const std::string& user, const std::string& query, const std::string& token) {
    return to_json(without_secrets(read("{\"arguments\": {\"root\": \"http://" + user + "host/a?" +
                                        query + "\", \"token\": \"" + token + "\"}}")));
  };
  CHECK(of("u:p@", "sig=1", "a") == of("v:q@x@", "sig=2", "b"));
  CHECK(of("", "", "a") == of("u:p@", "sig=1", "b"));
}

TEST_CASE("secrets: a user's part is escaped before it is sent") {
  for (const Row& row : std::vector<Row>{
           {"http://usr:p@s/w?d#1@host/a?b@c", "http://usr:p%40s%2Fw%3Fd%231%40host%2Fa%3Fb@c"},
           {"http://usr:p@s/w?d#1@host/a?b", "http://usr:p%40s%2Fw%3Fd%231@host/a?b"},
           {"http://usr:p%40s@host/", "http://usr:p%40s@host/"},
           {"http://host/a@b", "http://host/a@b"}}) {
    CAPTURE(row.given);
    CHECK(with_escaped_user(row.given) == row.without);
  }
}

}  // namespace melflow::secrets_test
