"""The watch of a job that another launcher started: `PHALANX=1 torchrun train.py`. It observes and tells; it never ends anything."""
