// What is measured, a function a kind of resource. Files are made in `folder`, which goes with what
// is in it. Each throws RunError when they cannot be made.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/bench/measurement.h"
#include "apps/temporary_folder.h"

namespace melflow {

/// Files as disk_read reads them, that the page cache has, and that it has not.
std::vector<Measurement> reading(const TemporaryFolder& folder);
/// A recording of each format from memory to samples.
std::vector<Measurement> decoding(const TemporaryFolder& folder);
/// How many cores are free, the mel kernel on one core and on all, and memory copied by all.
std::vector<Measurement> computing();
/// Rows into a file of HDF5, and the same bytes into a file.
std::vector<Measurement> writing(const TemporaryFolder& folder);
/// Items through nodes that do nothing.
std::vector<Measurement> graph();

/// Tones and noise: so many samples of 16 bits.
std::vector<std::int16_t> tones_and_noise(std::int64_t count);

/// Where the files of a folder lie.
struct Disk {
  std::string file_system;  ///< "ext4"; "" where the system does not say
  std::string device;       ///< "/dev/nvme0n1p2", "tmpfs"
};
Disk disk_of(const std::string& folder);

}  // namespace melflow
