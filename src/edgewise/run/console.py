"""The terminal as edgewise writes to it: colours of its own, and never a control character of the data."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import rich.console
from rich.segment import Segment

from edgewise.errors import printable


class Console(rich.console.Console):
    """A console that spells control characters out."""

    def render(self, *arguments: Any, **options: Any) -> Iterable[Segment]:
        """Lay out one thing; all that is printed passes here."""
        for segment in super().render(*arguments, **options):
            safe = segment.text if segment.control else printable(segment.text)
            yield segment if safe == segment.text else Segment(safe, segment.style)
