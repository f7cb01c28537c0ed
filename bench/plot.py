# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""plot.py - lines over two logarithmic axes, and bars, as SVG text that needs nothing else."""
import html
import math

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 480, 300, 60, 14, 12, 44
COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b8860b", "#56b4e9", "#8f5bd0", "#a0522d", "#6b8e23", "#e0002d",
           "#00a3a3", "#888888"]
RAW = "currentColor"  # raw TCP, what all is compared to


def si(value):
    """Three digits at most: 0.25, 4.2, 120, 64 k, 1.5 M."""
    for unit, factor in ("G", 1e9), ("M", 1e6), ("k", 1e3):
        if value >= factor:
            return "%.3g %s" % (value / factor, unit)
    return "%.3g" % value


def octets(value):
    for unit, shift in ("MiB", 20), ("KiB", 10):
        if value >= 1 << shift:
            return "%g %s" % (value / (1 << shift), unit)
    return "%g" % value


class Axis:
    def __init__(self, values, begin, end, base):
        low, high = math.log(min(values), base), math.log(max(values), base)
        room = 0.03 * (high - low) or 0.5
        self.low, self.high, self.begin, self.end = low - room, high + room, begin, end
        self.base = base

    def at(self, value):
        return self.begin + (math.log(value, self.base) - self.low) / (self.high - self.low) * (self.end - self.begin)


def decimal_ticks(axis):
    """1, 2 and 5 of each power of ten, or the powers alone where that would be too many."""
    steps = (1, 2, 5) if axis.high - axis.low < 3 else (1,)
    low, high = math.floor(axis.low), math.ceil(axis.high)
    every = [step * 10.0 ** power for power in range(low, high + 1) for step in steps]
    ticks = [tick for tick in every if axis.low <= math.log10(tick) <= axis.high]
    return ticks if len(ticks) > 1 else [10 ** (axis.low + (axis.high - axis.low) * part) for part in (0.05, 0.5, 0.95)]


def text(x, y, words, anchor="middle", more=""):
    return '<text x="%.1f" y="%.1f" text-anchor="%s"%s>%s</text>' % (x, y, anchor, more, html.escape(words))


def svg(parts, height, label):
    return ('<svg viewBox="0 0 %d %d" role="img" aria-label="%s">%s</svg>'
            % (WIDTH, height, html.escape(label), "".join(parts)))


def lines(curves, x_label, y_label, x_text):
    """Each curve is (name, colour, dashes, [(x, y)]). A point tells its figures to a pointer that rests on it."""
    points = [point for *_, curve in curves for point in curve]
    x_axis = Axis([x for x, _ in points], LEFT, WIDTH - RIGHT, 2)
    y_axis = Axis([y for _, y in points], HEIGHT - BOTTOM, TOP, 10)
    parts = []
    for tick in decimal_ticks(y_axis):
        y = y_axis.at(tick)
        parts += ['<line class="grid" x1="%d" x2="%d" y1="%.1f" y2="%.1f"/>' % (LEFT, WIDTH - RIGHT, y, y),
                  text(LEFT - 6, y + 4, si(tick), "end")]
    for tick in sorted({x for x, _ in points}):
        parts.append(text(x_axis.at(tick), HEIGHT - BOTTOM + 16, x_text(tick)))
    parts += [text((LEFT + WIDTH) / 2, HEIGHT - 8, x_label),
              text(14, HEIGHT / 2, y_label, more=' transform="rotate(-90 14 %.1f)"' % (HEIGHT / 2))]
    for name, colour, dashes, curve in curves:
        at = [(x_axis.at(x), y_axis.at(y)) for x, y in curve]
        parts.append('<polyline fill="none" stroke="%s" %s points="%s"/>' % (
            colour, 'stroke-dasharray="%s" opacity=".6"' % dashes if dashes else 'stroke-width="2"',
            " ".join("%.1f,%.1f" % point for point in at)))
        for (x, y), (px, py) in zip(curve, at):
            parts.append('<circle cx="%.1f" cy="%.1f" r="%s" fill="%s"><title>%s, %s: %s</title></circle>' % (
                px, py, "2.5" if dashes else "3.5", colour, html.escape(name), x_text(x), si(y)))
    return svg(parts, HEIGHT, y_label + " over " + x_label)


def bars(values, label):
    """Each value is (name, colour, figure); from zero, so that lengths compare."""
    row, left = 24, 178
    most = max(figure for *_, figure in values)
    parts = []
    for at, (name, colour, figure) in enumerate(values):
        width, y = (WIDTH - left - 60) * figure / most, at * row
        parts += [text(left - 8, y + 16, name, "end"),
                  '<rect x="%d" y="%d" width="%.1f" height="%d" fill="%s"/>' % (left, y + 3, width, row - 6, colour),
                  text(left + width + 6, y + 16, si(figure), "start")]
    return svg(parts + [text(left, len(values) * row + 16, label, "start")], len(values) * row + 24, label)
