"""Number formats: their sizes, and which bytes make a number NaN or infinite, so that values need no framework and no NumPy."""

from __future__ import annotations

from dataclasses import dataclass

SIZES = {
    **dict.fromkeys(("float64", "int64", "uint64", "complex64"), 8),
    **dict.fromkeys(("float32", "int32", "uint32", "qint32"), 4),
    **dict.fromkeys(("float16", "bfloat16", "int16", "uint16"), 2),
    **dict.fromkeys(("int8", "uint8", "bool", "qint8", "quint8"), 1),
    **dict.fromkeys(("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"), 1),
    "complex128": 16,
}
# torch's storage classes, and the names that safetensors and TensorFlow give.
STORAGES = {
    "DoubleStorage": "float64",
    "FloatStorage": "float32",
    "HalfStorage": "float16",
    "BFloat16Storage": "bfloat16",
    "LongStorage": "int64",
    "IntStorage": "int32",
    "ShortStorage": "int16",
    "CharStorage": "int8",
    "ByteStorage": "uint8",
    "BoolStorage": "bool",
    "ComplexFloatStorage": "complex64",
    "ComplexDoubleStorage": "complex128",
    "QInt8Storage": "qint8",
    "QUInt8Storage": "quint8",
    "QInt32Storage": "qint32",
    "UntypedStorage": "uint8",
}
SAFETENSORS = {
    "F64": "float64",
    "F32": "float32",
    "F16": "float16",
    "BF16": "bfloat16",
    "I64": "int64",
    "I32": "int32",
    "I16": "int16",
    "I8": "int8",
    "U64": "uint64",
    "U32": "uint32",
    "U16": "uint16",
    "U8": "uint8",
    "BOOL": "bool",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2",
    "C64": "complex64",
}
TENSORFLOW = {
    1: "float32",
    2: "float64",
    3: "int32",
    4: "uint8",
    5: "int16",
    6: "int8",
    7: "string",
    8: "complex64",
    9: "int64",
    10: "bool",
    14: "bfloat16",
    17: "uint16",
    18: "complex128",
    19: "float16",
    22: "uint32",
    23: "uint64",
    24: "float8_e5m2",
    25: "float8_e4m3fn",
}


@dataclass(frozen=True, slots=True)
class Float:
    """A format of floating point numbers: all bits of the exponent set means NaN or infinite."""

    size: int
    exponent: int  # as a mask of the whole number
    has_infinity: bool = True

    @property
    def mantissa(self) -> int:
        """The bits below the exponent."""
        return (self.exponent & -self.exponent) - 1


FLOATS = {
    "float64": Float(8, 0x7FF0_0000_0000_0000),
    "float32": Float(4, 0x7F80_0000),
    "float16": Float(2, 0x7C00),
    "bfloat16": Float(2, 0x7F80),
    "float8_e5m2": Float(1, 0x7C),
    "float8_e4m3fn": Float(1, 0x7F, has_infinity=False),
    "complex64": Float(4, 0x7F80_0000),
    "complex128": Float(8, 0x7FF0_0000_0000_0000),
}


def count_of(shape: tuple[int, ...]) -> int:
    """How many numbers a tensor of this shape has."""
    count = 1
    for side in shape:
        count *= side
    return count


def bytes_of(dtype: str, shape: tuple[int, ...]) -> int | None:
    """How many bytes a tensor takes; None for a format of unknown size."""
    size = SIZES.get(dtype)
    return None if size is None else size * count_of(shape)
