"""Runs examples/verify.py on many cases, one JSON object on each line, and prints a result on each line."""

import base64
import importlib.util
import io
import json
import sys
import types

spec = importlib.util.spec_from_file_location("verify", sys.argv[1])
verify = importlib.util.module_from_spec(spec)
spec.loader.exec_module(verify)


def lines(encoded):
    return verify.lines_of(io.BytesIO(base64.b64decode(encoded)))


for line in sys.stdin:
    case = json.loads(line)
    key, strand_id, note = case.get("key"), case.get("strand"), case.get("note")
    try:
        if case.get("log") is not None:
            options = types.SimpleNamespace(
                public_key=key, strand=strand_id, note=note, log_key=case.get("log_key")
            )
            strand, _ = verify.verify_with_log(lines(case["file"]), options, lines(case["log"]))
        else:
            kept = None if note is None else verify.Kept(note)
            strand = verify.verify(lines(case["file"]), key, kept, strand_id)
        print(json.dumps({"ok": True, "unexplained": len(strand.unexplained), "imported": strand.imported}))
    except verify.Fault as fault:
        print(json.dumps({"ok": False, "reason": str(fault)}))
