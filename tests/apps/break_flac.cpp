// Preloaded into melflow: libFLAC crashes or hangs on files of certain sample rates, after their
// first frame.
//
// In:  11025 Hz: SIGSEGV; 12000 Hz: abort; 22050 Hz: hangs, after creating the file MELFLOW_HANGS.
#include <FLAC/stream_decoder.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

extern "C" __attribute__((visibility("default"))) FLAC__bool FLAC__stream_decoder_process_single(
    FLAC__StreamDecoder* decoder) {
  static const auto real = reinterpret_cast<FLAC__bool (*)(FLAC__StreamDecoder*)>(
      dlsym(RTLD_NEXT, "FLAC__stream_decoder_process_single"));
  const FLAC__bool went = real(decoder);
  switch (FLAC__stream_decoder_get_sample_rate(decoder)) {
    case 11025:
      raise(SIGSEGV);
      break;
    case 12000:
      abort();
    case 22050:
      if (const char* path = getenv("MELFLOW_HANGS")) {
        close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0666));
      }
      for (volatile bool hangs = true; hangs;) {
      }
      break;
    default:
      break;
  }
  return went;
}
