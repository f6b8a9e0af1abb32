/* Rows as samples come: int16 at 16 kHz from standard input, as of
 *   arecord -f S16_LE -r 16000 -c 1 -t raw | ./stream
 * Links the front end alone:
 *   cc stream.c $(pkg-config --cflags --libs melflow-frontend) -o stream */
#include <melflow.h>
#include <stdio.h>
#include <stdlib.h>

enum { PIECE = 160, COLUMNS = 80 }; /* 10 ms */

static float rows[PIECE][COLUMNS];

static int fail(void) { return fprintf(stderr, "stream: %s\n", melflow_error()), 1; }

/* Prints the rows that wait. */
static int print_rows(melflow_stream *stream) {
  int64_t made = 0;
  do {
    if (melflow_stream_pull(stream, rows[0], PIECE, &made) != MELFLOW_OK) return fail();
    for (int64_t i = 0; i < made * COLUMNS; ++i)
      printf("%.9g%c", rows[0][i], (i + 1) % COLUMNS == 0 ? '\n' : ' ');
  } while (made > 0);
  return 0;
}

int main(void) {
  melflow_front *front;
  melflow_stream *stream;
  int16_t samples[PIECE];
  if (melflow_front_from_preset("wenet", 16000, &front) != MELFLOW_OK) return fail();
  if (melflow_front_columns(front) != COLUMNS) return 1;
  if (melflow_stream_create(front, PIECE, 0, &stream) != MELFLOW_OK) return fail();
  for (size_t n; (n = fread(samples, sizeof *samples, PIECE, stdin)) > 0;) {
    if (melflow_stream_push_int16(stream, samples, (int64_t)n) != MELFLOW_OK) return fail();
    if (print_rows(stream) != 0) return 1;
  }
  if (melflow_stream_finish(stream) != MELFLOW_OK || print_rows(stream) != 0) return fail();
  melflow_stream_destroy(stream);
  melflow_front_destroy(front);
  return 0;
}
