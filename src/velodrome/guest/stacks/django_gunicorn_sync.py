"""Django (WSGI) on gunicorn's sync worker."""

from velodrome.guest.stack import Stack, one_per_worker
from velodrome.guest.stacks import _gunicorn

stack = Stack(
    name="django-gunicorn-sync",
    title="Django · gunicorn sync",
    about="Django, one request for each forked worker; a view that waits holds its whole worker.",
    interface="django_wsgi",
    concurrency="processes",
    command=_gunicorn.sync,
    requires=_gunicorn.REQUIRES,
    knobs={"workers": 1, "backlog": 2048},
    slots=one_per_worker,
    keeps_alive=False,
    python=(3, 10),
    server=_gunicorn.SERVER,
)
