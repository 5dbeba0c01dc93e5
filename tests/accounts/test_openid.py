"""The second door, through a real provider on loopback: who comes in, who does not, and what is said of it."""

from __future__ import annotations

import html
import re
import socket
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
import requests
from django.contrib.sessions.models import Session
from django.test import Client
from django.utils import timezone

from accounts import openid_roles, people
from accounts.models import AuditEvent, GroupMapping, LoginAttempt, Membership, MembershipChange, Namespace, User
from accounts.tasks import follow_openid_groups
from tests.accounts.test_own_paths import HOSTILE
from tests.cast import PASSWORD
from tests.directory import black_hole, certificate
from tests.openid import SECRET, Key, Op, b64, known_provider, token, unsigned, with_secret
from tests.ports import free_port

BEGIN, ANSWER = "/login/oidc/", "/login/oidc/answer/"
pytestmark = pytest.mark.django_db


def begin(client: Client, wanted: str = "") -> str:
    """Press the button; where the browser is sent."""
    page = client.post(BEGIN, {"next": wanted})
    assert page.status_code == 200, page.content.decode()
    url = page.headers["Refresh"].removeprefix("0;url=")
    assert f'href="{html.escape(url)}"' in page.content.decode()
    return str(url)


def at_the_provider(url: str, *, ca_file: str = "") -> dict[str, str]:
    """What the provider sends the browser back with."""
    answer = requests.get(url, allow_redirects=False, timeout=5, verify=ca_file or True)
    assert answer.status_code == 302, answer.text
    assert answer.headers["Location"].startswith("http://localhost:8000/login/oidc/answer/?")
    return {name: values[0] for name, values in parse_qs(urlsplit(answer.headers["Location"]).query).items()}


def sign_in(client: Client | None = None, wanted: str = "") -> Any:
    client = client or Client()
    return client.get(ANSWER, at_the_provider(begin(client, wanted)))


def words(answer: Any) -> str:
    return html.unescape(answer.content.decode().split('role="alert"')[1].split("</p>")[0])


def failures() -> list[dict[str, Any]]:
    return list(AuditEvent.objects.filter(action="session.failed").order_by("pk").values_list("after", flat=True))


def nobody_came_in(client: Client) -> bool:
    return not User.objects.exists() and client.get("/").status_code == 302


# who comes in


def test_a_new_person_gets_an_account_a_namespace_and_a_session(op: Op) -> None:
    client = Client()
    answer = sign_in(client)
    assert (answer.status_code, answer["Location"]) == (302, "/me/namespaces/")
    person = User.objects.get()
    assert (person.subject, person.username) == (f"oidc:{op.issuer}#248289", "alice")
    assert (person.source, person.display_name, person.email) == ("oidc", "Alice Liddell", "alice@lab.example")
    assert not person.has_usable_password() and person.site_role == ""
    assert Namespace.objects.get(owner=person).kubernetes_name == "u-alice"
    assert client.get("/").status_code == 200
    made, came = AuditEvent.objects.order_by("pk").filter(action__in=("user.create", "session.login"))
    assert made.after["source"] == "oidc"
    assert (came.actor, came.after, came.address) == ("alice", {"source": "oidc"}, "127.0.0.1")
    assert not LoginAttempt.objects.exists()


def test_the_next_time_is_the_same_account_whatever_it_is_called_by_then(op: Op) -> None:
    sign_in()
    op.people["248289"] |= {"preferred_username": "alice.pleasance", "name": "Alice P.", "email": "ap@lab.example"}
    assert sign_in().status_code == 302
    person = User.objects.get()
    assert (person.username, person.display_name, person.email) == ("alice", "Alice P.", "ap@lab.example")
    assert AuditEvent.objects.filter(action="user.create").count() == 1


