# Two nodes of two ranks; the second is slow to start.
mkdir -p logs/node0 logs/node1
common="--nnodes 2 --nproc-per-node 2 --rdzv-backend c10d --rdzv-endpoint 127.0.0.1:$1 --rdzv-id job1"
torchrun $common --local-addr 127.0.0.1 train.py >logs/node0/output.log 2>&1 &
first=$!
sleep 12
torchrun $common --local-addr 127.0.0.1 train.py >logs/node1/output.log 2>&1
second=$?
wait $first && exit $second
