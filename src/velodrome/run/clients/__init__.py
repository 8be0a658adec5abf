"""Clients beside the load: some come and go before it, others hold a connection open through it and say nothing."""
