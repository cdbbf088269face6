"""What is stored of a record."""

from contracts.inference import InferenceRecord
from contracts.usage import Usage
from settlement.store.records import _COLUMNS


def test_a_row_holds_all_of_a_record_so_that_the_stream_may_forget_it() -> None:
    fields = {name.removesuffix("_us") for name in InferenceRecord.__struct_fields__} - {"usage"}
    tokens = {f"{name}_tokens" for name in Usage.__struct_fields__}
    assert fields | tokens <= set(_COLUMNS)
