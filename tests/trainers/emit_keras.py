"""``Model.fit`` of Keras on torch with its callback of ``receipt_cli.emit``: a tiny classifier, validated each epoch."""

import os
import sys

os.environ["KERAS_BACKEND"] = "torch"

import keras
import numpy
from protocol import recorded

from receipt_cli.emit import KerasCallback

keras.utils.set_random_seed(1)
inputs = numpy.random.default_rng(1).normal(size=(192, 32)).astype("float32")
labels = (inputs.sum(axis=1) > 0).astype("int32")
model = keras.Sequential([keras.Input((32,)), keras.layers.Dense(16, "tanh"), keras.layers.Dense(2)])
schedule = keras.optimizers.schedules.PolynomialDecay(0.05, 80, 0.005)
model.compile(
    optimizer=keras.optimizers.Adam(schedule),
    loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=["accuracy"],
)
callback = recorded(KerasCallback(every=5), sys.argv[1:])
model.fit(inputs, labels, batch_size=8, epochs=4, validation_split=1 / 6, verbose=2, callbacks=[callback])
