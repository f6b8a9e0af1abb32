// Calls of torchaudio and librosa. The order of the keys is that of the arguments.
#include <utility>

#include "stages/model_files/front_end_class.h"

namespace melflow {
namespace {

constexpr FrontEndClass kTorchaudioCalls[] = {
    {"MelSpectrogram",
     "sample_rate=16000 n_fft=400 win_length:int?=none hop_length:int?=none f_min=0.0 "
     "f_max:num?=none pad=0 n_mels=128 window_fn:text='torch.hann_window' power:num=2.0 "
     "normalized:any=false wkwargs:any?==none center=true pad_mode='reflect' onesided:bool?=none "
     "norm:text?=none mel_scale='htk'",
     "", "", "onesided == none or onesided | onesided | a spectrum of both sides",
     "mel: {preset: torchaudio, sample_rate: =sample_rate, n_fft: =n_fft, "
     "win_length: =win_length, "
     "hop: =(win_length or n_fft) // 2 if not hop_length else hop_length, "
     "fmin: =f_min if f_min else none, fmax: =f_max, pad_zeros: =pad if pad else none, "
     "n_mels: =n_mels, "
     "window: =pick(window_fn, 'torch.hann_window', 'hann', 'torch.hamming_window', 'hamming', "
     "'torch.blackman_window', 'blackman', 'torch.bartlett_window', 'bartlett', 'torch.ones', "
     "'boxcar'), "
     "power: =power, normalized: =none if not normalized else pick(normalized if normalized != "
     "true "
     "else 'window', 'window', 'window', 'frame_length', 'frame_length'), "
     "center: =none if center else false, "
     "pad_mode: =none if not center else pick(pad_mode, 'reflect', 'reflect', 'constant', "
     "'constant', 'replicate', 'edge'), "
     "norm: =none if norm == none else pick(norm, 'slaney', 'slaney'), "
     "mel_scale: =pick(mel_scale, 'htk', 'htk', 'slaney', 'slaney')}",
     ""},
    {"MFCC",
     "sample_rate=16000 n_mfcc=40 dct_type==2 norm:text?=='ortho' log_mels=false "
     "melkwargs.n_fft=400 melkwargs.win_length:int?=none melkwargs.hop_length:int?=none "
     "melkwargs.f_min=0.0 melkwargs.f_max:num?=none melkwargs.pad=0 melkwargs.n_mels=128 "
     "melkwargs.window_fn:text='torch.hann_window' melkwargs.power:num=2.0 "
     "melkwargs.normalized==false melkwargs.center=true melkwargs.pad_mode='reflect' "
     "melkwargs.norm:text?=none melkwargs.mel_scale='htk'",
     "", "", "",
     "mel: {preset: torchaudio, sample_rate: =sample_rate, n_fft: =melkwargs.n_fft, "
     "win_length: =melkwargs.win_length, "
     "hop: =(melkwargs.win_length or melkwargs.n_fft) // 2 if not melkwargs.hop_length else "
     "melkwargs.hop_length, "
     "fmin: =melkwargs.f_min if melkwargs.f_min else none, fmax: =melkwargs.f_max, "
     "pad_zeros: =melkwargs.pad if melkwargs.pad else none, n_mels: =melkwargs.n_mels, "
     "window: =pick(melkwargs.window_fn, 'torch.hann_window', 'hann', 'torch.hamming_window', "
     "'hamming', 'torch.blackman_window', 'blackman', 'torch.bartlett_window', 'bartlett', "
     "'torch.ones', 'boxcar'), "
     "power: =melkwargs.power, center: =none if melkwargs.center else false, "
     "pad_mode: =none if not melkwargs.center else pick(melkwargs.pad_mode, 'reflect', 'reflect', "
     "'constant', 'constant', 'replicate', 'edge'), "
     "norm: =none if melkwargs.norm == none else pick(melkwargs.norm, 'slaney', 'slaney'), "
     "mel_scale: =pick(melkwargs.mel_scale, 'htk', 'htk', 'slaney', 'slaney'), "
     "log: ='ln' if log_mels else 'db', amin: =1e-30 if log_mels else none, "
     "log_offset: =1e-6 if log_mels else none, top_db: =none if log_mels else 80, "
     "db_factor: =none if log_mels or melkwargs.power == 2 else 10}\n"
     "mfcc: {n_mfcc: =n_mfcc}",
     ""},
    {"fbank",
     "blackman_coeff=0.42 channel==-1 dither=0.0 energy_floor=1.0 frame_length=25.0 "
     "frame_shift=10.0 high_freq=0.0 htk_compat=false low_freq=20.0 min_duration==0.0 "
     "num_mel_bins=23 preemphasis_coefficient=0.97 raw_energy=true remove_dc_offset=true "
     "round_to_power_of_two=true sample_frequency=16000.0 snip_edges=true subtract_mean=false "
     "use_energy=false use_log_fbank=true use_power=true vtln_high=-500.0 vtln_low=100.0 "
     "vtln_warp=1.0 window_type='povey'",
     "input_scale:num=1", "", "",
     "mel: {preset: kaldi, sample_rate: =sample_frequency, input_scale: =input_scale, "
     "win_length: =int(sample_frequency * frame_length * 0.001), "
     "n_fft: =pow2(int(sample_frequency * frame_length * 0.001)) if round_to_power_of_two else "
     "int(sample_frequency * frame_length * 0.001), "
     "hop: =int(sample_frequency * frame_shift * 0.001), preemphasis: =preemphasis_coefficient, "
     "remove_dc: =remove_dc_offset, dither: =none if dither == 0 else dither, "
     "window: =pick(window_type, 'povey', 'povey', 'hanning', 'hann', 'hamming', 'hamming', "
     "'rectangular', 'boxcar', 'blackman', 'blackman'), "
     "blackman_coeff: =blackman_coeff if window_type == 'blackman' and blackman_coeff != 0.42 "
     "else none, "
     "snip_edges: =snip_edges, n_mels: =num_mel_bins, fmin: =low_freq, fmax: =high_freq, "
     "vtln_warp: =none if vtln_warp == 1 else vtln_warp, "
     "vtln_low: =none if vtln_warp == 1 else vtln_low, "
     "vtln_high: =none if vtln_warp == 1 else vtln_high, "
     "use_energy: =true if use_energy else none, "
     "raw_energy: =raw_energy if use_energy else none, "
     "energy_floor: =energy_floor if use_energy else none, "
     "htk_compat: =true if use_energy and htk_compat else none, "
     "log: =none if use_log_fbank else 'none', power: =none if use_power else 1, "
     "normalize: ='per_feature' if subtract_mean else none, "
     "norm_variance: =false if subtract_mean else none}",
     "input_scale == 1 | input_scale: 1, samples in [-1, 1); where the waveform was multiplied by "
     "2^15: {file: CALL, input_scale: 32768}\n"
     "dither > 0 | dither: noise of melflow's own generator"},
};

constexpr FrontEndClass kLibrosaCalls[] = {
    {"melspectrogram",
     "sr=22050 S:any?==none n_fft=2048 hop_length=512 win_length:int?=none window='hann' "
     "center=true pad_mode='constant' power=2.0 n_mels=128 fmin=0.0 fmax:num?=none htk=false "
     "norm:any?='slaney'",
     "", "dtype", "",
     "mel: {preset: librosa, sample_rate: =sr, n_fft: =n_fft, hop: =hop_length, "
     "win_length: =win_length, window: =pick(window, 'hann', 'hann', 'hamming', 'hamming', "
     "'blackman', 'blackman', 'boxcar', 'boxcar', 'ones', 'boxcar', 'bartlett', 'bartlett', "
     "'cosine', 'cosine', 'nuttall', 'nuttall'), "
     "center: =none if center else false, "
     "pad_mode: =none if not center else pick(pad_mode, 'constant', 'constant', 'reflect', "
     "'reflect', 'edge', 'edge', 'symmetric', 'symmetric', 'linear_ramp', 'linear_ramp'), "
     "power: =power, n_mels: =n_mels, fmin: =fmin if fmin else none, fmax: =fmax, "
     "mel_scale: ='htk' if htk else none, "
     "norm: ='none' if norm == none else '1' if norm == 1 else '2' if norm == 2 else pick(norm, "
     "'slaney', 'slaney')}",
     ""},
    {"mfcc",
     "sr=22050 S:any?==none n_mfcc=20 dct_type==2 norm:text?=='ortho' lifter:num=0 n_fft=2048 "
     "hop_length=512 win_length:int?=none window='hann' center=true pad_mode='constant' power=2.0 "
     "n_mels=128 fmin=0.0 fmax:num?=none htk=false mel_norm:any?='slaney'",
     "", "dtype", "",
     "mel: {as melspectrogram, "
     "norm: ='none' if mel_norm == none else '1' if mel_norm == 1 else '2' if mel_norm == 2 else "
     "pick(mel_norm, 'slaney', 'slaney'), "
     "log: db, top_db: 80, db_factor: =none if power == 2 else 10}\n"
     "mfcc: {n_mfcc: =n_mfcc, lifter: =lifter if lifter else none}",
     ""},
};

}  // namespace

constinit const FrontEndFamily kTorchaudio{
    "torchaudio", "torchaudio 2.11.0", "", kTorchaudioCalls, {}, "ceil | torchaudio's Resample"};
constinit const FrontEndFamily kLibrosa{"librosa", "librosa 0.11.0",        "", kLibrosaCalls,
                                        {},        "librosa | librosa.load"};

}  // namespace melflow
