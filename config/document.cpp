#include "config/document.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string_view>

#include <fmt/format.h>

#include "config/text_check.h"
#include "pipeline/base/input_file.h"
#include "pipeline/base/text.h"

namespace melflow {
namespace {

constexpr const char* kMergeKey = "<<";

struct Size {
  std::size_t values = 0, bytes = 0;
};

void add_size(const Value& v, Size& size) {
  ++size.values;
  size.bytes += v.text().size();
  for (const Value& item : v.items()) add_size(item, size);
  for (const Value::Entry& e : v.entries()) {
    size.bytes += e.key.size();
    add_size(e.value, size);
  }
}

class TreeBuilder final : public YAML::EventHandler {
 public:
  TreeBuilder(const std::string& text, std::shared_ptr<const std::string> file,
              const DocumentKind& kind, Document& out)
      : text_(text), file_(std::move(file)), kind_(kind), out_(out) {}

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    // The mark of an empty value is that of the next token, which may be lines below.
    Mark place = mark_of(mark);
    if (!open_.empty() && open_.back().key && open_.back().key->mark.line != place.line)
      place = open_.back().key->mark;
    const std::size_t at = std::min(static_cast<std::size_t>(std::max(mark.pos, 0)), text_.size());
    const std::string word = text_.substr(at, text_.find_first_of(" \t\r\n,]}", at) - at);
    Value v = is_null_text(word) ? Value() : Value::missing();
    v.set_mark(place);
    take({1, 0}, mark);
    put(std::move(v), anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto it = anchors_.find(anchor);
    Value v;
    v.set_mark(mark_of(mark));
    if (it == anchors_.end())
      problem(mark_of(mark),
              "this alias is inside the value that it refers to; write out here what is meant");
    else
      v = it->second;
    Size size;
    add_size(v, size);
    take(size, mark);
    put(std::move(v), 0);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    const bool quoted = tag == "!" || tag == "tag:yaml.org,2002:str";
    check_tag(mark, tag);
    check_quote(mark);
    if (text.find('\0') != text.npos)
      problem(mark_of(mark), "a text cannot have the character \\0 in it; remove it");
    take({1, text.size()}, mark);
    put(tagged(tag, Value::scalar(text, mark_of(mark), quoted)), anchor);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    check_tag(mark, tag);
    open(Value::list({}, mark_of(mark)), tag, anchor);
  }
  void OnSequenceEnd() override { close(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    check_tag(mark, tag);
    open(Value::map({}, mark_of(mark)), tag, anchor);
  }
  void OnMapEnd() override {
    Open& top = open_.back();
    for (Value::Entry& e : top.merged)
      if (top.keys.insert(e.key).second) top.value.entries().push_back(std::move(e));
    close();
  }

 private:
  struct Key {
    std::string text;
    Mark mark;
    bool usable = true, quoted = false;
  };
  struct Open {
    Value value;
    std::string tag;
    YAML::anchor_t anchor = 0;
    std::optional<Key> key;  // read already; its value is not
    std::set<std::string> keys, merged_keys;
    std::vector<Value::Entry> merged;
  };

  [[nodiscard]] Mark mark_of(const YAML::Mark& m) const {
    return {file_, m.line + 1, m.column + 1};
  }
  void problem(Mark mark, std::string message) {
    out_.problems.add(std::move(mark), std::move(message));
  }

  static bool is_plain(const std::string& tag) {
    return tag.empty() || tag == "?" || tag == "!" || tag.starts_with("tag:yaml.org,2002:");
  }
  void check_tag(const YAML::Mark& mark, const std::string& tag) {
    if (is_plain(tag) || kind_.keeps_tags) return;
    problem(mark_of(mark),
            fmt::format("the tag {} has no meaning in a pipeline; remove it", excerpt(tag)));
  }
  [[nodiscard]] Value tagged(const std::string& tag, Value v) const {
    if (is_plain(tag) || !kind_.keeps_tags) return v;
    const Mark mark = v.mark();
    return Value::map({{tag, std::move(v), mark}}, mark);
  }

  // Reports a missing closing quote: yaml-cpp takes the rest of the text as part of the string.
  void check_quote(const YAML::Mark& mark) {
    std::size_t at = mark.pos < 0 ? text_.size() : static_cast<std::size_t>(mark.pos);
    while (at < text_.size() && (text_[at] == '&' || text_[at] == '!')) {
      at = text_.find_first_of(" \t\n", at);
      at = text_.find_first_not_of(" \t\n", at);
    }
    if (at >= text_.size() || (text_[at] != '"' && text_[at] != '\'')) return;
    const char quote = text_[at];
    for (++at; at < text_.size(); ++at) {
      if (quote == '"' && text_[at] == '\\') {
        ++at;
      } else if (text_[at] == quote) {
        if (quote == '"' || at + 1 >= text_.size() || text_[at + 1] != quote) return;
        ++at;
      }
    }
    problem(mark_of(mark),
            fmt::format("this text begins with {0} but has no {0} at its end", quote));
    out_.complete = false;
  }

  // Counts values and bytes; refuses a text beyond the limits.
  void take(const Size& more, const YAML::Mark& mark) {
    size_.values += more.values;
    size_.bytes += more.bytes;
    if (size_.values > kind_.most_values)
      throw Refusal{mark_of(mark),
                    fmt::format("here the {} has more than {} keys and values, the "
                                "maximum (what an alias refers to is counted each time)",
                                kind_.name, kind_.most_values)};
    const std::size_t most = std::max(kMostExpanded, kind_.most_text);
    if (size_.bytes > most)
      throw Refusal{mark_of(mark), fmt::format("with its aliases resolved, the {} has more than "
                                               "{} MiB of text here, which is the most",
                                               kind_.name, most >> 20)};
  }

  void open(Value v, const std::string& tag, YAML::anchor_t anchor) {
    if (open_.size() >= kMostDepth)
      throw Refusal{
          v.mark(),
          fmt::format("maps and lists may be nested {} deep; this one is deeper", kMostDepth)};
    Open& top = open_.emplace_back();
    top.value = std::move(v);
    top.tag = tag;
    top.anchor = anchor;
  }

  void close() {
    Open done = std::move(open_.back());
    open_.pop_back();
    put(tagged(done.tag, std::move(done.value)), done.anchor);
  }

  void put(Value v, YAML::anchor_t anchor) {
    if (anchor != 0) anchors_[anchor] = v;
    if (open_.empty()) {
      out_.root = std::move(v);
      return;
    }
    Open& top = open_.back();
    if (top.value.is_list()) {
      top.value.items().push_back(std::move(v));
    } else if (!top.key) {
      top.key = Key{v.text(), v.mark(), v.is_scalar(), v.quoted()};
      if (!v.is_scalar()) problem(v.mark(), "this key is a map or a list; a key must be a text");
    } else {
      Key key = std::move(*top.key);
      top.key.reset();
      if (!key.usable) return;
      if (key.text == kMergeKey && !key.quoted) return merge(top, key, std::move(v));
      add_entry(top, std::move(key), std::move(v));
    }
  }

  void add_entry(Open& top, Key key, Value v) {
    std::vector<Value::Entry>& entries = top.value.entries();
    if (top.keys.insert(key.text).second) {
      entries.push_back({std::move(key.text), std::move(v), std::move(key.mark)});
      return;
    }
    const auto first = std::find_if(entries.begin(), entries.end(),
                                    [&](const Value::Entry& e) { return e.key == key.text; });
    problem(key.mark,
            fmt::format("'{}' is already given at line {}, column {}; remove one of the two",
                        excerpt(key.text), first->key_mark.line, first->key_mark.column));
  }

  void merge(Open& top, const Key& key, Value v) {
    const std::vector<Value> sources =
        v.is_list() ? std::move(v.items()) : std::vector<Value>{std::move(v)};
    for (const Value& source : sources) {
      if (!source.is_map()) {
        problem(
            key.mark,
            "'<<' puts the entries of a map here: give it a map or a list of maps, such as *name");
        return;
      }
      for (const Value::Entry& e : source.entries())
        if (top.merged_keys.insert(e.key).second) top.merged.push_back(e);
    }
  }

  const std::string& text_;
  std::shared_ptr<const std::string> file_;
  const DocumentKind& kind_;
  Document& out_;
  std::vector<Open> open_;
  std::map<YAML::anchor_t, Value> anchors_;
  Size size_;
};

// Only detects whether there is another document, and where.
class Probe final : public YAML::EventHandler {
 public:
  std::optional<YAML::Mark> start;
  void OnDocumentStart(const YAML::Mark& mark) override { start = mark; }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t,
                const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}
};

// Returns the usual cause of a parser's error, whose mark is where the parser gave up.
std::string_view hint_on(std::string_view reason) {
  using namespace YAML::ErrorMsg;
  struct Hint {
    std::string_view reason, text;
  };
  static const Hint hints[] = {
      {MAP_VALUE,
       "a ':' too many, or a line above lacks its ':' or the space behind it, or keys of one map "
       "begin in different columns"},
      {END_OF_MAP, "keys of one map begin in different columns, or a quote above is not closed"},
      {END_OF_SEQ, "the '-' of one list are in different columns"},
      {END_OF_MAP_FLOW,
       "a { here or above is not closed, or a comma between its entries is missing"},
      {END_OF_SEQ_FLOW, "a [ here or above is not closed, or a comma between its items is missing"},
      {FLOW_END, "another bracket is open here: { ends with } and [ with ]"},
      {TAB_IN_INDENTATION, "indent with spaces"},
      {UNKNOWN_ANCHOR, "a text that begins with * must be in quotes"},
      {ANCHOR_NOT_FOUND, "a text that begins with & must be in quotes"},
      {ALIAS_NOT_FOUND, "a text that begins with * must be in quotes"},
      {INVALID_ESCAPE, "in double quotes a \\ begins an escape; write the text in single quotes"},
      {UNKNOWN_TOKEN, "a text that begins with @, ` or % must be in quotes"}};
  for (const Hint& h : hints)
    if (reason.starts_with(h.reason)) return h.text;
  return "look here and above for brackets and quotes that are not closed";
}

// The last line up to `line` (from 0) that is indented by a tab, which YAML does not allow and the
// parser may take for something else; from 1, 0 for none.
int line_with_tab(const std::string& text, int line) {
  int out = 0;
  std::istringstream lines(text);
  std::string one;
  for (int i = 0; i <= line && std::getline(lines, one); ++i) {
    const std::size_t tab = one.find_first_not_of(' ');
    if (tab != one.npos && one[tab] == '\t') out = i + 1;
  }
  return out;
}

}  // namespace

bool is_null_text(const std::string& text) {
  return text == "null" || text == "~" || text == "Null" || text == "NULL";
}

Document read_document(const std::string& given, const std::string& name,
                       const DocumentKind& kind) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  Document out;
  const auto file = std::make_shared<const std::string>(name);
  const std::string text =
      given.substr(given.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0);
  if (const auto refusal = find_refusal(text, {file, 1, 1}, kind.name, kind.most_text)) {
    out.problems.add(refusal->mark, refusal->message);
    out.complete = false;
    return out;
  }
  TreeBuilder builder(text, file, kind, out);
  try {
    std::istringstream in(text);
    YAML::Parser parser(in);
    if (!parser.HandleNextDocument(builder)) {
      out.problems.add({file, 1, 1},
                       "this configuration is empty; `melflow init FILE` writes one to start from");
      out.complete = false;
      return out;
    }
    Probe next;
    // A syntax error in a second document would be redundant here.
    try {
      parser.HandleNextDocument(next);
    } catch (const YAML::Exception&) {
    }
    if (next.start) {
      out.problems.add({file, next.start->line + 1, next.start->column + 1},
                       fmt::format("a second document begins here (after '---', or by its "
                                   "indentation), but a {} is one; put all keys into the first",
                                   kind.name));
      out.complete = false;
    }
  } catch (const Refusal& refusal) {
    out.complete = false;
    out.problems.add(refusal.mark, refusal.message);
  } catch (const YAML::Exception& e) {
    const int line = std::max(e.mark.line, 0), column = std::max(e.mark.column, 0);
    const int tab = line_with_tab(text, line);
    const std::string hint = tab == 0 ? std::string(hint_on(e.msg))
                                      : fmt::format(
                                            "line {} is indented by a tab: indent with "
                                            "spaces",
                                            tab);
    if (out.complete)  // else the error follows from an unclosed quote
      out.problems.add({file, line + 1, column + 1},
                       fmt::format("this is not valid YAML: {}; {}", excerpt(e.msg, 200), hint));
    out.complete = false;
  }
  return out;
}

namespace {

std::string read_text(const std::string& path, const std::string& name) {
  const Mark mark{std::make_shared<const std::string>(name), 0, 0};
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored))
    throw ConfigError("this is a folder; name a YAML file", mark);
  InputFile file(path, Pipes::by_descriptor);
  std::string text = file.read(kMostText + 1);  // the caller reports where it is too long
  if (!file.problem().empty()) throw ConfigError(file.problem(), mark);
  return text;
}

std::optional<std::string> standard_input;

}  // namespace

void set_standard_input(std::string text) { standard_input = std::move(text); }

const std::string* given_standard_input() { return standard_input ? &*standard_input : nullptr; }

std::string read_configuration(const std::string& path) {
  if (path != kStandardInput) return read_text(path, path);
  if (!standard_input) standard_input = read_text("/dev/stdin", path);  // can be read only once
  return *standard_input;
}

}  // namespace melflow
