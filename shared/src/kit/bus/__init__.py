"""NATS: one connection, questions and answers, durable publishing, pull consumers, streams.

connection.py  connect, and what readiness asks of it
requests.py    ask a question of the catalogue; outcomes are done, not done or unknown
serving.py     answer the questions of the catalogue
publishing.py  publish to a stream and wait for the ack
streams.py     make the streams, check that they are durable
consuming.py   pull batches from a stream
errors.py      what all of these raise
"""
