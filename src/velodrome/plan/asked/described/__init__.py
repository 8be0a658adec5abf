"""What an OpenAPI document is made of: references, values, operations."""
