#!/usr/bin/env python3
"""Checks an export of a strand. Written from docs/FORMAT.md only: no code is shared with the server.

    python3 examples/verify.py export.ndjson --public-key 03a107bf... --strand 3fb907e7...
        [--checkpoint kept.note [--log log.ndjson [--log-key 5f03...]]]

--strand is the id of the strand as noted when it was first seen: the owner of the key can begin another strand with it.
--checkpoint also checks that the strand begins with the records of an earlier checkpoint, for example from an answer as
of a moment. If it is a checkpoint of the server log, --log is an export of that log.

Python's standard library has SHA-256 but no Ed25519. With the package `cryptography`, signatures, key rotations and the
checkpoint are checked too. Without it, only the chain, the hashes, the bodies and the tree are checked, the last line
says so, and the exit code is not 0: then a strand that is forged completely passes.

Exit codes: 0 valid, 1 invalid, 2 wrong usage, 3 no fault found but signatures were not checked.
"""

import argparse
import base64
import binascii
import codecs
import hashlib
import json
import re
import sys

try:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
except ImportError:
    Ed25519PublicKey = None

ZEROS = "0" * 64
SAFE_INTEGER = 2**53 - 1
LINE_BYTES_MAX = 8 * 1024 * 1024
DEPTH_MAX = 64
HEADER = re.compile(
    r"strand-record/v1\n"
    r"strand (?P<strand>[0-9a-f]{64})\n"
    r"key (?P<key>[0-9a-f]{64})\n"
    r"seq (?P<seq>0|[1-9][0-9]{0,15})\n"
    r"prev (?P<prev>[0-9a-f]{64})\n"
    r"hlc (?P<hlc>[0-9a-f]{12}-[0-9a-f]{4})\n"
    r"type (?P<type>[a-z0-9_./-]{1,64})\n"
    r"body (?P<body>[0-9a-f]{64})\n"
)
# Listed explicitly, because each language has another set of white-space characters.
NAME = "[^+\\u0000-\\u0020\\u007f-\\u00a0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000\\ufeff]+"
NOTE = re.compile(
    rf"(?P<text>(?P<origin>{NAME})\n(?P<size>0|[1-9][0-9]{{0,15}})\n(?P<root>[A-Za-z0-9+/]{{43}}=)\n)\n"
    rf"(?P<lines>(?:\u2014 {NAME} [A-Za-z0-9+/=]+\n){{1,16}})"
)
# Ed25519: the prime of the field, the order of the group, and y of the points of small order (docs/FORMAT.md, Signatures).
PRIME = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
ORDER_8_Y = int.from_bytes(bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"), "little")
SMALL_ORDER_Y = (0, 1, PRIME - 1, ORDER_8_Y, PRIME - ORDER_8_Y)


class Fault(Exception):
    """What is wrong with the export or the checkpoint."""


def expect(holds, reason):
    if not holds:
        raise Fault(reason)


def is_hex(value, digits):
    return isinstance(value, str) and re.fullmatch(f"[0-9a-f]{{{digits}}}", value) is not None


def is_count(value):
    return type(value) is int and 0 <= value <= SAFE_INTEGER


def sha256(*parts):
    return hashlib.sha256(b"".join(parts)).digest()


def is_point(encoded):
    """Whether a key or an R is acceptable: y below the prime, and not of small order."""
    y = int.from_bytes(encoded, "little") & (2**255 - 1)
    return y < PRIME and y not in SMALL_ORDER_Y


def signature_verifies(key, message, signature):
    """Whether the signature is valid for the key, both as bytes. Without Ed25519, every well-formed signature is."""
    if len(signature) != 64 or not is_point(key) or not is_point(signature[:32]):
        return False
    if int.from_bytes(signature[32:], "little") >= ORDER:
        return False
    if Ed25519PublicKey is None:
        return True
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, message)
        return True
    except (InvalidSignature, ValueError):
        return False


def members_of(pairs):
    members = dict(pairs)
    if len(members) != len(pairs) or any(key == "__proto__" or "\0" in key for key in members):
        raise ValueError("A key stands twice in one object, or is none")
    return members


def refuse_number(text):
    raise ValueError(f"{text} is not a number here")


def count_of(text):
    """A number in a line: decimal digits, at most 2^53-1."""
    if text.startswith("-") or len(text) > 16 or int(text) > SAFE_INTEGER:
        refuse_number(text)
    return int(text)


