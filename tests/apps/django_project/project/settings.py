import os

SECRET_KEY = "of a test"
USE_TZ = True
ROOT_URLCONF = "project.urls"
ALLOWED_HOSTS = ["testserver"]
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": os.environ["APP_DATABASE"],
        # A transaction that only writes later fails at once when another one has written meanwhile.
        "OPTIONS": {"timeout": 60, "transaction_mode": "IMMEDIATE"},
    }
}
INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.sessions",
    "django_dramatiq",
    "shop",
]
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]

DRAMATIQ_BROKER = {
    "BROKER": "dramatiq_echomq.EchoMQBroker",
    "OPTIONS": {"url": os.environ["REDIS_URL"]},
    "MIDDLEWARE": [
        "dramatiq.middleware.AgeLimit",
        "dramatiq.middleware.TimeLimit",
        "dramatiq.middleware.Callbacks",
        "dramatiq.middleware.Retries",
        "dramatiq_echomq.StalledCheckerMiddleware",
        "django_dramatiq.middleware.AdminMiddleware",
        "django_dramatiq.middleware.DbConnectionsMiddleware",
    ],
}
DRAMATIQ_ECHOMQ = {
    "PREFIX": "shop",
    "STALLED_INTERVAL": 1_000,
    "MAX_STALLED_COUNT": 0,
    "CRASH_GRACE": 200,
    "LOCK_DURATION": 6_000,  # the worker may be killed before it is registered
}
