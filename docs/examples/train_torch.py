"""Trains a small PyTorch classifier on batches that melflow makes: straight from audio, or from rows in a file.

train_torch.py PIPELINE.yaml|FEATURES.h5 [EPOCHS]
A pipeline cuts recordings into windows, gives them labels and the splits train and val, and ends in `batches`; a file has
what the same pipeline writes. Prints the share of validation recordings whose label is found.
"""
import sys
from typing import Any, Dict

import melflow
import torch


def inputs(batch: Dict[str, Any]) -> Any:
    return torch.from_dlpack(batch["mel"]).unsqueeze(1), torch.from_dlpack(batch["label"]).long()


def main(source: str, epochs: Any = 3) -> None:
    rows = melflow.open(source)
    train = rows.batches(64, split="train", seed=1)
    torch.manual_seed(0)
    net = torch.nn.Sequential(
        torch.nn.BatchNorm2d(1), torch.nn.Conv2d(1, 16, 5, stride=2), torch.nn.ReLU(),
        torch.nn.Conv2d(16, 32, 5, stride=2), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(4),
        torch.nn.Flatten(), torch.nn.Linear(512, len(rows.label_names)))
    optimizer = torch.optim.Adam(net.parameters(), 2e-3)
    for epoch in range(int(epochs)):
        total, count = 0.0, 0
        net.train()
        for batch in train:
            x, y = inputs(batch)
            loss = torch.nn.functional.cross_entropy(net(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total, count = total + loss.item() * len(y), count + len(y)
        print(f"epoch {epoch}: {count} windows, loss {total / count:.3f}")
    net.eval()
    levels: Dict[str, Any] = {}
    truth: Dict[str, int] = {}
    with torch.no_grad():
        for batch in rows.batches(64, split="val", shuffle=False):
            x, y = inputs(batch)
            for path, level, label in zip(batch["path"], net(x).log_softmax(1), y):
                levels[path] = levels.get(path, 0) + level
                truth[path] = int(label)
    right = sum(int(levels[p].argmax()) == truth[p] for p in truth)
    print(f"val: {right} of {len(truth)} recordings ({right / len(truth):.1%})")


main(*sys.argv[1:])
