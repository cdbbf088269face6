"""Traces: what a request did where, as spans that leave for a collector in the background.

tracer.py    what a service may ask of a tracer, and how one is opened; knows no library
web.py       requests over HTTP
bus.py       questions, answers and publishes over NATS
sdk.py       the tracer, on OpenTelemetry; imported only where traces are on
exporting.py the queue to the collector, and the thread that empties it

Off, which is the default, nobody has a tracer: nothing is wrapped, the library isn't imported, and
where a span has to be told by hand stands one `is not None`.
"""
