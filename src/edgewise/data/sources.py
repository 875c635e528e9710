"""Whatever the user hands over, a file or a table in memory, opened as named columns."""

from __future__ import annotations

import os
from typing import Any

from edgewise.data.files import open_file
from edgewise.data.memory import Table, table_in_memory


def open_table(source: Any) -> Table:
    """Recognise the source; for files, look at the beginning only."""
    if isinstance(source, str | os.PathLike) or hasattr(source, "read"):
        return open_file(source)
    return table_in_memory(source)
