"""Uses clpipe in one process with h5py, OpenCV, Pillow and torch, as far as they are installed:

    one_process.py before|after|alone PICTURE...

The other packages are imported and used before clpipe or after it; then clpipe is used once more. Prints the names
of these packages and a digest of what clpipe computes: clusters and neighbours of rows, features of the pictures."""

import hashlib
import importlib.util
import io
import sys

import numpy

PIXELS = numpy.add.outer(numpy.arange(60), numpy.arange(80))[..., None].repeat(3, axis=2).astype("uint8")
ROWS = numpy.random.default_rng(3).normal(size=(500, 24)).astype("float32")


def use_h5py():
    import h5py
    with h5py.File("memory", "w", driver="core", backing_store=False) as file:
        file.create_dataset("rows", data=ROWS, compression="gzip")
        assert (file["rows"][...] == ROWS).all()


def use_cv2():
    import cv2
    for kind in (".png", ".jpg", ".webp", ".tiff"):
        again = cv2.imdecode(cv2.imencode(kind, PIXELS)[1], cv2.IMREAD_COLOR)
        assert abs(again.astype(int) - PIXELS).mean() < 3


def use_pillow():
    from PIL import Image
    for kind in ("png", "jpeg", "webp", "gif", "tiff"):
        file = io.BytesIO()
        Image.fromarray(PIXELS).save(file, kind)
        assert abs(numpy.array(Image.open(file).convert("RGB")).astype(int) - PIXELS).mean() < 8


def use_torch():
    import torch
    rows = torch.from_numpy(ROWS).to("cuda" if torch.cuda.is_available() else "cpu")
    assert numpy.allclose((rows @ rows.T).cpu().numpy(), ROWS @ ROWS.T, atol=1e-3)


OTHERS = {"h5py": use_h5py, "cv2": use_cv2, "PIL": use_pillow, "torch": use_torch}
THERE = [name for name in OTHERS if importlib.util.find_spec(name)]


def use_others():
    for name in THERE:
        OTHERS[name]()


def use_clpipe(pictures):
    import clpipe
    labels = clpipe.KMeans(5, random_state=0).fit_predict(ROWS)
    distances, rows = clpipe.NearestNeighbors(n_neighbors=3).fit(ROWS).kneighbors(ROWS[:50])
    values = clpipe.features(pictures, ["rgb:bins=4x4x4", "hog:grid=2x2"])
    assert not numpy.isnan(values).any()
    return hashlib.sha256(b"".join(part.tobytes() for part in (labels, distances, rows, values))).hexdigest()


def main(order, *pictures):
    if order == "before":
        use_others()
    found = use_clpipe(pictures)
    if order != "alone":
        use_others()
    assert use_clpipe(pictures) == found
    print(*(() if order == "alone" else THERE), found)


if __name__ == "__main__":
    main(*sys.argv[1:])
