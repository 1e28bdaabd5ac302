#!/bin/bash
# a memory group of 1.5 GiB, as a batch system or a container makes it (needs root, cgroup version 1)
group=/sys/fs/cgroup/memory/job.$$
mkdir "$group"
echo 1500M > "$group/memory.limit_in_bytes"
( echo $BASHPID > "$group/cgroup.procs"; exec torchrun --standalone --nproc-per-node 2 train.py )
status=$?
sleep 1
rmdir "$group"
exit $status
