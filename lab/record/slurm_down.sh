#!/bin/bash
# Ends what slurm_up.sh started, by process id.
W=/srv/slurm
for p in $W/run/slurmd.*.pid $W/run/slurmctld.pid $W/run/slurmdbd.pid; do [ -f $p ] && kill $(cat $p); done
sleep 3
for p in $W/run/my.pid $W/run/munged.pid; do [ -f $p ] && kill $(cat $p); done
sleep 2
for i in 1 2 3 4; do ip netns del sl$i; done
ip link del slbr0
true
