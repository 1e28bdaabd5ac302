"""Keras on torch: the model is wrapped for DDP, and then asked to fit itself."""

import os

import torch
import torch.distributed as dist

import keras

dist.init_process_group("gloo")
rank = dist.get_rank()
keras.utils.set_random_seed(7)
model = keras.Sequential([keras.layers.Input((16,)), keras.layers.Dense(32, activation="relu"), keras.layers.Dense(4)])
x = torch.randn(256, 16)
y = x[:, :4].argmax(1)
parallel = torch.nn.parallel.DistributedDataParallel(model)
parallel.compile(optimizer="adam", loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
parallel.fit(x, y, epochs=2, batch_size=32, verbose=2)
dist.destroy_process_group()
