"""Signing in with a real directory: one entry is one account, and each way to be kept out has its own words."""

from __future__ import annotations

import re
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection
from django.test import Client

from accounts import people
from accounts.models import AuditEvent, GroupMapping, LoginAttempt, Membership, Namespace, User
from portal.embedded.demo_people import CAST, ENDED, GROUPS, ODD, PEOPLE, entry, hashed
from portal.embedded.slapd import SUFFIX, Slapd
from tests.cast import PASSWORD
from tests.directory import SECRET, as_admin, binds, black_hole, certificate, changed, known
from tests.ports import free_port

LOGIN = "/login/"
LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
pytestmark = pytest.mark.django_db


def sign_in(username: str, password: str = SECRET, *, client: Client | None = None) -> Any:
    return (client or Client()).post(LOGIN, {"username": username, "password": password})


def words(answer: Any) -> str:
    return answer.content.decode()


@pytest.fixture
def rules(directory: Slapd) -> Namespace:
    vision = people.ensure_project("vision", members={})
    for group, role in (("vision", "member"), ("cn=vision-leads," + GROUPS, "lead")):
        GroupMapping.objects.create(group=group, namespace=vision, role=role)
    GroupMapping.objects.create(group="ml-*", namespace=None, role="member")
    return vision


@pytest.mark.parametrize("uid", [uid for uid, *_rest in (*CAST, *ODD)])
def test_everybody_signs_in_and_has_a_namespace_of_their_own(directory: Slapd, uid: str) -> None:
    for _twice in range(2):
        assert sign_in(uid).status_code == 302
    person = User.objects.get(source="ldap")
    assert person.subject.startswith("ldap:") and len(person.subject) == 41
    assert person.display_name == {name: shown for name, shown, *_rest in (*CAST, *ODD)}[uid]
    assert person.uid_number and person.gid_number == 10_000 and not person.has_usable_password()
    own = Namespace.objects.get(owner=person)
    assert own.kubernetes_name.startswith("u-") and own.kubernetes_name.isascii() and len(own.kubernetes_name) <= 63
    made = AuditEvent.objects.filter(action="user.create", target=person.username)
    assert made.count() == 1


AWKWARD = (
    *(
        "_admin",
        "-x",
        "Ärger",
        "j.doe.2",
        "a@b.c",
        "1234",
        "🦊",
        "\u200fadmin",
        "a-",
        "ß-person",
        "..",
        "日本",
        "a_x",
        "a-5fx",
    ),
    *("k.lo", "k_lo", "k-lo", "K LO", "test1", "test11", "y" * 63 + "1", "y" * 63 + "2", "z" * 150),
)


def test_awkward_names_each_get_a_valid_namespace_of_their_own_that_stays(directory: Slapd) -> None:
    """R56, R57: as the directory has them, through its own matching."""
    dns = [f"cn=awkward-{number},{PEOPLE}" for number in range(len(AWKWARD))]
    secret = hashed(SECRET).encode()
    with as_admin(directory) as admin:
        for dn, uid in zip(dns, AWKWARD, strict=True):
            values = {"uid": uid.encode(), "sn": b"x", "displayName": f"Real {uid}".encode(), "userPassword": secret}
            admin.add_s(dn, [("objectClass", b"inetOrgPerson"), *values.items()])
    try:
        places = []
        for twice in range(2):
            for number, uid in enumerate(AWKWARD):
                address = f"10.2.{twice}.{number}"
                answer = Client().post(LOGIN, {"username": uid, "password": SECRET}, REMOTE_ADDR=address)
                assert answer.status_code == 302, (uid, answer.status_code)
            places.append(dict(Namespace.objects.values_list("owner__directory_dn", "kubernetes_name")))
    finally:
        with as_admin(directory) as admin:
            for dn in dns:
                admin.delete_s(dn)
    assert places[0] == places[1]  # the second time gives nobody another one
    assert sorted(places[0]) == sorted(dns)
    assert len(set(places[0].values())) == len(AWKWARD)
    assert all(LABEL.fullmatch(name) for name in places[0].values())
    shown = dict(User.objects.values_list("directory_dn", "display_name"))
    assert [shown[dn] for dn in dns] == [f"Real {uid}" for uid in AWKWARD]


