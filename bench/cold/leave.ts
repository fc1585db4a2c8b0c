/** Binds the C library and exits through it: the minimum of every program of ours. */
import { exitNow } from "../../src/ffi/libc.ts";

exitNow(0);