def test_an_equal_name_and_address_are_another_persons(op: Op) -> None:
    local = people.ensure_person("alice", password=PASSWORD, site_role="admin")
    of_directory = User.objects.create(subject="ldap:1", username="bob", source="ldap", email="bob@lab.example")
    User.objects.filter(pk=local.pk).update(email="alice@lab.example")
    for sub in op.people:
        op.who = sub
        assert sign_in().status_code == 302
    came = User.objects.filter(source="oidc")
    assert came.count() == 2 and not came.filter(pk__in=(local.pk, of_directory.pk)).exists()
    assert {re.sub("-x.*", "-x", name) for name in came.values_list("username", flat=True)} == {"alice-x", "bob-x"}
    assert not came.exclude(site_role="").exists()
    assert Client().post("/login/", {"username": "alice", "password": PASSWORD}).status_code == 302


@pytest.mark.parametrize("taken", ["ALICE", "ａｌｉｃｅ", "ali\u200bce"])
def test_a_name_that_looks_like_anothers_is_not_given(op: Op, taken: str) -> None:
    people.ensure_person("alice", password=PASSWORD)
    op.people["248289"]["preferred_username"] = taken
    sign_in()
    assert User.objects.get(source="oidc").username.startswith("alice-x")


def test_a_sub_is_somebody_at_its_issuer_only(op: Op, settings: Any) -> None:
    sign_in()
    first = User.objects.get()
    first.subject = first.subject.replace(op.issuer, "https://elsewhere.example")
    first.save(update_fields=["subject"])
    sign_in()
    assert User.objects.count() == 2


@pytest.mark.parametrize(
    "claims",
    [
        {"preferred_username": None, "name": None, "email": None},
        {"preferred_username": 7, "name": ["x"], "email": {"a": 1}, "groups": "vision"},
        {"preferred_username": " \0 ", "name": "\ud800\0", "email": "no address", "groups": [1, None, ["x"], ""]},
        {"preferred_username": "a" * 4000, "name": "n" * 4000, "email": "e" * 300 + "@x"},
    ],
)
def test_odd_claims_are_odd_labels_and_nothing_worse(op: Op, claims: dict[str, Any]) -> None:
    op.people["248289"] = claims
    assert sign_in().status_code == 302
    person = User.objects.get()
    assert person.username and person.email == "" and Namespace.objects.filter(owner=person).exists()


def test_an_address_that_is_not_verified_is_not_kept(op: Op) -> None:
    op.people["248289"]["email_verified"] = False
    sign_in()
    assert User.objects.get().email == ""


def test_what_the_id_token_leaves_out_is_asked_for(op: Op) -> None:
    op.only_userinfo = ("preferred_username", "name", "email", "groups")
    sign_in()
    assert User.objects.get().username == "alice" and "/userinfo" in op.asked


def test_keys_of_an_elliptic_curve_and_new_keys_are_taken(op: Op) -> None:
    op.signs_with = op.keys[1]
    assert sign_in().status_code == 302
    fresh = Key("second")
    op.keys, op.signs_with = [fresh], fresh
    assert sign_in().status_code == 302
    op.header = {"kid": None}
    assert sign_in().status_code == 302


def test_a_provider_that_wants_the_secret_in_the_form_gets_it_there(op: Op) -> None:
    op.told = {"token_endpoint_auth_methods_supported": ["client_secret_post"]}
    assert sign_in().status_code == 302


def test_groups_give_roles_by_the_rules_and_are_followed_at_each_sign_in(op: Op) -> None:
    vision = people.ensure_project("vision", members={})
    GroupMapping.objects.create(group="vision", namespace=vision, role="member")
    GroupMapping.objects.create(group="ml-*", namespace=None, role="lead")
    op.people["248289"]["groups"] = ["vision", "ml-speech", "others"]
    browser = Client()
    assert sign_in(browser)["Location"] == "/"
    person = User.objects.get()

    def roles() -> dict[str, str]:
        rows = Membership.objects.filter(user=person, namespace__kind="project")
        return dict(rows.values_list("namespace__slug", "role"))

    assert roles() == {"vision": "member", "ml-speech": "lead"}
    assert "the OpenID Connect provider said that you are in:" in browser.get("/me/namespaces/").content.decode()
    assert person.directory_groups == ["ml-speech", "others", "vision"]
    op.people["248289"]["groups"] = []
    sign_in()
    assert roles() == {}
    assert AuditEvent.objects.filter(action="membership.delete", target="alice").count() == 2


