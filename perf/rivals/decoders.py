"""How the Python libraries decode a file of one channel.

In:   a path.
Out:  samples, float32 [n], full scale 1.
"""


def by_soundfile():
    import soundfile

    return lambda path: soundfile.read(path, dtype="float32")[0]


def by_torchcodec():
    from torchcodec.decoders import AudioDecoder

    return lambda path: AudioDecoder(path).get_all_samples().data[0].numpy()


def by_pyav():
    import av
    import numpy

    def decode(path):
        with av.open(path) as container:
            frames = [frame.to_ndarray()[0] for frame in container.decode(audio=0)]
        samples = numpy.concatenate(frames)
        if samples.dtype.kind == "f":
            return samples
        return samples.astype("float32") / -float(numpy.iinfo(samples.dtype).min)

    return decode


DECODERS = {"soundfile": by_soundfile, "torchcodec": by_torchcodec, "PyAV": by_pyav}
