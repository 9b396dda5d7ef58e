"""near_pictures.py: pictures of fourteen kinds whose copies are hard to tell from their neighbours.

picture(kind, maker, n) is the n-th picture of a kind by one of three makers, which differ in fonts,
layouts, library (Pillow, Pillow at twice the size, OpenCV) and noise. All pictures of a kind by a maker
have the same template; any two differ in something that a person sees at a glance: other words,
entries, bricks, stars, another person, colour or position. Everything depends only on the arguments and the installed
fonts. ALTERATIONS are ways in which such pictures are copied.
"""
import functools
import subprocess

import cv2
import numpy as np
from PIL import Image, ImageDraw, ImageEnhance, ImageFilter, ImageFont

cv2.setNumThreads(1)  # there is already one process per processor
MAKERS = 3
SYLLABLES = ("ba be bi bo da de di do fa fe ga go ha he ka ke ki la le li lo ma me mi mo na ne ni no pa "
             "pe po ra re ri ro sa se si so ta te ti to va ve vi wa we za tion ment ing ed er al th st").split()
FAMILIES = ("DejaVu Sans", "Liberation Serif", None)


@functools.lru_cache(None)
def font(family, size, bold=False):
    query = "%s:bold=%d" % (family, 200 if bold else 80)
    path = subprocess.run(["fc-match", "-f", "%{file}", query], capture_output=True, text=True,
                          check=True).stdout
    return ImageFont.truetype(path, size)


class Sheet:
    """Draws with the library of a maker; coordinates are pixels of the finished picture."""

    def __init__(self, maker, width, height, ground=(255, 255, 255)):
        self.maker, self.scale = maker, 2 if maker == 1 else 1
        self.size = width, height
        if maker == 2:
            self.array = np.full((height, width, 3), ground, np.uint8)
        else:
            self.image = Image.new("RGB", (width * self.scale, height * self.scale), ground)
            self.draw = ImageDraw.Draw(self.image)

    def _at(self, *values):
        return tuple(round(v * self.scale) for v in values)

    def text(self, x, y, text, size=12, fill=(0, 0, 0), bold=False, family=None):
        if self.maker == 2:
            face = cv2.FONT_HERSHEY_DUPLEX if bold else cv2.FONT_HERSHEY_SIMPLEX
            cv2.putText(self.array, text, (round(x), round(y + size * 0.8)), face, size / 30, fill,
                        2 if size > 24 else 1, cv2.LINE_AA)
        else:
            self.draw.text(self._at(x, y), text, fill,
                           font(family or FAMILIES[self.maker], size * self.scale, bold))

    def width(self, text, size=12):
        if self.maker == 2:
            return cv2.getTextSize(text, cv2.FONT_HERSHEY_SIMPLEX, size / 30, 1)[0][0]
        return font(FAMILIES[self.maker], size * self.scale).getlength(text) / self.scale

    def line(self, points, fill=(0, 0, 0), width=1):
        if self.maker == 2:
            cv2.polylines(self.array, [np.rint(points).astype(np.int32)], False, fill, width,
                          cv2.LINE_AA)
        else:
            self.draw.line([self._at(*p) for p in points], fill, width * self.scale)

    def box(self, x0, y0, x1, y1, fill=None, outline=None, width=1):
        if self.maker == 2:
            a, b = (round(x0), round(y0)), (round(x1), round(y1))
            if fill is not None:
                cv2.rectangle(self.array, a, b, fill, -1)
            if outline is not None:
                cv2.rectangle(self.array, a, b, outline, width)
        else:
            self.draw.rectangle(self._at(x0, y0, x1, y1), fill, outline, width * self.scale)

    def oval(self, x0, y0, x1, y1, fill=None, outline=None, width=1):
        if self.maker == 2:
            centre = round((x0 + x1) / 2), round((y0 + y1) / 2)
            axes = max(1, round((x1 - x0) / 2)), max(1, round((y1 - y0) / 2))
            if fill is not None:
                cv2.ellipse(self.array, centre, axes, 0, 0, 360, fill, -1, cv2.LINE_AA)
            if outline is not None:
                cv2.ellipse(self.array, centre, axes, 0, 0, 360, outline, width, cv2.LINE_AA)
        else:
            self.draw.ellipse(self._at(x0, y0, x1, y1), fill, outline, width * self.scale)

    def shape(self, points, fill):
        if self.maker == 2:
            cv2.fillPoly(self.array, [np.rint(points).astype(np.int32)], fill, cv2.LINE_AA)
        else:
            self.draw.polygon([self._at(*p) for p in points], fill)

    def done(self):
        if self.maker == 2:
            return Image.fromarray(self.array)
        return self.image.resize(self.size, Image.LANCZOS) if self.scale > 1 else self.image


