"""Recordings of a melflow output as a PyTorch dataset, and how batches of them are padded."""
from typing import Any, List, Optional

import h5py
import torch
from torch.nn.utils.rnn import pad_sequence


class Recordings(torch.utils.data.Dataset):
    """(rows [count, ...] float32, label) of each recording that has rows; of one split, label or text, such as speaker="ann", only.

    A label of -1: the recording has none. `paths` and `texts` have those of each recording, in the order of the dataset: paths[i] and
    texts["transcript"][i]. Raises ValueError, which says what there is, where a split, label, column or text is not in the file.
    """

    def __init__(self, path: str, split: Optional[str] = None, label: Optional[str] = None, **texts: str) -> None:
        self.path = path
        self.file: Any = None
        with h5py.File(path, "r") as f:
            names = {table: list(f[table + "/name"].asstr()) if table in f else [] for table in ("labels", "splits")}
            columns = {column: f["columns/" + column].asstr()[:] for column in f.get("columns", ())}
            self.names = names["labels"]
            mine = f["files/count"][:] > 0
            if split is not None:
                mine &= f["files/split"][:] == self._place("split", split, names["splits"])
            if label is not None:
                mine &= f["files/label"][:] == self._place("label", label, self.names)
            for column, text in texts.items():
                self._place("column", column, list(columns))
                self._place(column, text, sorted(set(columns[column])))
                mine &= columns[column] == text
            self.offset, self.count, self.label = (f["files/" + column][:][mine] for column in ("offset", "count", "label"))
            self.paths = f["files/path"].asstr()[:][mine]
            self.texts = {column: of_all[mine] for column, of_all in columns.items()}

    def _place(self, what: str, wanted: str, there: List[str]) -> int:
        if wanted in there:
            return there.index(wanted)
        some = ", ".join(there[:10]) + (f", … ({len(there)} in all)" if len(there) > 10 else "")
        raise ValueError(f"{self.path}: there is no {what} {wanted!r}; it has {some or 'none'}")

    def __len__(self) -> int:
        return len(self.count)

    def __getitem__(self, i: int) -> Any:
        if self.file is None:  # every worker opens it for itself: HDF5 files do not survive a fork
            self.file = h5py.File(self.path, "r")
            self.rows = self.file[self.file.attrs["rows"]]
        rows = self.rows[self.offset[i] : self.offset[i] + self.count[i]]
        return torch.from_numpy(rows.astype("float32")), int(self.label[i])


def pad(batch: Any) -> Any:
    """(rows [batch, longest, ...] with zeros behind shorter ones, lengths [batch], labels [batch])."""
    rows, labels = zip(*batch)
    return pad_sequence(rows, batch_first=True), torch.tensor([len(r) for r in rows]), torch.tensor(labels)