def depth_of(text):
    """The depth of nested arrays and objects, ignoring strings."""
    depth = deepest = at = 0
    while at < len(text):
        character = text[at]
        if character == '"':
            at += 1
            while at < len(text) and text[at] != '"':
                at += 2 if text[at] == "\\" else 1
        elif character in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif character in "]}":
            depth -= 1
        at += 1
    return deepest


def parse_object(raw):
    """The members of a line, or None. It must be a flat JSON object without duplicate keys and lone surrogates, and its numbers are counts."""
    try:
        text = raw.decode()
        if depth_of(text) > 1:
            return None
        value = json.loads(
            text,
            object_pairs_hook=members_of,
            parse_constant=refuse_number,
            parse_float=refuse_number,
            parse_int=count_of,
        )
        # Python accepts the escape of a lone surrogate, which cannot be encoded as UTF-8.
        json.dumps(value, ensure_ascii=False).encode()
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def parse_body(text):
    """The value of a body, parsed as strictly. Numbers other than integers are texts. ValueError if it is not JSON."""
    if depth_of(text) > DEPTH_MAX:
        raise ValueError("Too many levels")
    value = json.loads(
        text,
        object_pairs_hook=members_of,
        parse_constant=refuse_number,
        parse_float=str,
        parse_int=lambda digits: int(digits) if len(digits) < 17 else digits,
    )
    json.dumps(value, ensure_ascii=False).encode()
    return value


def body_members(body, parse_number=None):
    """The members of a body; none if it is not an object, or has numbers that `parse_number` refuses."""
    try:
        value = parse_body(body)
        if parse_number is not None:
            value = json.loads(body, parse_float=refuse_number, parse_int=parse_number)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


class Tree:
    """The root of an RFC 6962 tree over a stream of hashes. Stores one node for each height."""

    def __init__(self):
        self.nodes = []

    def append(self, node):
        height = 0
        while self.nodes and self.nodes[-1][0] == height:
            node = sha256(b"\x01", self.nodes.pop()[1], node)
            height += 1
        self.nodes.append((height, node))

    def root(self):
        node = self.nodes[-1][1]
        for _, left in reversed(self.nodes[:-1]):
            node = sha256(b"\x01", left, node)
        return node


