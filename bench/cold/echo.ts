/** Copies JSON from stdin to stdout through the C library. */
import { readAll, writeAll } from "../../src/ffi/files.ts";
import { exitNow, fromUtf8, utf8 } from "../../src/ffi/libc.ts";

const document = JSON.parse(fromUtf8(readAll(0)));
writeAll(1, utf8(JSON.stringify(document)));
exitNow(0);
