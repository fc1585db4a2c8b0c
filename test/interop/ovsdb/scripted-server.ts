/** The thread behind connection.test.ts: a database server that answers each document with the next text of its script. */
declare const self: Worker;

export interface Script {
  path: string;
  /** `ID` stands for the number of the last request. After the last one it says nothing, or hangs up. */
  says: readonly string[];
  hangsUp: boolean;
}

self.onmessage = ({ data: { path, says, hangsUp } }: MessageEvent<Script>) => {
  const heard: string[] = [];
  let count = 0, id = "0", left = new Uint8Array(0);
  const flush = (socket: Bun.Socket) => {
    left = left.slice(socket.write(left));
  };
  Bun.listen({
    unix: path,
    socket: {
      drain: flush,
      data(socket, chunk) {
        const text = chunk.toString();
        heard.push(text);
        const answer = says[count++];
        if (answer === undefined) return void (hangsUp && socket.end());
        id = /"id":(\d+)/.exec(text)?.[1] ?? id;
        left = new Uint8Array([...left, ...new TextEncoder().encode(answer.replaceAll("ID", id))]);
        flush(socket);
      },
      close: () => self.postMessage(heard),
    },
  });
  self.postMessage("ready");
};
