// Configurations of Lhotse, NeMo and SpeechBrain, in YAML.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <functional>
#include <set>

#include "pipeline/base/text.h"
#include "pipeline/options/option_type.h"
#include "stages/model_files/expression.h"
#include "stages/model_files/front_end_class.h"
#include "stages/model_files/model_formats.h"
#include "stages/model_files/model_text.h"

namespace melflow {
namespace {

std::string last_part(const std::string& name) { return name.substr(name.rfind('.') + 1); }

// The value at a path of keys, "model.sample_rate"; null if there is none.
const Value* value_at(const Value& root, std::string_view path) {
  const Value* at = &root;
  while (at != nullptr && !path.empty()) {
    const std::size_t dot = std::min(path.find('.'), path.size());
    at = at->find(path.substr(0, dot));
    path.remove_prefix(std::min(dot + 1, path.size()));
  }
  return at;
}

constexpr int kMostSteps = 50;  // from a reference to a value

// Replaces "${a.b}" by the value at a.b, as OmegaConf does.
Value interpolated(const Value& root, const Value& v, const std::string& key, Problems& problems) {
  Value out = v;
  for (int step = 0; out.is_scalar() && out.text().starts_with("${"); ++step) {
    const std::string text = out.text();
    const Value* to = text.ends_with('}') && step < kMostSteps
                          ? value_at(root, std::string_view(text).substr(2, text.size() - 3))
                          : nullptr;
    if (to == nullptr) {
      problems.add(v.mark(), fmt::format("{}: {} refers to no value of this file", excerpt(key),
                                         excerpt(text)));
      return Value();
    }
    out = *to;
    out.set_mark(v.mark());
  }
  return out;
}

// Resolves !ref of SpeechBrain: <key>, and arithmetic with such.
class References {
 public:
  References(const Value& root, Problems& problems) : root_(root), problems_(problems) {}

  Value resolved(const Value& v, const std::string& key) {
    if (!v.is_map() || v.entries().size() != 1) return v;
    const Value::Entry& e = v.entries().front();
    if (e.key != "!ref") {
      if (e.key.starts_with('!'))
        problems_.add(e.key_mark, fmt::format("{}: the tag {} makes it what is not read here; "
                                              "write its value beside file",
                                              excerpt(key), excerpt(e.key)));
      return v;
    }
    try {
      return value_of(term_of(e.value), e.value.mark());
    } catch (const ExpressionError& error) {
      problems_.add(e.value.mark(), fmt::format("{}: !ref {}: {}", excerpt(key),
                                                excerpt(e.value.text()), error.what()));
      return Value();
    }
  }

 private:
  static Value value_of(const Term& term, const Mark& mark) {
    if (term.number() != nullptr) return Value::scalar(number_text(*term.number()), mark);
    if (term.truth() != nullptr) return Value::scalar(*term.truth() ? "true" : "false", mark);
    if (term.text() != nullptr) return Value::scalar(*term.text(), mark, true);
    return {};
  }

  Term term_of(const Value& reference) {
    // A key in <> becomes a name of the expression.
    std::string text;
    std::vector<std::string> names;
    for (std::string_view rest = reference.text(); !rest.empty();) {
      const std::size_t end = rest.front() == '<' ? rest.find('>') : 0;
      if (rest.front() == '<' && end != rest.npos) {
        text += fmt::format("key{}", names.size());
        names.emplace_back(rest.substr(1, end - 1));
        rest.remove_prefix(end + 1);
      } else {
        text += rest.front();
        rest.remove_prefix(1);
      }
    }
    if (text.find(" if ") != text.npos) throw ExpressionError("is no reference or arithmetic");
    return evaluate(text, [&](std::string_view name) {
      for (std::size_t i = 0; i < names.size(); ++i)
        if (name == fmt::format("key{}", i)) return term_at(names[i]);
      throw ExpressionError("is no reference or arithmetic");
    });
  }

  Term term_at(const std::string& key) {
    const Value* value = root_.find(key);
    if (value == nullptr)
      throw ExpressionError(fmt::format("there is no key {} in this file", excerpt(key)));
    if (!under_way_.insert(key).second || under_way_.size() > kMostSteps)
      throw ExpressionError(fmt::format("{} refers to itself", excerpt(key)));
    Term out;
    if (value->is_map() && value->entries().size() == 1 && value->entries().front().key == "!ref")
      out = term_of(value->entries().front().value);
    else
      out = plain(*value, key);
    under_way_.erase(key);
    return out;
  }

