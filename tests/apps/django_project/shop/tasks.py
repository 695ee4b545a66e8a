import os
import signal

import dramatiq
from django.contrib.auth.models import User


@dramatiq.actor
def register(name):
    User.objects.create_user(name)


@dramatiq.actor
def crash():
    os.kill(os.getpid(), signal.SIGKILL)
