"""The container image and the Kubernetes manifests, built and run: `make test-container` (root, podman, runc).

The base is a bare Debian root made by debootstrap, kept below the user's cache. Every container has a read-only root,
no capabilities, no new privileges, no network, the default seccomp filter, 512 MiB and a user who is not root.
"""

from __future__ import annotations

import copy
import json
import os
import shutil
import stat
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parent.parent.parent
MANIFESTS = ROOT / "deploy" / "kubernetes"
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "wcpod-ci"
BASE, IMAGE = "localhost/wcpod-test-base", "localhost/wcpod-test"
DAY = ("--date", "2026-06-15", "--out", "/outputs")
FILES = [
    "260615.notes.md",
    "260615.segments.json",
    "260615.simple.zh.txt",
    "260615.tranditional.zh.txt",
    "episode.json",
]
MISSING = [program for program in ("podman", "runc", "debootstrap") if shutil.which(program) is None]

pytestmark = [
    pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}"),
    pytest.mark.skipif(os.geteuid() != 0, reason="debootstrap and mknod need root"),
    pytest.mark.skipif(not Path("/dev/kvm").exists(), reason="there is no /dev/kvm"),
    pytest.mark.timeout(900),
]


def run(*command: str | Path, check: bool = True, given: str | None = None) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=False)
    assert not check or done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done


