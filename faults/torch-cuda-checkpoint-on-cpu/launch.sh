#!/bin/bash
python make_pretrained.py && exec torchrun --standalone --nproc-per-node 2 train.py