def test_roles_that_no_sign_in_confirms_for_days_are_taken_back(op: Op) -> None:
    vision = people.ensure_project("vision", members={})
    GroupMapping.objects.create(group="vision", namespace=vision, role="member")
    speech = people.ensure_project("speech", members={})
    sign_in()
    person = User.objects.get()
    Membership.objects.create(user=person, namespace=speech, role="lead")
    follow_openid_groups()
    assert Membership.objects.filter(user=person).count() == 3  # with the namespace of one's own
    User.objects.update(last_login=timezone.now() - timedelta(days=7, seconds=1))
    follow_openid_groups()
    left = Membership.objects.filter(user=person).values_list("namespace__slug", flat=True)
    assert sorted(left) == ["alice", "speech"]
    assert MembershipChange.objects.get(user=person, namespace=vision, before="member").after == ""
    assert openid_roles.bring_in_line(days=7) == []
    sign_in()
    assert Membership.objects.filter(user=person, namespace=vision).exists()


def test_a_changed_rule_needs_no_new_sign_in(op: Op, django_assert_num_queries: Any) -> None:
    vision = people.ensure_project("vision", members={})
    for sub in op.people:
        op.who = sub
        sign_in()
    of_alice = Membership.objects.filter(user__username="alice", namespace__kind="project")
    rule = GroupMapping.objects.create(group="vision", namespace=vision, role="member")
    pattern = GroupMapping.objects.create(group="vis*", namespace=None, role="lead")
    site = GroupMapping.objects.create(group="vision", site_role="auditor")
    assert openid_roles.bring_in_line(days=7) == ["alice"]
    assert set(of_alice.values_list("role", flat=True)) == {"member", "lead"}
    assert User.objects.get(username="alice").site_role == "auditor"
    with django_assert_num_queries(4):
        assert openid_roles.bring_in_line(days=7) == []
    rule.delete()
    pattern.delete()
    site.delete()
    assert openid_roles.bring_in_line(days=7) == ["alice"]
    assert not of_alice.exists() and User.objects.get(username="alice").site_role == ""


def test_a_sign_in_beside_a_pass_keeps_what_it_brought(op: Op) -> None:
    vision = people.ensure_project("vision", members={})
    GroupMapping.objects.create(group="vision", namespace=vision, role="member")
    sign_in()
    User.objects.update(last_login=timezone.now() - timedelta(days=8))
    sign_in()
    assert openid_roles.bring_in_line(days=7) == []
    assert Membership.objects.filter(namespace=vision).exists()


def test_without_a_claim_for_groups_nobody_gets_a_role(op: Op, settings: Any) -> None:
    settings.OPENID = known_provider(op.issuer, groups_claim="")
    vision = people.ensure_project("vision", members={})
    GroupMapping.objects.create(group="vision", namespace=vision, role="member")
    sign_in()
    assert not Membership.objects.filter(namespace=vision).exists()


def test_a_group_cannot_call_itself_by_the_dn_of_a_rule(op: Op) -> None:
    vision = people.ensure_project("vision", members={})
    GroupMapping.objects.create(group="cn=leads,ou=groups,dc=lab", namespace=vision, role="lead")
    op.people["248289"]["groups"] = ["cn=leads,ou=groups,dc=lab"]
    sign_in()
    assert not Membership.objects.filter(namespace=vision).exists()


@pytest.mark.parametrize("name", ["Admins", "ａdmins", "admins\u200b", "/admins"])
def test_a_group_that_looks_like_that_of_a_rule_gives_nothing(op: Op, name: str) -> None:
    """Of one person's groups nobody can say that another is called almost the same: who may make one would be an admin."""
    GroupMapping.objects.create(group="admins", site_role="admin")
    op.people["248289"]["groups"] = [name]
    sign_in()
    assert User.objects.get().site_role == ""
    op.people["248289"]["groups"] = [name, "admins"]
    sign_in()
    assert User.objects.get().site_role == "admin"


# where one goes, and the session


def test_next_is_kept(op: Op) -> None:
    assert sign_in(wanted="/jobs/?status=failed")["Location"] == "/jobs/?status=failed"


