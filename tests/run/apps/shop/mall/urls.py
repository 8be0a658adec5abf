from django.http import JsonResponse
from django.urls import path


def cart(request):
    return JsonResponse({"id": request.GET.get("id")})


urlpatterns = [path("cart", cart)]