class Strand:
    """The records of an export, each checked against the earlier ones (docs/FORMAT.md, Checking an export)."""

    def __init__(self, manifest, trusted_key, kept=None, logged=None):
        self.manifest = manifest
        self.trusted_key = trusted_key
        self.kept = kept
        self.logged = logged
        self.trusted = trusted_key is None
        self.key = manifest["public_key"]
        self.next_seq = manifest["from_seq"]
        self.head = None
        self.hlc = ""
        self.seal_awaited = None
        self.tree = Tree()
        self.records = self.signed = self.sealed = self.erased = self.withheld = self.imported = 0
        self.unexplained = {}

    def take(self, line):
        text = line["h"]
        header = HEADER.fullmatch(text)
        expect(header is not None, "The header is not of the form strand-record/v1")
        digest = sha256(b"\x00", text.encode())
        self.check_links(header, digest.hex())
        self.check_body(header, line)
        self.check_genesis(header, line)
        self.check_seal(line)
        if header["type"] == "sys/key_rotate":
            self.rotate(line)
        self.tree.append(digest)
        self.head, self.hlc = digest.hex(), header["hlc"]
        self.next_seq += 1
        self.records += 1
        self.explain(header, line)
        # On the strands of the server, records of this type are about imports of other strands.
        if header["type"] == "sys/imported" and not self.manifest["agent"].startswith("server::"):
            self.imported = int(header["seq"])
        if self.kept is not None:
            self.kept.follow(self)
        if self.logged is not None:
            self.logged.follow(self, header, line)

    def explain(self, header, line):
        """An erased body is unexplained until a sys/erase with its record follows."""
        if "erased" in line:
            self.unexplained[int(header["seq"])] = self.head
        elif header["type"] == "sys/erase" and "body" in line:
            members = body_members(line["body"], count_of)
            seq, target = members.get("target_seq"), members.get("target")
            if type(seq) is int and self.unexplained.get(seq) == target:
                del self.unexplained[seq]

    def check_links(self, header, digest):
        seq, strand = int(header["seq"]), self.manifest["strand"]
        expect(seq == self.next_seq, f"Expected seq {self.next_seq}, found {seq}")
        if seq == 0:
            expect(header["strand"] == header["prev"] == ZEROS, "Genesis names a strand or a record before it")
            expect(digest == strand, "The strand is not the hash of its genesis record")
        else:
            expect(header["strand"] == strand, "The record belongs to another strand")
        expect(self.head in (None, header["prev"]), "The record does not name the hash of the one before")
        expect(header["key"] == self.key, "The record names a key that is not in force")
        expect(header["hlc"] > self.hlc, "The clock does not go forward")

    def check_body(self, header, line):
        if "body" not in line:
            named = header["type"] in ("sys/genesis", "sys/key_rotate")
            missing = "withheld" if "withheld" in line else "erased"
            expect(not named, f"A record that names a key is {missing}")
            if missing == "erased":
                self.erased += 1
            else:
                self.withheld += 1
            return
        commitment = sha256(b"strand-body/v1\n", bytes.fromhex(line["salt"]), line["body"].encode())
        expect(commitment.hex() == header["body"], "The body is not the one committed to")
        try:
            parse_body(line["body"])
        except ValueError:
            raise Fault("The body is not JSON") from None

    def check_genesis(self, header, line):
        is_first = header["seq"] == "0"
        expect(is_first == (header["type"] == "sys/genesis"), "Genesis is record 0 and no other")
        if is_first:
            members = body_members(line["body"])
            expect(members.get("agent") == self.manifest["agent"], "The genesis record names another agent")
            expect(members.get("public_key") == header["key"], "The genesis record names another key")

    def check_seal(self, line):
        if "sig" in line:
            signature = bytes.fromhex(line["sig"])
            verifies = signature_verifies(bytes.fromhex(self.key), line["h"].encode(), signature)
            expect(verifies, "The signature does not verify")
            self.signed += 1
            self.trusted = self.trusted or self.key == self.trusted_key
            if self.seal_awaited == self.next_seq:
                self.seal_awaited = None
            return
        sealed_by = line["sealed_by"]
        expect(self.seal_awaited != self.next_seq, "The record seals others and is not signed")
        expect(sealed_by > self.next_seq, "The record is neither signed nor sealed by a later one")
        expect(self.seal_awaited in (None, sealed_by), "Two sealed groups overlap")
        self.seal_awaited = sealed_by
        self.sealed += 1

    def rotate(self, line):
        expect("sig" in line, "A key rotation is not signed")
        members = body_members(line["body"])
        key, proof = members.get("public_key"), members.get("proof")
        expect(is_hex(key, 64) and is_hex(proof, 128), "A key rotation names no new key")
        text = f"strand-key-rotate/v1\n{self.manifest['strand']}\n{key}\n"
        proven = signature_verifies(bytes.fromhex(key), text.encode(), bytes.fromhex(proof))
        expect(proven, "A key rotation does not prove its new key")
        self.key = key

    def check_end(self, trailer):
        to_seq = self.manifest["to_seq"]
        expect(self.records > 0, "The export has no records")
        expect(self.next_seq == to_seq + 1, f"The manifest promises records up to seq {to_seq}")
        expect(self.manifest["record_count"] >= to_seq, "The manifest counts too few records")
        expect(self.seal_awaited is None, "The last record is not signed")
        expect(self.trusted, "No record is signed by the key given")
        expect(trailer["chain_head"] == self.head, "The chain head is not the hash of the last record")
        expect(trailer["records"] == self.records, f"The trailer counts {trailer['records']} records")
        end_count = trailer.get("record_count", self.manifest["record_count"])
        expect(end_count >= self.manifest["record_count"], "The trailer counts fewer records of the strand")
        if trailer["checkpoint"] is not None:
            self.check_checkpoint(trailer["checkpoint"])
        is_whole = self.manifest["from_seq"] == 0 and trailer.get("record_count") == to_seq and self.withheld == 0
        missing = [seq for seq in self.unexplained if seq >= self.imported]
        if is_whole and missing:
            raise Fault(f"line {min(missing) + 2}: The body is missing, and no sys/erase record names it")

    def check_checkpoint(self, text):
        note = parse_note(text)
        expect(note is not None and is_signed_by(note, self.key), "The checkpoint does not verify")
        expect(note["origin"] == f"strandfast/{self.manifest['strand']}", "The checkpoint is of another strand")
        expect(int(note["size"]) == self.next_seq, "The checkpoint is of another number of records")
        if self.manifest["from_seq"] == 0:
            expect(note["root"] == self.tree.root(), "The root of the checkpoint is another")


