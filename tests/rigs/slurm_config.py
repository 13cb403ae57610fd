# SPDX-License-Identifier: Apache-2.0
"""The text of slurm.conf and gres.conf of a test cluster. Only words: nothing here touches a file or a program."""
import re

PARTITIONS = {
    "debug": "MaxTime=1:00:00 PriorityTier=20 PreemptMode=OFF",
    "short": "MaxTime=2-00:00:00 PriorityTier=10 PreemptMode=OFF Default=YES",
    "long": "MaxTime=7-00:00:00 PriorityTier=10 PreemptMode=OFF",
    "user-overcap": "MaxTime=7-00:00:00 PriorityTier=5 PreemptMode=REQUEUE",
    "overcap": "MaxTime=7-00:00:00 PriorityTier=1 PreemptMode=REQUEUE",
}


def gpus_by_node(names, gpus, gpu_types):
    """{node: {type: count}}. gpus: a number for all, or one per node, each a number (of the node's type, types are
    taken in turn) or itself {type: count}."""
    each = gpus if isinstance(gpus, (list, tuple)) else [gpus] * len(names)
    found = {}
    for k, (name, has) in enumerate(zip(names, each, strict=True)):
        counts = has if isinstance(has, dict) else {gpu_types[k % len(gpu_types)]: has}
        found[name] = {kind: count for kind, count in counts.items() if count}
    return found


def general_lines(at, head, user, knobs, settings):
    """at: the cluster's folder; head: address of the login node; knobs: see SlurmCluster; settings win over all."""
    scheduler = "batch_sched_delay=0"
    if knobs["sched_interval"] is not None:
        scheduler += f",sched_interval={knobs['sched_interval']},bf_interval={knobs['sched_interval']}"
    expire = f",cred_expire={knobs['cred_expire']}" if knobs["cred_expire"] is not None else ""
    by_qos = knobs["preemption"] == "qos"
    values = {
        "ClusterName": "lab", "SlurmctldHost": f"head({head})", "SlurmUser": user,
        "SlurmdUser": user, "AuthType": "auth/munge", "CredType": "cred/munge",
        "AuthInfo": f"socket={at}/munge.sock{expire}", "PlugStackConfig": f"{at}/etc/plugstack.conf",
        "StateSaveLocation": f"{at}/state", "SlurmdSpoolDir": f"{at}/spool/%n", "SlurmctldPort": 6817,
        "SlurmdPort": 6818, "SlurmctldPidFile": f"{at}/slurmctld.pid", "SlurmdPidFile": f"{at}/slurmd-%n.pid",
        "SlurmctldLogFile": f"{at}/log/slurmctld.log", "SlurmdLogFile": f"{at}/log/slurmd-%n.log",
        "ProctrackType": "proctrack/linuxproc", "TaskPlugin": "task/none", "MailProg": "/bin/true",
        "MpiDefault": "none", "ReturnToService": 2, "SlurmdParameters": "config_overrides",
        "SelectType": "select/cons_tres", "SelectTypeParameters": "CR_Core_Memory", "DefMemPerCPU": 100,
        "GresTypes": "gpu", "PreemptType": "preempt/qos" if by_qos else "preempt/partition_prio",
        "PreemptMode": "REQUEUE", "KillWait": knobs["kill_wait"], "EnforcePartLimits": "ANY",
        "SlurmctldParameters": "preempt_send_user_signal" if knobs["preempt_send_user_signal"] else None,
        "SchedulerParameters": scheduler, "SlurmdTimeout": knobs["slurmd_timeout"], **settings}
    return [f"{name}={value}" for name, value in values.items() if value is not None]


def node_lines(gpus, address_of, cpus, features):
    """gpus: of gpus_by_node. A node has its GPU types and features[node] as features."""
    lines = []
    for name, kinds in gpus.items():
        line = f"NodeName={name} NodeAddr={address_of(name)} CPUs={cpus} RealMemory=16000"
        if kinds:
            line += " Gres=" + ",".join(f"gpu:{kind}:{count}" for kind, count in kinds.items())
        more = features.get(name, ())
        if words := [*kinds, *(more.split(",") if isinstance(more, str) else more)]:
            line += " Feature=" + ",".join(words)
        lines.append(line)
    return lines


def gres_lines(at, gpus):
    lines = []
    for name, kinds in gpus.items():
        first = 0
        for kind, count in kinds.items():
            lines.append(f"NodeName={name} Name=gpu Type={kind} File={at}/dev/gpu[{first}-{first + count - 1}]")
            first += count
    return lines


def partition_lines(partitions, preemption, qos_of):
    """qos_of: {partition: the QOS whose limits hold in it}."""
    lines = []
    for name, rest in partitions.items():
        if preemption == "qos":  # then the job's QOS alone decides
            rest = re.sub(r" *\b(PreemptMode|GraceTime)=\S+", "", rest)
        if name in qos_of:
            rest += f" QOS={qos_of[name]}"
        lines.append(f"PartitionName={name} Nodes=ALL {rest}")
    return lines
