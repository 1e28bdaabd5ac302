#!/bin/bash
# a memory group of 1.5 GiB, as a batch system or a container makes it; needs root, works with both versions of control groups
if [ -d /sys/fs/cgroup/memory ]; then
  group=/sys/fs/cgroup/memory/job.$$ limit=memory.limit_in_bytes
else
  group=/sys/fs/cgroup/job.$$ limit=memory.max
  echo +memory > /sys/fs/cgroup/cgroup.subtree_control
fi
mkdir "$group" && echo 1500M > "$group/$limit" || { echo "no memory group can be made: run it as root, outside of a container" >&2; exit 75; }
( echo $BASHPID > "$group/cgroup.procs"; exec torchrun --standalone --nproc-per-node 2 train.py )
status=$?
sleep 1
rmdir "$group"
exit $status
