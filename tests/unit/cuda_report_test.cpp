// The report on a device, from known figures.
#include <doctest/doctest.h>

#include "stages/device/cuda_report.h"

namespace melflow::cuda_report_test {

TEST_CASE("cuda report: a link by its generation and width") {
  // PCI Express, one way: 2.5 and 5 GT/s with 8 of 10 bits, 8 to 32 with 128 of 130, 64 in flits.
  CHECK(link_rate(1, 16) == doctest::Approx(4.0e9));
  CHECK(link_rate(2, 8) == doctest::Approx(4.0e9));
  CHECK(link_rate(3, 16) == doctest::Approx(16 * 8e9 * 128 / 130 / 8).epsilon(1e-4));
  CHECK(link_rate(4, 16) == doctest::Approx(16 * 16e9 * 128 / 130 / 8).epsilon(1e-4));
  CHECK(link_rate(5, 16) == doctest::Approx(16 * 32e9 * 128 / 130 / 8).epsilon(1e-4));
  CHECK(link_rate(6, 16) == doctest::Approx(16 * 64e9 * 242 / 256 / 8).epsilon(1e-4));
  CHECK(link_rate(0, 16) == 0);
  CHECK(link_rate(7, 16) == 0);
}

TEST_CASE("cuda report: rates of a device, with its share of the link where that is known") {
  cuda::SlotTimes t;
  t.span = 4;
  t.idle = 1;
  t.copy_in = 2;
  t.compute = 0.5;
  t.copy_out = 0.25;
  t.batches = 7;
  t.files = 1000;
  t.frames = 80'000;
  t.bytes_in = 40'000'000'000;
  t.bytes_out = 2'000'000'000;
  cuda::DeviceUse use;
  use.pcie_generation = 2;
  use.pcie_width = 40;  // 20 GB/s
  CHECK(to_json(rates_value(3, t, &use)) ==
        R"({"device": 3, "batches": 7, "files": 1000, "seconds": 4.000000, )"
        R"("files_per_second": 250, "frames_per_second": 20000, )"
        R"("to_device": {"gb_per_second": 10.000, "percent_of_link": 50.0}, )"
        R"("from_device": {"gb_per_second": 0.500, "percent_of_link": 2.5}, )"
        R"("copy_in_percent": 50.0, "mel_percent": 12.5, "copy_out_percent": 6.2, )"
        R"("gaps_percent": 25.0})");
  const std::string without = to_json(rates_value(3, t, nullptr));
  CHECK(without.find("\"to_device\": {\"gb_per_second\": 10.000}") != std::string::npos);
  // A device that returned no batch.
  CHECK(to_json(rates_value(0, {}, &use)) ==
        R"({"device": 0, "batches": 0, "files": 0, "seconds": 0.000000})");
}

}  // namespace melflow::cuda_report_test
