"""Volumes of a namespace: an admin offers a claim, a job mounts it by name, and one may be the home of its people."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from accounts import tokens
from accounts.models import AuditEvent, Namespace, User
from jobs import dispatch, shared_volumes, submission
from jobs.cluster.kubernetes.setting import KubernetesSetting
from jobs.cluster.registry import LOCAL
from jobs.exceptions import VolumeGone
from jobs.form import posted
from jobs.form.fields import data_of, fields_of
from jobs.models import Cluster, Job, NamespaceVolume
from jobs.reading import document_of
from jobs.spec import Volume
from jobs.states import JobStatus, Reason
from tests.factories import make_attempt
from tests.jobs.test_api import LEAST, signed_in

pytestmark = pytest.mark.django_db
PATH = "/api/v1/namespaces/vision/volumes/"
PAGE = "/namespaces/vision/volumes/"
OFFER = "/admin/volumes/vision/"
JSON = "application/json"


def put(client: Client, name: str, **body: Any) -> Any:
    return client.put(f"{PATH}{name}/", json.dumps(body), content_type=JSON)


def ask(client: Client, path: str = "/api/v1/jobs/", **fields: Any) -> Any:
    return client.post(path, json.dumps({**LEAST, **fields}), content_type=JSON)


@pytest.fixture
def operator(world: None, admin: Any) -> Client:
    return signed_in("admin")


@pytest.fixture
def on_kubernetes(world: None, settings: Any) -> None:
    """Jobs go to a cluster that has volumes; nothing is asked of it here."""
    settings.KUBERNETES_CLUSTERS, settings.HAS_LOCAL_CLUSTER = (KubernetesSetting(name="gpu"),), False
    nodes = [{"name": "n1", "gpus": 0, "gpu_type": "", "cpu_millis": 64000, "memory_bytes": 2**38, "ready": True}]
    Cluster.objects.all().delete()
    Cluster.objects.create(name="gpu", kind="kubernetes", nodes=nodes, seen_at=timezone.now())


def pod_of(job: Job) -> tuple[dict[str, Any], dict[str, str]]:
    """Where the volumes of its main container lie, and its environment."""
    attempt = job.attempts.first() or make_attempt(job)
    spec = dispatch.objects_of(attempt).leader["spec"]["template"]["spec"]
    (main,) = spec["containers"]
    named = [one for one in spec["volumes"] if "persistentVolumeClaim" in one]
    claims = {one["name"]: one["persistentVolumeClaim"]["claimName"] for one in named}
    mounts = {claims[one["name"]]: one for one in main["volumeMounts"] if one["name"] in claims}
    return mounts, {one["name"]: one["value"] for one in main["env"] if "value" in one}


def submit(user: User, **fields: Any) -> Job:
    return submission.submit(user=user, document=document_of({**LEAST, **fields}), request=None, origin="api").job


def test_an_admin_offers_and_its_people_see(operator: Client, alice: Any, carol: Any, dave: Any) -> None:
    assert put(operator, "datasets", path="/data", read_only=True).status_code == 204
    for name in ("alice", "carol"):
        (found,) = signed_in(name).get(PATH).json()["results"]
        assert found.pop("set_at")
        assert found == {"name": "datasets", "path": "/data", "read_only": True, "is_home": False, "set_by": "admin"}
        assert put(signed_in(name), "datasets", path="/x").status_code == 403
        assert signed_in(name).delete(f"{PATH}datasets/").status_code == 403
    assert signed_in("dave").get(PATH).status_code == 404
    assert put(signed_in("dave"), "datasets", path="/x").status_code == 404
    assert put(operator, "datasets", path="/data2").status_code == 204
    assert operator.delete(f"{PATH}datasets/").status_code == 204
    assert operator.delete(f"{PATH}datasets/").status_code == 404
    first, second, last = AuditEvent.objects.filter(action__startswith="volume.").order_by("pk")
    assert (first.action, first.target, first.namespace, first.before) == ("volume.set", "datasets", "vision", None)
    assert first.after == second.before == {"path": "/data", "read_only": True, "is_home": False}
    assert (last.action, last.before) == ("volume.delete", {"path": "/data2", "read_only": False, "is_home": False})


def test_no_token_of_an_admin_offers_one(operator: Client, admin: Any) -> None:
    _token, text = tokens.issue(admin, name="laptop", scope="admin", days=1)
    said = Client().put(
        f"{PATH}datasets/",
        json.dumps({"path": "/data"}),
        content_type=JSON,
        headers={"Authorization": f"Bearer {text}"},
    )
    assert (said.status_code, said.json()["error"]["code"]) == (403, "operators_only")
    assert not NamespaceVolume.objects.exists()


@pytest.mark.parametrize(
    ("name", "body", "field"),
    [
        ("Data", {"path": "/data"}, "name"),
        ("x" * 62, {"path": "/data"}, "name"),
        ("runs", {"path": "/data"}, "name"),
        ("t", {}, "path"),
        ("t", {"path": 5}, "path"),
        ("t", {"path": "data"}, "path"),
        ("t", {"path": "/workspace/data"}, "path"),
        ("t", {"path": "/" + "x" * 300}, "path"),
        ("t", {"path": "/home/{user}"}, "path"),
        ("t", {"path": "/etc/{user}", "is_home": True}, "path"),
        ("t", {"path": "/home/{name}", "is_home": True}, "path"),
        ("t", {"path": "/data", "read_only": "yes"}, "read_only"),
        ("t", {"path": "/home", "read_only": True, "is_home": True}, "read_only"),
        ("t", {"path": "/data", "nfs": {"server": "x"}}, "nfs"),
    ],
)
def test_what_cannot_be_offered_is_named(operator: Client, name: str, body: Any, field: str) -> None:
    answer = put(operator, name, **body)
    assert answer.status_code == 422
    assert list(answer.json()["error"]["fields"]) == [field]
    assert not NamespaceVolume.objects.exists()


def test_a_namespace_has_one_home_and_at_most_fifty_volumes(operator: Client, vision: Any, admin: Any) -> None:
    assert put(operator, "homes", path="/home", is_home=True).status_code == 204
    refused = put(operator, "others", path="/people", is_home=True)
    assert "homes is the home here" in refused.json()["error"]["fields"]["is_home"][0]
    assert put(operator, "homes", path="/home/{user}", is_home=True).status_code == 204
    for number in range(49):
        shared_volumes.put(vision, f"v{number}", {"path": f"/v{number}"}, by=admin, request=None)
    assert "at most 50" in put(operator, "more", path="/more").json()["error"]["message"]
    assert put(operator, "v1", path="/elsewhere").status_code == 204


def test_a_job_takes_what_is_offered_as_it_is_offered(
    on_kubernetes: None, operator: Client, alice: Any, vision: Any
) -> None:
    put(operator, "datasets", path="/data", read_only=True)
    put(operator, "scratch", path="/scratch")
    given = [{"name": "datasets"}, {"name": "scratch", "path": "/tank"}]
    job = submit(alice, volumes=given)
    assert job.parsed.volumes == (
        Volume("datasets", "/data", read_only=True),
        Volume("scratch", "/tank", read_only=False),
    )
    mounts, environment = pod_of(job)
    assert mounts["datasets"] == {"name": "v-datasets", "mountPath": "/data", "readOnly": True}
    assert mounts["scratch"] == {"name": "v-scratch", "mountPath": "/tank"}
    assert environment["HOME"] == "/workspace"
    put(operator, "scratch", path="/scratch", read_only=True)
    mounts, _environment = pod_of(submit(alice, volumes=[{"name": "scratch", "read_only": True}]))
    assert mounts["scratch"]["readOnly"] is True
    assert pod_of(job)[0]["scratch"]["readOnly"] is True, "it waits, and nobody may write any more"


def test_what_is_not_offered_like_that_is_refused_at_its_place(
    on_kubernetes: None, operator: Client, alice: Any, speech: Any, admin: Any
) -> None:
    put(operator, "datasets", path="/data", read_only=True)
    put(operator, "scratch", path="/scratch")
    shared_volumes.put(speech, "spoken", {"path": "/spoken"}, by=admin, request=None)
    api = signed_in("alice")
    said = [
        ask(api, volumes=[{"name": "scratch"}, {"name": name}]).json()["error"]["fields"]["volumes[1].name"]
        for name in ("spoken", "nothing")
    ]
    assert said[0][0].replace("spoken", "nothing") == said[1][0]
    assert "there are datasets, scratch" in said[0][0]
    for volumes, field in (
        ([{"name": "datasets", "read_only": False}], "volumes[0].read_only"),
        ([{"name": "datasets"}, {"name": "scratch", "path": "/data/x"}], "volumes[1].path"),
    ):
        for path in ("/api/v1/jobs/", "/api/v1/forecast/"):
            refused = ask(api, path, volumes=volumes)
            assert (refused.status_code, list(refused.json()["error"]["fields"])) == (422, [field])
    own = ask(api, namespace="alice", volumes=[{"name": "datasets"}])
    assert "it has none; an admin offers them" in own.json()["error"]["message"]
    assert not Job.objects.exists()


def test_the_local_cluster_has_none_and_says_which_has(
    world: None, operator: Client, alice: Any, settings: Any
) -> None:
    put(operator, "datasets", path="/data")
    put(operator, "homes", path="/home", is_home=True)
    settings.HAS_LOCAL_CLUSTER, settings.KUBERNETES_CLUSTERS = True, ()
    api = signed_in("alice")
    refused = ask(api, volumes=[{"name": "datasets"}]).json()["error"]["fields"]["volumes"][0]
    assert "this portal has no other" in refused
    settings.KUBERNETES_CLUSTERS = (KubernetesSetting(name="gpu"),)
    refused = ask(api, volumes=[{"name": "datasets"}]).json()["error"]["fields"]["volumes"][0]
    assert "name another with cluster: gpu" in refused
    job = submit(alice)
    assert job.cluster_id == LOCAL
    mounts, environment = pod_of(job)
    assert set(mounts) == {"runs"} and environment["HOME"] == "/workspace"


@pytest.mark.parametrize(
    ("path", "directory_name", "mount", "home"),
    [
        ("/home", "", "/home", "/home/alice"),
        ("/home", "a.liddell", "/home", "/home/a.liddell"),
        ("/home/{user}", "", "/home/alice", "/home/alice"),
        ("/home", "a/b", None, "/workspace"),
    ],
)
def test_every_job_has_the_home_of_its_person(
    on_kubernetes: None,
    operator: Client,
    alice: Any,
    path: str,
    directory_name: str,
    mount: str | None,
    home: str,
) -> None:
    if directory_name:
        User.objects.filter(pk=alice.pk).update(source="ldap", directory_name=directory_name)
        alice.refresh_from_db()
    before = dispatch.objects_of(make_attempt(submit(alice))).leader["metadata"]["annotations"]
    put(operator, "homes", path=path, is_home=True)
    job = submit(alice)
    mounts, environment = pod_of(job)
    assert mounts.get("homes") == ({"name": "home", "mountPath": mount} if mount else None)
    assert environment["HOME"] == home
    after = dispatch.objects_of(job.attempts.get()).leader["metadata"]["annotations"]
    assert after["trainhall.io/spec-sha256"] == before["trainhall.io/spec-sha256"]
    own = pod_of(submit(alice, env={"HOME": "/scratch"}))[1]
    assert own["HOME"] == "/scratch", "who says it in the job has it so"


def test_what_meets_the_home_is_refused_and_the_home_itself_may_be_named(
    on_kubernetes: None, operator: Client, alice: Any
) -> None:
    put(operator, "homes", path="/home", is_home=True)
    put(operator, "datasets", path="/home/data")
    refused = ask(signed_in("alice"), volumes=[{"name": "datasets"}]).json()["error"]["fields"]
    assert "meets your home, which is mounted at /home" in refused["volumes[0].path"][0]
    mounts, environment = pod_of(submit(alice, volumes=[{"name": "homes", "read_only": True}]))
    assert mounts["homes"] == {"name": "v-homes", "mountPath": "/home", "readOnly": True}
    assert environment["HOME"] == "/home/alice"


@pytest.mark.parametrize("change", ["removed", "met by a new home"])
def test_a_job_that_waits_is_held_with_a_sentence(
    on_kubernetes: None, operator: Client, alice: Any, vision: Namespace, change: str
) -> None:
    put(operator, "datasets", path="/home/data")
    job = submit(alice, volumes=[{"name": "datasets"}])
    if change == "removed":
        operator.delete(f"{PATH}datasets/")
    else:
        put(operator, "homes", path="/home", is_home=True)
    attempt = make_attempt(job)
    with pytest.raises(VolumeGone, match="datasets"):
        dispatch.objects_of(attempt)
    assert dispatch.objects_of(attempt, with_secrets=False), "it can still be looked at"
    assert signed_in("alice").get(f"/api/v1/jobs/{job.pk}/manifest/").status_code == 200


def test_the_preview_shows_home_and_volumes(on_kubernetes: None, operator: Client, alice: Any) -> None:
    put(operator, "homes", path="/home", is_home=True)
    put(operator, "datasets", path="/data", read_only=True)
    typed = {**LEAST, "code_kind": "none", "volume_name": ["datasets"], "volume_value": [""]}
    shown = signed_in("alice").post("/jobs/preview/", typed).content.decode()
    assert "mountPath: /data" in shown and "mountPath: /home" in shown and "claimName: homes" in shown
    assert "value: /home/alice" in shown


def test_the_page_is_for_its_people_and_offers_for_admins(operator: Client, vision: Any, dave: Any) -> None:
    assert operator.post(OFFER, {"name": "datasets", "path": "/data", "kind": "read_only"}).status_code == 302
    assert operator.post(OFFER, {"name": "homes", "path": "/home/{user}", "kind": "home"}).status_code == 302
    shown = operator.get(PAGE).content.decode()
    assert "Offer a claim" in shown and vision.kubernetes_name in shown
    looked = signed_in("alice").get(PAGE).content.decode()
    assert "datasets" in looked and "/home/{user}" in looked
    assert "volumes: [{name: datasets, path: /data, read_only: true}]" in looked
    assert "Offer a claim" not in looked and 'name="remove"' not in looked
    assert signed_in("dave").get(PAGE).status_code == 404
    assert signed_in("dave").post(OFFER, {"name": "x", "path": "/x"}).status_code == 404
    assert signed_in("alice").post(OFFER, {"name": "x", "path": "/x"}).status_code == 403
    refused = operator.post(OFFER, {"name": "more", "path": "/people", "kind": "home"})
    assert refused.status_code == 422 and "homes is the home here" in refused.content.decode()
    assert 'value="/people"' in refused.content.decode()
    assert operator.post(OFFER, {"name": "datasets", "remove": "1"}).status_code == 302
    assert [row.name for row in NamespaceVolume.objects.all()] == ["homes"]


def test_a_held_job_says_who_is_to_do_what(on_kubernetes: None, operator: Client, alice: Any) -> None:
    """Held for a cause, as the pages call it; the launch itself is in tests/cluster/test_volumes.py."""
    put(operator, "datasets", path="/data")
    job = submit(alice, volumes=[{"name": "datasets"}])
    Job.objects.filter(pk=job.pk).update(held_by=alice, reason_code=Reason.VOLUME_GONE, reason="Gone.")
    page = signed_in("alice").get(f"/jobs/{job.pk}/").content.decode()
    assert "held by the portal" in page
    assert Job.objects.get(pk=job.pk).status == JobStatus.QUEUED


FORMS = [
    [{"name": "datasets"}],
    [{"name": "datasets", "path": "/data"}, {"name": "scratch", "path": "/scratch", "read_only": False}],
    [{"name": "datasets", "read_only": True}],
    [],
]


@pytest.mark.parametrize("volumes", FORMS)
def test_the_form_has_a_row_for_each_and_says_the_same(volumes: list[dict[str, Any]]) -> None:
    fields = fields_of({**LEAST, "volumes": volumes})
    assert fields["extra"] == ""
    assert data_of({**posted.blank(namespace=""), **fields}, secrets=[]).get("volumes", []) == volumes


@pytest.mark.parametrize(
    "volumes", ["x", [{"path": "/data"}], [{"name": "x", "path": "/a:ro"}], [{"name": "x", "more": 1}], [{"name": 5}]]
)
def test_what_a_row_cannot_say_stays_in_the_yaml(volumes: Any) -> None:
    fields = fields_of({**LEAST, "volumes": volumes})
    assert (json.loads(fields["extra"]), fields["volume"]) == ({"volumes": volumes}, [])


def test_the_form_offers_the_names_and_takes_one(on_kubernetes: None, operator: Client, alice: Any) -> None:
    browser = signed_in("alice")
    assert (
        'data-only-if-used hidden><fieldset class="field" id="f-volume"' in browser.get("/jobs/new/").content.decode()
    )
    put(operator, "datasets", path="/data", read_only=True)
    put(operator, "homes", path="/home", is_home=True)
    page = browser.get("/jobs/new/").content.decode()
    assert '<option value="datasets" label="vision, /data:ro">' in page
    assert '<option value="homes"' not in page and 'data-only-if-used><fieldset class="field" id="f-volume"' in page
    typed = {**LEAST, "code_kind": "none", "volume_name": ["datasets", ""], "volume_value": ["/tank:rw", ""]}
    refused = browser.post("/jobs/new/", typed).content.decode()
    assert "[0].read_only: datasets is offered read-only" in refused and 'value="/tank:rw"' in refused
    assert browser.post("/jobs/new/", {**typed, "volume_value": ["/tank", ""]}).status_code == 302
    job = Job.objects.get()
    assert job.parsed.volumes == (Volume("datasets", "/tank", read_only=True),)
    again = browser.get(f"/jobs/new/?from={job.pk}").content.decode()
    assert 'value="datasets"' in again and 'value="/tank"' in again
