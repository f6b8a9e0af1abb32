#include "pipeline/stage/registry.h"

#include <doctest/doctest.h>

#include <stdexcept>

namespace melflow::registry_test {
namespace {

struct Nothing {
  static constexpr const char* kName = "nothing";
  [[nodiscard]] std::size_t bytes() const { return 0; }
  [[nodiscard]] std::size_t rows() const { return 0; }
};

struct PassOptions {
  int step = 2;
  void describe(Schema& s) { s.field("step", step, "a step").range(1, 9); }
};

class Pass final : public Transform<Nothing, Nothing> {
 public:
  explicit Pass(const PassOptions& options) : step(options.step) {}
  Result<std::shared_ptr<const Nothing>> process(std::shared_ptr<const Nothing> in,
                                                 ItemContext&) const override {
    return in;
  }
  const int step;
};

const RegisterStage<Pass, PassOptions> registered{"test_pass", "Passes on what it gets.", true};

StageInfo named(const std::string& name) {
  StageInfo info;
  info.name = name;
  return info;
}

}  // namespace

TEST_CASE("registry: one line registers a stage with its ports, options and summary") {
  const StageInfo* info = Registry::global().find("test_pass");
  REQUIRE(info != nullptr);
  CHECK(info->summary == "Passes on what it gets.");
  CHECK(info->affects_features);
  CHECK(info->traits.kind == StageKind::transform);
  CHECK(info->traits.in == port_type<Nothing>());
  CHECK(std::string(info->traits.out.name) == "nothing");

  const auto config = info->configure();
  Problems problems;
  config->schema().read(Value::map({{"step", Value::scalar("7"), {}}}), "", problems);
  CHECK(problems.empty());
  const auto stage = config->make();
  CHECK(dynamic_cast<const Pass&>(*stage).step == 7);
  CHECK(dynamic_cast<const Pass&>(*info->configure()->make()).step == 2);
}

TEST_CASE("registry: names are sorted, unknown ones are not found, doubles are refused") {
  Registry registry;
  registry.add(named("b"));
  registry.add(named("a"));
  registry.add(named("c"));
  CHECK(registry.names() == std::vector<std::string>{"a", "b", "c"});
  CHECK(registry.all().size() == 3);
  CHECK(registry.find("b")->name == "b");
  CHECK(registry.find("d") == nullptr);
  CHECK_THROWS_AS(registry.add(named("a")), std::logic_error);
}

TEST_CASE("registry: stages of a plug-in are collected first") {
  Registry registry;
  registry.add(named("a"));
  const std::vector<StageInfo> added = registry.added_by([&] {
    registry.add(named("b"));
    registry.add(named("a"));  // also one that there is already
  });
  REQUIRE(added.size() == 2);
  CHECK(added.back().name == "a");
  CHECK(registry.names() == std::vector<std::string>{"a"});
  registry.add(named("b"));
  CHECK(registry.find("b") != nullptr);
}

}  // namespace melflow::registry_test
