/** The same, and a netlink socket opened as the program opens it. */
import { readAll, writeAll } from "../../src/ffi/files.ts";
import { exitNow, fromUtf8, utf8 } from "../../src/ffi/libc.ts";
import { openNetlink } from "../../src/ffi/netlink/socket.ts";

const document = JSON.parse(fromUtf8(readAll(0)));
openNetlink(0);
writeAll(1, utf8(JSON.stringify(document)));
exitNow(0);
