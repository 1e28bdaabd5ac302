#!/bin/bash
# a private volume of the given size for the checkpoints (needs root)
mkdir -p checkpoints
exec unshare -m sh -c 'mount -t tmpfs -o size='"$1"' tmpfs checkpoints && exec torchrun --standalone --nproc-per-node 2 train.py'