class LoggedHeads:
    """The heads of a strand in the server log, read while the log is checked (docs/FORMAT.md, The server log)."""

    def __init__(self, strand, before):
        self.strand = strand
        self.before = before
        self.sizes = {}
        self.settled = 0

    def follow(self, log, header, line):
        """Called after each record of the log."""
        seq = int(header["seq"])
        if seq == 0:
            return
        expect(header["type"] == "sys/heads", f"Record {seq} of the log is not of heads")
        expect("body" in line, f"Record {seq} of the log has no body")
        heads = read_heads(line["body"])
        expect(heads is not None, f"Record {seq} of the log cannot be read")
        if self.strand not in heads:
            return
        size, digest = heads[self.strand]
        last = max(self.sizes, default=0)
        expect(size > last, f"Record {seq} of the log tells of {size} records, {last} were told before")
        self.sizes[size] = digest
        if seq < self.before:
            self.settled = size

    def check(self, size, hashes, first_seq):
        """Compares a strand of `size` records. `hashes` has its head at each logged size."""
        expect(self.settled > 0, f"The log of {self.before} records does not tell of this strand")
        cut = f"The tail was cut: the log told of {self.settled} records, the export has {size}"
        expect(self.settled <= size, cut)
        for logged_size, digest in self.sizes.items():
            if logged_size > size:
                continue
            expect(logged_size > first_seq, f"The log tells of record {logged_size - 1}, which the export leaves out")
            forked = f"The strand was forked at or before record {logged_size - 1}: the log told of another"
            expect(hashes.get(logged_size) == digest, forked)


class Hashes:
    """The heads of a strand by its sizes."""

    def __init__(self):
        self.by_size = {}

    def follow(self, strand, header, line):
        self.by_size[strand.next_seq] = strand.head


def read_heads(body):
    """Size and hash by strand, or None if it is not the body of a sys/heads."""
    members = body_members(body, count_of)
    clocks, heads = members.get("clocks"), members.get("heads")
    if not isinstance(clocks, list) or not isinstance(heads, list) or len(heads) > 256:
        return None
    hlc = re.compile("[0-9a-f]{12}-[0-9a-f]{4}")
    if not all(isinstance(clock, str) and hlc.fullmatch(clock) for clock in clocks):
        return None
    for head in heads:
        if not isinstance(head, list) or len(head) != 3 or not is_hex(head[0], 64) or not is_hex(head[2], 64):
            return None
        if not is_count(head[1]) or head[1] == 0:
            return None
    by_strand = {strand: (size, digest) for strand, size, digest in heads}
    return by_strand if len(by_strand) == len(heads) else None


class Kept:
    """An earlier checkpoint, compared with a strand (docs/FORMAT.md, A checkpoint of the past)."""

    def __init__(self, text):
        self.note = parse_note(text)
        expect(self.note is not None, "The checkpoint is not a valid signed note")
        self.size = int(self.note["size"])
        self.key = self.root = None
        self.key_signs = self.vouched = self.former = False

    def follow(self, strand):
        """Called after each record: strand.key is the current key after strand.next_seq records."""
        if strand.key != self.key:
            self.key, self.key_signs = strand.key, is_signed_by(self.note, strand.key)
        if self.key_signs:
            self.former = self.former or strand.next_seq < self.size
            self.vouched = self.vouched or strand.next_seq >= self.size
        if strand.next_seq == self.size:
            self.root = strand.tree.root()

    def check(self, strand):
        manifest, size = strand.manifest, self.size
        expect(self.note["origin"] == f"strandfast/{manifest['strand']}", "The checkpoint is of another strand")
        expect(manifest["from_seq"] == 0, "Only an export from seq 0 can be compared with a checkpoint")
        # The current key at the end of an export with fewer records is not a former key.
        vouched = self.vouched or self.key_signs
        if self.former and not vouched:
            raise Fault(f"The checkpoint is signed by a key that was rotated away before the strand had {size} records")
        then = f"the key in force after {min(size, strand.next_seq)} records"
        expect(vouched, f"The checkpoint is not signed by {then}, nor by one of a later rotation in the export")
        has = f"the checkpoint has {size} records, the export {strand.next_seq}"
        expect(self.root is not None, f"The tail was cut: {has}")
        forked = f"The strand was forked at or before record {size - 1}"
        expect(self.root == self.note["root"], f"{forked}: the checkpoint is over other records")


