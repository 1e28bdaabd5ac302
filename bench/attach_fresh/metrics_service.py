# launcher: torchrun 4
# truth: 0
"""Rank 0 reports its metrics to a service that accepts the connection and never answers."""
import os, socket, threading, time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

MODE = os.environ["MODE"]


class Service(threading.Thread):
    def __init__(self):
        super().__init__(daemon=True)
        self.server = socket.create_server(("127.0.0.1", 0))

    def run(self):
        while True:
            line, _ = self.server.accept()
            threading.Thread(target=self.answer, args=(line,), daemon=True).start()

    def answer(self, line):
        line.recv(1000)
        if MODE == "stall":
            time.sleep(3600)
        if MODE == "slow":
            time.sleep(1.5)
        line.sendall(b"ok")


class Reporter:
    def __init__(self):
        self.service = Service()
        self.service.start()

    def report(self, step, loss):
        with socket.create_connection(self.service.server.getsockname()) as line:
            line.sendall(f"{step} {loss}".encode())
            return line.recv(100)


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    reporter = Reporter() if rank == 0 else None
    model = DistributedDataParallel(torch.nn.Linear(16, 4))
    for step in range(1_000_000):
        loss = model(torch.randn(8, 16)).square().mean()
        loss.backward()
        if step == 6:
            open(f"ready{rank}", "w").close()
        if reporter is not None and step >= 6:
            reporter.report(step, loss.item())
        time.sleep(0.02)


main()
