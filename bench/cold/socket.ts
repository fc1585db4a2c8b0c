/** Like echo.ts, and opens a netlink socket as the program does. */
import { readAll, writeAll } from "../../src/ffi/files.ts";
import { exitNow, fromUtf8, utf8 } from "../../src/ffi/libc.ts";
import { openNetlink } from "../../src/ffi/netlink/socket.ts";

const document = JSON.parse(fromUtf8(readAll(0)));
openNetlink(0);
writeAll(1, utf8(JSON.stringify(document)));
exitNow(0);
