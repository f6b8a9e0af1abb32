// NeMo's and SpeechBrain's preprocessors.
#include <utility>

#include "stages/model_files/front_end_class.h"

namespace melflow {
namespace {

constexpr FrontEndClass kNemoClasses[] = {
    {"AudioToMelSpectrogramPreprocessor",
     "sample_rate=16000 window_size:num?=0.02 window_stride:num?=0.01 n_window_size:int?=none "
     "n_window_stride:int?=none window='hann' normalize:text?='per_feature' "
     "normalize.fixed_mean:list?=none normalize.fixed_std:list?=none n_fft:int?=none "
     "preemph:num?=0.97 features=64 lowfreq:num=0 highfreq:num?=none log=true "
     "log_zero_guard_type='add' log_zero_guard_value:any=5.9604644775390625e-08 pad_to:any=16 "
     "frame_splicing==1 exact_pad=false pad_value:num=0 mag_power=2.0 mel_norm:text?='slaney' "
     "nemo_version:text?=none",
     "",
     "_target_ cls dither rng nb_augmentation_prob nb_max_freq use_torchaudio stft_exact_pad "
     "stft_conv",
     "not (window_size and n_window_size) | n_window_size | one of window_size and n_window_size\n"
     "not (window_stride and n_window_stride) | n_window_stride | one of window_stride and "
     "n_window_stride\n"
     "window_size or n_window_size | n_window_size | a length of the window\n"
     "window_stride or n_window_stride | n_window_stride | a distance between windows\n"
     "not exact_pad or preemph == none | exact_pad | preemph: null, as the class leaves out the "
     "last samples else\n"
     "pad_to != 'max' | pad_to | a number of rows that is not of 16.7 s\n"
     "(normalize.fixed_mean == none) == (normalize.fixed_std == none) | normalize | both "
     "fixed_mean "
     "and fixed_std",
     "mel: {preset: nemo, sample_rate: =sample_rate, preemphasis: =preemph or 0, "
     "n_fft: =n_fft or pow2(int(window_size * sample_rate) if window_size else n_window_size or "
     "0), "
     "win_length: =int(window_size * sample_rate) if window_size else n_window_size, "
     "hop: =int(window_stride * sample_rate) if window_stride else n_window_stride, "
     "window: =pick(window, 'hann', 'hann', 'hamming', 'hamming', 'blackman', 'blackman', "
     "'bartlett', 'bartlett'), "
     "center: =false if exact_pad else none, "
     "pad: =((n_fft or pow2(int(window_size * sample_rate) if window_size else n_window_size or "
     "0)) - (int(window_stride * sample_rate) if window_stride else n_window_stride)) // 2 if "
     "exact_pad else none, "
     "power: =mag_power, n_mels: =features, fmin: =lowfreq, fmax: =highfreq or none, "
     "norm: ='none' if mel_norm == none else pick(mel_norm, 'slaney', 'slaney'), "
     "log: ='ln' if log else 'none', "
     "log_offset: =0 if not log or log_zero_guard_type == 'clamp' else "
     "float32(log_zero_guard_value), "
     "amin: =none if not log or pick(log_zero_guard_type, 'add', 'add', 'clamp', 'clamp') == 'add' "
     "else float32(log_zero_guard_value), "
     "normalize: ='fixed' if normalize.fixed_mean != none else 'none' if normalize == none else "
     "pick(normalize, 'per_feature', 'per_feature', 'all_features', 'all_features', 'NA', 'none', "
     "'none', 'none'), "
     "norm_mean: =normalize.fixed_mean, norm_std: =normalize.fixed_std}\n"
     "if pad_to > 0: fit_rows: {extra: 1, multiple: =pad_to, "
     "value: =pad_value if pad_value else none}",
     "nemo_version != none and not before(nemo_version, '2.0') and before(nemo_version, '2.5') | "
     "computed as by NeMo 3.0.0; the version of the file pads by reflection and keeps the last "
     "frame: pad_mode: reflect and drop_last: false beside preset\n"
     "nemo_version == none or before(nemo_version, '2.0') | computed as by NeMo 3.0.0, in "
     "evaluation"},
};

constexpr std::pair<std::string_view, std::string_view> kNoNemoClasses[] = {
    {"AudioToMFCCPreprocessor", "write the nodes of torchaudio's MFCC, preset: torchaudio_mfcc"},
    {"AudioToSpectrogramPreprocessor", "write mel with output: spectrogram"},
};

constexpr std::string_view kNormalization =
    "normalization.norm_type != none and (normalization.norm_type != 'sentence' or deltas or "
    "context) | the file's InputNormalization, which comes after the class, is not applied: "
    "norm_type "
    "sentence alone is, without deltas and context; the statistics of others are in a checkpoint, "
    "and with them it is normalize: fixed, norm_mean and norm_std beside preset\n"
    "normalization.norm_type == 'sentence' and normalization.std_norm and not (deltas or context) "
    "| "
    "the deviation is that of N frames; versions before 1.1 divided by N - 1: norm_ddof: 1 beside "
    "preset";

constexpr FrontEndClass kSpeechBrainClasses[] = {
    {"Fbank",
     "deltas=false context=false requires_grad==false sample_rate=16000 f_min:num=0 "
     "f_max:num?=none n_fft=400 n_mels=40 filter_shape=='triangular' left_frames=5 "
     "right_frames=5 win_length:num=25 hop_length:num=10 "
     "normalization.norm_type:text?=none "
     "normalization.std_norm=true normalization.mean_norm==true normalization.length_dim==1 "
     "normalization.avg_factor:num?==none normalization.epsilon=1e-10",
     "",
     "param_change_factor param_rand_factor normalization.update_until_epoch "
     "normalization.avoid_padding_norm normalization.device",
     "normalization.norm_type != 'sentence' or normalization.epsilon <= 1e-6 | "
     "normalization.epsilon | a least deviation of at most 1e-6",
     "mel: {preset: speechbrain, sample_rate: =sample_rate, n_fft: =n_fft, "
     "win_length: =none if round(sample_rate / 1000 * win_length) == n_fft else round(sample_rate "
     "/ 1000 * win_length), "
     "hop: =round(sample_rate / 1000 * hop_length), n_mels: =n_mels, "
     "fmin: =f_min if f_min else none, "
     "fmax: =f_max if f_max != none else none if sample_rate % 2 == 0 else sample_rate // 2, "
     "normalize: ='per_feature' if normalization.norm_type == 'sentence' and not (deltas or "
     "context) else none, "
     "norm_variance: =none if normalization.norm_type != 'sentence' or deltas or context else "
     "normalization.std_norm, "
     "norm_ddof: =0 if normalization.norm_type == 'sentence' and normalization.std_norm and not "
     "(deltas or context) else none, "
     "norm_eps: =normalization.epsilon if normalization.norm_type == 'sentence' and "
     "normalization.std_norm and not (deltas or context) else none}\n"
     "if deltas: deltas: {order: 2, method: regression}\n"
     "if context: stack: {frames: =left_frames + right_frames + 1, hop: 1, left: =left_frames, "
     "head: value, tail: value, order: band_major}",
     kNormalization},
    {"MFCC",
     "deltas=true context=true requires_grad==false sample_rate=16000 f_min:num=0 f_max:num?=none "
     "n_fft=400 n_mels=23 n_mfcc=20 filter_shape=='triangular' left_frames=5 right_frames=5 "
     "win_length:num=25 hop_length:num=10 "
     "normalization.norm_type:text?=none "
     "normalization.std_norm=true normalization.mean_norm==true normalization.length_dim==1 "
     "normalization.avg_factor:num?==none normalization.epsilon=1e-10",
     "",
     "param_change_factor param_rand_factor normalization.update_until_epoch "
     "normalization.avoid_padding_norm normalization.device",
     "",
     "mel: {as Fbank, normalize: =none, norm_variance: =none, norm_ddof: =none, norm_eps: =none}\n"
     "mfcc: {n_mfcc: =n_mfcc}\n"
     "if deltas: deltas: {order: 2, method: regression}\n"
     "if context: stack: {frames: =left_frames + right_frames + 1, hop: 1, left: =left_frames, "
     "head: value, tail: value, order: band_major}",
     "normalization.norm_type != none | the file's InputNormalization is not applied to cepstra: "
     "put "
     "a node behind them, or take the rows as the class gives them"},
};

}  // namespace

constinit const FrontEndFamily kNemo{"nemo",       "NeMo 3.0.0",   "",
                                     kNemoClasses, kNoNemoClasses, "librosa | NeMo's AudioSegment"};
constinit const FrontEndFamily kSpeechBrain{"speechbrain",
                                            "speechbrain 1.1.2",
                                            "object",
                                            kSpeechBrainClasses,
                                            {},
                                            "ceil | SpeechBrain's AudioNormalizer"};

}  // namespace melflow