def parse_note(text):
    """A signed note as a dict, or None if it is malformed."""
    match = NOTE.fullmatch(text)
    if match is None:
        return None
    lines = [line.split(" ")[1:] for line in match["lines"].rstrip("\n").split("\n")]
    signatures = [(name, exact_base64(encoded)) for name, encoded in lines]
    root = exact_base64(match["root"])
    if root is None or int(match["size"]) > SAFE_INTEGER:
        return None
    if any(signed is None or len(signed) <= 4 for _, signed in signatures):
        return None
    return {**match.groupdict(), "root": root, "signatures": signatures}


def is_signed_by(note, key):
    """Whether a note has this key's signature under the name of its origin; other signatures are ignored."""
    name, key = note["origin"], bytes.fromhex(key)
    key_id = sha256(name.encode(), b"\n\x01", key)[:4]
    return any(
        signer == name and signed[:4] == key_id and signature_verifies(key, note["text"].encode(), signed[4:])
        for signer, signed in note["signatures"]
    )


def exact_base64(text):
    """The bytes of canonical base64, or None: other encodings of the same bytes are refused."""
    try:
        decoded = base64.b64decode(text, validate=True)
    except binascii.Error:
        return None
    return decoded if base64.b64encode(decoded).decode() == text else None


def is_manifest(members):
    return (
        members is not None
        and members.get("format") == "strand-export/v1"
        and isinstance(members.get("agent"), str)
        and is_hex(members.get("strand"), 64)
        and is_hex(members.get("public_key"), 64)
        and all(is_count(members.get(name)) for name in ("from_seq", "to_seq", "record_count"))
    )


def is_record(members):
    if not isinstance(members.get("h"), str):
        return False
    signed = is_hex(members.get("sig"), 128) and "sealed_by" not in members
    sealed = is_count(members.get("sealed_by")) and "sig" not in members
    missing = [name for name in ("erased", "withheld") if name in members]
    whole = is_hex(members.get("salt"), 32) and isinstance(members.get("body"), str)
    bare = "salt" not in members and "body" not in members
    content = whole if not missing else bare and len(missing) == 1 and members[missing[0]] is True
    return (signed or sealed) and content


def is_trailer(members):
    checkpoint = members.get("checkpoint", 0)
    known = checkpoint is None or isinstance(checkpoint, str)
    known = known and ("record_count" not in members or is_count(members["record_count"]))
    return known and is_hex(members.get("chain_head"), 64) and is_count(members.get("records"))


def lines_of(file):
    """The lines of a file as bytes, without their LF. Raises Fault if a line is too long."""
    while True:
        line = file.readline(LINE_BYTES_MAX + 2)
        if line == b"":
            return
        line = line[:-1] if line.endswith(b"\n") else line
        expect(len(line) <= LINE_BYTES_MAX, f"A line is longer than {LINE_BYTES_MAX} bytes")
        yield line


def verify(lines, trusted_key, kept=None, strand_id=None, logged=None):
    """Checks an export, given as lines of bytes. Returns the strand. Raises Fault with the fault and its line."""
    strand = trailer = None
    number = 0
    for number, raw in enumerate(lines, 1):
        if trailer is not None and raw.strip(b" \t\r") == b"":
            continue
        members = parse_object(raw.removeprefix(codecs.BOM_UTF8) if strand is None else raw)
        try:
            if strand is None:
                expect(is_manifest(members), "The first line is no strand-export/v1 manifest")
                another = "The export is of another strand than the one given"
                expect(strand_id in (None, members["strand"]), another)
                strand = Strand(members, trusted_key, kept, logged)
                continue
            expect(trailer is None, "A line follows the trailer")
            if members is not None and is_record(members):
                strand.take(members)
            else:
                is_last = members is not None and is_trailer(members)
                expect(is_last, "The line is neither a record nor the trailer")
                trailer = members
        except Fault as fault:
            raise Fault(f"line {number}: {fault}") from None
    expect(strand is not None, "The export is empty")
    expect(trailer is not None, f"line {number}: The export is cut off: it has no trailer")
    strand.check_end(trailer)
    if kept is not None:
        kept.check(strand)
    return strand


