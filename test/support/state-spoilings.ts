/**
 * Shell scripts that put something in the place of a state file: $P is its path, $D a directory elsewhere on the same file
 * system.
 */

/** What is no file at all. */
export const otherKinds: Record<string, string> = {
  "a link to a copy of it": 'mv "$P" "$D/copy"; ln -s "$D/copy" "$P"',
  "a link to a FIFO": 'mkfifo "$D/pipe"; ln -sf "$D/pipe" "$P"',
  "a link to nothing": 'ln -sf "$D/none" "$P"',
  "a FIFO": 'rm "$P"; mkfifo "$P"',
  "a directory": 'rm "$P"; mkdir "$P"',
  "a device without an end": 'rm "$P"; mknod "$P" c 1 5',
  "a device that takes everything": 'rm "$P"; mknod "$P" c 1 3',
  // Made elsewhere, because the path of a socket is short.
  "a socket":
    `perl -MSocket -e 'socket(S,AF_UNIX,SOCK_STREAM,0); bind(S,sockaddr_un($ARGV[0])) or die' "$D/s"; mv "$D/s" "$P"`,
};
export const groupWriters: Record<string, string> = { "a file that its group can write": 'chmod 660 "$P"' };
/** A file that somebody else can have written. */
export const otherWriters: Record<string, string> = {
  "another's file": 'chown 65534 "$P"',
  ...groupWriters,
  "a file that everybody can write": 'chmod 606 "$P"',
};
/** A file that is also somewhere else. */
export const otherNames = { "a file with another name": 'mv "$P" "$D/copy"; ln "$D/copy" "$P"' };

export const spoilings = { ...otherKinds, ...otherWriters, ...otherNames };
