#!/usr/bin/env python3
"""Checks an export of a strand by docs/FORMAT.md alone: no code is shared with the server.

    python3 examples/verify.py export.ndjson --key 03a107bf... [--checkpoint kept.note]

With --checkpoint it also checks that the strand begins with the records of a checkpoint that was kept, or that came with
an answer as of a moment.

Python's standard library has SHA-256 but no Ed25519. With the package `cryptography` installed, signatures, key
rotations and the checkpoint are checked too; without it only the chain, the hashes, the bodies and the tree are, and
the last line says so: whoever can make up a whole strand can then make up one that passes.

Exit codes: 0 the export holds, 1 it does not, 2 wrong use.
"""

import argparse
import base64
import binascii
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
NOTE = re.compile(
    r"(?P<text>(?P<origin>[^\s+]+)\n(?P<size>0|[1-9][0-9]{0,15})\n(?P<root>[A-Za-z0-9+/]{43}=)\n)\n"
    r"(?P<lines>(?:\u2014 [^\s+]+ [A-Za-z0-9+/=]+\n){1,16})"
)


class Fault(Exception):
    """What is wrong with the export, or with the checkpoint kept."""


def expect(holds, reason):
    if not holds:
        raise Fault(reason)


def is_hex(value, digits):
    return isinstance(value, str) and re.fullmatch(f"[0-9a-f]{{{digits}}}", value) is not None


def is_count(value):
    return type(value) is int and 0 <= value <= SAFE_INTEGER


def sha256(*parts):
    return hashlib.sha256(b"".join(parts)).digest()


def signature_verifies(key, message, signature):
    """Whether the signature is one by this key, both as bytes; always, where there is no Ed25519."""
    if Ed25519PublicKey is None:
        return True
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, message)
        return True
    except (InvalidSignature, ValueError):
        return False


def unique_members(pairs):
    members = dict(pairs)
    expect(len(members) == len(pairs), "A key stands twice in one object")
    return members


def no_constant(name):
    raise ValueError(f"{name} is no JSON")


def parse_object(raw):
    """The members of one line, or None: UTF-8, one JSON object, no key twice, no lone surrogate."""
    try:
        value = json.loads(raw.decode(), object_pairs_hook=unique_members, parse_constant=no_constant)
        # Python reads the escape of a lone surrogate; no UTF-8 can hold what it then has.
        json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError, Fault):
        return None
    return value if isinstance(value, dict) else None


def body_members(body):
    value = json.loads(body)
    return value if isinstance(value, dict) else {}


class Tree:
    """Root of an RFC 6962 tree over hashes as they come: one node a height is kept."""

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
    """The records of an export, each checked against what came before it (docs/FORMAT.md, Checking an export)."""

    def __init__(self, manifest, trusted_key, kept=None):
        self.manifest = manifest
        self.trusted_key = trusted_key
        self.kept = kept
        self.trusted = trusted_key is None
        self.key = manifest["public_key"]
        self.next_seq = manifest["from_seq"]
        self.head = None
        self.hlc = ""
        self.seal_awaited = None
        self.tree = Tree()
        self.records = self.signed = self.sealed = self.erased = self.withheld = 0

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
        if self.kept is not None:
            self.kept.follow(self)

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
            json.loads(line["body"], parse_constant=no_constant)
        except (ValueError, RecursionError):
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
        expect("sig" in line, "A key rotation carries no signature of its own")
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
        if trailer["checkpoint"] is not None:
            self.check_checkpoint(trailer["checkpoint"])

    def check_checkpoint(self, text):
        note = parse_note(text)
        expect(note is not None and is_signed_by(note, self.key), "The checkpoint does not verify")
        expect(note["origin"] == f"strandfast/{self.manifest['strand']}", "The checkpoint is of another strand")
        expect(int(note["size"]) == self.next_seq, "The checkpoint is of another number of records")
        if self.manifest["from_seq"] == 0:
            expect(note["root"] == self.tree.root(), "The root of the checkpoint is another")


class Kept:
    """A checkpoint that was kept, looked for in a strand (docs/FORMAT.md, A checkpoint of the past)."""

    def __init__(self, text):
        self.note = parse_note(text)
        expect(self.note is not None, "The checkpoint is no signed note of this form")
        self.size = int(self.note["size"])
        self.key = self.root = None
        self.key_signs = self.vouched = self.former = False

    def follow(self, strand):
        """Called after each record: strand.key is the key in force after strand.next_seq records."""
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
        # A key that is in force at the end of an export with fewer records is no former one.
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
    """A signed note as a dict, or None where it is not of the form."""
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
    """Whether a note carries this key's signature under the name of its origin; other lines are passed over."""
    name, key = note["origin"], bytes.fromhex(key)
    key_id = sha256(name.encode(), b"\n\x01", key)[:4]
    return any(
        signer == name and signed[:4] == key_id and signature_verifies(key, note["text"].encode(), signed[4:])
        for signer, signed in note["signatures"]
    )


def exact_base64(text):
    """Bytes of base64 in its one exact form, or None: other spellings of the same bytes are refused."""
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
    return known and is_hex(members.get("chain_head"), 64) and is_count(members.get("records"))


def verify(lines, trusted_key, kept=None):
    """Checks an export given as lines of bytes. Returns the strand; raises Fault with what is wrong and where."""
    strand = trailer = None
    number = 0
    for number, raw in enumerate(lines, 1):
        members = parse_object(raw)
        try:
            if strand is None:
                expect(is_manifest(members), "The first line is no strand-export/v1 manifest")
                strand = Strand(members, trusted_key, kept)
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


def main():
    parser = argparse.ArgumentParser(description="Checks an export of a strand.")
    parser.add_argument("file", help="the export, or - for standard input")
    parser.add_argument("--key", help="the agent's public key that you trust, 64 hex digits")
    parser.add_argument("--checkpoint", metavar="FILE", help="a checkpoint of the strand that was kept")
    options = parser.parse_args()
    if options.key is not None and not is_hex(options.key, 64):
        parser.error("--key: expected 64 hex digits")
    kept = None
    try:
        if options.checkpoint is not None:
            with open(options.checkpoint, "rb") as note:
                kept = Kept(note.read().decode(errors="replace"))
        with sys.stdin.buffer if options.file == "-" else open(options.file, "rb") as lines:
            strand = verify(lines, options.key, kept)
    except Fault as fault:
        print(f"WRONG: {fault}")
        return 1
    except OSError as error:
        print(f"{error.filename}: {error.strerror}", file=sys.stderr)
        return 2
    last = strand.next_seq - 1
    print(f"The export holds: agent {strand.manifest['agent']}, {strand.records} records, the last one {last}")
    print(f"chain head {strand.head}")
    print(f"public key {strand.key}")
    if kept is not None:
        print(f"It begins with the {kept.size} records of the checkpoint")
    print(f"{strand.signed} signed, {strand.sealed} sealed by later ones, {strand.erased} erased, {strand.withheld} withheld")
    if Ed25519PublicKey is None:
        print("Signatures were NOT checked: Python's standard library has no Ed25519 (pip install cryptography)")
    elif options.key is None:
        print("No --key was given: the export was checked against itself only")
    return 0


if __name__ == "__main__":
    sys.exit(main())
