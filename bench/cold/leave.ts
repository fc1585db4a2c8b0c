/** The C library bound, and out through it: what every program of ours does at least. */
import { exitNow } from "../../src/ffi/libc.ts";

exitNow(0);
