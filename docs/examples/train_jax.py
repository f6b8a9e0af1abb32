"""Trains a small JAX classifier on batches that melflow makes: straight from audio, or from rows in a file.

train_jax.py PIPELINE.yaml|FEATURES.h5 [EPOCHS]
As train_torch.py; needs jax and nothing else beside melflow.
"""
import sys
from typing import Any, Dict

import jax
import jax.numpy as jnp
import melflow

RATE, MOMENTUM = 0.02, 0.9


def start(key: Any, bands: int, labels: int, width: int = 128) -> Dict[str, Any]:
    """Two layers over the mean and the spread of each band in a window."""
    a, b = jax.random.split(key)
    return {"w1": jax.random.normal(a, (2 * bands, width)) / jnp.sqrt(2 * bands), "b1": jnp.zeros(width),
            "w2": jax.random.normal(b, (width, labels)) / jnp.sqrt(width), "b2": jnp.zeros(labels)}


def levels(net: Dict[str, Any], mel: Any) -> Any:
    """[windows, labels] of mel [windows, frames, bands] in dB."""
    x = mel / 20
    x = jnp.concatenate([x.mean(1), x.std(1)], 1)
    x = jax.nn.relu(x @ net["w1"] + net["b1"])
    return jax.nn.log_softmax(x @ net["w2"] + net["b2"])


@jax.jit
def step(net: Any, speed: Any, mel: Any, label: Any) -> Any:
    def loss_of(n: Any) -> Any:
        return -jnp.take_along_axis(levels(n, mel), label[:, None], 1).mean()

    loss, slope = jax.value_and_grad(loss_of)(net)
    speed = jax.tree.map(lambda v, g: MOMENTUM * v - RATE * g, speed, slope)
    return jax.tree.map(jnp.add, net, speed), speed, loss


def main(source: str, epochs: Any = 3) -> None:
    rows = melflow.open(source)
    train = rows.batches(64, split="train", seed=1, drop_last=True)  # equal shapes are compiled once
    net = start(jax.random.key(0), rows.shape[-1], len(rows.label_names))
    speed = jax.tree.map(jnp.zeros_like, net)
    for epoch in range(int(epochs)):
        losses = []
        for batch in train:
            # from_dlpack shares the batch's memory, which lives as long as the array does.
            net, speed, loss = step(net, speed, jax.dlpack.from_dlpack(batch["mel"]), jnp.asarray(batch["label"]))
            losses.append(loss)
        print(f"epoch {epoch}: {len(losses)} batches, loss {float(jnp.stack(losses).mean()):.3f}")
    found: Dict[str, Any] = {}
    truth: Dict[str, int] = {}
    for batch in rows.batches(64, split="val", shuffle=False):
        for path, level, label in zip(batch["path"], levels(net, jnp.asarray(batch["mel"])), batch["label"]):
            found[path] = found.get(path, 0) + level
            truth[path] = int(label)
    right = sum(int(found[p].argmax()) == truth[p] for p in truth)
    print(f"val: {right} of {len(truth)} recordings ({right / len(truth):.1%})")


main(*sys.argv[1:])
