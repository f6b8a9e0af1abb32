// Mel lengths given as times are converted to samples at the stage's rate wherever they are stored.
#include <doctest/doctest.h>

#include <string>

#include "stages/facts.h"
#include "stages/features/mel_front.h"
#include "stages/features/mel_stage_options.h"

namespace melflow::mel_times_test {
namespace {

MelStageOptions read(const Value& map) {
  MelStageOptions out;
  Schema schema;
  out.describe(schema);
  Problems problems;
  schema.read(map, "", problems);
  CHECK(problems.str() == "");
  return out;
}

Value with(const char* hop, const char* win_length) {
  return Value::map({{"n_fft", Value::scalar("512"), {}},
                     {"hop", Value::scalar(hop), {}},
                     {"win_length", Value::scalar(win_length), {}}});
}

std::string canonical(const MelStageOptions& options) {
  const MelOptions o = options.resolved();
  REQUIRE(check(o).empty());
  return to_json(MelStageOptions::canonical(o));
}

// Returns the planned options where only the edge before the stage gives the rate.
std::string planned(MelStageOptions options, double rate, std::string& problems) {
  MelFront front(std::move(options));
  (void)front.require({});
  Properties given;
  given.set(property::kSampleRate, rate);
  PlanCheck check([&](const std::string& option,
                      const std::string& message) { problems += option + ": " + message + "\n"; },
                  [](const std::string&, const std::string&) {},
                  [](const std::string&, const std::string&) {});
  (void)front.plan(given, check, {"cpu", ""});
  return front.is_planned() ? to_json(*front.settings()) : "";
}

}  // namespace

TEST_CASE("mel times: canonical settings are those of the samples") {
  MelStageOptions in_samples = read(with("160", "400")), in_time = read(with("10ms", "0.025s"));
  in_samples.sample_rate = in_time.sample_rate = 16000;
  CHECK(canonical(in_time) == canonical(in_samples));
  in_time.sample_rate = 8000;
  CHECK(in_time.resolved().hop == 80);
  CHECK(in_time.resolved().win_length == 200);
}

TEST_CASE("mel times: the rate may come from the stage before") {
  std::string problems;
  const std::string in_samples = planned(read(with("80", "200")), 8000, problems);
  CHECK(planned(read(with("10ms", "25ms")), 8000, problems) == in_samples);
  CHECK_FALSE(in_samples.empty());
  CHECK(problems == "");
  CHECK(planned(read(with("10ms", "400")), 11025, problems) == "");
  CHECK(problems ==
        "hop: is 10 ms, which is 110.25 samples at 11025 Hz; libraries round that differently: "
        "write 110 or 111 (samples)\n");
}

TEST_CASE("mel times: a length of no sample or of too many is refused as such") {
  std::string problems;
  CHECK(planned(read(with("0s", "400")), 16000, problems) == "");
  CHECK(problems.starts_with("hop: is 0 but must be "));
  problems.clear();
  CHECK(planned(read(with("100h", "400")), 16000, problems) == "");
  CHECK_MESSAGE(problems.starts_with("hop: is 2.14748e+09 but must be from 1 to 16777216 samples"),
                problems);
}

TEST_CASE("mel times: the context asked for before the rate is known suffices at every rate") {
  for (const char* drop_last : {"false", "true"})
    for (const char* align : {"center", "left"}) {
      CAPTURE(drop_last);
      CAPTURE(align);
      Value map = with("10ms", "12.5ms");
      map.set("drop_last", Value::scalar(drop_last));
      map.set("align", Value::scalar(align));
      map.set("snip_edges", Value::scalar("false"));
      map.set("center", Value::scalar("false"));
      const auto asked = MelFront(read(map)).require({}).get(requirement::kContext);
      REQUIRE(asked);
      for (const int rate : {8000, 16000, 32000}) {
        MelStageOptions known = read(map);
        known.sample_rate = rate;
        const auto needed = MelFront(known).require({}).get(requirement::kContext);
        REQUIRE(needed);
        CHECK(*asked >= *needed);
      }
    }
}

TEST_CASE("mel times: context is asked for where a hop would be too long at the highest rate") {
  Value map = with("30s", "512");
  map.set("drop_last", Value::scalar("true"));
  const auto asked = MelFront(read(map)).require({}).get(requirement::kContext);
  REQUIRE(asked);
  CHECK(*asked >= 30 * 16000 + 512);
}

TEST_CASE("mel times: a preset's own length, written in time, changes nothing of it") {
  Value map =
      Value::map({{"preset", Value::scalar("whisper"), {}}, {"hop", Value::scalar("10ms"), {}}});
  CHECK(read(map).preset_text() == "whisper");
  map.set("hop", Value::scalar("5ms"));
  CHECK(read(map).preset_text() == "whisper, with hop changed");
}

}  // namespace melflow::mel_times_test
