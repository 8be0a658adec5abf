"""A recipe in the terms of its protocol: what is said in one gRPC call or one chat, and which replies are right.

Generators are told from here what to send, and the question before the load is made of the same bytes.
"""
