#include <doctest/doctest.h>

#include <memory>

#include "pipeline/stage/run_context.h"

namespace melflow::run_services_test {
namespace {

struct Lamp {
  explicit Lamp(int brightness) : watts(brightness) {}
  int watts;
};
struct Bell {};

}  // namespace

TEST_CASE("services: one object of a type, made by who asks first") {
  RunServices services;
  CHECK(services.find<Lamp>() == nullptr);
  const auto lamp = services.find_or_make<Lamp>(40);
  CHECK(lamp->watts == 40);
  CHECK(services.find_or_make<Lamp>(60) == lamp);
  CHECK(lamp->watts == 40);
  CHECK(services.find<Bell>() == nullptr);

  const auto other = std::make_shared<Lamp>(100);
  services.add(other);
  CHECK(services.find<Lamp>() == other);
}

}  // namespace melflow::run_services_test
