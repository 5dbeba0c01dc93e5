"""Trains a small network on 1,797 real handwritten digits, in numpy alone, for about a minute.

Run it anywhere: python digits_numpy.py. Inside a Trainhall job its numbers become charts while it runs. A stop saves a
checkpoint and exits with 75; the next attempt goes on from there. The data lies beside this file (DIGITS-LICENCE.txt).
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import os
import signal
import sys
import time
from pathlib import Path

import numpy as np

try:
    import trainhall
except ImportError:
    trainhall = None  # type: ignore[assignment]

DATA = Path(__file__).resolve().with_name("digits.csv.gz")
CHECKPOINT_EVERY = 10.0  # seconds
STOPPED = 75  # the exit code that says: stopped on request, and what was learned is saved


def load_digits() -> tuple[np.ndarray, np.ndarray]:
    """Images as rows of 64 numbers between 0 and 1, and the digit each shows."""
    with gzip.open(DATA, "rt") as file:
        table = np.loadtxt(file, delimiter=",")
    return table[:, :64] / 16, table[:, 64].astype(int)


class Network:
    """Two hidden layers with ReLU, softmax at the end, trained by stochastic gradient descent with momentum."""

    def __init__(self, sizes: list[int], rng: np.random.Generator) -> None:
        self.weights = [rng.normal(0, np.sqrt(2 / a), (a, b)) for a, b in itertools.pairwise(sizes)]
        self.biases = [np.zeros(size) for size in sizes[1:]]
        self.speeds = [np.zeros_like(array) for array in self.weights + self.biases]

    def forward(self, images: np.ndarray) -> list[np.ndarray]:
        """The activations of every layer; the last are probabilities."""
        layers = [images]
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            layers.append(np.maximum(0, layers[-1] @ weight + bias))
        scores = layers[-1] @ self.weights[-1] + self.biases[-1]
        scores = np.exp(scores - scores.max(axis=1, keepdims=True))
        return [*layers, scores / scores.sum(axis=1, keepdims=True)]

    def backward(self, layers: list[np.ndarray], digits: np.ndarray, decay: float) -> list[np.ndarray]:
        """The gradients of the mean cross-entropy, of the weights first, then of the biases."""
        delta = layers[-1].copy()
        delta[np.arange(len(digits)), digits] -= 1
        delta /= len(digits)
        of_weights, of_biases = [], []
        for index in reversed(range(len(self.weights))):
            of_weights.append(layers[index].T @ delta + decay * self.weights[index])
            of_biases.append(delta.sum(axis=0))
            delta = (delta @ self.weights[index].T) * (layers[index] > 0)
        return of_weights[::-1] + of_biases[::-1]

    def update(self, gradients: list[np.ndarray], lr: float, momentum: float = 0.9) -> None:
        for array, speed, gradient in zip(self.weights + self.biases, self.speeds, gradients, strict=True):
            speed *= momentum
            speed -= lr * gradient
            array += speed

    def named(self) -> dict[str, np.ndarray]:
        return {f"layer{number}.weight": weight for number, weight in enumerate(self.weights, 1)}


def loss_of(probabilities: np.ndarray, digits: np.ndarray) -> float:
    return float(-np.log(probabilities[np.arange(len(digits)), digits] + 1e-12).mean())


def accuracy_of(probabilities: np.ndarray, digits: np.ndarray) -> float:
    return float((probabilities.argmax(axis=1) == digits).mean())


def shifted(images: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Each image moved by up to one pixel: more to learn from than 1,437 pictures are."""
    padded = np.pad(images.reshape(-1, 8, 8), ((0, 0), (1, 1), (1, 1)))
    down, right = rng.integers(0, 3, (2, len(images)))
    rows = down[:, None, None] + np.arange(8)[None, :, None]
    columns = right[:, None, None] + np.arange(8)[None, None, :]
    return padded[np.arange(len(images))[:, None, None], rows, columns].reshape(-1, 64)


def lr_at(share: float, peak: float) -> float:
    """Up during the first twentieth, then down along a cosine."""
    return peak * share / 0.05 if share < 0.05 else peak * (1 + np.cos(np.pi * min(1, (share - 0.05) / 0.95))) / 2


class Checkpoint:
    """The state of a training in one file, replaced in one go, so that a kill in between leaves the old one."""

    def __init__(self, folder: str | None) -> None:
        self.path = Path(folder, "digits.npz") if folder else None

    def save(self, network: Network, *, step: int, epoch: int, seconds: float) -> None:
        if self.path is None:
            return
        arrays = {f"a{index}": array for index, array in enumerate(self._arrays(network))}
        with open(self.path.with_suffix(".new"), "wb") as file:
            np.savez(file, step=step, epoch=epoch, seconds=seconds, **arrays)
        os.replace(self.path.with_suffix(".new"), self.path)

    def load(self, network: Network) -> tuple[int, int, float]:
        """Step, epoch and seconds to go on from; zeros where there is nothing, or a network of another shape."""
        if self.path is None or not self.path.exists():
            return 0, 0, 0.0
        with np.load(self.path) as saved:
            arrays = self._arrays(network)
            if any(saved[f"a{index}"].shape != array.shape for index, array in enumerate(arrays)):
                return 0, 0, 0.0
            for index, array in enumerate(arrays):
                array[...] = saved[f"a{index}"]
            return int(saved["step"]), int(saved["epoch"]), float(saved["seconds"])

    @staticmethod
    def _arrays(network: Network) -> list[np.ndarray]:
        return [*network.weights, *network.biases, *network.speeds]


