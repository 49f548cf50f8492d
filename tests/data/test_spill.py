"""The order of a shuffle is fixed for good; the rest of spilling is in test_generate.py."""

import numpy as np

from t2t_lite.data import spill


def test_keys_are_splitmix64s():
    # the first outputs of SplitMix64 (Vigna's splitmix64.c) seeded with 0 and with 1
    assert [hex(key) for key in spill._mix(np.arange(2, dtype=np.uint64)).tolist()] == [
        *("0xe220a8397b1dcdaf", "0x910a2dec89025cc1")
    ]


def test_keys_follow_the_number_and_differ():
    keys = spill.hash_keys(3, 0, 1000)
    assert (spill.hash_keys(3, 400, 100) == keys[400:500]).all()
    assert len(set(keys.tolist())) == 1000
    assert not (spill.hash_keys(4, 0, 1000) == keys).any()
