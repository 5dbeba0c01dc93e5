"""What a cluster is and whether it was prepared: version, capabilities, accounts, and the objects of deploy/kubernetes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from jobs.cluster.kubernetes.client import Api, NotThere
from jobs.cluster.kubernetes.setting import KubernetesSetting
from jobs.cluster.port import Manifest
from jobs.exceptions import ClusterForbids, ClusterRefuses

# Group -> versions in order of preference, and the resource that must be there (KUBERNETES 1.2).
WANTED = {
    "jobset.x-k8s.io": (("v1", "v1beta1", "v1alpha2"), "jobsets"),
    "kueue.x-k8s.io": (("v1", "v1beta2", "v1beta1"), "localqueues"),
    "trainer.kubeflow.org": (("v1", "v1beta1", "v1alpha1"), "trainjobs"),
    "kubeflow.org": (("v2beta1",), "mpijobs"),
    "scheduling.k8s.io": (("v1", "v1beta1"), "podgroups"),
    "resource.k8s.io": (("v1", "v1beta2", "v1beta1"), "resourceclaims"),
    "schedule.k8s.everpeace.github.com": (("v1alpha1",), "clusterthrottles"),
    "visibility.kueue.x-k8s.io": (("v1beta2", "v1beta1"), "clusterqueues"),
}
POLICIES = "/apis/admissionregistration.k8s.io/v1/"
ROLES = "/apis/rbac.authorization.k8s.io/v1/"
PATHS = {
    "ClusterRole": f"{ROLES}clusterroles/",
    "ClusterRoleBinding": f"{ROLES}clusterrolebindings/",
    "PriorityClass": "/apis/scheduling.k8s.io/v1/priorityclasses/",
    "ValidatingAdmissionPolicy": f"{POLICIES}validatingadmissionpolicies/",
    "ValidatingAdmissionPolicyBinding": f"{POLICIES}validatingadmissionpolicybindings/",
    "MutatingAdmissionPolicy": f"{POLICIES}mutatingadmissionpolicies/",
    "MutatingAdmissionPolicyBinding": f"{POLICIES}mutatingadmissionpolicybindings/",
}
SAYS = ("spec", "rules", "roleRef", "subjects", "value", "preemptionPolicy", "globalDefault")  # what an object is about
# What a server writes where we say nothing.
DEFAULTS: dict[str, object] = {
    "matchPolicy": "Equivalent",
    "objectSelector": {},
    "namespaceSelector": {},
    "scope": "*",
    "globalDefault": False,
}


@dataclass(frozen=True, slots=True)
class Survey:
    """One look. `wrong` has a sentence for each object that is missing or not as it is shipped."""

    version: str
    capabilities: dict[str, str]
    accounts: dict[str, str]
    wrong: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)  # those that an apply alone does not mend: what others added stays


def survey(setting: KubernetesSetting, shipped: Sequence[Manifest]) -> Survey:
    """Ask the API server, with the account that keeps namespaces. Raise ClusterError where it does not answer."""
    roles = {"portal": setting.portal, "watcher": setting.watcher, "sync": setting.sync}
    apis = {name: Api.of(account.kubeconfig, account.context, setting.users) for name, account in roles.items()}
    api = apis["sync"]
    changed: list[str] = []
    return Survey(
        version=str(api.get("/version")["gitVersion"]),
        capabilities=capabilities(api),
        accounts={name: _whoami(one) for name, one in apis.items()},
        wrong=[
            *(words for one in shipped if one["kind"] in PATHS and (words := _look_at(api, one, changed))),
            *(words for name, one in apis.items() if (words := _has_too_much(name, one))),
        ],
        changed=changed,
    )


def capabilities(api: Api) -> dict[str, str]:
    """What is installed, with the version to speak."""
    groups = {one["name"]: {version["version"] for version in one["versions"]} for one in api.get("/apis")["groups"]}
    found = {}
    for group, (versions, resource) in WANTED.items():
        for version in versions:
            if version not in groups.get(group, ()):
                continue
            listed = api.get(f"/apis/{group}/{version}").get("resources") or []
            if any(one["name"] == resource for one in listed):
                found[group] = version
                break
    return found


def _whoami(api: Api) -> str:
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    answer = api.create("/apis/authentication.k8s.io/v1/selfsubjectreviews", review)
    return str(answer["status"]["userInfo"]["username"])


def _has_too_much(name: str, api: Api) -> str:
    """None of the three may read a Secret, least of all where the cluster keeps its own."""
    asked = {"namespace": "kube-system", "verb": "get", "resource": "secrets"}
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview"}
    answer = api.create(
        "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review | {"spec": {"resourceAttributes": asked}}
    )
    if not answer["status"]["allowed"]:
        return ""
    return (
        f"The account of the {name} may read the Secrets of kube-system: it has more than deploy/kubernetes gives it."
    )


def _look_at(api: Api, shipped: Manifest, changed: list[str]) -> str:
    """A sentence where the object is not as it is shipped, else ""."""
    kind, name = shipped["kind"], shipped["metadata"]["name"]
    try:
        found = api.get(f"{PATHS[kind]}{name}")
    except NotThere as error:
        if "could not find the requested resource" in str(error):
            return f"{kind} {name} cannot be: this server has no such kind of object."
        return f"{kind} {name} is missing."
    except (ClusterForbids, ClusterRefuses) as error:
        return f"{kind} {name} cannot be looked at: {error}"
    differs = [part for part in SAYS if not equal(found.get(part), shipped.get(part), part)]
    if differs:
        changed.append(f"{kind.lower()}/{name}")
    return f"{kind} {name} is not as it is shipped: {', '.join(differs)}." if differs else ""


def equal(found: object, shipped: object, key: str = "") -> bool:
    """The same, but for what a server fills in."""
    if shipped is None or found is None:
        there = found if shipped is None else shipped
        return there is None or (key in DEFAULTS and there == DEFAULTS[key])
    if isinstance(shipped, dict) and isinstance(found, dict):
        return all(equal(found.get(one), shipped.get(one), str(one)) for one in found.keys() | shipped.keys())
    if isinstance(shipped, list) and isinstance(found, list):
        return len(found) == len(shipped) and all(map(equal, found, shipped))
    return found == shipped
