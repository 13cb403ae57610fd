#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the folder that the workspace benchmark backs up: about 2.3 GB in 60,000 files, like a checkout of a large C++
and Python project with its build. The same seed gives the same bytes.

Usage: workspace_corpus.py FOLDER [--seed N] [--scale 1.0]     makes it; FOLDER must not exist
       workspace_corpus.py FOLDER --change PERCENT [--seed N]  changes that much of it: edits, appends, new, removed and
                                                               renamed files, and parts of some programs
"""
import argparse
import os
import random
import sys

TEXT_FILES, OBJECT_FILES = 51_000, 9_500
LARGE = [("build/lib/libcore_cpu.so", 530), ("build/lib/libcore_accel.so", 220), ("build/lib/libmath.a", 150),
         ("build/lib/libprotocol.a", 60), ("build/lib/libruntime.so.2", 45), ("build/lib/libtests.a", 30),
         ("build/bin/unit_tests", 24), ("build/bin/benchmarks", 12), ("build/.ninja_deps", 9)]
PACKS = [180, 40, 9, 2]   # MB of the packs under .git, incompressible
SOURCE_ENDS = [".cpp", ".h", ".py", ".cu", ".cuh", ".txt", ".cmake", ".md", ".yaml", ".pyi", ".json"]
WORDS = ("tensor kernel stream device dispatch template typename const static inline return auto size_t int64_t float double void "
         "bool namespace include define struct class public private virtual override for while if else switch case break "
         "continue std vector string optional shared_ptr make_shared move forward at native core autograd grad backward input output "
         "weight bias stride shape dim index offset block thread warp shared memory copy cast scalar type check self other result "
         "options layout dtype pinned requires import from def lambda None True False assert raise with as torch_like test "
         "parametrize expected actual allclose random seed manual normal uniform zeros ones empty full arange").split()


def text_pool(rng, size):
    """Lines that compress about as well as source code does."""
    names = WORDS + [f"{rng.choice(WORDS)}_{rng.choice(WORDS)}" for _ in range(1500)] + [f"{rng.choice(WORDS)}{rng.randrange(1000)}"
                                                                                       for _ in range(1500)]
    marks = ["(", ")", ", ", " = ", " + ", "->", "::", ";\n", ";\n", " {\n    ", "\n}\n", ".", "<", ">", "[i]", " * ", "\n        ", "  // "]
    often = [1 / (rank + 8) for rank in range(len(names))]
    pieces, have = [], 0
    while have < size:
        chosen = rng.choices(names, often, k=4096)
        between = rng.choices(marks, k=4096)
        piece = "".join([word + mark for word, mark in zip(chosen, between)]).encode()
        pieces.append(piece)
        have += len(piece)
    return b"".join(pieces)


def code_pool(rng, size):
    """Bytes that compress about as well as machine code: few different operations, many small numbers."""
    operations = [rng.randbytes(rng.choice((2, 3, 3, 4, 5, 7))) for _ in range(400)] + [b"\0" * 4, b"\xff" * 4] * 20
    phrases = [b"".join(rng.choices(operations, k=rng.randrange(3, 9))) for _ in range(6000)]
    often = [1 / (rank + 4) for rank in range(len(phrases))]
    pieces, have = [], 0
    while have < size:
        piece = b"".join([phrase + number.to_bytes(2, "little") for phrase, number in zip(
            rng.choices(phrases, often, k=8192), rng.choices(range(3000), k=8192))])
        pieces.append(piece)
        have += len(piece)
    return b"".join(pieces)


class Maker:
    def __init__(self, seed):
        self.rng = random.Random(seed)
        pools = random.Random(seed ^ 0x5EED)
        self.text = text_pool(pools, 24_000_000)
        self.code = code_pool(pools, 24_000_000)

    def source(self, size):
        start = self.rng.randrange(len(self.text) - min(size, len(self.text) // 2))
        return b"// %016x\n" % self.rng.getrandbits(64) + self.text[start:start + size]

    def object(self, size):
        """Machine code, some names, some tables that do not get smaller, zeros."""
        rng, pieces, have = self.rng, [], 0
        while have < size:
            kind, length = rng.random(), rng.randrange(500, 9000)
            if kind < 0.62:
                start = rng.randrange(len(self.code) - length)
                pieces.append(self.code[start:start + length])
            elif kind < 0.80:
                start = rng.randrange(len(self.text) - length)
                pieces.append(self.text[start:start + length])
            elif kind < 0.92:
                pieces.append(rng.randbytes(length))
            else:
                pieces.append(bytes(length))
            have += length
        return b"".join(pieces)[:size]

    def size(self, median, sigma, most):
        return min(most, max(0, int(median * self.rng.lognormvariate(0, sigma))))


def put(path, data, made=set()):  # `made`: folders that are there
    folder = os.path.dirname(path)
    if folder not in made:
        os.makedirs(folder, exist_ok=True)
        made.add(folder)
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view):]
    finally:
        os.close(fd)


def folder_names(rng, count):
    """Paths of folders, some of them deep, most of them near each other."""
    folders = ["core", "native", "python", "test", "third_party", "docs", "tools", "caffe"]
    while len(folders) < count:
        parent = folders[int(len(folders) * rng.random() ** 1.3)]
        if parent.count("/") < 14:
            folders.append(f"{parent}/{rng.choice(WORDS)}_{len(folders) % 97}")
    return folders


def make_sources(maker, root, count):
    rng = maker.rng
    folders = folder_names(rng, max(8, count // 11))
    for number in range(count):
        folder = folders[int(len(folders) * rng.random())]
        name = f"{rng.choice(WORDS)}_{number}{rng.choice(SOURCE_ENDS)}"
        size = 0 if number % 61 == 0 else maker.size(4200, 1.15, 900_000)
        put(f"{root}/{folder}/{name}", maker.source(size) if size else b"")
        if number % 400 == 0:
            os.symlink(name, f"{root}/{folder}/latest_{number}")
    return folders


def make_build(maker, root, folders, count):
    for number in range(count):
        folder = folders[int(len(folders) * maker.rng.random())]
        path = f"{root}/build/objects.dir/{folder}/{maker.rng.choice(WORDS)}_{number}.cpp.o"
        put(path, maker.object(maker.size(28_000, 1.2, 3_000_000)))


def make_large(maker, path, megabytes):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as out:
        for _ in range(max(1, int(megabytes))):
            out.write(maker.object(1_000_000))


def make_git(maker, root, scale):
    put(f"{root}/.git/HEAD", b"ref: refs/heads/main\n")
    for number, megabytes in enumerate(PACKS):
        os.makedirs(f"{root}/.git/objects/pack", exist_ok=True)
        with open(f"{root}/.git/objects/pack/pack-{number}.pack", "wb") as out:
            for _ in range(max(1, int(megabytes * scale))):
                out.write(maker.rng.randbytes(1_000_000))
    for number in range(int(800 * scale)):
        name = maker.rng.randbytes(20).hex()
        put(f"{root}/.git/objects/{name[:2]}/{name[2:]}", maker.rng.randbytes(maker.size(900, 1.0, 60_000)))


def make(root, seed, scale):
    maker = Maker(seed)
    os.makedirs(root)
    folders = make_sources(maker, root, int(TEXT_FILES * scale))
    make_build(maker, root, folders, int(OBJECT_FILES * scale))
    for path, megabytes in LARGE:
        make_large(maker, f"{root}/{path}", megabytes * scale)
    make_git(maker, root, scale)


def all_files(root):
    """[(path, size)] of the regular files, in an order that does not depend on the disk; not what Overcap keeps there itself."""
    found = []
    for folder, folders, names in os.walk(root):
        if folder == root and ".overcap" in folders:
            folders.remove(".overcap")
        folders.sort()
        for name in sorted(names):
            path = os.path.join(folder, name)
            if not os.path.islink(path):
                found.append((path, os.stat(path).st_size))
    return found


def overwrite(path, offset, data):
    with open(path, "r+b") as out:
        out.seek(offset)
        out.write(data)


def change_one(maker, path, size, turn):
    """One of the things that a day of work does to a file."""
    rng = maker.rng
    make_content = maker.object if path.endswith(".o") else maker.source
    if turn < 45 and size > 200:      # an edit in the middle: the rest moves
        with open(path, "rb") as old:
            data = old.read()
        at = rng.randrange(size)
        put(path, data[:at] + maker.source(rng.randrange(10, 400)) + data[at + rng.randrange(80):])
    elif turn < 60:
        with open(path, "ab") as out:
            out.write(maker.source(rng.randrange(20, 2000)))
    elif turn < 75:                   # compiled again
        put(path, make_content(max(100, int(size * rng.uniform(0.9, 1.1)))))
    elif turn < 85:
        put(f"{path}.new{os.path.splitext(path)[1]}", make_content(maker.size(6000, 1.0, 200_000)))
    elif turn < 93:
        os.unlink(path)
    else:
        os.rename(path, os.path.join(os.path.dirname(path), "renamed_" + os.path.basename(path)))


def change(root, percent, seed):
    maker = Maker(seed ^ 0xC4A6E)
    files = all_files(root)
    small = [file for file in files if file[1] < 4_000_000]
    for path, size in maker.rng.sample(small, min(len(small), int(len(files) * percent / 100))):
        change_one(maker, path, size, maker.rng.randrange(100))
    budget = int(sum(size for _, size in files) * percent / 100)
    for path, size in sorted(files, key=lambda file: (file[1], file[0])):
        if size < 10_000_000 or ".git" in path:
            continue
        budget -= size
        if budget < 0:
            break
        for _ in range(5):            # linked again: runs of it differ
            length = size // 20
            overwrite(path, maker.rng.randrange(size - length), maker.object(length))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--scale", type=float, default=1.0, help="0.01 makes a hundredth of it")
    parser.add_argument("--change", type=float, metavar="PERCENT")
    options = parser.parse_args()
    if options.change is not None:
        change(options.folder, options.change, options.seed)
    elif os.path.exists(options.folder):
        sys.exit(f"'{options.folder}' is there already")
    else:
        make(options.folder, options.seed, options.scale)


if __name__ == "__main__":
    main()
