"""Fit a small classifier with Keras on the torch backend."""

import argparse
import os

os.environ.setdefault("KERAS_BACKEND", "torch")

import keras
import numpy as np


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--classes", type=int, default=5)
    ap.add_argument("--epochs", type=int, default=6)
    ap.add_argument("--verbose", type=int, default=2)
    args = ap.parse_args()
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2048, 20)).astype("float32")
    y = np.digitize(x[:, 0] + x[:, 1], [-1.2, -0.4, 0.4, 1.2])
    model = keras.Sequential(
        [
            keras.Input((20,)),
            keras.layers.Dense(32, "relu"),
            keras.layers.Dense(args.classes, "softmax"),
        ]
    )
    model.compile(keras.optimizers.Adam(3e-3), "categorical_crossentropy", metrics=["accuracy"])
    labels = keras.utils.to_categorical(y, 5)
    model.summary()
    model.fit(
        x, labels, batch_size=32, epochs=args.epochs, validation_split=0.1, verbose=args.verbose
    )
    model.save("model.keras")
    print("saved model.keras")


if __name__ == "__main__":
    main()
