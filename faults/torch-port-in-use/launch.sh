#!/bin/bash
# a left-over process still listens on the port that the job wants
python leftover.py "$1" &
leftover=$!
sleep 1
torchrun --nnodes 1 --nproc-per-node 2 --master-addr 127.0.0.1 --master-port "$1" train.py
status=$?
kill $leftover
exit $status
