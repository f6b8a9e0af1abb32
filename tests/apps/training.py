"""The dataset of docs/examples/torch_dataset.py against the datasets of an output, read one by one.

In:  training.py OUTPUT.h5 FOLDER_OF_THE_EXAMPLE
Out: nothing where all is right; exit status 77 where PyTorch is not installed.
"""
import sys

try:
    import torch
except ImportError:
    sys.exit(77)
import h5py
import numpy as np

sys.path.insert(0, sys.argv[2])
from torch_dataset import Recordings, pad  # noqa: E402

f = h5py.File(sys.argv[1], "r")
paths, counts = list(f["files/path"].asstr()), f["files/count"][:]
rows = f["mel"][:]


def expected(split, label):
    names = [path for path in paths if path.startswith(split + "/" + label + "/")]
    wanted = []
    for path in names:
        i = paths.index(path)
        if counts[i] > 0:
            wanted.append(rows[f["files/offset"][i] : f["files/offset"][i] + counts[i]])
    return wanted


for split in ("train", "test"):
    both = Recordings(sys.argv[1], split=split)
    wanted = {label: expected(split, label) for label in ("cat", "dog")}
    assert len(both) == len(wanted["cat"]) + len(wanted["dog"]) > 0
    for label, own in wanted.items():
        some = Recordings(sys.argv[1], split=split, label=label)
        assert [some.names[some[i][1]] for i in range(len(some))] == [label] * len(own)
        assert all(np.array_equal(some[i][0].numpy(), own[i]) for i in range(len(own)))
    for workers in (0, 2):
        loader = torch.utils.data.DataLoader(both, batch_size=3, num_workers=workers, collate_fn=pad)
        at = 0
        for padded, lengths, labels in loader:
            assert padded.shape[:2] == (len(lengths), max(lengths)) and len(labels) == len(lengths)
            for one, length in zip(padded, lengths):
                assert np.array_equal(one[:length].numpy(), both[at][0].numpy())
                assert not one[length:].any()
                at += 1
        assert at == len(both)
second = Recordings(sys.argv[1], split="test", clip="2")
assert len(second) == 2
for i, group in enumerate(("cat", "dog")):
    assert second.names[second[i][1]] == group
    assert np.array_equal(second[i][0].numpy(), expected("test", group)[2])
assert list(second.paths) == ["test/cat/2.wav", "test/dog/2.wav"] and list(second.texts["clip"]) == ["2", "2"]
for wrong, message in (
    ({"clip": "9"}, "there is no clip '9'; it has "),
    ({"speaker": "ann"}, "there is no column 'speaker'; it has clip"),
    ({"split": "val"}, "there is no split 'val'; it has "),
    ({"label": "cow"}, "there is no label 'cow'; it has cat, dog"),
):
    try:
        Recordings(sys.argv[1], **wrong)
        raise AssertionError(f"{wrong} was taken")
    except ValueError as e:
        assert str(e).startswith(sys.argv[1] + ": " + message), e
assert len(Recordings(sys.argv[1])) == (counts > 0).sum()
