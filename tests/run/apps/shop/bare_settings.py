"""A Django site in one file, with neither wsgi.py nor asgi.py."""

import os

from django.http import JsonResponse
from django.urls import path

SECRET_KEY = "of a test"
ALLOWED_HOSTS = ["*"]
ROOT_URLCONF = __name__


def cart(request):
    return JsonResponse({"id": request.GET.get("id"), "settings": os.environ["DJANGO_SETTINGS_MODULE"]})


urlpatterns = [path("cart", cart)]
