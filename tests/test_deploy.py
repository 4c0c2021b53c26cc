"""The files in deploy/ fit their schemas, and what they ask of Regard exists."""

import importlib.util
import json
import os
import re
import shlex
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest

from regard.cli import make_parser
from regard.serve.api.routes import ROUTES
from regard.serve.http.access import normalize_hosts

yaml = pytest.importorskip("yaml")
jsonschema = pytest.importorskip("jsonschema")

ROOT = Path(__file__).parent.parent
DEPLOY = ROOT / "deploy"
DOCKERFILE = (ROOT / "Dockerfile").read_text()
ENTRYPOINT = json.loads(re.search(r"^ENTRYPOINT (.*)$", DOCKERFILE, re.M)[1])
PORT = int(re.search(r"^EXPOSE (\d+)$", DOCKERFILE, re.M)[1])
PATHS = {route.path for route in ROUTES if route.public}


def documents(name: str) -> list[dict]:
    return list(yaml.safe_load_all((DEPLOY / name).read_text()))


def by_kind(name: str) -> dict[str, dict]:
    return {document["kind"]: document for document in documents(name)}


def parse(words: list[str]):
    """The options of a command of ours; unknown ones are an error."""
    assert words[0] == "regard"
    return make_parser(words[1:]).parse_args(words[1:])


def parse_training(words: list[str]):
    """The options of `regard train` behind those of torchrun, which torch's own parser checks."""
    from torch.distributed.run import get_args_parser

    assert words[0] == "torchrun"
    place = words.index("-m")
    torchrun = get_args_parser().parse_args([*words[1:place], "-m", "regard"])
    return torchrun, parse(["regard", *words[words.index("regard", place) + 1 :]])


@pytest.mark.parametrize("name", ["train-kubernetes.yaml", "serve-kubernetes.yaml"])
def test_kubernetes_files_fit_its_schema(name):
    validate = pytest.importorskip("kubernetes_validate")
    for document in documents(name):
        validate.validate(document, "1.33", strict=True)


def test_the_compose_file_fits_its_schema():
    check = pytest.importorskip("check_jsonschema")
    vendored = Path(check.__file__).parent / "builtin_schemas/vendor/compose-spec.json"
    (document,) = documents("serve-compose.yaml")
    jsonschema.validate(document, json.loads(vendored.read_text()))


def test_the_skypilot_file_fits_its_schema(monkeypatch):
    from unittest.mock import MagicMock

    spec = find_spec("sky")
    if spec is None or spec.origin is None:
        pytest.skip("skypilot is not installed")
    root = Path(spec.origin).parent
    # the module of schemas alone: the package needs the clients of many clouds
    for name in ("sky", "sky.skylet", "sky.utils", "sky.skylet.autostop_lib"):
        module = ModuleType(name)
        module.__path__ = [str(root / Path(*name.split(".")[1:]))]
        monkeypatch.setitem(sys.modules, name, module)
    sys.modules["sky"].__version__ = "1.0"
    lib = sys.modules["sky.skylet.autostop_lib"]
    lib.AutostopWaitFor = type("AutostopWaitFor", (), {"supported_modes": staticmethod(list)})
    monkeypatch.setattr(sys.modules["sky.skylet"], "autostop_lib", lib, raising=False)
    daemons = MagicMock(INTERNAL_REQUEST_DAEMONS=[])
    for name in ("sky.server", "sky.server.daemons"):
        monkeypatch.setitem(sys.modules, name, MagicMock(daemons=daemons))
    source = importlib.util.spec_from_file_location("sky.utils.schemas", root / "utils/schemas.py")
    schemas = importlib.util.module_from_spec(source)
    source.loader.exec_module(schemas)
    (document,) = documents("train-skypilot.yaml")
    jsonschema.validate(document, schemas.get_task_schema())
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document | {"nodes": 2}, schemas.get_task_schema())


def test_kubernetes_servers_ask_for_what_there_is():
    found = by_kind("serve-kubernetes.yaml")
    pod = found["Deployment"]["spec"]["template"]
    (container,) = pod["spec"]["containers"]
    chosen = parse([*ENTRYPOINT, *container["args"]])
    assert chosen.port == PORT
    assert container["ports"] == [{"name": "http", "containerPort": PORT}]
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        get = container[probe]["httpGet"]
        assert get["path"] in PATHS
        assert get["port"] == "http"
        (header,) = get["httpHeaders"]
        assert header["value"] in normalize_hosts(["localhost"])
    labels = pod["metadata"]["labels"]
    assert found["Service"]["spec"]["selector"] == labels
    assert found["Deployment"]["spec"]["selector"]["matchLabels"] == labels
    assert found["Service"]["spec"]["ports"][0]["targetPort"] == "http"
    assert found["Service"]["metadata"]["name"] in chosen.allow_host
    target = found["HorizontalPodAutoscaler"]["spec"]["scaleTargetRef"]
    assert target["name"] == found["Deployment"]["metadata"]["name"]
    assert "cpu" in container["resources"]["requests"]  # of which the autoscaler takes a share
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert mounts.keys() == {volume["name"] for volume in pod["spec"]["volumes"]}
    assert chosen.folders[0].is_relative_to(mounts["runs"])
    assert chosen.token_file.is_relative_to(mounts["token"])
    assert f"useradd --system --uid {pod['spec']['securityContext']['runAsUser']}" in DOCKERFILE


