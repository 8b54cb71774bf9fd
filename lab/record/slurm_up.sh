#!/bin/bash
# Brings up a real Slurm of N nodes inside the cell this runs in: one network and host name a node.
# usage (as root, inside a cell whose host is "head"): slurm_up.sh [N]
# Needs Debian's slurmctld, slurmd, slurmdbd, slurm-client, slurm-wlm-basic-plugins, munge, mariadb-server.
set -e
N=${1:-4}; W=/srv/slurm; NET=10.89.0; BR=slbr0
mkdir -p $W/{etc,state,spool,log,run/munge,mysql,gpu}
chmod 755 $W $W/run $W/run/munge
mount -t tmpfs -o mode=755 tmpfs /run/netns 2>/dev/null || { mkdir -p /run/netns; mount -t tmpfs tmpfs /run/netns; }
for i in 0 1 2 3 4 5 6 7; do [ -e $W/gpu/nvidia$i ] || mknod $W/gpu/nvidia$i c 1 3; done
ip link add $BR type bridge; ip addr add $NET.254/24 dev $BR; ip link set $BR up
for i in $(seq $N); do
  ip netns add sl$i
  ip link add slv$i type veth peer name eth0 netns sl$i
  ip link set slv$i master $BR up
  ip -n sl$i addr add $NET.$i/24 dev eth0; ip -n sl$i link set eth0 up; ip -n sl$i link set lo up
  ip -n sl$i route add default via $NET.254
done
cat > $W/etc/slurm.conf <<C
ClusterName=lab
SlurmctldHost=head($NET.254)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$W/run/munge/munge.socket.2
CryptoType=crypto/munge
StateSaveLocation=$W/state
SlurmdSpoolDir=/var/spool/slurmd/%n
SlurmctldPidFile=$W/run/slurmctld.pid
SlurmdPidFile=$W/run/slurmd.%n.pid
SlurmctldLogFile=$W/log/slurmctld.log
SlurmdLogFile=$W/log/slurmd.%n.log
ProctrackType=proctrack/cgroup
TaskPlugin=task/cgroup
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=2
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
SlurmdParameters=config_overrides
MpiDefault=none
ReturnToService=2
SlurmctldTimeout=30
SlurmdTimeout=15
MinJobAge=600
KillWait=5
Prolog=/srv/slurm/etc/prolog.sh
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SchedulerParameters=batch_sched_delay=1,sched_interval=5,bf_interval=5,requeue_delay=5
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePass=$W/run/munge/munge.socket.2
AccountingStorageTRES=gres/gpu
AccountingStoreFlags=job_comment
JobRequeue=1
GresTypes=gpu
MailProg=/bin/true
NodeName=gpu[1-$N] NodeAddr=$NET.[1-$N] CPUs=16 RealMemory=4000 Gres=gpu:8
PartitionName=train Nodes=ALL Default=YES MaxTime=INFINITE State=UP PriorityTier=10
PartitionName=urgent Nodes=ALL MaxTime=INFINITE State=UP PriorityTier=100
C
printf '#!/bin/bash\n[ -e /srv/slurm/etc/scratch_missing.$SLURMD_NODENAME ] && { echo "scratch is not mounted" >&2; exit 1; }\nexit 0\n' > $W/etc/prolog.sh
chmod 755 $W/etc/prolog.sh
echo "NodeName=gpu[1-$N] Name=gpu File=$W/gpu/nvidia[0-7]" > $W/etc/gres.conf
printf 'CgroupPlugin=cgroup/v1\nCgroupMountpoint=/sys/fs/cgroup\nCgroupAutomount=no\nConstrainRAMSpace=yes\nConstrainSwapSpace=no\nConstrainCores=no\nConstrainDevices=no\n' > $W/etc/cgroup.conf
cat > $W/etc/slurmdbd.conf <<C
AuthType=auth/munge
AuthInfo=socket=$W/run/munge/munge.socket.2
DbdHost=localhost
DbdAddr=127.0.0.1
SlurmUser=root
LogFile=$W/log/slurmdbd.log
PidFile=$W/run/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort=13316
StorageUser=slurm
StoragePass=slurmpw
StorageLoc=slurm_acct_db
C
chmod 600 $W/etc/slurmdbd.conf
mount --bind $W/etc /etc/slurm
mkdir -p /var/spool/slurmd; mount --bind $W/spool /var/spool/slurmd
[ -f $W/run/munge.key ] || { dd if=/dev/urandom of=$W/run/munge.key bs=1 count=1024 2>/dev/null; chmod 400 $W/run/munge.key; }
munged -f --num-threads=10 --key-file=$W/run/munge.key --socket=$W/run/munge/munge.socket.2 --pid-file=$W/run/munged.pid --seed-file=$W/run/munged.seed --log-file=$W/log/munged.log
[ -d $W/mysql/mysql ] || mariadb-install-db --no-defaults --user=root --datadir=$W/mysql --auth-root-authentication-method=socket > $W/log/mdbinstall.log 2>&1
setsid mariadbd --no-defaults --user=root --datadir=$W/mysql --socket=$W/run/my.sock --port=13316 --bind-address=127.0.0.1 --pid-file=$W/run/my.pid > $W/log/mariadb.log 2>&1 < /dev/null &
SQL="mariadb --no-defaults -S $W/run/my.sock -e"
for _ in $(seq 60); do $SQL 'select 1' > /dev/null 2>&1 && break; sleep .5; done
$SQL "create database if not exists slurm_acct_db; create user if not exists slurm@'localhost' identified by 'slurmpw'; create user if not exists slurm@'127.0.0.1' identified by 'slurmpw'; grant all on slurm_acct_db.* to slurm@'localhost'; grant all on slurm_acct_db.* to slurm@'127.0.0.1';"
slurmdbd > /dev/null 2>&1
for _ in $(seq 60); do ss -ltn | grep -q :6819 && break; sleep .5; done
sacctmgr -i add cluster lab > /dev/null || true
sacctmgr -i add account ml cluster=lab > /dev/null || true
for u in root user; do sacctmgr -i add user $u account=ml cluster=lab > /dev/null || true; done
slurmctld > /dev/null 2>&1; sleep 1   # after "add cluster": without it there are no TRES
for i in $(seq $N); do
  nsenter --net=/run/netns/sl$i unshare -u bash -c "hostname gpu$i; slurmd -N gpu$i" > /dev/null 2>&1
done
for _ in $(seq 60); do [ "$(sinfo -h -p train -t idle -o %D)" = "$N" ] && break; sleep .5; done
sinfo -N
