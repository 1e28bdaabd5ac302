#!/bin/bash
include=$(python -c 'import sysconfig; print(sysconfig.get_path("include"))')
gcc -shared -fPIC -I"$include" fastops.c -o fastops.so && exec torchrun --standalone --nproc-per-node 2 train.py
