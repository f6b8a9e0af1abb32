#include <nlohmann/json.hpp>

#include "config/pipeline_tests.h"
#include "config/reference.h"
#include "config/top_level.h"

namespace melflow {
namespace {

using Json = nlohmann::ordered_json;

Json properties(const std::vector<Field>& fields);

Json number(const Field& f, const char* type) {
  Json out{{"type", type}};
  if (f.lowest) out[f.lowest_exclusive ? "exclusiveMinimum" : "minimum"] = *f.lowest;
  if (f.highest) out["maximum"] = *f.highest;
  return out;
}

// Returns the choices, and also as numbers or booleans those that YAML reads as such.
Json as_written(const std::vector<std::string>& choices) {
  Json values = choices;
  for (const std::string& choice : choices)
    if (Json plain = Json::parse(choice, nullptr, false); !plain.is_discarded())
      values.push_back(std::move(plain));
  return values;
}

// Returns a schema for a type, by its name in help; an unknown type allows anything.
Json value_schema(const Field& f, const std::string& type) {
  if (!f.children.empty())
    return {{"type", "object"},
            {"additionalProperties", false},
            {"properties", properties(f.children)}};
  if (!f.choices.empty() && !type.starts_with("list of ")) return {{"enum", as_written(f.choices)}};
  if (type == "integer" || type == "number") return number(f, type.c_str());
  if (type == "true or false") return {{"type", "boolean"}};
  if (type == "text") return {{"type", Json::array({"string", "number", "boolean"})}};
  if (type.starts_with("size") || type.starts_with("samples or time") ||
      type.starts_with("sample rate"))
    return {{"type", Json::array({"string", "integer"})}};
  if (type.starts_with("list of ")) {
    const Json item = value_schema(f, type.substr(8));
    return {{"anyOf", {item, {{"type", "array"}, {"items", item}}}}};
  }
  return Json::object();
}

Json property(const Field& f) {
  Json value = value_schema(f, f.type);
  if (!value.empty()) {
    // Any scalar may be a variable, and most options accept a word for their default.
    Json any = Json::array({std::move(value)});
    if (f.children.empty()) any.push_back({{"$ref", "#/$defs/variable"}});
    if (f.type == "choice or path") {  // what is no name of a choice, or a map that names a file
      any.push_back({{"type", "string"}, {"pattern", "[^a-z0-9_]"}});
      any.push_back({{"type", "object"}, {"required", {"file"}}});
    }
    if (f.default_text == "null")
      any.push_back({{"enum", {nullptr, "none", "auto", "null"}}});
    else
      any.push_back({{"type", "null"}});
    value = Json{{"anyOf", std::move(any)}};
  }
  Json out{{"description", f.doc}};
  if (f.default_text != "null") out["default"] = Json::parse(f.default_text, nullptr, false);
  out.update(value);
  return out;
}

Json properties(const std::vector<Field>& fields) {
  Json out = Json::object();
  for (const Field& f : fields) out[f.name] = property(f);
  return out;
}

Json stage_schema(const StageInfo& stage, const Json& common) {
  Json all = common;
  const auto config = stage.configure();
  all.update(properties(config->schema().fields()));
  const std::string of = stage.plugin.empty() ? "" : " (" + stage.plugin + ")";
  Json out{{"description", stage.summary + of}, {"additionalProperties", false}};
  if (stage.traits.kind == StageKind::source) all.erase("from");
  out["properties"] = std::move(all);
  return out;
}

}  // namespace

std::string schema_json(const Registry& registry) {
  NodeOptions node_options;
  Schema node_fields;
  node_options.describe(node_fields);
  const Json common = properties(node_fields.fields());

  Json defs{{"variable", {{"type", "string"}, {"pattern", R"(\$\{.+\})"}}}};
  Json choice = Json::array();
  for (const StageInfo* stage : registry.all()) {
    defs[stage->name] = stage_schema(*stage, common);
    choice.push_back(
        {{"if", {{"properties", {{"stage", {{"const", stage->name}}}}}, {"required", {"stage"}}}},
         {"then", {{"$ref", "#/$defs/" + stage->name}}}});
  }
  Json node{{"type", "object"}};
  node["required"] = {"stage"};
  node["properties"]["stage"] = {{"enum", registry.names()}};
  node["allOf"] = std::move(choice);
  defs["node"] = std::move(node);

  TopLevelOptions top;
  Schema top_fields;
  top.describe(top_fields);
  Json keys = properties(top_fields.fields());
  Json put_in = Json::object();  // nodes that may consist of options alone
  for (const StageInfo* stage : registry.all())
    if (stage->is_put_in)
      put_in[stage->name]["anyOf"] = {
          {{"$ref", "#/$defs/node"}},
          {{"$ref", "#/$defs/" + stage->name},
           {"not", {{"anyOf", {{{"required", {"stage"}}}, {{"required", {"from"}}}}}}}}};
  keys[kGraphKey] = {{"description", "the nodes, by name"},
                     {"type", "object"},
                     {"minProperties", 1},
                     {"properties", std::move(put_in)},
                     {"additionalProperties", {{"$ref", "#/$defs/node"}}}};
  PipelineTest test;
  Schema test_fields;
  test.describe(test_fields);
  keys[kTestsKey] = {{"description", "tests of the pipeline, by name, for `melflow test`"},
                     {"type", "object"},
                     {"additionalProperties",
                      {{"type", "object"},
                       {"required", {"expect"}},
                       {"additionalProperties", false},
                       {"properties", properties(test_fields.fields())}}}};
  return Json{{"$schema", "http://json-schema.org/draft-07/schema#"},
              {"title", "melflow pipeline"},
              {"type", "object"},
              {"required", {"version", kGraphKey}},
              {"additionalProperties", false},
              {"properties", std::move(keys)},
              {"$defs", std::move(defs)}}
             .dump(2) +
         "\n";
}

}  // namespace melflow
