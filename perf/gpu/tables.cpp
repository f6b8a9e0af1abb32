// Figures of one device as Markdown.

#include <fmt/format.h>

#include "bench.h"

namespace melflow::bench {
namespace {

double giga(const Json& value) { return value.get<double>() / 1e9; }
double percent(const Json& value) { return 100 * value.get<double>(); }

std::string with_commas(double value) {
  std::string digits = fmt::format("{:.0f}", value);
  for (std::size_t at = digits.size(); at > 3;) digits.insert(at -= 3, ",");
  return digits;
}

std::string links(const Json& device) {
  const Json& l = device["links"];
  std::string out =
      "| copy | GB/s |\n|---|---|\n" +
      fmt::format("| inside the device, read and written | {:.0f} |\n",
                  giga(device["memory_bytes_per_second"])) +
      fmt::format("| host to device, page-locked | {:.1f} |\n", giga(l["to_device"])) +
      fmt::format("| device to host, page-locked | {:.1f} |\n", giga(l["from_device"])) +
      fmt::format("| both at once, together | {:.1f} |\n", giga(l["both_ways"]));
  out += "\n| size of a copy | host to device [GB/s] | device to host [GB/s] |\n|---|---|---|\n";
  for (const Json& s : l["by_size"])
    out += fmt::format("| {} KiB | {:.1f} | {:.1f} |\n", s["bytes"].get<std::size_t>() >> 10,
                       giga(s["to_device"]), giga(s["from_device"]));
  return out;
}

std::string kernels(const Json& k) {
  std::string out = fmt::format(
      "**{}**; {} sets of {} files, {:.0f} MiB of samples each\n\n"
      "| kernels | files/s | windows/s | GB/s | of the memory ceiling | a launch [µs] |\n"
      "|---|---|---|---|---|---|\n",
      k["geometry"].get<std::string>(), k["sets"].get<int>(), k["files_of_set"].get<int>(),
      k["sample_bytes_of_set"].get<double>() / (1 << 20));
  for (const Json& r : k["results"]) {
    const auto path = r["path"].get<std::string>();
    if (r.contains("error")) {
      out += fmt::format("| {} | {} | | | | |\n", path, r["error"].get<std::string>());
      continue;
    }
    out += fmt::format("| {} | {} | {} | {:.0f} | {:.0f} % | {:.1f} |\n", path,
                       with_commas(r["files_per_second"]), with_commas(r["windows_per_second"]),
                       giga(r["bytes_per_second"]), percent(r["share_of_memory"]),
                       1e6 * r["launch_seconds"].get<double>());
  }
  return out;
}

std::string lanes(const Json& l) {
  std::string out = fmt::format(
      "**{}**; batches of {} files, {:.1f} MiB in\n\n"
      "| streams | rows | out [MiB] | link: files/s | in [GB/s] | out [GB/s] | of the link, in | "
      "packed: files/s | in [GB/s] | of the link, in "
      "|\n|---|---|---|---|---|---|---|---|---|---|\n",
      l["geometry"].get<std::string>(), l["files_of_batch"].get<int>(),
      l["bytes_in_of_batch"].get<double>() / (1 << 20));
  for (const Json& r : l["results"]) {
    if (r.contains("error")) {
      out += fmt::format("| {} | {} | | {} | | | | | | |\n", r["streams"].get<int>(),
                         r["rows"].get<std::string>(), r["error"].get<std::string>());
      continue;
    }
    const Json &a = r["link"], &b = r["packed"];
    out += fmt::format(
        "| {} | {} | {:.1f} | {} | {:.1f} | {:.1f} | {:.0f} % | {} | {:.1f} | {:.0f} % |\n",
        r["streams"].get<int>(), r["rows"].get<std::string>(),
        r["bytes_out_of_batch"].get<double>() / (1 << 20), with_commas(a["files_per_second"]),
        giga(a["bytes_per_second_in"]), giga(a["bytes_per_second_out"]),
        percent(a["share_of_link_in"]), with_commas(b["files_per_second"]),
        giga(b["bytes_per_second_in"]), percent(b["share_of_link_in"]));
  }
  return out;
}

}  // namespace

std::string tables(const Json& device) {
  std::string out = fmt::format("### {}, {}\n\n", device["name"].get<std::string>(),
                                device["architecture"].get<std::string>());
  out += links(device) + "\n#### Kernels alone, on data in device memory\n\n";
  for (const Json& k : device["kernels"]) out += kernels(k) + "\n";
  out += "#### From host memory through the device and back\n\n";
  for (const Json& l : device["lanes"]) out += lanes(l) + "\n";
  return out;
}

}  // namespace melflow::bench
