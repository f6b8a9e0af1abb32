#include "stages/other_names.h"

#include "pipeline/registry.h"

namespace melflow::other_names {
namespace {

constexpr const char* kInMilliseconds = "in samples, or with its unit: 10ms";
constexpr const char* kInSeconds = "in samples, or with its unit: 0.01s";
constexpr const char* kRate = "sample_rate";
constexpr const char* kKaldis = "Kaldi";

// name there, where, name here, what its values are here
constexpr OtherName kMel[] = {
    {"sr", "librosa", kRate},
    {"fs", "scipy", kRate},
    {"rate", "", kRate},
    {"samplerate", "soundfile", kRate},
    {"sampling_rate", "Transformers, HiFi-GAN", kRate},
    {"sample_frequency", kKaldis, kRate},
    {"samp_freq", "kaldi-native-fbank", kRate},
    {"nfft", "scipy", "n_fft"},
    {"fft_size", "", "n_fft"},
    {"fft_length", "TensorFlow", "n_fft"},
    {"filter_length", "Tacotron 2", "n_fft"},
    {"round_to_power_of_two", kKaldis, "n_fft", "the length itself, such as 512"},
    {"hop_length", "librosa, torchaudio; in ms SpeechBrain", "hop", kInMilliseconds},
    {"hop_size", "HiFi-GAN", "hop"},
    {"n_shift", "ESPnet", "hop"},
    {"frame_step", "TensorFlow", "hop"},
    {"hop_len", "", "hop"},
    {"frame_hop", "", "hop"},
    {"win_len", "", "win_length"},
    {"frame_shift", "Kaldi, in ms", "hop", kInMilliseconds},
    {"frame_shift_ms", "kaldi-native-fbank", "hop", kInMilliseconds},
    {"window_stride", "NeMo, in s", "hop", kInSeconds},
    {"winstep", "python_speech_features, in s", "hop", kInSeconds},
    {"stride", "", "hop"},
    {"noverlap", "scipy", "hop", "win_length less noverlap"},
    {"win", "", "win_length"},
    {"win_size", "HiFi-GAN", "win_length"},
    {"window_length", "", "win_length"},
    {"nperseg", "scipy", "win_length"},
    {"frame_length", "Kaldi, in ms", "win_length", "in samples, or with its unit: 25ms"},
    {"frame_length_ms", "kaldi-native-fbank", "win_length", "in samples, or with its unit: 25ms"},
    {"winlen", "python_speech_features, in s", "win_length",
     "in samples, or with its unit: 0.025s"},
    {"window_size", "NeMo, in s", "win_length", "in samples, or with its unit: 0.025s"},
    {"window_type", kKaldis, "window"},
    {"winfunc", "python_speech_features", "window", "its name, such as hamming"},
    {"window_fn", "torchaudio", "window", "its name, such as hann"},
    {"n_mel_channels", "Tacotron 2", "n_mels"},
    {"num_mels", "HiFi-GAN", "n_mels"},
    {"num_mel_bins", kKaldis, "n_mels"},
    {"num_bins", "kaldi-native-fbank", "n_mels"},
    {"mel_bins", "", "n_mels"},
    {"nfilt", "python_speech_features", "n_mels"},
    {"feature_size", "Transformers", "n_mels"},
    {"f_min", "torchaudio, SpeechBrain", "fmin"},
    {"low_freq", kKaldis, "fmin"},
    {"lowfreq", "NeMo", "fmin"},
    {"mel_fmin", "Tacotron 2", "fmin"},
    {"f_max", "torchaudio, SpeechBrain", "fmax"},
    {"high_freq", kKaldis, "fmax"},
    {"highfreq", "NeMo", "fmax"},
    {"mel_fmax", "Tacotron 2", "fmax"},
    {"htk", "librosa", "mel_scale", "htk for true, slaney for false"},
    {"mag_power", "NeMo", "power"},
    {"use_power", kKaldis, "power", "2 for true, 1 for false"},
    {"stype", "torchaudio", "power", "2 for power, 1 for magnitude"},
    {"preemph", "NeMo", "preemphasis"},
    {"preemph_coeff", "kaldi-native-fbank", "preemphasis"},
    {"preemphasis_coefficient", kKaldis, "preemphasis"},
    {"remove_dc_offset", kKaldis, "remove_dc"},
    {"power_to_db", "librosa", "log", "db"},
    {"amplitude_to_db", "librosa", "log", "db, and power: 1"},
    {"use_log_fbank", kKaldis, "log", "ln for true, none for false"},
    {"log_zero_guard_value", "NeMo", "log_offset", "for the guard of type add; amin for clamp"},
    {"norm_filters", "Lhotse", "norm", "1 for true"},
    {"multiplier", "torchaudio", "db_factor", "10 or 20"},
    {"ddof", "numpy", "norm_ddof"},
    {"device", "PyTorch", "backend", "cpu, cuda or auto"},
};

constexpr OtherName kMfcc[] = {
    {"num_ceps", kKaldis, "n_mfcc"},
    {"numcep", "python_speech_features", "n_mfcc"},
    {"cepstral_lifter", kKaldis, "lifter"},
    {"ceplifter", "python_speech_features", "lifter"},
};

constexpr OtherName kDeltas[] = {
    {"win_length", "torchaudio", "width"},
    {"window_length", "SpeechBrain", "width"},
    {"delta_order", kKaldis, "order"},
    {"delta_window", kKaldis, "width", "2 delta_window + 1"},
};

constexpr OtherName kResample[] = {
    {"sr", "", "rate"},
    {"sample_rate", "", "rate"},
    {"target_sr", "librosa", "rate"},
    {"new_freq", "torchaudio", "rate"},
    {"new_sample_rate", "", "rate"},
    {"res_type", "librosa", "quality", "high for soxr_hq"},
};

constexpr OtherName kSegment[] = {
    {"duration", "", "length"},
    {"frame_length", "librosa", "length"},
    {"win_length", "", "length"},
    {"window", "", "length"},
    {"chunk_length_s", "Transformers", "length", "in samples, or with its unit: 30s"},
    {"segment_length", "", "length"},
    {"hop_length", "librosa", "hop"},
    {"stride", "", "hop"},
    {"step", "", "hop"},
    {"overlap", "", "hop", "the length less the overlap"},
    {"min_duration", "NeMo", "min_length", "in samples, or with its unit: 1s"},
    {"max_duration", "NeMo", "max_length", "in samples, or with its unit: 20s"},
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

constexpr OtherName kDecode[] = {
    {"mono", "librosa", "downmix"},
    {"channel", "", "downmix", "the number of the channel, from 1"},
    {"channels", "", "downmix", "mean, or the number of one, from 1"},
    {"channel_selector", "NeMo", "downmix", "the number of the channel, from 1, not 0"},
    {"remix", "SoX", "downmix", "the number of the channel, from 1"},
    {"duration", "librosa", "fit", "in samples, or with its unit: 10s"},
    {"max_length", "", "fit", "in samples, or with its unit: 10s"},
    {"sample_rate", "", "resample.rate",
     "in a node after this one: {stage: resample, rate: 16000}"},
    {"sr", "librosa", "resample.rate", "in a node after this one: {stage: resample, rate: 16000}"},
    {"rate", "", "resample.rate", "in a node after this one: {stage: resample, rate: 16000}"},
};

constexpr OtherValue kDecodeValues[] = {
    {"downmix", "stereo", "a row has one channel"},
    {"downmix", "mono", "write mean"},
    {"downmix", "average", "write mean"},
    {"downmix", "none", "a row has one channel"},
    {"truncated", "skip", "write keep, or fail to count such recordings as failed"},
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
    {"min_duration", "NeMo", "segment.min_length",
     "in a node segment, in samples or with its unit, such as 1s"},
    {"max_duration", "NeMo", "segment.max_length",
     "in a node segment, in samples or with its unit, such as 20s"},
    {"seed", "", "split_seed"},
    {"random_state", "scikit-learn", "split_seed"},
    {"test_size", "scikit-learn", "split_ratios", "all shares, such as {train: 80, test: 20}"},
    {"stratify", "scikit-learn", "split_stratify"},
    {"groups", "scikit-learn", "split_group"},
    {"recursive", "", "include",
     "all folders below root are searched anyway, so remove this; include and exclude choose among "
     "them"},
};

constexpr OtherName kFilter[] = {
    {"min_duration", "NeMo", "where", "{duration: \">= 1s\"}"},
    {"max_duration", "NeMo", "where", "{duration: \"<= 20s\"}"},
    {"duration", "", "where", "{duration: 1s..20s}"},
    {"label", "", "where", "{label: dog}"},
    {"path", "", "where", "{path: \"*/noisy/*\"}"},
    {"if", "", "where"},
    {"condition", "", "where"},
    {"conditions", "", "where"},
};

constexpr OtherName kRowSink[] = {
    {"file", "", "path"},   {"filename", "", "path"},   {"out", "", "path"},
    {"output", "", "path"}, {"force", "", "overwrite"},
};

// option, value there, the end of the message
constexpr const char* kDecibels = "write db for decibels, ln for the natural logarithm, or none";
constexpr const char* kInHertz = "write Hz as a number without a unit, such as 8000";
constexpr const char* kNoTime =
    "n_fft is in samples, such as 512; a time such as 25ms goes into win_length";

constexpr OtherValue kMelValues[] = {
    {"window", "hanning", "write hann"},
    {"window", "hann_window", "write hann"},
    {"window", "hamming_window", "write hamming"},
    {"window", "rectangular", "write boxcar"},
    {"window", "rect", "write boxcar"},
    {"window", "ones", "write boxcar"},
    {"n_fft", "*s", kNoTime},
    {"fmin", "*Hz", kInHertz},
    {"fmin", "*k", kInHertz},
    {"fmax", "*Hz", kInHertz},
    {"fmax", "*k", kInHertz},
    {"log", "true", kDecibels},
    {"log", "yes", kDecibels},
    {"log", "log", kDecibels},
    {"log", "natural", "write ln for the natural logarithm"},
    {"log", "loge", "write ln for the natural logarithm"},
    {"log", "false", "write none"},
    {"power", "true", "write 2 for the power, 1 for the magnitude"},
    {"backend", "gpu", "write cuda"},
    {"backend", "GPU", "write cuda"},
    {"normalize", "true",
     "write per_feature: each column by its own mean and standard deviation, or all_features"},
    {"normalize", "false", "write none"},
    {"norm", "true", "write slaney for triangles of equal area, or none"},
    {"preset", "openai", "write whisper"},
};

constexpr const char* kShares =
    "write splits: ratio, with the shares in split_ratios: {train: 80, val: 10, test: 10}";
constexpr OtherValue kFileListValues[] = {
    {"root", "[]",
     "root is one folder, without brackets; for several, name the folder above them and choose "
     "with include, such as include: [a/**, b/**], or list the files in a table: manifest: FILE"},
    {"splits", "[]", kShares},
    {"splits", "{}", kShares},
    {"splits", "random", kShares},
    {"splits", "shuffle", kShares},
    {"splits", "parent_dir", "write top_dir: a split is the first folder below root"},
};

constexpr const char* kDeflate = "write deflate, which is what gzip does";
constexpr const char* kNoLzf = "write deflate, which every reader of HDF5 has, or none";
constexpr OtherValue kRowSinkValues[] = {
    {"compression", "gzip", kDeflate},
    {"compression", "zlib", kDeflate},
    {"compression", "true", kDeflate},
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
    {"wav_write", "", "audio_write"},
    {"cmvn", "Kaldi", "normalize"},
    {"trim", "librosa", "trim_silence"},
    {"vad", "", "trim_silence"},
    {"split", "", "route"},
    {"switch", "", "route"},
    {"join", "", "merge"},
};

[[maybe_unused]] const bool kAreSet = [] {
  Registry::global().other_names(kStages);
  return true;
}();

}  // namespace

std::span<const OtherName> of_mel() { return kMel; }
std::span<const OtherName> of_mfcc() { return kMfcc; }
std::span<const OtherName> of_deltas() { return kDeltas; }
std::span<const OtherName> of_resample() { return kResample; }
std::span<const OtherName> of_segment() { return kSegment; }
std::span<const OtherName> of_trim_silence() { return kTrimSilence; }
std::span<const OtherName> of_decode() { return kDecode; }
std::span<const OtherName> of_batch() { return kBatch; }
std::span<const OtherName> of_file_list() { return kFileList; }
std::span<const OtherName> of_row_sink() { return kRowSink; }
std::span<const OtherName> of_filter() { return kFilter; }

std::span<const OtherValue> values_of_mel() { return kMelValues; }
std::span<const OtherValue> values_of_decode() { return kDecodeValues; }
std::span<const OtherValue> values_of_disk_read() { return kDiskReadValues; }
std::span<const OtherValue> values_of_file_list() { return kFileListValues; }
std::span<const OtherValue> values_of_row_sink() { return kRowSinkValues; }

}  // namespace melflow::other_names