  static Term plain(const Value& v, const std::string& key) {
    double number = 0;
    if (v.is_null()) return {};
    if (!v.is_scalar())
      throw ExpressionError(fmt::format("{} is no number, text or truth value", excerpt(key)));
    if (!v.quoted() && (v.text() == "true" || v.text() == "True")) return true;
    if (!v.quoted() && (v.text() == "false" || v.text() == "False")) return false;
    if (detail::parse_number(v, number).empty()) return number;
    return v.text();
  }

  const Value& root_;
  Problems& problems_;
  std::set<std::string> under_way_;
};

constexpr std::string_view kNew = "!new:speechbrain.lobes.features.";

// Visits every value that a tag makes an object of a class.
void for_tagged(const Value& v, const std::string& key,
                const std::function<void(const std::string&, const Value::Entry&)>& visit) {
  for (const Value& item : v.items()) for_tagged(item, key, visit);
  for (const Value::Entry& e : v.entries()) {
    if (e.key.starts_with("!new:")) visit(key, e);
    for_tagged(e.value, e.key.starts_with('!') ? key : e.key, visit);
  }
}

}  // namespace

std::optional<ModelInstance> lhotse_instance(const Value& root, FileSurroundings& beside,
                                             Problems& /*problems*/) {
  const Value* of = beside.given->find("feature_type");
  if (of == nullptr) of = root.find("feature_type");
  if (of == nullptr || !of->is_scalar()) return std::nullopt;
  return ModelInstance{&kLhotse, of->text(), of->mark(), root};
}

std::optional<ModelInstance> nemo_instance(const Value& root, FileSurroundings& /*beside*/,
                                           Problems& problems) {
  const Value* of = root.find("preprocessor");
  if (of == nullptr && root.find("model") != nullptr) of = root.find("model")->find("preprocessor");
  if (of == nullptr) of = &root;
  std::string target = text_at(*of, "_target_");
  if (target.empty()) target = text_at(*of, "cls");
  if (!of->is_map() || target.find("nemo.") != 0) return std::nullopt;
  ModelInstance out{&kNemo, last_part(target), of->mark(), Value::map({}, of->mark())};
  if (const Value* key = of->find("_target_")) out.mark = key->mark();
  const Value* params = of->find("params");
  for (const Value::Entry& e : (params != nullptr && params->is_map() ? *params : *of).entries())
    out.keys.entries().push_back({e.key, interpolated(root, e.value, e.key, problems), e.key_mark});
  if (const Value* version = root.find("nemo_version"); version != nullptr && version->is_scalar())
    out.keys.set("nemo_version", Value::scalar(version->text(), version->mark(), true));
  return out;
}

std::optional<ModelInstance> speechbrain_instance(const Value& root, FileSurroundings& beside,
                                                  Problems& problems) {
  struct Found {
    std::string key;
    const Value::Entry* of;
  };
  std::vector<Found> all;
  std::vector<const Value*> normalizations;
  for_tagged(root, "", [&](const std::string& key, const Value::Entry& e) {
    if (e.key.starts_with(kNew)) all.push_back({key, &e});
    if (last_part(e.key) == "InputNormalization") normalizations.push_back(&e.value);
  });
  if (all.empty()) return std::nullopt;
  const Value* chosen = beside.given->find("object");
  const auto at =
      chosen == nullptr ? all.begin() : std::find_if(all.begin(), all.end(), [&](const Found& f) {
        return f.key == chosen->text();
      });
  std::string keys;
  for (const Found& f : all) keys += (keys.empty() ? "" : ", ") + excerpt(f.key);
  if (at == all.end() || (chosen == nullptr && all.size() > 1)) {
    problems.add(root.mark(), fmt::format("several objects of the file make features: {}; write "
                                          "{{file: FILE, object: {}}}",
                                          keys, excerpt(all.front().key)));
    return ModelInstance{&kSpeechBrain, "", root.mark(), Value::map({})};
  }
  References references(root, problems);
  ModelInstance out{&kSpeechBrain, last_part(at->of->key), at->of->key_mark,
                    Value::map({}, at->of->key_mark)};
  for (const Value::Entry& e : at->of->value.entries())
    out.keys.entries().push_back({e.key, references.resolved(e.value, e.key), e.key_mark});
  if (normalizations.empty()) return out;
  Value normalization = Value::map({}, root.mark());
  if (normalizations.size() == 1)
    for (const Value::Entry& e : normalizations.front()->entries())
      normalization.entries().push_back({e.key, references.resolved(e.value, e.key), e.key_mark});
  if (normalization.find("norm_type") == nullptr)
    normalization.set("norm_type",
                      Value::scalar(normalizations.size() == 1 ? "global" : "several"));
  out.keys.set("normalization", std::move(normalization));
  return out;
}

}  // namespace melflow