def noisy(image, rng, sigma):
    values = np.asarray(image).astype(np.float32)
    values += rng.normal(0, sigma, values.shape).astype(np.float32)
    return Image.fromarray(np.clip(values + 0.5, 0, 255).astype(np.uint8))


def smooth(rng, width, height, cells, low, high):
    """A smooth random field with values from low to high."""
    small = Image.fromarray((rng.random((cells, cells)) * 255).astype(np.uint8))
    return low + np.asarray(small.resize((width, height), Image.BICUBIC), np.float32) / 255 * (high - low)


def scan(image, rng, turn=0.6, grey=True):
    """Simulates a scan: rotated, shaded, blurred, noisy."""
    width, height = image.size
    paper = int(rng.integers(235, 252))
    image = image.rotate(rng.uniform(-turn, turn), Image.BICUBIC, fillcolor=(paper,) * 3,
                         translate=tuple(rng.uniform(-0.006, 0.006, 2) * width))
    image = image.filter(ImageFilter.GaussianBlur(rng.uniform(0.4, 0.8)))
    values = np.asarray(image.convert("L") if grey else image, np.float32)
    shade = smooth(rng, width, height, 3, 0.93, 1.0)
    values = values * (paper - 25) / 255 + 22
    values = values * (shade if grey else shade[..., None]) + rng.normal(0, 3, values.shape)
    return Image.fromarray(np.clip(values, 0, 255).astype(np.uint8)).convert("RGB")


# --- words -----------------------------------------------------------------------------------------


def word(rng):
    return "".join(SYLLABLES[i] for i in rng.integers(0, len(SYLLABLES), rng.integers(1, 4)))


def words(rng, count):
    return " ".join(word(rng) for _ in range(count))


def amount(rng):
    return "%d.%02d" % (10 ** rng.uniform(0.5, 4), rng.integers(0, 100))


def lines(sheet, rng, x, y, width, bottom, size, lead):
    """Fills a column with paragraphs."""
    while y + lead < bottom:
        left = int(rng.integers(3, 9))
        while left > 0 and y + lead < bottom:
            text = word(rng).capitalize() if left > 7 else word(rng)
            end = width * (rng.uniform(0.3, 0.9) if left == 1 else 1)
            while True:
                longer = text + " " + word(rng)
                if sheet.width(longer, size) > end:
                    break
                text = longer
            sheet.text(x, y, text, size)
            y += lead
            left -= 1
        y += lead * 0.6


def text_page(maker, rng, template):
    sheet = Sheet(maker, 620, 877)
    sheet.text(60, 50, words(rng, 4).capitalize(), 20, bold=True)
    columns = (1, 2, 1)[maker]
    width = (500 - 20 * (columns - 1)) / columns
    for c in range(columns):
        lines(sheet, rng, 60 + c * (width + 20), 90, width, 810, (12, 11, 13)[maker],
              (17, 14, 20)[maker])
    sheet.text(305, 835, str(rng.integers(1, 400)), 10)
    return sheet.done()


def text_scanned(maker, rng, template):
    return scan(text_page(maker, rng, template), rng)


def text_turned(maker, rng, template):
    page = text_page(maker, rng, template)
    if maker == 1:
        return page.rotate(rng.uniform(2, 3), Image.BICUBIC, fillcolor=(255, 255, 255))
    return page.transpose(Image.ROTATE_90 if maker == 0 else Image.ROTATE_180)


