// The generated reference of stages and options, for people and for editors.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "config/reference.h"
#include "pipeline/stage/registry.h"
#include "tests/unit/config_stages.h"

namespace melflow::test::reference_test {

TEST_CASE("reference: the Markdown has every stage, every option and its limits") {
  const std::string text = stages_markdown(config_registry());
  CAPTURE(text);
  for (const char* part : {
           "## keep\n\nKeeps numbers.\n\n`number →`: a sink; nothing comes after it.\n",
           "## list\n\nLists numbers.\n\n`→ number`: a source; the graph starts with it; "
           "concurrency at most 1.\n",
           "`number → number`",
           "| `gain` | number | `1` | -60 to 60 dB | gain [dB] |\n",
           "| `block` | size (64KiB, 1GiB) | `\"1KiB\"` | at least 16B | bytes |\n",
           "| `mode` | choice | `\"soft\"` | soft, hard | how |\n",
           "| `span` | group |  |  | windows |\n| `span.length` | integer | `0` | 1 to 100 | "
           "samples |\n",
           "where \\| to look",
           "| `queue` | integer |  | 1 to 1048576 |",
       }) {
    INFO(part);
    CHECK(text.find(part) != std::string::npos);
  }
}

TEST_CASE("reference: the JSON Schema describes the nodes of each stage") {
  const auto schema = nlohmann::json::parse(schema_json(config_registry()));
  CHECK(schema["required"] == nlohmann::json{"version", "graph"});
  CHECK(schema["additionalProperties"] == false);
  CHECK(schema["properties"].contains("memory"));
  CHECK(schema["properties"]["graph"]["additionalProperties"]["$ref"] == "#/$defs/node");
  const auto& node = schema["$defs"]["node"];
  CHECK(node["properties"]["stage"]["enum"] == nlohmann::json{"keep", "list", "scale"});
  CHECK(node["allOf"].size() == 3);
  CHECK(node["allOf"][0]["if"]["properties"]["stage"]["const"] == "keep");
  CHECK(node["allOf"][0]["then"]["$ref"] == "#/$defs/keep");
  const auto& scale = schema["$defs"]["scale"];
  CHECK(scale["additionalProperties"] == false);
  const auto& gain = scale["properties"]["gain"];
  CHECK(gain["default"] == 1);
  CHECK(gain["anyOf"][0] == nlohmann::json{{"type", "number"}, {"minimum", -60}, {"maximum", 60}});
  CHECK(gain["anyOf"][1]["$ref"] == "#/$defs/variable");
  CHECK(scale["properties"]["mode"]["anyOf"][0]["enum"] == nlohmann::json{"soft", "hard"});
  CHECK(scale["properties"].contains("queue"));
  const auto& span = scale["properties"]["span"]["anyOf"][0];
  CHECK(span["properties"]["length"]["anyOf"][0]["minimum"] == 1);
  CHECK(span["additionalProperties"] == false);
  const auto& include = schema["$defs"]["list"]["properties"]["include"];
  CHECK(include["anyOf"][0]["anyOf"][1]["type"] == "array");
}

TEST_CASE("reference: the JSON Schema has choices as YAML reads them, and null for any option") {
  const auto schema = nlohmann::json::parse(schema_json(Registry::global()));
  const auto& mel = schema["$defs"]["mel"]["properties"];
  CHECK(mel["htk_mode"]["anyOf"][0]["enum"] == nlohmann::json{"false", "kaldi", "htk", false});
  CHECK(mel["norm"]["anyOf"][0]["enum"] == nlohmann::json{"none", "slaney", "1", "2", "inf", 1, 2});
  CHECK(mel["log_offset"]["anyOf"].back() == nlohmann::json{{"type", "null"}});
}

}  // namespace melflow::test::reference_test
