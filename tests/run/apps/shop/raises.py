def load_settings():
    return {}["DATABASE_URL"]


settings = load_settings()
