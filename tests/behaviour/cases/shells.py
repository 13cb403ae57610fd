# SPDX-License-Identifier: Apache-2.0
"""Help for shells: `env`, site files, `shell-init`, `completion`."""
import json
import socket

from behaviour.case import case
from behaviour.presets import EXAMPLES, GPUS, PLAIN

SHORT = socket.gethostname().split(".")[0]
SQUEUE = f"""#!/bin/sh
case "$*" in
*"-j 123 "*) cat "$FACTS/../state-of-123" 2>/dev/null || echo RUNNING;;
*-u*) echo "123|2026-11-15T01:00:00|{SHORT},other1";;
*) exit 1;;
esac
"""
SCONTROL = f"""#!/bin/sh
echo "JobId=123 JobName=it's mine UserId=u(1) Partition=short NodeList={SHORT},other1 WorkDir=/tmp/my work Power= TresPerNode=gres:gpu:a40:2"
"""
JOB = f"SLURM_JOB_ID=123\nSLURM_JOB_NODELIST={SHORT},other[1-2]\nSLURM_GPUS_PER_NODE=a40:2\nSLURM_JWT=very-secret\nSLURM_PROCID=0\n"
SLURM = {**PLAIN, "bin/squeue": SQUEUE, "bin/srun": "#!/bin/sh\necho 'slurm 22.05.8'\n", "bin/scontrol": SCONTROL, "job": JOB}
XPU_SMI = '#!/bin/sh\necho \'{"device_list": [{"device_name": "Intel(R) Data Center GPU Max 1550"}]}\'\n'
EVALUATE = """#!/bin/bash
eval "$(overcap shell-init bash)"
overcap_setup_job >"$FACTS/job" 2>&1
export -p | grep OVERCAP_ >"$FACTS/exported"
type launch >"$FACTS/launch"
"""
QSTAT = json.dumps({"timestamp": 1, "Jobs": {"12.srv": {
    "Job_Name": "train", "Job_Owner": "root@login", "job_state": "R", "queue": "workq", "exec_host": f"{SHORT}/0*4+other/0*4",
    "exec_vnode": f"({SHORT}:ncpus=4:ngpus=2)+(other:ncpus=4:ngpus=2)", "Resource_List": {"select": "2:ncpus=4:mpiprocs=2"},
    "stime": "Sun Nov 15 01:10:44 2026",
    "Variable_List": {"PBS_O_WORKDIR": "/work", "FOO": "bar"}}}})
PBS = {**PLAIN, "bin/qstat": f"#!/bin/sh\ncat <<'END'\n{QSTAT}\nEND\n", "bin/mpiexec": "#!/bin/sh\necho 'mpiexec version 1.8.0 revision 1'\n",
       "project/nodes": f"{socket.gethostname()}\n{socket.gethostname()}\nother\nother\n"}


def site(path):
    flag = "OVERCAP_SITE={root}/site.yaml"
    return case(f"env/site-{path.stem}", {**GPUS, "site.yaml": path.read_text()}, f"> {flag} shell-init --python-plan", f"{flag} env --json",
                f"{flag} launch --dry-run -n 2 true")


CASES = [
    case("env/plain", PLAIN, "env --json", "> env --export", "env"),
    case("env/gpus", GPUS, "env --json", "CUDA_VISIBLE_DEVICES=1,2 env --json", "OVERCAP_SCHEDULER=local env --json",
         "OVERCAP_SCHEDULER=slurm env --json"),
    case("env/mpi", PLAIN, "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=3 OMPI_COMM_WORLD_LOCAL_RANK=1 OMPI_COMM_WORLD_LOCAL_SIZE=3 env --json"),
    case("env/slurm", SLURM, "@job env --json", "@job env --export", "> @job env --export", "env --json", "> env --export"),
    case("env/slurm-saved", SLURM, "@job env --save --json", "> @job env --save", "> env --load", "env --load 123 --json", "> env --load slurm-123",
         "env --load 12", "$ echo touch never >> ../state/env/slurm-123", "env --load"),
    case("env/slurm-over", {**SLURM, "bin/squeue": "#!/bin/sh\necho 'slurm_load_jobs error: Invalid job id specified' >&2\nexit 1\n"},
         "@job env --json", "@job env --save", "env --load"),
    case("env/pbs", PBS, "PBS_JOBID=12.srv PBS_NODEFILE={root}/project/nodes env --json", "env --json", "> env --export",
         "PBS_JOBID=12.srv PBS_NODEFILE={root}/project/nodes launch --dry-run true", "PBS_JOBID=12.srv PBS_NODEFILE=/nonexistent env --json"),
    case("env/hosts", {**PLAIN, "project/lists": "n[1-2]\nb\n", "project/names": "n1\nn2\n\nb\n"}, "> env --expand 'rack[1-2]n[01-02],a'",
         "> env --compress n1 n2 n3 x", "env --expand 'n[1-2]' --json", "env --compress n1 n2 --json", "> env --expand - < lists",
         "> env --compress < names"),
    case("env/rocm", {**PLAIN, "project/overcap.yaml": "", "bin/rocm-smi": '#!/bin/sh\necho \'{"card0": {"Card Series": "AMD Instinct MI250X"}}\'\n'},
         "env --json", "ROCR_VISIBLE_DEVICES=0 env --json"),
    case("env/xpu",
         {**PLAIN, "project/overcap.yaml": "", "bin/xpu-smi": XPU_SMI},
         "env --json"),
    case("env/sites", {**PLAIN, "user/.config/overcap/sites/mine.yaml": "match: {hosts: ['*']}\nmodules: [mine]\n"}, "> shell-init --python-plan",
         "> NERSC_HOST=perlmutter shell-init --python-plan", "> OVERCAP_SITE=/dev/null shell-init --python-plan"),
    *(site(path) for path in sorted((EXAMPLES / "sites").glob("*.yaml"))),
    case("shell/functions", PLAIN, "> shell-init bash", "> shell-init zsh"),
    case("shell/completion", PLAIN, "> completion bash", "> completion zsh"),
    case("shell/completes", PLAIN, "submit -n 0 --hold true", "completion bash", "> ls -q --status held,queued"),
    case("shell/evaluates", {**PLAIN, "site.yaml": "name: here\n", "bin/evaluate": EVALUATE}, "$ ln -s ../programs/a/overcap ../bin/overcap",
         "$ OVERCAP_SITE={root}/site.yaml evaluate"),
]
