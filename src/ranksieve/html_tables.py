"""Tables as HTML, which notebooks show; all text in them is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape


def html_table(rows: Iterable[Sequence[str]], *, header: Sequence[str] = ()) -> str:
    """A table whose first column is left-justified, and the others right.

    Examples
    --------
    >>> print(html_table([["a<b", "1"]]).replace("><", ">\\n<"))
    <table>
    <tbody>
    <tr>
    <th style="text-align: left">a&lt;b</th>
    <td style="text-align: right">1</td>
    </tr>
    </tbody>
    </table>
    """
    head = f"<thead>{_row(header, 'th')}</thead>" if header else ""
    return f"<table>{head}<tbody>{''.join(_row(row, 'td') for row in rows)}</tbody></table>"


def html_facts(title: str, facts: Iterable[tuple[str, str]]) -> str:
    """Names and values under a title."""
    rows = "".join(
        f'<tr><th style="text-align: left">{escape(name)}</th><td style="text-align: left">{escape(value)}</td></tr>'
        for name, value in facts
    )
    return f"<p><b>{escape(title)}</b></p><table><tbody>{rows}</tbody></table>"


def html_notes(lines: Iterable[str]) -> str:
    """Small lines below a table."""
    return f"<p><small>{'<br>'.join(map(escape, lines))}</small></p>"


def _row(cells: Sequence[str], tag: str) -> str:
    first, *others = (escape(cell) for cell in cells)
    numbers = "".join(f'<{tag} style="text-align: right">{cell}</{tag}>' for cell in others)
    return f'<tr><th style="text-align: left">{first}</th>{numbers}</tr>'
