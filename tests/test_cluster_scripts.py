"""The scripts that start a training on several hosts, with stand-ins for ssh, srun and scontrol."""

import json
import os
import pathlib
import subprocess

import pytest

from t2t_lite.train import cluster

SCRIPTS = pathlib.Path(__file__).parents[1] / "scripts"
TRAINER = """#!/usr/bin/env bash
echo "$TF_CONFIG $*" >> "$OUTPUT"
exit "${STATUS:-0}"
"""
SSH = """#!/usr/bin/env bash
[ "$1" = -tt ] || exit 9
[ "$2" != lost ] || { sleep 0.2; exit 255; }  # the other host's command runs by then
shift 2
exec sh -c "exec env $*"  # as the shell of the other host takes one line; it ends with ssh
"""
SCONTROL = """#!/usr/bin/env bash
echo "scontrol $*" >> "$OUTPUT"
if [ "$1" = show ]; then printf 'n1\\nn2\\n'; fi
"""
SRUN = """#!/usr/bin/env bash
shift
status=0
for SLURM_NODEID in 0 1; do export SLURM_NODEID; "$@" || status=$?; done
exit $status
"""


@pytest.fixture
def run(tmp_path):
    """Return a function that runs a script; it returns its status and the lines of `OUTPUT`."""
    contents = {"t2t-lite-trainer": TRAINER, "ssh": SSH, "scontrol": SCONTROL, "srun": SRUN}
    for name, content in contents.items():
        (tmp_path / name).write_text(content)
        (tmp_path / name).chmod(0o755)
    output = tmp_path / "output"

    def run(script, *arguments, **environment):
        paths = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "OUTPUT": str(output)}
        command = ["bash", SCRIPTS / script, *arguments]
        environment = {**os.environ, **paths, **environment}
        done = subprocess.run(command, env=environment, capture_output=True)
        return done.returncode, output.read_text().splitlines() if output.exists() else []

    return run


def _check(lines, expected, arguments, monkeypatch):
    """Compare each process' TF_CONFIG and arguments; the trainer takes the former."""
    found = {}
    for line in lines:
        config, end = json.JSONDecoder().raw_decode(line)
        assert line[end:].strip() == arguments
        assert config["cluster"] == {"worker": expected}
        found[config["task"]["index"]] = config["task"]["type"]
        monkeypatch.setenv("TF_CONFIG", json.dumps(config))
        assert cluster.read()
    assert found == dict.fromkeys(range(len(expected)), "worker")


def test_ssh_starts_one_worker_on_each_host(run, monkeypatch):
    command = ["t2t-lite-trainer", "--x=1 2", "--y=$z"]
    status, lines = run("train_ssh.sh", "a", "me@b:99", "--", *command)  # "me" is a user there
    assert status == 0
    _check(lines, ["a:2222", "b:99"], "--x=1 2 --y=$z", monkeypatch)
    assert run("train_ssh.sh", "a", "--", "t2t-lite-trainer", STATUS="3")[0] == 3
    assert run("train_ssh.sh", "a", "b")[0] == 2


def test_a_host_that_cannot_be_reached_ends_all(run):
    status, _ = run("train_ssh.sh", "a", "lost", "--", "sleep", "1000")
    assert status != 0


def test_slurm_starts_one_worker_on_each_node_and_waits_again_after_a_stop(run, monkeypatch):
    slurm = {"SLURM_JOB_NODELIST": "n[1-2]", "SLURM_JOB_ID": "7"}
    status, (nodes, *lines) = run("train_slurm.sh", "--x=1 2", **slurm)
    assert (status, nodes) == (0, "scontrol show hostnames n[1-2]")
    _check(lines, ["n1:2222", "n2:2222"], "--x=1 2", monkeypatch)
    status, lines = run("train_slurm.sh", **slurm, STATUS="143")
    assert (status, lines[-1]) == (143, "scontrol requeue 7")
    status, lines = run("train_slurm.sh", **slurm, STATUS="1")
    assert status == 1
    assert not lines[-1].startswith("scontrol requeue")


def test_the_server_in_kubernetes_gets_the_flags_of_serve_sh():
    yaml = pytest.importorskip("yaml")
    objects = yaml.safe_load_all((SCRIPTS / "serve_kubernetes.yaml").read_text())
    deployment = {o["kind"]: o for o in objects}["Deployment"]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    script = (SCRIPTS / "serve.sh").read_text()
    assert container["image"] in script
    names = {flag.partition("=")[0] for flag in container["args"]}
    assert names - {name for name in names if name in script} == {"--monitoring_config_file"}


def test_the_manifest_is_a_tfjob_whose_flags_exist():
    yaml = pytest.importorskip("yaml")
    job = yaml.safe_load((SCRIPTS / "train_kubernetes.yaml").read_text())
    assert (job["apiVersion"], job["kind"]) == ("kubeflow.org/v1", "TFJob")
    (container,) = job["spec"]["tfReplicaSpecs"]["Worker"]["template"]["spec"]["containers"]
    assert container["name"] == "tensorflow"
    command, *flags = container["command"]
    assert command == "t2t-lite-trainer"
    from t2t_lite.bin import trainer

    trainer.FLAGS(["t2t-lite-trainer", *flags], known_only=False)
    trainer.FLAGS.unparse_flags()
