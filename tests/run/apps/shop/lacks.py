import surely_not_installed_anywhere  # noqa: F401
