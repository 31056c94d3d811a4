"""What runs the job elsewhere agrees with the code: keys, ports, paths, exit codes, Spark's defaults."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from app.cli.output import WRONG_USAGE
from app.http.protection import HEALTH, READY
from app.local.jar_sets import NEWEST_CONNECTOR, NEWEST_SPARK, PROJECT
from app.properties import keys
from app.settings import load
from app.spark.submit_options import defaults

CONF = PROJECT / "conf"
KUBERNETES = sorted((CONF / "kubernetes").glob("*.yaml"))
CHART = CONF / "helm" / "lockstep"
PORT = keys.HTTP_PORT.default
RUN = ["run", "--config", "/etc/lockstep/mm2.properties"]
KUBERNETES_VERSION = "1.33"
TOKEN = "0123456789abcdef"
MEMORY = "spark.driver.memory"
"""What a manifest says in words of its own."""


def documents(path: Path) -> list[dict[str, Any]]:
    return [one for one in yaml.safe_load_all(path.read_text()) if one]


def every(kind: str) -> list[dict[str, Any]]:
    return [one for path in KUBERNETES for one in documents(path) if one["kind"] == kind]


def found(tree: Any, name: str) -> Iterator[Any]:
    """Every value of this key, however deep."""
    if isinstance(tree, dict):
        yield from (value for key, value in tree.items() if key == name)
    for below in tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ():
        yield from found(below, name)


@pytest.fixture
def secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in every("Secret")[0]["stringData"]:
        monkeypatch.setenv(name, TOKEN)


def check_properties(text: str, folder: Path) -> None:
    """It has no mistake and no warning, listens for other pods, and keeps its checkpoint on the volume."""
    file = folder / "mm2.properties"
    file.write_text(text)
    settings = load(file)
    assert [str(warning) for warning in settings.warnings] == []
    assert (settings.job.http_host, settings.job.http_port, settings.job.http_token) == ("0.0.0.0", PORT, TOKEN)
    assert str(settings.job.checkpoint_dir).startswith("/var/lib/lockstep/")
    assert len(settings.flows) == 1


def test_the_config_map_holds_a_file_without_mistakes(secrets: None, tmp_path: Path) -> None:
    check_properties(every("ConfigMap")[0]["data"]["mm2.properties"], tmp_path)


def test_ports_probes_and_arguments_are_those_of_the_job() -> None:
    for one in [*every("Deployment"), *every("Service"), *every("SparkApplication")]:
        ports = {*found(one, "containerPort"), *found(one, "port")} - {"http"}
        assert ports == {PORT}
        assert {probe["path"] for probe in found(one, "httpGet")} <= {HEALTH, READY}
        for name in ("args", "arguments", "driverArgs"):
            assert all(arguments == RUN for arguments in found(one, name))
    assert {probe["path"] for probe in found(every("Deployment"), "httpGet")} == {HEALTH, READY}


def test_every_name_that_a_manifest_refers_to_is_defined_by_another() -> None:
    defined = {(one["kind"], one["metadata"]["name"]) for path in KUBERNETES for one in documents(path)}
    everything = [one for path in KUBERNETES for one in documents(path)]
    assert {("Secret", ref["name"]) for ref in found(everything, "secretRef")} <= defined
    assert {
        ("PersistentVolumeClaim", claim["claimName"]) for claim in found(everything, "persistentVolumeClaim")
    } <= defined
    volumes = {
        volume["configMap"]["name"]
        for volumes in found(everything, "volumes")
        for volume in volumes
        if "configMap" in volume
    }
    assert {("ConfigMap", name) for name in volumes} <= defined


def test_what_must_not_be_lost_is_on_the_volume_that_stays(secrets: None, tmp_path: Path) -> None:
    file = tmp_path / "mm2.properties"
    file.write_text(every("ConfigMap")[0]["data"]["mm2.properties"])
    for one in [*every("Deployment"), *every("SparkApplication")]:
        volumes = [volume for volumes in found(one, "volumes") for volume in volumes]
        mounts = [mount for mounts in found(one, "volumeMounts") for mount in mounts]
        stays = {volume["name"] for volume in volumes if "persistentVolumeClaim" in volume}
        places = [mount["mountPath"] for mount in mounts if mount["name"] in stays]
        assert any(load(file).job.checkpoint_dir.is_relative_to(place) for place in places), one["apiVersion"]


@pytest.mark.parametrize("application", every("SparkApplication"), ids=lambda one: str(one["apiVersion"]))
def test_an_operator_starts_spark_with_the_projects_own_defaults_and_jars(application: dict[str, Any]) -> None:
    given = application["spec"]["sparkConf"]
    expected = {name: value for name, value in defaults().items() if name != MEMORY}
    assert {name: given.get(name) for name in expected} == expected
    assert defaults()[MEMORY] in (given.get(MEMORY), application["spec"].get("driver", {}).get("memory"))
    jars = {Path(jar).name for jar in given["spark.jars"].split(",")}
    assert jars == set(NEWEST_CONNECTOR.jars.expected())
    assert f"/jars/{NEWEST_CONNECTOR.jars.name}/" in given["spark.jars"]
    assert f"{NEWEST_SPARK}." in str(list(found(application, "sparkVersion")))


def test_nothing_runs_as_root() -> None:
    for one in [*every("Deployment"), *every("SparkApplication")]:
        assert list(found(one, "runAsNonRoot"))
        assert all(found(one, "runAsNonRoot"))
        assert not any(found(one, "allowPrivilegeEscalation"))


def test_the_images_hold_all_packages_and_run_the_job_as_somebody_else_than_root() -> None:
    text = (CONF / "docker" / "Dockerfile").read_text()
    packages = re.search(
        r"\[tool\.setuptools\.packages\.find\]\ninclude = \[(.*)\]", (PROJECT / "pyproject.toml").read_text()
    )
    assert packages is not None
    for package in re.findall(r'"(\w+)\*"', packages[1]):
        assert f"COPY {package} {package}\n" in text
    stages = re.split(r"^FROM ", text, flags=re.MULTILINE)[2:]
    assert [re.findall(r"^USER (\S+)$", stage, re.MULTILINE)[-1] for stage in stages] == ["10001", "185"]
    assert f"EXPOSE {PORT}\n" in text
    assert f"CMD {str(RUN).replace(chr(39), chr(34))}\n" in text


def test_the_unit_starts_the_job_reloads_by_signal_and_gives_up_on_wrong_usage_alone() -> None:
    lines = (CONF / "systemd" / "lockstep.service").read_text().splitlines()
    unit = dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))
    assert shlex.split(unit["ExecStart"])[1:] == RUN
    assert unit["ExecReload"] == "/bin/kill -HUP $MAINPID"
    assert unit["RestartPreventExitStatus"] == str(WRONG_USAGE)
    assert unit["KillMode"] == "mixed"


def check_against_kubernetes(documents: Iterable[dict[str, Any]]) -> set[str]:
    """The kinds that Kubernetes' own schemas hold, strictly; the operators' are not among them."""
    validate = pytest.importorskip("kubernetes_validate", reason="`make setup` installs kubernetes-validate")
    own = [
        one for one in documents if one["apiVersion"].startswith("networking.k8s.io/") or "." not in one["apiVersion"]
    ]
    for one in own:
        validate.validate(one, KUBERNETES_VERSION, strict=True)
    return {one["kind"] for one in own}


def test_kubernetes_takes_every_manifest() -> None:
    kinds = check_against_kubernetes(one for path in KUBERNETES for one in documents(path))
    assert kinds == {"ConfigMap", "Deployment", "PersistentVolumeClaim", "Secret", "Service"}


def test_manifest_that_kubernetes_does_not_take_is_noticed() -> None:
    (wrong,) = every("Deployment")
    wrong["spec"]["template"]["spec"]["containers"][0]["startupProb"] = {}
    with pytest.raises(Exception, match="startupProb"):
        check_against_kubernetes([wrong])


def values() -> dict[str, Any]:
    return dict(yaml.safe_load((CHART / "values.yaml").read_text()))


def check_values(given: dict[str, Any]) -> None:
    """As helm does it before it renders."""
    jsonschema = pytest.importorskip("jsonschema", reason="`make setup` installs kubernetes-validate, which needs it")
    jsonschema.validate(given, json.loads((CHART / "values.schema.json").read_text()), jsonschema.Draft7Validator)


def test_the_charts_schema_takes_its_values_and_knows_each() -> None:
    check_values(values())
    schema = json.loads((CHART / "values.schema.json").read_text())
    assert set(values()) == set(schema["properties"]) - {"global"}
    for name, value in values().items():
        if isinstance(value, dict) and "properties" in schema["properties"][name] and name != "secrets":
            assert set(value) == set(schema["properties"][name]["properties"]), name


@pytest.mark.parametrize(
    "given",
    [
        {"extraVolume": []},
        {"extraVolumes": {"name": "stores"}},
        {"extraVolumeMounts": [{"name": "stores"}]},
        {"imagePullSecrets": ["registry"]},
        {"image": {"repository": "lockstep", "pullPolicy": "Sometimes"}},
        {"port": "9464"},
        {"port": 80},
        {"flow": "a to b"},
        {"networkPolicy": {"enabled": "yes"}},
        {"serviceAccount": {"nam": "x"}},
        {"podAnnotations": {"a": 1}},
    ],
)
def test_the_charts_schema_refuses_what_is_misspelt_or_of_the_wrong_type(given: dict[str, Any]) -> None:
    with pytest.raises(Exception, match=str(next(iter(given)))):
        check_values(values() | given)


def test_the_charts_alerts_are_those_of_prometheus() -> None:
    assert (CHART / "alerts.yml").read_text() == (CONF / "prometheus" / "alerts.yml").read_text()
    assert '.Files.Get "alerts.yml"' in (CHART / "templates" / "prometheusrule.yaml").read_text()


def helm(command: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    path = shutil.which("helm")
    if path is None:
        pytest.skip("helm is not on PATH")
    # A helm that was built by hand may take its Kubernetes to be older than any that is in use.
    words = [path, command, *arguments, "--kube-version", "1.33.0"]
    return subprocess.run(words, capture_output=True, text=True, timeout=300, check=False)


def test_the_charts_file_has_no_mistake(secrets: None, tmp_path: Path) -> None:
    given = values()
    added = re.search(r"nindent 4 }}\n((?:    \S.*\n)+)", (CHART / "templates" / "configmap.yaml").read_text())
    assert added is not None
    assert given["port"] == PORT
    check_properties(
        given["properties"] + added[1].replace("    ", "").replace("{{ .Values.port }}", str(PORT)), tmp_path
    )


def test_the_charts_pod_is_that_of_the_manifest_but_for_what_its_values_say() -> None:
    """Line by line, for who has no helm."""
    chart, plain = (
        [line.strip() for line in path.read_text().partition("    spec:\n")[2].splitlines()]
        for path in (CHART / "templates" / "deployment.yaml", CONF / "kubernetes" / "deployment.yaml")
    )
    assert [line for line in plain if line not in chart and "#" not in line] == [
        "image: lockstep:0.1.0",
        f"args: [{', '.join(RUN)}]",
        "envFrom: [{secretRef: {name: lockstep}}]",
        f"ports: [{{name: http, containerPort: {PORT}}}]",
        "resources:",
        "requests: {cpu: 500m, memory: 2Gi}",
        "limits: {memory: 3Gi}",
        "configMap: {name: lockstep}",
        "persistentVolumeClaim: {claimName: lockstep}",
    ]
    assert "      path: /metrics\n" in (CHART / "templates" / "servicemonitor.yaml").read_text()


def test_no_manifest_and_no_page_gives_a_secret_away() -> None:
    """A checksum of a secret lets who reads the pod guess it. An argument of a command is in histories and lists."""
    templates = [path.read_text() for path in (CHART / "templates").iterdir()]
    assert not [text for text in templates if "sha256sum" in text and "ecret" in text.partition("sha256sum")[0][-200:]]
    pages = [*(CONF.parent / "docs").glob("*.md"), CONF.parent / "CONTRIBUTING.md", CONF.parent / "README.md"]
    assert not [path.name for path in pages if "--set secrets" in path.read_text()]


def test_helm_renders_a_chart_that_agrees_with_the_manifests() -> None:
    given = (
        "--set",
        f"secrets.LOCKSTEP_HTTP_TOKEN={TOKEN}",
        "--set",
        "serviceMonitor.enabled=true",
        "--set",
        "flow=a->b",
    )
    assert "0 chart(s) failed" in helm("lint", str(CHART), *given).stdout
    done = helm("template", "dr", str(CHART), *given)
    assert done.returncode == 0, done.stderr
    rendered = [one for one in yaml.safe_load_all(done.stdout) if one]
    kinds = {one["kind"]: one for one in rendered}
    assert set(kinds) == {"ConfigMap", "Secret", "PersistentVolumeClaim", "Service", "Deployment", "ServiceMonitor"}
    assert {one["metadata"]["name"] for one in rendered} == {"dr"}
    pod, plain = (one["spec"]["template"]["spec"] for one in (kinds["Deployment"], every("Deployment")[0]))
    assert pod["containers"][0]["args"] == [*RUN, "--flow", "a->b"]
    assert pod["securityContext"] == plain["securityContext"]
    check_against_kubernetes(rendered)
    for name in (
        "startupProbe",
        "livenessProbe",
        "readinessProbe",
        "volumeMounts",
        "securityContext",
        "resources",
        "ports",
    ):
        assert pod["containers"][0][name] == plain["containers"][0][name]


STORES = """
imagePullSecrets: [{name: registry}]
serviceAccount: {create: true, annotations: {eks.amazonaws.com/role-arn: "arn:aws:iam::1:role/x"}}
extraVolumes: [{name: stores, secret: {secretName: kafka-stores}}]
extraVolumeMounts: [{name: stores, mountPath: /etc/kafka-stores, readOnly: true}]
extraEnv: [{name: LOCKSTEP_JARS, value: /etc/kafka-stores/login.jar}]
submitArguments: "--conf spark.driver.memory=2g pyspark-shell"
serviceMonitor: {enabled: true}
prometheusRule: {enabled: true, labels: {release: prometheus}}
networkPolicy: {enabled: true, from: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: monitoring}}}]}
podAnnotations: {example.com/team: kafka}
"""


def test_helm_renders_stores_accounts_policy_and_alerts_as_kubernetes_takes_them(tmp_path: Path) -> None:
    file = tmp_path / "values.yaml"
    file.write_text(STORES)
    done = helm("template", "dr", str(CHART), "--set", f"secrets.LOCKSTEP_HTTP_TOKEN={TOKEN}", "--values", str(file))
    assert done.returncode == 0, done.stderr
    rendered = {one["kind"]: one for one in yaml.safe_load_all(done.stdout) if one}
    assert rendered.keys() >= {"NetworkPolicy", "ServiceAccount", "PrometheusRule", "ServiceMonitor"}
    check_against_kubernetes(rendered.values())
    pod = rendered["Deployment"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert pod["imagePullSecrets"] == [{"name": "registry"}]
    assert pod["serviceAccountName"] == rendered["ServiceAccount"]["metadata"]["name"] == "dr"
    assert {"name": "stores", "secret": {"secretName": "kafka-stores"}} in pod["volumes"]
    assert {"name": "stores", "mountPath": "/etc/kafka-stores", "readOnly": True} in container["volumeMounts"]
    assert [one["name"] for one in container["env"]] == ["PYSPARK_SUBMIT_ARGS", "LOCKSTEP_JARS"]
    rule = rendered["PrometheusRule"]["spec"]
    assert rule == yaml.safe_load((CONF / "prometheus" / "alerts.yml").read_text())
    (ingress,) = rendered["NetworkPolicy"]["spec"]["ingress"]
    assert ingress["ports"] == [{"protocol": "TCP", "port": "http"}]


def test_helm_lets_no_pod_in_where_a_policy_names_none() -> None:
    given = ("--set", f"secrets.LOCKSTEP_HTTP_TOKEN={TOKEN}", "--set", "networkPolicy.enabled=true")
    done = helm("template", "dr", str(CHART), *given)
    assert done.returncode == 0, done.stderr
    policy = next(one for one in yaml.safe_load_all(done.stdout) if one and one["kind"] == "NetworkPolicy")
    assert policy["spec"]["policyTypes"] == ["Ingress"]
    assert "ingress" not in policy["spec"]


def test_helm_refuses_values_that_the_schema_does_not_know() -> None:
    given = ("--set", f"secrets.LOCKSTEP_HTTP_TOKEN={TOKEN}", "--set", "extraVolume=x")
    done = helm("template", "dr", str(CHART), *given)
    assert done.returncode != 0
    assert "extraVolume" in done.stderr


def test_a_chart_without_a_token_is_refused() -> None:
    done = helm("template", "dr", str(CHART))
    assert done.returncode != 0
    assert "LOCKSTEP_HTTP_TOKEN needs 16 characters" in done.stderr
