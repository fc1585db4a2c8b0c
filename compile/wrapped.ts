/** An item of a generated list in a page, in lines as `deno fmt` breaks them. */

/** As deno.json has it for pages. */
const WIDTH = 118;

export function wrapped(text: string): string {
  const lines: string[] = [];
  for (const word of text.split(" ")) {
    const last = lines.at(-1);
    if (last === undefined) lines.push(word);
    else if (last.length + 1 + word.length <= WIDTH) lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(`  ${word}`);
  }
  return lines.join("\n");
}
