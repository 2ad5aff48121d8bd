"""tests/pictures_check.py FOLDER CELLS.CSV: reads the pictures of a report with nothing of bench's: Python's XML parser, its csv reader and zlib."""

import csv
import pathlib
import re
import struct
import sys
import xml.etree.ElementTree
import zlib

SVG = "{http://www.w3.org/2000/svg}"
folder, table = pathlib.Path(sys.argv[1]), sys.argv[2]
cells = [row for row in csv.DictReader(open(table, encoding="utf-8")) if row["status"] == "ok"]


def figure(text):
    """`37.2 [33.2–44.6]` as numbers, each with half of its last digit."""
    found = re.fullmatch(r"([\d.]+) \[([\d.]+)–([\d.]+)\]", text.strip())
    return [(float(part), 0.5001 * 10.0 ** -len(part.partition(".")[2])) for part in found.groups()] if found else None


def match(name, shown, wanted):
    """Every figure shown is one of the table's, rounded; each once."""
    assert len(shown) == len(wanted), (name, len(shown), len(wanted))
    for found in shown:
        fits = [exact for exact in wanted if all(abs(a - b) <= half for (a, half), b in zip(found, exact))]
        assert fits, (name, found, wanted)
        wanted.remove(fits[0])


def values(name, root):
    """The figures and the lengths of the bars of a chart are those of the table."""
    kind = next((metric for word, metric in (("-decode-rate", "decode_tok_s"), ("-time-to-first-token", "ttft_ms")) if name.endswith(word)), None)
    if kind is None:
        return 0
    wanted = [tuple(float(row[kind + end]) for end in ("", "_lo", "_hi")) for row in cells if name.startswith(row["device_class"])]
    shown = [found for found in (figure(text.text or "") for text in root.iter(SVG + "text")) if found]
    match(name, shown, wanted)
    lengths = [float(bar.get("width")) for bar in root.iter(SVG + "rect") if bar.get("fill") != "#FFFFFF"]
    assert len(lengths) == len(shown), (name, len(lengths))
    # Figures are rounded, each in its own way, and with them their sum.
    scale = sum(lengths) / sum(found[0][0] for found in shown)
    doubt = sum(found[0][1] for found in shown) / sum(found[0][0] for found in shown)
    for length, found in zip(lengths, shown):
        value, half = found[0]
        assert abs(length - value * scale) <= (half + doubt * value) * scale + 1.5, (name, length, found, scale)
    return len(shown)


def pixels(data):
    """Width, height and the first rows of a PNG, unfiltered (PNG specification, section 9)."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, image = 8, b""
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at : at + 8])
        body = data[at + 8 : at + 8 + length]
        assert zlib.crc32(kind + body) == struct.unpack(">I", data[at + 8 + length : at + 12 + length])[0]
        if kind == b"IHDR":
            width, height, depth, colour = struct.unpack(">IIBB", body[:10])
        elif kind == b"IDAT":
            image += body
        at += 12 + length
    channels = {2: 3, 6: 4}[colour]
    raw, stride = zlib.decompress(image), width * channels
    assert depth == 8 and len(raw) == height * (stride + 1)
    rows, above = [], bytes(stride)
    for y in range(100):
        method, line = raw[y * (stride + 1)], bytearray(raw[y * (stride + 1) + 1 : (y + 1) * (stride + 1)])
        if method or any(line):
            for x in range(stride):
                a, b = line[x - channels] if x >= channels else 0, above[x]
                c = above[x - channels] if x >= channels else 0
                p = a + b - c
                paeth = min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))[2]
                line[x] = (line[x] + (0, a, b, (a + b) // 2, paeth)[method]) % 256
        rows.append(bytes(line))
        above = bytes(line)
    return width, height, channels, rows


names, compared = [], 0
for path in sorted(folder.glob("*.svg")):
    root = xml.etree.ElementTree.parse(path).getroot()
    assert root.tag == SVG + "svg" and root.find(SVG + "title").text
    texts = [text.text or "" for text in root.iter(SVG + "text")]
    assert any("Emulator time is not device time" in text for text in texts) == path.name.startswith("emulator-"), path.name
    assert not any("NaN" in text or "inf" == text.strip() for text in texts), path.name
    names.append((path.stem, float(root.get("width")), float(root.get("height"))))
    compared += values(path.stem, root)
assert {name for name, *_ in names} == {path.stem for path in folder.glob("*.png")}
for name, width, height in names:
    data = (folder / f"{name}.png").read_bytes()
    assert struct.unpack(">II", data[16:24]) == (2 * width, 2 * height), name
for name, width, height in (names[0], names[-1]):
    wide, high, channels, rows = pixels((folder / f"{name}.png").read_bytes())
    assert rows[0] == b"\xff" * (wide * channels), f"{name}: its ground is not white"
    dark = sum(1 for row in rows for x in range(0, len(row), channels) if row[x] < 100)
    assert 1_000 < dark < wide * len(rows) / 4, f"{name}: {dark} dark pixels where its title is"
print(f"{len(names)} pictures, {compared} figures")
