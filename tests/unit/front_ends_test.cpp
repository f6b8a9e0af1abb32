// The table of front ends: what presets say can be read, and names only what is there.

#include "stages/front_ends.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>

#include "pipeline/stage/registry.h"
#include "stages/features/mel/mel_presets.h"
#include "stages/front_end_nodes.h"

namespace melflow::front_ends_test {
namespace {

std::string stages_of(const FrontEnd& f) {
  std::string out;
  for (const FrontEndNode& node : f.nodes()) out += std::string(node.stage) + " ";
  return out;
}

NodeSpec written(const std::string& stage, const std::string& preset) {
  NodeSpec out{"rows", {}, Value::map({})};
  out.options.set("stage", Value::scalar(stage));
  out.options.set("from", Value::scalar("resample"));
  out.options.set("preset", Value::scalar(preset));
  return out;
}

}  // namespace

TEST_CASE("front ends: every node is one of a stage, and its options are read without a problem") {
  std::set<std::string_view> names;
  for (const FrontEnd& f : front_ends()) {
    CAPTURE(f.name);
    CHECK(names.insert(f.name).second);
    CHECK(!f.summary.empty());
    CHECK(!f.source.empty());
    CHECK((find_preset(f.name) != nullptr) != (f.sample_rate_of("samples") > 0));
    for (const FrontEndNode& node : f.nodes()) {
      CAPTURE(node.text);
      const StageInfo* stage = Registry::global().find(std::string(node.stage));
      REQUIRE(stage != nullptr);
      Value options = Value::map({});
      for (const auto& [name, value] : node.options)
        options.set(std::string(name), Value::scalar(std::string(value)));
      Problems problems;
      stage->configure()->schema().read(options, "", problems);
      CHECK(problems.str() == "");
    }
    if (const MelPreset* preset = find_preset(f.name)) CHECK(check(preset->options).empty());
  }
  CHECK(names.size() >= 80);
}

TEST_CASE("front ends: mel's options are those of an earlier entry that is mel alone") {
  for (const FrontEnd& f : front_ends())
    for (const FrontEndNode& node : f.nodes()) {
      if (node.stage != "mel" || node.find("preset").empty()) continue;
      CAPTURE(f.name);
      const FrontEnd* base = find_front_end(node.find("preset"));
      REQUIRE(base != nullptr);
      CHECK(base < &f);
      // As a node of a pipeline it would put in its own other nodes.
      CHECK((stages_of(*base) == "mel " || stages_of(*base) == "segment mel "));
    }
}

TEST_CASE("front ends: a node with a preset stands for all of its nodes but windows") {
  const auto chain = [](const std::string& stage, const std::string& preset) {
    std::string out;
    const NodeSpec spec = written(stage, preset);
    for (const NodeSpec& n : front_end_nodes(spec, stage, {spec}))
      out += n.name + " from " + n.options.find("from")->text() + "; ";
    return out;
  };
  CHECK(chain("mel", "kaldi") == "rows from resample; ");
  CHECK(chain("mel", "whisper") == "rows from resample; ");
  CHECK(chain("mel", "none") == "rows from resample; ");
  CHECK(chain("mel", "seamless") == "rows from resample; rows.stack from rows; ");
  CHECK(chain("mel", "neucodec") ==
        "rows.fit_samples from resample; rows.segment from rows.fit_samples; rows.batch from "
        "rows.segment; rows from rows.batch; rows.stack from rows; ");
  CHECK(chain("samples", "wav2vec2") ==
        "rows.normalize_samples from resample; rows.segment from rows.normalize_samples; rows from "
        "rows.segment; ");
}

}  // namespace melflow::front_ends_test