class Stop:
    """Set by SIGTERM; the loop looks at it after each step."""

    def __init__(self) -> None:
        self.asked = False
        signal.signal(signal.SIGTERM, self._ask)

    def _ask(self, *_signal: object) -> None:
        self.asked = True


class Report:
    """How the numbers leave the program: here by the package trainhall. Its siblings digits_*.py do it in other ways."""

    def values(self, values: dict[str, float], *, step: int, epoch: int | None = None) -> None:
        trainhall.log(values if epoch is None else values | {"epoch": epoch}, step=step)

    def weights(self, network: Network, *, step: int) -> None:
        trainhall.log_weights(network.named(), step=step)

    def progress(self, step: int, total: int, epoch: int) -> None:
        trainhall.progress(step, total, epoch)

    def end(self, accuracy: float) -> None:
        trainhall.summary["accuracy"] = accuracy


def single(value: float) -> float:
    """As 32 bits hold it. TensorBoard's event files keep no more, and all ways of telling shall tell the same."""
    return float(np.float32(value))


def train(options: argparse.Namespace, report: Report) -> int:
    rng = np.random.default_rng(options.seed)
    images, digits = load_digits()
    order = rng.permutation(len(images))
    held_out = order[: len(order) // 5]
    learned = order[len(order) // 5 :]
    network = Network([64, options.hidden, options.hidden, 10], rng)
    checkpoint, stop = Checkpoint(os.environ.get("TRAINHALL_CHECKPOINT_DIR")), Stop()
    step, epoch, before = checkpoint.load(network)
    if step:
        print(f"Going on from step {step}, epoch {epoch}.", flush=True)
    began = saved_at = time.monotonic()
    accuracy = 0.0

    def seconds() -> float:
        return before + time.monotonic() - began

    steps_of_epoch = -(-len(learned) // options.batch)

    def share() -> float:
        """How much of the training is behind us. Rounds are counted where they are asked for: then every run is the same."""
        return min(1.0, step / (steps_of_epoch * options.epochs) if options.epochs else seconds() / options.seconds)

    while share() < 1:
        losses = []
        shuffled = rng.permutation(learned)
        for start in range(0, len(shuffled), options.batch):
            some = shuffled[start : start + options.batch]
            layers = network.forward(shifted(images[some], rng))
            loss, lr = loss_of(layers[-1], digits[some]), lr_at(share(), options.lr)
            network.update(network.backward(layers, digits[some], options.decay), lr)
            losses.append(loss)
            step += 1
            report.values({"train/loss": single(loss), "lr": single(lr)}, step=step)
            if step % options.weights_every == 0:
                report.weights(network, step=step)
            if stop.asked:
                checkpoint.save(network, step=step, epoch=epoch, seconds=seconds())
                print(f"Asked to stop: saved at step {step}.", flush=True)
                return STOPPED
            if options.rate:
                time.sleep(max(0.0, (step + 1) / options.rate - seconds()))
        epoch += 1
        guesses = network.forward(images[held_out])[-1]
        accuracy = accuracy_of(guesses, digits[held_out])
        checked = {"val/accuracy": single(accuracy), "val/loss": single(loss_of(guesses, digits[held_out]))}
        report.values(checked, step=step, epoch=epoch)
        report.progress(step, round(step / share()), epoch)
        print(
            f"After epoch {epoch} (step {step}) it is {np.mean(losses):.4f} off on average and reads {accuracy:.2%} "
            "of what it had never seen.",
            flush=True,
        )
        if time.monotonic() - saved_at > CHECKPOINT_EVERY:
            checkpoint.save(network, step=step, epoch=epoch, seconds=seconds())
            saved_at = time.monotonic()
    report.end(accuracy)
    print(f"Done: {accuracy:.2%} of {len(held_out)} digits it had never seen.", flush=True)
    return 0


def read_options(words: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Learn to read handwritten digits.")
    parser.add_argument("--seconds", type=float, default=60, help="how long to train")
    parser.add_argument("--epochs", type=int, default=0, help="train for so many rounds instead")
    parser.add_argument("--lr", type=float, default=0.1, help="the highest learning rate")
    parser.add_argument("--hidden", type=int, default=64, help="width of the two hidden layers")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--decay", type=float, default=1e-4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--weights-every", type=int, default=200, help="steps between two looks at the weights")
    parser.add_argument("--rate", type=float, default=60, help="steps a second at most, to be watched; 0: no limit")
    return parser.parse_args(words)


def main() -> int:
    if trainhall is None:
        print("The package trainhall is missing. Inside a job it is there; here: pip install <portal>/sdk/<wheel>.")
        return 1
    options = read_options()
    trainhall.init(options, file=None)
    return train(options, Report())


if __name__ == "__main__":
    sys.exit(main())
