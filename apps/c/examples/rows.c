/* The rows of a file, at once: rows PRESET FILE. Links libmelflow.so:
 *   cc rows.c $(pkg-config --cflags --libs melflow) -o rows */
#include <melflow.h>
#include <stdio.h>
#include <stdlib.h>

static int fail(const char *what) {
  fprintf(stderr, "%s: %s\n", what, melflow_error());
  return 1;
}

int main(int argc, char **argv) {
  if (argc != 3) return fprintf(stderr, "usage: rows PRESET FILE\n"), 2;
  melflow_front *front;
  if (melflow_front_from_preset(argv[1], 0, &front) != MELFLOW_OK) return fail(argv[1]);

  FILE *file = fopen(argv[2], "rb");
  if (file == NULL || fseek(file, 0, SEEK_END) != 0) return perror(argv[2]), 1;
  const size_t size = (size_t)ftell(file);
  void *bytes = malloc(size + 1);
  rewind(file);
  if (bytes == NULL || fread(bytes, 1, size, file) != size) return perror(argv[2]), 1;
  fclose(file);

  /* Asks how many rows there are, which decodes the file, then computes them. */
  const int columns = melflow_front_columns(front);
  int64_t count = 0;
  melflow_status status = melflow_compute_file(front, bytes, size, 600, NULL, 0, &count);
  if (status != MELFLOW_OK && status != MELFLOW_NO_ROOM) return fail(argv[2]);
  float *rows = malloc((size_t)(count * columns) * sizeof(float) + 1);
  if (melflow_compute_file(front, bytes, size, 600, rows, count, &count) != MELFLOW_OK)
    return fail(argv[2]);
  if (*melflow_warning()) fprintf(stderr, "%s: %s\n", argv[2], melflow_warning());
  for (int64_t i = 0; i < count * columns; ++i)
    printf("%.9g%c", rows[i], (i + 1) % columns == 0 ? '\n' : ' ');

  free(rows);
  free(bytes);
  melflow_front_destroy(front);
  return 0;
}
