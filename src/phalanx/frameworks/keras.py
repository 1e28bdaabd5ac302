"""Keras, alone or inside TensorFlow. Jobs of tf.distribute without Keras' own frames are TensorFlow's."""

import re

NAME = "keras"
SIGNS = re.compile(r"(?<!tf\.)(?<!tensorflow\.)(?<!tensorflow/)(?<!python/)\bkeras[./\\](?!api\b)|\bimport keras\b|\bfrom keras\b|\bmulti_gpu_model\b|\bkeras-team\b|\bKeras version\b")  # fmt: skip
OUTRANKS: tuple[str, ...] = ("tensorflow",)
