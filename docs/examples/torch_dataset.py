"""Recordings of a melflow output as a PyTorch dataset, and how batches of them are padded."""
import h5py
import torch
from torch.nn.utils.rnn import pad_sequence


class Recordings(torch.utils.data.Dataset):
    """(rows [count, ...] float32, label) of each recording that has rows; of one split, label or text, such as speaker="ann", only."""

    def __init__(self, path, split=None, label=None, **texts):
        self.path, self.file = path, None
        with h5py.File(path, "r") as f:
            self.names = list(f["labels/name"].asstr())
            mine = f["files/count"][:] > 0
            if split is not None:
                mine &= f["files/split"][:] == list(f["splits/name"].asstr()).index(split)
            if label is not None:
                mine &= f["files/label"][:] == self.names.index(label)
            for column, text in texts.items():
                mine &= f["columns/" + column].asstr()[:] == text
            self.offset, self.count, self.label = (f["files/" + column][:][mine] for column in ("offset", "count", "label"))

    def __len__(self):
        return len(self.count)

    def __getitem__(self, i):
        if self.file is None:  # every worker opens it for itself: HDF5 files do not survive a fork
            self.file = h5py.File(self.path, "r")
            self.rows = self.file[self.file.attrs["rows"]]
        rows = self.rows[self.offset[i] : self.offset[i] + self.count[i]]
        return torch.from_numpy(rows.astype("float32")), int(self.label[i])


def pad(batch):
    """(rows [batch, longest, ...] with zeros behind shorter ones, lengths [batch], labels [batch])."""
    rows, labels = zip(*batch)
    return pad_sequence(rows, batch_first=True), torch.tensor([len(r) for r in rows]), torch.tensor(labels)
