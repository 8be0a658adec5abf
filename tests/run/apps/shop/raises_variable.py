import os

url = os.environ["SHOP_DATABASE_URL"]
