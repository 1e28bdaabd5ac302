"""The checkpoint of an earlier run with 64 hidden units is restored into a model with 32."""

import numpy as np
import tensorflow as tf

cpus = tf.config.list_physical_devices("CPU")
tf.config.set_logical_device_configuration(cpus[0], [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"])
PRETRAIN_WIDTH, FINETUNE_WIDTH = 64, 32
rng = np.random.default_rng(0)
features = rng.normal(size=(512, 16)).astype("float32")
targets = rng.normal(size=(512, 1)).astype("float32")


class Net(tf.Module):
    def __init__(self, width):
        super().__init__()
        self.hidden = tf.Variable(tf.random.stateless_normal((16, width), (1, 2)) * 0.1, aggregation=tf.VariableAggregation.MEAN)
        self.out = tf.Variable(tf.random.stateless_normal((width, 1), (3, 4)) * 0.1, aggregation=tf.VariableAggregation.MEAN)

    def __call__(self, x):
        return tf.nn.relu(x @ self.hidden) @ self.out


def train(net, name):
    @tf.function
    def step(x, y):
        def replica_step(x, y):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((net(x) - y) ** 2)
            for variable, grad in zip(net.trainable_variables, tape.gradient(loss, net.trainable_variables)):
                variable.assign_sub(0.05 * grad)
            return loss

        return strategy.reduce("mean", strategy.run(replica_step, args=(x, y)), axis=None)

    data = tf.data.Dataset.from_tensor_slices((features, targets)).batch(64)
    for epoch in range(2):
        for x, y in strategy.experimental_distribute_dataset(data):
            loss = step(x, y)
        print(f"{name} epoch {epoch} loss {float(loss):.4f}")


with strategy.scope():
    pretrained = Net(PRETRAIN_WIDTH)
train(pretrained, "pretrain")
path = tf.train.Checkpoint(net=pretrained).save("ckpt/model")
print("saved", path)
with strategy.scope():
    net = Net(FINETUNE_WIDTH)
tf.train.Checkpoint(net=net).restore(path)
train(net, "finetune")
