// Whether a job is long enough to open devices.
#include <doctest/doctest.h>

#include "stages/device/slot_load.h"

namespace melflow::auto_rule_test {
namespace {

MelPlan plan_of(int n_fft, int hop) {
  MelOptions o;
  o.sample_rate = 16000;
  o.n_fft = n_fft;
  o.hop = hop;
  o.n_mels = 32;
  o.center = false;
  return MelPlan(o);
}

}  // namespace

TEST_CASE("auto rule: rows are what there are frames, each by the size of its transform") {
  // The two-stage job: 39,563 files of 40,960 samples have 159 different windows each.
  const DeviceGain two_stage =
      device_gain(plan_of(512, 512), WindowGrid{512, 1024, 512, 256, 3}, 39'563, 39'563.0 * 40'960);
  CHECK(two_stage.rows == doctest::Approx(39'563 * 159 * 0.127e-6));
  // 81,920 bytes in and 159 rows of 32 floats out, at 8 GB/s.
  CHECK(two_stage.packing == doctest::Approx(39'563.0 * (81'920 + 159 * 128) / 8e9).epsilon(0.001));
  // Speech in one long recording: a frame every 160 samples.
  CHECK(device_gain(plan_of(512, 160), {}, 1, 16'000.0 * 3600).rows ==
        doctest::Approx(360'000 * 0.127e-6).epsilon(0.001));
  // Four times as many samples per transform, with 11 steps instead of 9.
  CHECK(device_gain(plan_of(2048, 160), {}, 1, 16'000.0 * 3600).rows ==
        doctest::Approx(360'000 * 0.127e-6 * 4 * 11 / 9).epsilon(0.001));
  CHECK(device_gain(plan_of(512, 160), {}, 0, 0).rows == 0);
  // Files that are too short have no frames.
  CHECK(device_gain(plan_of(512, 160), {}, 1000, 1000 * 100).rows == 0);
}

TEST_CASE(
    "auto rule: what is cheap or takes less than the limit stays where it is, with a reason") {
  CHECK(why_on_cpu({39.9, 10}, 4, 10) ==
        "auto: about 10.0 s of work for 4 workers; devices are opened from 10 s on, auto_from");
  CHECK(why_on_cpu({40, 20}, 4, 10) == "");
  CHECK(why_on_cpu({4000, 2050}, 4, 10) ==
        "auto: packing for a device would take 51% of the time that it saves a core; devices are "
        "opened up to 50%");
  CHECK(why_on_cpu({0, 0}, 4, 10) != "");
  CHECK(why_on_cpu({0, 10}, 4, 0) == "");
}

}  // namespace melflow::auto_rule_test
