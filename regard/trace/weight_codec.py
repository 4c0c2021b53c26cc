"""Weight matrices as short text: 16-bit codes, gzip, base64."""

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
MAX_CODE = 65535
"""The largest code."""


def pack(weights: NDArray[np.float64], bits: int = 16) -> dict[str, Any]:
    """A matrix [q, k] as a record that JSON can hold.

    w ≈ low + (high − low) · code / 65535, where codes are 16-bit integers in row-major order: first
    the low bytes of all codes, then the high bytes, since gzip makes that a seventh shorter than
    interleaved bytes. The range is 0 to 1, or wider if the weights need it; its ends are exact.
    With 16 bits the error is at most (high − low) / 131070. With fewer bits the codes are multiples
    of 2^(16 − bits): the error grows by that factor, the text gets shorter, and it is read in the
    same way.

    >>> record = pack(np.array([[0.75, 0.25]]))
    >>> record["shape"], record["low"], record["high"]
    ([1, 2], 0.0, 1.0)
    >>> float(abs(unpack(record) - [[0.75, 0.25]]).max()) < 7.7e-6
    True
    """
    if not np.isfinite(weights).all():
        raise ValueError("weights must be finite to be packed")
    if not 2 <= bits <= 16:
        raise ValueError(f"expected 2 to 16 bits, got {bits}")
    low = min(0.0, float(weights.min(initial=0.0)))
    high = max(1.0, float(weights.max(initial=0.0)))
    step = 1 << (16 - bits)
    if not math.isfinite(high - low):
        raise ValueError("the range of the weights is too large to be packed")
    shares = (weights - low) / (high - low)
    # multiples of `step`, but the last code stays 65535 so that `high` is exact
    codes = np.minimum(np.rint(shares * (MAX_CODE / step)) * step, MAX_CODE).astype("<u2")
    # little-endian pairs [n, 2] → two planes [2, n]: all low bytes, then all high bytes
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
    """The matrix of a record.

    Raises ValueError if the data is not base64 or gzip, or has another length than its shape says.
    """
    rows, columns = record["shape"]
    size = 2 * rows * columns
    try:
        packed = base64.b64decode(record["data"], validate=True)
        stream = zlib.decompressobj(wbits=31)
        # never more than one byte too many, however much a hostile stream would expand to
        raw = stream.decompress(packed, size + 1)
    except (binascii.Error, zlib.error, ValueError) as error:
        raise ValueError(f"its data is not {ENCODING} ({error})") from None
    if len(raw) != size or not stream.eof or stream.unused_data:
        raise ValueError(f"its data is not exactly {rows} × {columns} numbers of 16 bits")
    low_bytes, high_bytes = np.frombuffer(raw, dtype=np.uint8).reshape(2, rows, columns)
    codes = low_bytes + 256.0 * high_bytes
    low, high = record["low"], record["high"]
    return np.asarray(low + (high - low) * (codes / MAX_CODE), dtype=np.float64)