@pytest.fixture(scope="module", autouse=True)
def configuration(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """runc, and limits that a machine without systemd can set."""
    file = tmp_path_factory.mktemp("podman") / "containers.conf"
    limits = '["nofile=1024:1024", "nproc=1024:1024"]'
    file.write_text(f'[containers]\ndefault_ulimits = {limits}\n[engine]\nruntime = "runc"\n')
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CONTAINERS_CONF", str(file))
        yield


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A Debian with Python and nothing else, named by its digest."""
    archive = CACHE / "bookworm-python3.tar"
    if not archive.exists():
        root = tmp_path_factory.mktemp("debootstrap")
        mirror = run("apt-get", "indextargets", "--format", "$(REPO_URI)").stdout.split()
        debian = next(each for each in mirror if each.rstrip("/").endswith("/debian"))
        run("debootstrap", "--variant=minbase", "--include=python3,python3-venv", "bookworm", root, debian)
        CACHE.mkdir(parents=True, exist_ok=True)
        part = archive.with_suffix(".part")
        run("tar", "-C", root, "-cf", part, ".")
        part.rename(archive)
    run("podman", "import", archive, BASE)
    digest = run("podman", "image", "inspect", BASE, "--format", "{{.Digest}}").stdout.strip()
    return f"{BASE}@{digest}"


@pytest.fixture(scope="module")
def image(base: str) -> str:
    run("make", "-C", ROOT, "image", f"BASE={base}", "BASE_PYTHON=3.11", "IMAGE_EXTRAS=podcast", f"TAG={IMAGE}")
    return IMAGE


@pytest.fixture(scope="module")
def device(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The hypervisor as a node that a user who is not root may open."""
    node = tmp_path_factory.mktemp("dev") / "kvm"
    os.mknod(node, 0o666 | stat.S_IFCHR, Path("/dev/kvm").stat().st_rdev)
    node.chmod(0o666)
    return node


@pytest.fixture
def outputs(tmp_path: Path) -> Path:
    folder = tmp_path / "outputs"
    folder.mkdir()
    os.chown(folder, 65532, 65532)
    return folder


def confined(image: str, *arguments: str, device: Path | None, options: tuple[str, ...] = ()) -> list[str]:
    """The command that runs the image with nothing that it does not need."""
    command = ["podman", "run", "--rm", "--interactive", "--read-only", "--cap-drop", "all", "--network", "none"]
    command += ["--security-opt", "no-new-privileges", "--memory", "512m", "--memory-swap", "512m"]
    if device is not None:
        command += ["--device", f"{device}:/dev/kvm"]
    return [*command, *options, image, *arguments]


def test_a_base_that_is_not_pinned_is_refused() -> None:
    done = run("make", "-C", ROOT, "image", "BASE=debian:bookworm", check=False)
    assert done.returncode != 0
    assert "image: pin the base by its digest" in done.stdout + done.stderr


def test_doctor(image: str, device: Path) -> None:
    assert run(*confined(image, device=device)).stdout.endswith("A sandbox works here.\n")


def test_exec(image: str, device: Path) -> None:
    done = run(*confined(image, "exec", "-", device=device), given="print(6 * 7)")
    assert done.stdout == "42\n"


def test_an_episode(image: str, device: Path, outputs: Path) -> None:
    run(*confined(image, "run", *DAY, device=device, options=("--volume", f"{outputs}:/outputs")))
    assert sorted(path.name for path in (outputs / "260615").iterdir()) == FILES
    assert {path.stat().st_uid for path in (outputs / "260615").iterdir()} == {65532}


def test_what_the_process_may_do(image: str, device: Path) -> None:
    code = (
        "import os\n"
        "print(os.getuid(), os.access('/opt/wcpod', os.W_OK))\n"
        "print(*(line for line in open('/proc/self/status') if line.split(':')[0] in "
        "('CapEff', 'CapBnd', 'NoNewPrivs', 'Seccomp')), sep='')"
    )
    options = ("--entrypoint", "/opt/wcpod/bin/python")
    lines = run(*confined(image, "-c", code, device=device, options=options)).stdout.split()
    assert lines[:2] == ["65532", "False"]
    status = dict(zip(lines[2::2], lines[3::2], strict=True))
    nothing = "0" * 16
    assert status == {"CapEff:": nothing, "CapBnd:": nothing, "NoNewPrivs:": "1", "Seccomp:": "2"}


def test_the_image_holds_no_tool_to_install_more(image: str, device: Path) -> None:
    options = ("--entrypoint", "/opt/wcpod/bin/python")
    done = run(*confined(image, "-m", "pip", "--version", device=device, options=options), check=False)
    assert "No module named pip" in done.stderr


def test_without_the_device_the_error_says_so(image: str, outputs: Path) -> None:
    done = run(*confined(image, "run", *DAY, device=None, options=("--volume", f"{outputs}:/outputs")), check=False)
    assert done.returncode == 4
    assert "/dev/kvm" in done.stderr
    assert not (outputs / "260615").exists() or list((outputs / "260615").iterdir()) == []


def test_sigterm_ends_the_run_and_leaves_no_half_episode(image: str, device: Path, outputs: Path) -> None:
    options = ("--volume", f"{outputs}:/outputs", "--name", "wcpod-test-term")
    command = confined(image, "run", *DAY, "--json", device=device, options=options)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if json.loads(line)["event"] == "code_started":
                break
        run("podman", "kill", "--signal", "TERM", "wcpod-test-term")
        process.stdout.read()
        assert process.wait(30) == 143
    day = outputs / "260615"
    assert not day.exists() or sorted(path.name for path in day.iterdir()) in ([], FILES)


def templates() -> list[Any]:
    """The pod template of each manifest that has one."""
    found = []
    for path in sorted(MANIFESTS.glob("*.yaml")):
        for document in yaml.safe_load_all(path.read_text(encoding="utf-8")):
            spec = document.get("spec", {})
            spec = spec.get("jobTemplate", {}).get("spec", spec)
            if "template" in spec:
                found.append(
                    pytest.param(document["metadata"]["name"], spec["template"], id=document["metadata"]["name"])
                )
    return found


def as_pod(name: str, template: dict[str, Any], device: Path) -> dict[str, Any]:
    """The template as a pod of its own. Only image and device are others: here no plugin hands the device out."""
    spec = copy.deepcopy(template["spec"])
    for container in [*spec.get("initContainers", []), *spec["containers"]]:
        container["image"] = f"{IMAGE}:latest"
        container["imagePullPolicy"] = "Never"
        for amounts in container["resources"].values():
            assert amounts.pop("squat.ai/kvm", 1) == 1
        container["volumeMounts"].append({"name": "kvm", "mountPath": "/dev/kvm"})
    spec["volumes"].append({"name": "kvm", "hostPath": {"path": str(device), "type": "CharDevice"}})
    metadata = {"name": name, "labels": template["metadata"]["labels"]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def play(pod: dict[str, Any], folder: Path) -> dict[str, dict[str, Any]]:
    """Runs a pod to its end; what podman says of each container, by name."""
    claims = (MANIFESTS / "outputs.yaml").read_text(encoding="utf-8")
    manifest = folder / "pod.yaml"
    manifest.write_text(f"{claims}\n---\n{json.dumps(pod)}\n", encoding="utf-8")
    name = pod["metadata"]["name"]
    run("podman", "play", "kube", "--network", "none", manifest)
    deadline = time.monotonic() + 120
    names = [f"{name}-{each['name']}" for each in pod["spec"]["containers"]]
    while time.monotonic() < deadline:
        shown = [json.loads(run("podman", "inspect", each).stdout)[0] for each in names]
        if all(each["State"]["Status"] == "exited" for each in shown):
            break
        time.sleep(0.5)
    return dict(zip(names, shown, strict=True))


def loose_ends(container: dict[str, Any]) -> list[str]:
    """What a container may that the tested one may not."""
    host = container["HostConfig"]
    findings = {
        "the root can be written to": not host["ReadonlyRootfs"],
        "capabilities are left": bool(container["EffectiveCaps"] or container["BoundingCaps"]),
        "it runs as root": container["Config"]["User"].split(":")[0] in ("", "0", "root"),
        "it may gain privileges": "no-new-privileges" not in " ".join(host["SecurityOpt"]),
        "it is privileged": bool(host["Privileged"]),
        "its memory has no limit": not host["Memory"],
    }
    return [finding for finding, found in findings.items() if found]


@pytest.fixture
def clean() -> Iterator[None]:
    """No pod and no volume of another test."""

    def sweep() -> None:
        run("podman", "pod", "rm", "--all", "--force", check=False)
        run("podman", "volume", "rm", "--force", "wcpod-outputs", check=False)

    sweep()
    yield
    sweep()


@pytest.mark.usefixtures("image", "clean")
@pytest.mark.parametrize(("name", "template"), templates())
def test_the_pod_of_each_manifest_runs(device: Path, tmp_path: Path, name: str, template: dict[str, Any]) -> None:
    for container, shown in play(as_pod(name, template, device), tmp_path).items():
        assert shown["State"]["ExitCode"] == 0, run("podman", "logs", container).stdout
        assert loose_ends(shown) == []
    volume = json.loads(run("podman", "volume", "inspect", "wcpod-outputs").stdout)[0]
    (episode,) = Path(volume["Mountpoint"]).glob("*/episode.json")
    assert json.loads(episode.read_text(encoding="utf-8"))["model"]["rehearsal"] is True


@pytest.mark.usefixtures("image", "clean")
@pytest.mark.parametrize(
    ("change", "finding"),
    [
        ({"readOnlyRootFilesystem": False}, "the root can be written to"),
        ({"capabilities": {}}, "capabilities are left"),
        ({"allowPrivilegeEscalation": True}, "it may gain privileges"),
    ],
)
def test_a_manifest_that_gives_more_is_found(
    device: Path, tmp_path: Path, change: dict[str, Any], finding: str
) -> None:
    name, template = templates()[0].values
    pod = as_pod(name, template, device)
    pod["spec"]["initContainers"] = []
    pod["spec"]["containers"][0]["args"] = ["--version"]
    pod["spec"]["containers"][0]["securityContext"].update(change)
    (shown,) = play(pod, tmp_path).values()
    assert finding in loose_ends(shown)


def test_kustomize_renders_every_manifest() -> None:
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not installed")
    rendered = list(yaml.safe_load_all(run("kubectl", "kustomize", MANIFESTS).stdout))
    assert sorted(each["kind"] for each in rendered) == ["CronJob", "NetworkPolicy", "PersistentVolumeClaim"]


def test_the_systemd_units_are_well_formed(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    for unit in (ROOT / "deploy" / "systemd").iterdir():
        text = unit.read_text(encoding="utf-8").replace("/opt/wcpod/bin/wcpod", "/bin/true")
        (tmp_path / unit.name).write_text(text, encoding="utf-8")
    done = run("systemd-analyze", "verify", *sorted(tmp_path.iterdir()), check=False)
    assert [line for line in done.stderr.splitlines() if "wcpod-episode" in line] == []
