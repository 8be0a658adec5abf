"""From a study to its trials."""
