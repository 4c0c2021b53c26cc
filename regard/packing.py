"""Matrices of weights as short text: 16-bit codes, gzip, base64."""

import base64
import binascii
import gzip
import math
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

ENCODING = "uint16-planes-gzip-base64"
TOP = 65535
"""The largest code."""


def pack(weights: NDArray[np.float64], bits: int = 16) -> dict[str, Any]:
    """A matrix [q, k] as a record that JSON can hold.

    w ≈ low + (high − low) · code / 65535. The codes stand row by row: first the low bytes of all,
    then the high bytes of all, which gzip makes a seventh shorter than pairs. Weights of attention
    keep the range from 0 to 1; others get the range that they need. With 16 bits no number is off
    by more than (high − low) / 131070, with fewer by 2^(16 − bits) times as much: a coarser code is
    shorter, and read in the same way. Both ends of the range are exact.

    >>> record = pack(np.array([[0.75, 0.25]]))
    >>> record["shape"], record["low"], record["high"]
    ([1, 2], 0.0, 1.0)
    >>> float(abs(unpack(record) - [[0.75, 0.25]]).max()) < 7.7e-6
    True
    """
    if not np.isfinite(weights).all():
        raise ValueError("weights that are not finite cannot be packed")
    if not 2 <= bits <= 16:
        raise ValueError(f"expected 2 to 16 bits, got {bits}")
    low = min(0.0, float(weights.min(initial=0.0)))
    high = max(1.0, float(weights.max(initial=0.0)))
    step = 1 << (16 - bits)
    if not math.isfinite(high - low):
        raise ValueError("weights this far apart cannot be packed")
    shares = (weights - low) / (high - low)
    codes = np.minimum(np.rint(shares * (TOP / step)) * step, TOP).astype("<u2")
    planes = codes.reshape(-1).view(np.uint8).reshape(-1, 2).T
    packed = gzip.compress(planes.tobytes(), compresslevel=9, mtime=0)
    return {
        "encoding": ENCODING,
        "shape": list(weights.shape),
        "low": low,
        "high": high,
        "data": base64.b64encode(packed).decode("ascii"),
    }


def unpack(record: Mapping[str, Any]) -> NDArray[np.float64]:
    """The matrix of a record; never more memory than its shape asks for.

    Raises ValueError with what is wrong: data that is no base64 or gzip, or of another length.
    """
    rows, columns = record["shape"]
    size = 2 * rows * columns
    try:
        packed = base64.b64decode(record["data"], validate=True)
        stream = zlib.decompressobj(wbits=31)
        raw = stream.decompress(packed, size + 1)
    except (binascii.Error, zlib.error, ValueError) as error:
        raise ValueError(f"its data is no {ENCODING} ({error})") from None
    if len(raw) != size or not stream.eof or stream.unused_data:
        raise ValueError(f"its data is not exactly {rows} × {columns} numbers of 16 bits")
    low_bytes, high_bytes = np.frombuffer(raw, dtype=np.uint8).reshape(2, rows, columns)
    codes = low_bytes + 256.0 * high_bytes
    low, high = record["low"], record["high"]
    return np.asarray(low + (high - low) * (codes / TOP), dtype=np.float64)
