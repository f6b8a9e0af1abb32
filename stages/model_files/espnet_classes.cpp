// The front ends of ESPnet, FunASR, WeNet and WeSpeaker, whose configurations name statistics, too.
#include <utility>

#include "stages/model_files/front_end_class.h"

namespace melflow {
namespace {

constexpr FrontEndClass kEspnetClasses[] = {
    {"DefaultFrontend",
     "fs:any='16k' n_fft=512 win_length:int?=none hop_length=128 window:text?='hann' center=true "
     "normalized=false onesided==true n_mels=80 fmin:num?=none fmax:num?=none htk=false "
     "apply_stft==true normalize:text?=none normalize_conf.norm_means=true "
     "normalize_conf.norm_vars:bool?=none normalize_conf.mean:list?=none "
     "normalize_conf.std:list?=none",
     "", "frontend_conf normalize_conf.stats_file normalize_conf.eps",
     "normalize == none or normalize_conf.norm_means | normalize_conf.norm_means | a normalize "
     "that "
     "subtracts",
     "mel: {preset: espnet, sample_rate: =hertz(fs), n_fft: =n_fft, win_length: =win_length, "
     "hop: =hop_length, window: ='boxcar' if window == none else pick(window, 'hann', 'hann', "
     "'hamming', 'hamming', 'blackman', 'blackman', 'bartlett', 'bartlett'), "
     "center: =none if center else false, normalized: ='frame_length' if normalized else none, "
     "n_mels: =n_mels, fmin: =fmin, fmax: =fmax, mel_scale: ='htk' if htk else none, "
     "normalize: =none if normalize == none else pick(normalize, 'utterance_mvn', 'per_feature', "
     "'global_mvn', 'fixed'), "
     "norm_variance: =false if normalize == 'utterance_mvn' and not normalize_conf.norm_vars else "
     "none, "
     "norm_eps: =0 if normalize == 'utterance_mvn' and normalize_conf.norm_vars else none, "
     "norm_ddof: =0 if normalize == 'utterance_mvn' and normalize_conf.norm_vars else none, "
     "norm_mean: =normalize_conf.mean if normalize == 'global_mvn' else none, "
     "norm_std: =none if normalize != 'global_mvn' else 1 if normalize_conf.norm_vars == false "
     "else normalize_conf.std}",
     ""},
    {"LogMelFbank",
     "fs:any=16000 n_fft=1024 win_length:int?=none hop_length=256 window:text?='hann' center=true "
     "normalized=false onesided==true n_mels=80 fmin:num?=80 fmax:num?=7600 htk=false "
     "log_base:num?=10.0 normalize:text?=none normalize_conf.norm_means=true "
     "normalize_conf.norm_vars:bool?=none normalize_conf.mean:list?=none "
     "normalize_conf.std:list?=none",
     "", "normalize_conf.stats_file normalize_conf.eps",
     "log_base == none or log_base == 10 | log_base | a logarithm that is not natural or decimal\n"
     "normalize == none or normalize_conf.norm_means | normalize_conf.norm_means | a normalize "
     "that "
     "subtracts",
     "mel: {as DefaultFrontend, preset: espnet_tts, fmin: =0 if fmin == none else fmin, "
     "fmax: =0 if fmax == none else fmax, log: ='ln' if log_base == none else none}",
     ""},
};

constexpr FrontEndClass kFunasrClasses[] = {
    {"WavFrontend",
     "fs=16000 window='hamming' n_mels=80 frame_length:num=25 frame_shift:num=10 lfr_m=1 lfr_n=1 "
     "dither=1.0 snip_edges=true upsacle_samples=true cmvn.shift:list?=none cmvn.scale:list?=none",
     "", "filter_length_min filter_length_max cmvn_file",
     "cmvn.shift == none or size(cmvn.shift) == n_mels * lfr_m | cmvn.shift | as many values as a "
     "row has\n"
     "cmvn.shift == none or repeats(cmvn.shift, n_mels) and repeats(cmvn.scale, n_mels) | "
     "cmvn.shift | a mean and deviation for each of the frames that are joined",
     "mel: {preset: kaldi, sample_rate: =fs, input_scale: =none if upsacle_samples else 1, "
     "win_length: =int(fs * 0.001 * frame_length), n_fft: =pow2(int(fs * 0.001 * frame_length)), "
     "hop: =int(fs * 0.001 * frame_shift), dither: =none if dither == 0 else dither, "
     "window: =pick(window, 'hamming', 'hamming', 'hanning', 'hann', 'povey', 'povey', "
     "'rectangular', 'boxcar', 'blackman', 'blackman'), "
     "snip_edges: =none if snip_edges else false, n_mels: =n_mels, "
     "normalize: =none if cmvn.shift == none else 'fixed', "
     "norm_mean: =none if cmvn.shift == none else 0 - head(cmvn.shift, n_mels), "
     "norm_std: =none if cmvn.shift == none else inverse(head(cmvn.scale, n_mels))}\n"
     "if lfr_m != 1 or lfr_n != 1: stack: {frames: =lfr_m, hop: =lfr_n, left: =(lfr_m - 1) // 2, "
     "tail: replicate}",
     "dither > 0 | dither: noise of melflow's own generator; without it: {file: FILE, dither: 0}"},
};

constexpr FrontEndClass kWenetClasses[] = {
    {"compute_fbank of WeNet",
     "num_mel_bins=23 frame_length:num=25 frame_shift:num=10 window_type='povey' "
     "resample_rate=16000 global_cmvn.is_there=false global_cmvn.mean:list?=none "
     "global_cmvn.std:list?=none",
     "cmvn:text='none'", "dither",
     "cmvn == 'none' or pick(cmvn, 'global', global_cmvn.is_there) | cmvn | a file with "
     "global_cmvn\n"
     "global_cmvn.mean == none or size(global_cmvn.mean) == num_mel_bins | cmvn | statistics with "
     "a number for each band",
     "mel: {preset: kaldi, sample_rate: =resample_rate, "
     "win_length: =int(resample_rate * 0.001 * frame_length), "
     "n_fft: =pow2(int(resample_rate * 0.001 * frame_length)), "
     "hop: =int(resample_rate * 0.001 * frame_shift), n_mels: =num_mel_bins, "
     "window: =pick(window_type, 'povey', 'povey', 'hanning', 'hann', 'hamming', 'hamming', "
     "'rectangular', 'boxcar', 'blackman', 'blackman'), "
     "normalize: ='fixed' if global_cmvn.mean != none else none, norm_mean: =global_cmvn.mean, "
     "norm_std: =global_cmvn.std}",
     "global_cmvn.is_there and cmvn == 'none' | the file's global_cmvn is a layer of the model, so "
     "it is not applied; with it: {file: FILE, cmvn: global}"},
    {"compute_fbank of WeSpeaker",
     "num_mel_bins=80 frame_length:num=25 frame_shift:num=10 resample_rate=16000 cmvn=true "
     "cmvn_args.norm_mean=true cmvn_args.norm_var=false",
     "", "dither",
     "cmvn_args.norm_mean or not cmvn_args.norm_var or not cmvn | cmvn_args.norm_mean | a "
     "normalize "
     "that divides and does not subtract\n"
     "not cmvn_args.norm_var or not cmvn | cmvn_args.norm_var | its epsilon within the root, which "
     "is not checked here",
     "mel: {as compute_fbank of WeNet, window: hamming, norm_mean: =none, norm_std: =none, "
     "normalize: ='per_feature' if cmvn and cmvn_args.norm_mean else none, "
     "norm_variance: =false if cmvn and cmvn_args.norm_mean else none}",
     ""},
};

constexpr std::pair<std::string_view, std::string_view> kNoEspnet[] = {
    {"s3prl", "it is a model"},
    {"fused", "it joins several front ends"},
    {"whisper", "it is a model"},
    {"linear_spectrogram", "write mel with output: spectrogram"},
    {"spectrogram", "write mel with output: spectrogram"},
};

}  // namespace

constinit const FrontEndFamily kEspnet{"espnet", "ESPnet", "", kEspnetClasses, kNoEspnet, ""};
constinit const FrontEndFamily kFunasr{
    "funasr", "FunASR 1.4.16", "", kFunasrClasses, {}, "ceil | torchaudio's Resample"};
constinit const FrontEndFamily kWenet{"wenet", "WeNet and WeSpeaker",         "", kWenetClasses,
                                      {},      "ceil | torchaudio's Resample"};

}  // namespace melflow
