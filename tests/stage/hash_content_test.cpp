// hash_content: the stored hash of a file's bytes, and of a file that has two states.
#include <doctest/doctest.h>

#include <cstring>
#include <memory>
#include <span>
#include <string>

#include "stages/facts.h"
#include "stages/files/content_hash.h"
#include "stages/manifest.h"
#include "stages/run_task.h"
#include "tests/stage/bench.h"

namespace melflow::test::hash_content_test {
namespace {

// Returns the hash stored for a file of these bytes, for which `noted` was stored before.
std::uint64_t noted_of(const std::string& bytes, std::uint64_t noted, Update update) {
  Bench bench("hash_content");
  const auto hashes = std::make_shared<ContentHashes>();
  hashes->of = {noted};
  Properties given;
  given.set(property::kContents, hashes);
  REQUIRE(bench.plan(given).errors.empty());
  set_task(bench.run().services, {.update = update});
  bench.stage().start(bench.run());
  auto in = std::make_shared<RawBytes>();
  in->file = std::make_shared<const FileRef>();
  in->data = bench.run().pool.lease(bytes.size());
  in->size = bytes.size();
  std::memcpy(in->data.data(), bytes.data(), bytes.size());
  CHECK(bench.single<RawBytes>(std::shared_ptr<const RawBytes>(in)).ok());
  return hashes->of[0];
}

}  // namespace

TEST_CASE("hash_content: in an update, a file of two states has no hash that is right for both") {
  const std::string bytes = "what is in the file now";
  const std::uint64_t hash = content_hash(std::as_bytes(std::span(bytes)));
  CHECK(noted_of(bytes, 0, Update::none) == hash);
  CHECK(noted_of(bytes, 0, Update::append) == hash);
  CHECK(noted_of(bytes, hash, Update::append) == hash);
  CHECK(noted_of(bytes, hash + 1, Update::append) == 0);  // the output's rows are of another state
  CHECK(noted_of(bytes, hash + 1, Update::none) == hash + 1);  // set by a filling pass
}

}  // namespace melflow::test::hash_content_test
