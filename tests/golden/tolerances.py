"""How far apart the libraries' own tests let two of their mel outputs be, and where that is said.

None: the library tests no values, or has no tests.
"""

TOLERANCES = dict(
    librosa=dict(
        atol=1e-8, rtol=1e-5,
        source="librosa tests/test_filters.py test_melfb, np.allclose of the filters with Matlab's; "
               "tests/test_multichannel.py test_melspectrogram_multi, of one channel with two"),
    torchaudio=dict(
        atol=5e-4, rtol=1e-5,
        source="pytorch/audio test/torchaudio_unittest/transforms/librosa_compatibility_test_impl.py "
               "test_MelSpectrogram, against librosa"),
    kaldi=dict(
        atol=1e-8, rtol=1e-4,
        source="pytorch/audio test/torchaudio_unittest/compliance/kaldi/kaldi_compatibility_impl.py "
               "test_fbank, against Kaldi's compute-fbank-feats. kaldi-native-fbank's own python/tests "
               "compare no fbank values; csukuangfj/kaldifeat kaldifeat/python/tests/test_fbank.py "
               "allows rtol 0.1 against Kaldi's text"),
    kaldi_htk=dict(
        atol=1e-8, rtol=0.1,
        source="csukuangfj/kaldifeat kaldifeat/python/tests/test_fbank.py test_fbank_htk (htk_compat "
               "with energy), against Kaldi's text; htk_mode is tested nowhere"),
    whisper=dict(
        atol=1e-4, rtol=1e-5,
        source="huggingface/transformers tests/models/whisper/test_feature_extraction_whisper.py "
               "test_numpy_integration; openai/whisper tests/test_audio.py allows rtol 1e-4, atol 1e-4 "
               "between float32 and float64"),
    whisper_large_v3=dict(atol=1e-4, rtol=1e-5, source="as whisper"),
    nemo=dict(
        atol=1e-3, rtol=0.0,
        source="NVIDIA/NeMo tests/collections/asr/test_asr_modules.py "
               "test_AudioToMelSpectrogramPreprocessor_batch, one file against a batch; values are "
               "compared with nothing else"),
    speechbrain=dict(
        atol=8e-5, rtol=0.0,
        source="speechbrain tests/unittests/test_features.py test_filterbank, one against a batch, the "
               "sum of all differences"),
    hifigan=dict(atol=None, rtol=None, source="jik876/hifi-gan has no tests"),
    ast=dict(
        atol=1e-4, rtol=1e-4,
        source="huggingface/transformers tests/models/audio_spectrogram_transformer/"
               "test_feature_extraction_audio_spectrogram_transformer.py test_integration"))
