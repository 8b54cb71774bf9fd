#!/bin/bash
# A Slurm epilog that leaves a verdict for every job that failed, in the job's own folder.
#
# slurm.conf:  Epilog=/etc/slurm/epilog.d/*   with this file there (root's, not writable by others)
#
# It runs as root on every node of a job, so it does as little as it can:
# - it always ends with 0 at once: an epilog that fails drains the node, one that waits holds it;
# - on the job's first node alone, and nothing where Slurm says COMPLETED;
# - the diagnosis runs detached, as the job's own user, without new privileges, niced, for
#   LIMIT_S seconds at most, two at a time on a node;
# - what the job set (names, paths) is never run, and files are opened as its user alone.

FLATLINE=/opt/flatline/bin/flatline
SLURM_BIN=/usr/bin
LIMIT_S=60
SETTLE_S=5 # between looks at whether the controller has the job's end
LOCKS=/run # where root alone writes
# shellcheck source=/dev/null
[ -r /etc/flatline/epilog.conf ] && . /etc/flatline/epilog.conf # root's own: changes the above
PATH=/usr/bin:/bin:$SLURM_BIN

job=${SLURM_JOB_ID:-} uid=${SLURM_JOB_UID:-0}
gid=${SLURM_JOB_GID:-$(id -g "$uid" 2>/dev/null)}
[[ "$job $uid $gid" =~ ^[0-9]+\ [0-9]+\ [0-9]+$ ]] || exit 0
[ "$uid" -ge 1000 ] || exit 0 # neither root nor a service
[ -x "$FLATLINE" ] || exit 0

nodes=${SLURM_JOB_NODELIST:-${SLURM_NODELIST:-}}
first=$(timeout 5 scontrol show hostnames "$nodes" 2>/dev/null | head -n 1)
[ -n "$first" ] && [ "$first" != "${SLURMD_NODENAME:-}" ] && exit 0

IFS=: read -r user _ _ _ _ home _ < <(getent passwd "$uid")
folder=${SLURM_JOB_WORK_DIR:-}
[ -n "$user" ] && [ -n "$folder" ] || exit 0

# One of two slots, or the next job's epilog will find one: nothing waits.
# shellcheck disable=SC2016
slots='for n in 1 2; do flock -n -E 75 "$0.$n" "$@"; [ $? -ne 75 ] && exit 0; done'
# As the user: in the folder of the job, once the controller has its end.
# shellcheck disable=SC2016
diagnose='cd -- "$1" || exit 0
for _ in 1 2 3 4 5 6; do
  sleep "$5"
  state=$(scontrol show job -o "$2" | sed -n "s/.* JobState=\([A-Z_]*\).*/\1/p")
  case $state in
    COMPLETED) exit 0 ;;
    RUNNING | PENDING | COMPLETING | "") ;;
    *) break ;;
  esac
done
exec timeout -k 5 "$4" "$3" diagnose "$2" --output "flatline-$2.txt"'

# A session of its own: slurmd ends the epilog's process group when the epilog has ended.
setsid --fork bash -c "$slots" "$LOCKS/flatline-epilog" \
  setpriv --reuid "$uid" --regid "$gid" --init-groups --no-new-privs --inh-caps=-all \
  env -i PATH="$PATH" HOME="$home" USER="$user" LANG=C.UTF-8 \
  ${SLURM_CONF:+SLURM_CONF="$SLURM_CONF"} \
  nice -n 19 sh -c "$diagnose" flatline "$folder" "$job" "$FLATLINE" "$LIMIT_S" "$SETTLE_S" \
  </dev/null >/dev/null 2>&1
exit 0
