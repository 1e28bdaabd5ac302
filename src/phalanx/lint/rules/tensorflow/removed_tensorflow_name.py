"""A name that TensorFlow 2 or Keras 3 no longer has.

## What it does
Finds `multi_gpu_model`, `tf.contrib`, `experimental_run_v2`, `tf.estimator` and other names that were removed.

## Why is this bad?
The script stops with AttributeError or ImportError under a current release.

## Example
```diff
 import keras
+import tensorflow as tf

+with tf.distribute.MirroredStrategy().scope():
-model = keras.Sequential([keras.layers.Dense(1)])
+    model = keras.Sequential([keras.layers.Dense(1)])
-parallel = keras.utils.multi_gpu_model(model, gpus=2)
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.lint.context import Context
from phalanx.lint.names import canonical
from phalanx.lint.patterns import root_name
from phalanx.lint.rule import Hit, Rule

RULE = Rule(
    code="LTF009",
    symptom="fail.attribute-not-found",
    cause="removed-framework-name",
    pattern="fix-framework-version",
    do="Use what replaced it.",
    needs=("tensorflow", "keras"),
    is_distributed=False,
)

_REMOVED = {
    "keras.utils.multi_gpu_model": "tf.distribute.MirroredStrategy",
    "tensorflow.contrib": "TensorFlow 2 (`tf.distribute` for strategies)",
    "tensorflow.estimator": "Keras with a strategy (estimators went in 2.16)",
    "tensorflow.distribute.experimental_run_v2": "strategy.run",
    "tensorflow.train.SyncReplicasOptimizer": "tf.distribute.MultiWorkerMirroredStrategy",
    "keras.utils.training_utils.multi_gpu_model": "tf.distribute.MirroredStrategy",
    "tensorflow.Session": "eager execution, or `tf.compat.v1.Session`",
    "tensorflow.placeholder": "eager execution, or `tf.compat.v1.placeholder`",
    "tensorflow.ConfigProto": "`tf.config`, or `tf.compat.v1.ConfigProto`",
    "tensorflow.global_variables_initializer": "eager execution",
    "tensorflow.train.MonitoredTrainingSession": "a strategy of `tf.distribute`",
    "tensorflow.train.replica_device_setter": "tf.distribute.ParameterServerStrategy",
    "tensorflow.train.Server": "tf.distribute.Server",
    "tensorflow.train.AdamOptimizer": "tf.keras.optimizers.Adam",
    "tensorflow.train.GradientDescentOptimizer": "tf.keras.optimizers.SGD",
    "tensorflow.get_variable": "tf.Variable",
    "tensorflow.app.run": "absl.app.run",
    "tensorflow.set_random_seed": "tf.random.set_seed",
    "tensorflow.InteractiveSession": "eager execution",
    "keras.backend.set_session": "`tf.config`",
    "keras.backend.tensorflow_backend": "`tf.config`",
    "keras.utils.np_utils": "keras.utils.to_categorical",
}


def check(context: Context) -> Iterator[Hit]:
    """Attributes and imports. A file that is for TensorFlow 1 as a whole gets one finding."""
    if context.mentions("executing_eagerly", "__version__", "Version(", "disable_v2_behavior"):
        return  # it knows about both
    seen = set()
    whole = {
        name
        for name, found in context.module.scope.bindings.items()
        if all(b.target in ("tensorflow", "keras", "tensorflow.keras") for b in found)
    }
    found = [
        (node, context.inference.dotted(node, scope) or "")
        for node, scope in context.module.nodes[ast.Attribute]
        if root_name(node) in whole
    ]
    imported = context.module.scope.bindings.values()
    found += [(b.node, canonical(b.target)) for bindings in imported for b in bindings if b.kind == "import"]
    for node, name in found:
        old = next((key for key in _REMOVED if name == key or name.startswith(key + ".")), None)
        family = old.partition(".")[0] if old is not None else ""
        if (
            old is not None
            and family not in seen
            and not any(isinstance(p, (ast.Try, ast.If)) for p, _ in context.module.ancestors(node))
        ):
            seen.add(family)
            yield Hit(
                node,
                f"Current releases no longer have `{old.replace('tensorflow.', 'tf.')}`",
                do=f"Use {_REMOVED[old]}.",
            )
    for call, scope in context.methods("fit_generator", "evaluate_generator", "predict_generator", "predict_classes"):
        if any(value.type.startswith("keras.") for value in context.values(getattr(call.func, "value", None), scope)):
            yield Hit(
                call,
                f"Keras models no longer have `{getattr(call.func, 'attr', '')}`",
                do="Use `fit`, `evaluate` or `predict`, which take generators.",
            )
    for call, _ in context.methods("experimental_run_v2", "make_dataset_iterator"):
        if "strategy" in ast.unparse(call.func).lower():
            yield Hit(
                call,
                f"Strategies no longer have `{getattr(call.func, 'attr', '')}`",
                do="Use `strategy.run`, and iterate over the distributed data set.",
            )
