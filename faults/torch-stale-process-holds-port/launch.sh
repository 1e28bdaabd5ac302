# An earlier job whose launcher was killed: its rank 0 lives on and holds the port.
RANK=0 WORLD_SIZE=1 LOCAL_RANK=0 MASTER_ADDR=127.0.0.1 MASTER_PORT=$1 python train.py --stay >/dev/null 2>&1 &
old=$!
for try in $(seq 300); do
  python -c "import socket; socket.create_connection(('127.0.0.1', $1), 1)" 2>/dev/null && break
  sleep 0.2
done
if [ "$2" = clean ]; then
  kill -9 $old
  wait $old 2>/dev/null
fi
torchrun --nproc-per-node 2 --master-addr 127.0.0.1 --master-port $1 train.py
