/** One word of a shell's command, quoted where it needs it. */
export function shellWord(text: string): string {
  return /^[\w./:=@-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** shell`ip link set ${name} up`: others choose the names of links and chains, so each value becomes a word, or a part of one. */
export function shell(parts: TemplateStringsArray, ...words: string[]): string {
  return String.raw({ raw: parts }, ...words.map(shellWord));
}
