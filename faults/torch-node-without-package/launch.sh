#!/bin/bash
# two nodes on one machine: each has its own agent and its own log; the second lacks the folder on its path
mkdir -p logs
common="--nnodes 2 --nproc-per-node 2 --master-addr 127.0.0.1 --master-port $1"
PYTHONPATH=site torchrun $common --node-rank 0 train.py > logs/node0.log 2>&1 &
first=$!
PYTHONPATH=$2 torchrun $common --node-rank 1 train.py > logs/node1.log 2>&1 &
second=$!
wait $first; a=$?
wait $second; b=$?
exit $((a > b ? a : b))