def test_two_entries_with_names_the_directory_takes_for_one_are_nobody(directory: Slapd) -> None:
    """`J.Doe` beside `j.doe`: whose account it would be, no password can say."""
    dn = f"cn=Another Doe,{PEOPLE}"
    values = {"uid": b"J.DOE", "sn": b"x", "userPassword": hashed("another").encode()}
    with as_admin(directory) as admin:
        admin.add_s(dn, [("objectClass", b"inetOrgPerson"), *values.items()])
    try:
        answers = [sign_in(*typed).status_code for typed in (("j.doe", SECRET), ("J.DOE", "another"))]
    finally:
        with as_admin(directory) as admin:
            admin.delete_s(dn)
    assert answers == [401, 401]
    assert not User.objects.exists()


@pytest.mark.parametrize("typed", ["ALICE", "Alice", " alice ", "ａｌｉｃｅ"])
def test_another_spelling_is_the_same_account(directory: Slapd, typed: str) -> None:
    assert sign_in("alice").status_code == 302
    assert sign_in(typed).status_code == 302
    assert User.objects.get().username == "alice"


@pytest.mark.parametrize("typed", ["al*", "*", "alice)(uid=*", "аlice", "alice\\2a", "a" * 150, "ali\u200bce"])
def test_what_is_nobodys_name_stays_nobodys(directory: Slapd, typed: str) -> None:
    assert sign_in(typed).status_code == 401
    assert not User.objects.exists()


@pytest.mark.parametrize("secret", ["", "   ", "\t", "\0", " \0 "])
def test_an_empty_secret_never_reaches_the_directory(directory: Slapd, secret: str) -> None:
    before = binds(directory)
    assert sign_in("alice", secret).status_code == 400
    assert binds(directory) - before == 1  # the count's own


def test_a_wrong_password_an_unknown_name_and_an_ended_account_read_the_same_to_a_stranger(directory: Slapd) -> None:
    answers = [sign_in(name, "not it") for name in ("alice", "nobody-here", ENDED[0][0])]
    assert {answer.status_code for answer in answers} == {401}
    told = {words(answer).split('role="alert"')[1].split("</p>")[0] for answer in answers}
    assert len(told) == 1 and "User name or password is wrong" in told.pop()
    assert not User.objects.exists()
    assert set(AuditEvent.objects.filter(action="session.failed").values_list("target", flat=True)) == {""}


@pytest.mark.parametrize("refusal", ["UNWILLING_TO_PERFORM", "INAPPROPRIATE_AUTH", "CONSTRAINT_VIOLATION"])
def test_an_account_that_the_directory_lets_nobody_try_reads_as_one_that_is_not_there(
    directory: Slapd, monkeypatch: pytest.MonkeyPatch, refusal: str
) -> None:
    import ldap
    from ldap.ldapobject import SimpleLDAPObject

    bind = SimpleLDAPObject.simple_bind_s

    def refused(self: Any, who: str = "", *told: Any) -> Any:
        if who.startswith("uid=alice"):
            raise getattr(ldap, refusal)({"desc": "Account inactivated. Contact system administrator."})
        return bind(self, who, *told)

    monkeypatch.setattr(SimpleLDAPObject, "simple_bind_s", refused)
    answers = [sign_in(name, "not it") for name in ("alice", "nobody-here")]
    assert [answer.status_code for answer in answers] == [401, 401]
    told = {words(answer).split('role="alert"')[1].split("</p>")[0] for answer in answers}
    assert len(told) == 1