def form(maker, rng, template):
    sheet = Sheet(maker, 620, 877)
    ink = ((0, 0, 0), (20, 60, 120), (0, 80, 40))[maker]
    pen = ((30, 30, 140), (10, 10, 10), (20, 20, 120))[maker]
    sheet.box(40, 40, 580, 90, tuple(255 - (255 - c) // 6 for c in ink), ink)
    sheet.text(52, 54, words(template, 5).capitalize(), 18, ink, True)
    rows, y = 17, 105
    for row in range(rows):
        parts = int(template.integers(1, 4))
        for part in range(parts):
            x = 40 + part * 540 / parts
            sheet.box(x, y, x + 540 / parts, y + 40, None, ink)
            sheet.text(x + 4, y + 2, words(template, 2), 9, ink)
            if template.random() < 0.25:
                tick = rng.random() < 0.5
                for k in range(2):
                    sheet.box(x + 60 + 50 * k, y + 18, x + 74 + 50 * k, y + 32, None, ink)
                at = x + 60 + 50 * tick
                sheet.line([(at, y + 18), (at + 14, y + 32)], pen, 2)
                sheet.line([(at, y + 32), (at + 14, y + 18)], pen, 2)
            else:
                entry = words(rng, 2) if rng.random() < 0.6 else amount(rng)
                sheet.text(x + 12, y + 16, entry[:int(70 / parts)], 16, pen)
        y += 44
    return sheet.done()


def invoice(maker, rng, template):
    sheet = Sheet(maker, 620, 877)
    colour = tuple(template.integers(0, 160, 3).tolist())
    if maker == 1:
        sheet.box(0, 0, 620, 80, colour)
        sheet.text(50, 25, words(template, 2).upper(), 26, (255, 255, 255), True)
    else:
        sheet.oval(50, 40, 110, 100, colour)
        sheet.text(125, 55, words(template, 2).upper(), 24, colour, True)
    for i in range(4):
        sheet.text(50, 130 + 16 * i, words(rng, 2).title() if i else "To", 12)
        sheet.text(380, 130 + 16 * i, ("No. ", "Date ", "Order ", "Terms ")[i]
                   + str(rng.integers(1000, 999999)), 12)
    sheet.text(50, 215, "Invoice", 22, colour, True)
    sheet.box(50, 250, 570, 270, colour)
    for x, head in ((55, "Item"), (330, "Count"), (410, "Price"), (490, "Sum")):
        sheet.text(x, 253, head, 12, (255, 255, 255))
    count, y = int(rng.integers(6, 18)), 276
    for _ in range(count):
        sheet.text(55, y, words(rng, 3), 11)
        sheet.text(335, y, str(rng.integers(1, 60)), 11)
        sheet.text(410, y, amount(rng), 11)
        sheet.text(490, y, amount(rng), 11)
        sheet.line([(50, y + 18), (570, y + 18)], (190, 190, 190))
        y += 22
    sheet.text(410, y + 10, "Total", 14, bold=True)
    sheet.text(490, y + 10, amount(rng), 14, bold=True)
    sheet.text(50, 800, words(template, 14), 9, (90, 90, 90))
    sheet.text(50, 815, words(template, 14), 9, (90, 90, 90))
    return sheet.done()


def spreadsheet(maker, rng, template):
    sheet = Sheet(maker, 800, 600)
    columns, height = (8, 10, 7)[maker], (20, 18, 24)[maker]
    step = 760 / columns
    sheet.box(20, 20, 780, 20 + height, ((220, 220, 220), (60, 90, 150), (240, 230, 200))[maker])
    kinds = template.integers(0, 3, columns)
    y = 20
    while y + height < 590:
        for c in range(columns):
            x = 20 + c * step
            sheet.box(x, y, x + step, y + height, None, (150, 150, 150))
            if y == 20:
                sheet.text(x + 4, y + 4, word(template), 11, bold=True)
            elif rng.random() < 0.9:
                text = (words(rng, 1), amount(rng), str(rng.integers(1, 1000)))[kinds[c]]
                sheet.text(x + 4 if kinds[c] == 0 else x + step - 5 - sheet.width(text, 11), y + 4,
                           text, 11)
        y += height
    return sheet.done()


# --- drawn -----------------------------------------------------------------------------------------


def drawing(maker, rng, template):
    sheet = Sheet(maker, 700, 520)
    if maker == 0:  # floor plans
        def split(x0, y0, x1, y1, depth):
            sheet.box(x0, y0, x1, y1, None, (0, 0, 0), 2)
            if depth == 0 or (x1 - x0 < 90 and y1 - y0 < 90):
                if rng.random() < 0.5:
                    sheet.oval((x0 + x1) / 2 - 12, (y0 + y1) / 2 - 12, (x0 + x1) / 2 + 12,
                               (y0 + y1) / 2 + 12, None, (0, 0, 0))
                return
            at = rng.uniform(0.3, 0.7)
            if x1 - x0 > y1 - y0:
                split(x0, y0, x0 + (x1 - x0) * at, y1, depth - 1)
                split(x0 + (x1 - x0) * at, y0, x1, y1, depth - 1)
            else:
                split(x0, y0, x1, y0 + (y1 - y0) * at, depth - 1)
                split(x0, y0 + (y1 - y0) * at, x1, y1, depth - 1)
        split(60, 50, 640, 440, 4)
        sheet.text(60, 470, words(rng, 3), 12)
    elif maker == 1:  # curves over a grid
        sheet.line([(60, 30), (60, 460), (660, 460)], width=2)
        for i in range(10):
            sheet.line([(60, 30 + 43 * i), (660, 30 + 43 * i)], (200, 200, 200))
            sheet.text(25, 24 + 43 * i, str(100 - 10 * i), 10)
        for _ in range(3):
            y = 245 + np.cumsum(rng.normal(0, 26, 31))
            sheet.line(list(zip(60 + 20 * np.arange(31), np.clip(y, 35, 455))), width=2)
    else:  # segments, circles and rays
        for _ in range(14):
            x, y = rng.uniform(80, 620), rng.uniform(80, 440)
            r = rng.uniform(15, 75)
            sheet.oval(x - r, y - r, x + r, y + r, None, (0, 0, 0))
            sheet.line([(x, y), (rng.uniform(20, 680), rng.uniform(20, 500))])
        sheet.box(20, 20, 680, 500, None, (0, 0, 0), 2)
    return sheet.done()


def screenshot(maker, rng, template):
    dark = maker == 1
    sheet = Sheet(maker, 960, 600, (30, 32, 38) if dark else (250, 250, 250))
    ink = (210, 210, 210) if dark else (20, 20, 20)
    bar = ((60, 100, 170), (50, 52, 60), (225, 225, 230))[maker]
    sheet.box(0, 0, 960, 30, bar)
    for i in range(3):
        sheet.oval(880 + 25 * i, 9, 892 + 25 * i, 21, ((255, 90, 80), (250, 190, 50), (60, 200, 80))[i])
    for i in range(6):
        sheet.text(12 + 70 * i, 36, word(template), 12, ink)
    sheet.box(0, 56, 190, 600, (40, 44, 52) if dark else (235, 236, 240))
    for i in range(24):
        sheet.text(16 + 14 * (i % 3), 64 + 22 * i, words(template, 2)[:18], 11, ink)
    y = 66
    while y < 570:
        if maker == 2:  # chat messages
            own, text = rng.random() < 0.5, words(rng, int(rng.integers(3, 9)))
            wide = sheet.width(text, 13) + 24
            x = 940 - wide if own else 210
            sheet.box(x, y, x + wide, y + 32, (190, 220, 250) if own else (226, 226, 226))
            sheet.text(x + 12, y + 9, text, 13)
            y += 44
        else:  # lines of source code
            x = 225 + 24 * int(rng.integers(0, 4))
            sheet.text(196, y, str(int(y / 19)), 10, (130, 130, 130))
            for _ in range(int(rng.integers(0, 8))):
                text = word(rng) + rng.choice(["(", ")", " =", ",", ";", "."])
                colour = [ink, (200, 80, 80), (70, 130, 220), (60, 150, 90)][int(rng.integers(0, 4))]
                sheet.text(x, y, text, 13, colour)
                x += sheet.width(text, 13) + 8
            y += 19
    return sheet.done()


def chess(maker, rng, template):
    side = (60, 56, 62)[maker]
    sheet = Sheet(maker, side * 8 + 20, side * 8 + 20)
    shades = (((240, 217, 181), (181, 136, 99)), ((255, 255, 255), (170, 170, 170)),
              ((235, 236, 208), (119, 149, 86)))[maker]
    squares = rng.permutation(64)[:int(rng.integers(14, 28))]
    pieces = dict(zip(squares.tolist(), rng.choice(list("KQRRBBNNPPPPPPkqrrbbnnpppppp"), 28, False)))
    glyphs = dict(zip("KQRBNPkqrbnp", "♔♕♖♗♘♙♚♛♜♝♞♟"))
    for s in range(64):
        x, y = 10 + s % 8 * side, 10 + s // 8 * side
        sheet.box(x, y, x + side - 1, y + side - 1, shades[(s + s // 8) % 2])
        if s in pieces:
            piece = pieces[s]
            if maker == 2:
                white = piece.isupper()
                sheet.oval(x + 8, y + 8, x + side - 8, y + side - 8, (250, 250, 250) if white else (30, 30, 30),
                           (0, 0, 0), 2)
                sheet.text(x + side / 2 - 9, y + side / 2 - 12, piece.upper(), 26,
                           (0, 0, 0) if white else (255, 255, 255), True)
            else:
                sheet.text(x + 6, y - 4, glyphs[piece], side - 10, family=("DejaVu Sans", "FreeSerif")[maker])
    return sheet.done()


# --- like photographs ------------------------------------------------------------------------------


def wall(maker, rng, template):
    width, height = 640, 480
    mortar = ((170, 165, 160), (205, 200, 190), (235, 235, 235))[maker]
    base = np.array(((150, 75, 55), (120, 95, 80), (90, 130, 150))[maker], float)
    sheet = Sheet(maker, width, height, mortar)
    w, h = ((64, 24), (80, 40), (48, 48))[maker]
    for row in range(height // h + 2):
        for column in range(-1, width // w + 2):
            x, y = column * w + (w / 2 if maker != 2 and row % 2 else 0), row * h
            shade = np.clip(base * rng.uniform(0.75, 1.25) + rng.normal(0, 6, 3), 0, 255)
            sheet.box(x + 2, y + 2, x + w - 2, y + h - 2, tuple(int(c) for c in shade))
    image = np.asarray(sheet.done(), np.float32) * smooth(rng, width, height, 4, 0.8, 1.15)[..., None]
    grain = rng.normal(0, 12, (height, width)).astype(np.float32)
    image += cv2.GaussianBlur(grain, (0, 0), 1.2)[..., None] * (2.5 if maker != 2 else 1)
    return Image.fromarray(np.clip(image, 0, 255).astype(np.uint8))


COLOURS = ((200, 30, 40), (40, 150, 60), (40, 70, 190), (235, 195, 30), (130, 50, 150), (35, 35, 38))


def product(maker, rng, template, n):
    """Ten shapes in six colours."""
    which = np.random.default_rng([maker, n // 6])
    colour = np.array(COLOURS[n % 6], float)
    sheet = Sheet(maker, 500, 500, ((255, 255, 255), (245, 245, 242), (228, 230, 234))[maker])
    w, h, neck = which.uniform(80, 170), which.uniform(120, 190), which.uniform(0.2, 0.9)
    if maker != 1:
        sheet.oval(250 - w, 250 + h - 14, 250 + w, 250 + h + 14, (205, 205, 205))
    steps = 24
    for i in range(steps):  # light from the left
        light = 0.65 + 0.6 * np.exp(-((i - 7) / 6.0) ** 2)
        fill = tuple(int(c) for c in np.clip(colour * light + 25 * (light > 1.1), 0, 255))
        x0, x1 = 250 - w + 2 * w * i / steps, 250 - w + 2 * w * (i + 1) / steps
        sheet.shape([(x0, 250 - h * 0.4), (x1, 250 - h * 0.4), (x1, 250 + h), (x0, 250 + h)], fill)
        x0, x1 = 250 + (x0 - 250) * neck, 250 + (x1 - 250) * neck
        sheet.shape([(x0, 250 - h), (x1, 250 - h), (x1, 250 - h * 0.4), (x0, 250 - h * 0.4)], fill)
    if which.random() < 0.5:
        sheet.oval(250 + w * 0.8, 250 - h * 0.2, 250 + w * 1.5, 250 + h * 0.6, None,
                   tuple(int(c) for c in colour * 0.8), 14)
    if which.random() < 0.6:
        sheet.box(250 - w * 0.5, 250, 250 + w * 0.5, 250 + h * 0.5, (245, 245, 240))
        sheet.text(250 - w * 0.4, 250 + h * 0.15, word(which).upper(), 22, (30, 30, 30))
    return noisy(sheet.done(), rng, 2)


def portrait(maker, rng, template):
    sheet = Sheet(maker, 480, 600, ((90, 110, 140), (120, 120, 120), (200, 190, 170))[maker])
    for _ in range(40):  # the background of all pictures
        x, y, r = template.uniform(0, 480), template.uniform(0, 600), template.uniform(20, 120)
        c = int(template.integers(-25, 25))
        ground = tuple(int(np.clip(v + c, 0, 255)) for v in ((90, 110, 140), (120, 120, 120), (200, 190, 170))[maker])
        if maker == 1:
            sheet.box(x, 0, x + r / 3, 600, ground)
        else:
            sheet.oval(x - r, y - r, x + r, y + r, ground)
    skin = np.array((225, 180, 150)) * rng.uniform(0.45, 1.05)
    hair = tuple(int(c) for c in np.array((140, 100, 60)) * rng.uniform(0.2, 1.4))
    cloth = tuple(rng.integers(20, 235, 3).tolist())
    skin = tuple(int(c) for c in np.clip(skin, 0, 255))
    x, y = 240 + rng.uniform(-18, 18), 240 + rng.uniform(-15, 15)
    w, h = rng.uniform(75, 105), rng.uniform(105, 140)
    style = rng.uniform(0.9, 1.5)
    sheet.oval(x - w * 1.2, y - h * 1.25, x + w * 1.2, y + h * style * 0.7, hair)
    sheet.box(x - w * 0.4, y + h * 0.6, x + w * 0.4, y + h * 1.4, skin)
    sheet.oval(x - 200 * rng.uniform(0.8, 1.1), y + h * 1.15, x + 200 * rng.uniform(0.8, 1.1), 760, cloth)
    sheet.oval(x - w, y - h, x + w, y + h, skin)
    dark = tuple(int(c * 0.5) for c in skin)
    apart, up = w * rng.uniform(0.35, 0.5), h * rng.uniform(0.05, 0.25)
    for side in (-1, 1):
        sheet.oval(x + side * apart - 14, y - up - 8, x + side * apart + 14, y - up + 8, (250, 250, 250))
        sheet.oval(x + side * apart - 7, y - up - 7, x + side * apart + 7, y - up + 7, (40, 30, 20))
        sheet.line([(x + side * apart - 20, y - up - 20), (x + side * apart + 20, y - up - 20 - 6 * rng.random())],
                   hair, int(rng.integers(3, 8)))
    sheet.line([(x, y - 5), (x + rng.uniform(-14, 14), y + h * 0.3), (x - 6, y + h * 0.32)], dark, 3)
    m, d = w * rng.uniform(0.3, 0.5), h * rng.uniform(0.5, 0.65)
    sheet.line([(x - m, y + d - rng.uniform(-6, 10)), (x, y + d), (x + m, y + d - rng.uniform(-6, 10))],
               (150, 50, 50), int(rng.integers(3, 9)))
    if rng.random() < 0.35:
        for side in (-1, 1):
            sheet.oval(x + side * apart - 26, y - up - 20, x + side * apart + 26, y - up + 20, None, (20, 20, 20), 3)
    image = sheet.done().filter(ImageFilter.GaussianBlur((0, 1.2, 0.8)[maker]))
    return noisy(image, rng, 4)


def frame(maker, rng, template, n):
    """Six clips of ten frames: a static scene, two objects that move by their own size, camera noise."""
    clip = np.random.default_rng([77, maker, n // 10])
    width, height = 640, 360
    still = sum(smooth(clip, width, height, c, 0, 90 / (i + 1)) for i, c in enumerate((4, 9, 25, 60)))
    tint = clip.uniform(0.6, 1.2, 3)
    ground = np.clip(still[..., None] * tint + 20, 0, 255).astype(np.uint8)
    sheet = Sheet(maker, width, height)
    base = Image.fromarray(ground)
    if maker == 2:
        sheet.array = np.array(base)
    else:
        sheet.image.paste(base.resize(sheet.image.size, Image.BICUBIC))
    for _ in range(12):
        x, y, r = clip.uniform(0, width), clip.uniform(0, height), clip.uniform(10, 60)
        sheet.box(x, y, x + r, y + r * clip.uniform(0.5, 2), tuple(clip.integers(20, 230, 3).tolist()))
    for _ in range(2):
        size, colour = clip.uniform(28, 60), tuple(clip.integers(10, 245, 3).tolist())
        x, y = clip.uniform(60, 300), clip.uniform(60, 300)
        x += (n % 10) * size * 0.8
        y += (n % 10) * clip.uniform(-12, 12)
        x, y = x % 640, y % 360
        sheet.oval(x - size / 2, y - size, x + size / 2, y + size, colour)
        sheet.oval(x - size / 4, y - size * 1.4, x + size / 4, y - size * 0.9, (220, 180, 150))
    return noisy(sheet.done(), rng, (3, 5, 2)[maker])


def sky(maker, rng, template):
    width, height = 640, 480
    values = np.stack([smooth(template, width, height, 3, 4, top) for top in ((22, 26, 40), (12, 14, 20),
                                                                            (40, 34, 50))[maker]], -1)
    if maker == 2:
        values[400:] = 2  # the same horizon
    count = (220, 500, 120)[maker]
    x, y = rng.uniform(3, width - 4, count), rng.uniform(3, (400 if maker == 2 else height) - 4, count)
    light = np.minimum(40 * rng.pareto(1.2, count) + 25, 900)
    stars = np.zeros((height, width), np.float32)
    np.add.at(stars, (y.astype(int), x.astype(int)), light)
    stars = cv2.GaussianBlur(stars, (0, 0), (0.9, 0.7, 1.3)[maker]) * 4
    return noisy(np.clip(values + stars[..., None], 0, 255), rng, (2, 4, 3)[maker])


KINDS = {
    "text": text_page, "text scanned": text_scanned, "text turned": text_turned, "forms": form,
    "invoices": invoice, "tables": spreadsheet, "line drawings": drawing, "screenshots": screenshot,
    "walls and tiles": wall, "products": product, "portraits": portrait, "video frames": frame,
    "night skies": sky, "chess diagrams": chess,
}
# Not used for choosing thresholds, like the last maker.
HELD_OUT = ("text turned", "invoices", "line drawings", "screenshots", "portraits", "night skies",
            "chess diagrams")


def picture(kind, maker, n):
    number = list(KINDS).index(kind)
    rng, template = np.random.default_rng([number, maker, n]), np.random.default_rng([number, maker])
    arguments = (maker, rng, template) + ((n,) if kind in ("products", "video frames") else ())
    return KINDS[kind](*arguments)


# --- how they are copied ---------------------------------------------------------------------------


def cut(image, share):
    width, height = image.size
    x, y = round(width * share), round(height * share)
    return image.crop((x, y, width - x, height - y))


ALTERATIONS = {
    "scanned again": (lambda i, rng: scan(i, rng, 0.5, False), 80),
    "quality 30": (lambda i, rng: i, 30),
    "grey": (lambda i, rng: i.convert("L"), 85),
    "scaled 0.5": (lambda i, rng: i.resize((i.width // 2, i.height // 2), Image.LANCZOS), 85),
    "brightness 1.25": (lambda i, rng: ImageEnhance.Brightness(i).enhance(1.25), 85),
    "blurred": (lambda i, rng: i.filter(ImageFilter.GaussianBlur(1.5)), 85),
    "cropped 1.5 % each side": (lambda i, rng: cut(i, 0.015), 85),
    "turned 1 degree": (lambda i, rng: i.rotate(1, Image.BICUBIC, fillcolor=i.getpixel((2, 2))), 85),
}


def altered(image, name, kind, maker, n):
    """Returns the picture, and the JPEG quality for saving it."""
    alter, quality = ALTERATIONS[name]
    rng = np.random.default_rng([list(KINDS).index(kind), maker, n, list(ALTERATIONS).index(name)])
    return alter(image, rng), quality
