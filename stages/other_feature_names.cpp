// The names by which other libraries know the options of features.
#include "stages/other_names.h"

namespace melflow::other_names {
namespace {

constexpr const char* kMilliseconds = "VALUEms";
constexpr const char* kSeconds = "VALUEs";
constexpr const char* kRate = "sample_rate";
constexpr const char* kKaldis = "Kaldi";
constexpr const char* kInNodeStack =
    "in a node stack after this one; of 5 + 5 frames: frames: 11, hop: 1, left: 5, head: value, "
    "tail: value, order: band_major";

// name in another library, that library, name in melflow, its values in melflow
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
    {"fft_window_size", "Transformers", "n_fft"},
    {"filter_length", "Tacotron 2", "n_fft"},
    {"round_to_power_of_two", kKaldis, "n_fft", "the length itself, such as 512"},
    {"hop_length", "librosa, torchaudio; in ms SpeechBrain", "hop",
     "VALUE, in samples; of SpeechBrain VALUEms"},
    {"hop_size", "HiFi-GAN", "hop"},
    {"n_shift", "ESPnet", "hop"},
    {"frame_step", "TensorFlow", "hop"},
    {"hop_len", "", "hop"},
    {"frame_hop", "", "hop"},
    {"win_len", "", "win_length"},
    {"frame_shift", "Kaldi, in ms", "hop", kMilliseconds},
    {"frame_shift_ms", "kaldi-native-fbank", "hop", kMilliseconds},
    {"window_stride", "NeMo, in s", "hop", kSeconds},
    {"winstep", "python_speech_features, in s", "hop", kSeconds},
    {"stride", "", "hop"},
    {"noverlap", "scipy", "hop", "win_length less noverlap"},
    {"n_window_stride", "NeMo", "hop"},
    {"n_window_size", "NeMo", "win_length"},
    {"win", "", "win_length"},
    {"win_size", "HiFi-GAN", "win_length"},
    {"window_length", "", "win_length"},
    {"nperseg", "scipy", "win_length"},
    {"frame_length", "Kaldi, in ms", "win_length", kMilliseconds},
    {"frame_length_ms", "kaldi-native-fbank", "win_length", kMilliseconds},
    {"winlen", "python_speech_features, in s", "win_length", kSeconds},
    {"window_size", "NeMo, in s", "win_length", kSeconds},
    {"window_type", kKaldis, "window"},
    {"window_function", "Transformers", "window", "its name, such as hann"},
    {"wkwargs", "torchaudio", "kaiser_beta",
     "the windows have options of their own: kaiser_beta, gauss_std, hamming_alpha, tukey_alpha, "
     "periodic"},
    {"winfunc", "python_speech_features", "window", "its name, such as hamming"},
    {"d2h", "melflow 0.1", "",
     "remove it: a batch is held until its rows are back from the device"},
    {"window_fn", "torchaudio", "window", "its name, such as hann"},
    {"n_mel_channels", "Tacotron 2", "n_mels"},
    {"num_mels", "HiFi-GAN", "n_mels"},
    {"num_mel_bins", kKaldis, "n_mels"},
    {"num_bins", "kaldi-native-fbank", "n_mels"},
    {"mel_bins", "", "n_mels"},
    {"nfilt", "python_speech_features", "n_mels"},
    {"feature_size", "Transformers", "n_mels"},
    {"features", "NeMo", "n_mels"},
    {"num_filters", "Lhotse", "n_mels"},
    {"n_filters", "", "n_mels"},
    {"n_bands", "", "n_mels"},
    {"f_min", "torchaudio, SpeechBrain", "fmin"},
    {"low_freq", kKaldis, "fmin"},
    {"lowfreq", "NeMo", "fmin"},
    {"lower_edge_hertz", "TensorFlow", "fmin"},
    {"min_frequency", "Transformers", "fmin"},
    {"mel_fmin", "Tacotron 2", "fmin"},
    {"f_max", "torchaudio, SpeechBrain", "fmax"},
    {"high_freq", kKaldis, "fmax"},
    {"highfreq", "NeMo", "fmax"},
    {"upper_edge_hertz", "TensorFlow", "fmax"},
    {"max_frequency", "Transformers", "fmax"},
    {"mel_fmax", "Tacotron 2", "fmax"},
    {"mel_filters", "Transformers, Whisper", "filters", "the path of a .npy file"},
    {"mel_filter_bank", "Transformers", "filters", "the path of a .npy file"},
    {"melmat", "ESPnet", "filters", "the path of a .npy file"},
    {"mel_basis", "librosa, HiFi-GAN", "filters", "the path of a .npy file"},
    {"linear_to_mel_weight_matrix", "TensorFlow", "filters", "the path of a .npy file"},
    {"htk", "librosa", "mel_scale", "htk for true, slaney for false"},
    {"htkcompatible", "openSMILE", "htk_mode", "htk for 1, false for 0"},
    {"torchaudio_compatible_mel_scale", "Lhotse", "bin_hz", "exact for true, lhotse for false"},
    {"filter_shape", "SpeechBrain", "triangles", "left_width for triangular"},
    {"mel_norm", "librosa, NeMo", "norm"},
    {"mag_power", "NeMo", "power"},
    {"use_power", kKaldis, "power", "2 for true, 1 for false"},
    {"use_fft_mag", "Lhotse", "power", "1 for true, 2 for false"},
    {"power_spectrogram", "SpeechBrain", "power"},
    {"pad_end", "TensorFlow", "partial_frames", "all for true, none for false"},
    {"stype", "torchaudio", "power", "2 for power, 1 for magnitude"},
    {"preemph", "NeMo", "preemphasis"},
    {"preemph_coeff", "kaldi-native-fbank", "preemphasis"},
    {"preemphasis_coefficient", kKaldis, "preemphasis"},
    {"pre_emphasis", "", "preemphasis"},
    {"remove_dc_offset", kKaldis, "remove_dc"},
    {"power_to_db", "librosa", "log", "db"},
    {"amplitude_to_db", "librosa", "log", "db, and power: 1"},
    {"use_log_fbank", kKaldis, "log", "ln for true, none for false"},
    {"log_mel", "SpeechBrain", "log", "db for true, none for false"},
    {"log_mels", "torchaudio", "log", "ln with log_offset: 1e-6 for true, db for false"},
    {"log_base", "ESPnet", "log", "log10 for 10, ln where it is not set"},
    {"ref_value", "SpeechBrain", "ref"},
    {"mel_floor", "Transformers", "amin"},
    {"clip_val", "HiFi-GAN, Tacotron 2", "amin"},
    {"clip", "", "",
     "a floor under the logarithm is amin, one below the largest value is top_db; bins before "
     "power have power_floor and power_ceiling"},
    {"log_zero_guard_type", "NeMo", "log_offset", "for the guard of type add; amin for clamp"},
    {"log_zero_guard_value", "NeMo", "log_offset", "for the guard of type add; amin for clamp"},
    {"norm_filters", "Lhotse", "norm", "1 for true"},
    {"multiplier", "torchaudio", "db_factor", "10 or 20"},
    {"do_normalize", "Transformers", "normalize",
     "fixed, with norm_mean and norm_std; of the waveform, as Whisper's, it is a node "
     "normalize_samples before this one"},
    {"pad_to_multiple_of", "Transformers", "fit_samples.multiple",
     "of the samples, in a node fit_samples before this one"},
    {"mean", "Transformers", "norm_mean", "with normalize: fixed"},
    {"std", "Transformers", "norm_std", "with normalize: fixed"},
    {"subtract_mean", kKaldis, "normalize", "per_feature with norm_variance: false"},
    {"appendEnergy", "python_speech_features", "use_energy"},
    {"rng", "NeMo", "dither_seed", "a number"},
    {"onesided", "torchaudio", "",
     "remove it: the spectrum of real samples has n_fft / 2 + 1 bins, always"},
    {"dtype", "librosa", "hdf5_write.dtype", "in the node that writes the rows"},
    {"channel", kKaldis, "decode.downmix",
     "in the node decode: the number of the channel, from 1; -1 is mean"},
    {"min_duration", kKaldis, "segment.min_length", "in the segment node: VALUEs"},
    {"padding", "Whisper", "decode.fit", "in the decode node: the whole length, such as 30s"},
    {"pad_to", "NeMo", "fit_rows.multiple",
     "in a node fit_rows after this one, with extra: 1; without, rows are stored for each file "
     "unpadded, and a training loop pads its batches"},
    {"pad_value", "NeMo", "fit_rows.value", "in a node fit_rows after this one"},
    {"frame_splicing", "NeMo", "",
     "remove it: NeMo repeats the columns of every frame; a node stack after this one joins "
     "neighbouring frames"},
    {"lfr_m", "FunASR", "stack.frames",
     "in a node stack after this one: frames: 7, hop: 6, left: 3, tail: replicate"},
    {"lfr_n", "FunASR", "stack.hop",
     "in a node stack after this one: frames: 7, hop: 6, left: 3, tail: replicate"},
    {"left_frames", "SpeechBrain", "stack.left", kInNodeStack},
    {"right_frames", "SpeechBrain", "stack.frames", kInNodeStack},
    {"context", "SpeechBrain", "stack.frames", kInNodeStack},
    {"cmn_window", kKaldis, "sliding_cmvn.window", "in a node sliding_cmvn after this one"},
    {"n_mfcc", "librosa, torchaudio", "mfcc.n_mfcc", "in a node mfcc after this one"},
    {"lifter", "librosa", "mfcc.lifter", "in a node mfcc after this one"},
    {"deltas", "SpeechBrain", "deltas.order", "in a node deltas after this one"},
    {"ddof", "numpy", "norm_ddof"},
    {"device", "PyTorch", "backend", "cpu, cuda or auto"},
};

constexpr const char* kInNodeMel = "in the node mel before this one";

constexpr OtherName kMfcc[] = {
    {"num_ceps", kKaldis, "n_mfcc"},
    {"numcep", "python_speech_features", "n_mfcc"},
    {"cepstral_lifter", kKaldis, "lifter"},
    {"ceplifter", "python_speech_features", "lifter"},
    {"liftering", "", "lifter"},
    {"n_coeffs", "", "n_mfcc"},
    {"n_mels", "librosa", "mel.n_mels", kInNodeMel},
    {"num_mel_bins", kKaldis, "mel.n_mels", kInNodeMel},
    {"n_fft", "librosa", "mel.n_fft", kInNodeMel},
    {"hop_length", "librosa", "mel.hop", kInNodeMel},
    {"hop", "", "mel.hop", kInNodeMel},
    {"win_length", "librosa", "mel.win_length", kInNodeMel},
    {"fmin", "librosa", "mel.fmin", kInNodeMel},
    {"fmax", "librosa", "mel.fmax", kInNodeMel},
    {"f_min", "torchaudio", "mel.fmin", kInNodeMel},
    {"f_max", "torchaudio", "mel.fmax", kInNodeMel},
    {"low_freq", kKaldis, "mel.fmin", kInNodeMel},
    {"high_freq", kKaldis, "mel.fmax", kInNodeMel},
    {"sr", "librosa", "mel.sample_rate", kInNodeMel},
    {"sample_rate", "torchaudio", "mel.sample_rate", kInNodeMel},
    {"mel_norm", "librosa", "mel.norm", kInNodeMel},
    {"use_energy", kKaldis, "mel.use_energy", kInNodeMel},
    {"preset", "", "mel.preset", kInNodeMel},
    {"log", "", "mel.log", kInNodeMel},
    {"log_mels", "torchaudio", "mel.log",
     "in the node mel before this one: ln for true, db for false"},
    {"melkwargs", "torchaudio", "mel.n_mels", "they are options of the node mel before this one"},
};

constexpr OtherName kDeltas[] = {
    {"win_length", "torchaudio", "width"},
    {"window_length", "SpeechBrain", "width"},
    {"delta_order", kKaldis, "order"},
    {"delta_window", kKaldis, "width", "2 delta_window + 1"},
};

constexpr OtherName kStack[] = {
    {"lfr_m", "FunASR", "frames"},
    {"lfr_n", "FunASR", "hop"},
    {"stack", "", "frames"},
    {"n_frames", "", "frames"},
    {"left_context", kKaldis, "left", "frames: left_context + 1 + right_context, hop: 1"},
    {"right_context", kKaldis, "frames", "left_context + 1 + right_context, and hop: 1"},
    {"left_frames", "SpeechBrain", "left", "and frames: left_frames + 1 + right_frames, hop: 1"},
    {"right_frames", "SpeechBrain", "frames", "left_frames + 1 + right_frames, and hop: 1"},
    {"stride", "Transformers", "hop"},
    {"skip", "", "hop"},
    {"n", kKaldis, "hop", "as in subsample-feats, with frames: 1"},
    {"padding_value", "Transformers", "value", "with tail: value"},
    {"pad_value", "", "value", "with tail: value"},
};

constexpr OtherName kFitRows[] = {
    {"pad_to", "NeMo", "multiple"},
    {"pad_to_multiple_of", "Transformers", "multiple"},
    {"max_length", "Transformers", "rows"},
    {"target_length", "AST", "rows"},
    {"length", "", "rows"},
    {"frames", "", "rows"},
    {"pad_value", "NeMo", "value"},
    {"padding_value", "Transformers", "value"},
    {"fill", "", "value"},
};

constexpr OtherName kSlidingCmvn[] = {
    {"cmn_window", kKaldis, "window"},
    {"min_cmn_window", "torchaudio", "min_window"},
    {"norm_vars", kKaldis, "norm_variance"},
    {"normalize_variance", "", "norm_variance"},
};

// option, value in another library, the end of the message
constexpr const char* kDecibels = "write db for decibels, ln for the natural logarithm, or none";
constexpr const char* kInHertz = "write Hz as a number without a unit, such as 8000";
constexpr const char* kNoTime =
    "n_fft is in samples, such as 512; a time such as 25ms goes into win_length";

constexpr const char* kNoWrap =
    "padding with the other end of the recording is not there: write reflect, symmetric, constant "
    "or edge";
constexpr const char* kOwnColumns =
    "write per_feature: each column by its own mean and standard deviation over the recording or "
    "segment, or all_features; there is none by speaker";

// NeMo's guards, of torch.finfo(float32).
constexpr const char* kTiny = "write 1.1754943508222875e-38, the least normal number of float32";
constexpr const char* kEps = "write 1.1920928955078125e-07, the resolution of float32";

constexpr OtherValue kMelValues[] = {
    {"log_offset", "tiny", kTiny},
    {"log_offset", "eps", kEps},
    {"amin", "tiny", kTiny},
    {"amin", "eps", kEps},
    {"window", "hanning", "write hann"},
    {"window", "hann_window", "write hann"},
    {"window", "hamming_window", "write hamming"},
    {"window", "rectangular", "write boxcar"},
    {"window", "rect", "write boxcar"},
    {"window", "ones", "write boxcar"},
    {"window", "blackman_window", "write blackman"},
    {"window", "bartlett_window", "write bartlett"},
    {"window", "kaiser_window", "write kaiser, with kaiser_beta"},
    {"window", "triangular", "write bartlett"},
    {"window", "gaussian", "write gauss, with gauss_std"},
    {"window", "none", "write boxcar"},
    {"pad_mode", "replicate", "write edge"},
    {"pad_mode", "zeros", "write constant"},
    {"pad_mode", "zero", "write constant"},
    {"pad_mode", "mirror", "write reflect"},
    {"pad_mode", "circular", kNoWrap},
    {"pad_mode", "wrap", kNoWrap},
    {"pad_mode", "none", "write center: false, so that nothing is padded"},
    {"n_fft", "*s", kNoTime},
    {"top_db", "*dB", "write decibels as a number without a unit, such as 80"},
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
    {"log", "power_to_db", "write db, with top_db: 80 for librosa's default"},
    {"log", "amplitude_to_db", "write db, with power: 1, and top_db: 80 for librosa's default"},
    {"log", "decibel", "write db"},
    {"log", "decibels", "write db"},
    {"log", "log1p", "write ln, with log_offset: 1"},
    {"log", "piecewise_linear", "write piecewise"},
    {"preemphasis_first", "reflection", "write reflect"},
    {"preemphasis_first", "none", "write keep"},
    {"preemphasis_first", "edge", "write replicate"},
    {"partial_frames", "true", "write last for python_speech_features' rule, all for TensorFlow's"},
    {"partial_frames", "false", "write none"},
    {"log", "log2", "write ln: it differs from log2 by a factor"},
    {"htk_mode", "true", "write kaldi for Kaldi's htk-mode, htk for HTK's own rule"},
    {"normalized", "true", "write window"},
    {"normalized", "false", "write none"},
    {"power", "true", "write 2 for the power, 1 for the magnitude"},
    {"backend", "gpu", "write cuda"},
    {"backend", "GPU", "write cuda"},
    {"normalize", "true", kOwnColumns},
    {"normalize", "false", "write none"},
    {"normalize", "cmvn", kOwnColumns},
    {"normalize", "mvn", kOwnColumns},
    {"normalize", "global",
     "write fixed, with norm_mean and norm_std, or set statistics: train and "
     "normalize: true in the node that writes"},
    {"normalize", "utterance", kOwnColumns},
    {"norm", "area", "write slaney"},
    {"norm", "false", "write none"},
    {"norm", "true", "write slaney for triangles of equal area, or none"},
    {"preset", "openai", "write whisper"},
    {"preset", "granite_speech_5",
     "no options give its number of frames, which is even before top_db and its derivatives, and "
     "the zero that it adds to odd multiples of 10 ms"},
    {"preset", "musicgen_melody", "no options give chroma"},
    {"preset", "python_speech_features", "no options give its energy, which is of the spectrum"},
};

constexpr const char* kZeros = "write value, which is 0 where the option value is not written";

constexpr OtherValue kStackValues[] = {
    {"head", "zeros", kZeros},
    {"tail", "zeros", kZeros},
    {"head", "repeat", "write replicate"},
    {"tail", "repeat", "write replicate"},
    {"head", "edge", "write replicate"},
    {"tail", "edge", "write replicate"},
    {"head", "none", "write left: 0, so that the first row begins with the first frame"},
    {"tail", "none", "write drop"},
    {"order", "band", "write band_major"},
    {"order", "frame", "write frame_major"},
};

}  // namespace

std::span<const OtherName> of_mel() { return kMel; }
std::span<const OtherName> of_mfcc() { return kMfcc; }
std::span<const OtherName> of_deltas() { return kDeltas; }
std::span<const OtherName> of_stack() { return kStack; }
std::span<const OtherName> of_fit_rows() { return kFitRows; }
std::span<const OtherName> of_sliding_cmvn() { return kSlidingCmvn; }

std::span<const OtherValue> values_of_mel() { return kMelValues; }
std::span<const OtherValue> values_of_stack() { return kStackValues; }

}  // namespace melflow::other_names