def test_the_directory_never_hears_the_password_of_a_local_account(
    directory: Slapd, admin: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ldap.ldapobject import SimpleLDAPObject

    bind, heard = SimpleLDAPObject.simple_bind_s, []

    def noted(self: Any, who: str = "", cred: Any = "", *told: Any) -> Any:
        heard.append(cred)
        return bind(self, who, cred, *told)

    monkeypatch.setattr(SimpleLDAPObject, "simple_bind_s", noted)
    answer = Client().post(LOGIN, {"username": "admin", "password": PASSWORD})
    assert answer.status_code == 302 and len(heard) == 2 and PASSWORD not in heard


def test_who_knows_the_password_of_an_ended_account_is_told_so(directory: Slapd) -> None:
    answer = sign_in(ENDED[0][0])
    assert answer.status_code == 403 and "has ended or is disabled" in words(answer)
    assert not User.objects.exists()


def test_an_account_that_ends_is_out_at_once_and_comes_back_when_the_directory_says_so(directory: Slapd) -> None:
    client = Client()
    sign_in("alice", client=client)
    with changed(directory, f"uid=alice,{PEOPLE}", "shadowExpire", "15000", add=True):
        assert sign_in("alice").status_code == 403
        assert client.get("/me/tokens/").status_code == 302  # the session she had
        assert User.objects.get().disabled_by == "directory"
    assert sign_in("alice").status_code == 302
    person = User.objects.get()
    assert person.is_active and person.disabled_by == ""


def test_whom_an_admin_disabled_the_directory_does_not_bring_back(directory: Slapd) -> None:
    sign_in("alice")
    User.objects.update(is_active=False, disabled_by="admin")
    assert sign_in("alice").status_code == 403
    assert not User.objects.get().is_active


def test_a_new_entry_with_an_old_name_is_somebody_else(directory: Slapd) -> None:
    dn = f"uid=temp,{PEOPLE}"
    for _time in range(2):
        text = {"uid": b"temp", "cn": b"Temp", "sn": b"Temp", "userPassword": hashed(SECRET).encode()}
        with as_admin(directory) as admin:
            admin.add_s(dn, [("objectClass", b"inetOrgPerson"), *text.items()])
        try:
            assert sign_in("temp").status_code == 302
        finally:
            with as_admin(directory) as admin:
                admin.delete_s(dn)
    old, new = User.objects.order_by("pk")
    assert (old.username, new.username.startswith("temp-x")) == ("temp", True)
    places = [Namespace.objects.get(owner=person).kubernetes_name for person in (old, new)]
    assert places[0] == "u-temp" and places[1].startswith("u-temp-x")


def test_groups_give_roles_also_through_groups_in_groups(rules: Namespace) -> None:
    for uid in ("alice", "carol", "erin", "dave"):
        sign_in(uid)
    has = set(
        Membership.objects.exclude(source="personal").values_list("user__username", "namespace__slug", "role", "source")
    )
    assert has == {
        ("alice", "vision", "member", "ldap:vision"),
        ("carol", "vision", "member", "ldap:vision"),  # her leads are in the group
        ("carol", "vision", "lead", "ldap:vision-leads"),
        ("erin", "ml-kernels", "member", "ldap:ml-kernels"),
        ("erin", "ml-all", "member", "ldap:ml-all"),
    }
    alice = User.objects.get(username="alice")
    assert alice.directory_groups == ["storage", "users", "vision"]
    assert alice.supplementary_gids == [20_000]


def test_a_group_of_the_same_name_made_elsewhere_gives_nothing_at_sign_in(
    rules: Namespace, directory: Slapd, settings: Any
) -> None:
    from accounts.directory import read_search

    settings.DIRECTORY = known(
        directory.url, groups=read_search(f"{SUFFIX}?cn?sub?(objectClass=groupOfNames)", attribute="cn")
    )
    twin = f"cn=Vision,ou=services,{SUFFIX}"
    values = [("objectClass", b"groupOfNames"), ("cn", b"Vision"), ("member", f"uid=dave,{PEOPLE}".encode())]
    with as_admin(directory) as admin:
        admin.add_s(twin, values)
    try:
        assert sign_in("dave").status_code == sign_in("alice").status_code == 302
        assert not Membership.objects.filter(namespace=rules).exists()
        assert User.objects.get(username="dave").directory_groups == ["Vision", "speech"]
    finally:
        with as_admin(directory) as admin:
            admin.delete_s(twin)


def test_who_has_left_the_group_has_no_role_after_the_next_sign_in(rules: Namespace, directory: Slapd) -> None:
    alice = f"uid=alice,{PEOPLE}"
    sign_in("alice")
    Membership.objects.create(user=User.objects.get(), namespace=rules, role="viewer")  # by hand, which stays
    with changed(directory, f"cn=vision,{GROUPS}", "member", alice, add=False):
        sign_in("alice")
        assert [*Membership.objects.filter(namespace=rules).values_list("role", "source")] == [("viewer", "manual")]


def test_the_directory_hears_of_three_wrong_passwords_in_ten_minutes_however_they_are_spelt(directory: Slapd) -> None:
    spelt = ("alice", "ALICE", "Alice", "aLice", "ａlice")
    before = binds(directory)
    answers = [sign_in(name, "not it") for name in spelt]
    assert [answer.status_code for answer in answers] == [401, 401, 401, 429, 429]
    assert 500 < int(answers[3]["Retry-After"]) <= 600
    # each try binds as the portal; three of them as alice, too; and the count's own
    assert binds(directory) - before == 5 + 3 + 1
    LoginAttempt.objects.all().delete()  # as after the window
    assert sign_in("alice").status_code == 302


def test_a_silent_directory_costs_seconds_and_other_ways_in_stay_open(
    directory: Slapd, settings: Any, admin: User, vision: Any
) -> None:
    inside = Client()
    sign_in("erin", client=inside)
    with black_hole() as port:
        for url, tls in (
            (f"ldap://127.0.0.1:{port}", "off"),
            (f"ldap://127.0.0.1:{port}", "start"),
            (f"ldaps://127.0.0.1:{port}", "ldaps"),
        ):
            settings.DIRECTORY = known(url, tls=tls)
            directory_rests()
            began = time.monotonic()
            answer = sign_in("erin")
            assert time.monotonic() - began < 5
            assert answer.status_code == 503 and "does not answer" in words(answer)
        assert inside.get("/me/tokens/").status_code == 200
        assert sign_in("admin", PASSWORD).status_code == 302
    assert not LoginAttempt.objects.filter(name_digest__startswith="bind-").exists()


def test_an_outage_locks_nobody_out_of_an_address(directory: Slapd, settings: Any, admin: User) -> None:
    settings.DIRECTORY = known(f"ldap://127.0.0.1:{free_port()}")
    directory_rests()
    for number in range(25):
        assert sign_in(f"person{number:03}").status_code == 503
    assert sign_in("admin", PASSWORD).status_code == 302
    for _again in range(5):
        assert sign_in("erin").status_code == 503
    assert sign_in("erin").status_code == 429, "one name has no more tries than ever"


def directory_rests() -> None:
    from accounts.ldap.connection import silence

    silence.ends()


@pytest.mark.django_db(transaction=True)
def test_twenty_sign_ins_against_a_silent_directory_are_all_answered(directory: Slapd, settings: Any) -> None:
    def one(number: int) -> tuple[int, float]:
        began = time.monotonic()
        try:
            answer = Client().post(
                LOGIN, {"username": f"person{number:03}", "password": SECRET}, REMOTE_ADDR=f"10.0.0.{number}"
            )
            return answer.status_code, time.monotonic() - began
        finally:
            connection.close()

    with black_hole() as port, ThreadPoolExecutor(20) as pool:
        settings.DIRECTORY = known(f"ldap://127.0.0.1:{port}")
        answers = list(pool.map(one, range(20)))
    assert {status for status, _seconds in answers} == {503}
    assert max(seconds for _status, seconds in answers) < 5


@pytest.mark.parametrize("case", ["refused", "no-such-host", "wrong reader", "wrong base"])
def test_a_directory_that_cannot_be_used_is_no_wrong_password(directory: Slapd, settings: Any, case: str) -> None:
    from accounts.directory import read_search

    settings.DIRECTORY = {
        "refused": lambda: known(f"ldap://127.0.0.1:{free_port()}"),
        "no-such-host": lambda: known("ldap://nowhere.invalid"),
        "wrong reader": lambda: known(directory.url, bind_password="not it"),
        "wrong base": lambda: known(directory.url, people=read_search("ou=nowhere,dc=example,dc=org", attribute="uid")),
    }[case]()
    assert sign_in("alice").status_code == 503


@pytest.mark.parametrize("tls", ["start", "ldaps"])
def test_a_certificate_is_checked(directory: Slapd, settings: Any, tmp_path: Any, tls: str) -> None:
    assert directory.tls is not None
    url = directory.url if tls == "start" else directory.tls_url
    settings.DIRECTORY = known(url, tls=tls, ca_file=str(directory.tls[2]))
    assert sign_in("alice").status_code == 302
    stranger = certificate(tmp_path, "127.0.0.1")[2]
    for ca_file, host in ((str(stranger), "127.0.0.1"), ("", "127.0.0.1"), (str(directory.tls[2]), "localhost")):
        settings.DIRECTORY = known(url.replace("127.0.0.1", host), tls=tls, ca_file=ca_file)
        directory_rests()
        assert sign_in("alice").status_code == 503, (ca_file, host)


def test_an_entry_without_an_id_is_said_to_who_signs_in_and_makes_no_account(
    directory: Slapd, settings: Any, monkeypatch: Any
) -> None:
    monkeypatch.setattr("accounts.directory.UUID_ATTRIBUTES", ("nsuniqueid",))
    answer = sign_in("alice")
    assert answer.status_code == 403 and "entryUUID" in words(answer)
    assert not User.objects.exists()
    assert sign_in("bob", "not it").status_code == 401


def test_an_entry_is_written_as_ldif_says() -> None:
    assert entry(f"cn=é,{SUFFIX}", cn="é").split("\n")[0].startswith("dn:: ")


def ad_entry(dn: str, kind: str, **values: bytes | list[bytes]) -> tuple[str, list[tuple[str, Any]]]:
    return dn, [("objectClass", kind.encode()), *values.items()]


def test_an_active_directory_shaped_tree_needs_only_other_settings(directory: Slapd, settings: Any) -> None:
    """sAMAccountName, a binary objectGUID, userAccountControl and accountExpires, nested groups with `member`."""
    from accounts.directory import read_search

    tree = f"ou=ad,{SUFFIX}"
    smith, jones, lab, outer = (
        f"cn={name},{tree}" for name in (r"Smith\, Änna", "Bob Jones", "GPU Lab", "Everyone AI")
    )
    secret = hashed(SECRET).encode()
    people_of = {"sn": b"x", "userPassword": secret}
    entries = [
        (tree, [("objectClass", b"organizationalUnit")]),
        ad_entry(
            smith,
            "user",
            sAMAccountName=b"asmith",
            objectGUID=bytes(range(16)),
            userAccountControl=b"512",
            accountExpires=b"9223372036854775807",
            displayName="Smith, Änna".encode(),
            **people_of,
        ),
        ad_entry(
            jones,
            "user",
            sAMAccountName=b"bjones",
            objectGUID=bytes(range(1, 17)),
            userAccountControl=b"514",
            **people_of,
        ),
        ad_entry(lab, "group", sAMAccountName=b"gpu-lab", member=[smith.encode(), jones.encode()]),
        ad_entry(outer, "group", sAMAccountName=b"ai", member=[lab.encode()]),
    ]
    settings.DIRECTORY = known(
        directory.url,
        people=read_search(f"{tree}?sAMAccountName?sub?(objectClass=user)", attribute="uid"),
        groups=read_search(f"{tree}?cn?sub?(objectClass=group)", attribute="cn"),
    )
    GroupMapping.objects.create(group="everyone ai", namespace=people.ensure_project("ai", members={}), role="member")
    with as_admin(directory) as admin:
        for dn, values in entries:
            admin.add_s(dn, [(name, value) for name, value in values])
    try:
        assert sign_in("ASmith").status_code == 302
        person = User.objects.get()
        assert (person.username, person.display_name, person.uid_number) == ("asmith", "Smith, Änna", None)
        assert person.directory_groups == ["Everyone AI", "GPU Lab"]
        assert Membership.objects.get(namespace__slug="ai").role == "member"
        assert sign_in("bjones").status_code == 403
    finally:
        with as_admin(directory) as admin:
            for dn, _values in reversed(entries):
                admin.delete_s(dn)


class InPieces:
    """How Active Directory answers for a group of 3,200: stretches of at most 1,500 values."""

    def search_s(self, dn: str, _scope: int, *, attrlist: list[str]) -> Any:
        name, _mark, stretch = attrlist[0].partition(";range=")
        first = int(stretch.split("-")[0])
        last = min(first + 1499, 3199)
        end = "*" if last == 3199 else last
        return [(dn, {f"{name};range={first}-{end}": [f"cn={n}".encode() for n in range(first, last + 1)]})]


def test_a_group_of_thousands_in_active_directory_has_all_its_members() -> None:
    pytest.importorskip("ldap")
    from accounts.ldap.connection import _whole

    first: Any = {"member": [], "member;range=0-1499": [f"cn={n}".encode() for n in range(1500)]}
    whole = _whole(InPieces(), "cn=all", first)
    assert whole == {"member": [f"cn={n}".encode() for n in range(3200)]}
