"""A provider that isn't one: OpenAI's and Anthropic's shapes, told by the request how to behave."""
