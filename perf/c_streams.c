/* What a push of 10 ms takes in C, and how many streams one core serves in real time.
 *
 *   cc -O2 perf/c_streams.c $(pkg-config --cflags --libs melflow-frontend) -o c_streams && taskset -c 0 ./c_streams [PRESET...]
 *
 * Out: for each preset the median and the 99th percentile of a push with its pull [us], 1000 streams in turn, and how many such
 *      streams fit into 10 ms by the mean of the processor time. */
#include <melflow.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { STREAMS = 1000, PUSHES = 400 };

static double now(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

static int by_size(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static int measure(const char *preset) {
  static melflow_stream *streams[STREAMS];
  static double times[STREAMS * PUSHES];
  static float samples[4096], rows[65536];
  melflow_front *front;
  if (melflow_front_from_preset(preset, 0, &front) != MELFLOW_OK) return puts(melflow_error()), 1;
  const int64_t count = melflow_front_sample_rate(front) / 100, room = 65536 / melflow_front_columns(front);
  for (int64_t i = 0; i < count; ++i) samples[i] = (float)(rand() / (double)RAND_MAX - 0.5);
  for (int s = 0; s < STREAMS; ++s)
    if (melflow_stream_create(front, count, 0, &streams[s]) != MELFLOW_OK) return puts(melflow_error()), 1;
  const double begin = now(CLOCK_PROCESS_CPUTIME_ID);
  int64_t made, all = 0;
  for (int p = 0; p < PUSHES; ++p)
    for (int s = 0; s < STREAMS; ++s) {
      const double before = now(CLOCK_MONOTONIC);
      if (melflow_stream_push(streams[s], samples, count) != MELFLOW_OK) return puts(melflow_error()), 1;
      if (melflow_stream_pull(streams[s], rows, room, &made) != MELFLOW_OK) return puts(melflow_error()), 1;
      times[p * STREAMS + s] = now(CLOCK_MONOTONIC) - before;
      all += made;
    }
  const double mean = (now(CLOCK_PROCESS_CPUTIME_ID) - begin) / (STREAMS * PUSHES);
  qsort(times, STREAMS * PUSHES, sizeof *times, by_size);
  printf("%s: median %.1f us, p99 %.1f us, %.0f streams in real time (%lld rows)\n", preset, times[STREAMS * PUSHES / 2],
         times[STREAMS * PUSHES * 99 / 100], 1e4 / mean, (long long)all);
  for (int s = 0; s < STREAMS; ++s) melflow_stream_destroy(streams[s]);
  melflow_front_destroy(front);
  return 0;
}

int main(int argc, char **argv) {
  const char *all[] = {"voxtral_realtime", "kaldi", "wenet", "funasr_lfr76", "kaldi_mfcc", "kaldi_voxceleb", "hifigan"};
  int failed = 0;
  for (int i = 1; i < argc; ++i) failed |= measure(argv[i]);
  for (size_t i = 0; argc == 1 && i < sizeof all / sizeof *all; ++i) failed |= measure(all[i]);
  return failed;
}