@pytest.mark.parametrize("wanted", HOSTILE)
def test_next_is_a_path_of_ours(op: Op, wanted: str) -> None:
    assert sign_in(wanted=wanted)["Location"] == "/me/namespaces/"


def test_the_session_gets_a_new_key_and_keeps_nothing_of_the_way(op: Op) -> None:
    client = Client()
    way = begin(client)
    before = client.session.session_key
    assert Session.objects.get().expire_date.timestamp() < time.time() + 601
    client.get(ANSWER, at_the_provider(way))
    assert client.session.session_key != before
    assert not Session.objects.filter(session_key=before).exists()
    assert client.session.get("oidc_states") in (None, {})
    assert SECRET not in str(dict(client.session)) and "token" not in str(dict(client.session))


def test_who_signs_in_as_another_leaves_the_first_session_behind(op: Op) -> None:
    client = Client()
    sign_in(client)
    other = Client()
    op.who = "248290"
    other.cookies = client.cookies
    assert client.post(BEGIN).status_code == 302  # who is signed in is not sent away
    assert User.objects.get().username == "alice"


def test_signing_out_ends_our_session(op: Op) -> None:
    client = Client()
    sign_in(client)
    assert client.post("/logout/").status_code == 302
    assert client.get("/").status_code == 302


def test_closing_the_door_ends_the_sessions_that_came_through(op: Op, settings: Any) -> None:
    client = Client()
    sign_in(client)
    settings.OPENID, settings.AUTHENTICATION_BACKENDS = None, ["accounts.auth.LocalBackend"]
    assert client.get("/").status_code == 302


def test_a_disabled_account_is_refused_and_its_session_ends(op: Op) -> None:
    client = Client()
    sign_in(client)
    User.objects.update(is_active=False, disabled_by="admin")
    assert client.get("/").status_code == 302
    answer = sign_in(Client())
    assert answer.status_code == 403 and "disabled" in words(answer)
    row = AuditEvent.objects.get(action="session.failed")
    assert (row.target, row.after["source"]) == ("alice", "oidc")


# the request itself


def test_the_request_has_state_nonce_and_a_challenge_that_nobody_can_guess(op: Op) -> None:
    asked = [parse_qs(urlsplit(begin(Client())).query) for _twice in range(2)]
    for name in ("state", "nonce", "code_challenge"):
        first, second = asked[0][name][0], asked[1][name][0]
        assert first != second and len(first) >= 32
    assert asked[0]["code_challenge_method"] == ["S256"] and asked[0]["scope"] == ["openid profile email"]


def test_the_way_there_is_kept_beside_a_query_of_the_providers_own(op: Op) -> None:
    op.told = {"authorization_endpoint": f"{op.issuer}/authorize?policy=lab"}
    url = begin(Client())
    assert parse_qs(urlsplit(url).query)["policy"] == ["lab"] and url.count("?") == 1


def test_the_address_of_the_answer_is_ours_whatever_host_is_named(op: Op, settings: Any) -> None:
    settings.ALLOWED_HOSTS = ["*"]
    page = Client().post(BEGIN, headers={"host": "evil.example"})
    assert "evil.example" not in page.content.decode()


def test_the_button_works_only_from_our_own_page(op: Op) -> None:
    client = Client(enforce_csrf_checks=True)
    assert client.post(BEGIN).status_code == 403
    page = client.get("/login/?next=/jobs/").content.decode()
    form = page.split('action="/login/oidc/"')[1].split("</form>")[0]
    csrf = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', form)
    assert csrf and 'name="next" value="/jobs/"' in form and "Sign in with OpenID Connect" in form
    assert client.post(BEGIN, {"csrfmiddlewaretoken": csrf[1]}).status_code == 200


def test_the_label_of_the_button_is_the_admins(op: Op, settings: Any) -> None:
    settings.OPENID = known_provider(op.issuer, button="Sign in with <Lab> ID")
    assert "<bdi>Sign in with &lt;Lab&gt; ID</bdi>" in Client().get("/login/").content.decode()


def test_no_part_of_the_password_form_is_a_way_in(op: Op) -> None:
    """A code in the address of the sign-in page is nothing to it."""
    client = Client()
    told = at_the_provider(begin(client))
    answer = client.post(f"/login/?{urlencode(told)}", {"username": "alice", "password": "x"})
    assert answer.status_code == 401 and nobody_came_in(client)


