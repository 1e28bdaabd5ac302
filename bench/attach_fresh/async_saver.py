# launcher: hand 4
# truth: 2
"""Rank 2's saving thread holds the lock of the weights while it waits for room in a full queue."""
import os, queue, threading, time

import torch
import torch.distributed as dist

MODE = os.environ["MODE"]


class Saver:
    def __init__(self):
        self.lock = threading.Lock()
        self.written = queue.Queue(maxsize=1)

    def save_later(self, weights):
        threading.Thread(target=self._save, args=(weights.clone(),), name="saver", daemon=True).start()

    def _save(self, weights):
        with self.lock:
            if MODE == "slow":
                time.sleep(1.2)
                return
            self.written.put(weights)
            self.written.put(weights)


dist.init_process_group("gloo")
rank = dist.get_rank()
weights, saver = torch.zeros(64), Saver()


def step_once(step):
    gradient = torch.randn(64)
    dist.all_reduce(gradient)
    with saver.lock:
        weights.sub_(0.01 * gradient)
    if rank == 2 and MODE != "healthy" and step >= 8:
        saver.save_later(weights)
        time.sleep(0.2)


def fit():
    step = 0
    while True:
        step += 1
        if step == 8:
            open(f"ready{rank}", "w").close()
        step_once(step)
        time.sleep(0.02)


fit()