def test_compose_asks_for_what_there_is():
    (document,) = documents("serve-compose.yaml")
    server, proxy = document["services"]["regard"], document["services"]["proxy"]
    chosen = parse([*ENTRYPOINT, *server["command"]])
    targets = {volume["target"] for volume in server["volumes"]}
    assert targets == {str(chosen.folders[0]), str(chosen.token_file)}
    assert all(volume["read_only"] for volume in server["volumes"])
    assert server["expose"] == [str(PORT)]
    (path,) = re.findall(rf"http://127.0.0.1:{PORT}(/\w+)", " ".join(server["healthcheck"]["test"]))
    assert path in PATHS
    nginx = (DEPLOY / "nginx.conf").read_text()
    assert f"server regard:{PORT} resolve" in nginx
    (listen,) = re.findall(r"listen (\d+);", nginx)
    assert proxy["ports"] == [f"127.0.0.1:{listen}:{listen}"]
    assert nginx.count("{") == nginx.count("}")


def test_the_kubernetes_job_trains():
    found = by_kind("train-kubernetes.yaml")
    job, service = found["Job"]["spec"], found["Service"]
    pod = job["template"]
    (container,) = pod["spec"]["containers"]
    torchrun, chosen = parse_training([*container["command"], *container["args"]])
    name = found["Job"]["metadata"]["name"]
    host = f"{name}-0.{pod['spec']['subdomain']}"
    assert torchrun.rdzv_endpoint == f"{host}:{service['spec']['ports'][0]['port']}"
    assert int(torchrun.nnodes) == job["completions"] == job["parallelism"]
    assert job["completionMode"] == "Indexed"  # which gives the pods their names
    assert service["metadata"]["name"] == pod["spec"]["subdomain"]
    assert service["spec"]["selector"] == pod["metadata"]["labels"]
    (mount,) = container["volumeMounts"]
    assert chosen.out.is_relative_to(mount["mountPath"])


def test_the_skypilot_file_trains():
    (document,) = documents("train-skypilot.yaml")
    script = document["run"].replace("\\\n", " ")
    script = re.sub(r"\$\(.*?\)", "x", script).replace("$SKYPILOT_NUM_NODES", "2")
    script = script.replace("$SKYPILOT_NODE_RANK", "0")
    (line,) = [line for line in script.split("\n") if line.startswith("torchrun")]
    torchrun, chosen = parse_training(shlex.split(line))
    assert torchrun.master_port == 29500
    assert any(chosen.out.is_relative_to(place) for place in document["file_mounts"])


def test_the_slurm_file_starts_torchrun_on_every_node(tmp_path):
    (tmp_path / "scontrol").write_text("#!/bin/sh\necho first\necho second\n")
    (tmp_path / "srun").write_text('#!/bin/sh\nprintf "%s\\n" "$OMP_NUM_THREADS" "$@"\n')
    for name in ("scontrol", "srun"):
        (tmp_path / name).chmod(0o755)
    environment = {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "SLURM_JOB_NODELIST": "node[1-2]",
        "SLURM_JOB_NUM_NODES": "2",
        "SLURM_JOB_ID": "7",
        "SLURM_CPUS_PER_TASK": "8",
    }
    given = ["translation", "--data", "my pairs.tsv", "--out", "/shared/run"]

    def start(*words):
        command = ["bash", str(DEPLOY / "train.sbatch"), *words]
        return subprocess.run(command, env=environment, capture_output=True, text=True)

    threads, *words = start(*given).stdout.splitlines()
    torchrun, chosen = parse_training(words)
    assert threads == "4"
    assert torchrun.rdzv_endpoint == "first:29500"
    assert torchrun.nnodes == "2"
    assert chosen.data == ["my pairs.tsv"]
    assert start().returncode == 2
    options = re.findall(r"^#SBATCH (--[a-z-]+)=?", (DEPLOY / "train.sbatch").read_text(), re.M)
    known = "job-name nodes ntasks-per-node cpus-per-task mem time signal requeue output"
    assert options == [f"--{name}" for name in known.split()]
