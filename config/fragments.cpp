#include "config/fragments.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "config/document.h"
#include "config/top_level.h"
#include "pipeline/no_such_file.h"
#include "pipeline/text.h"

namespace melflow {
namespace {

namespace fs = std::filesystem;

constexpr const char* kUse = "use";
constexpr const char* kWith = "with";
constexpr const char* kFrom = "from";

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::vector<std::string> keys_of(const Value& map) {
  std::vector<std::string> out;
  for (const Value::Entry& e : map.entries()) out.push_back(e.key);
  return out;
}

std::string before_dot(const std::string& name) { return name.substr(0, name.find('.')); }

// The texts of a scalar or of a list, each with its place.
std::vector<Value> texts_of(const Value* from) {
  if (from == nullptr || from->is_null()) return {};
  return from->is_list() ? from->items() : std::vector<Value>{*from};
}

Value text_of(const std::vector<Value>& texts, const Mark& mark) {
  return texts.size() == 1 ? texts.front() : Value::list(texts, mark);
}

bool is_use(const Value& node) { return node.is_map() && node.find(kUse) != nullptr; }

std::string input_of(const Value& root) {
  const Value* input = root.find("input");
  return input != nullptr && input->is_scalar() ? input->text() : "in";
}

}  // namespace

bool Fragments::may_name(const Value& graph, const std::string& node) {
  if (!graph.is_map() || graph.find(node) != nullptr) return false;
  return std::any_of(graph.entries().begin(), graph.entries().end(), [&](const Value::Entry& e) {
    return is_use(e.value) && node.starts_with(e.key + "_");
  });
}

void Fragments::expand(Value& graph) {
  std::vector<Value::Entry> out;
  for (Value::Entry& e : graph.entries()) {
    if (is_use(e.value))
      use(e, out);
    else
      out.push_back(std::move(e));
  }
  graph.entries() = std::move(out);
  for (Value::Entry& e : graph.entries())
    if (e.value.is_map()) connect(e);
}

void Fragments::use(const Value::Entry& node, std::vector<Value::Entry>& out) {
  const std::vector<std::string> known{kUse, kFrom, kWith};
  for (const Value::Entry& e : node.value.entries())
    if (e.key == "stage")
      return error(e.key_mark,
                   fmt::format("{}: has both 'stage' and 'use'; a node runs a stage or uses a "
                               "fragment: remove one of the two",
                               node.key));
  for (const Value::Entry& e : node.value.entries())
    if (!contains(known, e.key))
      error(e.key_mark,
            fmt::format("{0}.{1}: a node that uses a fragment has only the options use, from and "
                        "with; set {1} on a node in the fragment, or by --set {0}_NODE.{1}",
                        node.key, excerpt(e.key)));
  const Value& name = *node.value.find(kUse);
  if (!name.is_scalar() || name.text().empty())
    return error(name.mark(), fmt::format("{}.use: this is not the path of a fragment", node.key));
  const fs::path beside = name.mark().file ? fs::path(*name.mark().file).parent_path() : "";
  const fs::path path = (beside / name.text()).lexically_normal();
  std::error_code unknown;
  const fs::path real = fs::weakly_canonical(path, unknown);
  const bool is_itself =
      name.mark().file && real == fs::weakly_canonical(*name.mark().file, unknown);
  if (is_itself || std::find(open_.begin(), open_.end(), real) != open_.end())
    return error(name.mark(),
                 fmt::format("{}.use: {} uses itself; put the nodes that it is to use into a file "
                             "of their own",
                             node.key, path.string()));
  if (open_.size() >= kMostDepth)
    return error(name.mark(), fmt::format("{}.use: at most {} fragments may be inside each other",
                                          node.key, kMostDepth));
  if (++uses_ == kMostUses + 1)
    error(name.mark(), fmt::format("{}.use: at most {} nodes of a graph may use fragments, with "
                                   "those inside of fragments",
                                   node.key, kMostUses));
  if (uses_ > kMostUses) return;
  Value root;
  if (!read(node, path.string(), root)) return;
  Value& graph = *root.find(kGraphKey);
  // What else is wrong inside would only follow from what is wrong so far.
  const std::size_t before = problems_.size();
  Variables scope(parameters(node, root));
  if (problems_.size() > before) return;
  if (may_miss_) scope.allow_missing();
  scope.expand(graph, problems_);
  asked_.insert(scope.asked().begin(), scope.asked().end());
  open_.push_back(real);
  expand(graph);
  open_.pop_back();
  if (problems_.size() > before) return;
  note_outputs(node, root, graph);
  rename(node, root, graph);
  for (Value::Entry& e : graph.entries()) out.push_back(std::move(e));
}

bool Fragments::read(const Value::Entry& node, const std::string& path, Value& root) {
  const Mark& used = node.value.find(kUse)->mark();
  Document document;
  std::error_code unknown;
  if (!fs::exists(path, unknown) && !unknown) {
    error(used, fmt::format("{}.use: {}: {}; the path begins at the folder of the file that it is "
                            "written in",
                            node.key, excerpt(path), no_such_file(path, {".yaml", ".yml"})));
    return false;
  }
  try {
    document = read_document(read_configuration(path), path);
  } catch (const ConfigError& e) {
    for (const Problem& p : e.problems().sorted())
      error(used, fmt::format("{}.use: {}: {}", node.key, excerpt(path), p.message));
    return false;
  }
  for (const Problem& p : document.problems.sorted()) error(p.mark, p.message);
  if (!document.complete) return false;
  root = std::move(document.root);
  const Mark start{std::make_shared<const std::string>(path), 1, 1};
  const std::vector<std::string> known{"version", "parameters", "input",
                                       "output",  "outputs",    kGraphKey};
  for (const Value::Entry& e : root.entries())
    if (!contains(known, e.key))
      error(e.key_mark,
            fmt::format("{}: a fragment has no such key{}; the keys are {}", excerpt(e.key),
                        did_you_mean(e.key, known), fmt::join(known, ", ")));
  const Value* version = root.find("version");
  if (version == nullptr || version->text() != std::to_string(kConfigVersion))
    error(version == nullptr ? start : version->mark(),
          fmt::format("version: write 'version: {}' at the top of a fragment", kConfigVersion));
  const Value* graph = root.find(kGraphKey);
  if (graph == nullptr || !graph->is_map() || graph->entries().empty()) {
    error(graph == nullptr ? start : graph->mark(),
          "graph: there are no nodes in this fragment; write each as NAME: {stage: STAGE, from: "
          "NODE}");
    return false;
  }
  for (const char* key : {"input", "output"})
    if (const Value* v = root.find(key); v != nullptr && (!v->is_scalar() || v->text().empty()))
      error(v->mark(), fmt::format("{}: this is not a name", key));
  for (const char* key : {"parameters", "outputs"})
    if (const Value* v = root.find(key); v != nullptr && !v->is_map())
      error(v->mark(), fmt::format("{}: this is not a map", key));
  return true;
}

// Variables of the fragment: what is given, then defaults; behind them those of the whole run.
std::vector<Assignment> Fragments::parameters(const Value::Entry& node, const Value& root) {
  std::vector<Assignment> out = vars_;
  Value defaults = Value::map({});
  if (const Value* v = root.find("parameters"); v != nullptr && v->is_map()) defaults = *v;
  Variables scope(vars_);
  if (may_miss_) scope.allow_missing();
  scope.expand(defaults, problems_);
  asked_.insert(scope.asked().begin(), scope.asked().end());
  const Value* with = node.value.find(kWith);
  if (with != nullptr && !with->is_map()) {
    error(with->mark(),
          fmt::format("{}.with: this is not a map such as {{RATE: 16000}}", node.key));
    with = nullptr;
  }
  const std::vector<std::string> names = keys_of(defaults);
  if (with != nullptr)
    for (const Value::Entry& e : with->entries()) {
      if (!contains(names, e.key))
        error(e.key_mark,
              fmt::format("{}.with.{}: the fragment has no such parameter{}; {}", node.key,
                          excerpt(e.key), did_you_mean(e.key, names),
                          names.empty() ? "it has none"
                                        : fmt::format("it has {}", fmt::join(names, ", "))));
      else if (!e.value.is_scalar() && !e.value.is_null())
        error(e.value.mark(),
              fmt::format("{}.with.{}: this is not a text", node.key, excerpt(e.key)));
    }
  for (const Value::Entry& e : defaults.entries()) {
    const Value* given = with != nullptr ? with->find(e.key) : nullptr;
    const Value& value = given != nullptr ? *given : e.value;
    Mark at;
    if (given != nullptr) at = given->given_at().file ? given->given_at() : given->mark();
    if (given != nullptr && given->is_null())
      out.push_back({e.key, "none", at});  // given as "not set"
    else if (value.is_null())
      error(node.key_mark,
            fmt::format(
                "{0}: the fragment's parameter {1} has no default; set it: with: {{{1}: VALUE}}",
                node.key, e.key));
    else
      out.push_back({e.key, value.text(), at});
  }
  return out;
}

// The nodes of the fragment get names of the graph, in what they take, too.
void Fragments::rename(const Value::Entry& node, const Value& root, Value& graph) {
  const std::string prefix = node.key + "_", input = input_of(root);
  const std::vector<std::string> names = keys_of(graph);
  const std::vector<Value> given = texts_of(node.value.find(kFrom));
  bool takes_input = false;
  for (Value::Entry& e : graph.entries()) {
    e.key = prefix + e.key;
    if (!e.value.is_map()) continue;
    Value* from = e.value.find(kFrom);
    std::vector<Value> texts;
    for (const Value& text : texts_of(from)) {
      if (text.is_scalar() && text.text() == input && !contains(names, input)) {
        takes_input = true;
        texts.insert(texts.end(), given.begin(), given.end());
        continue;
      }
      if (text.is_scalar() && !contains(names, before_dot(text.text())))
        error(text.mark(),
              fmt::format("{}.from: there is no node '{}' in this fragment{}; its input is called "
                          "'{}'",
                          e.key.substr(prefix.size()), excerpt(text.text()),
                          did_you_mean(text.text(), names), input));
      texts.push_back(Value::scalar(prefix + text.text(), text.mark()));
    }
    if (!texts.empty()) *from = text_of(texts, from->mark());
  }
  const std::string path = excerpt(node.value.find(kUse)->text());
  if (takes_input && given.empty())
    error(node.key_mark, fmt::format("{}: 'from' is missing; {} takes an input: write from: NODE",
                                     node.key, path));
  if (!takes_input && !given.empty())
    error(node.value.find(kFrom)->mark(),
          fmt::format("{}.from: {} takes no input: none of its nodes has 'from: {}'", node.key,
                      path, input));
}

void Fragments::note_outputs(const Value::Entry& node, const Value& root, const Value& graph) {
  Outputs& outputs = outputs_[node.key];
  outputs.clear();
  const std::vector<std::string> names = keys_of(graph);
  const auto note = [&](const std::string& name, const Value& of) {
    if (!contains(names, before_dot(of.text())))
      return error(of.mark(), fmt::format("{}: there is no node '{}' in this fragment{}",
                                          name.empty() ? "output" : "outputs." + name,
                                          excerpt(of.text()), did_you_mean(of.text(), names)));
    outputs[name] = node.key + "_" + of.text();
  };
  if (const Value* output = root.find("output"); output != nullptr && output->is_scalar())
    note("", *output);
  if (const Value* several = root.find("outputs"); several != nullptr && several->is_map())
    for (const Value::Entry& e : several->entries()) note(e.key, e.value);
}

// Who takes what a fragment gives takes it of the node inside.
void Fragments::connect(Value::Entry& node) {
  Value* from = node.value.find(kFrom);
  std::vector<Value> texts = texts_of(from);
  bool has_changed = false;
  for (Value& text : texts) {
    if (!text.is_scalar()) continue;
    const std::string user = before_dot(text.text());
    const auto it = outputs_.find(user);
    if (it == outputs_.end()) continue;
    const Outputs& outputs = it->second;
    const std::string name =
        text.text().size() > user.size() ? text.text().substr(user.size() + 1) : "";
    const auto found = outputs.find(name);
    if (found != outputs.end()) {
      text = Value::scalar(found->second, text.mark());
      has_changed = true;
      continue;
    }
    std::vector<std::string> known;
    for (const auto& [output, of] : outputs)
      known.push_back(output.empty() ? user : fmt::format("{}.{}", user, output));
    error(
        text.mark(),
        known.empty()
            ? fmt::format("{}.from: the fragment that {} uses gives nothing: it has no key output",
                          node.key, user)
            : fmt::format("{}.from: there is no output '{}'; the fragment gives {}", node.key,
                          excerpt(text.text()), fmt::join(known, ", ")));
    text = Value();
    has_changed = true;
  }
  if (!has_changed) return;
  std::erase_if(texts, [](const Value& v) { return v.is_null(); });
  if (!texts.empty()) *from = text_of(texts, from->mark());
}

}  // namespace melflow
