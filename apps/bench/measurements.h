// The measurements, one function for each kind of resource. They create files in `folder`, which is
// later removed with its contents. Each throws RunError when it cannot create them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/bench/measurement.h"
#include "apps/temporary_folder.h"

namespace melflow {

/// Files read as disk_read reads them, from the page cache and from the disk.
std::vector<Measurement> reading(const TemporaryFolder& folder);
/// A recording of each format, decoded from memory to samples.
std::vector<Measurement> decoding(const TemporaryFolder& folder);
/// The number of free cores, the mel kernel on one core and on all, and copying memory on all.
std::vector<Measurement> computing();
/// Rows written into an HDF5 file, and the same bytes written into a plain file.
std::vector<Measurement> writing(const TemporaryFolder& folder);
/// Items passed through nodes that do nothing.
std::vector<Measurement> graph();

/// Returns `count` 16-bit samples of tones and noise.
std::vector<std::int16_t> tones_and_noise(std::int64_t count);

/// The file system and device that hold a folder's files.
struct Disk {
  std::string file_system;  ///< "ext4"; "" where the system does not say
  std::string device;       ///< "/dev/nvme0n1p2", "tmpfs"
};
Disk disk_of(const std::string& folder);

}  // namespace melflow
