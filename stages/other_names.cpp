#include "stages/other_names.h"

#include "pipeline/stage/registry.h"

namespace melflow::other_names {
namespace {

// name in another library, that library, name in melflow, its values in melflow
constexpr OtherName kResample[] = {
    {"sr", "", "rate"},
    {"sample_rate", "", "rate"},
    {"target_sr", "librosa", "rate"},
    {"new_freq", "torchaudio", "rate"},
    {"new_sample_rate", "", "rate"},
    {"res_type", "librosa", "quality", "high for soxr_hq, very_high for soxr_vhq"},
};

// option, value in another library, the end of the message
constexpr OtherValue kResampleValues[] = {
    {"quality", "best", "write very_high"},     {"quality", "kaiser_best", "write very_high"},
    {"quality", "kaiser_fast", "write medium"}, {"quality", "soxr_vhq", "write very_high"},
    {"quality", "soxr_hq", "write high"},       {"quality", "soxr_mq", "write medium"},
    {"quality", "soxr_lq", "write low"},        {"quality", "soxr_qq", "write quick"},
    {"quality", "VHQ", "write very_high"},      {"quality", "HQ", "write high"},
    {"quality", "fast", "write quick or low"},
};

constexpr OtherName kSegment[] = {
    {"duration", "", "length"},
    {"frame_length", "librosa", "length"},
    {"win_length", "", "length"},
    {"window", "", "length"},
    {"chunk_length_s", "Transformers", "length", "VALUEs"},
    {"segment_length", "", "length"},
    {"hop_length", "librosa", "hop"},
    {"stride", "", "hop"},
    {"step", "", "hop"},
    {"overlap", "", "hop", "the length less the overlap"},
    {"min_duration", "NeMo", "min_length", "VALUEs"},
    {"max_duration", "NeMo", "max_length", "VALUEs"},
    {"pad", "", "tail", "pad for true, drop for false"},
};

constexpr OtherName kTrimSilence[] = {
    {"frame_length", "librosa", "frame"},
    {"hop_length", "librosa", "hop"},
    {"silence_thresh", "pydub", "threshold"},
    {"silence_threshold", "", "threshold"},
    {"hangover", "", "keep"},
    {"padding", "", "keep"},
};

constexpr OtherName kFitSamples[] = {
    {"pad_to_multiple_of", "Transformers", "multiple"},
    {"to_multiple", "", "multiple"},
    {"hop_length", "Transformers", "multiple"},
    {"max_length", "Transformers", "length", "VALUE in samples, VALUEs in seconds"},
    {"max_length_s", "Transformers", "length", "VALUEs"},
    {"n_samples", "Whisper", "length"},
    {"samples", "", "length"},
    {"audio_silence_prefix_seconds", "Transformers", "pad_left", "VALUEs"},
    {"audio_delay_seconds", "Transformers", "pad_right", "the delay and one second more"},
    {"padding", "Transformers", "pad_mode",
     "repeat_whole for repeatpad, repeat for repeat, constant for pad"},
    {"mode", "numpy", "pad_mode"},
    {"fill", "", "pad_mode"},
    {"tail", "", "pad_mode"},
};

constexpr OtherValue kFitSamplesValues[] = {
    {"pad_mode", "repeatpad", "write repeat_whole"},
    {"pad_mode", "tile", "write repeat"},
    {"pad_mode", "wrap", "write repeat"},
    {"pad_mode", "zeros", "write constant"},
    {"pad_mode", "zero", "write constant"},
    {"pad_mode", "pad", "write constant"},
    {"pad_mode", "mirror", "write reflect"},
    {"rest", "pad", "write fill"},
    {"rest", "cut", "write drop"},
};

constexpr OtherName kNormalizeSamples[] = {
    {"do_normalize", "Transformers", "by", "deviation for true; for false remove the node"},
    {"normalize", "", "by", "deviation, rms or peak"},
    {"method", "", "by"},
    {"to", "", "by"},
    {"target_dB_FS", "Transformers", "level", "VALUEdB, with by: rms, and limit: true"},
    {"target_level", "", "level", "VALUEdB"},
    {"epsilon", "", "eps"},
    {"max_length", "", "hold"},
};

constexpr OtherValue kNormalizeSamplesValues[] = {
    {"by", "std", "write deviation"},
    {"by", "mean_std", "write deviation"},
    {"by", "standard", "write deviation"},
    {"by", "zscore", "write deviation"},
    {"by", "layer_norm", "write deviation"},
    {"by", "true", "write deviation"},
    {"by", "max", "write peak"},
    {"by", "level", "write rms"},
    {"by", "lufs", "write rms; loudness by ITU-R BS.1770 is not there"},
    {"by", "loudness", "write rms; loudness by ITU-R BS.1770 is not there"},
};

constexpr OtherName kDecode[] = {
    {"mono", "librosa", "downmix"},
    {"channel", "", "downmix", "the number of the channel, from 1"},
    {"channels", "", "downmix", "mean, each, or the number of one, from 1"},
    {"channel_selector", "NeMo", "downmix", "the number of the channel, from 1, not 0"},
    {"remix", "SoX", "downmix", "the number of the channel, from 1"},
    {"duration", "librosa", "fit", "VALUEs"},
    {"max_length", "", "fit", "VALUE in samples, VALUEs in seconds"},
    {"sample_rate", "", "resample.rate",
     "in a node after this one: {stage: resample, rate: VALUE}"},
    {"sr", "librosa", "resample.rate", "in a node after this one: {stage: resample, rate: VALUE}"},
    {"rate", "", "resample.rate", "in a node after this one: {stage: resample, rate: VALUE}"},
    {"ahead", "melflow 0.1", "",
     "remove it: one worker decodes a recording from its beginning to its end"},
    {"isolation", "melflow 0.1", "",
     "remove it: every run notes in its journal what it decodes, so that the same command, given "
     "again, finds a file with which the program ends, and excludes it"},
    {"patience", "melflow 0.1", "timeout"},
};

constexpr OtherValue kDecodeValues[] = {
    {"downmix", "stereo", "a row has one channel"},
    {"downmix", "mono", "write mean"},
    {"downmix", "average", "write mean"},
    {"downmix", "none", "a row has one channel"},
    {"truncated", "skip", "write tenth or keep, or fail to count such recordings as failed"},
    {"truncated", "drop", "write fail to count such recordings as failed"},
    {"truncated", "ignore", "write keep"},
};

constexpr OtherValue kDiskReadValues[] = {
    {"engine", "uring", "write io_uring"},
    {"engine", "async", "write io_uring or threads"},
    {"engine", "mmap", "write inline; feed: cache of file_list maps decoded samples into memory"},
};

constexpr OtherName kBatch[] = {
    {"batch_size", "PyTorch", "files"},
    {"size", "", "files"},
};

constexpr OtherName kFileList[] = {
    {"path", "", "root"},
    {"dir", "", "root"},
    {"folder", "", "root"},
    {"data_dir", "", "root"},
    {"glob", "", "include", "patterns such as **/*.wav"},
    {"pattern", "", "include", "patterns such as **/*.wav"},
    {"ext", "librosa", "include", "patterns such as **/*.wav"},
    {"extensions", "", "include", "patterns such as **/*.wav"},
    {"manifest_filepath", "NeMo", "manifest"},
    {"path_column", "melflow 0.1", "columns_are", "{path: VALUE}"},
    {"label_column", "melflow 0.1", "columns_are", "{label: VALUE}"},
    {"x_col", "Keras", "columns_are", "{path: VALUE}"},
    {"y_col", "Keras", "columns_are", "{label: VALUE}"},
    {"sep", "pandas", "delimiter"},
    {"separator", "", "delimiter"},
    {"names", "pandas", "header"},
    {"min_duration", "NeMo", "segment.min_length", "in the segment node: VALUEs"},
    {"max_duration", "NeMo", "segment.max_length", "in the segment node: VALUEs"},
    {"seed", "", "split_seed"},
    {"random_state", "scikit-learn", "split_seed"},
    {"test_size", "scikit-learn", "split_ratios", "all shares, such as {train: 80, test: 20}"},
    {"stratify", "scikit-learn", "split_stratify"},
    {"groups", "scikit-learn", "split_group"},
    {"recursive", "", "",
     "remove it: all folders below root are searched; include and exclude choose among their "
     "files"},
};

constexpr OtherName kFilter[] = {
    {"min_duration", "NeMo", "where", "{duration: \">= VALUEs\"}"},
    {"max_duration", "NeMo", "where", "{duration: \"<= VALUEs\"}"},
    {"duration", "", "where", "{duration: 1s..20s}"},
    {"label", "", "where", "{label: VALUE}"},
    {"path", "", "where", "{path: \"VALUE\"}"},
    {"if", "", "where"},
    {"condition", "", "where"},
    {"conditions", "", "where"},
};

constexpr OtherName kRowSink[] = {
    {"file", "", "path"},
    {"filename", "", "path"},
    {"out", "", "path"},
    {"output", "", "path"},
    {"force", "", "overwrite"},
    {"mode", "h5py", "overwrite", "true for w"},
    {"compression_opts", "h5py", "hdf5_write.level"},
    {"chunks", "h5py", "hdf5_write.chunk", "a size such as 64KiB"},
};

constexpr OtherName kAudioWrite[] = {
    {"keep_ending", "melflow 0.1", "",
     "remove it: a name keeps its recording's ending where two would be the same"},
};

constexpr OtherName kUtterances[] = {
    {"start", "", "file_list.columns_are", "beside utterances: {start: VALUE}"},
    {"end", "", "file_list.columns_are", "beside utterances: {end: VALUE}"},
    {"duration", "", "file_list.columns_are", "beside utterances: {duration: VALUE}"},
    {"offset", "NeMo", "file_list.columns_are", "beside utterances: {start: VALUE}"},
    {"onset", "", "file_list.columns_are", "beside utterances: {start: VALUE}"},
    {"begin", "", "file_list.columns_are", "beside utterances: {start: VALUE}"},
    {"stop", "", "file_list.columns_are", "beside utterances: {end: VALUE}"},
    {"offset_end", "", "file_list.columns_are", "beside utterances: {end: VALUE}"},
    {"units", "", "unit"},
};

constexpr const char* kSecondsOnly =
    "write the times of the table in seconds (0.25 for 250 ms), or as numbers of samples with "
    "unit: samples";
constexpr OtherValue kUtterancesValues[] = {
    {"unit", "s", "write seconds"},    {"unit", "sec", "write seconds"},
    {"unit", "ms", kSecondsOnly},      {"unit", "milliseconds", kSecondsOnly},
    {"unit", "frames", kSecondsOnly},  {"unit", "us", kSecondsOnly},
    {"unit", "minutes", kSecondsOnly},
};

constexpr const char* kShares =
    "write splits: ratio, with the shares in split_ratios: {train: SHARE, val: SHARE, test: SHARE}";
constexpr const char* kGroups =
    "write splits: ratio, with split_group: speaker (an entry of columns) or parent_dir, so that "
    "no speaker is in "
    "two splits";
constexpr const char* kManifests =
    "a list for each split is written {train: FILE, test: FILE}, and lists of one kind as a "
    "pattern, 'lists/*.csv'; for others write a file_list node for each, and name these where they "
    "are read (from: [first, second])";
constexpr OtherValue kFileListValues[] = {
    {"root", "[]",
     "root is one folder, without brackets; for several, name the folder above them and choose "
     "with include, such as include: [a/**, b/**], or list the files in a table: manifest: FILE"},
    {"manifest", "[]", kManifests},
    {"label_file", "[]",
     "label_file is one table, without brackets; join several below one header"},
    {"feed", "memory", "write preload: decoded audio in memory"},
    {"feed", "ram", "write preload: decoded audio in memory"},
    {"feed", "disk", "write cache, with cache_path: decoded audio in a file"},
    {"splits", "[]", kShares},
    {"splits", "{}", kShares},
    {"splits", "random", kShares},
    {"splits", "speaker", kGroups},
    {"splits", "shuffle", kShares},
    {"splits", "parent_dir", "write top_dir: a split is the first folder below root"},
};

constexpr const char* kDeflate = "write deflate, which is what gzip does";
constexpr const char* kNoLzf = "write deflate, which every reader of HDF5 has, or none";
constexpr const char* kLevel = "write deflate, with the number as level";
constexpr OtherValue kRowSinkValues[] = {
    {"compression", "gzip", kDeflate},
    {"compression", "zlib", kDeflate},
    {"compression", "true", kDeflate},
    {"compression", "1", kLevel},
    {"compression", "4", kLevel},
    {"compression", "6", kLevel},
    {"compression", "9", kLevel},
    {"chunk", "*", "it is the size of a chunk in bytes, such as 64KiB, and no number of rows"},
    {"statistics", "true", "write train, or all for the rows of all splits"},
    {"statistics", "false", "write none"},
    {"compression", "lzf", kNoLzf},
    {"compression", "blosc", kNoLzf},
    {"dtype", "fp16", "write float16"},
    {"dtype", "half", "write float16"},
    {"dtype", "f16", "write float16"},
    {"dtype", "bf16", "write bfloat16"},
    {"dtype", "fp32", "write float32"},
    {"dtype", "float", "write float32"},
    {"dtype", "f32", "write float32"},
    {"dtype", "int8", "write float16 for less space"},
};

constexpr OtherName kStages[] = {
    {"melspectrogram", "librosa", "mel"},
    {"mel_spectrogram", "", "mel"},
    {"melspec", "", "mel"},
    {"mel_spec", "", "mel"},
    {"logmel", "", "mel", "with its option log"},
    {"log_mel", "", "mel", "with its option log"},
    {"fbank", "Kaldi", "mel", "with its preset kaldi"},
    {"stft", "", "mel", "with output: spectrogram"},
    {"spectrogram", "", "mel", "with output: spectrogram"},
    {"delta", "", "deltas"},
    {"read", "", "disk_read"},
    {"load", "", "decode"},
    {"files", "", "file_list"},
    {"source", "", "file_list"},
    {"list", "", "file_list"},
    {"folder", "", "file_list"},
    {"hdf5", "", "hdf5_write"},
    {"h5", "", "hdf5_write"},
    {"write", "", "hdf5_write", "or npy_write"},
    {"save", "", "hdf5_write", "or npy_write"},
    {"sink", "", "hdf5_write", "or npy_write"},
    {"npy", "", "npy_write"},
    {"numpy", "", "npy_write"},
    {"kaldi", "", "kaldi_write"},
    {"ark", "Kaldi", "kaldi_write"},
    {"tar", "", "tar_write"},
    {"webdataset", "", "tar_write"},
    {"wav_write", "", "audio_write"},
    {"cmvn", "Kaldi", "mel",
     "its option normalize: per_feature is by recording or segment; the stage normalize is by the "
     "statistics of a training set or, with by, of each speaker"},
    {"utterance_mvn", "ESPnet", "mel",
     "its option normalize: per_feature, with norm_ddof: 0 and norm_eps: 0"},
    {"global_mvn", "ESPnet", "normalize"},
    {"pad", "", "fit_samples"},
    {"pad_or_trim", "Whisper", "fit_samples"},
    {"fix_length", "librosa", "fit_samples"},
    {"layer_norm", "fairseq", "normalize_samples"},
    {"trim", "librosa", "trim_silence"},
    {"vad", "", "trim_silence"},
    {"split", "", "route"},
    {"switch", "", "route"},
    {"join", "", "merge"},
    {"null", "", "discard"},
    {"none", "", "discard"},
    {"devnull", "", "discard"},
};

constexpr const char* kAtTop = "at the top of the file, beside graph";
constexpr const char* kFilesPerTask = "files_per_task: VALUE in the file_list node";
constexpr const char* kDepth = "depth: VALUE in the disk_read node";
constexpr const char* kAhead = "queue: VALUE in the decode node";
constexpr const char* kQueue = "queue: VALUE in the mel node";
constexpr OtherName kLoaders[] = {
    {"cpu_max_workers", "", "workers", kAtTop},
    {"max_workers", "", "workers", kAtTop},
    {"disk_files_per_task", "", "file_list.files_per_task", kFilesPerTask},
    {"FILES_PER_TASK", "", "file_list.files_per_task", kFilesPerTask},
    {"disk_max_inflight", "", "disk_read.depth", kDepth},
    {"PREFETCH_THREADS", "", "disk_read.depth", kDepth},
    {"disk_submit_window", "", "memory.host",
     "reading runs ahead as far as that size allows, whatever the number of files"},
    {"DRIVE_BUFFERSIZE", "", "disk_read.buffer", "buffer: VALUE in the disk_read node"},
    {"PREFETCH_DEPTH", "", "decode.queue", kAhead},
    {"RAM_PREFETCH_DEPTH", "", "decode.queue", kAhead},
    {"num_prefetch", "", "batches.prefetch", "prefetch: VALUE in the batches node"},
    {"RAM_AUDIO_Q_SIZE", "", "mel.queue", kQueue},
    {"Q_SIZE", "", "mel.queue", kQueue},
    {"WARMUP_QUEUE_SIZE", "", "mel.start_at",
     "a share of the queue, such as start_at: 0.5 in the mel node"},
    {"BATCH_ACCUMULATION", "", "mel.accumulate",
     "accumulate: {batches: VALUE} in the mel node, for devices; for the CPU files in the batch "
     "node"},
    {"CUDA_STREAMS", "", "mel.slots", "slots: VALUE in the mel node"},
    {"ASYNC_COPIES", "", "",
     "remove it: copies to and from a device always overlap with what it computes"},
    {"PRECISION", "", "mel.operands",
     "operands: fp32, fp16 or bf16 in the mel node; the type of the rows is dtype in the node that "
     "writes"},
    {"USE_TENSORRT", "", "",
     "remove it: rows are computed by melflow's own kernels, and TensorRT is not used"},
    {"use_ram_preload", "", "file_list.feed", "feed: preload in the file_list node, for true"},
    {"use_memmap_cache", "", "file_list.feed",
     "feed: cache with cache_path in the file_list node, for true"},
    {"memmap_cache_dir", "", "file_list.cache_path",
     "feed: cache, cache_path: VALUE in the file_list node"},
    {"use_async_pipeline", "", "file_list.feed",
     "feed: stream in the file_list node; reading, computing and writing always overlap"},
    {"SAMPLE_RATE", "", "mel.sample_rate", "sample_rate: VALUE in the mel node"},
    {"SAMPLE_LENGTH_SEC", "", "decode.fit", "fit: VALUEs in the decode node"},
    {"input_dir", "", "file_list.root", "root: VALUE in the file_list node"},
};

[[maybe_unused]] const bool kAreSet = [] {
  Registry::global().other_names(kStages);
  add_settings_elsewhere(kLoaders);
  return true;
}();

}  // namespace

std::span<const OtherName> of_resample() { return kResample; }
std::span<const OtherName> of_segment() { return kSegment; }
std::span<const OtherName> of_trim_silence() { return kTrimSilence; }
std::span<const OtherName> of_fit_samples() { return kFitSamples; }
std::span<const OtherName> of_normalize_samples() { return kNormalizeSamples; }
std::span<const OtherName> of_decode() { return kDecode; }
std::span<const OtherName> of_batch() { return kBatch; }
std::span<const OtherName> of_file_list() { return kFileList; }
std::span<const OtherName> of_utterances() { return kUtterances; }
std::span<const OtherName> of_row_sink() { return kRowSink; }
std::span<const OtherName> of_audio_write() { return kAudioWrite; }
std::span<const OtherName> of_filter() { return kFilter; }
std::span<const OtherName> of_loaders() { return kLoaders; }

std::span<const OtherValue> values_of_resample() { return kResampleValues; }
std::span<const OtherValue> values_of_fit_samples() { return kFitSamplesValues; }
std::span<const OtherValue> values_of_normalize_samples() { return kNormalizeSamplesValues; }
std::span<const OtherValue> values_of_decode() { return kDecodeValues; }
std::span<const OtherValue> values_of_disk_read() { return kDiskReadValues; }
std::span<const OtherValue> values_of_file_list() { return kFileListValues; }
std::span<const OtherValue> values_of_utterances() { return kUtterancesValues; }
std::span<const OtherValue> values_of_row_sink() { return kRowSinkValues; }

}  // namespace melflow::other_names