# what proves nothing


def _stranger(op: Op) -> None:
    op.sign = Key("first").sign


def _bent(op: Op) -> None:
    op.sign = lambda message: bytes([op.signs_with.sign(message)[0] ^ 1]) + op.signs_with.sign(message)[1:]


def _none(op: Op) -> None:
    op.header, op.sign = {"alg": "none"}, unsigned


def _public_key_as_secret(op: Op) -> None:
    op.header, op.sign = {"alg": "HS256"}, with_secret(op.keys[0].pem)


def _client_secret(op: Op) -> None:
    op.header, op.sign = {"alg": "HS256"}, with_secret(SECRET.encode())


def _of_the_wrong_kind(op: Op) -> None:
    op.header = {"alg": "ES256", "kid": "first"}


def _for_encryption(op: Op) -> None:
    key = Key("third")
    object.__setattr__(key, "kid", "third")
    op.keys, op.signs_with = [*op.keys, key], key
    published = {**key.jwk, "use": "enc"}
    op.instead["/keys"] = lambda request: request.say({"keys": [published]})


def _own_key_in_the_header(op: Op) -> None:
    mine = Key("first")
    op.sign, op.header = mine.sign, {"jwk": mine.jwk, "jku": f"{op.issuer}/mine"}


def _claims(**claims: Any) -> Callable[[Op], None]:
    def lie(op: Op) -> None:
        op.claims = claims

    return lie


def _raw(text: Any) -> Callable[[Op], None]:
    def lie(op: Op) -> None:
        op.instead["/token"] = lambda request: request.say({"access_token": "a", "id_token": text})

    return lie


def _somebody_else(op: Op) -> None:
    op.only_userinfo, op.userinfo = ("name",), {"sub": "248290"}


LIES: dict[str, Callable[[Op], None]] = {
    "another nonce": _claims(nonce="another"),
    "no nonce": _claims(nonce=None),
    "a nonce that is no text": _claims(nonce=["x"]),
    "another audience": _claims(aud="another"),
    "another audience of two": _claims(aud=["another", "third"]),
    "two audiences, no azp": _claims(aud=["trainhall", "another"]),
    "two audiences, another azp": _claims(aud=["trainhall", "another"], azp="another"),
    "another azp": _claims(azp="another"),
    "no audience": _claims(aud=None),
    "another issuer": _claims(iss="https://evil.example"),
    "no issuer": _claims(iss=None),
    "expired": _claims(exp=1_000_000_000),
    "expired a minute ago": lambda op: _claims(exp=int(time.time()) - 60)(op),
    "never expires": _claims(exp=None),
    "expires when time is over": _claims(exp=float("inf")),
    "expires soon": _claims(exp="soon"),
    "an audience that is no text": _claims(aud={"trainhall": 1}),
    "from the future": lambda op: _claims(iat=int(time.time()) + 3600)(op),
    "not valid yet": lambda op: _claims(nbf=int(time.time()) + 3600)(op),
    "no sub": _claims(sub=None),
    "empty sub": _claims(sub=""),
    "sub that is no text": _claims(sub=7),
    "sub with a NUL": _claims(sub="a\0b"),
    "endless sub": _claims(sub="a" * 256),
    "a stranger's key": _stranger,
    "a bent signature": _bent,
    "not signed": _none,
    "the public key as a secret": _public_key_as_secret,
    "the client's secret": _client_secret,
    "a key of another kind": _of_the_wrong_kind,
    "a key for encryption": _for_encryption,
    "a key in the header": _own_key_in_the_header,
    "no key by that name": lambda op: op.header.update(kid="unheard of"),
    "an algorithm nobody has": lambda op: op.header.update(alg="RS1"),
    "an algorithm that is no text": lambda op: op.header.update(alg=["RS256"]),
    "a critical extension": lambda op: op.header.update(crit=["x"], x=1),
    "no ID token": _raw(None),
    "an ID token that is no text": _raw({"a": 1}),
    "an ID token that is none": _raw("a.b"),
    "an ID token of rubbish": _raw("\u00e4.\ud800.x"),
    "a list for claims": _raw(token({"alg": "none"}, {}, unsigned).replace(b64(b"{}"), b64(b"[]"))),
    "userinfo of somebody else": _somebody_else,
}


