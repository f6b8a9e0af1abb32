#include "config/document.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <map>
#include <optional>
#include <sstream>

#include <fmt/format.h>

namespace melflow {
namespace {

// Aliases of aliases double with every line; a configuration is far below this.
constexpr std::size_t kMaxValues = 100'000;
constexpr const char* kMergeKey = "<<";

std::size_t count_values(const Value& v) {
  std::size_t n = 1;
  for (const Value& item : v.items()) n += count_values(item);
  for (const Value::Entry& e : v.entries()) n += count_values(e.value);
  return n;
}

class TreeBuilder final : public YAML::EventHandler {
 public:
  TreeBuilder(const std::string& text, std::shared_ptr<const std::string> file, Document& out)
      : text_(text), file_(std::move(file)), out_(out) {}

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    // The event of an empty value stands at the next token, which may be lines below.
    Mark place = mark_of(mark);
    if (!open_.empty() && open_.back().key && open_.back().key->mark.line != place.line)
      place = open_.back().key->mark;
    Value v;
    v.set_mark(place);
    add(std::move(v), anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto it = anchors_.find(anchor);
    Value v;
    v.set_mark(mark_of(mark));
    if (it == anchors_.end()) {
      problem(mark_of(mark), "this alias stands inside what it refers to");
    } else if ((values_ += count_values(it->second)) > kMaxValues) {
      if (!too_many_) problem(mark_of(mark), "aliases make this too large");
      too_many_ = true;
    } else {
      v = it->second;
    }
    add(std::move(v), 0);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    const bool quoted = tag == "!" || tag == "tag:yaml.org,2002:str";
    check_tag(mark, tag);
    check_quote(mark);
    add(Value::scalar(text, mark_of(mark), quoted), anchor);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    check_tag(mark, tag);
    open_.push_back({Value::list({}, mark_of(mark)), anchor, {}, {}});
  }
  void OnSequenceEnd() override { close(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    check_tag(mark, tag);
    open_.push_back({Value::map({}, mark_of(mark)), anchor, {}, {}});
  }
  void OnMapEnd() override {
    Open& top = open_.back();
    for (Value::Entry& e : top.merged)
      if (top.value.find(e.key) == nullptr) top.value.entries().push_back(std::move(e));
    close();
  }

 private:
  struct Key {
    std::string text;
    Mark mark;
    bool usable = true;
  };
  struct Open {
    Value value;
    YAML::anchor_t anchor = 0;
    std::optional<Key> key;  // read, its value not yet
    std::vector<Value::Entry> merged;
  };

  [[nodiscard]] Mark mark_of(const YAML::Mark& m) const {
    return {file_, m.line + 1, m.column + 1};
  }
  void problem(Mark mark, std::string message) {
    out_.problems.add(std::move(mark), std::move(message));
  }

  void check_tag(const YAML::Mark& mark, const std::string& tag) {
    if (tag.empty() || tag == "?" || tag == "!" || tag.starts_with("tag:yaml.org,2002:")) return;
    problem(mark_of(mark), fmt::format("the tag {} has no meaning here", tag));
  }

  // yaml-cpp takes the rest of the text for a string whose closing quote is missing.
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
    problem(mark_of(mark), fmt::format("the {} opened here is never closed", quote));
    out_.complete = false;
  }

  void close() {
    Open done = std::move(open_.back());
    open_.pop_back();
    add(std::move(done.value), done.anchor);
  }

  void add(Value v, YAML::anchor_t anchor) {
    ++values_;
    if (anchor != 0) anchors_[anchor] = v;
    if (open_.empty()) {
      out_.root = std::move(v);
      return;
    }
    Open& top = open_.back();
    if (top.value.is_list()) {
      top.value.items().push_back(std::move(v));
    } else if (!top.key) {
      top.key = Key{v.text(), v.mark(), v.is_scalar()};
      if (!v.is_scalar()) problem(v.mark(), "a key must be a plain text");
    } else {
      Key key = std::move(*top.key);
      top.key.reset();
      if (!key.usable) return;
      if (key.text == kMergeKey) return merge(top, key, std::move(v));
      add_entry(top, std::move(key), std::move(v));
    }
  }

  void add_entry(Open& top, Key key, Value v) {
    for (const Value::Entry& e : top.value.entries()) {
      if (e.key != key.text) continue;
      problem(key.mark, fmt::format("'{}' is already given at line {}, column {}", key.text,
                                    e.key_mark.line, e.key_mark.column));
      return;
    }
    top.value.entries().push_back({std::move(key.text), std::move(v), std::move(key.mark)});
  }

  void merge(Open& top, const Key& key, Value v) {
    const std::vector<Value> sources =
        v.is_list() ? std::move(v.items()) : std::vector<Value>{std::move(v)};
    for (const Value& source : sources) {
      if (!source.is_map()) {
        problem(key.mark, "'<<' takes a map, or a list of maps");
        return;
      }
      for (const Value::Entry& e : source.entries()) {
        const auto same = [&](const Value::Entry& other) { return other.key == e.key; };
        if (std::none_of(top.merged.begin(), top.merged.end(), same)) top.merged.push_back(e);
      }
    }
  }

  const std::string& text_;
  std::shared_ptr<const std::string> file_;
  Document& out_;
  std::vector<Open> open_;
  std::map<YAML::anchor_t, Value> anchors_;
  std::size_t values_ = 0;
  bool too_many_ = false;
};

// Only says whether there is a document, and where.
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

std::string line_of(const std::string& text, int line) {
  std::istringstream in(text);
  std::string out;
  for (int i = 0; i <= line && std::getline(in, out); ++i) {
  }
  return out;
}

// The parser's words are short; these are the slips behind most of them.
std::string hint(const std::string& line, const std::string& message) {
  const std::size_t first = line.find_first_not_of(" \t");
  const std::string indent = line.substr(0, std::min(first, line.size()));
  if (indent.find('\t') != indent.npos) return "; indent with spaces, this line begins with a tab";
  if (message.find("anchor is not defined") != message.npos)
    return "; a text that begins with * must be in quotes";
  const std::size_t variable = line.find("${");
  if (variable != line.npos && line.find_first_of("{[") < variable)
    return "; between { } and [ ] a variable must be in quotes: \"${NAME}\"";
  return {};
}

}  // namespace

bool is_null_text(const std::string& text) {
  return text == "null" || text == "~" || text == "Null" || text == "NULL";
}

Document read_document(const std::string& text, const std::string& name) {
  Document out;
  const auto file = std::make_shared<const std::string>(name);
  TreeBuilder builder(text, file, out);
  try {
    std::istringstream in(text);
    YAML::Parser parser(in);
    if (!parser.HandleNextDocument(builder)) {
      out.problems.add({file, 0, 0}, "there is nothing in it; `melflow init` writes a first one");
      out.complete = false;
      return out;
    }
    Probe next;
    // A syntax error in a second document is no news beside its being there.
    try {
      parser.HandleNextDocument(next);
    } catch (const YAML::Exception&) {
    }
    if (next.start) {
      out.problems.add({file, next.start->line + 1, next.start->column + 1},
                       "a second document begins here (after '---', or by its indentation), and "
                       "only one is read");
      out.complete = false;
    }
  } catch (const YAML::Exception& e) {
    out.complete = false;
    const int line = std::max(e.mark.line, 0);
    out.problems.add({file, line + 1, std::max(e.mark.column, 0) + 1},
                     "not valid YAML: " + e.msg + hint(line_of(text, line), e.msg));
  }
  return out;
}

}  // namespace melflow
