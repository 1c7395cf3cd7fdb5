"""The drawing room: reports as one HTML file that needs nothing else, in light and dark.

    page(title, verdict, mood, parts) -> str      `page`: a document of paragraphs, facts, tables and charts
    Chart(title, x, y, marks, says)               `chart`: what is to be drawn, with Line, Band, Dots and Rule as marks
    svg(chart) -> str                             `drawing`: the chart as inline SVG

`certify`, `size` and `batch` each have a room of their own that says what goes on their page. Everything here is pure
and escapes what it is given.
"""
