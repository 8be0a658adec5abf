SECRET_KEY = "of a test"
ALLOWED_HOSTS = ["*"]
ROOT_URLCONF = "mall.urls"
WSGI_APPLICATION = "mall.wsgi.application"
