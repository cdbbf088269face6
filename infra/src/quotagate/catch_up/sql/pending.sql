-- pending
-- How many records up to a place in the stream wait for their charge.
SELECT count(*) FROM inference_record WHERE state = 'PENDING' AND stream_sequence <= :last
