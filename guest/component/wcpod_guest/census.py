"""Lists the interpreter's objects, for the build to pin them (see ``guest/aot/src/interpreter.rs``)."""

import gc
import struct
from types import CodeType

#: The build mounts the folder of its sources here.
LIST = "/0/objects.bin"

#: More than the interpreter has while it is built.
_MEMORY = 64 << 20

_CODE_PARTS = ("co_consts", "co_names", "co_filename", "co_name", "co_qualname", "co_linetable", "co_exceptiontable")


def take() -> None:
    """Writes address and type of every object that can be found.

    Some are of this function, and gone when the interpreter is kept: the build leaves alone what is
    not an object of that type any more.
    """
    seen = bytearray(_MEMORY >> 6)
    with open(LIST, "wb") as file:
        pending = gc.get_objects()
        while pending:
            fresh = []
            for one in pending:
                address = id(one)
                if not seen[address >> 6] >> (address >> 3 & 7) & 1:
                    seen[address >> 6] |= 1 << (address >> 3 & 7)
                    file.write(struct.pack("<II", address, id(type(one))))
                    fresh.append(one)
            pending = gc.get_referents(*fresh)
            for one in fresh:
                if isinstance(one, CodeType):
                    pending += [getattr(one, part) for part in _CODE_PARTS]
                    pending += one.co_varnames + one.co_freevars + one.co_cellvars
