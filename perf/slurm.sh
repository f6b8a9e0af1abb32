#!/usr/bin/env bash
# Runs a job under Slurm as docs/clusters.md describes: a plan, an array of workers that end before a time limit and are
# requeued, and a merge, each started by Slurm. The script sets up Slurm on this machine for that.
#
# In:  perf/slurm.sh PIPELINE.yaml DATA [STOP_AFTER]     as root; PIPELINE takes DATA and OUT; STOP_AFTER: the time after
#      which workers end themselves, default 3s. Needs Debian's slurm-wlm and munge; MELFLOW: the program.
# Out: how often workers ran and were requeued, and whether the output equals that of `melflow run`. Exit status 0 if so.
set -euo pipefail
if [[ $# -lt 2 || $# -gt 3 ]]; then
  sed -n '2,8s/^# \{0,1\}//p' "$0"
  exit 2
fi
pipeline=$(realpath "$1") data=$(realpath "$2") limit=${3:-3s}
melflow=$(realpath "${MELFLOW:-build/release/bin/melflow}")
work=$(mktemp -d)
export SLURM_CONF=$work/slurm.conf DATA=$data OUT=$work/rows.h5
host=$(hostname -s)

cat >"$SLURM_CONF" <<CONF
ClusterName=one
SlurmctldHost=$host
AuthType=auth/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd.pid
SlurmctldLogFile=$work/slurmctld.log
SlurmdLogFile=$work/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SchedulerType=sched/builtin
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
JobRequeue=1
NodeName=$host CPUs=$(nproc) Boards=1 SocketsPerBoard=1 CoresPerSocket=$(nproc) ThreadsPerCore=1 State=UNKNOWN
PartitionName=all Nodes=$host Default=YES MaxTime=INFINITE State=UP
CONF
mkdir "$work/state" "$work/spool" "$work/log"
if ! munge -n >/dev/null 2>&1; then
  install -d -o munge /run/munge
  su -s /bin/sh munge -c munged
fi
finish() {
  for daemon in slurmctld slurmd; do
    [[ ! -e $work/$daemon.pid ]] || kill "$(cat "$work/$daemon.pid")" 2>/dev/null || true
  done
  rm -rf "$work"
}
trap finish EXIT
slurmctld
slurmd
until [[ $(sinfo -h -o %t) == idle ]]; do sleep 0.2; done

cat >"$work/work.sh" <<SCRIPT
#!/bin/bash
#SBATCH --job-name=features --array=0-3 --cpus-per-task=1 --requeue --open-mode=append --output=$work/log/%a.txt
echo "began, requeued \${SLURM_RESTART_COUNT:-0} times"
$melflow work $work/job --workers \$SLURM_CPUS_PER_TASK --stop-after $limit
code=\$?
[ \$code -eq 75 ] && scontrol requeue \${SLURM_ARRAY_JOB_ID}_\${SLURM_ARRAY_TASK_ID}
exit \$code
SCRIPT
bytes=$(du -sb "$data" | cut -f1)
plan=$(sbatch --parsable --output="$work/log/plan.txt" --wrap "$melflow plan $pipeline --part $((bytes / 64 + 1)) -o $work/job")
array=$(sbatch --parsable --dependency=afterok:"$plan" "$work/work.sh")
sbatch --wait --dependency=afterany:"$array" --output="$work/log/merge.txt" --wrap "$melflow merge $work/job -o $OUT" >/dev/null ||
  { cat "$work"/log/*; exit 1; }

mv "$OUT" "$OUT.merged"
"$melflow" run "$pipeline" --quiet || [[ $? == 3 ]]
began=$(cat "$work"/log/[0-9].txt | grep -c began)
if cmp -s "$OUT" "$OUT.merged"; then
  echo "4 workers of the array began $began times; the same file as that of melflow run"
else
  echo "4 workers of the array began $began times; another file than that of melflow run"
  exit 1
fi
