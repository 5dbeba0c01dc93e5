"""Pages about oneself and who may do what; `api_urls` is the part under /api/v1/."""

from __future__ import annotations

from django.urls import path

from accounts import admin_api, admin_views, api, audit_views, member_views, openid_views, views

app_name = "accounts"
urlpatterns = [
    path("login/", views.sign_in, name="login"),
    path("logout/", views.sign_out, name="logout"),
    path("login/oidc/", openid_views.begin, name="openid_begin"),
    path("login/oidc/answer/", openid_views.answer, name="openid_answer"),
    path("me/tokens/", views.my_tokens, name="tokens"),
    path("me/tokens/<str:key>/revoke/", views.revoke_token, name="revoke_token"),
    path("me/tokens/<str:key>/restore/", views.restore_token, name="restore_token"),
    path("me/namespaces/", views.my_namespaces, name="my_namespaces"),
    path("namespaces/<str:name>/members/", member_views.members_of, name="members"),
    path("audit/", audit_views.audit_trail, name="audit"),
    path("audit/export.csv", audit_views.audit_csv, name="audit_csv"),
]
# answered only where operators are: portal/settings/operator.py
operator_urls = [
    path("admin/access/", admin_views.access, name="access"),
    path("admin/access/sync/", admin_views.sync_now, name="sync_now"),
    path("admin/access/<int:mapping_id>/", admin_views.change_mapping, name="change_mapping"),
    path("admin/access/projects/", admin_views.make_project, name="make_project"),
    path("admin/access/projects/<str:name>/", admin_views.list_project, name="list_project"),
    path("admin/access/projects/<str:name>/members/", member_views.give_role_here, name="give_role_here"),
    path("admin/access/people/<int:user_id>/", member_views.give_role, name="give_role"),
    path("admin/access/roles/<int:membership_id>/", member_views.change_role, name="change_role"),
    path("admin/users/", admin_views.users, name="users"),
    path("admin/users/<int:user_id>/", admin_views.disable_user, name="disable_user"),
]
api_urls = [
    path("tokens/", api.Tokens.as_view(), name="tokens"),
    path("tokens/current/", api.CurrentToken.as_view(), name="current_token"),
    path("tokens/<str:key>/", api.OneToken.as_view(), name="token"),
    path("namespaces/<str:name>/", api.OneNamespace.as_view(), name="namespace"),
    path("namespaces/<str:name>/quota/", api.Quota.as_view(), name="quota"),
    path("audit/", api.Audit.as_view(), name="audit"),
]
operator_api_urls = [
    path("namespaces/", api.Namespaces.as_view(), name="namespaces"),
    path("namespaces/<str:name>/members/", api.Members.as_view(), name="members"),
    path("namespaces/<str:name>/members/<str:username>/", api.OneMember.as_view(), name="member"),
    path("group-mappings/", admin_api.GroupMappings.as_view(), name="group_mappings"),
    path("group-mappings/<int:mapping_id>/", admin_api.OneGroupMapping.as_view(), name="group_mapping"),
    path("sync/", admin_api.Sync.as_view(), name="sync"),
]
# what is read at an address where operators write, for where they are not
reader_api_urls = [
    path("namespaces/", api.NamespacesRead.as_view(), name="namespaces"),
    path("namespaces/<str:name>/members/", api.MembersRead.as_view(), name="members"),
]