@pytest.mark.parametrize("lie", list(LIES))
def test_what_does_not_prove_who_it_is_lets_nobody_in(op: Op, lie: str) -> None:
    LIES[lie](op)
    client = Client()
    answer = sign_in(client)
    assert answer.status_code == 403 and "does not prove who you are" in words(answer)
    assert nobody_came_in(client)
    (row,) = failures()
    assert row["source"] == "oidc" and row["reason"]


def test_an_answer_is_good_once_and_only_in_the_browser_that_asked(op: Op) -> None:
    client = Client()
    told = at_the_provider(begin(client))
    begin(stranger := Client())
    for browser in (stranger, Client()):
        refused = browser.get(ANSWER, told)
        assert refused.status_code == 400 and "not begun in this browser" in words(refused)
        assert nobody_came_in(browser)
    assert client.get(ANSWER, told).status_code == 302
    client.post("/logout/")
    assert client.get(ANSWER, told).status_code == 400
    assert client.get("/").status_code == 302
    assert op.asked.count("/token") == 1  # the others' code never reached the provider


@pytest.mark.parametrize("bent", [{"state": "another"}, {"state": ""}, {"state": None}, {"state": "\0"}])
def test_another_state_is_refused(op: Op, bent: dict[str, Any]) -> None:
    client = Client()
    told = {k: v for k, v in {**at_the_provider(begin(client)), **bent}.items() if v is not None}
    assert client.get(ANSWER, told).status_code == 400
    assert nobody_came_in(client) and "/token" not in op.asked


def test_an_answer_that_took_too_long_is_refused(op: Op) -> None:
    client = Client()
    told = at_the_provider(begin(client))
    session = client.session
    session["oidc_states"][told["state"]]["added_on"] -= 601
    session.save()
    assert client.get(ANSWER, told).status_code == 400 and nobody_came_in(client)


@pytest.mark.parametrize(
    "bent", [{"iss": "https://evil.example"}, {"iss": "\u00e4"}, {"code": "made-up"}, {"code": ""}, {"code": None}]
)
def test_another_issuer_or_code_is_refused(op: Op, bent: dict[str, Any]) -> None:
    client = Client()
    told = {k: v for k, v in {**at_the_provider(begin(client)), **bent}.items() if v is not None}
    assert client.get(ANSWER, told).status_code == 403 and nobody_came_in(client)


def test_a_code_that_somebody_else_asked_for_is_refused_by_its_challenge(op: Op) -> None:
    """Injected into our session with our state: PKCE tells."""
    client = Client()
    ours = at_the_provider(begin(client))
    theirs = at_the_provider(begin(Client()))
    assert client.get(ANSWER, {**ours, "code": theirs["code"]}).status_code == 403
    assert nobody_came_in(client)


def test_who_declines_at_the_provider_is_told_so(op: Op) -> None:
    client = Client()
    told = at_the_provider(begin(client))
    answer = client.get(ANSWER, {"error": "access_denied", "error_description": "<b>x</b>", "state": told["state"]})
    assert answer.status_code == 403 and "did not sign you in" in words(answer)
    assert failures() == [{"source": "oidc", "reason": "the provider says access_denied"}]


def test_an_error_that_nobody_asked_for_signs_nobody_out(op: Op) -> None:
    client = Client()
    sign_in(client)
    assert client.get(ANSWER, {"error": "access_denied"}).status_code == 400
    assert client.get("/").status_code == 200


def test_tries_are_counted_for_their_address_and_a_good_one_is_not(op: Op) -> None:
    for _n in range(22):
        assert sign_in().status_code == 302
    answers = [Client().get(ANSWER, {"state": "x", "code": "y"}).status_code for _n in range(21)]
    assert answers == [400] * 20 + [429]
    assert len(failures()) == 20
    told = AuditEvent.objects.get(action="session.throttled")
    assert told.after == {"source": "oidc", "no_tries_left_for": ["address"]} and told.address == "127.0.0.1"
    people.ensure_person("admin", password=PASSWORD)
    assert Client().post("/login/", {"username": "admin", "password": PASSWORD}).status_code == 302


