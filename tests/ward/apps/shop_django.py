"""Django in one file, without a database: a view that responds with JSON, called through WSGI and ASGI."""

import os

from django.conf import settings
from django.core.asgi import get_asgi_application
from django.core.wsgi import get_wsgi_application
from django.http import JsonResponse
from django.urls import path

settings.configure(
    SECRET_KEY=os.urandom(16).hex(),
    ROOT_URLCONF=__name__,
    ALLOWED_HOSTS=["*"],
    MIDDLEWARE=["django.middleware.common.CommonMiddleware"],
)


def cart(request):
    return JsonResponse({"articles": list(range(20))})


async def cart_async(request):
    return JsonResponse({"articles": list(range(20))})


urlpatterns = [path("", cart), path("async", cart_async)]
wsgi, asgi = get_wsgi_application(), get_asgi_application()
