"""The manifests for Kubernetes: by schema, and their commands by the programs that read them.

The schemas name the fields that the manifests use, as KubeRay's custom resource definition and `batch/v1` have them;
any other field is an error, so a new one is looked up there first.
"""

from __future__ import annotations

import copy
import shlex
import subprocess
import unittest
from pathlib import Path
from typing import Any

import jsonschema
import yaml

from assay_cluster.cli import parser
from tests import support

MANIFESTS = Path(__file__).parent.parent / "manifests"


def fields(required: dict[str, Any], optional: dict[str, Any] | None = None) -> dict[str, Any]:
    """An object with these fields and no other."""
    properties = {**required, **(optional or {})}
    return {"type": "object", "required": list(required), "properties": properties, "additionalProperties": False}


def list_of(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "minItems": 1, "items": items}


TEXT = {"type": "string", "minLength": 1}
COUNT = {"type": "integer", "minimum": 0}
NAME = {"type": "string", "pattern": "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"}
METADATA = fields({"name": NAME})
QUANTITY = {"type": "string", "pattern": "^[0-9]+(\\.[0-9]+)?(m|Ki|Mi|Gi)?$"}
RESOURCES = {"type": "object", "propertyNames": {"enum": ["cpu", "memory"]}, "additionalProperties": QUANTITY}
CONTAINER = fields(
    {"name": NAME, "image": TEXT},
    {
        "command": list_of(TEXT),
        "resources": fields({"requests": RESOURCES, "limits": RESOURCES}),
        "volumeMounts": list_of(fields({"name": NAME, "mountPath": TEXT}, {"readOnly": {"type": "boolean"}})),
    },
)
VOLUME = fields(
    {"name": NAME},
    {
        "persistentVolumeClaim": fields({"claimName": NAME}, {"readOnly": {"type": "boolean"}}),
        "secret": fields({"secretName": NAME}, {"defaultMode": {"type": "integer", "minimum": 0, "maximum": 0o777}}),
    },
)
POD = fields(
    {
        "spec": fields(
            {"containers": list_of(CONTAINER), "volumes": list_of(VOLUME)}, {"restartPolicy": {"const": "Never"}}
        )
    }
)
START = {"type": "object", "additionalProperties": TEXT}
RAY_JOB = fields(
    {
        "apiVersion": {"const": "ray.io/v1"},
        "kind": {"const": "RayJob"},
        "metadata": METADATA,
        "spec": fields(
            {
                "entrypoint": TEXT,
                "rayClusterSpec": fields(
                    {
                        "rayVersion": TEXT,
                        "authOptions": fields({"mode": {"enum": ["token", "disabled"]}}),
                        "headGroupSpec": fields({"rayStartParams": START, "template": POD}),
                        "workerGroupSpecs": list_of(
                            fields(
                                {
                                    "groupName": NAME,
                                    "replicas": COUNT,
                                    "minReplicas": COUNT,
                                    "maxReplicas": COUNT,
                                    "rayStartParams": START,
                                    "template": POD,
                                }
                            )
                        ),
                    }
                ),
            },
            {
                "backoffLimit": COUNT,
                "shutdownAfterJobFinishes": {"type": "boolean"},
                "ttlSecondsAfterFinished": COUNT,
            },
        ),
    }
)
RULE = fields(
    {"action": {"enum": ["FailJob", "FailIndex", "Ignore", "Count"]}},
    {
        "onExitCodes": fields(
            {"operator": {"enum": ["In", "NotIn"]}, "values": list_of({"type": "integer"})}, {"containerName": NAME}
        ),
        "onPodConditions": list_of(fields({"type": TEXT, "status": {"enum": ["True", "False", "Unknown"]}})),
    },
)
INDEXED_JOB = fields(
    {
        "apiVersion": {"const": "batch/v1"},
        "kind": {"const": "Job"},
        "metadata": METADATA,
        "spec": fields(
            {
                "completions": COUNT,
                "parallelism": COUNT,
                "completionMode": {"const": "Indexed"},
                "backoffLimitPerIndex": COUNT,
                "podFailurePolicy": fields({"rules": list_of(RULE)}),
                "template": POD,
            }
        ),
    }
)


def read(name: str) -> Any:  # noqa: ANN401 (YAML)
    return yaml.safe_load((MANIFESTS / name).read_text())


def pods(manifest: dict[str, Any]) -> list[dict[str, Any]]:
    """The pods that a manifest makes."""
    spec = manifest["spec"]
    if manifest["kind"] == "Job":
        return [spec["template"]["spec"]]
    cluster = spec["rayClusterSpec"]
    return [group["template"]["spec"] for group in (cluster["headGroupSpec"], *cluster["workerGroupSpecs"])]


class Manifests(unittest.TestCase):
    def test_the_fields_are_known(self) -> None:
        for name, schema in [("rayjob.yaml", RAY_JOB), ("indexed-job.yaml", INDEXED_JOB)]:
            manifest = read(name)
            jsonschema.validate(manifest, schema)
            wrong = copy.deepcopy(manifest)
            wrong["spec"]["entryPoint"] = "x"
            self.assertRaises(jsonschema.ValidationError, jsonschema.validate, wrong, schema)
            for pod in pods(manifest):
                volumes = {volume["name"] for volume in pod["volumes"]}
                for container in pod["containers"]:
                    self.assertEqual({mount["name"] for mount in container["volumeMounts"]}, volumes)

    def test_the_entry_point_is_a_command(self) -> None:
        manifest = read("rayjob.yaml")
        program, *arguments = shlex.split(manifest["spec"]["entrypoint"])
        parsed = parser().parse_args(arguments)
        self.assertEqual((program, parsed.address), ("assay-cluster", "auto"))
        head, worker = pods(manifest)
        mounts = {mount["mountPath"]: mount.get("readOnly", False) for mount in head["containers"][0]["volumeMounts"]}
        self.assertEqual(mounts, {str(parsed.plan.parent): True, str(parsed.out): False})
        # No worker writes anywhere.
        self.assertTrue(all(mount["readOnly"] for mount in worker["containers"][0]["volumeMounts"]))

    def test_the_pod_of_a_part_runs(self) -> None:
        """Its command, with folders of this machine, gives results that `assay shard merge` takes."""
        chain = support.bitcoin()
        folder = support.scratch() / "pods"
        folder.mkdir()
        # As the comment of the manifest makes it, without a line feed.
        (folder / "salt").write_text(support.SALT)
        manifest = read("indexed-job.yaml")
        (container,) = pods(manifest)[0]["containers"]
        for part in range(6):
            shell, flag, command = container["command"]
            for ours, theirs in [
                ("assay shard", f"{support.program()} shard"),
                ("/chain/plan", str(chain.plan)),
                ("/results", str(folder / "results")),
                ("/salt/salt", str(folder / "salt")),
            ]:
                self.assertIn(ours, command)
                command = command.replace(ours, theirs)
            run = subprocess.run(
                [shell, flag, command], env={"JOB_COMPLETION_INDEX": str(part)}, capture_output=True, text=True
            )
            self.assertEqual(run.returncode, 0, run.stderr)
        merged = support.good(support.assay("shard", "merge", chain.plan, folder / "results", "--json"))
        self.assertEqual(merged["utxo"], chain.whole["utxo"])
        rule = manifest["spec"]["podFailurePolicy"]["rules"][0]
        self.assertEqual((rule["action"], rule["onExitCodes"]["values"]), ("FailJob", [1]))
        self.assertEqual(rule["onExitCodes"]["containerName"], container["name"])


if __name__ == "__main__":
    unittest.main()