# a provider that is away


def away(answer: Any) -> bool:
    return bool(
        answer.status_code == 503
        and "does not answer" in words(answer)
        and failures()[-1] == {"source": "oidc", "reason": "the provider is away"}
    )


def test_a_provider_that_is_not_there_is_said_so_and_passwords_still_work(op: Op, settings: Any) -> None:
    people.ensure_person("admin", password=PASSWORD)
    settings.OPENID = known_provider(f"http://127.0.0.1:{free_port()}")
    client = Client()
    assert away(client.post(BEGIN, {"next": "/jobs/"}))
    assert client.post("/login/", {"username": "admin", "password": PASSWORD}).status_code == 302


def test_a_silent_provider_costs_seconds_and_only_the_first_one(op: Op, settings: Any) -> None:
    with black_hole() as port:
        settings.OPENID = known_provider(f"http://127.0.0.1:{port}", patience=1)
        began = time.monotonic()
        assert away(Client().post(BEGIN))
        first = time.monotonic() - began
        for _n in range(24):
            assert away(Client().post(BEGIN))
        assert len(failures()) == 20  # a flood does not fill the trail
    assert 0.9 < first < 4 and time.monotonic() - began < 8


def test_each_call_just_in_time_is_too_late_in_all(op: Op, settings: Any) -> None:
    settings.OPENID = known_provider(op.issuer, patience=1)
    op.only_userinfo = ("name",)

    def late(path: str) -> Callable[[Any], None]:
        def answer(request: Any) -> None:
            time.sleep(0.7)
            getattr(request, {"/token": "token", "/userinfo": "tell"}[path])()

        return answer

    op.instead = {path: late(path) for path in ("/token", "/userinfo")}
    began = time.monotonic()
    assert away(sign_in())
    assert time.monotonic() - began < 3


@pytest.mark.parametrize("path", ["/token", "/keys", "/userinfo"])
def test_a_provider_that_falls_silent_on_the_way_is_away(op: Op, settings: Any, path: str) -> None:
    settings.OPENID = known_provider(op.issuer, patience=1)
    op.only_userinfo = ("name",)
    op.instead[path] = lambda _request: time.sleep(3)
    client = Client()
    assert away(sign_in(client))
    assert nobody_came_in(client)


@pytest.mark.parametrize("part", ["header", "body"])
def test_a_provider_that_drips_is_away(op: Op, settings: Any, part: str) -> None:
    settings.OPENID = known_provider(op.issuer, patience=1)

    def drip(request: Any) -> None:
        request.send_response(200)
        request.send_header("Content-Length", "1000")
        if part == "body":
            request.end_headers()
        else:
            request.flush_headers()
        for _n in range(40):
            try:
                request.wfile.write(b" ")
                request.wfile.flush()
            except OSError:
                return
            time.sleep(0.1)

    op.instead["/token"] = drip
    began = time.monotonic()
    assert away(sign_in())
    assert time.monotonic() - began < 3


def _broken_off(request: Any) -> None:
    request.send_response(200)
    request.send_header("Content-Length", "1000")
    request.end_headers()
    request.wfile.write(b"{")
    request.connection.shutdown(socket.SHUT_RDWR)


ANSWERS: dict[str, Callable[[Any], None]] = {
    "500": lambda request: request.say({"error": "x"}, 500),
    "429": lambda request: request.say({"error": "slow_down"}, 429),
    "the client is unknown": lambda request: request.say({"error": "invalid_client"}, 401),
    "too deep": lambda request: request.write(b"[" * 100_000, 200, "application/json"),
    "a page": lambda request: request.write(b"<html>", 200, "text/html"),
    "nothing": lambda request: request.write(b"", 200, "application/json"),
    "a list": lambda request: request.say([], 500),
    "too much": lambda request: request.write(b" " * (2**20 + 1), 200, "application/json"),
    "elsewhere": lambda request: request.go("http://127.0.0.1:1/"),
    "broken off": _broken_off,
}


