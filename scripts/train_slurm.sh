#!/usr/bin/env bash
# Trains on the nodes of a Slurm job, one process a node with all its GPUs:
#
#   sbatch --nodes=2 --gpus-per-node=8 --time=24:00:00 scripts/train_slurm.sh --problem=... --data_dir=...
#
# The flags are t2t-lite-trainer's. Data and output_dir lie on a file system that all nodes share. Two
# minutes before its time is up the training saves and stops, and the job waits in the queue again.
#SBATCH --job-name=t2t-lite
#SBATCH --ntasks-per-node=1
#SBATCH --signal=TERM@120
#SBATCH --requeue
#SBATCH --open-mode=append
set -euo pipefail

export T2T_LITE_HOSTS
T2T_LITE_HOSTS=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | sed "s/.*/\"&:${PORT:-2222}\"/" | paste -sd,)
status=0
# shellcheck disable=SC2016  # SLURM_NODEID is each node's own
srun --kill-on-bad-exit=1 bash -c '
  export TF_CONFIG="{\"cluster\": {\"worker\": [$T2T_LITE_HOSTS]}, \"task\": {\"type\": \"worker\", \"index\": $SLURM_NODEID}}"
  exec t2t-lite-trainer "$@"' t2t-lite-trainer "$@" || status=$?
if [ "$status" = 143 ]; then # 128 + SIGTERM: it was told to stop and has saved
  scontrol requeue "$SLURM_JOB_ID"
fi
exit "$status"
