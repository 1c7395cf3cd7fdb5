"""The drawing room: reports as one HTML file that needs nothing else, in light and dark, and as one PNG.

    Page(title, verdict, mood, parts)             `page`: paragraphs, facts, tables and charts, before they are drawn
    Chart(title, x, y, marks, says)               `chart`: what is to be drawn, with Line, Band, Dots and Rule as marks
    html(page) -> str                             `html`: the document
    png(page) -> bytes                            `png`: the picture, laid out by `picture` and drawn by resvg
    svg(chart) -> str                             `drawing`: the chart as inline SVG; its looks are in `style`

`certify`, `size` and `batch` each have a room of their own that says what goes on their page. All but `png` is pure,
and everything escapes what it is given.
"""