def verify_with_log(lines, options, log_lines):
    """Checks an export against an earlier checkpoint of the server log, given an export of that log."""
    note = parse_note(options.note)
    expect(note is not None, "The checkpoint is not a valid signed note")
    hashes = Hashes()
    strand = verify(lines, options.public_key, None, options.strand, hashes)
    kept, logged = Kept(options.note), LoggedHeads(strand.manifest["strand"], int(note["size"]))
    try:
        verify(log_lines, options.log_key, kept, None, logged)
    except Fault as fault:
        raise Fault(f"The server log: {fault}") from None
    logged.check(strand.next_seq, hashes.by_size, strand.manifest["from_seq"])
    return strand, logged


def read_note(path):
    with open(path, "rb") as note:
        try:
            return note.read(65536).decode()
        except UnicodeDecodeError:
            raise Fault("The checkpoint is not a valid signed note") from None


def read_options():
    parser = argparse.ArgumentParser(description="Checks an export of a strand.")
    parser.add_argument("file", help="the export, or - for standard input")
    parser.add_argument("--public-key", type=str.lower, help="the agent's public key that you trust, 64 hex digits")
    parser.add_argument("--strand", type=str.lower, help="the id of the strand that you noted, 64 hex digits")
    parser.add_argument("--checkpoint", metavar="FILE", help="an earlier checkpoint of the strand or of the log")
    parser.add_argument("--log", metavar="FILE", help="an export of the server log, if the checkpoint is one of the log")
    parser.add_argument("--log-key", type=str.lower, help="the public key of the log, 64 hex digits")
    options = parser.parse_args()
    for name in ("public_key", "strand", "log_key"):
        value = getattr(options, name)
        if value is not None and not is_hex(value, 64):
            parser.error(f"--{name.replace('_', '-')}: expected 64 hex digits")
    if options.log is not None and options.checkpoint is None or options.log_key and options.log is None:
        parser.error("expected --checkpoint with --log, and --log with --log-key")
    return options


def main():
    options = read_options()
    kept = logged = None
    try:
        with sys.stdin.buffer if options.file == "-" else open(options.file, "rb") as file:
            options.note = None if options.checkpoint is None else read_note(options.checkpoint)
            if options.log is not None:
                with open(options.log, "rb") as log:
                    strand, logged = verify_with_log(lines_of(file), options, lines_of(log))
            else:
                kept = None if options.note is None else Kept(options.note)
                strand = verify(lines_of(file), options.public_key, kept, options.strand)
    except Fault as fault:
        print(f"WRONG: {fault}")
        return 1
    except OSError as error:
        print(f"{error.filename}: {error.strerror}", file=sys.stderr)
        return 2
    describe(strand, kept, logged)
    if Ed25519PublicKey is None:
        print("Signatures were NOT checked: Python's standard library has no Ed25519 (pip install cryptography)")
        return 3
    if options.public_key is None:
        print("No --public-key was given: the export was checked against itself only")
    elif options.strand is None:
        print("No --strand was given: the owner of the key can begin another strand with it")
    return 0


def describe(strand, kept, logged):
    last = strand.next_seq - 1
    # Text from the file is escaped, so that a terminal does not obey control characters in it.
    agent = ascii(strand.manifest["agent"])[1:-1]
    print(f"The export is valid: agent {agent}, {strand.records} records, the last one {last}")
    print(f"strand {strand.manifest['strand']}")
    print(f"chain head {strand.head}")
    print(f"public key {strand.key}")
    if kept is not None:
        print(f"It begins with the {kept.size} records of the checkpoint")
    if logged is not None:
        print(f"It matches the log of {logged.before} records, which has {logged.settled} of its records")
    print(f"{strand.signed} signed, {strand.sealed} sealed by later ones, {strand.erased} erased, {strand.withheld} withheld")
    if strand.imported:
        print(f"IMPORTED: another server wrote the first {strand.imported} records of the strand")
    if strand.unexplained:
        print(f"UNEXPLAINED: {len(strand.unexplained)} erased records have no sys/erase in this file, the first is record {min(strand.unexplained)}")


if __name__ == "__main__":
    sys.exit(main())
