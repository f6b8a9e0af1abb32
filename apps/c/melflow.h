/* melflow.h - mel spectrograms and other features of speech and audio, in C.
 *
 * Two libraries have these functions:
 *   libmelflow.so          all of them; pkg-config: melflow
 *   libmelflow_frontend.a  all but those marked [shared]: samples at the rate of the front end, and
 *                          no other library but those of C and C++; pkg-config: melflow-frontend
 *
 * In:  samples of one channel, float with 1 as full scale or int16, or the bytes of a file.
 * Out: rows of float [rows][columns], bit for bit those of `melflow run` and of the Python package
 *      with the same settings, on the same instruction set.
 *
 *   melflow_front *front;
 *   if (melflow_front_from_preset("kaldi", 16000, &front) != MELFLOW_OK) puts(melflow_error());
 *
 * A function that can fail returns a status, and melflow_error() says why in words; what it would
 * have given is then left alone. No C++ exception leaves a function. Pointers must not be null
 * except where it says so; null pointers and negative numbers are MELFLOW_BAD_ARGUMENT.
 *
 * Threads: any thread may call any function. A front end is constant, so all threads may use one at
 * the same time. A stream is for one thread at a time; streams share no lock. */
#ifndef MELFLOW_H
#define MELFLOW_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum melflow_status {
  MELFLOW_OK = 0,
  MELFLOW_BAD_ARGUMENT = 1, /* of this call: a null pointer, a negative number, an unknown flag */
  MELFLOW_BAD_SETTINGS = 2, /* an unknown preset or option, a wrong value, no JSON or YAML */
  MELFLOW_UNSUPPORTED = 3,  /* valid settings that this library, or a stream, cannot have */
  MELFLOW_NEEDS_WHOLE = 4, /* rows that no stream has before its end, without MELFLOW_FINISH_ONLY */
  MELFLOW_BAD_AUDIO = 5,   /* a file that cannot be decoded, samples that give no finite rows */
  MELFLOW_NO_ROOM = 6,     /* the caller's memory has room for fewer rows */
  MELFLOW_ENDED = 7,       /* the stream has been finished, or has failed; reset it */
  MELFLOW_NO_MEMORY = 8,
  MELFLOW_INTERNAL = 9 /* a fault of the library; please report it */
} melflow_status;

/* The version of the library: "0.2.0". A library takes programs that were compiled with this header
 * of the same version or, from 1.0 on, of an earlier one with the same first number. */
const char* melflow_version(void);

/* Why the last call in this thread failed, in English, without a line break at its end; "" if none
 * has. Valid until another call in this thread fails. */
const char* melflow_error(void);

/* What the last call of melflow_compute_file() in this thread found wrong with a file whose rows it
 * gave, such as a cut-off end; "" for nothing. Valid until the next such call in this thread. */
const char* melflow_warning(void);

/* ---- Front ends: settings and tables ------------------------------------------------------- */

typedef struct melflow_front melflow_front;

/* Makes the front end of a preset ("kaldi", "whisper"; `melflow presets` lists them).
 * sample_rate: of the samples [Hz]; 0: that of the preset. Another rate than the preset's is
 * resampled [shared], unless the preset is for any rate. The preset's fixed windows (Whisper's 30 s)
 * are not applied, as by melflow.Features without pad_to. */
melflow_status melflow_front_from_preset(const char* name, int sample_rate, melflow_front** front);

/* Makes it of the JSON that melflow.Features.to_json() gives and `melflow vectors` prints. `text`
 * has `length` bytes and needs no zero at its end. sample_rate: of the samples; 0: that of its stage
 * mel. */
melflow_status melflow_front_from_json(const char* text, size_t length, int sample_rate,
                                       melflow_front** front);

/* Makes it of a pipeline in YAML, from its decoder to its rows [shared]. sample_rate: of the
 * samples; 0: files only. */
melflow_status melflow_front_from_yaml(const char* text, size_t length, int sample_rate,
                                       melflow_front** front);

/* Frees it; null is allowed. Streams of it remain valid. */
void melflow_front_destroy(melflow_front* front);

int melflow_front_columns(const melflow_front* front);     /* values of a row */
int melflow_front_sample_rate(const melflow_front* front); /* of the samples that it takes [Hz] */
double melflow_front_row_seconds(const melflow_front* front); /* from a row to the next */

/* 32 hexadecimal digits that are equal for equal features: those of the attribute
 * feature_fingerprint of files, and of melflow.Features. Valid as long as the front end. */
const char* melflow_front_fingerprint(const melflow_front* front);

/* How long rows of a stream wait: row t is out when t times row_seconds and this number of samples
 * have been pushed. -1 if all come at the end. */
int64_t melflow_front_delay(const melflow_front* front);

/* ---- Whole recordings ---------------------------------------------------------------------- */

/* The rows of a recording of `count` samples, at most; exactly if no stage resamples. Less than a
 * frame gives 0. -1 if they depend on more than the number of samples, or for 2^48 samples and
 * more. */
int64_t melflow_front_rows(const melflow_front* front, int64_t count);

/* Computes the rows of `count` samples. `rows` has room for `room` rows; *made becomes their number,
 * with MELFLOW_NO_ROOM the number for which there is to be room. */
melflow_status melflow_compute(const melflow_front* front, const float* samples, int64_t count,
                               float* rows, int64_t room, int64_t* made);
melflow_status melflow_compute_int16(const melflow_front* front, const int16_t* samples,
                                     int64_t count, float* rows, int64_t room, int64_t* made);

/* Computes the rows of a file in memory, WAV, FLAC, MP3, Opus, ..., which is decoded, made mono and
 * resampled [shared]. One of more than most_seconds is MELFLOW_BAD_AUDIO before more of it is
 * decoded; 0: any. */
melflow_status melflow_compute_file(const melflow_front* front, const void* bytes, size_t length,
                                    double most_seconds, float* rows, int64_t room, int64_t* made);

/* ---- Streams: samples as they come --------------------------------------------------------- */

typedef struct melflow_stream melflow_stream;

/* Rows that need the whole recording (top_db, ref: max, normalize: per_feature) come from
 * melflow_stream_finish(), and the rows before that step are held in memory. */
#define MELFLOW_FINISH_ONLY 1u

/* Makes a stream of one recording. Pushes of up to `most` samples take no memory, if the rows of
 * each are pulled before the next, nothing is resampled, flags is 0 and the front end is not of
 * YAML; longer ones are allowed. */
melflow_status melflow_stream_create(const melflow_front* front, int64_t most, unsigned flags,
                                     melflow_stream** stream);
/* Frees it; null is allowed. */
void melflow_stream_destroy(melflow_stream* stream);

/* Takes the next samples, any number of them, also none. Rows that no later sample can change then
 * wait for melflow_stream_pull(). */
melflow_status melflow_stream_push(melflow_stream* stream, const float* samples, int64_t count);
melflow_status melflow_stream_push_int16(melflow_stream* stream, const int16_t* samples,
                                         int64_t count);
/* Makes the remaining rows, as no samples follow. */
melflow_status melflow_stream_finish(melflow_stream* stream);

/* The number of rows that wait. */
int64_t melflow_stream_waiting(const melflow_stream* stream);
/* Moves up to `room` of them to `rows`; *made becomes their number. */
melflow_status melflow_stream_pull(melflow_stream* stream, float* rows, int64_t room,
                                   int64_t* made);

/* Begins another recording; rows that wait are lost. */
melflow_status melflow_stream_reset(melflow_stream* stream);

#ifdef __cplusplus
}
#endif
#endif
