-- since
-- How many records were stored after a certain one.
SELECT count(*) FROM inference_record WHERE record_id > :record_id
