"""The layer is registered where the model is saved and where it is loaded."""

import subprocess
import sys

import keras
import numpy as np

EVALUATE = """
import keras, numpy as np

@keras.saving.register_keras_serializable(package="job")
class Scale(keras.layers.Layer):
    def build(self, input_shape):
        self.factor = self.add_weight(shape=(input_shape[-1],), initializer="ones", name="factor")

    def call(self, inputs):
        return inputs * self.factor

model = keras.models.load_model("model.keras")
print("evaluating", model.predict(np.zeros((4, 16), "float32"), verbose=0).shape)
"""


@keras.saving.register_keras_serializable(package="job")
class Scale(keras.layers.Layer):
    def build(self, input_shape):
        self.factor = self.add_weight(shape=(input_shape[-1],), initializer="ones", name="factor")

    def call(self, inputs):
        return inputs * self.factor


rng = np.random.default_rng(0)
features = rng.normal(size=(1024, 16)).astype("float32")
labels = rng.integers(0, 4, size=1024)

model = keras.Sequential([keras.layers.Input((16,)), Scale(), keras.layers.Dense(4)])
model.compile(optimizer="adam", loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(features, labels, batch_size=64, epochs=2, verbose=2)
model.save("model.keras")
print("saved model.keras", flush=True)
sys.exit(subprocess.run([sys.executable, "-c", EVALUATE]).returncode)
