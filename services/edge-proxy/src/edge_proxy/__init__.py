"""The edge: HTTP for clients, from admission through the provider to the durable record."""
