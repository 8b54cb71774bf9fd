#!/bin/bash
# One task of a Slurm step as one rank of train.py.
export RANK=$SLURM_PROCID WORLD_SIZE=$SLURM_NTASKS LOCAL_RANK=$SLURM_LOCALID
export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1) MASTER_PORT=29500
export GLOO_SOCKET_IFNAME=eth0
exec python train.py "$@"
