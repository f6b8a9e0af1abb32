#include "apps/report/page.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "apps/report/format.h"
#include "apps/report/report_json.h"

namespace melflow {
namespace {

using Json = nlohmann::ordered_json;

// page.html, in a raw string.
constexpr std::string_view kPage =
#include "page_html.inc"
    ;

// Turns "cores_used" into "cores used".
std::string in_words(std::string key) {
  std::replace(key.begin(), key.end(), '_', ' ');
  return html_text(key);
}

using Fields = std::vector<std::pair<std::string, std::string>>;  // names and contents, as HTML

std::string table(const Json& value);

std::string cell(const Json& value) {
  if (value.is_string()) {
    const std::string& text = value.get_ref<const std::string&>();
    return text.starts_with("data:audio/")
               ? fmt::format("<audio controls preload=\"none\" src=\"{}\"></audio>", text)
               : html_text(text);
  }
  if (value.is_number_float()) return fmt::format("{:.4g}", value.get<double>());
  if (!value.is_array()) return value.dump();
  if (!value.empty() && value.front().is_structured()) return table(value);
  std::string out;
  for (const Json& v : value) out += (out.empty() ? "" : "\n") + cell(v);
  return out;
}

// Lists what is in an object, and in the objects in it.
void list(Fields& out, const Json& object, const std::string& before = "") {
  for (const auto& [key, value] : object.items())
    if (value.is_object())
      list(out, value, before + in_words(key) + " ");
    else
      out.emplace_back(before + in_words(key), cell(value));
}

// An array of objects as a row of each, an object as a row of each field.
std::string table(const Json& value) {
  std::string out = "<table class=\"left\">";
  if (value.is_object()) {
    Fields fields;
    list(fields, value);
    for (const auto& [name, content] : fields)
      out += fmt::format("<tr><th>{}<td>{}</tr>\n", name, content);
    return out + "</table>\n";
  }
  std::vector<Fields> rows(value.size());
  std::vector<std::string> head;
  for (std::size_t i = 0; i < value.size(); ++i) {
    list(rows[i], value[i]);
    for (const auto& field : rows[i])
      if (std::find(head.begin(), head.end(), field.first) == head.end())
        head.push_back(field.first);
  }
  out += "<tr>";
  for (const std::string& name : head) out += "<th>" + name;
  for (const Fields& row : rows) {
    out += "</tr>\n<tr>";
    for (const std::string& name : head) {
      const auto it = std::find_if(row.begin(), row.end(),
                                   [&](const auto& field) { return field.first == name; });
      out += "<td>" + (it != row.end() ? it->second : "");
    }
  }
  return out + "</tr>\n</table>\n";
}

// The contents of the page if its script does not run: everything except the course of time.
std::string tables(const Json& report) {
  Json figures = Json::object();
  std::string out;
  for (const auto& [key, value] : report.items()) {
    if (key == "series" || (value.is_structured() && value.empty())) continue;
    if (!value.is_structured())
      figures[key] = value;
    else if (key == "config")
      out += "<h2>config</h2>\n<pre>" + html_text(json_text(value)) + "</pre>\n";
    else if (value.is_object() || value.front().is_object())
      out += "<h2>" + in_words(key) + "</h2>\n" + table(value);
    else
      out += "<h2>" + in_words(key) + "</h2>\n" + table(Json{{key, value}});
  }
  return table(figures) + out;
}

// In a script, "<" could begin its end, or a comment.
std::string inlined(const Json& report) {
  std::string out;
  for (const char c : json_text(report)) c == '<' ? out += "\\u003c" : out += c;
  return out;
}

// Only the page's own script has the nonce of the page's policy.
std::string nonce() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", device(), device(), device(), device());
}

}  // namespace

std::string page(const std::string& title, const Json& document, std::string_view script) {
  const std::string heading = title.starts_with("melflow: ") ? title.substr(9) : title;
  const std::pair<std::string_view, std::string> parts[] = {
      {"title", html_text(title)},
      {"nonce", nonce()},
      {"tables", "<h1>" + html_text(heading) + "</h1>\n" + tables(document)},
      {"report", inlined(document)},
      {"script", std::string(script)}};
  std::string out;
  std::string_view rest = kPage;
  for (std::size_t begin; (begin = rest.find("{{")) != rest.npos;) {
    const std::size_t end = rest.find("}}", begin);
    const std::string_view name = rest.substr(begin + 2, end - begin - 2);
    out += rest.substr(0, begin);
    out += std::find_if(std::begin(parts), std::end(parts), [&](const auto& part) {
             return part.first == name;
           })->second;
    rest.remove_prefix(end + 2);
  }
  return out.append(rest);
}

}  // namespace melflow
