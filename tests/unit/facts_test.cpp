#include "pipeline/stage/facts.h"

#include <doctest/doctest.h>

#include <memory>
#include <set>
#include <stdexcept>

namespace melflow::facts_test {
namespace {

constexpr Property<double> kRate{"rate"};
constexpr Property<std::string> kName{"name"};
constexpr Property<std::int64_t> kRateAsNumber{"rate"};

constexpr Requirement<std::int64_t, merge::Largest> kContext{"context"};
constexpr Requirement<double, merge::Equal> kExactRate{"exact_rate"};
constexpr Requirement<std::set<int>, merge::Union> kTypes{"types"};
constexpr Requirement<std::shared_ptr<const int>, merge::First> kOwner{"owner"};
constexpr Requirement<double, merge::Largest> kContextAsNumber{"context"};

}  // namespace

TEST_CASE("facts: a property is what was set last, of the type of its key") {
  Properties p;
  CHECK_FALSE(p.get(kRate).has_value());
  CHECK(p.get_or(kRate, -1) == -1);
  p.set(kRate, 8000);
  p.set(kRate, 16000);
  p.set(kName, "speech");
  CHECK(p.get(kRate) == 16000);
  CHECK(p.get(kName) == "speech");
  p.erase(kRate);
  CHECK_FALSE(p.get(kRate).has_value());
  CHECK(p.get(kName) == "speech");
}

TEST_CASE("facts: each requirement is merged by the rule of its key") {
  const auto mine = std::make_shared<const int>(1);
  Requirements a, b;
  a.set(kContext, 5);
  a.set(kTypes, {1, 2});
  a.set(kOwner, mine);
  b.set(kContext, 3);
  b.set(kTypes, {2, 4});
  b.set(kOwner, std::make_shared<const int>(2));
  b.set(kExactRate, 8000);
  CHECK(a.merge(b).empty());
  CHECK(a.get(kContext) == 5);
  CHECK(a.get(kTypes) == std::set<int>{1, 2, 4});
  CHECK(a.get_or(kOwner, nullptr) == mine);
  CHECK(a.get(kExactRate) == 8000);  // only one asked for a rate
  b.set(kContext, 7);
  CHECK(a.merge(b).empty());  // equal rates are no contradiction
  CHECK(a.get(kContext) == 7);
}

TEST_CASE("facts: what contradicts is told with both values, and the first one stays") {
  Requirements a, b;
  a.set(kExactRate, 8000);
  b.set(kExactRate, 22050.5);
  const auto conflicts = a.merge(b);
  REQUIRE(conflicts.size() == 1);
  CHECK(conflicts[0].name == "exact_rate");
  CHECK(conflicts[0].mine == "8000");
  CHECK(conflicts[0].other == "22050.5");
  CHECK(a.get(kExactRate) == 8000);
}

TEST_CASE("facts: two keys of one name and different types are a defect, not a value") {
  Properties p;
  p.set(kRate, 1);
  CHECK_THROWS_AS((void)p.get(kRateAsNumber), std::logic_error);
  Requirements a, b;
  a.set(kContext, 1);
  CHECK_THROWS_AS((void)a.get(kContextAsNumber), std::logic_error);
  b.set(kContextAsNumber, 1);
  CHECK_THROWS_AS((void)a.merge(b), std::logic_error);
}

}  // namespace melflow::facts_test
