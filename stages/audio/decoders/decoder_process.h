// The other side of isolated_decoder.h: the process that decodes, and the protocol between the two.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace melflow {

/// Whether these are the arguments of a process that decodes. From this call on, isolated decoders may start this program so:
/// to be called first by every program that then calls serve_decoder().
bool is_decoder_process(int argc, char** argv);
/// Whether this program called is_decoder_process().
bool can_start_decoders();
/// Decodes what is asked for until the socket closes; returns the exit status.
int serve_decoder();

namespace decoder_protocol {

inline constexpr const char* kVerb =
    "decoder-process";                                ///< hidden: the command line does not list it
inline constexpr int kSocket = 3;                     ///< of the child
inline constexpr std::size_t kSharedBytes = 1 << 20;  ///< for samples
inline constexpr std::size_t kLibraryMemory = 128 << 20;  ///< that libraries may take [bytes]
inline constexpr std::size_t kMostText = 4096;

enum class Ask : std::uint32_t {
  shared,  ///< with the descriptor of the memory for samples; no reply
  open,    ///< with the descriptor of the file
  read_short,
  read_float,
};
struct Request {
  Ask ask = Ask::open;
  std::uint64_t size = 0, window = 0;  // of an open file [bytes]
  std::int64_t frames = 0;             // of a read
};

/// `text` bytes follow: the fault, or the reason why the file was refused.
struct Reply {
  std::int64_t frames = 0;  ///< read, or by the header
  std::int32_t is_open = 0, io_error = 0;
  std::int32_t sample_rate = 0, channels = 0, format = 0, is_count_known = 0, is_by_ffmpeg = 0;
  std::int32_t has_fault = 0, is_change = 0;
  std::uint32_t text = 0;
  std::int64_t fault_after = 0;
  std::int64_t untimed_from = 0;
};

}  // namespace decoder_protocol
}  // namespace melflow