@pytest.mark.parametrize("kind", list(ANSWERS))
@pytest.mark.parametrize("path", ["/.well-known/openid-configuration", "/token", "/keys", "/userinfo"])
def test_an_answer_that_is_none_is_an_outage(op: Op, path: str, kind: str) -> None:
    op.only_userinfo = ("name",)
    op.instead[path] = ANSWERS[kind]
    client = Client()
    answer = client.post(BEGIN) if "well-known" in path else sign_in(client)
    assert away(answer) and nobody_came_in(client)


@pytest.mark.parametrize(
    "told",
    [
        {"issuer": "https://evil.example"},
        {"issuer": None},
        {"authorization_endpoint": "javascript:alert(1)"},
        {"authorization_endpoint": None},
        {"token_endpoint": "file:///etc/passwd"},
        {"jwks_uri": "http:///keys"},
        {"jwks_uri": 7},
        {"jwks_uri": "http://[::1/keys"},
        {"authorization_endpoint": "https://x.example/\r\nX: 1"},
        {"authorization_endpoint": "https://\u00e4.example/"},
        {"userinfo_endpoint": "ftp://x.example/"},
    ],
)
def test_a_provider_that_says_odd_things_of_itself_is_not_used(op: Op, told: dict[str, Any]) -> None:
    op.told = told
    assert away(Client().post(BEGIN))


def test_the_secret_and_the_tokens_are_in_no_log_and_no_row(op: Op, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    op.only_userinfo = ("name",)
    sign_in()
    _client_secret(op)
    sign_in()
    told = caplog.text + str(list(AuditEvent.objects.values_list("after", "target")))
    assert "/token" in caplog.text  # so it was listened to
    for secret in (SECRET, *op.access):
        assert secret not in told
    assert SECRET not in repr(known_provider(op.issuer))


def test_a_certificate_is_checked_by_the_ca_that_an_admin_names(op: Op, settings: Any, tmp_path: Path) -> None:
    from accounts.oidc.provider import known

    tls = certificate(tmp_path, "127.0.0.1")
    with Op(tls=tls) as behind_tls:
        settings.OPENID = known_provider(behind_tls.issuer)
        assert away(Client().post(BEGIN)) and not behind_tls.asked
        settings.OPENID = known_provider(behind_tls.issuer, ca_file=str(tls[2]))
        client = Client()
        told = at_the_provider(begin(client), ca_file=str(tls[2]))
        assert client.get(ANSWER, told).status_code == 302
        behind_tls.told = {"token_endpoint": op.issuer + "/token"}
        known.forget()
        assert away(Client().post(BEGIN))  # what was safe does not become plain on the way


def test_the_access_page_says_whose_groups_its_rules_are_about(op: Op, settings: Any) -> None:
    people.ensure_person("admin", password=PASSWORD, site_role="admin")
    client = Client()
    client.post("/login/", {"username": "admin", "password": PASSWORD})
    assert "(its claim groups)" in client.get("/admin/access/").content.decode()
    settings.OPENID = known_provider(op.issuer, groups_claim="")
    assert "No directory is connected" in client.get("/admin/access/").content.decode()


def test_the_users_page_says_where_somebody_comes_from(op: Op) -> None:
    people.ensure_person("admin", password=PASSWORD, site_role="admin")
    sign_in()
    client = Client()
    client.post("/login/", {"username": "admin", "password": PASSWORD})
    page = client.get("/admin/users/?state=oidc").content.decode()
    assert page.count('id="user-') == 1 and f"{op.issuer}#248289" in page
    assert page.split("<tbody>")[1].count("OpenID Connect") == 1


# off


@pytest.mark.parametrize(("method", "path"), [("post", BEGIN), ("get", BEGIN), ("get", ANSWER), ("post", ANSWER)])
def test_without_an_issuer_there_is_no_such_door(settings: Any, method: str, path: str) -> None:
    assert settings.OPENID is None and "accounts.oidc.backend.ProviderBackend" not in settings.AUTHENTICATION_BACKENDS
    assert getattr(Client(), method)(path).status_code == 404
    assert "oidc" not in Client().get("/login/").content.decode()
