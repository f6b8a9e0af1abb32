// Preloaded into melflow: libFLAC crashes or hangs on files of certain sample rates, behind their first frame.
//
// In:  11025 Hz: SIGSEGV; 12000 Hz: abort; 22050 Hz: hangs, after it wrote its number into the file MELFLOW_HANGS;
//      24000 Hz: takes 256 MiB, and aborts where it does not get them.
#include <FLAC/stream_decoder.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
        const int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0666);
        dprintf(fd, "%d\n", getpid());
        close(fd);
      }
      for (;;) pause();
    case 24000: {
      constexpr size_t kBytes = 256 << 20;
      void* volatile all = malloc(kBytes);
      if (all == nullptr || MELFLOW_HAS_NO_BOUND) abort();
      memset(all, 1, kBytes);
      free(all);
      break;
    }
    default:
      break;
  }
  return went;
}
