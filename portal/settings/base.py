"""What every installation shares. Names of environment variables: DESIGN section 9 and docs/operations.md."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg.conninfo
from csp.constants import NONE, SELF
from django.core.exceptions import ImproperlyConfigured

from portal.settings.clusters import read_clusters
from portal.settings.directory import read_directory
from portal.settings.env import env_int, env_list, env_path, env_secret, env_str, env_url
from portal.settings.openid import read_openid
from portal.settings.operator import read_operator

BASE_DIR = Path(__file__).resolve().parent.parent.parent

PORT = env_int("PORT", 8000, minimum=1, maximum=65535)
TRAINHALL_URL = env_url("TRAINHALL_URL", f"http://localhost:{PORT}")
TRAINHALL_INTERNAL_URL = env_url("TRAINHALL_INTERNAL_URL", TRAINHALL_URL)
TRAINHALL_DATA_DIR = env_path("TRAINHALL_DATA_DIR", BASE_DIR / "var")
TRAINHALL_CLUSTERS = env_str("TRAINHALL_CLUSTERS")  # "" none, `local`, or a YAML file of kubeconfig contexts
HAS_LOCAL_CLUSTER, KUBERNETES_CLUSTERS = read_clusters(TRAINHALL_CLUSTERS)
TRAINHALL_LOCAL_GPUS = env_int("TRAINHALL_LOCAL_GPUS", 0, maximum=4096)
TRAINHALL_HELPER_IMAGE = env_str("TRAINHALL_HELPER_IMAGE", "trainhall:latest")
HAS_DEMO_DIRECTORY = (
    env_str("LDAP") == "demo"
)  # of make run: its people and rules are seeded, never those of a real one
TRAINHALL_DEMO_IMAGE = env_str("TRAINHALL_DEMO_IMAGE")  # of the demo's runtimes, where their own cannot be pulled
TRAINHALL_FETCH_HOSTS = env_list("TRAINHALL_FETCH_HOSTS")
TRAINHALL_KEEP_FILES = env_int("TRAINHALL_KEEP_FILES", 7, maximum=36500)  # days after a job's end
TRAINHALL_START_TIMEOUT = env_int(
    "TRAINHALL_START_TIMEOUT", 10, minimum=1, maximum=1440
)  # minutes from release to running
TRAINHALL_SHELL_IDLE = env_int("TRAINHALL_SHELL_IDLE", 15, minimum=1, maximum=1440)  # minutes without a key or output
TRAINHALL_LOGIN_HELP = env_str("TRAINHALL_LOGIN_HELP")  # whom to ask who cannot sign in
TRAINHALL_MAINTENANCE = env_str("TRAINHALL_MAINTENANCE")  # a line for everybody, such as "Saturday 06:00-08:00 UTC"
TRAINHALL_INSTANCE = env_str("TRAINHALL_INSTANCE", "main")

SECRET_KEY = env_secret("TRAINHALL_SECRET_KEY")
SECRET_KEY_FALLBACKS = env_list("TRAINHALL_SECRET_KEY_FALLBACKS")
DEBUG = False

OPERATOR = read_operator(public=TRAINHALL_URL)

_public = urlsplit(OPERATOR.url if OPERATOR.is_apart else TRAINHALL_URL)  # what browsers open to come to this process
TRAINHALL_ORIGINS = [f"{_public.scheme}://{_public.netloc}"]  # for sockets and CSRF; dev adds the loopback names
ALLOWED_HOSTS = [_public.hostname or "localhost"]
# pods call the portal by its internal name, or by that of their cluster
INTERNAL_HOSTS = sorted(
    {
        host
        for url in (TRAINHALL_INTERNAL_URL, *(cluster.internal_url for cluster in KUBERNETES_CLUSTERS))
        if (host := urlsplit(url).hostname)
    }
)
ALLOWED_HOSTS += [host for host in INTERNAL_HOSTS if host not in ALLOWED_HOSTS]
CSRF_TRUSTED_ORIGINS = list(TRAINHALL_ORIGINS)

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "csp",
    "rest_framework",
    "knox",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "channels",
    "portal",
    "metrics",
    "jobs",
    "accounts",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "servestatic.middleware.ServeStaticMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "portal.middleware.SignInUnlessOpen",
    "portal.middleware.HiddenCharactersShown",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

ROOT_URLCONF = "portal.urls" if OPERATOR.is_here else "portal.public_urls"
ASGI_APPLICATION = "portal.asgi.application"
APPEND_SLASH = True
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "portal.context.navigation",
            ],
        },
    }
]


def _database() -> dict[str, Any]:
    url = env_secret("DATABASE_URL")
    if not url:
        return {"ENGINE": "django.db.backends.dummy"}
    if not url.startswith(("postgresql://", "postgres://")):
        raise ImproperlyConfigured("DATABASE_URL must begin with postgresql://; Trainhall runs on PostgreSQL only.")
    try:
        info = psycopg.conninfo.conninfo_to_dict(url)
    except psycopg.ProgrammingError as error:
        raise ImproperlyConfigured(f"DATABASE_URL cannot be read: {error}") from error
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": info.pop("dbname", ""),
        "USER": info.pop("user", ""),
        "PASSWORD": info.pop("password", ""),
        "HOST": info.pop("host", ""),
        "PORT": str(info.pop("port", "")),
        "CONN_HEALTH_CHECKS": True,
        "OPTIONS": {"connect_timeout": 5, "application_name": "trainhall", **info},
    }


DATABASE_URL = env_secret("DATABASE_URL")
DATABASES = {"default": _database()}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# redis://host:port/db or unix:///path/to/socket
REDIS_URL = env_secret("REDIS_URL")
CELERY_BROKER_URL = REDIS_URL.replace("unix://", "redis+socket://", 1)

STORAGES = {
    "default": {
        "BACKEND": "django.core.files.storage.FileSystemStorage",
        "OPTIONS": {"location": TRAINHALL_DATA_DIR / "files"},
    },
    "staticfiles": {"BACKEND": "portal.staticfiles.HashedStaticFiles"},
}
STATIC_URL = "/static/"
STATIC_ROOT = env_path("TRAINHALL_STATIC_ROOT", BASE_DIR / "staticfiles")
STATICFILES_DIRS = [BASE_DIR / "static"]

AUTH_USER_MODEL = "accounts.User"
DIRECTORY = read_directory()
OPENID = read_openid()
OPENID_ROLES_DAYS = env_int("OIDC_ROLES_DAYS", 7, minimum=1, maximum=365)  # what its groups give, without a new sign-in
# the directory first: a password of its people is never hashed here, which costs more than asking it
AUTHENTICATION_BACKENDS = [
    *(["accounts.ldap.backend.DirectoryBackend"] if DIRECTORY else []),
    "accounts.auth.LocalBackend",
    *(["accounts.oidc.backend.ProviderBackend"] if OPENID else []),
]
LOGIN_URL = "accounts:login"
LOGIN_REDIRECT_URL = "/"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.PBKDF2PasswordHasher"]
SESSION_COOKIE_NAME = "trainhall_session"
SESSION_COOKIE_AGE = 12 * 3600
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = _public.scheme == "https"
CSRF_COOKIE_NAME = "trainhall_csrf"
X_FRAME_OPTIONS = "DENY"
SECURE_REFERRER_POLICY = "same-origin"

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [SELF],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF, "data:", "blob:"],
        "connect-src": [SELF],
        "object-src": [NONE],
        "base-uri": [NONE],
        "frame-ancestors": [NONE],
        "form-action": [SELF],
    }
}

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "accounts.auth.ApiTokenAuthentication",
        "accounts.auth.ApiSessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["accounts.auth.ScopePermission"],
    "DEFAULT_RENDERER_CLASSES": ["portal.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    "DEFAULT_PAGINATION_CLASS": "portal.paging.NewestFirst",
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "portal.errors.error_response",
    "PAGE_SIZE": 50,
    "UNAUTHENTICATED_USER": "django.contrib.auth.models.AnonymousUser",
}
TRAINHALL_LAST_STEP = "metrics.store.last_step"  # what `jobs` asks about an attempt that was taken away
TRAINHALL_STAKES = "jobs.stakes.of_people"  # what `accounts` asks before it takes a role away
REST_KNOX = {"TOKEN_PREFIX": "th_", "TOKEN_TTL": None, "AUTH_HEADER_PREFIX": "Bearer"}
KNOX_TOKEN_MODEL = "accounts.ApiToken"  # noqa: S105 - the name of a model
MIGRATION_MODULES = {"knox": None}  # its own table would be empty for ever, and stop tests from flushing accounts_user
SPECTACULAR_SETTINGS = {
    "TITLE": "Trainhall",
    "DESCRIPTION": "Deep-learning training on a shared GPU cluster.",
    "VERSION": "v1",
    "SERVE_PERMISSIONS": ["accounts.auth.ScopePermission"],
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
}

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_I18N = True
USE_TZ = True
LOCALE_PATHS = [BASE_DIR / "locale"]

DATA_UPLOAD_MAX_MEMORY_SIZE = 32 * 2**20
FILE_UPLOAD_MAX_MEMORY_SIZE = 4 * 2**20
DATA_UPLOAD_MAX_NUMBER_FIELDS = 5000
DATA_UPLOAD_MAX_NUMBER_FILES = 2000

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"plain": {"format": "%(asctime)s %(levelname)s %(name)s: %(message)s"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "plain"}},
    "root": {"handlers": ["stderr"], "level": env_str("TRAINHALL_LOG_LEVEL", "INFO")},
}
